package engine

import (
	"slices"
	"testing"

	"outcrop/engine/quant"
)

// TestOnCPU: what a card has no kernels for is said by part, layers and reason.
func TestOnCPU(t *testing.T) {
	for name, want := range map[string][]string{
		"deepseek2-yarn": {"attention of layers 0-2 on the CPU: no kernel for latent attention"},
		"qwen3moe":       nil,
		"qwen35-nextn":   nil,
		"qwen4exp": {
			"sums and norms between the parts of layers 0-3 on the CPU: no kernel for hyper-connections",
			"attention of layer 3 on the CPU: no kernel for a sparse index",
		},
	} {
		p, err := OpenPack(fixturePath(name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.OnCPU()
		p.Close()
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v; want %q", name, got, err, want)
		}
	}
	for want, at := range map[string][]int{"0": {0}, "0-3, 5, 7-9": {0, 1, 2, 3, 5, 7, 8, 9}, "2, 4": {2, 4}} {
		if got := spans(at); got != want {
			t.Errorf("%v: %q, want %q", at, got, want)
		}
	}
}

// TestWiden: feed-forwards are filled up with zeros to a multiple of 32, each
// expert by itself, gate and up rows of one tensor by themselves.
func TestWiden(t *testing.T) {
	f, err := quant.Of(quant.F32)
	if err != nil {
		t.Fatal(err)
	}
	const dim, ff, wide, n = 32, 24, 32, 3
	numbers := func(rows, cols int) []float32 {
		x := make([]float32, rows*cols)
		for i := range x {
			x[i] = float32(i + 1)
		}
		return x
	}
	mat := func(count, rows, cols int) matrix {
		return matrix{f: f, data: floatBytes(numbers(count*rows, cols)), rows: rows, cols: cols, rowBytes: 4 * cols}
	}
	l := &layer{layerSpec: &layerSpec{expert: expertSpec{count: n, ff: ff}}, fused: true}
	l.gates = bank{matrix: mat(n, 2*ff, dim), count: n, biases: numbers(n, 2*ff)}
	l.downs = bank{matrix: mat(n, dim, ff), count: n}
	w := widen(l)
	if w.expert.ff != wide || w.gates.rows != 2*wide || w.downs.cols != wide || l.expert.ff != ff {
		t.Fatalf("widths %d, %d rows, %d columns; the layer itself %d", w.expert.ff, w.gates.rows, w.downs.cols, l.expert.ff)
	}
	for e := range n {
		was, is := asFloats(l.gates.of(e)), asFloats(w.gates.of(e))
		for half := range 2 {
			for r := range wide {
				for c := range dim {
					want := float32(0)
					if r < ff {
						want = was[(half*ff+r)*dim+c]
					}
					if got := is[(half*wide+r)*dim+c]; got != want {
						t.Fatalf("expert %d, half %d, row %d, column %d: %v, want %v", e, half, r, c, got, want)
					}
				}
				want := float32(0)
				if r < ff {
					want = l.gates.biases[e*2*ff+half*ff+r]
				}
				if got := w.gates.biases[e*2*wide+half*wide+r]; got != want {
					t.Fatalf("expert %d, half %d: bias %d is %v, want %v", e, half, r, got, want)
				}
			}
		}
		was, is = asFloats(l.downs.of(e)), asFloats(w.downs.of(e))
		for r := range dim {
			for c := range wide {
				want := float32(0)
				if c < ff {
					want = was[r*ff+c]
				}
				if got := is[r*wide+c]; got != want {
					t.Fatalf("expert %d, down row %d, column %d: %v, want %v", e, r, c, got, want)
				}
			}
		}
	}
	l.expert.ff = 64
	if widen(l) != l {
		t.Error("a layer of a width that kernels take was copied")
	}
}
