package quant

import "unsafe"

// Several queries over the same cached rows. A row is brought to floats once for
// a few queries; what one query gets is the same bits whatever others are in a
// call, and for halves those of ScoresF16 and MixF16. next is where rows lie that will be read soon, as many
// and as far apart as these: kernels that can fetch them into the second cache
// meanwhile, which is what keeps memory busy while they multiply. It may be nil.

// ScoresManyF16 writes the products of nq queries of n values, one after the
// other in q, with rows rows of halves: dst[i*ldd+r] = query i times
// k[r*stride:][:n].
func ScoresManyF16(dst []float32, ldd int, q []float32, nq, n int, k []uint16, rows, stride int, next []uint16) {
	if nq == 0 || rows == 0 {
		return
	}
	i := 0
	if scores := active.Load().scoresMany; scores != nil && n > 0 {
		_, _, _ = dst[(nq-1)*ldd+rows-1], q[nq*n-1], k[(rows-1)*stride+n-1]
		i = scores(dst, ldd, q, nq, n, unsafe.Pointer(&k[0]), 2, rows, stride, ahead(k, next))
	}
	for ; i < nq; i++ {
		ScoresF16(dst[i*ldd:i*ldd+rows], q[i*n:(i+1)*n], k, stride)
	}
}

// MixManyF16 adds to dst[i*ldd:][:n], for each of nq queries, the sum of
// p[i*ldp+r] times row r of v, for rows rows.
func MixManyF16(dst []float32, ldd, n int, p []float32, ldp, nq int, v []uint16, rows, stride int, next []uint16) {
	if nq == 0 || rows == 0 {
		return
	}
	i := 0
	if mix := active.Load().mixMany; mix != nil && n > 0 {
		_, _, _ = dst[(nq-1)*ldd+n-1], p[(nq-1)*ldp+rows-1], v[(rows-1)*stride+n-1]
		i = mix(dst, ldd, n, p, ldp, nq, unsafe.Pointer(&v[0]), 2, rows, stride, ahead(v, next))
	}
	for ; i < nq; i++ {
		MixF16(dst[i*ldd:i*ldd+n], p[i*ldp:i*ldp+rows], v, stride)
	}
}

// ScoresManyF32 is ScoresManyF16 for rows of floats.
func ScoresManyF32(dst []float32, ldd int, q []float32, nq, n int, k []float32, rows, stride int) {
	if nq == 0 || rows == 0 || n == 0 {
		return
	}
	_, _, _ = dst[(nq-1)*ldd+rows-1], q[nq*n-1], k[(rows-1)*stride+n-1]
	i := 0
	if scores := active.Load().scoresMany; scores != nil {
		i = scores(dst, ldd, q, nq, n, unsafe.Pointer(&k[0]), 4, rows, stride, 0)
	}
	for ; i < nq; i++ {
		for r := range rows {
			dst[i*ldd+r] = DotF32(q[i*n:(i+1)*n], k[r*stride:])
		}
	}
}

// MixManyF32 is MixManyF16 for rows of floats.
func MixManyF32(dst []float32, ldd, n int, p []float32, ldp, nq int, v []float32, rows, stride int) {
	if nq == 0 || rows == 0 || n == 0 {
		return
	}
	_, _, _ = dst[(nq-1)*ldd+n-1], p[(nq-1)*ldp+rows-1], v[(rows-1)*stride+n-1]
	i := 0
	if mix := active.Load().mixMany; mix != nil {
		i = mix(dst, ldd, n, p, ldp, nq, unsafe.Pointer(&v[0]), 4, rows, stride, 0)
	}
	for ; i < nq; i++ {
		for r := range rows {
			AxpyF32(dst[i*ldd:i*ldd+n], p[i*ldp+r], v[r*stride:])
		}
	}
}

// ahead is how many bytes next lies past rows; 0 stands for nothing to fetch.
func ahead[T any](rows, next []T) uintptr {
	if len(rows) == 0 || len(next) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&next[0])) - uintptr(unsafe.Pointer(&rows[0]))
}
