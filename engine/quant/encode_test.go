package quant

import (
	"math"
	"testing"
)

// relativeRMS is the root of the squared distance over the squared size.
func relativeRMS(got, want []float32) float64 {
	var d, s float64
	for i := range want {
		e := float64(got[i]) - float64(want[i])
		d += e * e
		s += float64(want[i]) * float64(want[i])
	}
	return math.Sqrt(d / s)
}

// TestEncodeFixtures encodes the source rows and compares the loss with that of
// llama.cpp's encoder, which searches longer.
func TestEncodeFixtures(t *testing.T) {
	src := readFloats(t, "source.f32")
	for _, c := range []struct {
		typ   Type
		worse float64 // how many times the loss of llama.cpp is allowed
	}{
		{F16, 1.0001}, {BF16, 1.0001}, {Q8_0, 1.01}, {Q4_0, 1.05}, {Q4_1, 1.05},
		{Q5_0, 1.05}, {Q5_1, 1.05}, {Q4_K, 1.4}, {Q6_K, 1.25},
	} {
		t.Run(c.typ.String(), func(t *testing.T) {
			f := mustOf(t, c.typ)
			enc := make([]byte, f.RowBytes(len(src)))
			f.Encode(enc, src)
			got, lib := decodeAll(f, enc), readFloats(t, f.Name, "dequant.f32")
			for row := range 4 {
				if row == 2 && c.typ != BF16 {
					continue // 2e-6 is too small for scales that are halves; both lose most of it
				}
				lo, hi := row*fixtureCols, (row+1)*fixtureCols
				ours, theirs := relativeRMS(got[lo:hi], src[lo:hi]), relativeRMS(lib[lo:hi], src[lo:hi])
				t.Logf("row %d: loss %.4f, llama.cpp %.4f", row, ours, theirs)
				if !(ours <= c.worse*theirs) {
					t.Errorf("row %d: loss %.5f, llama.cpp's encoder has %.5f", row, ours, theirs)
				}
			}
		})
	}
}

// TestEncodeSpecial: zeros stay zeros, and a value that is not finite never
// becomes an ordinary number.
func TestEncodeSpecial(t *testing.T) {
	inf := float32(math.Inf(1))
	for i := range formats {
		f := &formats[i]
		if f.Encode == nil {
			continue
		}
		t.Run(f.Name, func(t *testing.T) {
			n := max(f.Block, 32)
			x := make([]float32, n)
			enc := make([]byte, f.RowBytes(n))
			f.Encode(enc, x)
			for i, v := range decodeAll(f, enc) {
				if v != 0 {
					t.Fatalf("value %d of zeros is %g", i, v)
				}
			}
			for _, bad := range []float32{float32(math.NaN()), inf, -inf} {
				clear(x)
				x[3], x[7], x[9] = 1, bad, -2
				f.Encode(enc, x)
				if v := float64(decodeAll(f, enc)[7]); !math.IsNaN(v) && !math.IsInf(v, 0) {
					t.Errorf("%g became %g", bad, v)
				}
			}
			for i := range x {
				x[i] = 3e-39 // below every scale
			}
			f.Encode(enc, x)
			for i, v := range decodeAll(f, enc) {
				if v != v || v > 1e-3 || v < -1e-3 {
					t.Fatalf("value %d of 3e-39 is %g", i, v)
				}
			}
		})
	}
}
