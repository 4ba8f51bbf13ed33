package ops_test

import (
	"fmt"
	"math"
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/compute/ops"
)

// attendInGo is attention in float64 over all positions, queries and keys
// already normed and rotated. k and v: (positions, heads, size).
func attendInGo(h ops.Heads, q, k, v []float32, pos, tokens int, sinks []float32) []float32 {
	out := make([]float32, tokens*h.Query*h.Value)
	group := h.Query / h.KV
	for t := range tokens {
		for hd := range h.Query {
			g := hd / group
			at := pos + t
			s := make([]float64, at+1)
			top := math.Inf(-1)
			for j := range s {
				if h.Window > 0 && j <= at-h.Window {
					s[j] = math.Inf(-1)
					continue
				}
				for i := range h.Key {
					s[j] += float64(q[(t*h.Query+hd)*h.Key+i]) * float64(k[(j*h.KV+g)*h.Key+i])
				}
				s[j] *= float64(h.Scale)
				if h.Cap != 0 {
					s[j] = float64(h.Cap) * math.Tanh(s[j]/float64(h.Cap))
				}
				top = max(top, s[j])
			}
			var sum float64
			if sinks != nil {
				top = max(top, float64(sinks[hd]))
				sum = math.Exp(float64(sinks[hd]) - top)
			}
			acc := make([]float64, h.Value)
			for j := range s {
				e := math.Exp(s[j] - top)
				sum += e
				for i := range acc {
					acc[i] += e * float64(v[(j*h.KV+g)*h.Value+i])
				}
			}
			for i, a := range acc {
				out[(t*h.Query+hd)*h.Value+i] = float32(a / sum)
			}
		}
	}
	return out
}

// toHalves rounds to halves, to the nearest, ties to even.
func toHalves(x []float32) {
	for i, v := range x {
		u := math.Float32bits(v)
		x[i] = math.Float32frombits((u + 0xfff + u>>13&1) &^ 0x1fff)
	}
}

// turnInGo rotates a head.
func turnInGo(x, cs []float32, rot int, neox bool) {
	half := rot / 2
	for i := range half {
		p, q := 2*i, 2*i+1
		if neox {
			p, q = i, i+half
		}
		a, b := x[p], x[q]
		x[p], x[q] = a*cs[i]-b*cs[half+i], a*cs[half+i]+b*cs[i]
	}
}

// TestAttention fills a cache token by token, window by window, and compares
// every output with attention in float64 over keys and values as halves, or over
// exact ones where the cache has 8 bits (1/254 of the largest of 32). Bounds: 3e-4
// of the output's RMS, as queries and weights are halves in matrix units, and 1e-2.
func TestAttention(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) { testAttentions(t, newBench(t, d)) })
}

// TestFlash is TestAttention with matrix units, emulated where there are none.
func TestFlash(t *testing.T) {
	whole(t, "the emulation of matrix units")
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		b.set.UseMatrixUnits()
		testAttentions(t, b)
	})
}

func testAttentions(t *testing.T, b *bench) {
	rows, err := b.set.Rows()
	b.ok(err)
	for n, c := range []struct {
		h           ops.Heads
		norms, sink bool
	}{
		{ops.Heads{Query: 4, KV: 2, Key: 64, Value: 64, Rot: 64, Neox: true}, false, false},
		{ops.Heads{Query: 8, KV: 1, Key: 128, Value: 128, Rot: 128, Neox: true}, true, false},
		{ops.Heads{Query: 3, KV: 3, Key: 64, Value: 32, Rot: 32, Window: 20}, false, true},
		{ops.Heads{Query: 4, KV: 2, Key: 64, Value: 64, Rot: 16, Neox: true, Gated: true, Q8: true}, true, false},
		{ops.Heads{Query: 12, KV: 1, Key: 96, Value: 96, Rot: 96, Cap: 3}, false, false},
		{ops.Heads{Query: 2, KV: 1, Key: 256, Value: 256, Rot: 64, Neox: true, NormV: true}, true, true},
		{ops.Heads{Query: 16, KV: 1, Key: 576, Value: 512, Rot: 64}, false, false},
		{ops.Heads{Query: 4, KV: 2, Key: 24, Value: 40, Rot: 8}, false, false},
		{ops.Heads{Query: 4, KV: 2, Key: 64, Value: 64, Rot: 64, Scale: 1}, false, false},
		{ops.Heads{Query: 12, KV: 1, Key: 256, Value: 256, Rot: 64, Neox: true, Gated: true, Window: 90}, true, true},
		{ops.Heads{Query: 6, KV: 2, Key: 128, Value: 128, Rot: 128, Neox: true, NormV: true, Q8: true}, true, false},
	} {
		if n >= attentionCases {
			break
		}
		c.h.Eps = 1e-6
		if c.h.Scale == 0 {
			c.h.Scale = 1 / float32(math.Sqrt(float64(c.h.Key)))
		}
		t.Run(fmt.Sprintf("%d_%d_%d_%d", c.h.Query, c.h.KV, c.h.Key, c.h.Value), func(t *testing.T) {
			b := *b
			b.t = t
			b.testAttention(rows, c.h, c.norms, c.sink)
		})
	}
}

