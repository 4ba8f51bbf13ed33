package quant

import (
	"encoding/binary"
	"math"
)

// The 4-bit formats with uneven levels: nibbles are numbers of levels.

// levels4 are the levels of IQ4_NL and IQ4_XS (kvalues_iq4nl of ggml, llama.cpp
// pull requests 5590 and 5747).
var levels4 = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// levelsE2M1 are twice the values of the 4-bit float E2M1 of the OCP
// Microscaling specification 1.0: sign, two exponent bits, one fraction bit.
var levelsE2M1 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// lookup writes the levels of 2*len(qs) nibbles: low halves, then high halves.
func lookup(dst []int8, qs []byte, table *[16]int8) {
	dst = dst[:2*len(qs)]
	for i, b := range qs {
		dst[i] = table[b&15]
		dst[i+len(qs)] = table[b>>4]
	}
}

// unpackIQ4_NL: the half, 16 bytes of nibbles.
func unpackIQ4_NL(t *tile, src []byte) {
	t.scale32(0, half(src), 0)
	lookup(t.q[:], src[2:18], &levels4)
}

// unpackIQ4_XS: the half, a word of 16 bits with the upper two bits of eight
// scales, 4 bytes with their lower four bits (bias 32), 128 bytes of nibbles,
// 16 for each 32 values.
func unpackIQ4_XS(t *tile, src []byte) {
	d := half(src)
	high := binary.LittleEndian.Uint16(src[2:])
	for g := range 8 {
		l := src[4+g/2] >> (4 * (g % 2)) & 15
		h := byte(high>>(2*g)) & 3
		s := d * float32(int8(l|h<<4)-32)
		t.scale32(g, s, 0)
		lookup(t.q[32*g:], src[8+16*g:24+16*g], &levels4)
	}
}

// unpackMXFP4: a byte with the exponent of a power of two (E8M0, bias 127; one
// less here, since the levels are doubled), 16 bytes of nibbles.
func unpackMXFP4(t *tile, src []byte) {
	t.scale32(0, scalesE8M0[src[0]], 0)
	lookup(t.q[:], src[1:17], &levelsE2M1)
}

// unpackNVFP4: four bytes with the scales of 16 values each (E4M3 without
// sign), then 8 bytes of nibbles for each.
func unpackNVFP4(t *tile, src []byte) {
	for j, s := range src[:4] {
		t.scale[j], t.min[j] = scalesE4M3[s], 0
		lookup(t.q[16*j:], src[4+8*j:12+8*j], &levelsE2M1)
	}
}

// scalesE8M0 is half of 2^(e-127).
var scalesE8M0 = func() (t [256]float32) {
	for e := range t {
		t[e] = float32(math.Ldexp(1, e-128))
	}
	return t
}()

// scalesE4M3 is half the value of the 8-bit float E4M3 with bias 7, its sign
// bit ignored. The pattern of NaN (0x7f) stands for zero.
var scalesE4M3 = func() (t [256]float32) {
	for b := range t {
		e, m := b>>3&15, float32(b&7)
		v := m * 0x1p-9
		if e > 0 {
			v = (8 + m) * float32(int(1)<<e) * 0x1p-10
		}
		t[b] = v / 2
	}
	t[0x7f] = 0
	return t
}()
