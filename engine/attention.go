package engine

import (
	"math"

	"outcrop/engine/quant"
)

// attnBlock is how many positions are summed at once. The cut is at fixed
// positions and results are merged in order, so that a token's output is the
// same bits for any number of workers and tokens.
const attnBlock = 256

// attnTile is how many tokens of a prompt share the decoded keys of a block.
const attnTile = 16

// attend is softmax attention with grouped heads: y = o(softmax(q k) v).
func (m *Model) attend(p *pass, l *layer) {
	a, dim := &l.attn, m.spec.dim
	qw, kw, vw := l.q.rows, a.kvHeads*a.keyDim, a.kvHeads*a.valDim
	grow(&p.q, p.t*qw)
	own := a.kvFrom < 0
	p.acts(&p.in, p.xb, p.t, dim, l.q.f.Float && (!own || l.k.f.Float && (l.v.none() || l.v.f.Float)) && (a.index == nil || l.idx.q.f.Float && l.idx.k.f.Float))
	p.begin()
	p.want(p.q, qw, &l.q, &p.in)
	if own {
		p.want(grow(&p.k, p.t*kw), kw, &l.k, &p.in)
		grow(&p.v, p.t*vw)
		if !l.v.none() {
			p.want(p.v, vw, &l.v, &p.in)
		}
	}
	if x := a.index; x != nil {
		p.want(grow(&p.index.q, p.t*x.heads*x.dim), x.heads*x.dim, &l.idx.q, &p.in)
		p.want(grow(&p.index.k, p.t*x.dim), x.dim, &l.idx.k, &p.in)
	}
	p.run()
	p.show("query", p.q)
	if own {
		p.show("key", p.k)
		p.show("value", p.v)
	}
	if a.index != nil {
		m.index(p, l)
	}

	if a.outGate {
		grow(&p.gateQ, p.t*a.heads*a.keyDim)
	}
	p.tokens(l, turnQuery)
	if own {
		p.tokens(l, keepKey)
	}

	grow(&p.att, p.t*a.heads*a.valDim)
	mem := &p.st.layers[l.index]
	if !own {
		mem = &p.st.layers[a.kvFrom]
	}
	p.core = attnCore{
		heads: a.heads, kvHeads: a.kvHeads, keyDim: a.keyDim, valDim: a.valDim,
		window: a.window, scale: a.scale, softcap: a.softcap, sinks: l.sinks, index: a.index,
		q: p.q, qRow: qw, k: &mem.k, v: &mem.v,
	}
	p.attention(l)

	if a.outGate {
		p.tokens(l, gateAttn)
	}
	n := a.heads * a.valDim
	p.show("scores and values", p.att)
	p.acts(&p.in, p.att, p.t, n, l.o.f.Float)
	p.begin()
	p.want(p.y, dim, &l.o, &p.in)
	p.run()
	p.show("output", p.y)
}

// turnQuery norms and rotates the heads of a token's query. With a gate it also
// takes query and gate, which alternate head by head, apart.
func turnQuery(p *pass, l *layer, t int, w *worker) {
	a, kd := &l.attn, l.attn.keyDim
	q := p.q[t*l.q.rows : (t+1)*l.q.rows]
	if a.outGate {
		g := p.gateQ[t*a.heads*kd : (t+1)*a.heads*kd]
		w.row = room(w.row, l.q.rows)
		copy(w.row, q)
		for h := range a.heads {
			copy(q[h*kd:(h+1)*kd], w.row[2*h*kd:])
			copy(g[h*kd:(h+1)*kd], w.row[(2*h+1)*kd:])
		}
	}
	p.turn(l, q[:a.heads*kd], l.qNorm, t)
}

