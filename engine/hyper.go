package engine

import (
	"math"

	"outcrop/engine/quant"
)

// Hyper-connections (qwen4exp; models.md 3.1 of the references): the residual
// stream is H streams that begin as copies of the embedding. A mixer makes one
// input of them, and a block's output goes back into each stream with a weight
// of its own:
//
//	n = RMS per stream of R * gamma;  a = silu((down n)/H)
//	input = mean over streams of sigmoid(up a) * n
//	R_s += 2 sigmoid((inject n)_s / H) * output
type hyper struct {
	norm             []float32 // (H*dim)
	down, up, inject matrix    // (rank, H*dim), (H*dim, rank), (H, H*dim)
}

func (b *binder) hyper(name string, s *spec, inject bool) *hyper {
	wide, rank := s.streams*s.dim, s.streamRank
	h := &hyper{
		norm: b.vec(name+"_norm.weight", wide),
		down: b.mat(name+"_down", wide, rank),
		up:   b.mat(name+"_up", rank, wide),
	}
	if inject {
		h.inject = b.mat(name+"_inject", wide, s.streams)
	}
	return h
}

// mixStreams computes the input of a block, out (T, dim), and the injection
// weights for leaveStreams.
func (m *Model) mixStreams(p *pass, h *hyper, out []float32) {
	H, dim := m.spec.streams, m.spec.dim
	wide, rank := H*dim, m.spec.streamRank
	y := &p.hyper
	y.h, y.out = h, out
	grow(&y.n, p.t*wide)
	grow(&y.a, p.t*rank)
	grow(&y.g, p.t*wide)
	p.tokens(nil, normStreams)
	inject := !h.inject.none()
	p.acts(&p.in, y.n, p.t, wide, h.down.f.Float && (!inject || h.inject.f.Float))
	p.begin()
	p.want(y.a, rank, &h.down, &p.in)
	if inject {
		p.want(grow(&y.inject, p.t*H), H, &h.inject, &p.in)
	}
	p.run()
	p.tokens(nil, siluRank)
	p.acts(&p.mid, y.a, p.t, rank, h.up.f.Float)
	p.begin()
	p.want(y.g, wide, &h.up, &p.mid)
	p.run()
	p.tokens(nil, joinStreams)
}

// hyperPass holds the buffers of the mixers in one pass.
type hyperPass struct {
	h      *hyper
	n, g   []float32 // (T, H*dim)
	a      []float32 // (T, rank)
	inject []float32 // (T, H)
	out    []float32 // (T, dim)
}

func normStreams(p *pass, _ *layer, t int, _ *worker) {
	y, dim := &p.hyper, p.m.spec.dim
	wide := p.m.spec.streams * dim
	for s := 0; s < wide; s += dim {
		quant.RMSNorm(y.n[t*wide+s:t*wide+s+dim], p.x[t*wide+s:t*wide+s+dim], y.h.norm[s:s+dim], p.m.spec.eps)
	}
}

func siluRank(p *pass, _ *layer, t int, _ *worker) {
	n := p.m.spec.streamRank
	a := p.hyper.a[t*n : (t+1)*n]
	quant.ScaleF32(a, 1/float32(p.m.spec.streams))
	quant.SiLU(a, a)
}

func joinStreams(p *pass, _ *layer, t int, _ *worker) {
	y, dim := &p.hyper, p.m.spec.dim
	wide := p.m.spec.streams * dim
	g, n := y.g[t*wide:(t+1)*wide], y.n[t*wide:(t+1)*wide]
	quant.Sigmoid(g, g)
	quant.MulF32(g, n)
	out := y.out[t*dim : (t+1)*dim]
	copy(out, g[:dim])
	for s := dim; s < wide; s += dim {
		quant.AddF32(out, g[s:s+dim])
	}
	quant.ScaleF32(out, 1/float32(p.m.spec.streams))
}

// leaveStreams adds a block's output to the streams of token t.
func (p *pass) leaveStreams(t int) {
	H, dim := p.m.spec.streams, p.m.spec.dim
	y := p.y[t*dim : (t+1)*dim]
	for s := range H {
		w := 2 * sigmoid(p.hyper.inject[t*H+s]/float32(H))
		quant.AxpyF32(p.x[(t*H+s)*dim:(t*H+s+1)*dim], w, y)
	}
}

// spreadStreams copies the embedding in the first stream of each token to all.
// x holds (T, dim) at its front and becomes (T, H, dim).
func spreadStreams(x []float32, tokens, streams, dim int) {
	for t := tokens - 1; t >= 0; t-- {
		src := x[t*dim : (t+1)*dim]
		for s := streams - 1; s >= 0; s-- {
			copy(x[(t*streams+s)*dim:(t*streams+s+1)*dim], src)
		}
	}
}

// signRoot is the square root of a magnitude with the sign kept, away from 0.
func signRoot(s float32) float32 {
	r := float32(math.Sqrt(max(math.Abs(float64(s)), 1e-6)))
	if s < 0 {
		return -r
	}
	if s == 0 {
		return 0
	}
	return r
}
