package engine

import (
	"fmt"

	"outcrop/engine/quant"
)

// kvKind is how cached keys and values are stored.
type kvKind int

const (
	kvF16 kvKind = iota
	kvF32
	kvQ8 // 8 bits, one scale per 64 values
	kvQ4 // 4 bits, one scale and one offset per 64 values
)

var kvNames = []string{kvF16: "f16", kvF32: "f32", kvQ8: "q8", kvQ4: "q4"}

// kvKindOf reads the name of an option; "" is f16.
func kvKindOf(name string) (kvKind, error) {
	if name == "" {
		return kvF16, nil
	}
	for k, n := range kvNames {
		if n == name {
			return kvKind(k), nil
		}
	}
	return 0, fmt.Errorf("kv cache type %q is not known; known are f16, f32, q8, q4", name)
}

func (k kvKind) String() string { return kvNames[k] }

// kvGroup is what rows in 8 and 4 bits are padded to.
const kvGroup = 64

// rounded says how rows in 8 and 4 bits are kept.
func (k kvKind) rounded() (quant.CacheKind, bool) {
	if k == kvQ8 {
		return quant.Cache8, true
	}
	return quant.Cache4, k == kvQ4
}

// store holds one row of dim values per position and head: (heads, ctx, wide),
// so that a head's rows follow each other; in q8 and q4, slabs of 16 rows do.
// Memory is touched only where rows are written. The row of a position is
// position mod ctx: layers with a window keep only as many as they need
// (cacheRows).
type store struct {
	kind       kvKind
	heads, dim int
	wide       int // dim, padded with zeros to whole groups in q8 and q4
	ctx        int // rows per head; a multiple of attnBlock when it is less than the context, of slabs in q8 and q4
	row        int // elements of a row in the slice in use
	f32        []float32
	f16        []uint16
	q          []byte
}

func newStore(kind kvKind, heads, dim, ctx int) store {
	s := store{kind: kind, heads: heads, dim: dim, wide: kind.padded(dim), ctx: ctx}
	switch kind {
	case kvF32:
		s.row = dim
		s.f32 = onLargePage[float32](heads * ctx * s.row)
	case kvF16:
		s.row = dim
		s.f16 = onLargePage[uint16](heads * ctx * s.row)
	case kvQ8, kvQ4:
		s.row = int(kind.rowBytes(dim))
		s.ctx = (ctx + quant.CacheRows - 1) / quant.CacheRows * quant.CacheRows
		s.q = onLargePage[byte](heads * s.ctx * s.row)
	}
	return s
}

func (k kvKind) padded(dim int) int {
	if _, is := k.rounded(); is {
		return (dim + kvGroup - 1) / kvGroup * kvGroup
	}
	return dim
}

// rowBytes is the memory of one row of one head.
func (k kvKind) rowBytes(dim int) int64 {
	switch k {
	case kvF32:
		return int64(dim) * 4
	case kvF16:
		return int64(dim) * 2
	default:
		c, _ := k.rounded()
		return int64(c.RowBytes(k.padded(dim)))
	}
}

// bytes is the memory of n positions.
func (s *store) bytes(n int) int64 {
	return int64(s.heads) * int64(n) * s.kind.rowBytes(s.dim)
}

// put stores the row of a head at a position.
func (s *store) put(w *worker, head, pos int, x []float32) {
	at := head*s.ctx + pos%s.ctx
	switch s.kind {
	case kvF32:
		copy(s.f32[at*s.row:][:s.dim], x)
	case kvF16:
		quant.ToF16(s.f16[at*s.row:][:s.dim], x[:s.dim])
	default:
		c, _ := s.kind.rounded()
		c.Put(s.q, at, s.pad(w, x))
	}
}

