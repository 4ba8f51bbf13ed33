package engine

import (
	"math/rand/v2"

	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// A bench at a context of many thousand tokens needs a timeline of that length,
// not what a model would have thought of it: attention takes as long over any
// rows. So caches are filled with rows drawn at random, in the format they are
// kept in, and a prompt of 32,768 tokens need not be computed first. Recurrent
// states are of one size at any length and stay what they are.

// canFill says whether a timeline can be filled; what lies on devices cannot,
// and a draft block has to see every token.
func (s *Session) canFill() bool { return s.st.cards == nil && s.drafts.block == nil }

// fill makes the timeline ids without computing anything.
func (s *Session) fill(ids []token.ID) {
	rng := rand.New(rand.NewPCG(2, 3))
	w := s.m.pool.workers[0]
	for i := range s.st.layers {
		mem, l := &s.st.layers[i], s.m.layerSpecAt(i)
		mem.k.fill(w, len(ids), rng)
		mem.v.fill(w, len(ids), rng)
		mem.raw.fill(w, len(ids), rng)
		if l.mixer == attention && l.attn.index != nil {
			mem.blocks.fill(w, len(ids)/l.attn.index.ratio, rng)
		}
	}
	s.take(ids)
	s.st.high = max(s.st.high, s.st.pos)
	s.p.enlarge()
}

// take takes the timeline to be ids, of which the caches have a row each.
func (s *Session) take(ids []token.ID) {
	s.st.pos, s.st.kept = len(ids), 0
	s.ids = append(s.ids[:0], ids...)
	s.p.text = append(s.p.text[:0], ids...)
}

func (m *Model) layerSpecAt(i int) *layerSpec {
	if i < len(m.layers) {
		return m.layers[i].layerSpec
	}
	return m.drafts[i-len(m.layers)].layerSpec
}

// fillRows is how many different rows a filled cache has.
const fillRows = 64

// fill writes the first n rows of every head.
func (s *store) fill(w *worker, n int, rng *rand.Rand) {
	n = min(n, s.ctx)
	if n == 0 || s.heads == 0 {
		return
	}
	x := make([]float32, s.dim)
	for i := range min(n, fillRows) {
		for j := range x {
			x[j] = float32(rng.NormFloat64())
		}
		s.put(w, 0, i, x)
	}
	for h := range s.heads {
		at, end := h*s.ctx*s.row, (h*s.ctx+n)*s.row
		repeat(s.f32, at, end, s.row)
		repeat(s.f16, at, end, s.row)
		whole := (n + quant.CacheRows - 1) / quant.CacheRows * quant.CacheRows // rows of a slab lie among each other
		repeat(s.q, at, (h*s.ctx+whole)*s.row, s.row)
	}
}

// repeat copies the rows at the front of x to at..end.
func repeat[T any](x []T, at, end, row int) {
	for ; len(x) > 0 && at < end; at += fillRows * row {
		copy(x[at:end], x[:min(fillRows*row, end)])
	}
}
