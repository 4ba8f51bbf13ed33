package engine

import (
	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// pass holds the buffers of forward, named as in the papers and sized for the
// most tokens seen so far. It belongs to a session; nothing in it lives from
// one call of forward to the next, except what the caller reads of the result.
type pass struct {
	m   *Model
	st  *state
	t   int // tokens in this pass
	pos int // position of the first
	// tentative: recurrent states are logged, not changed.
	tentative bool

	text   []token.ID  // the timeline with the tokens of this pass
	x      []float32   // (T, dim) residual stream; with hyper-connections (T, streams, dim)
	xb     []float32   // (T, dim) input of a block
	y      []float32   // (T, dim) output of a block
	q      []float32   // (T, q width)
	gateQ  []float32   // (T, heads*valDim) output gate of attention
	k, v   []float32   // (T, kv width)
	att    []float32   // (T, heads*valDim)
	hb, hu []float32   // (T, ff) gate and up
	cs     [][]float32 // per rotation: (T, dims) cosines and sines
	parts  []float32   // partial attention results
	core   attnCore
	byHead []int32 // (heads, T): rows of a (T, heads) buffer, head by head

	u, uc []float32 // delta net: (T, channels) before and after convolution
	z     []float32 // (T, valHeads*dim)
	ab    []float32 // (T, 2*valHeads): decay and beta
	braw  []float32 // (T, 2*valHeads): products before that

	mix     mixture
	err     error                        // what went wrong in a layer
	probe   func(op string, v []float32) // check mode sees results of operations
	hyper   hyperPass
	gram    ngramPass
	index   indexPass
	byLayer []float32 // (T, layers, width) per-layer token embeddings
	aside   []float32 // (T, dim) output of the dense part beside experts

	norm             []float32  // (T, dim) after the final norm
	inNorm, headNorm []float32  // (dim) weights of the norm of a block's input, and of the final one
	logits           []float32  // (outputs, vocab)
	pick             *picking   // has a device draw the tokens; nil: logits are wanted
	drawn            []token.ID // by a device, -1 where the host has to; empty: there are logits
	eh               []float32  // (T, 2*dim) input of a draft block: embedding, hidden state

	in, mid quant.Acts  // activations of products: block input, and after the gate
	quantA  *quant.Acts // being quantised
	quantT  int
	rows    rowsJob
	embed   embedding
	turned  int // the rotation that is being filled
	mul     mulJob
}

// rowsJob runs a function for parts of a pass. f is a top-level function, so
// that nothing is allocated to call it.
type rowsJob struct {
	p *pass
	l *layer
	f func(p *pass, l *layer, i int, w *worker)
}

func (j *rowsJob) part(i int, w *worker) { j.f(j.p, j.l, i, w) }

// each runs f for i = 0..n-1 on the workers.
func (p *pass) each(n int, l *layer, f func(p *pass, l *layer, i int, w *worker)) {
	p.rows = rowsJob{p, l, f}
	p.m.pool.run(&p.rows, n)
}

// serial tells that a loop over tokens is too small to share out: waking
// workers costs more than it saves.
func (p *pass) serial() bool { return p.t < 8 }

// tokens runs f for every token, on the workers when there are many.
func (p *pass) tokens(l *layer, f func(p *pass, l *layer, t int, w *worker)) {
	if p.serial() {
		for t := range p.t {
			f(p, l, t, p.m.pool.workers[0])
		}
		return
	}
	p.each(p.t, l, f)
}

// product is one matrix, or one expert's, times some activation rows:
// dst[j*ldd+r] = (w row r) . (activation row idx[j]).
type product struct {
	f        *quant.Format
	data     []byte
	rows     int
	rowBytes int
	bias     []float32
	scale    float32
	a        *quant.Acts
	idx      []int32 // nil: all n rows
	n        int     // activation rows
	dst      []float32
	ldd      int
}

// mulJob runs a list of products as one job: its rows are cut into pieces of
// about equal cost, whatever matrix they are from.
type mulJob struct {
	list   []product
	pieces []piece
	starts []int32 // the piece that each worker begins with
}

type piece struct{ product, lo, hi int32 }

func (j *mulJob) part(i int, w *worker) {
	c := j.pieces[i]
	p := &j.list[c.product]
	lo, hi := int(c.lo), int(c.hi)
	quant.Mul(p.f, p.dst[lo:], p.ldd, p.data[lo*p.rowBytes:hi*p.rowBytes], hi-lo, p.a, p.idx)
	if p.bias == nil && p.scale == 0 {
		return
	}
	for t := range p.n {
		row := p.dst[t*p.ldd+lo : t*p.ldd+hi]
		if p.scale != 0 {
			quant.ScaleF32(row, p.scale)
		}
		if p.bias != nil {
			quant.AddF32(row, p.bias[lo:hi])
		}
	}
}

// begin starts a list of products.
func (p *pass) begin() { p.mul.list = p.mul.list[:0] }

// want adds dst = W a to the list; dst has ldd values per row.
func (p *pass) want(dst []float32, ldd int, w *matrix, a *quant.Acts) {
	p.mul.list = append(p.mul.list, product{
		f: w.f, data: w.data, rows: w.rows, rowBytes: w.rowBytes, bias: w.bias, scale: w.scale,
		a: a, n: p.t, dst: dst, ldd: ldd,
	})
}

// run computes the list. Every worker begins with rows that follow each other, as
// many as make its part of the cost, in pieces that grow smaller: memory is read
// as one stream, and at the end of the list nobody waits for a large piece of
// another. A worker that is held up does not hold up the rest, who take its
// pieces from the end.
func (p *pass) run() {
	j, W := &p.mul, int64(len(p.m.pool.workers))
	var total int64
	for i := range j.list {
		total += j.list[i].cost()
	}
	few := p.t < 8
	least := int64(32 << 10)
	if !few { // by slabs: pieces alike
		least = max(total/(W*8), 16<<10)
	}
	j.pieces, j.starts = j.pieces[:0], j.starts[:0]
	var done int64 // cost of the pieces so far
	for i := range j.list {
		w := &j.list[i]
		row := max(1, w.cost()/int64(max(1, w.rows)))
		for lo := 0; lo < w.rows; {
			k := int64(len(j.starts))
			if k < W && done >= total*k/W {
				j.starts = append(j.starts, int32(len(j.pieces)))
				k++
			}
			each := least
			if few {
				each = max(least, (total*k/W-done)/3)
			}
			n := int((max(1, each/row) + 7) &^ 7) // kernels take rows in groups
			hi := min(lo+n, w.rows)
			j.pieces = append(j.pieces, piece{int32(i), int32(lo), int32(hi)})
			done += int64(hi-lo) * row
			lo = hi
		}
	}
	for len(j.starts) < int(W) {
		j.starts = append(j.starts, int32(len(j.pieces)))
	}
	p.m.pool.runFrom(j, len(j.pieces), j.starts)
}

// cost estimates the time of a product: its bytes once, and the work per
// activation row.
func (w *product) cost() int64 {
	return int64(w.rows) * int64(w.rowBytes) * int64(1+w.n)
}

// acts makes a stand for t rows of n floats, with the 8-bit copy unless all
// matrices that will use it take floats.
func (p *pass) acts(a *quant.Acts, x []float32, t, n int, floats bool) {
	a.Set(x, t, n)
	if floats {
		return
	}
	if t < 8 {
		a.Quantize(0, t)
		return
	}
	p.quantA, p.quantT = a, t
	p.each((t+quantRows-1)/quantRows, nil, quantizeRows)
}

const quantRows = 4

// defaultChunk is how many tokens of a prompt are run at once when nothing is asked.
const defaultChunk = 512

func quantizeRows(p *pass, _ *layer, i int, _ *worker) {
	p.quantA.Quantize(i*quantRows, min((i+1)*quantRows, p.quantT))
}

// grow makes buf at least n long; its contents are lost when it moves.
func grow(buf *[]float32, n int) []float32 {
	if cap(*buf) < n {
		*buf = make([]float32, n)
	}
	*buf = (*buf)[:n]
	return *buf
}

// bytes is the memory of the buffers.
func (p *pass) bytes() int64 {
	n := 0
	for _, b := range [][]float32{
		p.x, p.xb, p.y, p.q, p.gateQ, p.k, p.v, p.att, p.hb, p.hu, p.parts, p.u, p.uc, p.z, p.ab, p.braw,
		p.aside, p.byLayer, p.norm, p.logits, p.eh,
		p.mix.logits, p.mix.w, p.mix.hb, p.mix.hu, p.mix.out, p.mix.sb, p.mix.su, p.mix.so,
		p.hyper.n, p.hyper.g, p.hyper.a, p.gram.e, p.gram.k, p.gram.val, p.gram.g, p.gram.n,
		p.index.q, p.index.k,
	} {
		n += 4 * cap(b)
	}
	for _, b := range p.cs {
		n += 4 * cap(b)
	}
	for _, b := range [][]int32{p.byHead, p.mix.ids, p.mix.slot, p.mix.start, p.mix.token, p.mix.same, p.index.seen, p.index.n} {
		n += 4 * cap(b)
	}
	return int64(n)
}
