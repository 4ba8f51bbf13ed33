package quant

import "encoding/binary"

// The 2-bit i-quants (llama.cpp pull requests 4773, 4856 and 5721): 256 values
// per block, vectors of eight magnitudes out of a grid, signs apart.

// quarter is the scale of a group: d * (1/2 + s) / 4 for the 4-bit number s.
func quarter(d float32, s uint32) float32 { return d * (0.5 + float32(s)) * 0.25 }

// unpackIQ2_XXS: the half, then for each 32 values 8 bytes: four grid numbers,
// and a word of four times 7 sign bits with the scale in the top four bits.
func unpackIQ2_XXS(t *tile, src []byte) {
	d := half(src)
	for g := range 8 {
		idx := src[2+8*g : 6+8*g]
		word := binary.LittleEndian.Uint32(src[6+8*g:])
		s := quarter(d, word>>28)
		t.scale32(g, s, 0)
		for k, i := range idx {
			t.put(4*g+k, negate(gridIQ2XXS[i], signs7[word>>(7*k)&127]))
		}
	}
}

// unpackIQ2_XS: the half, 32 words of 16 bits (grid number in 9, signs in 7),
// then a 4-bit scale per 16 values, low halves first.
func unpackIQ2_XS(t *tile, src []byte) {
	d := half(src)
	for i := range 32 {
		w := binary.LittleEndian.Uint16(src[2+2*i:])
		t.put(i, negate(gridIQ2XS[w&511], signs7[w>>9]))
	}
	for j, s := range src[66:74] {
		t.scale[2*j], t.scale[2*j+1] = quarter(d, uint32(s&15)), quarter(d, uint32(s>>4))
		t.min[2*j], t.min[2*j+1] = 0, 0
	}
}

// unpackIQ2_S: the half, 32 low bytes of grid numbers, 32 bytes of signs, 8
// bytes with the upper two bits of four grid numbers each, scales as in IQ2_XS.
func unpackIQ2_S(t *tile, src []byte) {
	d := half(src)
	for i := range 32 {
		n := int(src[2+i]) | int(src[66+i/4])>>(2*(i%4))&3<<8
		t.put(i, negate(gridIQ2S[n], src[34+i]))
	}
	for j, s := range src[74:82] {
		t.scale[2*j], t.scale[2*j+1] = quarter(d, uint32(s&15)), quarter(d, uint32(s>>4))
		t.min[2*j], t.min[2*j+1] = 0, 0
	}
}
