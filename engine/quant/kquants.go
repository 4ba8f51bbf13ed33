package quant

// The k-quants (llama.cpp pull request 1684): 256 values per block, small
// integer scales per 16 or 32 values under one or two halves.

// scale4K takes the 6-bit scale and offset of group j = 0..7 (32 values each)
// out of the 12 bytes of Q4_K and Q5_K: groups 0..3 lie in the low six bits of
// bytes j and j+4; groups 4..7 have their low four bits in byte j+4 and their
// high two bits at the top of bytes j-4 and j.
func scale4K(s []byte, j int) (scale, min byte) {
	s = s[:12]
	if j < 4 {
		return s[j] & 63, s[j+4] & 63
	}
	return s[j+4]&15 | s[j-4]>>6<<4, s[j+4]>>4 | s[j]>>6<<4
}

func (t *tile) scales4K(src []byte) {
	d, m := half(src), half(src[2:])
	for j := range 8 {
		s, o := scale4K(src[4:], j)
		sc, mn := d*float32(s), m*float32(o)
		t.scale[2*j], t.scale[2*j+1] = sc, sc
		t.min[2*j], t.min[2*j+1] = mn, mn
	}
}

// nibbles4K: each 32 bytes hold 32 values in the low and the next 32 in the
// high halves.
func (t *tile) nibbles4K(qs []byte) {
	for g := range 4 {
		for i, b := range qs[32*g : 32*g+32] {
			t.q[64*g+i] = int8(b & 15)
			t.q[64*g+32+i] = int8(b >> 4)
		}
	}
}

func unpackQ4_K(t *tile, src []byte) {
	t.scales4K(src)
	t.nibbles4K(src[16:144])
}

// unpackQ5_K: bit g of byte i of the 32 bytes qh is the fifth bit of value i
// of group g.
func unpackQ5_K(t *tile, src []byte) {
	t.scales4K(src)
	t.nibbles4K(src[48:176])
	for i, h := range src[16:48] {
		for g := range 8 {
			t.q[32*g+i] += int8(h >> g & 1 << 4)
		}
	}
}

// unpackQ6_K: two halves of 128 values. In each, 64 bytes of low nibbles hold
// values i and 64+i (low and high half), 32 bytes of pairs of bits hold the
// upper bits of values i, 32+i, 64+i, 96+i.
func unpackQ6_K(t *tile, src []byte) {
	d := half(src[208:])
	for j, s := range src[192:208] {
		t.scale[j], t.min[j] = d*float32(int8(s)), 0
	}
	for h := range 2 {
		ql, qh, q := src[64*h:64*h+64], src[128+32*h:160+32*h], t.q[128*h:128*h+128]
		for i, b := range qh {
			q[i] = int8(ql[i]&15|b&3<<4) - 32
			q[32+i] = int8(ql[32+i]&15|b>>2&3<<4) - 32
			q[64+i] = int8(ql[i]>>4|b>>4&3<<4) - 32
			q[96+i] = int8(ql[32+i]>>4|b>>6<<4) - 32
		}
	}
}

// unpackQ2_K: 16 bytes with a 4-bit scale (low) and offset (high) per 16
// values, 64 bytes of pairs of bits, then the two halves. Each 32 bytes hold
// 128 values, 32 in each pair of bits from the lowest up.
func unpackQ2_K(t *tile, src []byte) {
	d, m := half(src[80:]), half(src[82:])
	for j, s := range src[:16] {
		t.scale[j], t.min[j] = d*float32(s&15), m*float32(s>>4)
	}
	for h := range 2 {
		for i, b := range src[16+32*h : 48+32*h] {
			for k := range 4 {
				t.q[128*h+32*k+i] = int8(b >> (2 * k) & 3)
			}
		}
	}
}

// unpackQ3_K: 32 bytes of third bits (bit g of byte i belongs to value i of
// group g of 32), 64 bytes of pairs of bits as in Q2_K, 12 bytes of 6-bit
// scales with bias 32, the half. A third bit that is not set takes 4 off.
func unpackQ3_K(t *tile, src []byte) {
	d := half(src[108:])
	s := src[96:108]
	for j := range 16 {
		// Low four bits: bytes 0..7, low halves first; upper two bits: four
		// pairs in each of bytes 8..11.
		v := s[j%8]>>(j/8*4)&15 | s[8+j%4]>>(j/4*2)&3<<4
		t.scale[j], t.min[j] = d*float32(int8(v)-32), 0
	}
	for h := range 2 {
		for i, b := range src[32+32*h : 64+32*h] {
			for k := range 4 {
				high := src[i] >> (4*h + k) & 1
				t.q[128*h+32*k+i] = int8(b>>(2*k)&3) - 4 + int8(high<<2)
			}
		}
	}
}