// keepKey norms and rotates the heads of a token's key and puts key and value
// into the cache.
func keepKey(p *pass, l *layer, t int, w *worker) {
	a, kd := &l.attn, l.attn.keyDim
	k := p.k[t*a.kvHeads*kd : (t+1)*a.kvHeads*kd]
	v := p.v[t*a.kvHeads*a.valDim : (t+1)*a.kvHeads*a.valDim]
	if a.vNorm {
		if l.v.none() {
			copy(v, k)
		}
		for x := v; len(x) > 0; x = x[a.valDim:] {
			quant.RMSNorm(x[:a.valDim], x[:a.valDim], nil, p.m.spec.eps)
		}
	}
	p.turn(l, k, l.kNorm, t)
	mem, pos := &p.st.layers[l.index], p.pos+t
	for h := range a.kvHeads {
		mem.k.put(w, h, pos, k[h*kd:(h+1)*kd])
		mem.v.put(w, h, pos, v[h*a.valDim:(h+1)*a.valDim])
	}
}

// turn norms heads by weights (none: not) and rotates them to token t's position.
func (p *pass) turn(l *layer, x, weights []float32, t int) {
	kd, eps := l.attn.keyDim, p.m.spec.eps
	if l.attn.qkNorm == qkFull {
		quant.RMSNorm(x, x, weights, eps)
		weights = nil
	}
	for len(x) > 0 {
		if weights != nil {
			quant.RMSNorm(x[:kd], x[:kd], weights, eps)
		}
		if l.rope != nil {
			n := l.rope.spec.dims
			l.rope.turn(x[:kd], p.cs[l.ropeAt][t*n:(t+1)*n])
		}
		x = x[kd:]
	}
}

func gateAttn(p *pass, l *layer, t int, _ *worker) {
	n := l.attn.heads * l.attn.valDim
	y, g := p.att[t*n:(t+1)*n], p.gateQ[t*n:(t+1)*n]
	quant.Sigmoid(g, g)
	quant.MulF32(y, g)
}

// attnCore is what the inner part of attention needs, for softmax attention
// and for latent attention alike. The result is p.att, (T, heads*valDim).
type attnCore struct {
	heads, kvHeads int
	keyDim, valDim int
	window         int
	scale, softcap float32
	sinks          []float32
	index          *indexSpec // nil: all keys in the window
	q              []float32  // (T, qRow): heads of keyDim each at the front
	qRow           int
	k, v           *store // v == k: a value is the front of its key
	blocks         int    // of context in this pass
	first          int    // block that any token sees
	run            int    // blocks of context that one part takes
	slices         int    // that the heads of one key head are cut into
}

// attention computes p.att. A prompt is shared out over slices of heads and
// tiles of tokens; one token or a few over slices of heads and blocks of
// context. A slice is the heads of one key head, or a part of them where that
// would leave workers without work.
func (p *pass) attention(l *layer) {
	c := &p.core
	parts := (p.t + attnTile - 1) / attnTile
	c.blocks = (p.pos+p.t-1)/attnBlock + 1
	c.first = c.firstKey(p.pos) / attnBlock
	shared := p.t < attnTile && c.blocks-c.first > 1
	if shared {
		parts = c.blocks - c.first
	}
	group := c.heads / c.kvHeads
	c.slices = 1
	for c.slices < group && (c.kvHeads*c.slices*parts < 2*len(p.m.pool.workers) || group/c.slices > 16) {
		c.slices *= 2
	}
	c.slices = min(c.slices, group)
	if !shared {
		p.each(c.kvHeads*c.slices*parts, l, attendTile)
		return
	}
	grow(&p.parts, p.t*c.heads*c.blocks*(c.valDim+2))
	// Blocks that follow each other are fetched in time; enough parts are left
	// for a worker that is held up.
	for c.run = 8; c.run > 1 && c.kvHeads*c.slices*parts < 16*c.run*len(p.m.pool.workers); {
		c.run /= 2
	}
	p.each(c.kvHeads*c.slices*((parts+c.run-1)/c.run), l, attendBlocks)
	p.each((p.t*c.heads+mergeRows-1)/mergeRows, l, mergeBlocks)
}

// slice gives the key head of slice i and its query heads h0 to h1-1.
func (c *attnCore) slice(i int) (g, h0, h1 int) {
	group := c.heads / c.kvHeads
	g, i = i/c.slices, i%c.slices
	return g, g*group + i*group/c.slices, g*group + (i+1)*group/c.slices
}

