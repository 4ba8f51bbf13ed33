package quant

// consts256 is what the AVX2 kernels load, by the offsets in go_asm.h.
type consts256 struct {
	nib        [32]byte  // 15
	three      [32]byte  // 3
	four       [32]byte  // 4
	one        [32]byte  // 1
	two        [32]byte  // 2
	sixteen    [32]byte  // 16
	top2       [32]byte  // 0x30
	flip       [32]byte  // 0x80
	sixty4     [32]byte  // 64
	half4      [4]uint64 // shifts: 0 0 4 4
	pair4      [4]uint64 // shifts: 0 4 0 4
	spread     [32]byte  // byte i/8: the byte with the bit of value i
	bit        [32]byte  // 1 << i%8
	uneven     [32]byte  // levels4, twice
	e2m1       [32]byte  // levelsE2M1 plus 16, twice
	relaid3S   [32]byte  // levelsRelaid plus 16, twice
	relaid3XXS [32]byte  // plus 64
	ones       [16]uint16
	// Q2_0: byte i/4, and pair i%4 of it.
	quads [32]byte
	quad  [4][32]byte
	// TQ1_0.
	power  [8][16]uint16
	threeW [16]uint16
	highW  [16]uint16
	// Woven rows.
	sixes   [4]uint64 // shifts of sixes of lanes 0, 1, 4, 5
	sixes2  [4]uint64 // of lanes 2, 3, 6, 7
	sixBits [8]uint32 // 63
	fours   [8]uint32 // shifts: 0, 4, 8, ...
	// Scales.
	dwords  [16]byte // halves 0 of four dwords, then halves 1
	order16 [16]byte // bytes 0..15 in the order of record.neg16
	lowK    [16]byte // Q4_K: as in consts512
	highK   [16]byte
	maskK   [16]byte
	mask4K  [16]byte  // of low bits that have to be shifted
	order32 [16]byte  // bytes 0..7 in the order of record.d
	dword32 [8]uint32 // dwords in that order
	low3    [16]byte
	high3   [16]byte
	shift3  [2][8]uint32
	left3   [2][8]uint32
	fifteen [8]uint32
	thirty2 [8]uint32
	upper   [8]uint32 // 0x30
	seven   [8]uint32
	oneD    [8]uint32
	half    [8]float32 // 0.5
	quarter [8]float32 // 0.25
	eighth  [8]float32 // 0.125
	two7    [8]float32 // 128
	nan43   [16]byte   // 0x7f
	e8m0    [8]uint32  // 2^21
	shift1M [2][8]uint32
	packed  [8]uint32 // order of fours of bytes after two packs
	top127  float32
	tiny    float32
	nibs    uint64
	tops    uint64
	sevens  uint64
	tops1M  uint64
	upper7  uint64    // IQ2_XS: the signs of four words
	eights  uint64    // IQ1_M: the moves of four nibbles
	twos    uint64    // the same as bytes of 2
	dword64 [8]uint32 // IQ2_XXS: order of scales after VSHUFPS
}

var c256 = func() (c consts256) {
	for i := range 32 {
		c.nib[i], c.three[i], c.four[i], c.one[i], c.two[i], c.sixteen[i] = 15, 3, 4, 1, 2, 16
		c.top2[i], c.flip[i], c.sixty4[i] = 0x30, 0x80, 64
		c.spread[i] = byte(i / 8)
		c.bit[i] = 1 << (i % 8)
		c.uneven[i] = byte(levels4[i%16])
		c.e2m1[i] = byte(levelsE2M1[i%16] + 16)
		c.relaid3S[i] = byte(levelsRelaid[0][i%16] + 16)
		c.relaid3XXS[i] = byte(levelsRelaid[1][i%16] + 64)
		c.quads[i] = byte(i / 4)
		c.quad[i%4][i] = 3
	}
	c.half4, c.pair4 = [4]uint64{0, 0, 4, 4}, [4]uint64{0, 4, 0, 4}
	for i := range 16 {
		c.ones[i], c.threeW[i], c.highW[i] = 1, 3, 0xff00
		c.nan43[i] = 0x7f
	}
	c.sixes, c.sixes2 = [4]uint64{0, 6, 24, 30}, [4]uint64{12, 18, 36, 42}
	for i := range c.fours {
		c.fours[i], c.sixBits[i] = uint32(4*i), 63
	}
	for z := range 4 {
		for i, p := range c512.power[z] {
			c.power[2*z+i/16][i%16] = p
		}
	}
	c.dwords = [16]byte{0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15}
	c.order16, c.order32, c.dword32 = c512.order16, c512.order32, c512.dword32
	c.low3, c.high3 = c512.low3, c512.high3
	for p := range 16 {
		c.lowK[p], c.highK[p], c.maskK[p] = c512.lowK[4*p], 0x80, byte(c512.maskK[p])
		if c512.upperK[p] != 0 {
			c.highK[p] = c512.highK[4*p]
		}
		if c512.shiftK[p] != 0 {
			c.maskK[p], c.mask4K[p] = 0, 15
		}
		// Upper bits come to bits 4 and 5: left by 4, then right by a multiple of 2.
		c.shift3[p/8][p%8] = c512.shift3[p]
		c.left3[p/8][p%8] = (4 - c512.rotate3[p]) & 31
		c.shift1M[p/8][p%8] = c512.shift1M[p]
	}
	for i := range 8 {
		c.fifteen[i], c.thirty2[i], c.upper[i], c.seven[i], c.oneD[i], c.e8m0[i] = 15, 32, 0x30, 7, 1, 0x200000
		c.half[i], c.quarter[i], c.eighth[i], c.two7[i] = 0.5, 0.25, 0.125, 128
	}
	c.nibs, c.tops, c.tops1M = c512.nibs, c512.tops, c512.tops1M
	c.sevens = 0x7f7f7f7f7f7f7f7f
	c.packed = [8]uint32{0, 4, 1, 5, 2, 6, 3, 7}
	c.top127, c.tiny = 127, 0x1p-120
	c.upper7, c.eights, c.twos = 0xfe00fe00fe00fe00, 0x8888, 0x02020202
	c.dword64 = [8]uint32{0, 4, 2, 6, 1, 5, 3, 7}
	return c
}()
