package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// randomSlabs are slabs of rows rows of wide values; what is past them is no row
// and may be anything.
func randomSlabs(rng *rand.Rand, c CacheKind, rows, wide int) []byte {
	slabs := make([]byte, (rows+CacheRows-1)/CacheRows*CacheRows*c.RowBytes(wide))
	for i := range slabs {
		slabs[i] = byte(rng.Uint32())
	}
	for r := range rows {
		x := randomFloats(rng, wide)
		for i := range x {
			x[i] *= float32(math.Exp(2 * rng.NormFloat64()))
		}
		c.Put(slabs, r, x)
	}
	return slabs
}

// TestSlabs compares every level with the plain loops, bit for bit, for any
// number of queries, rows, first row and length, and checks that a query's
// results do not depend on others and that nothing is written beside them.
func TestSlabs(t *testing.T) {
	eachVec(t, func(t *testing.T) {
		for _, c := range []CacheKind{Cache8, Cache4} {
			rng := rand.New(rand.NewPCG(14, uint64(c)))
			for turn := range 60 {
				wide := []int{64, 128, 192, 576}[rng.IntN(4)]
				n := wide - []int{0, 0, 16, 24, 27, 48}[rng.IntN(6)]
				first, nq := rng.IntN(CacheRows), 1+rng.IntN(13)
				rows := 1 + rng.IntN(80)
				switch turn % 4 {
				case 0:
					first, rows = 0, 256
				case 1:
					rows = 1 + rng.IntN(600)
				}
				slabs := randomSlabs(rng, c, first+rows, wide)
				q := randomFloats(rng, nq*n)
				p := positive(randomFloats(rng, nq*rows))
				for i := range p {
					p[i] *= float32(math.Exp(3 * rng.NormFloat64()))
				}
				old := randomFloats(rng, nq*(n+3))
				run := func(nq int, q, p []float32) (s, y []float32) {
					s, checkS := room(make([]float32, nq*(rows+2)), turn%3)
					y, checkY := room(old[:nq*(n+3)], turn%5)
					var x CacheQueries
					c.Round(&x, q, nq, n, wide)
					c.Scores(s, rows+2, &x, slabs, first, rows, slabs)
					c.Mix(y, n+3, n, p, rows, nq, slabs, first, rows, wide, slabs)
					for _, check := range []func() error{checkS, checkY} {
						if err := check(); err != nil {
							t.Fatal(err)
						}
					}
					return s, y
				}
				s, y := run(nq, q, p)
				for i := range nq {
					if slices.ContainsFunc(s[i*(rows+2)+rows:(i+1)*(rows+2)], func(v float32) bool { return v != 0 }) {
						t.Fatal("scores past the rows are written")
					}
					if !slices.Equal(y[i*(n+3)+n:(i+1)*(n+3)], old[i*(n+3)+n:(i+1)*(n+3)]) {
						t.Fatal("sums past the values are written")
					}
				}
				was := fmt.Sprintf("%d bits: %d queries, %d rows from %d, %d of %d values", 8-4*c, nq, rows, first, n, wide)
				// one query alone
				i := rng.IntN(nq)
				copy(old, old[i*(n+3):(i+1)*(n+3)])
				s1, y1 := run(1, q[i*n:(i+1)*n], p[i*rows:(i+1)*rows])
				if !slices.Equal(s1[:rows], s[i*(rows+2):i*(rows+2)+rows]) || !slices.Equal(y1[:n], y[i*(n+3):i*(n+3)+n]) {
					t.Fatalf("%s: query %d differs from it alone", was, i)
				}
				// the plain loops
				kernel := active.Load()
				plain := *kernel
				plain.slab = plainSlabs
				active.Store(&plain)
				s2, y2 := run(1, q[i*n:(i+1)*n], p[i*rows:(i+1)*rows])
				active.Store(kernel)
				if !slices.Equal(s1, s2) || !slices.Equal(y1, y2) {
					t.Fatalf("%s: query %d differs from the plain loops", was, i)
				}
			}
		}
	})
}

