package engine

import "outcrop/engine/quant"

// state is the memory of one timeline: for every layer what it keeps of the
// tokens so far. pos tokens are in it.
type state struct {
	ctx    int
	pos    int
	paged  int      // positions whose rows lie in large pages, as far as those are full
	high   int      // positions ever written since the last reset: windowed caches lost what is far below it
	layers []memory // trunk layers, then draft blocks
	trunk  int
	cards  *cardState // what devices keep of their layers; nil: no devices

	// A window of drafts is run tentatively: recurrent layers read their state
	// without changing it and log what each token would do (models.md 2.3).
	// kept says how many tokens of the last window were right; the next pass
	// applies them while it reads the state anyway.
	kept int
	book int // which of the two logs the last window wrote
}

// memory is what one layer keeps.
type memory struct {
	k, v store // attention; latent attention keeps its rows in k

	raw, blocks store // sparse indexer: raw keys, and keys of complete blocks

	gram []float32 // n-gram table: (back, streams*dim) convolution inputs

	// gated delta net
	s    []float32 // (valHeads, dim values, dim keys)
	hist []float32 // (taps-1, channels): convolution inputs before the next token
	log  [2]deltaLog
}

// deltaLog is what the tokens of a tentative window do to a delta net's state.
type deltaLog struct {
	u     []float32 // (window, channels): convolution inputs
	k     []float32 // (window, keyHeads, dim)
	d     []float32 // (window, valHeads, dim)
	decay []float32 // (window, valHeads)
	gram  []float32 // (window, streams*dim): of the n-gram table
}

// maxWindow is the most tokens that can be run tentatively at once.
const maxWindow = 16

func newState(m *Model) *state {
	st := &state{ctx: m.context, trunk: len(m.layers)}
	for i := range m.layers {
		st.layers = append(st.layers, newMemory(m, m.layers[i].layerSpec, m.cards.mixes(i) && m.cards.check == nil))
	}
	for i := range m.usedDrafts() {
		st.layers = append(st.layers, newMemory(m, m.drafts[i].layerSpec, false))
	}
	return st
}

func newMemory(m *Model, l *layerSpec, onCard bool) memory {
	var mem memory
	switch l.mixer {
	case attention:
		if l.attn.kvFrom >= 0 || onCard {
			break
		}
		rows := l.cacheRows(m.context, m.chunk)
		mem.k = newStore(m.kv, l.attn.kvHeads, l.attn.keyDim, rows)
		mem.v = newStore(m.kv, l.attn.kvHeads, l.attn.valDim, rows)
		if x := l.attn.index; x != nil {
			mem.raw = newStore(l.attn.index.kind(m.kv), 1, x.dim, m.context)
			mem.blocks = newStore(l.attn.index.kind(m.kv), 1, x.dim, (m.context+x.ratio-1)/x.ratio)
		}
	case shortConv:
		mem.hist = make([]float32, (l.conv.taps-1)*l.conv.channels)
	case latent:
		mem.k = newStore(m.kv, 1, l.latent.kvRank+l.latent.rot, m.context)
	case deltaNet:
		d := &l.delta
		mem.s = make([]float32, d.valHeads*d.dim*d.dim)
		mem.hist = make([]float32, (d.taps-1)*d.channels())
	}
	if l.ple {
		mem.gram = make([]float32, m.spec.ple.back()*m.spec.streams*m.spec.dim)
	}
	return mem
}

// kind is how the indexer's keys are kept: they choose, so they are not
// rounded further than to halves.
func (x *indexSpec) kind(kv kvKind) kvKind {
	if kv == kvF32 {
		return kvF32
	}
	return kvF16
}

// channels is the width of a delta net's convolution: q, k and v of all heads.
func (d *deltaSpec) channels() int { return (2*d.keyHeads + d.valHeads) * d.dim }

// recurrent says whether a layer keeps a state that cannot be cut back.
func (l *layerSpec) recurrent() bool { return l.mixer == deltaNet || l.mixer == shortConv || l.ple }

// kvBytes is the memory of the cached rows of one more position.
func (l *layerSpec) kvBytes(kind kvKind) int64 {
	switch l.mixer {
	case attention:
		if l.attn.kvFrom >= 0 {
			return 0
		}
		n := int64(l.attn.kvHeads) * (kind.rowBytes(l.attn.keyDim) + kind.rowBytes(l.attn.valDim))
		if x := l.attn.index; x != nil {
			b := x.kind(kind).rowBytes(x.dim)
			n += b + b/int64(x.ratio)
		}
		return n
	case latent:
		return kind.rowBytes(l.latent.kvRank + l.latent.rot)
	}
	return 0
}

