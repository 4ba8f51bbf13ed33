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
	head, from, to := s.ctx*s.row, lo*s.row, hi*s.row
	switch s.kind {
	case kvF32:
		collapse(s.f32, head, from, to)
	case kvF16:
		collapse(s.f16, head, from, to)
	default:
		collapse(s.q, head, from, to)
	}
}

// collapse has large pages made of x where they hold little else than what has
// been written, the first to elements of every head, and did not when that was
// the first from elements. A head ends amid a page, which the next one shares.
func collapse[T any](x []T, head, from, to int) {
	var v T
	size := int(unsafe.Sizeof(v))
	mem := unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*size)
	first := int(-uintptr(unsafe.Pointer(&x[0])) & (largePage - 1))
	for at := first; at+largePage <= len(mem); at += largePage {
		if mostly(at, head*size, to*size) && !mostly(at, head*size, from*size) {
			makeLarge(mem[at : at+largePage])
		}
	}
}

// mostly says whether of the large page at byte at, seven eighths are among the
// first n of every head bytes.
func mostly(at, head, n int) bool {
	full := 0
	for h := at / head * head; h < at+largePage; h += head {
		full += max(0, min(h+n, at+largePage)-max(h, at))
	}
	return full >= largePage/8*7
}

// onLargePage is make, of memory that begins on a large page where it is so long
// that it may become one.
func onLargePage[T any](n int) []T {
	var v T
	size := int(unsafe.Sizeof(v))
	if n*size < largePage {
		return make([]T, n)
	}
	x := make([]T, n+largePage/size)
	at := int(-uintptr(unsafe.Pointer(&x[0]))&(largePage-1)) / size
	return x[at : at+n : at+n]
}
