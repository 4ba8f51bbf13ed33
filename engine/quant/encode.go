package quant

import "math"

// Encoders for the formats that caches, tests and tools write. Each value goes
// to the nearest step of a scale that comes from the largest value or the range
// of its group; the scale is rounded to what the block can hold first, so that
// values are rounded against the scale that readers see. A group with a NaN or
// an infinity gets a scale that is not finite, so that readers see it too.

// nearest rounds to the nearest whole number, ties to even, within lo..hi.
// A NaN (from a scale that is not finite) gives lo.
func nearest(v float32, lo, hi int) int {
	r := math.RoundToEven(float64(v))
	if !(r > float64(lo)) {
		return lo
	}
	return int(min(r, float64(hi)))
}

// inverse is 1/d, and 0 where d is too small to have one.
func inverse(d float32) float32 {
	if v := 1 / d; v <= math.MaxFloat32 && v >= -math.MaxFloat32 {
		return v
	}
	return 0
}

// largest is the value of greatest magnitude with its sign; NaN if there is one.
func largest(x []float32) float32 {
	var v float32
	for _, w := range x {
		if !(float32(math.Abs(float64(w))) <= float32(math.Abs(float64(v)))) {
			v = w
		}
		if w != w {
			return w
		}
	}
	return v
}

// spanOf is the smallest and the largest value; NaN if there is one.
func spanOf(x []float32) (lo, hi float32) {
	lo, hi = x[0], x[0]
	for _, w := range x {
		lo, hi = min(lo, w), max(hi, w)
	}
	return lo, hi
}

func encodeQ8_0(dst []byte, src []float32) {
	for len(src) >= 32 {
		x, w := src[:32], dst[:34]
		d := putHalf(w, float32(math.Abs(float64(largest(x))))/127)
		inv := inverse(d)
		for i, v := range x {
			w[2+i] = byte(int8(nearest(v*inv, -127, 127)))
		}
		src, dst = src[32:], dst[34:]
	}
}

// encodeQ4_0 and encodeQ5_0 give the largest magnitude the end of the range
// that has one step more, the negative one.

func encodeQ4_0(dst []byte, src []float32) {
	for len(src) >= 32 {
		x, w := src[:32], dst[:18]
		inv := inverse(putHalf(w, largest(x)/-8))
		for i := range 16 {
			lo, hi := nearest(x[i]*inv, -8, 7)+8, nearest(x[16+i]*inv, -8, 7)+8
			w[2+i] = byte(lo | hi<<4)
		}
		src, dst = src[32:], dst[18:]
	}
}

func encodeQ5_0(dst []byte, src []float32) {
	for len(src) >= 32 {
		x, w := src[:32], dst[:22]
		inv := inverse(putHalf(w, largest(x)/-16))
		encode5(w[2:], x, func(v float32) int { return nearest(v*inv, -16, 15) + 16 })
		src, dst = src[32:], dst[22:]
	}
}

func encodeQ4_1(dst []byte, src []float32) {
	for len(src) >= 32 {
		x, w := src[:32], dst[:20]
		lo, hi := spanOf(x)
		inv, m := inverse(putHalf(w, (hi-lo)/15)), putHalf(w[2:], lo)
		for i := range 16 {
			w[4+i] = byte(nearest((x[i]-m)*inv, 0, 15) | nearest((x[16+i]-m)*inv, 0, 15)<<4)
		}
		src, dst = src[32:], dst[20:]
	}
}

func encodeQ5_1(dst []byte, src []float32) {
	for len(src) >= 32 {
		x, w := src[:32], dst[:24]
		lo, hi := spanOf(x)
		inv, m := inverse(putHalf(w, (hi-lo)/31)), putHalf(w[2:], lo)
		encode5(w[4:], x, func(v float32) int { return nearest((v-m)*inv, 0, 31) })
		src, dst = src[32:], dst[24:]
	}
}

// encode5 writes 32 numbers of 5 bits: 4 bytes of fifth bits, 16 of nibbles.
func encode5(w []byte, x []float32, number func(float32) int) {
	var high uint32
	for i := range 16 {
		lo, hi := number(x[i]), number(x[16+i])
		w[4+i] = byte(lo&15 | hi&15<<4)
		high |= uint32(lo>>4)<<i | uint32(hi>>4)<<(16+i)
	}
	for i := range 4 {
		w[i] = byte(high >> (8 * i))
	}
}
