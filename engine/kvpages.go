package engine

import "unsafe"

// A long context is read from end to end for every token. In small pages the
// processor looks up a page for every few rows, which took a fifth of the time
// (BENCH.md), so caches are moved into large ones as they fill: never memory
// that is still empty, so that a short chat keeps its small cache.

const largePage = 2 << 20

// largeEvery is how many new positions are worth a look.
const largeEvery = 1024

// enlarge moves what has been written since the last time into large pages,
// where whole ones are full by now. Workers must be free.
func (p *pass) enlarge() {
	st := p.st
	if st.high < st.paged { // a new timeline
		st.paged = 0
	}
	if st.high-st.paged < largeEvery {
		return
	}
	p.each(len(st.layers), nil, enlargeLayer)
	st.paged = st.high
}

func enlargeLayer(p *pass, _ *layer, i int, _ *worker) {
	mem := &p.st.layers[i]
	for _, s := range []*store{&mem.k, &mem.v, &mem.raw} {
		s.enlarge(p.st.paged, p.st.high)
	}
}

// enlarge does so for rows lo to hi-1 of every head.
func (s *store) enlarge(lo, hi int) {
	lo, hi = min(lo, s.ctx), min(hi, s.ctx)
	if lo >= hi {
		return
	}
	for h := range s.heads {
		at, from, to := h*s.ctx*s.row, (h*s.ctx+lo)*s.row, (h*s.ctx+hi)*s.row
		switch s.kind {
		case kvF32:
			collapse(s.f32, at, from, to)
		case kvF16:
			collapse(s.f16, at, from, to)
		default:
			collapse(s.q, at, from, to)
		}
	}
}

// collapse has the whole large pages within x[at:to] made that were not whole
// within x[at:from].
func collapse[T any](x []T, at, from, to int) {
	var v T
	base, size := uintptr(unsafe.Pointer(&x[0])), unsafe.Sizeof(v)
	first := (base + uintptr(at)*size + largePage - 1) &^ (largePage - 1)
	done := max((base+uintptr(from)*size)&^(largePage-1), first)
	end := (base + uintptr(to)*size) &^ (largePage - 1)
	if done >= end {
		return
	}
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), uintptr(len(x))*size)
	makeLarge(mem[done-base : end-base])
}
