package quant

import (
	"math/rand/v2"
	"testing"
)

// TestNoAllocations: after the first calls, rounding, products with one, few and
// many activation rows and the vector operations allocate nothing.
func TestNoAllocations(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		rng := rand.New(rand.NewPCG(13, 13))
		const rows = 20
		q, scores, y := randomFloats(rng, 128), make([]float32, 8), make([]float32, 128)
		keys, slabs := make([]uint16, 8*128), make([]byte, CacheRows*Cache8.RowBytes(128))
		var rounded CacheQueries
		for _, typ := range []Type{Q8_0, Q4_1, Q4_K, Q6_K, Q2_K, IQ3_S, F16} {
			f := mustOf(t, typ)
			for _, n := range []int{512, 768} {
				for _, count := range []int{1, 3, 20} {
					w := randomRows(rng, f, rows, n)
					x, dst := randomFloats(rng, n*count), make([]float32, rows*count)
					var a Acts
					run := func() {
						a.Set(x, count, n)
						a.Quantize(0, count)
						Mul(f, dst, rows, w, rows, &a, nil)
						SwiGLU(y, q, q)
						RMSNorm(y, q, q, 1e-6)
						Softmax(scores)
						ScoresF16(scores, q, keys, 128)
						MixF16(y, scores, keys, 128)
						for _, c := range []CacheKind{Cache8, Cache4} {
							c.Round(&rounded, q, 1, 128, 128)
							c.Scores(scores, len(scores), &rounded, slabs, 0, len(scores), nil)
							c.Mix(y, 128, 128, scores, len(scores), 1, slabs, 0, len(scores), 128, nil)
						}
					}
					run()
					if got := testing.AllocsPerRun(10, run); got != 0 {
						t.Errorf("%s: %d rows of %d, %d activation rows: %g allocations", f.Name, rows, n, count, got)
					}
				}
			}
		}
	})
}
