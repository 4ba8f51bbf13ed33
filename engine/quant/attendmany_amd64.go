package quant

//go:noescape
func scores3x256(dst, q *float32, k *uint16, rows, n, stride, ldd int)

//go:noescape
func mix3x256(dst, p *float32, v *uint16, rows, n, stride, ldd, ldp int)

// scores3AVX2 takes three queries; rows is a multiple of 4, n of 8.
func scores3AVX2(dst []float32, ldd int, q []float32, n int, k []uint16, rows, stride int) {
	_, _, _ = dst[2*ldd+rows-1], q[3*n-1], k[(rows-1)*stride+n-1]
	scores3x256(&dst[0], &q[0], &k[0], rows, n, 2*stride, 4*ldd)
}

// mix3AVX2 takes three queries; n is a multiple of 32.
func mix3AVX2(dst []float32, ldd, n int, p []float32, ldp int, v []uint16, rows, stride int) {
	_, _, _ = dst[2*ldd+n-1], p[2*ldp+rows-1], v[(rows-1)*stride+n-1]
	mix3x256(&dst[0], &p[0], &v[0], rows, n, 2*stride, 4*ldd, 4*ldp)
}
