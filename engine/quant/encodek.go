package quant

import "math"

// encodeQ4_K writes blocks of Q4_K. Each 32 values span from an offset that is
// not above zero to their largest value; the eight scales and offsets become
// 6-bit multiples of the two halves.
func encodeQ4_K(dst []byte, src []float32) {
	for len(src) >= 256 {
		x, w := src[:256], dst[:144]
		var scale, off [8]float32
		for g := range 8 {
			lo, hi := spanOf(x[32*g : 32*g+32])
			lo = min(lo, 0)
			scale[g], off[g] = (max(hi, 0)-lo)/15, -lo
		}
		d, m := putHalf(w, largest(scale[:])/63), putHalf(w[2:], largest(off[:])/63)
		invD, invM := inverse(d), inverse(m)
		clear(w[4:16])
		for g := range 8 {
			s, o := nearest(scale[g]*invD, 0, 63), nearest(off[g]*invM, 0, 63)
			putScale4K(w[4:16], g, byte(s), byte(o))
			step, base := inverse(d*float32(s)), m*float32(o)
			q := w[16+32*(g/2):]
			for i, v := range x[32*g : 32*g+32] {
				n := byte(nearest((v+base)*step, 0, 15))
				if g%2 == 0 {
					q[i] = n
				} else {
					q[i] |= n << 4
				}
			}
		}
		src, dst = src[256:], dst[144:]
	}
}

// putScale4K stores scale and offset of group g as words4K reads them. The 12
// bytes must be zero before the first group.
func putScale4K(w []byte, g int, s, o byte) {
	if g < 4 {
		w[g] |= s
		w[4+g] |= o
		return
	}
	w[4+g] = s&15 | o<<4
	w[g-4] |= s >> 4 << 6
	w[g] |= o >> 4 << 6
}

// encodeQ6_K writes blocks of Q6_K: 16 groups of 16 values, whose scales become
// signed bytes times the half. The largest magnitude of a group takes the
// negative end, which has one step more.
func encodeQ6_K(dst []byte, src []float32) {
	for len(src) >= 256 {
		x, w := src[:256], dst[:210]
		var scale [16]float32
		for j := range scale {
			scale[j] = largest(x[16*j:16*j+16]) / -32
		}
		d := putHalf(w[208:], float32(math.Abs(float64(largest(scale[:]))))/127)
		inv := inverse(d)
		clear(w[:192])
		for j := range scale {
			s := nearest(scale[j]*inv, -128, 127)
			w[192+j] = byte(int8(s))
			step := inverse(d * float32(s))
			for k, v := range x[16*j : 16*j+16] {
				n := byte(nearest(v*step, -32, 31) + 32)
				at := 16*j + k
				half, quarter, i := at/128, at/32%4, at%32
				w[64*half+quarter%2*32+i] |= n & 15 << (4 * (quarter / 2))
				w[128+32*half+i] |= n >> 4 << (2 * quarter)
			}
		}
		src, dst = src[256:], dst[210:]
	}
}
