package engine

import (
	"math"

	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// The sparse indexer of qwen4exp (models.md 3.3 of the references) chooses
// which keys attention reads. Cells are scored in blocks of ratio tokens:
//
//	score_b = sum_h relu(iq_h . kb),  kb = rope(RMS(mean of the block's ik))
//
// The topK/ratio best complete blocks and the incomplete one at the end are
// seen; the lower block goes first on a tie. Up to topK + ratio - 1 tokens of
// context that is everything, and nothing is scored.
type indexWeights struct {
	q, k         matrix
	qNorm, kNorm []float32 // (dim)
}

func (b *binder) index(l *layer, s *spec, blk string) {
	x := l.attn.index
	l.idx = &indexWeights{
		q:     b.mat(blk+"indexer.q_proj", s.dim, x.heads*x.dim),
		k:     b.mat(blk+"indexer.k_proj", s.dim, x.dim),
		qNorm: b.vec(blk+"indexer.q_norm.weight", x.dim),
		kNorm: b.vec(blk+"indexer.k_norm.weight", x.dim),
	}
}

// indexPass holds the buffers of the indexer in one pass.
type indexPass struct {
	q    []float32 // (T, heads*dim)
	k    []float32 // (T, dim)
	seen []int32   // (T, most): first cells of the blocks seen, in order
	n    []int32   // (T): how many; -1: all
	most int
}

// index fills p.index for the tokens of a pass. p.in holds their input.
func (m *Model) index(p *pass, l *layer) {
	x, s := &p.index, l.attn.index
	x.most = s.topK / s.ratio
	growInts(&x.seen, p.t*x.most)
	growInts(&x.n, p.t)
	p.tokens(l, turnIndex)
	// Blocks that this pass completes.
	first, last := p.pos/s.ratio, (p.pos+p.t)/s.ratio
	for b := first; b < last; b++ {
		keepBlock(p, l, b)
	}
	p.tokens(l, chooseCells)
}

func turnIndex(p *pass, l *layer, t int, w *worker) {
	s, x := l.attn.index, &p.index
	n := l.rope.spec.dims
	cs := p.cs[l.ropeAt][t*n : (t+1)*n]
	for h := range s.heads {
		q := x.q[(t*s.heads+h)*s.dim : (t*s.heads+h+1)*s.dim]
		quant.RMSNorm(q, q, l.idx.qNorm, p.m.spec.eps)
		l.rope.turn(q, cs)
	}
	p.st.layers[l.index].raw.put(w, 0, p.pos+t, x.k[t*s.dim:(t+1)*s.dim])
}

// keepBlock stores the key of block b: the mean of its cells' raw keys, normed
// and rotated to the block's first position.
func keepBlock(p *pass, l *layer, b int) {
	s, mem := l.attn.index, &p.st.layers[l.index]
	w := p.m.pool.workers[0]
	w.row = room(w.row, s.dim+l.rope.spec.dims)
	mean, cs := w.row[:s.dim], w.row[s.dim:]
	clear(mean)
	w.scores = room(w.scores, s.ratio)
	for i := range s.ratio {
		w.scores[i] = 1 / float32(s.ratio)
	}
	mem.raw.mix(mean, s.dim, s.dim, w.scores, s.ratio, 1, 0, b*s.ratio, s.ratio, nil, nowhere)
	quant.RMSNorm(mean, mean, l.idx.kNorm, p.m.spec.eps)
	l.rope.fill(cs, b*s.ratio, 1)
	l.rope.turn(mean, cs)
	mem.blocks.put(w, 0, b, mean)
}

// chooseCells picks the blocks that token t sees.
func chooseCells(p *pass, l *layer, t int, w *worker) {
	s, x := l.attn.index, &p.index
	pos := p.pos + t
	whole := (pos + 1) / s.ratio
	if whole <= x.most {
		x.n[t] = -1
		return
	}
	w.scores = room(w.scores, 2*whole)
	sum, one := w.scores[:whole], w.scores[whole:]
	clear(sum)
	for h := range s.heads {
		p.st.layers[l.index].blocks.scores(w, one, whole, x.q[(t*s.heads+h)*s.dim:], 1, 0, 0, whole, nil, nowhere)
		for i, v := range one {
			sum[i] += max(v, 0)
		}
	}
	w.cand = w.cand[:0]
	for i, v := range sum {
		w.cand = append(w.cand, candidate{id: token.ID(i), l: v})
	}
	selectBest(w.cand, x.most)
	clear(one)
	for _, c := range w.cand[:x.most] {
		one[c.id] = 1
	}
	seen := x.seen[t*x.most : t*x.most]
	for i, v := range one {
		if v != 0 {
			seen = append(seen, int32(i*s.ratio))
		}
	}
	x.n[t] = int32(len(seen))
}

// sparse computes the partial result of token t and head h over the cells of
// context block b that the indexer chose.
func (c *attnCore) sparse(p *pass, w *worker, part []float32, g, h, b, t int) {
	x := &p.index
	pos := p.pos + t
	lo, hi := b*attnBlock, min((b+1)*attnBlock, pos+1)
	ratio := c.index.ratio
	seen := x.seen[t*x.most : t*x.most+int(x.n[t])]
	q := c.q[t*c.qRow+h*c.keyDim : t*c.qRow+(h+1)*c.keyDim]
	w.scores = room(w.scores, 2*attnBlock)
	s, at := w.scores[:0], w.scores[attnBlock:attnBlock] // scores, and their cells
	c.k.ask(w, q, 1)
	run := func(from, to int) {
		if from, to = max(from, lo), min(to, hi); from >= to {
			return
		}
		n := len(s)
		s = s[:n+to-from]
		c.k.scores(w, s[n:], to-from, q, 1, g, from, to-from, nil, nowhere)
		for j := from; j < to; j++ {
			at = append(at, float32(j-lo))
		}
	}
	for _, first := range seen {
		run(int(first), int(first)+ratio)
	}
	run((pos+1)/ratio*ratio, pos+1)
	if len(s) == 0 {
		return
	}
	quant.ScaleF32(s, c.scale)
	top := quant.Max(s)
	part[c.valDim], part[c.valDim+1] = quant.ExpSum(s, top), top
	for i := 0; i < len(s); { // runs of neighbours at once
		n := 1
		for i+n < len(s) && at[i+n] == at[i]+float32(n) {
			n++
		}
		c.v.mix(part, len(part), c.valDim, s[i:], n, 1, g, lo+int(at[i]), n, nil, nowhere)
		i += n
	}
}

// indexKeys checks the keys of the indexer.
func indexKeys(k *keys, ratio int) *indexSpec {
	if ratio == 0 {
		return nil
	}
	s := &indexSpec{
		heads: k.int("attention.indexer.head_count", 1, maxHeads),
		dim:   k.int("attention.indexer.key_length", 1, maxHeadDim),
		topK:  k.int("attention.indexer.top_k", 1, maxContext),
		ratio: ratio,
	}
	if s.topK < ratio {
		k.fail("key %q is %d, want at least the ratio %d", k.name("attention.indexer.top_k"), s.topK, ratio)
	}
	// Rows of chosen blocks are kept per token of a pass.
	s.topK = min(s.topK, math.MaxInt32)
	return s
}
