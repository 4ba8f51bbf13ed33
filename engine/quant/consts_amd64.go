package quant

// consts512 is what the AVX-512 kernels load: assembly reaches the fields
// through their offsets in go_asm.h.
//
// Matrices are operands of VGF2P8AFFINEQB, one for each 8 bytes of a register;
// "places" are operands of byte and word permutations.
type consts512 struct {
	flip [64]byte // 0x80

	// 4 bits and more.
	nib        [8]uint64    // matrices: low nibble in the even 16 bytes, high nibble in the odd
	nib8       [8]uint64    // the same; with immediate 0x78 less 8 and plus 128
	nib32      [8]uint64    // low nibble in the lower 32 bytes, high nibble in the upper
	nib64      [8]uint64    // low nibble in the even 8 bytes, high nibble in the odd
	low        [8]uint64    // low nibble
	high       [8]uint64    // high nibble
	sixth      [2][8]uint64 // Q6_K: upper bits of values 0..63 and 64..127; with 0x60 less 32 and plus 128
	fifth      [4][8]uint64 // Q5_K: bit 2j to bit 4 in the lower half, bit 2j+1 in the upper
	sixteen    [64]byte     // 16
	uneven     [64]byte     // levels4 plus 128, four times
	e2m1       [64]byte     // levelsE2M1 plus 128, four times
	relaid3S   [64]byte     // levelsRelaid plus 128, four times
	relaid3XXS [64]byte

	fifteen [64]byte // 15
	top2    [64]byte // 0x30

	// 3 bits and less.
	pairs    [2][8]uint64  // pairs of bits 0 and 1, 2 and 3: lower half, upper half
	third    [4][8]uint64  // Q3_K: bit 2j, 2j+1 of the third bits; with 0x7c less 4 and plus 128
	bias127  [64]byte      // 127
	bias129  [64]byte      // 129
	three    [64]byte      // 3
	quads    [64]byte      // Q2_0: places of the bytes of four values
	quadBits [64]byte      // Q2_0: their shifts
	power    [4][32]uint16 // TQ1_0: powers of 3 for the digits
	threeW   [32]uint16    // TQ1_0: 3
	highW    [32]uint16    // TQ1_0: 0xff00

	// Woven rows.
	sixes     [64]byte   // VPMULTISHIFTQB: eight fields of six bits
	sixBits   [64]byte   // 63
	sixHalves [32]uint16 // places of d, eight times, and dmin
	sixPlaces [64]byte   // Q3_K: bytes of the sixes of lanes 0..7 and 8..15
	fifteenD  [16]uint32 // 15
	fours     [16]uint32 // shifts: 0, 4, 8, ...

	// Scales.
	half18  [32]uint16 // places of halves 18 bytes apart
	half22  [32]uint16 // 22 bytes, the first six
	half22b [32]uint16 // the last two, from byte 112
	pair24  [32]uint16 // pairs of halves 24 bytes apart, the first six
	pair24b [32]uint16 // the last two, from byte 128
	half34  [32]uint16 // four halves 34 bytes apart
	pair20  [32]uint16 // pairs of halves 20 bytes apart
	byte17  [64]byte   // bytes 17 bytes apart, each to a dword
	two18   [32]uint16 // four halves 18 bytes apart, each for 64 values
	lowK    [64]byte   // Q4_K: bytes with the low bits of scales and offsets, each to a dword
	highK   [64]byte   // Q4_K: bytes with their upper two bits
	shiftK  [16]uint32 // Q4_K: shift of the low bits
	maskK   [16]uint32 // Q4_K: mask of the low bits
	upperK  [16]uint32 // Q4_K: mask of the upper bits
	halvesK [16]uint16 // places of d, eight times, and dmin
	shift3  [16]uint32 // Q3_K: shift of the low bits of scales
	rotate3 [16]uint32 // Q3_K: rotation of their upper bits to bits 4 and 5
	low3    [16]byte   // Q3_K: places of their low bits
	high3   [16]byte   // Q3_K: places of their upper bits
	order16 [16]byte   // bytes 0..15 in the order of record.neg16
	order32 [16]byte   // bytes 0..7 in the order of record.d
	dword32 [8]uint32  // places of dwords in that order
	dword64 [16]uint32 // places of the upper dwords of quadwords in that order
	doubled [8]byte    // NVFP4: places of quadwords, each twice
	nibs    uint64     // PDEP masks: a nibble to each byte,
	tops    uint64     // two bits above it

	// i-quants (grids_avx512_amd64.go).
	codes2XXS [2][256]byte   // IQ2_XXS: two bits for each of components 0..3; 4..7
	codes3XXS [2][256]byte   // IQ3_XXS: three bits for each of four components: low byte; upper four bits
	codes3S   [2][512]byte   // IQ3_S
	grid2XS   [512]uint64    // IQ2_XS: vectors, 128 too large
	grid2S    [1024]uint64   // IQ2_S
	grid1     [2048]uint64   // IQ1: eight times the vectors, 128 too large
	at2       [4][64]byte    // places of the codes of values 64z..64z+63 of IQ2_XXS
	at3       [4][64]byte    // the same for four components a code
	sign      [2][4][64]byte // places of the signs of values 64z..64z+63: IQ2_XXS and IQ3_XXS; IQ2_XS
	bit       [64]byte       // 1 << i%8
	parity    [8]uint64      // matrix: bit 7 becomes the parity of bits 0..6
	fields2   [64]byte       // VPMULTISHIFTQB: eight fields of two bits out of 16
	fields3   [64]byte       // four fields of three bits out of 16
	fields7   [64]byte       // four fields of seven bits at bit 0 of each 8 bytes
	fields7b  [64]byte       // at bit 32
	levels2   [64]byte       // levels plus 128, by the low two bits
	levels3   [64]byte       // by the low three bits
	levelsS   [64]byte
	high1M    [64]byte    // IQ1_M
	move1     [4][64]byte // IQ1_S: places of the moves of 32 values each
	move1M    [4][64]byte // IQ1_M: places of the nibbles of 8 values each
	shift1M   [16]uint32  // IQ1_M: shifts of scales
	tops1M    uint64      // IQ1_M: PEXT mask of the half
	bytes     uint64      // PDEP masks: bytes to words,
	two8      uint64      // two bits to bit 8 of each word,
	three8    uint64      // three bits
	sevens    uint64      // PEXT mask of the lower three bits of nibbles
}