// stateBytes is the memory of a layer's recurrent state.
func (l *layerSpec) stateBytes() int64 {
	switch l.mixer {
	case deltaNet:
		d := &l.delta
		return 4 * (int64(d.valHeads)*int64(d.dim)*int64(d.dim) + int64(d.taps-1)*int64(d.channels()))
	case shortConv:
		return 4 * int64(l.conv.taps-1) * int64(l.conv.channels)
	}
	return 0
}

// reset forgets everything.
func (st *state) reset() {
	st.pos, st.high, st.kept, st.paged = 0, 0, 0, 0
	for i := range st.layers {
		clear(st.layers[i].s)
		clear(st.layers[i].hist)
		clear(st.layers[i].gram)
	}
	if st.cards != nil {
		st.cards.lost = st.cards.push(nil)
	}
}

// accept ends a tentative window of t tokens of which the first n were right:
// the timeline keeps those. Caches are cut; recurrent layers apply what they
// logged for them when they are next read.
func (st *state) accept(m *Model, t, n int) {
	st.pos += n - t
	st.kept = n
	for i := range m.layers {
		mem := &st.layers[i]
		if m.cards.mixes(i) && m.cards.check == nil {
			continue // the device has the log
		}
		if m.layers[i].ple {
			shiftInputs(mem.gram, mem.log[st.book].gram, n, m.spec.ple.back(), m.spec.streams*m.spec.dim)
		}
		if c := m.layers[i].conv; m.layers[i].mixer == shortConv {
			shiftInputs(mem.hist, mem.log[st.book].u, n, c.taps-1, c.channels)
		}
		if m.layers[i].mixer != deltaNet {
			continue
		}
		d := &m.layers[i].delta
		shiftInputs(mem.hist, mem.log[st.book].u, n, d.taps-1, d.channels())
	}
}

// settle applies what is logged, so that the states can be copied.
func (st *state) settle(m *Model) {
	if st.cards != nil {
		st.cards.lost = st.cards.pull(st)
	}
	if st.kept == 0 {
		return
	}
	for i := range m.layers {
		if m.layers[i].mixer != deltaNet || st.layers[i].log[st.book].d == nil {
			continue
		}
		d, mem := &m.layers[i].delta, &st.layers[i]
		for h := range d.valHeads {
			for r := range d.dim {
				mem.replay(d, st, h, r)
			}
		}
	}
	st.kept = 0
}

// replay applies the kept tokens of the last window to row r of value head h
// and returns the row.
func (mem *memory) replay(d *deltaSpec, st *state, h, r int) []float32 {
	n, kh, log := d.dim, d.keyHead(h), &mem.log[st.book]
	s := mem.s[(h*n+r)*n : (h*n+r+1)*n]
	for t := range st.kept {
		quant.ScaleF32(s, log.decay[t*d.valHeads+h])
		quant.AxpyF32(s, log.d[(t*d.valHeads+h)*n+r], log.k[(t*d.keyHeads+kh)*n:(t*d.keyHeads+kh+1)*n])
	}
	return s
}

// bytes is the memory set aside for the timeline.
func (st *state) bytes() int64 {
	var n int64
	for i := range st.layers {
		mem := &st.layers[i]
		n += mem.k.bytes(mem.k.ctx) + mem.v.bytes(mem.v.ctx) + mem.raw.bytes(mem.raw.ctx) + mem.blocks.bytes(mem.blocks.ctx)
		n += 4 * int64(len(mem.s)+len(mem.hist)+len(mem.gram))
	}
	return n
}

// reaches says whether a timeline cut back to n tokens still has all rows that
// its windows see.
func (st *state) reaches(m *Model, n int) bool {
	if n == 0 {
		return true
	}
	for i := range m.layers {
		k := &st.layers[i].k
		if m.layers[i].mixer != attention || k.ctx == 0 || k.ctx >= st.ctx {
			continue
		}
		if n-m.layers[i].attn.window+1 < st.high-k.ctx {
			return false
		}
	}
	return true
}

// recurrentBytes is the memory of one copy of the recurrent states.
func (st *state) recurrentBytes() int64 {
	var n int64
	for i := range st.layers {
		mem := &st.layers[i]
		n += 4 * int64(len(mem.s)+len(mem.hist)+len(mem.gram))
	}
	return n
}
