package engine

import (
	"math"

	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// The parts of Gemma 4 that no other family has (models.md 8 of the
// references; llama.cpp src/models/gemma4.cpp).

// bothWeights are the norms of a layer whose dense part and experts run beside
// each other:
//
//	y = post1(dense(norm h)) + post2(experts(pre2 h)),  logits = R(RMS(h)/sqrt(d) * scale)
type bothWeights struct {
	post1, pre2, post2 []float32 // (dim)
	routerScale        []float32 // (dim), divided by sqrt(dim)
}

func (b *binder) both(l *layer, s *spec, blk string) {
	l.both = &bothWeights{
		post1:       b.vec(blk+"post_ffw_norm_1.weight", s.dim),
		pre2:        b.vec(blk+"pre_ffw_norm_2.weight", s.dim),
		post2:       b.vec(blk+"post_ffw_norm_2.weight", s.dim),
		routerScale: b.vec(blk+"ffn_gate_inp.scale", s.dim),
	}
	quant.ScaleF32(l.both.routerScale, float32(1/math.Sqrt(float64(s.dim))))
}

// denseAndExperts leaves the sum of both parts in p.y.
func (m *Model) denseAndExperts(p *pass, l *layer, on *blockRun) {
	if on == nil {
		m.dense(p, l)
	} else {
		on.dense(p, l)
	}
	grow(&p.aside, p.t*m.spec.dim)
	grow(&p.eh, p.t*m.spec.dim)
	p.tokens(l, keepDense)
	p.inNorm = l.both.pre2
	p.tokens(l, normIn)
	m.mixture(p, l)
	p.tokens(l, joinDense)
}

// keepDense norms the dense part and puts it aside.
func keepDense(p *pass, l *layer, t int, _ *worker) {
	dim := p.m.spec.dim
	y := p.y[t*dim : (t+1)*dim]
	quant.RMSNorm(p.aside[t*dim:(t+1)*dim], y, l.both.post1, p.m.spec.eps)
}

func joinDense(p *pass, l *layer, t int, _ *worker) {
	dim := p.m.spec.dim
	y := p.y[t*dim : (t+1)*dim]
	quant.RMSNorm(y, y, l.both.post2, p.m.spec.eps)
	quant.AddF32(y, p.aside[t*dim:(t+1)*dim])
}

// routeBeside computes the router's logits from the residual stream itself.
func (m *Model) routeBeside(p *pass, l *layer) {
	dim, n := m.spec.dim, l.expert.count
	p.inNorm = l.both.routerScale
	p.tokens(l, normRouter)
	p.acts(&p.mid, p.eh, p.t, dim, l.router.f.Float)
	p.begin()
	p.want(p.mix.logits, n, &l.router, &p.mid)
	p.run()
}

func normRouter(p *pass, _ *layer, t int, _ *worker) {
	dim := p.m.spec.dim
	quant.RMSNorm(p.eh[t*dim:(t+1)*dim], p.x[t*dim:(t+1)*dim], p.inNorm, p.m.spec.eps)
}

// perLayerWeights add what the token itself says to each layer:
//
//	x += post(proj(gelu(gate x) * e_l)),  e_l = (row_l*sqrt(n) + RMS(P x0 / sqrt(d))_l)/sqrt(2)
type perLayerWeights struct {
	gate, proj matrix    // (n, dim), (dim, n)
	post       []float32 // (dim)
}

func (b *binder) perLayer(s *spec, blk string) *perLayerWeights {
	return &perLayerWeights{
		gate: b.mat(blk+"inp_gate", s.dim, s.perLayer),
		proj: b.mat(blk+"proj", s.perLayer, s.dim),
		post: b.vec(blk+"post_norm.weight", s.dim),
	}
}

// perLayerInput computes e of all layers for the tokens of a pass from their
// rows in the table, which may stay in the file, and their embeddings p.x.
func (m *Model) perLayerInput(p *pass, ids []token.ID) {
	dim, n := m.spec.dim, m.spec.perLayer
	all := n * len(m.layers)
	p.acts(&p.in, p.x, p.t, dim, m.tokenProj.f.Float)
	p.begin()
	p.want(grow(&p.byLayer, p.t*all), all, &m.tokenProj, &p.in)
	p.run()
	row := grow(&p.hb, all)
	for t, id := range ids {
		e := p.byLayer[t*all : (t+1)*all]
		quant.ScaleF32(e, float32(1/math.Sqrt(float64(dim))))
		w := &m.tokenRows
		w.f.Decode(row, w.data[int(id)*w.rowBytes:(int(id)+1)*w.rowBytes])
		for l := 0; l < all; l += n {
			quant.RMSNorm(e[l:l+n], e[l:l+n], m.tokenNorm, m.spec.eps)
		}
		quant.AxpyF32(e, float32(math.Sqrt(float64(n))), row)
		quant.ScaleF32(e, float32(math.Sqrt(0.5)))
	}
}

// addPerLayer adds a layer's part to the residual stream.
func (m *Model) addPerLayer(p *pass, l *layer) {
	dim, n, w := m.spec.dim, m.spec.perLayer, l.perLayer
	p.acts(&p.in, p.x, p.t, dim, w.gate.f.Float)
	p.begin()
	p.want(grow(&p.hb, p.t*n), n, &w.gate, &p.in)
	p.run()
	p.tokens(l, gatePerLayer)
	p.acts(&p.mid, p.hb, p.t, n, w.proj.f.Float)
	p.begin()
	p.want(p.y, dim, &w.proj, &p.mid)
	p.run()
	p.tokens(l, joinPerLayer)
}

func gatePerLayer(p *pass, l *layer, t int, _ *worker) {
	n := p.m.spec.perLayer
	all := n * len(p.m.layers)
	g := p.hb[t*n : (t+1)*n]
	quant.GeGLU(g, g, p.byLayer[t*all+l.index*n:t*all+(l.index+1)*n])
}

func joinPerLayer(p *pass, l *layer, t int, _ *worker) {
	dim := p.m.spec.dim
	y := p.y[t*dim : (t+1)*dim]
	quant.RMSNorm(y, y, l.perLayer.post, p.m.spec.eps)
	quant.AddF32(p.x[t*dim:(t+1)*dim], y)
}
