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

// CacheTile is the length of the buffer that a call over rows in 8 or 4 bits of
// wide values needs: a few rows as floats, which stay in the first cache.
func CacheTile(wide int) int { return tileRows(wide) * wide }

func tileRows(wide int) int { return max(4, min(32, 4096/max(1, wide)&^3)) }

// Whole numbers of two signed bytes, 256*high + low, for products with bytes:
// 64 values of a query, and the weights of up to 256 rows. A value is about
// scale times its number; less is -128 times the sum of all numbers, which is
// what sums of products begin with where 128 is added to the other factor.
// Read by assembly, as the next one.
type whole8 struct {
	high, low [cacheBlock]int8
	scale     float32
	less      int32
}

const rows8Most = 256

type rows8 struct {
	high, low [rows8Most]int8
	scale     float32
	less      int32
}

// attend8 is the argument of kernels over 8-bit rows. Distances are bytes.
type attend8 struct {
	rows          unsafe.Pointer // stride apart
	stride        uintptr
	count, groups int // of rows, and of 64 values of a row
	nq            int
	ahead         uintptr        // from rows to what is fetched meanwhile
	fetch         uintptr        // where sums begin to fetch
	lines         int            // of 64 bytes, fetched for each query of scores, or each four rows of sums
	x             unsafe.Pointer // queries: whole8 by group and query; or weights: floats, ldx apart
	ldx           uintptr
	dst           unsafe.Pointer // float32, ldd from a query to the next
	ldd           uintptr
	weights       unsafe.Pointer // rows8 by query
	index         [16]int32      // where 16 rows begin
	scales        [rows8Most]float32
}

// ScoresMany8 is ScoresManyF16 for 8-bit rows of wide values (a multiple of 64)
// that follow each other, of which the first n take part. Where a level has
// products of bytes, a query is rounded to 16 bits for each 64 values.
func ScoresMany8(dst []float32, ldd int, q []float32, nq, n int, k []byte, rows, wide int, next []byte, tile []float32) {
	size, step := Cache8Bytes(wide), tileRows(wide)
	if scores := active.Load().scores8; scores != nil && n == wide && nq > 0 && rows > 0 {
		_, _, _ = dst[(nq-1)*ldd+rows-1], q[nq*n-1], k[rows*size-1]
		g := getWork()
		scores(g, dst, ldd, q, nq, n, k, rows, ahead(k, next))
		putWork(g)
		return
	}
	for r := 0; r < rows; r += step {
		m := min(step, rows-r)
		vec.fromCache8(tile[:m*wide], k[r*size:(r+m)*size], ahead(k, next))
		ScoresManyF32(dst[r:], ldd, q, nq, n, tile, m, wide)
	}
}

// MixMany8 is MixManyF16 for 8-bit rows, as ScoresMany8: weights are rounded to
// 16 bits for each 256 rows.
func MixMany8(dst []float32, ldd, n int, p []float32, ldp, nq int, v []byte, rows, wide int, next []byte, tile []float32) {
	size, step := Cache8Bytes(wide), tileRows(wide)
	if mix := active.Load().mix8; mix != nil && n == wide && nq > 0 && rows > 0 {
		_, _, _ = dst[(nq-1)*ldd+n-1], p[(nq-1)*ldp+rows-1], v[rows*size-1]
		g := getWork()
		for r := 0; r < rows; r += rows8Most {
			mix(g, dst, ldd, n, p[r:], ldp, nq, v[r*size:], min(rows8Most, rows-r), ahead(v, next))
		}
		putWork(g)
		return
	}
	for r := 0; r < rows; r += step {
		m := min(step, rows-r)
		vec.fromCache8(tile[:m*wide], v[r*size:(r+m)*size], ahead(v, next))
		MixManyF32(dst, ldd, n, p[r:], ldp, nq, tile, m, wide)
	}
}

// ScoresMany4 is ScoresMany8 for 4-bit rows.
func ScoresMany4(dst []float32, ldd int, q []float32, nq, n int, k []byte, rows, wide int, next []byte, tile []float32) {
	size, step := Cache4Bytes(wide), tileRows(wide)
	for r := 0; r < rows; r += step {
		m := min(step, rows-r)
		vec.fromCache4(tile[:m*wide], k[r*size:(r+m)*size], ahead(k, next))
		ScoresManyF32(dst[r:], ldd, q, nq, n, tile, m, wide)
	}
}

// MixMany4 is MixMany8 for 4-bit rows.
func MixMany4(dst []float32, ldd, n int, p []float32, ldp, nq int, v []byte, rows, wide int, next []byte, tile []float32) {
	size, step := Cache4Bytes(wide), tileRows(wide)
	for r := 0; r < rows; r += step {
		m := min(step, rows-r)
		vec.fromCache4(tile[:m*wide], v[r*size:(r+m)*size], ahead(v, next))
		MixManyF32(dst, ldd, n, p[r:], ldp, nq, tile, m, wide)
	}
}

// ahead is how many bytes next lies past rows; 0 stands for nothing to fetch.
func ahead[T any](rows, next []T) uintptr {
	if len(rows) == 0 || len(next) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&next[0])) - uintptr(unsafe.Pointer(&rows[0]))
}
