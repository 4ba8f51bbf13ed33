package engine

import (
	"math"
	"sync/atomic"
)

// heat counts how often each expert is used, with decay, so that "hot" means
// lately. It is written by the goroutine that runs a pass and read by any: the
// planner of tiers, the map in the window, the saved profile.
type heat struct {
	layers [][]atomic.Uint32 // float32 bits by layer and expert; nil for layers without experts
	last   [][]uint32        // token at which an expert was last used; for the pass alone
	now    uint32            // tokens so far
	due    uint32            // token of the next decay
}

const (
	// heatEvery tokens, all counts are multiplied by heatDecay: a theme that
	// ended 300 tokens ago weighs a quarter. 0.7 per update is the decay that
	// adaptive tiers elsewhere settled on (strata.md 6.1).
	heatEvery = 64
	heatDecay = 0.75
)

func newHeat(layers []layer, drafts []draft) *heat {
	h := &heat{due: heatEvery}
	add := func(l *layerSpec) {
		n := l.expert.count
		if n == 0 {
			h.layers, h.last = append(h.layers, nil), append(h.last, nil)
			return
		}
		h.layers, h.last = append(h.layers, make([]atomic.Uint32, n)), append(h.last, make([]uint32, n))
	}
	for i := range layers {
		add(layers[i].layerSpec)
	}
	for i := range drafts {
		add(drafts[i].layerSpec)
	}
	return h
}

// touch counts n uses of an expert.
func (h *heat) touch(layer, expert, n int) {
	c := &h.layers[layer][expert]
	c.Store(math.Float32bits(math.Float32frombits(c.Load()) + float32(n)))
	h.last[layer][expert] = h.now + 1
}

// fresh reports whether an expert was used within the last n tokens.
func (h *heat) fresh(layer, expert int, n uint32) bool {
	at := h.last[layer][expert]
	return at > 0 && h.now+1-at <= n
}

// tick counts tokens and lets counts fade.
func (h *heat) tick(tokens int) {
	h.now += uint32(tokens)
	if h.now < h.due {
		return
	}
	f := float32(math.Pow(heatDecay, float64((h.now-h.due)/heatEvery+1)))
	h.due = h.now - h.now%heatEvery + heatEvery
	for _, l := range h.layers {
		for i := range l {
			l[i].Store(math.Float32bits(math.Float32frombits(l[i].Load()) * f))
		}
	}
}

// read copies the counts: one row per layer, nil for layers without experts.
func (h *heat) read() [][]float32 {
	out := make([][]float32, len(h.layers))
	for i, l := range h.layers {
		if l == nil {
			continue
		}
		out[i] = make([]float32, len(l))
		for e := range l {
			out[i][e] = math.Float32frombits(l[e].Load())
		}
	}
	return out
}

// set replaces the counts, as far as the shapes agree; it reports whether they
// all did.
func (h *heat) set(counts [][]float32) bool {
	if len(counts) != len(h.layers) {
		return false
	}
	for i, l := range h.layers {
		if len(l) != len(counts[i]) {
			return false
		}
	}
	for i, l := range h.layers {
		for e := range l {
			l[e].Store(math.Float32bits(counts[i][e]))
		}
	}
	return true
}
