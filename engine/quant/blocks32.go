package quant

import "encoding/binary"

// The formats with one scale per 32 values (llama.cpp pull requests 1405 and
// 1508). Byte j of the 16 bytes of nibbles is value j in its low half and value
// 16+j in its high half; the fifth bits of Q5_0 and Q5_1 are bit i of a word of
// 32 bits.

// low4 keeps the low nibble of each byte.
const low4 = 0x0f * ones

func unpackQ4_0(t *tile, src []byte) {
	t.scale32(0, half(src), 0)
	for j := range 2 {
		w := word64(src[2:], j)
		t.putLess(j, w&low4, 8)
		t.putLess(j+2, w>>4&low4, 8)
	}
}

func unpackQ4_1(t *tile, src []byte) {
	t.scale32(0, half(src), -half(src[2:]))
	for j := range 2 {
		w := word64(src[4:], j)
		t.put(j, w&low4)
		t.put(j+2, w>>4&low4)
	}
}

func unpackQ5_0(t *tile, src []byte) {
	t.scale32(0, half(src), 0)
	for j := range 2 {
		w := word64(src[6:], j)
		t.putLess(j, w&low4|bits8(src[2+j])<<4, 16)
		t.putLess(j+2, w>>4&low4|bits8(src[4+j])<<4, 16)
	}
}

func unpackQ5_1(t *tile, src []byte) {
	t.scale32(0, half(src), -half(src[2:]))
	for j := range 2 {
		w := word64(src[8:], j)
		t.put(j, w&low4|bits8(src[4+j])<<4)
		t.put(j+2, w>>4&low4|bits8(src[6+j])<<4)
	}
}

func unpackQ8_0(t *tile, src []byte) {
	t.scale32(0, half(src), 0)
	for j := range 4 {
		t.put(j, binary.LittleEndian.Uint64(src[2+8*j:]))
	}
}

// bits8 spreads the bits of b over the bytes of a word: byte i is bit i.
func bits8(b byte) uint64 {
	// Copy b to all bytes, keep bit i of byte i, and turn "not zero" into 1.
	return (uint64(b)*ones&0x8040201008040201 + 0x7f*ones) >> 7 & ones
}
