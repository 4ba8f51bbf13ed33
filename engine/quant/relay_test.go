package quant

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// wovenRows is random rows of n values of a format and the same rows woven.
func wovenRows(rng *rand.Rand, w *weaving, rows, n int) (from *Format, file, woven []byte) {
	from = find(w.from)
	file = randomRows(rng, from, rows, n)
	woven = make([]byte, rows*w.RowBytes(n))
	Relay(woven, &w.Format, from, file)
	return from, file, woven
}

// TestRelay multiplies rows before and after they are laid out anew: same bits,
// same values.
func TestRelay(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		for _, g := range wovenAt {
			if g == nil {
				continue
			}
			f := find(g.from)
			if f.Faster(512) != &g.Format {
				t.Fatalf("%s has no faster format", f.Name)
			}
			if f.Faster(512+f.Block) != nil && f.Block < 256 || f.Faster(0) != nil {
				t.Fatalf("%s has a faster format for rows that are no whole 256 values", f.Name)
			}
			if k.rows[g.Type] == nil || k.many[g.Type].unpack == nil {
				t.Fatalf("%s lacks kernels", g.Name)
			}
			rng := rand.New(rand.NewPCG(uint64(g.Type), 12))
			for _, blocks := range []int{1, 2, 3, 5, 9, 16} {
				n, rows := 256*blocks, 1+rng.IntN(20)
				w := randomRows(rng, f, rows, n)
				v, check := inRoom(make([]byte, rows*g.RowBytes(n)), 3)
				Relay(v, &g.Format, f, w)
				if err := check(); err != nil {
					t.Fatal(err)
				}
				values := decodeAll(&g.Format, v)
				for i, x := range decodeAll(f, w) {
					if !sameBits(x, values[i]) {
						t.Fatalf("%s: value %d is %g, want %g", f.Name, i, values[i], x)
					}
				}
				for _, count := range []int{1, 2, 3, 5, 7, 9, 18} {
					checkMul(t, rng, &g.Format, v, rows, count, n, specials(rng, count*n))
					var a Acts
					a.Set(randomFloats(rng, n*count), count, n)
					a.Quantize(0, count)
					before, after := make([]float32, rows*count), make([]float32, rows*count)
					Mul(f, before, rows, w, rows, &a, nil)
					Mul(&g.Format, after, rows, v, rows, &a, nil)
					for i := range before {
						if !sameBits(before[i], after[i]) {
							t.Fatalf("%s: result %d is %g, want %g", f.Name, i, after[i], before[i])
						}
					}
				}
			}
			// What is not finite stays so, and all is as defined.
			for _, h := range []uint16{0x7e00, 0x7c00, 0xfc00, 0, 0x8000, 0x7bff, 0xfbff, 1, 0x8001} {
				const rows, n = 3, 768
				w := randomRows(rng, f, rows, n)
				for _, at := range halfAt[f.Type] {
					w[f.Bytes+at], w[f.Bytes+at+1] = byte(h), byte(h>>8)
				}
				v := make([]byte, rows*g.RowBytes(n))
				Relay(v, &g.Format, f, w)
				for _, count := range []int{1, 2, 7} {
					checkMul(t, rng, &g.Format, v, rows, count, n, randomFloats(rng, count*n))
				}
			}
		}
	})
}

func TestWeave(t *testing.T) {
	var q, want [256]byte
	for i := range q {
		q[i] = byte(i)
	}
	weavePlain(&want, &q)
	dst, check := inRoom(make([]byte, 256), 5)
	weaveBytes((*[256]byte)(dst), &q)
	if err := check(); err != nil {
		t.Fatal(err)
	}
	for v := range q {
		if p := wovenPlace[v]; dst[p] != q[v] || want[p] != q[v] {
			t.Fatalf("value %d: place %d has %d and, in plain Go, %d", v, p, dst[p], want[p])
		}
	}
}

// The plain loops have no other layout.
func TestRelayPlain(t *testing.T) {
	if undo, err := Use(Generic); err != nil {
		t.Fatal(err)
	} else {
		defer undo()
	}
	if g := mustOf(t, IQ3_S).Faster(256); g != nil {
		t.Errorf("the plain loops have a faster format: %s", g.Name)
	}
}

func BenchmarkRelay(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, g := range wovenAt {
		if g == nil {
			continue
		}
		f := find(g.from)
		w, dst := randomRows(rng, f, 64, 2048), make([]byte, 64*g.RowBytes(2048))
		b.Run("layout/"+f.Name, func(b *testing.B) {
			perSecond(b, 64*2048, "Gvalues/cpu-s", func() { Relay(dst, &g.Format, f, w) })
		})
	}
	for _, k := range levels {
		if !k.records {
			continue
		}
		undo, _ := Use(k.level)
		for _, g := range wovenAt {
			if g == nil || k.rows[g.Type] == nil {
				continue
			}
			for _, f := range []*Format{find(g.from), &g.Format} {
				for _, rows := range []int{256, 32 << 10} { // in cache, and from memory
					b.Run(fmt.Sprintf("%s/%s/%d", k.level, f.Name, rows), func(b *testing.B) {
						const n = 4096
						w := make([]byte, rows*f.RowBytes(n))
						for i := 0; i < len(w); i += 4096 {
							w[i] = 1 // pages of their own
						}
						var a Acts
						a.Set(randomFloats(rng, n), 1, n)
						a.Quantize(0, 1)
						dst := make([]float32, rows)
						perSecond(b, float64(len(w)), "GB/cpu-s", func() { Mul(f, dst, rows, w, rows, &a, nil) })
					})
				}
			}
		}
		undo()
	}
}
