package quant

import "encoding/binary"

// The 1-bit i-quants (llama.cpp pull requests 5453, 5999 and 6302): 256 values per
// block, vectors of eight components -1, 0, 1 moved by an eighth up or down.
// The tile holds eight times the value, so that the move is a whole number; an
// eighth of the scale is exact.

// moved is eight times a vector of the grid, one up or down in each component.
func moved(n int, down int) uint64 {
	digits := ((gridIQ1[n&2047] ^ flip) + ones) ^ flip // -1, 0, 1 as 0, 1, 2
	return (digits<<3 + uint64(128-7-2*down)*ones) ^ flip
}

// unpackIQ1_S: the half, 32 low bytes of grid numbers, then a word of 16 bits
// for each 32 values: four times the upper three bits of the grid numbers, a
// 3-bit scale and the sign of the move.
func unpackIQ1_S(t *tile, src []byte) {
	d := half(src)
	for g := range 8 {
		w := int(binary.LittleEndian.Uint16(src[34+2*g:]))
		s := d * float32(2*(w>>12&7)+1) / 8
		t.scale32(g, s, 0)
		for k := range 4 {
			t.put(4*g+k, moved(int(src[2+4*g+k])|w>>(3*k)&7<<8, w>>15))
		}
	}
}

// unpackIQ1_M: 32 low bytes of grid numbers, 16 bytes with the upper three bits
// and the sign of the move of two grid numbers each, then four words of 16
// bits: four 3-bit scales of 16 values each, and in the top four bits a quarter
// of the half, lowest quarter first.
func unpackIQ1_M(t *tile, src []byte) {
	var w [4]uint16
	var h uint16
	for i := range w {
		w[i] = binary.LittleEndian.Uint16(src[48+2*i:])
		h |= w[i] >> 12 << (4 * i)
	}
	d := halves[h]
	for j := range 16 {
		t.scale[j], t.min[j] = d*float32(2*(w[j/4]>>(3*(j%4))&7)+1)/8, 0
		for k := range 2 {
			b := int(src[32+j]) >> (4 * k)
			t.put(2*j+k, moved(int(src[2*j+k])|b&7<<8, b>>3&1))
		}
	}
}
