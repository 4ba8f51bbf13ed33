package quant

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// fixtureCols is the row length of the files in testdata.
const fixtureCols = 1024

// fixtureTypes are the folders of testdata.
var fixtureTypes = []Type{
	F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q2_K, Q3_K, Q4_K, Q5_K, Q6_K,
	IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S, IQ4_NL, IQ4_XS,
	TQ1_0, TQ2_0, MXFP4, NVFP4, Q1_0, Q2_0,
}

func readFixture(t *testing.T, name ...string) []byte {
	t.Helper()
	path := filepath.Join(append([]string{"testdata"}, name...)...)
	b, err := os.ReadFile(path)
	if err != nil {
		z, zerr := os.Open(path + ".gz")
		if zerr != nil {
			t.Fatal(err)
		}
		defer z.Close()
		r, zerr := gzip.NewReader(z)
		if zerr != nil {
			t.Fatal(zerr)
		}
		if b, err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func readFloats(t *testing.T, name ...string) []float32 {
	t.Helper()
	b := readFixture(t, name...)
	f := make([]float32, len(b)/4)
	if err := binary.Read(bytes.NewReader(b), binary.LittleEndian, f); err != nil {
		t.Fatal(err)
	}
	return f
}

func mustOf(t testing.TB, typ Type) *Format {
	t.Helper()
	f, err := Of(typ)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// decodeAll is the values of whole rows.
func decodeAll(f *Format, b []byte) []float32 {
	v := make([]float32, len(b)/f.Bytes*f.Block)
	f.Decode(v, b)
	return v
}

func TestDecodeFixtures(t *testing.T) {
	for _, typ := range fixtureTypes {
		t.Run(typ.String(), func(t *testing.T) {
			f := mustOf(t, typ)
			for _, c := range [][2]string{{"rows.bin", "dequant.f32"}, {"random.bin", "random_dequant.f32"}} {
				want := readFloats(t, f.Name, c[1])
				got := decodeAll(f, readFixture(t, f.Name, c[0]))
				if len(got) != len(want) {
					t.Fatalf("%s: %d values, want %d", c[0], len(got), len(want))
				}
				for i, w := range want {
					if math.Float32bits(got[i]) != math.Float32bits(w) {
						t.Fatalf("%s: value %d is %g (%#x), want %g (%#x)", c[0], i,
							got[i], math.Float32bits(got[i]), w, math.Float32bits(w))
					}
				}
			}
		})
	}
}

// product is one entry of dot.json.
type product struct {
	Rows   string             `json:"rows"`
	Row    int                `json:"row"`
	Act    int                `json:"act"`
	Exact  float64            `json:"exact"`
	SumAbs float64            `json:"sum_abs"`
	Lib    map[string]float64 `json:"lib"`
}

func fixtureProducts(t *testing.T, f *Format) []product {
	t.Helper()
	var p []product
	if err := json.Unmarshal(readFixture(t, f.Name, "dot.json"), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

// fixtureActs is the four activation rows of testdata, with their 8-bit copy.
func fixtureActs(t *testing.T) *Acts {
	t.Helper()
	return plainActs(t, readFloats(t, "act.f32"), 4, fixtureCols)
}

// plainActs is t rows of n activations with the 8-bit copy that the plain loops
// read. The generic level stays in use until the end of the test.
func plainActs(tb testing.TB, x []float32, t, n int) *Acts {
	tb.Helper()
	undo, err := Use(Generic)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(undo)
	a := new(Acts)
	a.Set(x, t, n)
	a.Quantize(0, t)
	return a
}

// exactProduct is the float64 product of decoded values with the activations
// as a product of format f sees them, and the sum of the magnitudes.
func exactProduct(f *Format, w []float32, a *Acts, t int) (sum, abs float64) {
	for i, v := range w {
		x := float64(a.x[t*a.n+i])
		if !f.Float {
			x = float64(a.q[t*a.stride+i]) * float64(a.d[(t*a.stride+i)/32])
		}
		sum += float64(v) * x
		abs += math.Abs(float64(v) * x)
	}
	return sum, abs
}

// TestDotFixtures compares the plain products with the float64 product of the
// same rounded activations, and with the exact product of the float
// activations: over all pairs of rows, our distance from it may be at most
// twice that of llama.cpp.
func TestDotFixtures(t *testing.T) {
	a := fixtureActs(t)
	for _, typ := range fixtureTypes {
		t.Run(typ.String(), func(t *testing.T) {
			f := mustOf(t, typ)
			rows := map[string][]byte{"rows": readFixture(t, f.Name, "rows.bin"), "random": readFixture(t, f.Name, "random.bin")}
			size := f.RowBytes(fixtureCols)
			var ours, lib float64
			for _, p := range fixtureProducts(t, f) {
				row := rows[p.Rows][p.Row*size : (p.Row+1)*size]
				got := float64(f.Dot(row, a, p.Act))
				want, abs := exactProduct(f, decodeAll(f, row), a, p.Act)
				if d := math.Abs(got - want); !(d <= 1e-5*abs) {
					t.Errorf("%s row %d, activation %d: %g, want %g (off by %.1e of the sum of magnitudes)",
						p.Rows, p.Row, p.Act, got, want, d/abs)
				}
				if p.SumAbs == 0 {
					continue
				}
				e := (got - p.Exact) / p.SumAbs
				ours += e * e
				best := math.Inf(1)
				for _, v := range p.Lib {
					best = min(best, math.Abs(v-p.Exact)/p.SumAbs)
				}
				lib += best * best
			}
			ours, lib = math.Sqrt(ours), math.Sqrt(lib)
			t.Logf("rms distance from the exact product: ours %.2e, llama.cpp %.2e", ours, lib)
			if ours > 2*lib && ours > 1e-6 {
				t.Errorf("distance from the exact product is %.2e, llama.cpp's is %.2e", ours, lib)
			}
		})
	}
}
