package engine

import (
	"math"

	"outcrop/engine/quant"
)

// The gated delta net (Yang et al. 2024, arXiv 2412.06464) keeps, per value
// head, a matrix S that maps keys to values. A token decays it, corrects what
// it says about the token's key, and reads it with the token's query:
//
//	S *= exp(g);  d = beta (v - S k);  S += d k^T;  o = S q
//
// Rows of S do not touch each other, so a row is taken into cache once per
// pass and goes through all tokens there (quant.Delta.Rows). A prompt goes
// through a whole head in chunks instead, as products of matrices, where those
// are faster (quant.Delta.Chunks); the results differ by rounding, some 1e-6 of
// a head's output. One token and windows of drafts always go row by row, so
// that drafts change nothing.

// deltaNet: y = out(norm(o) * silu(z)).
func (m *Model) deltaNet(p *pass, l *layer) {
	d, dim := &l.delta, m.spec.dim
	ch, inner := d.channels(), d.valHeads*d.dim
	grow(&p.u, p.t*ch)
	grow(&p.uc, p.t*ch)
	grow(&p.z, p.t*inner)
	grow(&p.ab, p.t*2*d.valHeads)
	grow(&p.braw, p.t*2*d.valHeads)
	grow(&p.att, p.t*inner)

	floats := l.qkv.f.Float && l.z.f.Float
	if d.fusedBA {
		floats = floats && l.ba.f.Float
	} else {
		floats = floats && l.alpha.f.Float && l.beta.f.Float
	}
	p.acts(&p.in, p.xb, p.t, dim, floats)
	p.begin()
	p.want(p.u, ch, &l.qkv, &p.in)
	p.want(p.z, inner, &l.z, &p.in)
	if d.fusedBA {
		p.want(p.braw, 2*d.valHeads, &l.ba, &p.in)
	} else {
		p.want(p.braw, 2*d.valHeads, &l.alpha, &p.in)
		p.want(p.braw[d.valHeads:], 2*d.valHeads, &l.beta, &p.in)
	}
	p.run()
	p.show("query, key and value", p.u)
	p.show("gate", p.z)
	p.show("decay and beta", p.braw)

	mem := &p.st.layers[l.index]
	if p.tentative {
		mem.log[p.st.book^1].room(d)
	}
	p.tokens(l, decayAndBeta)
	p.each((ch+convChunk-1)/convChunk, l, convolve)
	p.tokens(l, normKeys)
	if !p.tentative && p.t >= deltaChunked && quant.ChunksPay(d.dim) {
		p.each(d.valHeads, l, deltaChunks)
	} else {
		p.each(d.valHeads*((d.dim+deltaRows-1)/deltaRows), l, deltaHead)
	}
	p.tokens(l, gateDelta)
	mem.keepInputs(p, d)
	p.show("recurrence", p.att)

	p.acts(&p.in, p.att, p.t, inner, l.deltaOut.f.Float)
	p.begin()
	p.want(p.y, dim, &l.deltaOut, &p.in)
	p.run()
	p.show("output", p.y)
}

// decayAndBeta: p.ab = exp(ssm_a * softplus(a + dt)), then sigmoid(b).
func decayAndBeta(p *pass, l *layer, t int, _ *worker) {
	d := &l.delta
	n, r := d.valHeads, d.valHeads/d.keyHeads
	raw, ab := p.braw[t*2*n:(t+1)*2*n], p.ab[t*2*n:(t+1)*2*n]
	for h := range n {
		a, b := raw[h], raw[n+h]
		if d.fusedBA { // per key head: r betas, then r alphas
			g := raw[h/r*2*r:]
			a, b = g[r+h%r], g[h%r]
		}
		x := float64(a + l.dtBias[h])
		soft := x
		if x < 20 {
			soft = math.Log1p(math.Exp(x))
		}
		ab[h] = float32(math.Exp(float64(l.decay[h]) * soft))
		ab[n+h] = sigmoid(b)
	}
	if p.tentative {
		copy(p.st.layers[l.index].log[p.st.book^1].decay[t*n:(t+1)*n], ab)
	}
}

// convChunk is how many channels one part of the convolution takes.
const convChunk = 512

// convolve: uc_t = silu(sum_k taps_k u_{t-K+1+k}), causal, per channel.
func convolve(p *pass, l *layer, i int, _ *worker) {
	d := &l.delta
	ch, back := d.channels(), d.taps-1
	lo, hi := i*convChunk, min((i+1)*convChunk, ch)
	hist := p.st.layers[l.index].hist
	for t := range p.t {
		out := p.uc[t*ch+lo : t*ch+hi]
		clear(out)
		for k := range d.taps {
			taps := l.convTaps[k*ch+lo : k*ch+hi]
			at := t - back + k
			var src []float32
			if at < 0 {
				src = hist[(back+at)*ch+lo : (back+at)*ch+hi]
			} else {
				src = p.u[at*ch+lo : at*ch+hi]
			}
			mulAdd(out, taps, src)
		}
		quant.SiLU(out, out)
	}
}

