package quant

// The i-quants on AVX-512: a grid is looked up in registers as codes, not as
// vectors. A code has two bits (three levels) or three bits (eight levels) per
// component, 16 bits at most, and is kept as two tables of bytes: VPERMI2B finds
// 64 of them in 128 bytes at once, and the upper bits of the number choose
// among the tables. Then both bytes are brought side by side as often as there
// are components, VPMULTISHIFTQB moves each component's bits to the bottom of
// its byte, and VPERMB, which looks at no more than six bits, finds the level.
// That takes about a third of the time of loads one by one, or of gathers.

// code is the numbers of the levels of a vector, width bits each.
func code(v uint64, dim, width int, levels []int8) uint16 {
	var c uint16
	for i := range dim {
		for n, l := range levels {
			if byte(v>>(8*i)) == byte(l) {
				c |= uint16(n) << (width * i)
			}
		}
	}
	return c
}

// Where the numbers of a block lie once they are loaded: as groups of four at
// the start of each 8 bytes (IQ2_XXS), in the even bytes (IQ2_XS), one after
// the other (IQ2_S, and the signs of IQ3_XXS as the first).
func gridPlace(kind, n int) byte {
	switch kind {
	case 0:
		return byte(n/4*8 + n%4)
	case 1:
		return byte(2 * n)
	}
	return byte(n)
}

// grids fills the constants of the i-quants.
func (c *consts512) grids() {
	split := func(low, high []byte, grid func(int) uint64, dim, width int, levels []int8) {
		for i := range low {
			v := code(grid(i), dim, width, levels)
			low[i], high[i] = byte(v), byte(v>>8)
		}
	}
	split(c.codes2XXS[0][:], c.codes2XXS[1][:], func(i int) uint64 { return gridIQ2XXS[i] }, 8, 2, levels2)
	split(c.codes2XS[0][:], c.codes2XS[1][:], func(i int) uint64 { return gridIQ2XS[i] }, 8, 2, levels2)
	split(c.codes2S[0][:], c.codes2S[1][:], func(i int) uint64 { return gridIQ2S[i] }, 8, 2, levels2)
	split(c.codes3XXS[0][:], c.codes3XXS[1][:], func(i int) uint64 { return uint64(gridIQ3XXS[i]) }, 4, 3, levels3)
	split(c.codes3S[0][:], c.codes3S[1][:], func(i int) uint64 { return uint64(gridIQ3S[i]) }, 4, 3, levelsS)
	for i, v := range gridIQ1 {
		c.codes1[i] = code(v, 8, 2, levels1)
	}
	for z := range 4 {
		for i := range 64 {
			n := 8*z + i/8 // of the vector of eight that value 64z+i is in
			for kind := range 3 {
				c.at2[kind][z][i] = gridPlace(kind, n) | byte(i%2*64)
				c.sign[kind][z][i] = gridPlace(kind, n)
			}
			c.move1[z][i] = byte(2 * (2*z + i/32))
			c.at3[z][i] = byte(16*z+i/4) | byte(i%2*64)
		}
	}
	for i := range 64 {
		c.bit[i] = 1 << (i % 8)
		c.fields2[i] = byte(2 * (i % 8))
		c.fields3[i] = byte(i%8/4*32 + 3*(i%4))
		c.fields7[i] = byte(7 * (i % 4))
		c.fields7b[i] = byte(32 + 7*(i%4))
		c.levels2[i] = byte(levels2[min(i%4, 2)]) + 128
		c.levels3[i] = byte(levels3[i%8]) + 128
		c.levelsS[i] = byte(levelsS[i%8]) + 128
		c.levels1[i] = byte(8*levels1[min(i%4, 2)]) + 128
	}
	for z := range 2 {
		for i := range 32 { // word i of values 64z..: the low word of dword 8z+i/4
			c.at1[z][i] = uint16(2 * (8*z + i/4))
		}
	}
	c.parity = matrices("00000000", affine([8]byte{1, 2, 4, 8, 16, 32, 64, 127}))
	for i := range 16 {
		c.rotate1[i] = uint32(8-3*(i%4)) & 31
		c.word1[0][2*i], c.word1[1][2*i] = uint16(i/4), uint16(4+i/4)
		c.shift1M[i] = uint32(3 * (i / 4))
	}
	c.tops1M = 0xf000f000f000f000
}
