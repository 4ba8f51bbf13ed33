package quant

import "encoding/binary"

// The 3-bit i-quants (llama.cpp pull requests 5196, 5676 and 5829): 256 values per
// block, vectors of four magnitudes out of a grid, signs apart.

// unpackIQ3_XXS: the half, 64 grid numbers, then for each 32 values a word of
// four times 7 sign bits with the scale in the top four bits.
func unpackIQ3_XXS(t *tile, src []byte) {
	d := half(src)
	for g := range 8 {
		idx := src[2+8*g : 10+8*g]
		word := binary.LittleEndian.Uint32(src[66+4*g:])
		s := d * (0.5 + float32(word>>28)) * 0.5
		t.scale32(g, s, 0)
		for k := range 4 {
			v := uint64(gridIQ3XXS[idx[2*k]]) | uint64(gridIQ3XXS[idx[2*k+1]])<<32
			t.put(4*g+k, negate(v, signs7[word>>(7*k)&127]))
		}
	}
}

// unpackIQ3_S: the half, 64 low bytes of grid numbers, 8 bytes with the ninth
// bits, 32 bytes of signs, 4 bytes with a 4-bit scale per 32 values.
func unpackIQ3_S(t *tile, src []byte) {
	d := half(src)
	for g := range 8 {
		idx, high := src[2+8*g:10+8*g], int(src[66+g])
		s := d * float32(1+2*(src[106+g/2]>>(4*(g%2))&15))
		t.scale32(g, s, 0)
		for k := range 4 {
			a := gridIQ3S[int(idx[2*k])|high>>(2*k)&1<<8]
			b := gridIQ3S[int(idx[2*k+1])|high>>(2*k+1)&1<<8]
			t.put(4*g+k, negate(uint64(a)|uint64(b)<<32, src[74+4*g+k]))
		}
	}
}
