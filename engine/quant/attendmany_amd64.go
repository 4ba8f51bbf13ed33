package quant

import "unsafe"

//go:noescape
func scores3x256(dst, q *float32, k *uint16, rows, n, stride, ldd int, ahead uintptr)

//go:noescape
func mix3x256(dst, p *float32, v *uint16, rows, n, stride, ldd, ldp int, ahead uintptr)

// scoresManyAVX2 does three queries at a time and leaves the rest.
func scoresManyAVX2(dst []float32, ldd int, q []float32, nq, n int, k []uint16, rows, stride int, ahead uintptr) (i int) {
	fours := rows &^ 3
	if n%8 != 0 || fours == 0 {
		return 0
	}
	for ; i+3 <= nq; i += 3 {
		scores3x256(&dst[i*ldd], &q[i*n], &k[0], fours, n, 2*stride, 4*ldd, ahead)
		for j := i; j < i+3 && fours < rows; j++ {
			scoresF16x256(&dst[j*ldd+fours], &q[j*n], &k[fours*stride], rows-fours, n, 2*stride)
		}
	}
	return i
}

// mixManyAVX2 does three queries at a time and leaves the rest.
func mixManyAVX2(dst []float32, ldd, n int, p []float32, ldp, nq int, v []uint16, rows, stride int, ahead uintptr) (i int) {
	wide := n &^ 31
	if wide == 0 {
		return 0
	}
	for ; i+3 <= nq; i += 3 {
		mix3x256(&dst[i*ldd], &p[i*ldp], &v[0], rows, wide, 2*stride, 4*ldd, 4*ldp, ahead)
		for j := i; j < i+3 && wide < n; j++ {
			mixF16AVX2(dst[j*ldd+wide:j*ldd+n], p[j*ldp:j*ldp+rows], v[wide:], stride)
		}
	}
	return i
}

// attend is the argument of the kernels in attend_avx512_amd64.s, which read it.
// Distances are bytes.
type attend struct {
	dst    unsafe.Pointer // float32: results of a query, ldd further on those of the next
	ldd    uintptr
	x      unsafe.Pointer // float32: queries of n values, or weights of rows, ldx apart
	ldx    uintptr
	rows   unsafe.Pointer // halves, stride apart
	stride uintptr
	count  int     // of rows
	n      int     // values of a row that take part: a multiple of 16
	ahead  uintptr // from a row to what is fetched with it
}

//go:noescape
func scoresF16by1x512(p *attend)

//go:noescape
func scoresF16by2x512(p *attend)

//go:noescape
func scoresF16by3x512(p *attend)

//go:noescape
func scoresF16by4x512(p *attend)

//go:noescape
func scoresF16by5x512(p *attend)

//go:noescape
func scoresF16by6x512(p *attend)

//go:noescape
func mixF16by1x512(p *attend)

//go:noescape
func mixF16by2x512(p *attend)

//go:noescape
func mixF16by3x512(p *attend)

//go:noescape
func mixF16by4x512(p *attend)

//go:noescape
func mixF16by5x512(p *attend)

//go:noescape
func mixF16by6x512(p *attend)

// share gives how many of nq queries to take next: at most 6, and as even as can be.
func share(nq int) int {
	calls := (nq + 5) / 6
	return (nq + calls - 1) / calls
}

// scoresManyAVX512 does all queries.
func scoresManyAVX512(dst []float32, ldd int, q []float32, nq, n int, k []uint16, rows, stride int, ahead uintptr) int {
	if n%16 != 0 {
		return scoresManyAVX2(dst, ldd, q, nq, n, k, rows, stride, ahead)
	}
	a := attend{ldd: uintptr(4 * ldd), rows: unsafe.Pointer(&k[0]), stride: uintptr(2 * stride), count: rows, n: n, ahead: ahead}
	for i := 0; i < nq; {
		a.dst, a.x = unsafe.Pointer(&dst[i*ldd]), unsafe.Pointer(&q[i*n])
		m := share(nq - i)
		switch m {
		case 1:
			scoresF16by1x512(&a)
		case 2:
			scoresF16by2x512(&a)
		case 3:
			scoresF16by3x512(&a)
		case 4:
			scoresF16by4x512(&a)
		case 5:
			scoresF16by5x512(&a)
		default:
			scoresF16by6x512(&a)
		}
		i, a.ahead = i+m, 0
	}
	return nq
}

// mixManyAVX512 does all queries.
func mixManyAVX512(dst []float32, ldd, n int, p []float32, ldp, nq int, v []uint16, rows, stride int, ahead uintptr) int {
	if n%16 != 0 {
		return mixManyAVX2(dst, ldd, n, p, ldp, nq, v, rows, stride, ahead)
	}
	a := attend{ldd: uintptr(4 * ldd), ldx: uintptr(4 * ldp), rows: unsafe.Pointer(&v[0]), stride: uintptr(2 * stride), count: rows, n: n, ahead: ahead}
	for i := 0; i < nq; {
		a.dst, a.x = unsafe.Pointer(&dst[i*ldd]), unsafe.Pointer(&p[i*ldp])
		m := share(nq - i)
		switch m {
		case 1:
			mixF16by1x512(&a)
		case 2:
			mixF16by2x512(&a)
		case 3:
			mixF16by3x512(&a)
		case 4:
			mixF16by4x512(&a)
		case 5:
			mixF16by5x512(&a)
		default:
			mixF16by6x512(&a)
		}
		i, a.ahead = i+m, 0
	}
	return nq
}

// avx512Vec is the AVX2 operations, 32-byte registers being as fast on Zen 4,
// but for those that have many queries at once.
var avx512Vec = func() vecOps {
	v := avx2Vec
	v.scoresF16 = func(dst, q []float32, k []uint16, stride int) {
		if len(q)%16 != 0 || len(q) == 0 {
			scoresF16AVX2(dst, q, k, stride)
			return
		}
		scoresManyAVX512(dst, len(dst), q, 1, len(q), k, len(dst), stride, 0)
	}
	return v
}()
