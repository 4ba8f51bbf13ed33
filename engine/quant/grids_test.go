package quant

import (
	"encoding/json"
	"math"
	"testing"
)

// TestGridSizes: every grid decodes from its constant to the full number of
// vectors. Array conversions would panic on less; this names the grid.
func TestGridSizes(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    string
		levels []int8
		dim    int
		even   bool
		want   int
	}{
		{"IQ2_XXS", setIQ2XXS, levels2, 8, true, 256},
		{"IQ2_XS", setIQ2XS, levels2, 8, true, 512},
		{"IQ2_S", setIQ2S, levels2, 8, true, 1024},
		{"IQ3_XXS", setIQ3XXS, levels3, 4, true, 256},
		{"IQ3_S", setIQ3S, levelsS, 4, false, 512},
		{"IQ1", setIQ1S, levels1, 8, false, 2048},
	} {
		g := grid(c.set, c.levels, c.dim, c.even)
		if len(g) != c.want {
			t.Errorf("%s has %d vectors, want %d", c.name, len(g), c.want)
		}
		seen := map[uint64]bool{}
		for _, v := range g {
			seen[v] = true
		}
		if len(seen) != len(g) {
			t.Errorf("%s holds a vector twice", c.name)
		}
	}
}

// TestCover decodes rows in which every vector of a grid occurs.
func TestCover(t *testing.T) {
	act := readFloats(t, "act.f32")[:fixtureCols]
	for _, typ := range []Type{IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S} {
		t.Run(typ.String(), func(t *testing.T) {
			f := mustOf(t, typ)
			var want struct {
				Sum     []float64 `json:"sum"`
				Squares []float64 `json:"sum_of_squares"`
				Dot     []float64 `json:"dot_with_act_row_0"`
			}
			if err := json.Unmarshal(readFixture(t, f.Name, "cover.json"), &want); err != nil {
				t.Fatal(err)
			}
			values := decodeAll(f, readFixture(t, f.Name, "cover.bin"))
			if len(values) != fixtureCols*len(want.Sum) || len(want.Sum) == 0 {
				t.Fatalf("%d values for %d rows", len(values), len(want.Sum))
			}
			for r := range want.Sum {
				var sum, squares, dot, abs float64
				for i, v := range values[r*fixtureCols : (r+1)*fixtureCols] {
					w := float64(v)
					sum, squares, dot, abs = sum+w, squares+w*w, dot+w*float64(act[i]), abs+math.Abs(w)
				}
				if math.Abs(sum-want.Sum[r]) > 1e-12*abs || math.Abs(squares-want.Squares[r]) > 1e-12*squares ||
					math.Abs(dot-want.Dot[r]) > 1e-10*abs {
					t.Fatalf("row %d: sum %.17g, squares %.17g, product %.17g; want %.17g, %.17g, %.17g", r,
						sum, squares, dot, want.Sum[r], want.Squares[r], want.Dot[r])
				}
			}
		})
	}
}