// normKeys brings queries and keys to length 1 and queries to 1/sqrt(dim):
// x / sqrt(sum x^2 + eps), eps inside the root.
func normKeys(p *pass, l *layer, t int, _ *worker) {
	d := &l.delta
	ch := d.channels()
	eps := float64(p.m.spec.eps)
	for h := range 2 * d.keyHeads {
		x := p.uc[t*ch+h*d.dim : t*ch+(h+1)*d.dim]
		s := 1 / math.Sqrt(float64(quant.DotF32(x, x))+eps)
		if h < d.keyHeads {
			s /= math.Sqrt(float64(d.dim))
		}
		quant.ScaleF32(x, float32(s))
	}
	if p.tentative {
		log, n := &p.st.layers[l.index].log[p.st.book^1], d.keyHeads*d.dim
		copy(log.k[t*n:(t+1)*n], p.uc[t*ch+n:])
	}
}

// keyHead is the key head of a value head.
func (d *deltaSpec) keyHead(h int) int {
	if d.byMod {
		return h % d.keyHeads
	}
	return h / (d.valHeads / d.keyHeads)
}

// deltaRows is how many rows of a head's state one part takes.
const deltaRows = 32

// deltaHead runs all tokens through some rows of the state of a value head.
// They do not touch the other rows. In a tentative window the rows are copied
// first, and what the tokens do to them is logged.
func deltaHead(p *pass, l *layer, i int, w *worker) {
	d := &l.delta
	n, ch, inner := d.dim, d.channels(), d.valHeads*d.dim
	parts := (n + deltaRows - 1) / deltaRows
	h, lo := i/parts, i%parts*deltaRows
	hi := min(lo+deltaRows, n)
	kh := d.keyHead(h)
	mem := &p.st.layers[l.index]
	for r := lo; r < hi; r++ {
		mem.replay(d, p.st, h, r) // what the last window did, as far as it was right
	}
	s := mem.s[h*n*n : (h+1)*n*n]
	x := &w.delta
	*x = quant.Delta{
		N: n, Tokens: p.t,
		Q: p.uc[kh*n:], K: p.uc[(d.keyHeads+kh)*n:], KQStride: ch,
		V: p.uc[(2*d.keyHeads+h)*n:], VStride: ch,
		Decay: p.ab[h:], Beta: p.ab[d.valHeads+h:], GStride: 2 * d.valHeads,
		O: p.att[h*n:], OStride: inner,
	}
	if p.tentative {
		w.row = room(w.row, n*n)
		copy(w.row[lo*n:hi*n], s[lo*n:hi*n])
		s = w.row
		x.D, x.DStride = mem.log[p.st.book^1].d[h*n:], inner
	} else { // nobody needs d
		w.pad = room(w.pad, p.t*n)
		x.D, x.DStride = w.pad, n
	}
	x.Rows(s, lo, hi)
}

// deltaChunked is how many tokens a pass must have to go in chunks.
const deltaChunked = 64

// deltaChunks runs all tokens through the state of value head h.
func deltaChunks(p *pass, l *layer, h int, w *worker) {
	d := &l.delta
	n, ch := d.dim, d.channels()
	kh := d.keyHead(h)
	mem := &p.st.layers[l.index]
	for r := range n {
		mem.replay(d, p.st, h, r) // what the last window did, as far as it was right
	}
	x := &w.delta
	*x = quant.Delta{
		N: n, Tokens: p.t,
		Q: p.uc[kh*n:], K: p.uc[(d.keyHeads+kh)*n:], KQStride: ch,
		V: p.uc[(2*d.keyHeads+h)*n:], VStride: ch,
		Decay: p.ab[h:], Beta: p.ab[d.valHeads+h:], GStride: 2 * d.valHeads,
		O: p.att[h*n:], OStride: d.valHeads * n,
	}
	x.Chunks(mem.s[h*n*n:(h+1)*n*n], &w.chunks)
}

// gateDelta norms the heads of a token's output and multiplies the gate in.
func gateDelta(p *pass, l *layer, t int, _ *worker) {
	d := &l.delta
	inner := d.valHeads * d.dim
	out, z := p.att[t*inner:(t+1)*inner], p.z[t*inner:(t+1)*inner]
	for h := 0; h < inner; h += d.dim {
		quant.RMSNorm(out[h:h+d.dim], out[h:h+d.dim], l.deltaNorm, p.m.spec.eps)
	}
	if d.sigmoidGate {
		quant.Sigmoid(z, z)
		quant.MulF32(out, z)
	} else {
		quant.SwiGLU(out, z, out)
	}
}

// room sizes a log for the longest window.
func (g *deltaLog) room(d *deltaSpec) {
	if g.u != nil {
		return
	}
	g.u = make([]float32, maxWindow*d.channels())
	g.k = make([]float32, maxWindow*d.keyHeads*d.dim)
	g.d = make([]float32, maxWindow*d.valHeads*d.dim)
	g.decay = make([]float32, maxWindow*d.valHeads)
}

// keepInputs moves the convolution's history past the tokens of a pass. The
// inputs of a tentative window are logged instead; accept moves them.
func (mem *memory) keepInputs(p *pass, d *deltaSpec) {
	ch := d.channels()
	if p.tentative {
		copy(mem.log[p.st.book^1].u, p.u[:p.t*ch])
		return
	}
	shiftInputs(mem.hist, p.u, p.t, d.taps-1, ch)
}

// mulAdd: y += a*b, element by element.
func mulAdd(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	for i := range y {
		y[i] += a[i] * b[i]
	}
}

// shiftInputs appends t rows of u to the back rows of hist.
func shiftInputs(hist, u []float32, t, back, ch int) {
	if t >= back {
		copy(hist, u[(t-back)*ch:t*ch])
		return
	}
	copy(hist, hist[t*ch:])
	copy(hist[(back-t)*ch:], u[:t*ch])
}
