package engine

import (
	"context"

	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// forward runs ids, which follow the timeline of p.st, through the trunk.
// Prefill, decode and the verification of drafts are this one function: they
// differ in len(ids). Afterwards p.norm holds the normed hidden state of every
// token and p.logits the logits of the last outputs tokens.
//
// What one token gets does not depend on how many others are in the call or on
// the number of workers, bit for bit; but for delta nets, whose calls of 64 and
// more tokens differ from shorter ones by rounding (delta.go).
//
// When ctx ends it returns between two layers; the timeline then still has its
// old length, but recurrent states are in between.
func (m *Model) forward(ctx context.Context, p *pass, ids []token.ID, outputs int) error {
	m.enterTrunk(p, ids)
	for il := range m.layers {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.cards.has(il) { // and all that follow
			if err := m.cards.forward(ctx, p, outputs); err != nil {
				return err
			}
			p.finish(ids)
			m.heat.tick(p.t)
			return m.experts.between(p)
		}
		if err := m.runLayer(p, il); err != nil {
			return err
		}
	}
	p.finish(ids)

	m.normOutput(p)
	m.head(p, &m.output, outputs)
	m.heat.tick(p.t)
	return m.experts.between(p)
}

// enterTrunk prepares the buffers for ids and puts their embedding into p.x.
func (m *Model) enterTrunk(p *pass, ids []token.ID) {
	p.open(ids)
	m.embedRows(p, &m.embed, p.x, ids)
	if H := m.spec.streams; H > 0 {
		spreadStreams(p.x, p.t, H, m.spec.dim)
	}
	if m.spec.perLayer > 0 {
		m.perLayerInput(p, ids)
	}
}

// runLayer runs layer il on the CPU.
func (m *Model) runLayer(p *pass, il int) error {
	m.block(p, &m.layers[il], nil)
	if m.pool.lost.Load() {
		return ErrPackLost
	}
	if p.err != nil {
		return p.failed()
	}
	if m.trace != nil {
		m.trace(il, p.x)
	}
	return nil
}

// failed takes the error of a layer over.
func (p *pass) failed() error {
	err := p.err
	p.err = nil
	return err
}

// block runs one layer: x += mixer(norm(x)); x += ffn(norm(x)). on computes the
// mixer and the feed-forward, on a card in part; nil: the CPU does.
func (m *Model) block(p *pass, l *layer, on *blockRun) {
	if l.gram != nil {
		m.ngram(p, l)
	}
	m.enter(p, l, l.hcAttn, l.attnNorm) // xb
	if on == nil {
		m.mix(p, l)
	} else {
		on.mix(p, l)
	}
	p.tokens(l, addMixer)

	m.enter(p, l, l.hcFFN, l.ffnNorm) // xb
	if on == nil {
		m.feed(p, l)
	} else {
		on.feed(p, l)
	}
	p.tokens(l, addFFN)
	if l.perLayer != nil {
		m.addPerLayer(p, l)
	}
	if l.outScale != 0 {
		quant.ScaleF32(p.x, l.outScale)
	}
}

// mix is the mixer of a layer: p.y from p.xb.
func (m *Model) mix(p *pass, l *layer) {
	switch l.mixer {
	case attention:
		m.attend(p, l)
	case latent:
		m.latent(p, l)
	case shortConv:
		m.shortConv(p, l)
	case deltaNet:
		m.deltaNet(p, l)
	}
}

// feed is the feed-forward of a layer: p.y from p.xb.
func (m *Model) feed(p *pass, l *layer) {
	switch {
	case l.both != nil:
		m.denseAndExperts(p, l, nil)
	case l.ff > 0:
		m.dense(p, l)
	default:
		m.mixture(p, l)
	}
}

// normOutput makes p.norm, the normed hidden state, from the residual stream.
func (m *Model) normOutput(p *pass) {
	grow(&p.norm, p.t*m.spec.dim)
	if m.outMix != nil {
		m.mixStreams(p, m.outMix, p.norm)
		return
	}
	p.headNorm = m.outNorm
	p.tokens(nil, normOut)
}

// open prepares the buffers for ids.
func (p *pass) open(ids []token.ID) {
	p.text = append(p.text[:p.st.pos], ids...)
	p.room(len(ids), p.st.pos)
}

// room sizes the buffers for t tokens from pos on.
func (p *pass) room(t, pos int) {
	m := p.m
	p.t, p.pos = t, pos
	grow(&p.x, p.t*m.spec.dim*max(1, m.spec.streams))
	grow(&p.xb, p.t*m.spec.dim)
	grow(&p.y, p.t*m.spec.dim)
	for i, r := range m.ropes {
		n := r.spec.dims
		grow(&p.cs[i], p.t*n)
		if p.t < 2*embedPiece {
			r.fill(p.cs[i], pos, p.t)
			continue
		}
		p.turned = i
		p.each((p.t+embedPiece-1)/embedPiece, nil, turnPart)
	}
}

// turnPart fills the rotations of some tokens: those of 1024 take one core 2 ms,
// for which a card that waits for them has nothing to do.
func turnPart(p *pass, _ *layer, i int, _ *worker) {
	r, at := p.m.ropes[p.turned], i*embedPiece
	r.fill(p.cs[p.turned][at*r.spec.dims:], p.pos+at, min(embedPiece, p.t-at))
}

// finish counts the tokens in.
func (p *pass) finish(ids []token.ID) {
	p.st.pos += len(ids)
	p.st.high = max(p.st.high, p.st.pos)
	if p.tentative {
		p.st.book ^= 1
	}
	p.st.kept = 0
}

// embedding is a run of embedRows on the workers.
type embedding struct {
	e   *matrix
	x   []float32
	ids []token.ID
}

// embedPiece is how many tokens a worker embeds at once.
const embedPiece = 32

// embedRows writes the embedding of ids to x, (T, dim). Of a prompt the workers
// do it: beside a fast card one core would be what takes time.
func (m *Model) embedRows(p *pass, e *matrix, x []float32, ids []token.ID) {
	p.embed = embedding{e, x, ids}
	if len(ids) <= embedPiece {
		embedPart(p, nil, 0, nil)
		return
	}
	p.each((len(ids)+embedPiece-1)/embedPiece, nil, embedPart)
}

func embedPart(p *pass, _ *layer, i int, _ *worker) {
	e, dim := p.embed.e, p.m.spec.dim
	for t := i * embedPiece; t < min((i+1)*embedPiece, len(p.embed.ids)); t++ {
		id, row := p.embed.ids[t], p.embed.x[t*dim:(t+1)*dim]
		e.f.Decode(row, e.data[int(id)*e.rowBytes:(int(id)+1)*e.rowBytes])
		if s := p.m.spec.embedScale; s != 0 {
			quant.ScaleF32(row, s)
		}
	}
}

// enter makes the input of a block, p.xb, from the residual stream: its norm,
// or a mixer where there are several streams.
func (m *Model) enter(p *pass, l *layer, h *hyper, norm []float32) {
	if h != nil {
		m.mixStreams(p, h, p.xb)
		return
	}
	p.inNorm = norm
	p.tokens(l, normIn)
	p.show("norm", p.xb)
}

func normIn(p *pass, _ *layer, t int, _ *worker) {
	dim := p.m.spec.dim
	quant.RMSNorm(p.xb[t*dim:(t+1)*dim], p.x[t*dim:(t+1)*dim], p.inNorm, p.m.spec.eps)
}

func normOut(p *pass, _ *layer, t int, _ *worker) {
	dim := p.m.spec.dim
	quant.RMSNorm(p.norm[t*dim:(t+1)*dim], p.x[t*dim:(t+1)*dim], p.headNorm, p.m.spec.eps)
}

func addMixer(p *pass, l *layer, t int, _ *worker) { p.residual(l, l.postAttn, t) }
func addFFN(p *pass, l *layer, t int, _ *worker)   { p.residual(l, l.postFFN, t) }

// residual adds a block's output, normed first in the sandwich families.
func (p *pass) residual(l *layer, post []float32, t int) {
	if l.streams {
		p.leaveStreams(t)
		return
	}
	dim := p.m.spec.dim
	x, y := p.x[t*dim:(t+1)*dim], p.y[t*dim:(t+1)*dim]
	if post != nil {
		quant.RMSNorm(y, y, post, p.m.spec.eps)
	}
	if s := p.m.spec.residScale; s != 0 {
		quant.AxpyF32(x, s, y)
		return
	}
	quant.AddF32(x, y)
}

// dense is the feed-forward of a layer without experts:
// y = down(act(gate xb) * up xb).
func (m *Model) dense(p *pass, l *layer) {
	dim, ff := m.spec.dim, l.ff
	hb, hu := grow(&p.hb, p.t*ff), grow(&p.hu, p.t*ff)
	p.acts(&p.in, p.xb, p.t, dim, l.gate.f.Float && l.up.f.Float)
	p.begin()
	p.want(hb, ff, &l.gate, &p.in)
	p.want(hu, ff, &l.up, &p.in)
	p.run()
	p.tokens(l, gateDense)
	p.show("gate and up", hb)
	p.acts(&p.mid, hb, p.t, ff, l.down.f.Float)
	p.begin()
	p.want(p.y, dim, &l.down, &p.mid)
	p.run()
	p.show("down", p.y)
}

func gateDense(p *pass, l *layer, t int, _ *worker) {
	ff := l.ff
	l.act.gateMul(p.hb[t*ff:(t+1)*ff], p.hu[t*ff:(t+1)*ff])
}

// never is a logit that is not drawn, finite so that it is no sign of damage.
const never = -1e9

// head computes the logits of the last outputs tokens from p.norm.
func (m *Model) head(p *pass, w *matrix, outputs int) {
	dim := m.spec.dim
	p.logits = grow(&p.logits, outputs*w.rows)
	if outputs == 0 {
		return
	}
	all := p.t
	p.t = outputs
	p.acts(&p.in, p.norm[(all-outputs)*dim:all*dim], outputs, dim, w.f.Float)
	p.begin()
	p.want(p.logits, w.rows, w, &p.in)
	p.run()
	p.t = all
	if s := m.spec.logitScale; s != 0 {
		quant.ScaleF32(p.logits, s)
	}
	if c := m.spec.softcap; c != 0 {
		softcap(p.logits, c)
	}
	for _, id := range m.spec.suppress {
		for t := range outputs {
			p.logits[t*w.rows+int(id)] = never
		}
	}
}
