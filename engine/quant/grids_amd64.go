package quant

// The i-quants on AVX-512: a grid is looked up in registers as codes, not as
// vectors. A code has two bits (three levels) or three bits (eight levels) per
// component, 16 bits at most, and is kept as two tables of bytes: VPERMI2B finds
// 64 of them in 128 bytes at once, and the upper bits of the number choose
// among the tables. Then both bytes are brought side by side as often as there
// are components, VPMULTISHIFTQB moves each component's bits to the bottom of
// its byte, and VPERMB, which looks at no more than six bits, finds the level.
// That takes about a third of the time of gathers. Vectors of eight out of more
// than 256 are loaded one by one, though: that is faster from there on.

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

// grids fills the constants of the i-quants.
func (c *consts512) grids() {
	split := func(low, high []byte, grid func(int) uint64, dim, width int, levels []int8) {
		for i := range low {
			v := code(grid(i), dim, width, levels)
			low[i], high[i] = byte(v), byte(v>>8)
		}
	}
	split(c.codes2XXS[0][:], c.codes2XXS[1][:], func(i int) uint64 { return gridIQ2XXS[i] }, 8, 2, levels2)
	split(c.codes3XXS[0][:], c.codes3XXS[1][:], func(i int) uint64 { return uint64(gridIQ3XXS[i]) }, 4, 3, levels3)
	split(c.codes3S[0][:], c.codes3S[1][:], func(i int) uint64 { return uint64(gridIQ3S[i]) }, 4, 3, levelsS)
	// Bytes are small: adding 128 to each, or taking each eight times, leaves
	// the others alone once they have no sign.
	const all128 = 0x8080808080808080
	for i, v := range gridIQ2XS {
		c.grid2XS[i] = v ^ all128
	}
	for i, v := range gridIQ2S {
		c.grid2S[i] = v ^ all128
	}
	for i, v := range gridIQ1 {
		for k := range 8 {
			c.grid1[i] |= uint64(byte(8*int8(v>>(8*k)))+128) << (8 * k)
		}
	}
	for z := range 4 {
		for i := range 64 {
			n := 8*z + i/8 // of the vector of eight that value 64z+i is in
			fours := byte(n/4*8 + n%4)
			c.at2[z][i] = fours | byte(i%2*64)
			c.sign[0][z][i], c.sign[1][z][i] = fours, byte(2*n)
			c.at3[z][i] = byte(16*z+i/4) | byte(i%2*64)
			c.move1[z][i] = byte(2 * (2*z + i/32))
			c.move1M[z][i] = byte(2*n + 1)
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
		c.high1M[i] = byte(4 * (i % 8 / 2))
	}
	c.parity = matrices("00000000", affine([8]byte{1, 2, 4, 8, 16, 32, 64, 127}))
	for s := range 16 {
		c.shift1M[s] = uint32(3 * (s / 4))
	}
	c.tops1M = 0xf000f000f000f000
	c.bytes, c.two8, c.three8, c.sevens = 0x00ff00ff00ff00ff, 0x0300030003000300, 0x0700070007000700, 0x7777
}