// affine is a matrix for VGF2P8AFFINEQB: bit i of the result is the exclusive
// or of the bits of the source in rows[i]. In the instruction byte 7-i makes
// bit i.
func affine(rows [8]byte) uint64 {
	var m uint64
	for i, r := range rows {
		m |= uint64(r) << (8 * (7 - i))
	}
	return m
}

// matrices repeats matrices over the eight quadwords of a register.
func matrices(pattern string, m ...uint64) (q [8]uint64) {
	for i := range q {
		q[i] = m[pattern[i]-'0']
	}
	return q
}

// full repeats a byte over a register.
func full(b byte) (v [64]byte) {
	for i := range v {
		v[i] = b
	}
	return v
}

var c512 = func() (c consts512) {
	c.flip, c.sixteen, c.bias127, c.bias129, c.three = full(0x80), full(16), full(127), full(129), full(3)
	c.fifteen, c.top2, c.sixBits = full(15), full(0x30), full(63)
	for i := range c.fours {
		c.fours[i], c.fifteenD[i] = uint32(4*i), 15
		c.sixes[i] = byte(6 * (i % 8))
		c.sixHalves[i] = uint16(3 + i/8*4)
	}
	copy(c.sixPlaces[:], []byte{2, 3, 4, 5, 6, 7, 0x80, 0x80, 8, 9, 10, 11, 12, 13, 0x80, 0x80})
	c.bits()
	c.scales()
	c.grids()
	return c
}()

