package ops_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/compute/ops"
)

// deltaNet is models.md 2.2 in float64, token by token.
type deltaNet struct {
	h    ops.DeltaShape
	s    []float64   // (values, dim, dim)
	hist [][]float32 // last taps-1 inputs
	taps []float32   // (taps, channels)
	a    []float32
	dt   []float32
	norm []float32
}

func (n *deltaNet) step(u, raw, z []float32) []float32 {
	h := n.h
	ch, dim := h.Channels(), h.Dim
	in := append(slices.Clone(n.hist), u)
	c := make([]float64, ch)
	for i := range c {
		for k := range h.Taps {
			c[i] += float64(n.taps[k*ch+i]) * float64(in[k][i])
		}
		c[i] /= 1 + math.Exp(-c[i])
	}
	n.hist = in[1:]
	unit := func(x []float64) []float64 {
		var s float64
		for _, v := range x {
			s += v * v
		}
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = v / math.Sqrt(s+float64(h.Eps))
		}
		return y
	}
	out := make([]float32, h.Values*dim)
	for v := range h.Values {
		kh := v / (h.Values / h.Keys)
		if h.ByMod {
			kh = v % h.Keys
		}
		q, k := unit(c[kh*dim:][:dim]), unit(c[(h.Keys+kh)*dim:][:dim])
		a, b := raw[v], raw[h.Values+v]
		if h.FusedBA {
			r := h.Values / h.Keys
			b, a = raw[v/r*2*r+v%r], raw[v/r*2*r+r+v%r]
		}
		g := math.Exp(float64(n.a[v]) * math.Log1p(math.Exp(float64(a+n.dt[v]))))
		beta := 1 / (1 + math.Exp(-float64(b)))
		o := make([]float64, dim)
		var ss float64
		for r := range dim {
			s := n.s[(v*dim+r)*dim:][:dim]
			var sk float64
			for i := range s {
				s[i] *= g
				sk += s[i] * k[i]
			}
			d := beta * (c[(2*h.Keys+v)*dim+r] - sk)
			for i := range s {
				s[i] += d * k[i]
				o[r] += s[i] * q[i] / math.Sqrt(float64(dim))
			}
			ss += o[r] * o[r]
		}
		f := 1 / math.Sqrt(ss/float64(dim)+float64(h.Eps))
		for r := range dim {
			zz := float64(z[v*dim+r])
			y := o[r] * f * float64(n.norm[r]) / (1 + math.Exp(-zz))
			if !h.Sigmoid {
				y *= zz
			}
			out[v*dim+r] = float32(y)
		}
	}
	return out
}

func (n *deltaNet) clone() *deltaNet {
	c := *n
	c.s, c.hist = slices.Clone(n.s), slices.Clone(n.hist)
	return &c
}

// TestDelta runs prompts, single tokens and tentative windows of which only the
// first few turn out right, against the step recurrence in float64.
func TestDelta(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		for _, h := range []ops.DeltaShape{
			{Keys: 2, Values: 4, Dim: 128, Taps: 4, ByMod: true, Eps: 1e-6},
			{Keys: 2, Values: 4, Dim: 32, Taps: 4, FusedBA: true, Eps: 1e-6},
			{Keys: 3, Values: 3, Dim: 64, Taps: 2, Sigmoid: true, Eps: 1e-6},
		} {
			t.Run(fmt.Sprintf("%d_%d_%d", h.Keys, h.Values, h.Dim), func(t *testing.T) {
				b := *b
				b.t = t
				b.testDelta(h, chunked)
			})
		}
	})
}

// TestDeltaSmall is for Oclgrind: one head, two chunks.
func TestDeltaSmall(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		newBench(t, d).testDelta(ops.DeltaShape{Keys: 1, Values: 1, Dim: 32, Taps: 2, Eps: 1e-6}, 0)
	})
}

// testDelta runs prompts, steps and tentative windows, and a prompt of `last`
// tokens.
func (b *bench) testDelta(h ops.DeltaShape, last int) {
	ch, inner, most := h.Channels(), h.Values*h.Dim, 600
	net := &deltaNet{h: h, s: make([]float64, h.Values*h.Dim*h.Dim), taps: b.normal(h.Taps*ch, 0.5), dt: b.normal(h.Values, 1), norm: b.normal(h.Dim, 1)}
	for range h.Values {
		net.a = append(net.a, -float32(math.Exp(b.rng.NormFloat64()-2)))
	}
	for range h.Taps - 1 {
		net.hist = append(net.hist, make([]float32, ch))
	}
	op, err := b.set.Delta(h)
	b.ok(err)
	log := func() ops.DeltaLog {
		return ops.DeltaLog{U: b.alloc(int64(4 * 16 * ch)), K: b.alloc(int64(4 * 16 * h.Keys * h.Dim)), D: b.alloc(int64(4 * 16 * inner)), G: b.alloc(int64(4 * 16 * h.Values))}
	}
	books := [2]ops.DeltaLog{log(), log()}
	to, err := ops.NewActs(b.arena, most, inner, true, true)
	b.ok(err)
	zero := make([]float32, h.Values*h.Dim*h.Dim)
	s := ops.DeltaStep{
		Taps: b.floats(net.taps), A: b.floats(net.a), DT: b.floats(net.dt), Norm: b.floats(net.norm), NormEps: h.Eps,
		State: ops.DeltaState{S: b.floats(zero), Hist: b.floats(make([]float32, (h.Taps-1)*ch))},
		LdU:   ch + 3, LdRaw: 2*h.Values + 1, LdZ: inner,
		Conv: b.alloc(int64(4 * most * ch)), Attn: b.alloc(int64(4 * most * inner)), To: to,
	}
	kept, book := 0, 0
	for _, run := range []struct{ tokens, right int }{ // right < 0: not tentative
		{40, -1}, {1, -1}, {1, -1}, {4, 2}, {5, 0}, {3, 3}, {1, -1}, {6, 1}, {10, -1},
		{5, 2}, {64, -1}, {3, 1}, {last, -1}, {1, -1},
	} {
		if run.tokens == 0 {
			break
		}
		u, raw, z := b.normal(run.tokens*s.LdU, 1), b.normal(run.tokens*s.LdRaw, 1), b.normal(run.tokens*s.LdZ, 1)
		var want []float32
		after := net
		ref := net.clone()
		for t := range run.tokens {
			want = append(want, ref.step(u[t*s.LdU:][:ch], raw[t*s.LdRaw:][:2*h.Values], z[t*s.LdZ:][:inner])...)
			if run.right < 0 || t < run.right {
				after = ref.clone()
			}
		}
		s.Tokens, s.Keep = run.tokens, run.right < 0
		s.U, s.Raw, s.Z = b.floats(u), b.floats(raw), b.floats(z)
		s.Pos = b.ints([]int32{0, int32(kept)})
		s.Old, s.Log = books[book], books[book^1]
		if n := op.ScratchBytes(run.tokens); n > 0 {
			s.Scratch = b.alloc(n)
			b.poison(s.Scratch)
		}
		b.do(func(q *compute.Queue) error { return op.Run(q, &s) })
		near(b.t, fmt.Sprintf("%d tokens, %d right", run.tokens, run.right), b.read(to.X, run.tokens*inner), want, 2e-5)
		kept = 0
		if !s.Keep {
			kept, book = run.right, book^1
		}
		net = after
	}
}