func (b *bench) testAttention(rows *ops.Rows, h ops.Heads, norms, sink bool) {
	const ctx = 300
	att, err := b.set.Attention(h)
	b.ok(err)
	kb, vb := ops.CacheBytes(h.KV, h.Key, h.Value, ctx, h.Q8)
	cache := &ops.Cache{Heads: h.KV, Key: h.Key, Value: h.Value, Context: ctx, Q8: h.Q8, K: b.alloc(kb), V: b.alloc(vb)}
	b.poison(cache.K)
	b.poison(cache.V)
	step := h.Key
	if h.Gated {
		step *= 2
	}
	var qn, kn, sinks []float32
	s := ops.Step{LdQ: h.Query*step + 7, LdK: h.KV * h.Key, LdV: h.KV * h.Value, Cache: cache}
	if norms {
		qn, kn = b.normal(h.Key, 1), b.normal(h.Key, 1)
		s.QNorm, s.KNorm = b.floats(qn), b.floats(kn)
	}
	var dsinks *compute.Buffer
	if sink {
		sinks = b.normal(h.Query, 1)
		dsinks = b.floats(sinks)
	}
	var keys, vals []float32 // all so far
	pos := 0
	n := h.Query * h.Value
	for _, tokens := range []int{1, 1, 3, 40, 1, 8, 100, 1, 2, 1} {
		q, k, v := b.normal(tokens*s.LdQ, 1), b.normal(tokens*s.LdK, 1), b.normal(tokens*s.LdV, 1)
		cs := make([]float32, tokens*h.Rot)
		for t := range tokens {
			for i := range h.Rot / 2 {
				sin, cos := math.Sincos(float64(pos+t) * math.Pow(1e4, -2*float64(i)/float64(h.Rot)))
				cs[t*h.Rot+i], cs[t*h.Rot+h.Rot/2+i] = float32(cos), float32(sin)
			}
		}
		// reference
		var rq []float32
		for t := range tokens {
			row := cs[t*h.Rot : (t+1)*h.Rot]
			for hd := range h.Query {
				x := append([]float32(nil), q[t*s.LdQ+hd*step:][:h.Key]...)
				if qn != nil {
					x = rms(x, qn, h.Eps)
				}
				turnInGo(x, row, h.Rot, h.Neox)
				rq = append(rq, x...)
			}
			for g := range h.KV {
				x := append([]float32(nil), k[t*s.LdK+g*h.Key:][:h.Key]...)
				if kn != nil {
					x = rms(x, kn, h.Eps)
				}
				turnInGo(x, row, h.Rot, h.Neox)
				if !h.Q8 {
					toHalves(x)
				}
				keys = append(keys, x...)
				y := v[t*s.LdV+g*h.Value:][:h.Value]
				if h.NormV {
					y = rms(y, nil, h.Eps)
				}
				if !h.Q8 {
					toHalves(y)
				}
				vals = append(vals, y...)
			}
		}
		want := attendInGo(h, rq, keys, vals, pos, tokens, sinks)
		if h.Gated {
			for i := range want {
				t, hd, d := i/n, i%n/h.Value, i%h.Value
				want[i] = float32(float64(want[i]) / (1 + math.Exp(-float64(q[t*s.LdQ+hd*step+h.Key+d]))))
			}
		}
		// device
		s.Tokens, s.Splits = tokens, att.Splits(pos+tokens, tokens)
		if tokens == 2 {
			s.Splits = 7 // more parts than there are keys for some
		}
		s.Q, s.K, s.V, s.CS = b.floats(q), b.floats(k), b.floats(v), b.floats(cs)
		s.State, s.Parts = b.ints([]int32{int32(pos), 0}), b.alloc(att.PartsBytes(tokens, s.Splits))
		s.Sinks = dsinks
		to := &ops.Acts{Cols: n, Rows: tokens, X: b.alloc(int64(4 * n * tokens))}
		if n%32 == 0 && h.Value%32 == 0 {
			to, err = ops.NewActs(b.arena, tokens, n, true, true)
			b.ok(err)
		}
		b.poison(s.Parts)
		b.poison(to.X)
		s.To = to
		b.do(func(qu *compute.Queue) error { return att.Run(qu, rows, &s) })
		tol := 3e-4
		if h.Q8 {
			tol = 1e-2
		}
		near(b.t, fmt.Sprintf("%d tokens at %d in %d parts", tokens, pos, s.Splits), b.read(to.X, tokens*n), want, tol)
		if to.Q != nil {
			b.rounded("attention", to, tokens, b.read(to.X, tokens*n))
		}
		pos += tokens
	}
}
