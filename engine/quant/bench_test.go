package quant

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkDot is the plain product of one row of 4096 values, per format, in
// bytes of weights.
func BenchmarkDot(b *testing.B) {
	const n = 4096
	undo, err := Use(Generic)
	if err != nil {
		b.Fatal(err)
	}
	defer undo()
	rng := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	a := plainActs(b, x, 1, n)
	for i := range formats {
		f := &formats[i]
		if f.Dot == nil {
			continue
		}
		b.Run(f.Name, func(b *testing.B) {
			row := make([]byte, f.RowBytes(n))
			for i := range row {
				row[i] = byte(rng.Uint32()) & 0x3f // no NaN among the scales
			}
			b.SetBytes(int64(len(row)))
			for b.Loop() {
				f.Dot(row, a, 0)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gvalues/s")
		})
	}
}
