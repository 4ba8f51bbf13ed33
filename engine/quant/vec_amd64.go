package quant

import "unsafe"

// The vector operations of levels with AVX2. The assembly takes multiples of
// eight floats; the rest of a slice goes through eight floats of its own, so
// that every value is computed the same way wherever it stands.

// avx2Vec is the set of AVX2 operations.
var avx2Vec = vecOps{
	dotF32: dotAVX2, axpyF32: axpyAVX2, scaleF32: scaleAVX2, scaleMulF32: scaleMulAVX2,
	addF32: addAVX2, mulF32: mulAVX2,
	exp: expAVX2, sigmoid: sigmoidAVX2, silu: siluAVX2, swiGLU: swiGLUAVX2, geGLU: geGLUAVX2,
	max: maxAVX2, expSum: expSumAVX2,
	toF16: toF16AVX2, scoresF16: scoresF16AVX2, mixF16: mixF16AVX2,
	sweep: sweepAVX2,
}

//go:noescape
func exp256(dst, x *float32, n int)

//go:noescape
func expSum256(x *float32, n int, top float32) (sum float32)

//go:noescape
func sigmoid256(dst, x *float32, n int)

//go:noescape
func silu256(dst, x *float32, n int)

//go:noescape
func swiGLU256(dst, gate, up *float32, n int)

//go:noescape
func geGLU256(dst, gate, up *float32, n int)

//go:noescape
func dot256(a, b *float32, n int) (sum float32)

//go:noescape
func axpy256(dst, x *float32, n int, s float32)

//go:noescape
func scale256(dst *float32, n int, s float32)

//go:noescape
func scaleMul256(dst, x, w *float32, n int, s float32)

//go:noescape
func add256(dst, x *float32, n int)

//go:noescape
func mul256(dst, x *float32, n int)

//go:noescape
func max256(x *float32, n int) (top float32)

//go:noescape
func toF16x256(dst *uint16, x *float32, n int)

//go:noescape
func sweep256(b *byte, n int) (x uint64)

func sweepAVX2(b []byte) uint64 { return sweep256(&b[0], len(b)) }

func dotAVX2(a, b []float32) (s float32) {
	n := len(a) &^ 7
	if n > 0 {
		s = dot256(&a[0], &b[0], n)
	}
	if n < len(a) {
		var x, y [8]float32
		copy(x[:], a[n:])
		copy(y[:], b[n:len(a)])
		s += dot256(&x[0], &y[0], 8)
	}
	return s
}

func axpyAVX2(dst []float32, s float32, x []float32) {
	n := len(dst) &^ 7
	if n > 0 {
		axpy256(&dst[0], &x[0], n, s)
	}
	if n < len(dst) {
		var y, z [8]float32
		copy(y[:], dst[n:])
		copy(z[:], x[n:len(dst)])
		axpy256(&y[0], &z[0], 8, s)
		copy(dst[n:], y[:])
	}
}

func scaleAVX2(dst []float32, s float32) {
	n := len(dst) &^ 7
	if n > 0 {
		scale256(&dst[0], n, s)
	}
	plainScaleF32(dst[n:], s)
}

func scaleMulAVX2(dst, x []float32, s float32, w []float32) {
	n := len(dst) &^ 7
	if n > 0 {
		scaleMul256(&dst[0], &x[0], &w[0], n, s)
	}
	plainScaleMulF32(dst[n:], x[n:], s, w[n:])
}

func addAVX2(dst, x []float32) {
	n := len(dst) &^ 7
	if n > 0 {
		add256(&dst[0], &x[0], n)
	}
	plainAddF32(dst[n:], x[n:])
}

func mulAVX2(dst, x []float32) {
	n := len(dst) &^ 7
	if n > 0 {
		mul256(&dst[0], &x[0], n)
	}
	plainMulF32(dst[n:], x[n:])
}

func expAVX2(dst, x []float32) {
	n := len(dst) &^ 7
	if n > 0 {
		exp256(&dst[0], &x[0], n)
	}
	if n < len(dst) {
		var y [8]float32
		copy(y[:], x[n:len(dst)])
		exp256(&y[0], &y[0], 8)
		copy(dst[n:], y[:])
	}
}

func sigmoidAVX2(dst, x []float32) {
	n := len(dst) &^ 7
	if n > 0 {
		sigmoid256(&dst[0], &x[0], n)
	}
	if n < len(dst) {
		var y [8]float32
		copy(y[:], x[n:len(dst)])
		sigmoid256(&y[0], &y[0], 8)
		copy(dst[n:], y[:])
	}
}

func siluAVX2(dst, x []float32) {
	n := len(dst) &^ 7
	if n > 0 {
		silu256(&dst[0], &x[0], n)
	}
	if n < len(dst) {
		var y [8]float32
		copy(y[:], x[n:len(dst)])
		silu256(&y[0], &y[0], 8)
		copy(dst[n:], y[:])
	}
}

func swiGLUAVX2(dst, gate, up []float32) {
	n := len(dst) &^ 7
	if n > 0 {
		swiGLU256(&dst[0], &gate[0], &up[0], n)
	}
	if n < len(dst) {
		var y, z [8]float32
		copy(y[:], gate[n:len(dst)])
		copy(z[:], up[n:len(dst)])
		swiGLU256(&y[0], &y[0], &z[0], 8)
		copy(dst[n:], y[:])
	}
}

func geGLUAVX2(dst, gate, up []float32) {
	n := len(dst) &^ 7
	if n > 0 {
		geGLU256(&dst[0], &gate[0], &up[0], n)
	}
	if n < len(dst) {
		var y, z [8]float32
		copy(y[:], gate[n:len(dst)])
		copy(z[:], up[n:len(dst)])
		geGLU256(&y[0], &y[0], &z[0], 8)
		copy(dst[n:], y[:])
	}
}

func maxAVX2(x []float32) float32 {
	n := len(x) &^ 7
	if n == 0 {
		return plainMax(x)
	}
	top := max256(&x[0], n)
	for _, v := range x[n:] {
		if v > top {
			top = v
		}
	}
	return top
}

func expSumAVX2(x []float32, top float32) (s float32) {
	n := len(x) &^ 7
	if n > 0 {
		s = expSum256(&x[0], n, top)
	}
	if n < len(x) {
		var y [8]float32
		copy(y[:], x[n:])
		expSum256(&y[0], 8, top)
		copy(x[n:], y[:])
		for _, v := range x[n:] {
			s += v
		}
	}
	return s
}

func toF16AVX2(dst []uint16, x []float32) {
	n := len(x) &^ 7
	if n > 0 {
		toF16x256(&dst[0], &x[0], n)
	}
	plainToF16(dst[n:], x[n:])
}

func scoresF16AVX2(dst, q []float32, k []uint16, stride int) {
	n := len(q) &^ 7
	if n < len(q) || n == 0 {
		plainScoresF16(dst, q, k, stride)
		return
	}
	scoresF16x256(&dst[0], &q[0], unsafe.Pointer(&k[0]), len(dst), n, 2*stride)
}

func mixF16AVX2(dst, p []float32, v []uint16, stride int) {
	n := len(dst) &^ 7
	if n < len(dst) || n == 0 {
		plainMixF16(dst, p, v, stride)
		return
	}
	mixF16x256(&dst[0], &p[0], unsafe.Pointer(&v[0]), len(p), n, 2*stride)
}
