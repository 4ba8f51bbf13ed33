package quant

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAttendMany: several queries at once give what each gives alone, and
// nothing is written beside the results.
func TestAttendMany(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	for _, n := range []int{8, 16, 40, 64, 80, 128, 576} {
		for _, rows := range []int{1, 3, 4, 7, 8, 33, 256} {
			for _, nq := range []int{1, 2, 3, 4, 6, 11} {
				stride := n + 8
				k := make([]uint16, rows*stride)
				for i := range k {
					k[i] = F32ToF16(float32(rng.NormFloat64()))
				}
				q := make([]float32, nq*n)
				for i := range q {
					q[i] = float32(rng.NormFloat64())
				}
				ldd, ldy := rows+3, n+5
				eachVec(t, func(t *testing.T) {
					s, checkS := room(make([]float32, nq*ldd), 1)
					ScoresManyF16(s, ldd, q, nq, n, k, rows, stride, nil)
					y, checkY := room(make([]float32, nq*ldy), 3)
					MixManyF16(y, ldy, n, s, ldd, nq, k, rows, stride, nil)
					for i := range nq {
						one := make([]float32, rows)
						ScoresF16(one, q[i*n:(i+1)*n], k, stride)
						if !slices.Equal(one, s[i*ldd:i*ldd+rows]) {
							t.Fatalf("n %d, %d rows: scores of query %d of %d differ from it alone", n, rows, i, nq)
						}
						mix := make([]float32, n)
						MixF16(mix, one, k, stride)
						if !slices.Equal(mix, y[i*ldy:i*ldy+n]) {
							t.Fatalf("n %d, %d rows: mix of query %d of %d differs from it alone", n, rows, i, nq)
						}
						for _, v := range append(slices.Clone(s[i*ldd+rows:(i+1)*ldd]), y[i*ldy+n:(i+1)*ldy]...) {
							if v != 0 {
								t.Fatalf("n %d, %d rows, query %d: written past its results", n, rows, i)
							}
						}
					}
					for _, check := range []func() error{checkS, checkY} {
						if err := check(); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
		}
	}
}

func BenchmarkAttendMany(b *testing.B) {
	const n, rows, nq = 128, 256, 6
	k := make([]uint16, rows*n)
	q, s, y := make([]float32, nq*n), make([]float32, nq*rows), make([]float32, nq*n)
	b.Run("many", func(b *testing.B) {
		for b.Loop() {
			ScoresManyF16(s, rows, q, nq, n, k, rows, n, nil)
			MixManyF16(y, n, n, s, rows, nq, k, rows, n, nil)
		}
	})
	b.Run("single", func(b *testing.B) {
		for b.Loop() {
			for i := range nq {
				ScoresF16(s[i*rows:(i+1)*rows], q[i*n:(i+1)*n], k, n)
				MixF16(y[i*n:(i+1)*n], s[i*rows:(i+1)*rows], k, n)
			}
		}
	})
}
