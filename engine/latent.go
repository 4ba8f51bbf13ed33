package engine

import "outcrop/engine/quant"

// latent is multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section
// 2.1) in its absorbed form: the cache keeps one compressed row per token, the
// up-projection of keys is applied to the query and that of values to the
// result, so that all heads read the same row:
//
//	q_h = [k_b_h q_nope_h ; rope(q_rot_h)],  row = [norm(c) ; rope(k_rot)]
//	y = o [v_b_h (sum_j p_j c_j)]
func (m *Model) latent(p *pass, l *layer) {
	a, dim := &l.latent, m.spec.dim
	wide := a.kvRank + a.rot // of a cached row
	head := a.nope + a.rot   // of a query head
	qw := a.heads * head
	grow(&p.q, p.t*qw)
	grow(&p.k, p.t*wide)

	first := &l.q
	if a.qRank > 0 {
		first = &l.qa
		grow(&p.v, p.t*a.qRank)
	}
	p.acts(&p.in, p.xb, p.t, dim, first.f.Float && l.kva.f.Float)
	p.begin()
	if a.qRank > 0 {
		p.want(p.v, a.qRank, &l.qa, &p.in)
	} else {
		p.want(p.q, qw, &l.q, &p.in)
	}
	p.want(p.k, wide, &l.kva, &p.in)
	p.run()
	if a.qRank > 0 {
		p.tokens(l, normQueryRank)
		p.acts(&p.in, p.v, p.t, a.qRank, l.q.f.Float)
		p.begin()
		p.want(p.q, qw, &l.q, &p.in)
		p.run()
	}

	// (T, heads, nope) for the up-projection; (T, heads, wide) is the query.
	grow(&p.hb, p.t*a.heads*a.nope)
	grow(&p.hu, p.t*a.heads*wide)
	p.tokens(l, turnLatent)
	p.tokens(l, keepLatent)
	p.headRows(a.heads)
	p.acts(&p.mid, p.hb, p.t*a.heads, a.nope, l.kb.f.Float)
	p.begin()
	for h := range a.heads {
		p.slice(&l.kb, l.kb.of(h), h, 0, a.kvRank, &p.mid, p.byHead[h*p.t:(h+1)*p.t], p.hu[h*wide:], a.heads*wide)
	}
	p.run()

	grow(&p.att, p.t*a.heads*a.kvRank)
	mem := &p.st.layers[l.index]
	p.core = attnCore{
		heads: a.heads, kvHeads: 1, keyDim: wide, valDim: a.kvRank, scale: a.scale,
		q: p.hu, qRow: a.heads * wide, k: &mem.k, v: &mem.k,
	}
	p.attention(l)

	vw := a.heads * a.valDim
	grow(&p.hb, p.t*vw)
	p.acts(&p.mid, p.att, p.t*a.heads, a.kvRank, l.vb.f.Float)
	p.begin()
	for h := range a.heads {
		p.slice(&l.vb, l.vb.of(h), h, 0, a.valDim, &p.mid, p.byHead[h*p.t:(h+1)*p.t], p.hb[h*a.valDim:], vw)
	}
	p.run()
	p.acts(&p.in, p.hb, p.t, vw, l.o.f.Float)
	p.begin()
	p.want(p.y, dim, &l.o, &p.in)
	p.run()
}

func normQueryRank(p *pass, l *layer, t int, _ *worker) {
	n := l.latent.qRank
	x := p.v[t*n : (t+1)*n]
	quant.RMSNorm(x, x, l.qaNorm, p.m.spec.eps)
}

// turnLatent takes the parts of a token's query heads apart and rotates one.
func turnLatent(p *pass, l *layer, t int, w *worker) {
	a := &l.latent
	wide, head := a.kvRank+a.rot, a.nope+a.rot
	n := l.rope.spec.dims
	cs := p.cs[l.ropeAt][t*n : (t+1)*n]
	for h := range a.heads {
		q := p.q[(t*a.heads+h)*head : (t*a.heads+h+1)*head]
		copy(p.hb[(t*a.heads+h)*a.nope:], q[:a.nope])
		l.rope.turn(q[a.nope:], cs)
		copy(p.hu[(t*a.heads+h)*wide+a.kvRank:], q[a.nope:])
	}
}

// keepLatent norms a token's latent, rotates its key and puts the row into the
// cache.
func keepLatent(p *pass, l *layer, t int, w *worker) {
	a := &l.latent
	wide, n := a.kvRank+a.rot, l.rope.spec.dims
	row := p.k[t*wide : (t+1)*wide]
	quant.RMSNorm(row[:a.kvRank], row[:a.kvRank], l.kvaNorm, p.m.spec.eps)
	l.rope.turn(row[a.kvRank:], p.cs[l.ropeAt][t*n:(t+1)*n])
	p.st.layers[l.index].k.put(w, 0, p.pos+t, row)
}

// headRows lists, head by head, the rows of a (T, heads, ...) buffer.
func (p *pass) headRows(heads int) {
	growInts(&p.byHead, heads*p.t)
	for h := range heads {
		for t := range p.t {
			p.byHead[h*p.t+t] = int32(t*heads + h)
		}
	}
}
