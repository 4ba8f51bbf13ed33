package quant

import "encoding/binary"

// The k-quants (llama.cpp pull request 1684): 256 values per block, small
// integer scales per 16 or 32 values under one or two halves.

// words4K gives the eight 6-bit scales and the eight 6-bit offsets of Q4_K and
// Q5_K (32 values each) as the bytes of two words. Those of groups 0..3 are the
// low six bits of bytes 0..3 and 4..7. Groups 4..7 have their low four bits in
// the low and high halves of bytes 8..11, and their upper two bits at the top
// of bytes 0..3 and 4..7.
func words4K(s *[12]byte) (scales, mins uint64) {
	a, b, c := binary.LittleEndian.Uint32(s[0:]), binary.LittleEndian.Uint32(s[4:]), binary.LittleEndian.Uint32(s[8:])
	const low6, low4, top2 = 0x3f3f3f3f, 0x0f0f0f0f, 0x30303030
	scales = uint64(a&low6) | uint64(c&low4|a>>2&top2)<<32
	mins = uint64(b&low6) | uint64(c>>4&low4|b>>2&top2)<<32
	return scales, mins
}

func (t *tile) scales4K(src []byte) {
	d, m := half(src), half(src[2:])
	scales, mins := words4K((*[12]byte)(src[4:]))
	for g := range 8 {
		t.scale32(g, d*float32(scales>>(8*g)&255), m*float32(mins>>(8*g)&255))
	}
}

// unpackQ4_K: scale and offset halves, 12 bytes of scales and offsets, 128
// bytes of nibbles: each 32 bytes hold 32 values in the low and the next 32 in
// the high halves.
func unpackQ4_K(t *tile, src []byte) {
	t.scales4K(src)
	for i := range 16 {
		w := word64(src[16:144], i)
		at := i/4*8 + i%4
		t.put(at, w&low4)
		t.put(at+4, w>>4&low4)
	}
}

// unpackQ5_K: as Q4_K, with 32 bytes of fifth bits before the nibbles: bit g of
// byte i belongs to value i of group g.
func unpackQ5_K(t *tile, src []byte) {
	t.scales4K(src)
	for i := range 16 {
		w, h := word64(src[48:176], i), word64(src[16:48], i%4)
		at, g := i/4*8+i%4, i/4*2
		t.put(at, w&low4|h>>g&ones<<4)
		t.put(at+4, w>>4&low4|h>>(g+1)&ones<<4)
	}
}

// unpackQ6_K: two halves of 128 values. In each, 64 bytes of low nibbles hold
// values i and 64+i (low and high half), 32 bytes of pairs of bits hold the
// upper bits of values i, 32+i, 64+i, 96+i. Then 16 scales, signed bytes, and
// the half.
func unpackQ6_K(t *tile, src []byte) {
	d := half(src[208:])
	for j, s := range src[192:208] {
		t.scale[j], t.min[j] = d*float32(int8(s)), 0
	}
	for h := range 2 {
		for i := range 4 {
			a, b, u := word64(src[64*h:], i), word64(src[64*h+32:], i), word64(src[128+32*h:], i)
			t.putLess(16*h+i, a&low4|u&low2<<4, 32)
			t.putLess(16*h+4+i, b&low4|u>>2&low2<<4, 32)
			t.putLess(16*h+8+i, a>>4&low4|u>>4&low2<<4, 32)
			t.putLess(16*h+12+i, b>>4&low4|u>>6&low2<<4, 32)
		}
	}
}

// low2 keeps the low two bits of each byte.
const low2 = 0x03 * ones

// unpackQ2_K: 16 bytes with a 4-bit scale (low) and offset (high) per 16
// values, 64 bytes of pairs of bits, then the two halves. Each 32 bytes hold
// 128 values, 32 in each pair of bits from the lowest up.
func unpackQ2_K(t *tile, src []byte) {
	d, m := half(src[80:]), half(src[82:])
	for j, s := range src[:16] {
		t.scale[j], t.min[j] = d*float32(s&15), m*float32(s>>4)
	}
	for i := range 8 {
		w, at := word64(src[16:80], i), i/4*16+i%4
		for k := range 4 {
			t.put(at+4*k, w>>(2*k)&low2)
		}
	}
}

// unpackQ3_K: 32 bytes of third bits (bit g of byte i belongs to value i of
// group g of 32), 64 bytes of pairs of bits as in Q2_K, 12 bytes of 6-bit
// scales with bias 32, the half. The numbers have a bias of 4.
func unpackQ3_K(t *tile, src []byte) {
	d := half(src[108:])
	s := src[96:108]
	for j := range 16 {
		// Low four bits: bytes 0..7, low halves first; upper two bits: four
		// pairs in each of bytes 8..11.
		v := s[j%8]>>(j/8*4)&15 | s[8+j%4]>>(j/4*2)&3<<4
		t.scale[j], t.min[j] = d*float32(int8(v)-32), 0
	}
	for i := range 8 {
		w, h, at := word64(src[32:96], i), word64(src[:32], i%4), i/4*16+i%4
		for k := range 4 {
			t.putLess(at+4*k, w>>(2*k)&low2|h>>(i/4*4+k)&ones<<2, 4)
		}
	}
}
