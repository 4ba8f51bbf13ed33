package quant

import "unsafe"

// The products for arm64 processors with the signed dot product instruction
// (ASIMDDP: Cortex-A55 and A76, Neoverse N1, Apple A11 and later). Each is one
// row with one activation row, with the same whole numbers as the plain loops;
// only the order of the float sums differs.
//
// w points to blocks blocks, q, d and s to the activations that they cover.

//go:noescape
func neonQ8_0(w *byte, q *int8, d *float32, blocks int) float32

//go:noescape
func neonQ4_0(w *byte, q *int8, d *float32, blocks int) float32

//go:noescape
func neonQ4_1(w *byte, q *int8, d *float32, s *int16, blocks int) float32

//go:noescape
func neonIQ4_NL(w *byte, q *int8, d *float32, blocks int, levels *[16]int8) float32

//go:noescape
func neonIQ4_XS(w *byte, q *int8, d *float32, blocks int, levels *[16]int8) float32

//go:noescape
func neonQ4_K(w *byte, q *int8, d *float32, s *int16, blocks int) float32

//go:noescape
func neonQ6_K(w *byte, q *int8, d *float32, blocks int) float32

// dotNEON is the product of a row of format t with activation row i of a, as
// Format.Dot. ok is false for formats without a kernel.
func dotNEON(t Type) (dot func(row []byte, a *Acts, i int) float32, ok bool) {
	switch t {
	case Q8_0:
		return neonRow(34, 32, func(r *neonArgs) float32 { return neonQ8_0(r.w, r.q, r.d, r.blocks) }), true
	case Q4_0:
		return neonRow(18, 32, func(r *neonArgs) float32 { return neonQ4_0(r.w, r.q, r.d, r.blocks) }), true
	case Q4_1:
		return neonRow(20, 32, func(r *neonArgs) float32 { return neonQ4_1(r.w, r.q, r.d, r.s, r.blocks) }), true
	case IQ4_NL:
		return neonRow(18, 32, func(r *neonArgs) float32 { return neonIQ4_NL(r.w, r.q, r.d, r.blocks, &levels4) }), true
	case IQ4_XS:
		return neonRow(136, 256, func(r *neonArgs) float32 { return neonIQ4_XS(r.w, r.q, r.d, r.blocks, &levels4) }), true
	case Q4_K:
		return neonRow(144, 256, func(r *neonArgs) float32 { return neonQ4_K(r.w, r.q, r.d, r.s, r.blocks) }), true
	case Q6_K:
		return neonRow(210, 256, func(r *neonArgs) float32 { return neonQ6_K(r.w, r.q, r.d, r.blocks) }), true
	}
	return nil, false
}

// neonArgs are the pointers of one product.
type neonArgs struct {
	w      *byte
	q      *int8
	d      *float32
	s      *int16
	blocks int
}

// neonRow checks the lengths of one product, which the assembly trusts, and
// takes the pointers.
func neonRow(size, n int, kernel func(*neonArgs) float32) func([]byte, *Acts, int) float32 {
	return func(row []byte, a *Acts, i int) float32 {
		blocks := a.n / n
		if blocks == 0 {
			return 0
		}
		row = row[:blocks*size]
		q := a.q[i*a.stride : (i+1)*a.stride]
		d := a.d[i*a.stride/32 : (i+1)*a.stride/32]
		s := a.s[i*a.stride/16 : (i+1)*a.stride/16]
		return kernel(&neonArgs{unsafe.SliceData(row), unsafe.SliceData(q), unsafe.SliceData(d), unsafe.SliceData(s), blocks})
	}
}
