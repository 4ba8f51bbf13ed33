package quant

import (
	"math"
	"unsafe"
)

//go:noescape
func scoresF16by3x256(dst, q *float32, k unsafe.Pointer, rows, n, stride, ldd int, ahead uintptr)

//go:noescape
func mixF16by3x256(dst, p *float32, v unsafe.Pointer, rows, n, stride, ldd, ldp int, ahead uintptr)

//go:noescape
func scoresF16x256(dst, q *float32, k unsafe.Pointer, rows, n, stride int)

//go:noescape
func mixF16x256(dst, p *float32, v unsafe.Pointer, rows, n, stride int)

//go:noescape
func scoresF32by3x256(dst, q *float32, k unsafe.Pointer, rows, n, stride, ldd int, ahead uintptr)

//go:noescape
func mixF32by3x256(dst, p *float32, v unsafe.Pointer, rows, n, stride, ldd, ldp int, ahead uintptr)

//go:noescape
func scoresF32x256(dst, q *float32, k unsafe.Pointer, rows, n, stride int)

//go:noescape
func mixF32x256(dst, p *float32, v unsafe.Pointer, rows, n, stride int)

// scoresManyAVX2 takes rows of values of size bytes; it leaves queries of odd
// lengths.
func scoresManyAVX2(dst []float32, ldd int, q []float32, nq, n int, k unsafe.Pointer, size, rows, stride int, ahead uintptr) (i int) {
	if n%8 != 0 {
		return 0
	}
	fours := rows &^ 3
	for ; i < nq; i++ {
		from := 0
		if i+3 <= nq && fours > 0 && i%3 == 0 {
			if size == 2 {
				scoresF16by3x256(&dst[i*ldd], &q[i*n], k, fours, n, 2*stride, 4*ldd, ahead)
			} else {
				scoresF32by3x256(&dst[i*ldd], &q[i*n], k, fours, n, 4*stride, 4*ldd, ahead)
			}
		}
		if i/3*3+3 <= nq {
			from = fours
		}
		switch rest := unsafe.Add(k, from*stride*size); {
		case from == rows:
		case size == 2:
			scoresF16x256(&dst[i*ldd+from], &q[i*n], rest, rows-from, n, 2*stride)
		default:
			scoresF32x256(&dst[i*ldd+from], &q[i*n], rest, rows-from, n, 4*stride)
		}
	}
	return nq
}

// mixManyAVX2 is the same for sums of values.
func mixManyAVX2(dst []float32, ldd, n int, p []float32, ldp, nq int, v unsafe.Pointer, size, rows, stride int, ahead uintptr) (i int) {
	if n%8 != 0 {
		return 0
	}
	wide := n &^ 31
	for ; i < nq; i++ {
		from := 0
		if i+3 <= nq && wide > 0 && i%3 == 0 {
			if size == 2 {
				mixF16by3x256(&dst[i*ldd], &p[i*ldp], v, rows, wide, 2*stride, 4*ldd, 4*ldp, ahead)
			} else {
				mixF32by3x256(&dst[i*ldd], &p[i*ldp], v, rows, wide, 4*stride, 4*ldd, 4*ldp, ahead)
			}
		}
		if i/3*3+3 <= nq {
			from = wide
		}
		switch rest := unsafe.Add(v, from*size); {
		case from == n:
		case size == 2:
			mixF16x256(&dst[i*ldd+from], &p[i*ldp], rest, rows, n-from, 2*stride)
		default:
			mixF32x256(&dst[i*ldd+from], &p[i*ldp], rest, rows, n-from, 4*stride)
		}
	}
	return nq
}

