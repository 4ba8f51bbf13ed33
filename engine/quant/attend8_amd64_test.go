package quant

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkAttend8 is scores and sums over 256 cached rows of 8 bits.
func BenchmarkAttend8(b *testing.B) {
	const n, rows = 128, 256
	rng := rand.New(rand.NewPCG(1, 1))
	k := make([]byte, rows*Cache8Bytes(n))
	ToCache8(k, randomFloats(rng, rows*n))
	tile := make([]float32, CacheTile(n))
	for _, nq := range []int{1, 6} {
		q, s, y := randomFloats(rng, nq*n), make([]float32, nq*rows), make([]float32, nq*n)
		b.Run(fmt.Sprintf("scores/%d", nq), func(b *testing.B) {
			for b.Loop() {
				ScoresMany8(s, rows, q, nq, n, k, rows, n, nil, tile)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
		b.Run(fmt.Sprintf("mix/%d", nq), func(b *testing.B) {
			for b.Loop() {
				MixMany8(y, n, n, s, rows, nq, k, rows, n, nil, tile)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}
