package quant

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	last := -1
	for i := range formats {
		f := &formats[i]
		if int(f.Type) <= last || seen[f.Name] || f.Block <= 0 || f.Bytes <= 0 || f.Decode == nil {
			t.Errorf("entry %d (%s) is out of order, double or not complete", i, f.Name)
		}
		if 256%f.Block != 0 {
			t.Errorf("%s: blocks of %d values do not divide 256", f.Name, f.Block)
		}
		last, seen[f.Name] = int(f.Type), true
		if got, err := Of(f.Type); got != f || err != nil || f.Type.String() != f.Name {
			t.Errorf("Of(%d) = %v, %v; name %s", f.Type, got, err, f.Type)
		}
	}
	for _, typ := range []Type{4, 5, 9, 15, 31, 36, 38, 43, 1 << 31} {
		if f, err := Of(typ); f != nil || err == nil || !strings.Contains(err.Error(), "tensor type") {
			t.Errorf("Of(%d) = %v, %v, want an error that names it", uint32(typ), f, err)
		}
	}
	if f := mustOf(t, Q4_K); f.RowBytes(1024) != 576 {
		t.Errorf("a Q4_K row of 1024 is %d bytes, want 576", f.RowBytes(1024))
	}
}

// TestRandomBits feeds blocks of random bits, of zeros and of ones to every
// decoder and every plain product, at many lengths. Nothing may panic, and
// where the decoded values are finite the product must be the float64 product.
func TestRandomBits(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range formats {
		f := &formats[i]
		t.Run(f.Name, func(t *testing.T) {
			compared := 0
			for round := range 60 {
				n := max(f.Block, 32) * (1 + round%13)
				if f.Float {
					n = 1 + round*7 // any length
				}
				row := make([]byte, f.RowBytes(n))
				for i := range row {
					switch round % 5 {
					case 0, 1, 2:
						row[i] = byte(rng.Uint32())
					case 3:
						row[i] = 0xff
					}
				}
				x := make([]float32, 2*n)
				for i := range x {
					x[i] = float32(rng.NormFloat64())
				}
				values := decodeAll(f, row)
				if len(values) != n {
					t.Fatalf("%d values, want %d", len(values), n)
				}
				if f.Dot == nil {
					continue
				}
				a := plainActs(t, x, 2, n)
				got := f.Dot(row, a, 1)
				want, abs := exactProduct(f, values, a, 1)
				if math.IsNaN(want) || abs > 1e30 {
					continue
				}
				compared++
				if d := math.Abs(float64(got) - want); !(d <= 1e-5*abs+1e-38) {
					t.Fatalf("round %d, n %d: %g, want %g (sum of magnitudes %g)", round, n, got, want, abs)
				}
			}
			if f.Dot != nil && compared < 10 {
				t.Errorf("only %d rounds had finite values", compared)
			}
		})
	}
}

// TestSmallFloatScales checks the scales of MXFP4 and NVFP4 that the fixtures,
// whose scales are ordinary, do not reach. The value is 1/2 times 2 in both.
func TestSmallFloatScales(t *testing.T) {
	for e := range 256 {
		v := make([]float32, 32)
		mustOf(t, MXFP4).Decode(v, append([]byte{byte(e)}, make([]byte, 16)...))
		if v[0] != 0 {
			t.Fatalf("MXFP4 zero with scale %d is %g", e, v[0])
		}
		block := append([]byte{byte(e)}, 2) // E2M1 number 2: the value 1
		mustOf(t, MXFP4).Decode(v, append(block, make([]byte, 15)...))
		if want := float32(math.Ldexp(1, e-127)); v[0] != want {
			t.Errorf("MXFP4 one with scale %d is %g, want %g", e, v[0], want)
		}
	}
	for _, c := range []struct {
		scale byte
		want  float32
	}{
		{0, 0}, {1, 0x1p-9}, {7, 7 * 0x1p-9}, {8, 0x1p-6}, {0x38, 1}, {0x39, 1.125}, {0x7e, 448},
		{0x7f, 0}, {0x80, 0}, {0x81, 0x1p-9}, {0xb8, 1}, {0xfe, 448}, {0xff, 480},
	} {
		v := make([]float32, 64)
		block := append([]byte{c.scale, 0, 0, 0}, 2)
		mustOf(t, NVFP4).Decode(v, append(block, make([]byte, 31)...))
		if v[0] != c.want {
			t.Errorf("NVFP4 one with scale %#02x is %g, want %g", c.scale, v[0], c.want)
		}
	}
}

// TestDecodeOfNothing: decoders read only whole blocks.
func TestDecodeOfNothing(t *testing.T) {
	for i := range formats {
		formats[i].Decode(nil, nil)
	}
}

// TestNotFiniteActivations: a NaN or an infinity anywhere in an activation row
// makes products not finite, whatever the format.
func TestNotFiniteActivations(t *testing.T) {
	inf := float32(math.Inf(1))
	for i := range formats {
		f := &formats[i]
		if f.Dot == nil {
			continue
		}
		const n = 512
		row := make([]byte, f.RowBytes(n)) // zeros: even 0 times infinity must show
		for _, bad := range []float32{float32(math.NaN()), inf, -inf} {
			x := make([]float32, n)
			x[0], x[333] = 1, bad
			if v := float64(f.Dot(row, plainActs(t, x, 1, n), 0)); !math.IsNaN(v) && !math.IsInf(v, 0) {
				t.Errorf("%s: product with %g is %g", f.Name, bad, v)
			}
		}
	}
}

// TestExtremes drives the integer sums to their ends: all weights at either end
// of their range against activations of 127 and -127.
func TestExtremes(t *testing.T) {
	for i := range formats {
		f := &formats[i]
		if f.Dot == nil || f.Float {
			continue
		}
		const n = 256
		for _, fill := range []byte{0x00, 0x0f, 0xf0, 0xff, 0x7f, 0x80} {
			row := make([]byte, f.RowBytes(n))
			for i := range row {
				row[i] = fill
			}
			for _, h := range halfPlaces(f) {
				for b := 0; b < len(row); b += f.Bytes {
					row[b+h], row[b+h+1] = 0x00, 0x3c // 1.0
				}
			}
			values := decodeAll(f, row)
			for _, alternate := range []bool{false, true} {
				x := make([]float32, n)
				for i := range x {
					x[i] = 127
					if alternate && values[i] < 0 {
						x[i] = -127
					}
				}
				a := plainActs(t, x, 1, n)
				got := float64(f.Dot(row, a, 0))
				want, abs := exactProduct(f, values, a, 0)
				if abs < 1e30 && !(math.Abs(got-want) <= 1e-6*abs) {
					t.Errorf("%s of %#02x: %g, want %g", f.Name, fill, got, want)
				}
			}
		}
	}
}

// halfPlaces are the offsets of the halves in a block.
func halfPlaces(f *Format) []int {
	switch f.Type {
	case Q4_1, Q5_1, Q4_K, Q5_K:
		return []int{0, 2}
	case Q2_K:
		return []int{80, 82}
	case Q3_K:
		return []int{108}
	case Q6_K:
		return []int{208}
	case TQ1_0:
		return []int{52}
	case TQ2_0:
		return []int{64}
	case IQ1_M, MXFP4, NVFP4:
		return nil
	}
	return []int{0}
}
