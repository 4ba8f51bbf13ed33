package quant

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestDelta compares every level with sums in float64, for whole and cut calls.
func TestDelta(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	fill := func(n int, f func() float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(f())
		}
		return x
	}
	for _, n := range []int{16, 24, 32, 64, 128, 256} {
		for _, tokens := range []int{1, 2, 5, 16, 17, 40} {
			rows := n
			kq, vs, gs, os, ds := n+7, rows+3, 5, rows+1, rows+2
			d := Delta{
				N: n, Tokens: tokens, KQStride: kq, VStride: vs, GStride: gs, OStride: os, DStride: ds,
				K: fill(tokens*kq, func() float64 { return rng.NormFloat64() / math.Sqrt(float64(n)) }),
				Q: fill(tokens*kq, rng.NormFloat64), V: fill(tokens*vs, rng.NormFloat64),
				Decay: fill(tokens*gs, rng.Float64), Beta: fill(tokens*gs, rng.Float64),
			}
			start := fill(rows*n, rng.NormFloat64)
			want, wantO := exactDelta(&d, start, rows)
			eachVec(t, func(t *testing.T) {
				s, checkS := room(start, 1)
				o, checkO := room(make([]float32, tokens*os), 3)
				dd, checkD := room(make([]float32, tokens*ds), 2)
				d.O, d.D = o, dd
				d.Rows(s, 0, rows)
				for i, w := range want {
					if math.Abs(float64(s[i])-w) > 2e-5*(1+math.Abs(w)) {
						t.Fatalf("n %d, %d tokens: state %d is %v, want %v", n, tokens, i, s[i], w)
					}
				}
				for i, w := range wantO {
					if g := float64(o[i/rows*os+i%rows]); math.Abs(g-w) > 2e-4*(1+math.Abs(w)) {
						t.Fatalf("n %d, %d tokens: output %d is %v, want %v", n, tokens, i, g, w)
					}
				}
				for _, check := range []func() error{checkS, checkO, checkD} {
					if err := check(); err != nil {
						t.Fatal(err)
					}
				}
				// Token by token and in two halves of rows: the same bits.
				cut := slices.Clone(start)
				e := d
				e.O, e.D = make([]float32, len(o)), make([]float32, len(dd))
				for i := range tokens {
					f := e
					f.Tokens = 1
					f.K, f.Q, f.V = e.K[i*kq:], e.Q[i*kq:], e.V[i*vs:]
					f.Decay, f.Beta, f.O, f.D = e.Decay[i*gs:], e.Beta[i*gs:], e.O[i*os:], e.D[i*ds:]
					f.Rows(cut, 0, rows/2)
					f.Rows(cut, rows/2, rows)
				}
				if !slices.Equal(cut, s) || !slices.Equal(e.O, o) || !slices.Equal(e.D, dd) {
					t.Fatalf("n %d: %d tokens in one call and one by one differ", n, tokens)
				}
			})
		}
	}
}

func exactDelta(d *Delta, start []float32, rows int) (s, o []float64) {
	for _, v := range start {
		s = append(s, float64(v))
	}
	for t := range d.Tokens {
		k, q := d.K[t*d.KQStride:], d.Q[t*d.KQStride:]
		for r := range rows {
			row := s[r*d.N : (r+1)*d.N]
			var dot float64
			for i := range row {
				row[i] *= float64(d.Decay[t*d.GStride])
				dot += row[i] * float64(k[i])
			}
			x := float64(d.Beta[t*d.GStride]) * (float64(d.V[t*d.VStride+r]) - dot)
			var y float64
			for i := range row {
				row[i] += x * float64(k[i])
				y += row[i] * float64(q[i])
			}
			o = append(o, y)
		}
	}
	return s, o
}

// TestDeltaChunks: the chunked form is as near to the exact result as the form
// token by token has to be, whatever the decays, and for tokens that fill no
// chunk; nothing is written beside the results.
func TestDeltaChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 5))
	fill := func(n int, f func() float64) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(f())
		}
		return x
	}
	decays := map[string]func() float64{
		"any":      rng.Float64,
		"near one": func() float64 { return 1 - 0.02*rng.Float64() },
		"one":      func() float64 { return 1 },
		"zeros":    func() float64 { return float64(rng.IntN(3)) / 2 },
		"tiny":     func() float64 { return 1e-30 * rng.Float64() },
	}
	var w DeltaWork
	worst := 0.0
	for _, n := range []int{16, 64, 128, 48} {
		for _, tokens := range []int{1, 7, 31, 32, 33, 64, 100} {
			for name, decay := range decays {
				kq, vs, gs, os := n+7, n+3, 5, n+1
				d := Delta{
					N: n, Tokens: tokens, KQStride: kq, VStride: vs, GStride: gs, OStride: os, DStride: n,
					K: fill(tokens*kq, func() float64 { return rng.NormFloat64() / math.Sqrt(float64(n)) }),
					Q: fill(tokens*kq, func() float64 { return rng.NormFloat64() / math.Sqrt(float64(n)) }), V: fill(tokens*vs, rng.NormFloat64),
					Decay: fill(tokens*gs, decay), Beta: fill(tokens*gs, rng.Float64),
				}
				start := fill(n*n, rng.NormFloat64)
				want, wantO := exactDelta(&d, start, n)
				eachVec(t, func(t *testing.T) {
					s, checkS := room(start, 1)
					o, checkO := room(make([]float32, tokens*os), 3)
					d.O = o
					d.Chunks(s, &w)
					for i, v := range want {
						far := math.Abs(float64(s[i])-v) / (1 + math.Abs(v))
						if worst = max(worst, far); !(far <= 1e-5) {
							t.Fatalf("decays %s, n %d, %d tokens: state %d is %v, want %v", name, n, tokens, i, s[i], v)
						}
					}
					for i, v := range wantO {
						g := float64(o[i/n*os+i%n])
						far := math.Abs(g-v) / (1 + math.Abs(v))
						if worst = max(worst, far); !(far <= 1e-5) {
							t.Fatalf("decays %s, n %d, %d tokens: output %d is %v, want %v", name, n, tokens, i, g, v)
						}
					}
					for i := range tokens {
						if o[i*os+n] != 0 {
							t.Fatalf("n %d: written past the output of token %d", n, i)
						}
					}
					for _, check := range []func() error{checkS, checkO} {
						if err := check(); err != nil {
							t.Fatal(err)
						}
					}
				})
			}
		}
	}
	t.Logf("farthest from the exact result: %.1e", worst)
}

// BenchmarkDelta is both forms over 512 tokens, at every level.
func BenchmarkDelta(b *testing.B) {
	const n, tokens = 128, 512
	x := make([]float32, 3*n*tokens)
	for i := range x {
		x[i] = float32(i%13) / 100
	}
	d := Delta{N: n, Tokens: tokens, K: x, Q: x[n:], KQStride: n, V: x, VStride: n, Decay: x, Beta: x, GStride: 1,
		O: make([]float32, n*tokens), OStride: n, D: make([]float32, n*tokens), DStride: n}
	s := make([]float32, n*n)
	var w DeltaWork
	for _, l := range Levels() {
		undo, err := Use(l)
		if err != nil {
			b.Fatal(err)
		}
		for name, run := range map[string]func(){"tokens": func() { d.Rows(s, 0, n) }, "chunks": func() { d.Chunks(s, &w) }} {
			b.Run(l.String()+"/"+name, func(b *testing.B) {
				for b.Loop() {
					run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/tokens/n, "ns/row-token")
			})
		}
		undo()
	}
}