// attendTile does all blocks of one slice of heads for up to attnTile tokens.
func attendTile(p *pass, l *layer, i int, w *worker) {
	c := &p.core
	units := c.kvHeads * c.slices
	g, h0, h1 := c.slice(i % units)
	tile, n := i/units, h1-h0
	lo, hi := tile*attnTile, min((tile+1)*attnTile, p.t)
	rows, size := (hi-lo)*n, c.valDim+2
	w.acc = room(w.acc, 2*rows*size)
	total, part := w.acc[:rows*size], w.acc[rows*size:]
	for r := range rows {
		clearPart(total[r*size:(r+1)*size], c.valDim)
	}
	w.asked = asked{}
	first := c.firstKey(p.pos+lo) / attnBlock
	last := (p.pos + hi - 1) / attnBlock
	for b := first; b <= last; b++ {
		// Tokens that see the whole block go together, others one by one.
		if c.index == nil && (b+1)*attnBlock <= p.pos+lo+1 && c.firstKey(p.pos+hi-1) <= b*attnBlock {
			c.rows(p, w, part, size, g, h0, h1, lo, hi, b*attnBlock, (b+1)*attnBlock, place{g, (b + 1) * attnBlock})
		} else {
			for t := lo; t < hi; t++ {
				c.block(p, w, part[(t-lo)*n*size:], size, g, h0, h1, b, t, nowhere)
			}
		}
		for r := range rows {
			mergePart(total[r*size:(r+1)*size], part[r*size:(r+1)*size], c.valDim)
		}
	}
	for r := range rows {
		t, h := lo+r/n, h0+r%n
		c.finish(p.att[(t*c.heads+h)*c.valDim:(t*c.heads+h+1)*c.valDim], total[r*size:(r+1)*size], h)
	}
}

// attendBlocks does a run of blocks of context of one slice of heads for all
// tokens. p.parts is (T, blocks, heads, size), so that a slice is one run.
func attendBlocks(p *pass, l *layer, i int, w *worker) {
	c := &p.core
	units, size := c.kvHeads*c.slices, c.valDim+2
	g, h0, h1 := c.slice(i % units)
	b := c.first + i/units*c.run
	end := min(b+c.run, c.blocks)
	w.asked = asked{}
	for ; b < end; b++ {
		then := place{g, (b + 1) * attnBlock}
		if b+1 == end { // most likely the part that this worker gets next
			n := i + 1
			then.head, _, _ = c.slice(n % units)
			then.pos = (c.first + n/units*c.run) * attnBlock
		}
		for t := range p.t {
			c.block(p, w, p.parts[((t*c.blocks+b)*c.heads+h0)*size:], size, g, h0, h1, b, t, then)
			then = nowhere
		}
	}
}

// place is where cached rows lie that a worker will read soon.
type place struct{ head, pos int }

var nowhere = place{-1, 0}

// mergeRows is how many heads one part of the merge takes.
const mergeRows = 8

// mergeBlocks joins the blocks of a few heads in order.
func mergeBlocks(p *pass, l *layer, i int, w *worker) {
	c := &p.core
	size := c.valDim + 2
	w.acc = room(w.acc, size)
	for r := i * mergeRows; r < min((i+1)*mergeRows, p.t*c.heads); r++ {
		t, h := r/c.heads, r%c.heads
		clearPart(w.acc, c.valDim)
		for b := c.firstKey(p.pos+t) / attnBlock; b < c.blocks; b++ {
			at := ((t*c.blocks+b)*c.heads + h) * size
			mergePart(w.acc, p.parts[at:at+size], c.valDim)
		}
		c.finish(p.att[r*c.valDim:(r+1)*c.valDim], w.acc, h)
	}
}

// firstKey is the first position that a query at pos sees.
func (c *attnCore) firstKey(pos int) int {
	if c.window > 0 && pos >= c.window {
		return pos - c.window + 1
	}
	return 0
}

// A partial result is the weighted sum of values (valDim), the sum of weights
// and the largest score they are relative to.

func clearPart(a []float32, n int) {
	clear(a[:n+1])
	a[n+1] = float32(math.Inf(-1))
}

