package quant

import "unsafe"

// query8 is the argument of query8x512.
type query8 struct {
	x, to unsafe.Pointer
	n     int
	gap   uintptr
}

//go:noescape
func query8x512(a *query8)

//go:noescape
func scores8x512(a *attend8)

//go:noescape
func weights8x512(a *attend8)

//go:noescape
func mix8by1x512(a *attend8)

//go:noescape
func mix8by2x512(a *attend8)

// begin sets what both kernels need.
func (a *attend8) begin(ldd, nq, n int, ahead uintptr) {
	a.stride, a.groups = uintptr(Cache8Bytes(n)), n/cacheBlock
	a.nq, a.ldd, a.ahead = nq, uintptr(4*ldd), ahead
	for i := range a.index {
		a.index[i] = int32(i) * int32(a.stride)
	}
}

func (a *attend8) end() { a.rows, a.x, a.dst, a.weights = nil, nil, nil, nil }

// scores8AVX512 takes 16 rows at a time; the last ones are filled up with
// themselves.
func scores8AVX512(g *work, dst []float32, ldd int, q []float32, nq, n int, k []byte, rows int, ahead uintptr) {
	a := &g.attend8
	a.begin(ldd, nq, n, ahead)
	if need := nq * a.groups; cap(g.wholes) < need {
		g.wholes = make([]whole8, need)
	}
	g.wholes = g.wholes[:nq*a.groups]
	for b := range a.groups {
		query8x512(&query8{unsafe.Pointer(&q[b*cacheBlock]), unsafe.Pointer(&g.wholes[b*nq]), nq, uintptr(4 * n)})
	}
	a.x, a.lines = unsafe.Pointer(&g.wholes[0]), (16*cache8Bytes/64+nq)/nq
	if a.count = rows &^ 15; a.count > 0 {
		a.rows, a.dst = unsafe.Pointer(&k[0]), unsafe.Pointer(&dst[0])
		scores8x512(a)
	}
	if from := a.count; from < rows {
		size := int(a.stride)
		if need := 16 * size; len(g.last) < need {
			g.last = make([]byte, need)
		}
		clear(g.last[copy(g.last, k[from*size:rows*size]):])
		if need := 16 * nq; len(g.results) < need {
			g.results = make([]float32, need)
		}
		a.rows, a.dst, a.ldd = unsafe.Pointer(&g.last[0]), unsafe.Pointer(&g.results[0]), 64
		a.count, a.ahead = 16, 0
		scores8x512(a)
		for i := range nq {
			copy(dst[i*ldd+from:i*ldd+rows], g.results[16*i:16*i+16])
		}
	}
	a.end()
}

// mix8AVX512 takes up to 256 rows.
func mix8AVX512(g *work, dst []float32, ldd, n int, p []float32, ldp, nq int, v []byte, rows int, ahead uintptr) {
	a := &g.attend8
	a.begin(ldd, nq, n, ahead)
	a.count, a.ldx = rows, uintptr(4*ldp)
	if len(g.weights) < nq {
		g.weights = make([]rows8, nq)
	}
	// What is fetched is shared out over all calls, so that none waits for it.
	calls, fours := a.groups*((nq+1)/2), (rows+3)/4
	a.lines = (rows*int(a.stride)/64)/(calls*fours) + 1
	a.fetch = uintptr(unsafe.Pointer(&v[0])) + ahead
	for b := range a.groups {
		a.rows, a.x, a.weights = unsafe.Pointer(&v[b*cache8Bytes]), unsafe.Pointer(&p[0]), unsafe.Pointer(&g.weights[0])
		weights8x512(a)
		for i := 0; i < nq; i += 2 {
			a.dst, a.weights = unsafe.Pointer(&dst[i*ldd+b*cacheBlock]), unsafe.Pointer(&g.weights[i])
			if i+1 < nq {
				mix8by2x512(a)
			} else {
				mix8by1x512(a)
			}
			a.fetch += uintptr(64 * a.lines * fours)
		}
	}
	a.end()
}
