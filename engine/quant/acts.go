package quant

import "math"

// Acts is t activation rows of n floats and their 8-bit copy. The copy rounds
// each 32 values with one float32 scale to integers of -127..127, to nearest,
// ties to even: value is about d*q with d = max|x|/127. A block of zeros has
// d = 0. A block with a NaN or an infinity has d = NaN, so that every product
// that touches it is NaN and the engine can see it.
type Acts struct {
	t, n   int
	stride int       // n rounded up to a multiple of 32: row distance in q
	x      []float32 // t rows of n: the caller's
	q      []int8    // t rows of stride; values past n are 0
	d      []float32 // t rows of stride/32: one scale per 32 values
	s      []int16   // t rows of stride/16: sum of q over 16 values
	lanes  []uint64  // t rows of stride/4: q spread for the plain loops (swar.go)
}

// Set makes a stand for t rows of n floats, row by row in x. x is referenced,
// not copied. Buffers grow when needed and are used again.
func (a *Acts) Set(x []float32, t, n int) {
	a.t, a.n, a.stride = t, n, (n+31)&^31
	a.x = x[:t*n]
	size := t * a.stride
	if cap(a.q) < size {
		a.q = make([]int8, size)
		a.d = make([]float32, size/32)
		a.s = make([]int16, size/16)
		a.lanes = make([]uint64, size/4)
	}
	a.q, a.d, a.s, a.lanes = a.q[:size], a.d[:size/32], a.s[:size/16], a.lanes[:size/4]
}

// Quantize makes the 8-bit copies of rows lo to hi-1. Calls with disjoint
// ranges may run at the same time. Mul with a format that is not Float needs it.
func (a *Acts) Quantize(lo, hi int) {
	for t := lo; t < hi; t++ {
		x := a.x[t*a.n : (t+1)*a.n]
		q := a.q[t*a.stride : (t+1)*a.stride]
		d := a.d[t*a.stride/32 : (t+1)*a.stride/32]
		s := a.s[t*a.stride/16 : (t+1)*a.stride/16]
		for b := range d {
			lo, hi := b*32, min(b*32+32, len(x))
			d[b] = quantize32(q[b*32:b*32+32], x[lo:hi])
			s[2*b] = sum16(q[b*32 : b*32+16])
			s[2*b+1] = sum16(q[b*32+16 : b*32+32])
		}
		spread(a.lanes[t*a.stride/4:(t+1)*a.stride/4], q)
	}
}

// quantize32 rounds up to 32 values to q and gives back the scale. Values that
// x lacks are 0.
func quantize32(q []int8, x []float32) float32 {
	var most float32
	for _, v := range x {
		v = float32(math.Abs(float64(v)))
		if !(v <= math.MaxFloat32) {
			clear(q)
			return float32(math.NaN())
		}
		most = max(most, v)
	}
	// Below 2^-120 the inverse leaves the range of float32. Such values are
	// noise beside any weight that a model holds.
	if most < 0x1p-120 {
		clear(q)
		return 0
	}
	inv := 127 / most
	for i, v := range x {
		q[i] = int8(math.RoundToEven(float64(float32(v * inv))))
	}
	clear(q[len(x):])
	return most / 127
}

func sum16(q []int8) int16 {
	var s int16
	for _, v := range q {
		s += int16(v)
	}
	return s
}