// bits fills the constants of the weights.
func (c *consts512) bits() {
	const all, halves = "00000000", "00001111"
	low := affine([8]byte{1, 2, 4, 8})
	high := affine([8]byte{16, 32, 64, 128})
	c.low, c.high = matrices(all, low), matrices(all, high)
	c.nib = matrices("00110011", low, high)
	c.nib32 = matrices(halves, low, high)
	c.nib64 = matrices("01010101", low, high)
	// n-8+128: bit 3 goes to bit 7 and, inverted by the immediate, to bits 3..6.
	c.nib8 = matrices("00110011", affine([8]byte{1, 2, 4, 8, 8, 8, 8, 8}),
		affine([8]byte{16, 32, 64, 128, 128, 128, 128, 128}))
	for j := range 4 {
		// h<<4 of Q5_K.
		a, b := byte(1)<<(2*j), byte(2)<<(2*j)
		c.fifth[j] = matrices(halves, affine([8]byte{4: a}), affine([8]byte{4: b}))
		// 4*h-4+128: h goes to bit 7 and, inverted, to bits 2..6.
		c.third[j] = matrices(halves, affine([8]byte{0, 0, a, a, a, a, a, a}), affine([8]byte{0, 0, b, b, b, b, b, b}))
	}
	// 16*u-32+128: bit 1 of u goes to bit 7 and, inverted, to bits 5 and 6.
	upper := func(pair int) uint64 {
		a, b := byte(1)<<(2*pair), byte(2)<<(2*pair)
		return affine([8]byte{0, 0, 0, 0, a, b, b, b})
	}
	pair := func(pair int) uint64 { return affine([8]byte{byte(1) << (2 * pair), byte(2) << (2 * pair)}) }
	for j := range 2 {
		c.sixth[j] = matrices(halves, upper(2*j), upper(2*j+1))
		c.pairs[j] = matrices(halves, pair(2*j), pair(2*j+1))
	}
	for i := range 64 {
		c.uneven[i] = byte(levels4[i%16]) + 128
		c.e2m1[i] = byte(levelsE2M1[i%16]) + 128
		c.relaid3S[i] = byte(levelsRelaid[0][i%16]) + 128
		c.relaid3XXS[i] = byte(levelsRelaid[1][i%16]) + 128
		c.quads[i] = byte(i / 4)
		c.quadBits[i] = byte(i%8/4*32 + 2*(i%4))
	}
	// The digits of TQ1_0 in order: which power of three a lane of 16 values has.
	powers := [5]uint16{1, 3, 9, 27, 81}
	for v := range 256 {
		n := v / 32
		if v >= 160 {
			n = (v - 160) / 16
		}
		if v >= 240 {
			n = (v - 240) / 4
		}
		if v%2 == 0 { // two neighbours always have the same power
			c.power[v/64][v%64/2] = powers[n]
		}
	}
	for i := range c.threeW {
		c.threeW[i], c.highW[i] = 3, 0xff00
	}
}

// scales fills the constants of the scales.
func (c *consts512) scales() {
	// place is the number of the half at byte at out of two loads of 64 bytes,
	// of which the second begins at byte second.
	place := func(at, second int) uint16 {
		if at < 64 {
			return uint16(at / 2)
		}
		return uint16(32 + (at-second)/2)
	}
	for b := range 8 {
		p := order32(b)
		c.half18[p] = place(18*b, 64)
		c.half34[p] = place(34*(b%4), 64)
		c.two18[p] = place(18*(b/2), 64)
		c.pair20[p] = place(20*(b%4), 0) + uint16(b/4*32)
		c.pair20[p+8] = c.pair20[p] + 1
		if b < 6 {
			c.half22[p], c.pair24[p] = place(22*b, 64), place(24*b, 64)
		} else {
			c.half22b[p], c.pair24b[p] = uint16(22*b-112)/2, uint16(24*b-128)/2
		}
		c.pair24[p+8], c.pair24b[p+8] = c.pair24[p]+1, c.pair24b[p]+1
		c.byte17[4*p] = byte(17 * b)
		if 17*b >= 64 {
			c.byte17[4*p] = byte(64 + 17*b - 64)
		}
		c.halvesK[p], c.halvesK[p+8] = 0, 1
		if b < 4 {
			c.lowK[4*p], c.lowK[32+4*p] = byte(4+b), byte(8+b)
			c.maskK[p], c.maskK[8+p] = 63, 63
		} else {
			c.lowK[4*p], c.lowK[32+4*p] = byte(8+b), byte(8+b)
			c.highK[4*p], c.highK[32+4*p] = byte(b), byte(4+b)
			c.shiftK[8+p] = 4
			c.maskK[p], c.maskK[8+p] = 15, 15
			c.upperK[p], c.upperK[8+p] = 0x30, 0x30
		}
		c.order32[p] = byte(b)
		c.dword32[p], c.dword64[p] = uint32(b), uint32(2*b+1)
	}
	for s := range 16 {
		p := order16(s)
		c.order16[p] = byte(s)
		c.low3[p], c.high3[p] = byte(s%8), byte(8+s%4)
		c.shift3[p], c.rotate3[p] = uint32(s/8*4), uint32(4-s/4*2)&31
	}
	c.doubled = [8]byte{0, 0, 1, 1, 2, 2, 3, 3}
	c.nibs, c.tops = 0x0f0f0f0f0f0f0f0f, 0x3030303030303030
}