// mergePart adds part b to a.
func mergePart(a, b []float32, n int) {
	if math.IsInf(float64(b[n+1]), -1) {
		return
	}
	if math.IsInf(float64(a[n+1]), -1) {
		copy(a[:n+2], b[:n+2])
		return
	}
	if b[n+1] > a[n+1] {
		s := float32(math.Exp(float64(a[n+1] - b[n+1])))
		for i, v := range b[:n+1] {
			a[i] = a[i]*s + v
		}
		a[n+1] = b[n+1]
		return
	}
	quant.AxpyF32(a[:n+1], float32(math.Exp(float64(b[n+1]-a[n+1]))), b[:n+1])
}

// finish divides by the sum of weights, to which a sink adds its own: a score
// without a value (gpt-oss).
func (c *attnCore) finish(y, a []float32, h int) {
	n := c.valDim
	sum, scale := a[n], float32(1)
	if c.sinks != nil {
		m := max(a[n+1], c.sinks[h])
		scale = float32(math.Exp(float64(a[n+1] - m)))
		sum = sum*scale + float32(math.Exp(float64(c.sinks[h]-m)))
	}
	scale /= sum
	for i, v := range a[:n] {
		y[i] = v * scale
	}
}

// block computes the partial results, (heads, size), of token t and heads h0
// to h1-1 over the positions of block b.
func (c *attnCore) block(p *pass, w *worker, part []float32, size, g, h0, h1, b, t int, then place) {
	pos := p.pos + t
	from, to := max(c.firstKey(pos), b*attnBlock), min(pos+1, (b+1)*attnBlock)
	switch {
	case from >= to:
		for i := range h1 - h0 {
			clearPart(part[i*size:(i+1)*size], c.valDim)
		}
	case c.index != nil && p.index.n[t] >= 0:
		for i := range h1 - h0 {
			clearPart(part[i*size:(i+1)*size], c.valDim)
			c.sparse(p, w, part[i*size:(i+1)*size], g, h0+i, b, t)
		}
	default:
		c.rows(p, w, part, size, g, h0, h1, t, t+1, from, to, then)
	}
}

// attnRows is how many queries go over a block together.
const attnRows = 24

// asked says which queries a worker has at hand, scaled and as its cache wants
// them, while it does one part: those of a run of blocks are the same.
type asked struct{ t0, t1, h0, h1, r0 int }

// rows computes the partial results, (tokens, heads, size), of tokens t0 to
// t1-1 and heads h0 to h1-1 over positions from to to-1, which all of them see.
// The values are fetched while keys are multiplied, and the keys at then while
// values are.
func (c *attnCore) rows(p *pass, w *worker, part []float32, size, g, h0, h1, t0, t1, from, to int, then place) {
	n, heads, keys := (t1-t0)*(h1-h0), h1-h0, to-from
	w.scores = room(w.scores, attnRows*attnBlock)
	w.query = room(w.query, attnRows*c.keyDim)
	values := place{g, from}
	for r0 := 0; r0 < n; r0 += attnRows {
		m := min(attnRows, n-r0)
		if these := (asked{t0, t1, h0, h1, r0}); w.asked != these {
			for i := range m {
				t, h := t0+(r0+i)/heads, h0+(r0+i)%heads
				q := w.query[i*c.keyDim : (i+1)*c.keyDim]
				copy(q, c.q[t*c.qRow+h*c.keyDim:])
				quant.ScaleF32(q, c.scale)
			}
			c.k.ask(w, w.query, m)
			w.asked = these
		}
		c.k.scores(w, w.scores, attnBlock, w.query[:m*c.keyDim], m, g, from, keys, c.v, values)
		for i := range m {
			s, a := w.scores[i*attnBlock:i*attnBlock+keys], part[(r0+i)*size:(r0+i+1)*size]
			if c.softcap != 0 {
				softcap(s, c.softcap)
			}
			top := quant.Max(s)
			clearPart(a, c.valDim)
			a[c.valDim], a[c.valDim+1] = quant.ExpSum(s, top), top
		}
		c.v.mix(part[r0*size:], size, c.valDim, w.scores, attnBlock, m, g, from, keys, c.k, then)
		values, then = nowhere, nowhere
	}
}

// softcap: x = c * tanh(x/c).
func softcap(x []float32, c float32) {
	for i, v := range x {
		x[i] = c * float32(math.Tanh(float64(v/c)))
	}
}
