package engine

import "outcrop/engine/quant"

// state is the memory of one timeline: for every layer what it keeps of the
// tokens so far. pos tokens are in it.
type state struct {
	ctx    int
	pos    int
	layers []memory // trunk layers, then draft blocks
	trunk  int

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
}

// maxWindow is the most tokens that can be run tentatively at once.
const maxWindow = 16

func newState(m *Model) *state {
	st := &state{ctx: m.context, trunk: len(m.layers)}
	for i := range m.layers {
		st.layers = append(st.layers, newMemory(m, m.layers[i].layerSpec))
	}
	for i := range m.drafts {
		st.layers = append(st.layers, newMemory(m, m.drafts[i].layerSpec))
	}
	return st
}

func newMemory(m *Model, l *layerSpec) memory {
	var mem memory
	switch l.mixer {
	case attention:
		mem.k = newStore(m.kv, l.attn.kvHeads, l.attn.keyDim, m.context)
		mem.v = newStore(m.kv, l.attn.kvHeads, l.attn.valDim, m.context)
	case latent:
		mem.k = newStore(m.kv, 1, l.latent.kvRank+l.latent.rot, m.context)
	case deltaNet:
		d := &l.delta
		mem.s = make([]float32, d.valHeads*d.dim*d.dim)
		mem.hist = make([]float32, (d.taps-1)*d.channels())
	}
	return mem
}

// channels is the width of a delta net's convolution: q, k and v of all heads.
func (d *deltaSpec) channels() int { return (2*d.keyHeads + d.valHeads) * d.dim }

// recurrent says whether a layer keeps a state that cannot be cut back.
func (l *layerSpec) recurrent() bool { return l.mixer == deltaNet || l.mixer == shortConv }

// kvBytes is the memory of the cached rows of one more position.
func (l *layerSpec) kvBytes(kind kvKind) int64 {
	switch l.mixer {
	case attention:
		return int64(l.attn.kvHeads) * (kind.rowBytes(l.attn.keyDim) + kind.rowBytes(l.attn.valDim))
	case latent:
		return kind.rowBytes(l.latent.kvRank + l.latent.rot)
	}
	return 0
}

// stateBytes is the memory of a layer's recurrent state.
func (l *layerSpec) stateBytes() int64 {
	if l.mixer != deltaNet {
		return 0
	}
	d := &l.delta
	return 4 * (int64(d.valHeads)*int64(d.dim)*int64(d.dim) + int64(d.taps-1)*int64(d.channels()))
}

// reset forgets everything.
func (st *state) reset() {
	st.pos, st.kept = 0, 0
	for i := range st.layers {
		clear(st.layers[i].s)
		clear(st.layers[i].hist)
	}
}

// accept ends a tentative window of t tokens of which the first n were right:
// the timeline keeps those. Caches are cut; recurrent layers apply what they
// logged for them when they are next read.
func (st *state) accept(m *Model, t, n int) {
	st.pos += n - t
	st.kept = n
	for i := range m.layers {
		if m.layers[i].mixer != deltaNet {
			continue
		}
		d, mem := &m.layers[i].delta, &st.layers[i]
		shiftInputs(mem.hist, mem.log[st.book].u, n, d.taps-1, d.channels())
	}
}

// settle applies what is logged, so that the states can be copied.
func (st *state) settle(m *Model) {
	if st.kept == 0 {
		return
	}
	for i := range m.layers {
		if m.layers[i].mixer != deltaNet {
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
		n += mem.k.bytes(st.ctx) + mem.v.bytes(st.ctx) + 4*int64(len(mem.s)+len(mem.hist))
	}
	return n
}
