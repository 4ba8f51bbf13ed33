package quant

import (
	"math"
	"unsafe"
)

// Acts is t activation rows of n floats and their 8-bit copy. The copy rounds
// each 32 values with one float32 scale to integers of -127..127, to nearest,
// ties to even: value is about d*q with d = max|x|/127. A block of zeros has
// d = 0. A block with a NaN or an infinity has d = NaN, so that every product
// that touches it is NaN and the engine can see it.
type Acts struct {
	t, n   int
	stride int       // n rounded up to a multiple of 32: row distance in q
	x      []float32 // t rows of n: the caller's

	// What the plain loops and levels without records read.
	q     []int8    // t rows of stride; values past n are 0
	d     []float32 // t rows of stride/32: one scale per 32 values
	s     []int16   // t rows of stride/16: sum of q over 16 values
	lanes []uint64  // t rows of stride/4: q spread for the plain loops (swar.go)

	// What levels with records read.
	groups int       // records per row: n/256, rounded up
	recs   []record  // t rows of groups, on a cache line
	tails  []float32 // t rows of 256: the last n%256 values and zeros, where there is a rest
}

// record is 256 activations with everything that a product needs beside them,
// in one place. Values past the end of a row are 0 with d = 0.
//
// Blocks of 32 stand in the order 0 2 4 6 1 3 5 7, sums over 16 in the order
// 0 4 8 12 1 5 9 13 2 6 10 14 3 7 11 15: the orders in which the sums of a
// product fall out of its additions (fold in avx512_amd64.h).
type record struct {
	q     [256]int8  // in order
	d     [8]float32 // scale of each 32
	neg   [8]int32   // -128 times the sum of q over each 32
	dsum  [8]float32 // d times the sum of q over each 32
	_     [8]float32 // so that neg16 and the next record start on a cache line
	neg16 [16]int32  // -128 times the sum of q over each 16
	woven [256]int8  // q in the order of woven rows (woven.go)
	negW  [16]int32  // neg16 in that order: half block s in lane lane16(s)
}

// order32 is the place of block b = 0..7 of a record, order16 that of half
// block s = 0..15.
func order32(b int) int { return b>>1 | b&1<<2 }
func order16(s int) int { return s>>2 | s&3<<2 }

// Set makes a stand for t rows of n floats, row by row in x. x is referenced,
// not copied. Buffers grow when needed and are used again.
func (a *Acts) Set(x []float32, t, n int) {
	a.t, a.n, a.stride, a.groups = t, n, (n+31)&^31, (n+255)/256
	a.x = x[:t*n]
	if k := active.Load(); k.records {
		a.recs = grow(a.recs, t*a.groups)
		if n%256 != 0 {
			a.tails = grow(a.tails, t*256)
		}
		return
	}
	a.q = grow(a.q, t*a.stride)
	a.d = grow(a.d, t*a.stride/32)
	a.s = grow(a.s, t*a.stride/16)
	a.lanes = grow(a.lanes, t*a.stride/4)
}

// grow is s with n elements, in its old memory where that is enough. Elements
// of 64 bytes and more start on a cache line.
func grow[E any](s []E, n int) []E {
	if cap(s) >= n {
		return s[:n]
	}
	size := unsafe.Sizeof(*new(E))
	if size%64 != 0 {
		return make([]E, n)
	}
	b := make([]byte, uintptr(n)*size+63)
	off := -uintptr(unsafe.Pointer(&b[0])) & 63
	return unsafe.Slice((*E)(unsafe.Pointer(&b[off])), n)
}

// Quantize makes the 8-bit copies of rows lo to hi-1. Calls with disjoint
// ranges may run at the same time. Mul with a format that is not Float needs it.
func (a *Acts) Quantize(lo, hi int) {
	k := active.Load()
	if !k.records {
		a.quantizePlain(lo, hi)
		return
	}
	for t := lo; t < hi; t++ {
		x := a.x[t*a.n : (t+1)*a.n]
		r := a.recs[t*a.groups : (t+1)*a.groups]
		if whole := a.n / 256; whole > 0 {
			k.quantize(&r[0], &x[0], whole)
			x, r = x[whole*256:], r[whole:]
		}
		if len(x) > 0 {
			tail := a.tails[t*256 : t*256+256]
			clear(tail[copy(tail, x):])
			k.quantize(&r[0], &tail[0], 1)
		}
	}
}

func (a *Acts) quantizePlain(lo, hi int) {
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
