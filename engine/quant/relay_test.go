package quant

import (
	"math/rand/v2"
	"testing"
)

// TestRelay multiplies rows before and after they are laid out anew: same bits,
// same values.
func TestRelay(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		for _, typ := range []Type{IQ3_S, IQ3_XXS} {
			f := mustOf(t, typ)
			g := f.Faster()
			if g == nil {
				t.Fatalf("%s has no faster format", f.Name)
			}
			rng := rand.New(rand.NewPCG(uint64(typ), 12))
			for _, blocks := range []int{1, 2, 5, 9} {
				n, rows := 256*blocks, 1+rng.IntN(20)
				w := randomRows(rng, f, rows, n)
				v, check := inRoom(make([]byte, rows*g.RowBytes(n)), 3)
				Relay(v, f, w)
				if err := check(); err != nil {
					t.Fatal(err)
				}
				values := decodeAll(g, v)
				for i, x := range decodeAll(f, w) {
					if !sameBits(x, values[i]) {
						t.Fatalf("%s: value %d is %g, want %g", f.Name, i, values[i], x)
					}
				}
				for _, count := range []int{1, 3, 9} {
					checkMul(t, rng, g, v, rows, count, n, specials(rng, count*n))
					var a Acts
					a.Set(randomFloats(rng, n*count), count, n)
					a.Quantize(0, count)
					before, after := make([]float32, rows*count), make([]float32, rows*count)
					Mul(f, before, rows, w, rows, &a, nil)
					Mul(g, after, rows, v, rows, &a, nil)
					for i := range before {
						if !sameBits(before[i], after[i]) {
							t.Fatalf("%s: result %d is %g, want %g", f.Name, i, after[i], before[i])
						}
					}
				}
			}
		}
	})
	if undo, err := Use(Generic); err != nil {
		t.Fatal(err)
	} else {
		defer undo()
	}
	if g := mustOf(t, IQ3_S).Faster(); g != nil {
		t.Errorf("the plain loops have a faster format: %s", g.Name)
	}
}

func BenchmarkRelay(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	f := mustOf(b, IQ3_S)
	w := randomRows(rng, f, 64, 2048)
	dst := make([]byte, 64*f.Faster().RowBytes(2048))
	b.Run("layout", func(b *testing.B) {
		perSecond(b, 64*2048, "Gvalues/cpu-s", func() { Relay(dst, f, w) })
	})
	for _, k := range levels {
		if !k.records {
			continue
		}
		undo, _ := Use(k.level)
		for _, typ := range []Type{IQ3_S, IQ3_XXS} {
			f := mustOf(b, typ)
			for _, f := range []*Format{f, f.Faster()} {
				b.Run(k.level.String()+"/"+f.Name, func(b *testing.B) {
					const rows, n = 16 << 10, 4096
					w := make([]byte, rows*f.RowBytes(n))
					var a Acts
					a.Set(randomFloats(rng, n), 1, n)
					a.Quantize(0, 1)
					dst := make([]float32, rows)
					perSecond(b, rows*n, "Gvalues/cpu-s", func() { Mul(f, dst, rows, w, rows, &a, nil) })
				})
			}
		}
		undo()
	}
}
