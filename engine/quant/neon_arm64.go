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

// neonOperand is what one product reads: pointers, and how many blocks.
type neonOperand struct {
	w      *byte
	q      *int8
	d      *float32
	s      *int16
	blocks int
}

// operand checks the lengths of one product, which the assembly trusts, and
// takes the pointers. Blocks have n values in size bytes.
func operand(row []byte, a *Acts, i, n, size int) neonOperand {
	blocks := a.n / n
	if blocks == 0 {
		return neonOperand{}
	}
	row = row[:blocks*size]
	q := a.q[i*a.stride : (i+1)*a.stride]
	d := a.d[i*a.stride/32 : (i+1)*a.stride/32]
	s := a.s[i*a.stride/16 : (i+1)*a.stride/16]
	return neonOperand{unsafe.SliceData(row), unsafe.SliceData(q), unsafe.SliceData(d), unsafe.SliceData(s), blocks}
}

// neonDots are the products of one row with one activation row, as Format.Dot.
// They allocate nothing.
var neonDots = [typeCount]func(row []byte, a *Acts, i int) float32{
	Q8_0: func(row []byte, a *Acts, i int) float32 {
		o := operand(row, a, i, 32, 34)
		return neonQ8_0(o.w, o.q, o.d, o.blocks)
	},
	Q4_0: func(row []byte, a *Acts, i int) float32 {
		o := operand(row, a, i, 32, 18)
		return neonQ4_0(o.w, o.q, o.d, o.blocks)
	},
	Q4_1: func(row []byte, a *Acts, i int) float32 {
		o := operand(row, a, i, 32, 20)
		return neonQ4_1(o.w, o.q, o.d, o.s, o.blocks)
	},
	IQ4_NL: func(row []byte, a *Acts, i int) float32 {
		o := operand(row, a, i, 32, 18)
		return neonIQ4_NL(o.w, o.q, o.d, o.blocks, &levels4)
	},
	IQ4_XS: func(row []byte, a *Acts, i int) float32 {
		o := operand(row, a, i, 256, 136)
		return neonIQ4_XS(o.w, o.q, o.d, o.blocks, &levels4)
	},
	Q4_K: func(row []byte, a *Acts, i int) float32 {
		o := operand(row, a, i, 256, 144)
		return neonQ4_K(o.w, o.q, o.d, o.s, o.blocks)
	},
	Q6_K: func(row []byte, a *Acts, i int) float32 {
		o := operand(row, a, i, 256, 210)
		return neonQ6_K(o.w, o.q, o.d, o.blocks)
	},
}