// TestSlabsOdd: a row, a query or a weight that is infinite or no number shows,
// and numbers too small to divide by do no harm.
func TestSlabsOdd(t *testing.T) {
	const n, rows = 128, 40
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	odd := func(x []float32) bool {
		return slices.ContainsFunc(x, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) })
	}
	eachVec(t, func(t *testing.T) {
		for _, c := range []CacheKind{Cache8, Cache4} {
			rng := rand.New(rand.NewPCG(15, 15))
			var x CacheQueries
			for _, bad := range []float32{inf, nan, -inf} {
				slabs := randomSlabs(rng, c, rows, n)
				q, p := randomFloats(rng, n), positive(randomFloats(rng, rows))
				s, y := make([]float32, rows), make([]float32, n)
				run := func() {
					clear(y)
					c.Round(&x, q, 1, n, n)
					c.Scores(s, rows, &x, slabs, 0, rows, nil)
					c.Mix(y, n, n, p, rows, 1, slabs, 0, rows, n, nil)
				}
				if run(); odd(s) || odd(y) {
					t.Fatal("results of numbers are no numbers")
				}
				old := q[70]
				q[70] = bad
				if run(); !odd(s[:1]) || !odd(s[rows-1:]) {
					t.Errorf("%d bits: %g in a query does not show", 8-4*c, bad)
				}
				q[70] = old
				if bad > 0 || bad != bad {
					old = p[33]
					p[33] = bad
					if run(); !odd(y[:1]) || !odd(y[n-1:]) {
						t.Errorf("%d bits: %g among weights does not show", 8-4*c, bad)
					}
					p[33] = old
				}
				row := randomFloats(rng, n)
				row[5] = bad
				c.Put(slabs, 17, row)
				if run(); !odd(s[17:18]) || odd(s[:17]) || odd(s[18:]) || !odd(y[5:6]) || odd(y[64:]) {
					t.Errorf("%d bits: %g in a row shows elsewhere, or not", 8-4*c, bad)
				}
			}
			slabs := randomSlabs(rng, c, rows, n)
			q, p := make([]float32, n), make([]float32, rows)
			for i := range q {
				q[i] = 1e-40
			}
			for i := range p {
				p[i] = 1e-40
			}
			s, y := make([]float32, rows), make([]float32, n)
			c.Round(&x, q, 1, n, n)
			c.Scores(s, rows, &x, slabs, 0, rows, nil)
			c.Mix(y, n, n, p, rows, 1, slabs, 0, rows, n, nil)
			for _, v := range append(s, y...) {
				if !(math.Abs(float64(v)) < 1e-30) {
					t.Fatalf("%d bits: nearly nothing gives %g", 8-4*c, v)
				}
			}
		}
	})
}

// TestWeightsCarried: many small weights beside a large one count: a value that
// all rows share comes out as it is, though no small weight is half of a step.
func TestWeightsCarried(t *testing.T) {
	const n, rows = 64, 256
	slabs := make([]byte, rows*Cache4.RowBytes(n))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%2) * 15
	}
	p := make([]float32, rows)
	for r := range rows {
		Cache4.Put(slabs, r, x)
		p[r] = 0.001
	}
	p[100] = 1
	eachVec(t, func(t *testing.T) {
		y := make([]float32, n)
		Cache4.Mix(y, n, n, p, rows, 1, slabs, 0, rows, n, nil)
		for i, v := range y {
			if want := 1.255 * x[i]; math.Abs(float64(v-want)) > 0.05*15 {
				t.Fatalf("value %d is %g, want %g", i, v, want)
			}
		}
	})
}

// BenchmarkSlabs is scores and sums over 256 cached rows.
func BenchmarkSlabs(b *testing.B) {
	const n, rows = 128, 256
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range []CacheKind{Cache8, Cache4} {
		k := make([]byte, rows*c.RowBytes(n))
		for r := range rows {
			c.Put(k, r, randomFloats(rng, n))
		}
		for _, l := range Levels() {
			for _, nq := range []int{1, 4, 6} {
				q, s, y := randomFloats(rng, nq*n), positive(randomFloats(rng, nq*rows)), make([]float32, nq*n)
				bench := func(name string, f func()) {
					b.Run(fmt.Sprintf("%d/%s/%s/%d", 8-4*c, l, name, nq), func(b *testing.B) {
						undo, err := Use(l)
						if err != nil {
							b.Fatal(err)
						}
						defer undo()
						perSecond(b, float64(len(k)), "GB/cpu-s", f)
						b.ReportMetric(0, "ns/op")
					})
				}
				var x CacheQueries
				bench("scores", func() {
					c.Round(&x, q, nq, n, n)
					c.Scores(s, rows, &x, k, 0, rows, nil)
				})
				bench("mix", func() { c.Mix(y, n, n, s, rows, nq, k, 0, rows, n, nil) })
			}
		}
	}
}
