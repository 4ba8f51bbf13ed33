package quant

import "math"

// F16ToF32 gives the exact value of an IEEE 754 half: 1 sign bit, 5 exponent
// bits with bias 15, 10 fraction bits. A NaN keeps its fraction bits.
func F16ToF32(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	em := uint32(h & 0x7fff)
	switch {
	case em >= 0x7c00: // infinity, NaN: the exponent becomes all ones
		return math.Float32frombits(sign | em<<13 | 0x7f800000)
	case em >= 0x0400: // normal: move the bias from 15 to 127
		return math.Float32frombits(sign | (em<<13 + 112<<23))
	default: // zero, subnormal: em counts steps of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(em)*0x1p-24))
	}
}

// F32ToF16 rounds to the nearest half, ties to even. Values from 65520 up
// become infinity; a NaN stays a quiet NaN.
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x3ff)
	case b >= 0x477ff000: // 65520: half way between the largest half and 2^16
		return sign | 0x7c00
	case b < 0x38800000: // below 2^-14: adding 0.5 leaves steps of 2^-24, rounded by the addition itself
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	default:
		return sign | uint16((b-112<<23+0xfff+b>>13&1)>>13)
	}
}

// halves holds the value of every half, for the product loops: one load
// instead of a dozen instructions per block.
var halves = func() *[1 << 16]float32 {
	t := new([1 << 16]float32)
	for i := range t {
		t[i] = F16ToF32(uint16(i))
	}
	return t
}()

// half reads the little-endian half at the start of b.
func half(b []byte) float32 { return halves[uint16(b[0])|uint16(b[1])<<8] }

// putHalf writes f as a little-endian half and gives back what was written,
// so that encoders round values against the scale that readers will see.
func putHalf(b []byte, f float32) float32 {
	h := F32ToF16(f)
	b[0], b[1] = byte(h), byte(h>>8)
	return halves[h]
}

// BF16ToF32 gives the value of a bfloat16: the upper half of a float32.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to the nearest bfloat16, ties to even; a NaN stays a NaN.
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
