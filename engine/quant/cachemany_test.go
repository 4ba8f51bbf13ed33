package quant

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestCacheMany: what a query gets over rows of floats does not depend on the
// other queries and rows of a call, and nothing is written beside the results.
func TestCacheMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, wide := range []int{64, 128, 576, 1088} {
		for _, n := range []int{wide, wide - 16, wide - 24, wide - 27} {
			const rows, most = 37, 7
			x := randomFloats(rng, rows*wide)
			q, p := randomFloats(rng, most*n), randomFloats(rng, most*rows)
			eachVec(t, func(t *testing.T) {
				alone, mixed := make([]float32, most*rows), make([]float32, most*n)
				for i := range most {
					for r := range rows {
						ScoresManyF32(alone[i*rows+r:], 1, q[i*n:], 1, n, x[r*wide:], 1, wide)
					}
					MixManyF32(mixed[i*n:], n, n, p[i*rows:], rows, 1, x, rows, wide)
				}
				for nq := 1; nq <= most; nq++ {
					s, checkS := room(make([]float32, nq*(rows+2)), nq%3)
					y, checkY := room(make([]float32, nq*(n+3)), nq%5)
					ScoresManyF32(s, rows+2, q, nq, n, x, rows, wide)
					MixManyF32(y, n+3, n, p, rows, nq, x, rows, wide)
					for i := range nq {
						if !slices.Equal(s[i*(rows+2):i*(rows+2)+rows], alone[i*rows:(i+1)*rows]) {
							t.Fatalf("%d of %d values: scores of query %d of %d differ from it alone", n, wide, i, nq)
						}
						if !slices.Equal(y[i*(n+3):i*(n+3)+n], mixed[i*n:(i+1)*n]) {
							t.Fatalf("%d of %d values: sum of query %d of %d differs from it alone", n, wide, i, nq)
						}
						for _, v := range append(slices.Clone(s[i*(rows+2)+rows:(i+1)*(rows+2)]), y[i*(n+3)+n:(i+1)*(n+3)]...) {
							if v != 0 {
								t.Fatalf("%d of %d values, query %d: written past its results", n, wide, i)
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