// attend is the argument of the kernels in attend_avx512_amd64.s, which read it.
// Distances are bytes.
type attend struct {
	dst    unsafe.Pointer // float32: results of a query, ldd further on those of the next
	ldd    uintptr
	x      unsafe.Pointer // float32: queries of n values, or weights of rows, ldx apart
	ldx    uintptr
	rows   unsafe.Pointer // halves or floats, stride apart
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
func scoresF32by1x512(p *attend)

//go:noescape
func scoresF32by2x512(p *attend)

//go:noescape
func scoresF32by3x512(p *attend)

//go:noescape
func scoresF32by4x512(p *attend)

//go:noescape
func scoresF32by5x512(p *attend)

//go:noescape
func scoresF32by6x512(p *attend)

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

//go:noescape
func mixF32by1x512(p *attend)

//go:noescape
func mixF32by2x512(p *attend)

//go:noescape
func mixF32by3x512(p *attend)

//go:noescape
func mixF32by4x512(p *attend)

//go:noescape
func mixF32by5x512(p *attend)

//go:noescape
func mixF32by6x512(p *attend)

// share gives how many of nq queries to take next: at most 6, and as even as can be.
func share(nq int) int {
	calls := (nq + 5) / 6
	return (nq + calls - 1) / calls
}

// scoresManyAVX512 does all queries of lengths that are multiples of 16.
func scoresManyAVX512(dst []float32, ldd int, q []float32, nq, n int, k unsafe.Pointer, size, rows, stride int, ahead uintptr) int {
	if n%16 != 0 {
		return scoresManyAVX2(dst, ldd, q, nq, n, k, size, rows, stride, ahead)
	}
	a := attend{ldd: uintptr(4 * ldd), rows: k, stride: uintptr(size * stride), count: rows, n: n, ahead: ahead}
	for i := 0; i < nq; {
		a.dst, a.x = unsafe.Pointer(&dst[i*ldd]), unsafe.Pointer(&q[i*n])
		m := share(nq - i)
		if size == 2 {
			scoresF16x512(&a, m)
		} else {
			scoresF32x512(&a, m)
		}
		i, a.ahead = i+m, 0
	}
	return nq
}

// mixManyAVX512 does all queries of lengths that are multiples of 16.
func mixManyAVX512(dst []float32, ldd, n int, p []float32, ldp, nq int, v unsafe.Pointer, size, rows, stride int, ahead uintptr) int {
	if n%16 != 0 {
		return mixManyAVX2(dst, ldd, n, p, ldp, nq, v, size, rows, stride, ahead)
	}
	a := attend{ldd: uintptr(4 * ldd), ldx: uintptr(4 * ldp), rows: v, stride: uintptr(size * stride), count: rows, n: n, ahead: ahead}
	for i := 0; i < nq; {
		a.dst, a.x = unsafe.Pointer(&dst[i*ldd]), unsafe.Pointer(&p[i*ldp])
		m := share(nq - i)
		if size == 2 {
			mixF16x512(&a, m)
		} else {
			mixF32x512(&a, m)
		}
		i, a.ahead = i+m, 0
	}
	return nq
}

func scoresF16x512(a *attend, m int) {
	switch m {
	case 1:
		scoresF16by1x512(a)
	case 2:
		scoresF16by2x512(a)
	case 3:
		scoresF16by3x512(a)
	case 4:
		scoresF16by4x512(a)
	case 5:
		scoresF16by5x512(a)
	default:
		scoresF16by6x512(a)
	}
}

func scoresF32x512(a *attend, m int) {
	switch m {
	case 1:
		scoresF32by1x512(a)
	case 2:
		scoresF32by2x512(a)
	case 3:
		scoresF32by3x512(a)
	case 4:
		scoresF32by4x512(a)
	case 5:
		scoresF32by5x512(a)
	default:
		scoresF32by6x512(a)
	}
}

func mixF16x512(a *attend, m int) {
	switch m {
	case 1:
		mixF16by1x512(a)
	case 2:
		mixF16by2x512(a)
	case 3:
		mixF16by3x512(a)
	case 4:
		mixF16by4x512(a)
	case 5:
		mixF16by5x512(a)
	default:
		mixF16by6x512(a)
	}
}

func mixF32x512(a *attend, m int) {
	switch m {
	case 1:
		mixF32by1x512(a)
	case 2:
		mixF32by2x512(a)
	case 3:
		mixF32by3x512(a)
	case 4:
		mixF32by4x512(a)
	case 5:
		mixF32by5x512(a)
	default:
		mixF32by6x512(a)
	}
}

//go:noescape
func expSum512(x *float32, n int, top float32) (sum float32)

func expSumAVX512(x []float32, top float32) (s float32) {
	n := len(x) &^ 31
	if n > 0 {
		s = expSum512(&x[0], n, top)
	}
	if n < len(x) {
		var y [32]float32
		for i := copy(y[:], x[n:]); i < len(y); i++ {
			y[i] = float32(math.Inf(-1))
		}
		s += expSum512(&y[0], 32, top)
		copy(x[n:], y[:])
	}
	return s
}

// avx512Vec is the AVX2 operations, 32-byte registers being as fast on Zen 4,
// but for those that have many queries at once.
var avx512Vec = func() vecOps {
	v := avx2Vec
	v.expSum = expSumAVX512
	v.scoresF16 = func(dst, q []float32, k []uint16, stride int) {
		if len(q)%16 != 0 || len(q) == 0 {
			scoresF16AVX2(dst, q, k, stride)
			return
		}
		scoresManyAVX512(dst, len(dst), q, 1, len(q), unsafe.Pointer(&k[0]), 2, len(dst), stride, 0)
	}
	return v
}()