// pad fills x up to whole groups with zeros; x itself when it is whole.
func (s *store) pad(w *worker, x []float32) []float32 {
	if s.wide == s.dim {
		return x[:s.dim]
	}
	w.pad = room(w.pad, s.wide)
	clear(w.pad[copy(w.pad, x[:s.dim]):])
	return w.pad
}

// slabs is where the slab of a position begins, and which of its rows that
// position has.
func (s *store) slabs(head, pos int) (q []byte, first int) {
	at := head*s.ctx + pos%s.ctx
	first = at % quant.CacheRows
	return s.q[(at-first)*s.row:], first
}

// ask takes nq queries for scores that follow.
func (s *store) ask(w *worker, q []float32, nq int) {
	w.asked = asked{}
	if c, is := s.kind.rounded(); is {
		c.Round(&w.rounded, q, nq, s.dim, s.wide)
	}
}

// scores writes the products of nq queries, which the worker was asked before,
// with n rows of a head from pos on, which lie in one attnBlock: dst[i*ldd+j] is
// query i times the row at pos+j. Meanwhile as many rows of other at next are
// fetched.
func (s *store) scores(w *worker, dst []float32, ldd int, q []float32, nq, head, pos, n int, other *store, next place) {
	at := (head*s.ctx + pos%s.ctx) * s.row
	switch s.kind {
	case kvF32:
		quant.ScoresManyF32(dst, ldd, q, nq, s.dim, s.f32[at:], n, s.row)
	case kvF16:
		quant.ScoresManyF16(dst, ldd, q, nq, s.dim, s.f16[at:], n, s.row, other.halves(s, next))
	default:
		c, _ := s.kind.rounded()
		k, first := s.slabs(head, pos)
		c.Scores(dst, ldd, &w.rounded, k, first, n, other.bytesAt(s, next))
	}
}

// halves are the rows of s at a place, to be fetched while rows of as are read;
// none where they are others, or the same.
func (s *store) halves(as *store, at place) []uint16 {
	if s == nil || at.head < 0 || at.head >= s.heads || s.row != as.row || len(s.f16) == 0 {
		return nil
	}
	return s.f16[(at.head*s.ctx+at.pos%s.ctx)*s.row:]
}

// bytesAt is halves for slabs.
func (s *store) bytesAt(as *store, at place) []byte {
	if s == nil || at.head < 0 || at.head >= s.heads || s.row != as.row || len(s.q) == 0 {
		return nil
	}
	q, _ := s.slabs(at.head, at.pos)
	return q
}

// mix adds to dst[i*ldd:][:width], for each of nq queries, the sum of p[i*ldp+j],
// none of which is negative, times the row at pos+j for n rows. width may be less
// than a row. Meanwhile as many rows of other at next are fetched.
func (s *store) mix(dst []float32, ldd, width int, p []float32, ldp, nq, head, pos, n int, other *store, next place) {
	at := (head*s.ctx + pos%s.ctx) * s.row
	switch s.kind {
	case kvF32:
		quant.MixManyF32(dst, ldd, width, p, ldp, nq, s.f32[at:], n, s.row)
	case kvF16:
		quant.MixManyF16(dst, ldd, width, p, ldp, nq, s.f16[at:], n, s.row, other.halves(s, next))
	default:
		c, _ := s.kind.rounded()
		v, first := s.slabs(head, pos)
		c.Mix(dst, ldd, width, p, ldp, nq, v, first, n, s.wide, other.bytesAt(s, next))
	}
}

// windowSlack is how many rows a windowed layer keeps beyond its window: the
// tokens of a pass, and as far as a timeline can be cut back without running
// it anew.
const windowSlack = 4096

// cacheRows is how many positions a layer's cache holds for a context.
func (l *layerSpec) cacheRows(context, chunk int) int {
	w := l.attn.window
	if l.mixer != attention || w == 0 {
		return context
	}
	rows := w + max(windowSlack, chunk+maxWindow)
	rows = (rows + attnBlock - 1) / attnBlock * attnBlock
	return min(rows, context)
}
