package engine

import (
	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// The draft block (multi-token prediction, DeepSeek-V3, arXiv 2412.19437,
// section 2.2; models.md 1.8 of the references). For position p it takes the
// trunk's hidden state h of p and the token after p:
//
//	x = project [RMS(embedding) ; RMS(h)],  one block of the family,  norm,  head
//
// and guesses the token after that. With hyper-connections h is the wide
// residual and the projection is applied to each stream.

// usedDrafts are the draft blocks that get memory in a session.
func (m *Model) usedDrafts() []draft {
	if m.draftBy != draftMTP {
		return nil
	}
	return m.drafts[:1]
}

// hiddenRows are the states of n tokens of a pass, from token t on, that a
// draft block takes: after the final norm, or the wide residual.
func (m *Model) hiddenRows(p *pass, t, n int) []float32 {
	if H := m.spec.streams; H > 0 {
		w := H * m.spec.dim
		return p.x[t*w : (t+n)*w]
	}
	return p.norm[t*m.spec.dim : (t+n)*m.spec.dim]
}

// draftInput computes x of the block for pairs from entry pos on.
func (m *Model) draftInput(d *drafter, pos int, hidden []float32, ids []token.ID) {
	p, b, dim := d.p, d.block, m.spec.dim
	H := max(1, m.spec.streams)
	p.room(len(ids), pos)
	rows := p.t * H
	grow(&p.eh, rows*2*dim)
	grow(&p.y, rows*dim)
	e := &b.embed
	if e.none() {
		e = &m.embed
	}
	m.embedRows(p, e, p.xb, ids)
	for t := range p.t {
		emb := p.xb[t*dim : (t+1)*dim]
		quant.RMSNorm(emb, emb, b.embNorm, m.spec.eps)
		for s := range H {
			row := p.eh[(t*H+s)*2*dim : (t*H+s+1)*2*dim]
			copy(row, emb)
			quant.RMSNorm(row[dim:], hidden[(t*H+s)*dim:(t*H+s+1)*dim], b.hidNorm[s*dim:(s+1)*dim], m.spec.eps)
		}
	}
	p.acts(&p.in, p.eh, rows, 2*dim, b.project.f.Float)
	p.begin()
	p.want(p.x, dim, &b.project, &p.in)
	p.mul.list[0].n = rows
	p.run()
}

// keepDraft fills the block's cache for pairs from entry pos on. Only keys and
// values are needed for that.
func (m *Model) keepDraft(d *drafter, pos int, hidden []float32, ids []token.ID) {
	m.draftInput(d, pos, hidden, ids)
	p, l, dim := d.p, &d.block.layer, m.spec.dim
	m.enter(p, l, l.hcAttn, l.attnNorm)
	switch l.mixer {
	case attention:
		kw, vw := l.k.rows, l.v.rows
		p.acts(&p.in, p.xb, p.t, dim, l.k.f.Float && l.v.f.Float)
		p.begin()
		p.want(grow(&p.k, p.t*kw), kw, &l.k, &p.in)
		p.want(grow(&p.v, p.t*vw), vw, &l.v, &p.in)
		p.run()
		p.tokens(l, keepKey)
	case latent:
		wide := l.latent.kvRank + l.latent.rot
		p.acts(&p.in, p.xb, p.t, dim, l.kva.f.Float)
		p.begin()
		p.want(grow(&p.k, p.t*wide), wide, &l.kva, &p.in)
		p.run()
		p.tokens(l, keepLatent)
	}
}

// runDraft runs the block for one pair and leaves the logits of its guess in
// d.p.logits.
func (m *Model) runDraft(d *drafter, pos int, hidden []float32, ids []token.ID) error {
	m.draftInput(d, pos, hidden, ids)
	p, b, dim := d.p, d.block, m.spec.dim
	if m.block(p, &b.layer, nil); p.err != nil {
		return p.failed()
	}
	grow(&p.norm, p.t*dim)
	switch {
	case b.headMix != nil:
		m.mixStreams(p, b.headMix, p.norm)
	case b.headNorm != nil:
		p.headNorm = b.headNorm
		p.tokens(nil, normOut)
	default:
		p.headNorm = m.outNorm
		p.tokens(nil, normOut)
	}
	head := &b.head_
	if head.none() {
		head = &m.output
	}
	m.head(p, head, 1)
	return nil
}
