package quant

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestFromCache: every level makes the same floats of cached rows, bit for bit,
// from any scale and offset that a half can be.
func TestFromCache(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	eachVec(t, func(t *testing.T) {
		for _, blocks := range []int{1, 2, 9} {
			for range 200 {
				b8, b4 := make([]byte, blocks*cache8Bytes), make([]byte, blocks*cache4Bytes)
				for i := range b8 {
					b8[i] = byte(rng.Uint32())
				}
				for i := range b4 {
					b4[i] = byte(rng.Uint32())
				}
				want := make([]float32, blocks*cacheBlock)
				got, check := room(want, blocks)
				same := func(name string) {
					t.Helper()
					for i := range want {
						if a, b := math.Float32bits(got[i]), math.Float32bits(want[i]); a != b && (got[i] == got[i] || want[i] == want[i]) {
							t.Fatalf("%s: value %d is %g, want %g", name, i, got[i], want[i])
						}
					}
					if err := check(); err != nil {
						t.Fatal(err)
					}
				}
				FromCache8(got, b8)
				plainFromCache8(want, b8, 0)
				same("8 bits")
				FromCache4(got, b4)
				plainFromCache4(want, b4, 0)
				same("4 bits")
			}
		}
	})
}

// TestCacheMany: what a query gets over rows of floats, of 8 and of 4 bits does
// not depend on the other queries and rows of a call, and nothing is written
// beside the results.
func TestCacheMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, wide := range []int{64, 128, 576, 1088} {
		for _, n := range []int{wide, wide - 16, wide - 24, wide - 27} {
			const rows, most = 37, 7
			x := randomFloats(rng, rows*wide)
			b8, b4 := make([]byte, rows*Cache8Bytes(wide)), make([]byte, rows*Cache4Bytes(wide))
			ToCache8(b8, x)
			ToCache4(b4, x)
			q, p := randomFloats(rng, most*n), randomFloats(rng, most*rows)
			tile := make([]float32, CacheTile(wide))
			for _, c := range []struct {
				name   string
				scores func(dst []float32, ldd int, q []float32, nq, from, rows int)
				mix    func(dst []float32, ldd int, p []float32, nq int)
			}{
				{"floats", func(dst []float32, ldd int, q []float32, nq, from, rows int) {
					ScoresManyF32(dst, ldd, q, nq, n, x[from*wide:], rows, wide)
				}, func(dst []float32, ldd int, p []float32, nq int) { MixManyF32(dst, ldd, n, p, rows, nq, x, rows, wide) }},
				{"8 bits", func(dst []float32, ldd int, q []float32, nq, from, rows int) {
					ScoresMany8(dst, ldd, q, nq, n, b8[from*Cache8Bytes(wide):], rows, wide, b8, tile)
				}, func(dst []float32, ldd int, p []float32, nq int) {
					MixMany8(dst, ldd, n, p, rows, nq, b8, rows, wide, b8, tile)
				}},
				{"4 bits", func(dst []float32, ldd int, q []float32, nq, from, rows int) {
					ScoresMany4(dst, ldd, q, nq, n, b4[from*Cache4Bytes(wide):], rows, wide, nil, tile)
				}, func(dst []float32, ldd int, p []float32, nq int) {
					MixMany4(dst, ldd, n, p, rows, nq, b4, rows, wide, nil, tile)
				}},
			} {
				eachVec(t, func(t *testing.T) {
					alone, mixed := make([]float32, most*rows), make([]float32, most*n)
					for i := range most {
						for r := range rows {
							c.scores(alone[i*rows+r:], 1, q[i*n:], 1, r, 1)
						}
						c.mix(mixed[i*n:], n, p[i*rows:], 1)
					}
					for nq := 1; nq <= most; nq++ {
						s, checkS := room(make([]float32, nq*(rows+2)), nq%3)
						y, checkY := room(make([]float32, nq*(n+3)), nq%5)
						c.scores(s, rows+2, q, nq, 0, rows)
						c.mix(y, n+3, p, nq)
						for i := range nq {
							if !slices.Equal(s[i*(rows+2):i*(rows+2)+rows], alone[i*rows:(i+1)*rows]) {
								t.Fatalf("%s: %d of %d values: scores of query %d of %d differ from it alone", c.name, n, wide, i, nq)
							}
							if !slices.Equal(y[i*(n+3):i*(n+3)+n], mixed[i*n:(i+1)*n]) {
								t.Fatalf("%s: %d of %d values: sum of query %d of %d differs from it alone", c.name, n, wide, i, nq)
							}
							for _, v := range append(slices.Clone(s[i*(rows+2)+rows:(i+1)*(rows+2)]), y[i*(n+3)+n:(i+1)*(n+3)]...) {
								if v != 0 {
									t.Fatalf("%s: %d of %d values, query %d: written past its results", c.name, n, wide, i)
								}
							}
						}
						for _, check := range []func() error{checkS, checkY} {
							if err := check(); err != nil {
								t.Fatal(err)
							}
						}
					}
				})
			}
		}
	}
}
