package quant

// consts512 is what the AVX-512 kernels load: assembly reaches the fields
// through their offsets in go_asm.h. Fields of 64 bytes first.
type consts512 struct {
	flip    [64]byte     // 0x80
	nib     [8]uint64    // matrices: low nibble in the even 16 bytes, high nibble in the odd
	nib8    [8]uint64    // the same, 8 less, plus 128 with imm8 0x78
	nib32   [8]uint64    // low nibble in the lower 32 bytes, high nibble in the upper
	six     [2][8]uint64 // Q6_K: upper bits of values 0..63 and 64..127 of 128
	sixLow  [8]uint64
	sixHigh [8]uint64
	half18  [32]uint16 // halves that lie 18 bytes apart
	half34  [2][32]uint16
	word20  [32]uint16 // pairs of halves that lie 20 bytes apart
	k4      k4Consts
	order16 [16]byte // shuffles bytes 0..15 into the order of record.neg16
}

// k4Consts splits the 16 bytes of halves and 6-bit numbers at the start of a
// Q4_K or Q5_K block.
type k4Consts struct {
	low    [64]byte   // byte 0 of each dword: where the low bits are
	high   [64]byte   // where the upper two bits are
	shift  [16]uint32 // of the low bits
	mask   [16]uint32 // of the low bits
	upper  [16]uint32 // mask of the upper bits
	halves [16]uint16 // d eight times, then dmin
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

// spreadQ repeats matrices over the eight quadwords of a register.
func spreadQ(pattern string, m ...uint64) (q [8]uint64) {
	for i := range q {
		q[i] = m[pattern[i]-'0']
	}
	return q
}

var c512 = func() (c consts512) {
	for i := range c.flip {
		c.flip[i] = 0x80
	}
	low := affine([8]byte{1, 2, 4, 8, 0, 0, 0, 0})
	high := affine([8]byte{16, 32, 64, 128, 0, 0, 0, 0})
	c.nib = spreadQ("00110011", low, high)
	c.nib32 = spreadQ("00001111", low, high)
	// n-8+128: bit 3 goes to bit 7 and, inverted by the immediate, to bits 3..6.
	low8 := affine([8]byte{1, 2, 4, 8, 8, 8, 8, 8})
	high8 := affine([8]byte{16, 32, 64, 128, 128, 128, 128, 128})
	c.nib8 = spreadQ("00110011", low8, high8)
	c.sixLow = spreadQ("00000000", low)
	c.sixHigh = spreadQ("00000000", high)
	// u-32+128: bit 5 goes to bit 7 and, inverted, to bits 5 and 6. Pair k of
	// the upper bits is bits 2k and 2k+1.
	pair := func(k int) uint64 {
		lo, hi := byte(1<<(2*k)), byte(2<<(2*k))
		return affine([8]byte{0, 0, 0, 0, lo, hi, hi, hi})
	}
	c.six[0] = spreadQ("00001111", pair(0), pair(1))
	c.six[1] = spreadQ("00001111", pair(2), pair(3))
	for i := range 8 {
		p := order32(i)
		c.half18[p] = uint16(18 * (i % 4) / 2)
		if i >= 4 {
			c.half18[p] = uint16(32 + (18*i-64)/2)
		}
		c.half34[0][p] = uint16(34 * (i % 4) / 2)
		if i%4 >= 2 {
			c.half34[0][p] = uint16(32 + (34*(i%4)-64)/2)
		}
		word := uint16(20 * (i % 4) / 2)
		if i >= 4 {
			word += 32
		}
		c.word20[p], c.word20[p+8] = word, word+1
		k := &c.k4
		k.halves[i], k.halves[8+i] = 0, 1
		b := byte(i)
		if i < 4 {
			k.low[4*p], k.low[32+4*p] = 4+b, 8+b
			k.mask[p], k.mask[8+p] = 63, 63
		} else {
			k.low[4*p], k.low[32+4*p] = 8+b, 8+b
			k.high[4*p], k.high[32+4*p] = b, 4+b
			k.shift[8+p] = 4
			k.mask[p], k.mask[8+p] = 15, 15
			k.upper[p], k.upper[8+p] = 0x30, 0x30
		}
	}
	for i := range 16 {
		c.order16[order16(i)] = byte(i)
	}

	return c
}()
