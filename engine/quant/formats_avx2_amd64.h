// Formats on AVX2: UNPACK_ brings the 256 weights at (SI) to the plain row
// (many.go) at (R8). They are bytes without sign, too large by what the comment
// says, or bytes with sign. All registers but SI, DI, BX, CX, DX, R8, R11, R12
// are free. Layouts: LAYOUTS.md.

// HALVES makes eight floats of halves at places of (SI), for blocks 0 to 7.
#define HALVES(a, b, c, d, e, f, g, h) \
	VPXOR X8, X8, X8; \
	VPINSRW $0, a(SI), X8, X8; \
	VPINSRW $1, c(SI), X8, X8; \
	VPINSRW $2, e(SI), X8, X8; \
	VPINSRW $3, g(SI), X8, X8; \
	VPINSRW $4, b(SI), X8, X8; \
	VPINSRW $5, d(SI), X8, X8; \
	VPINSRW $6, f(SI), X8, X8; \
	VPINSRW $7, h(SI), X8, X8; \
	VCVTPH2PS X8, Y8; \
	VMOVUPS Y8, plainRow_scale(R8)

// PAIRS makes scales and what is added of dwords that hold two halves.
#define PAIRS(a, b, c, d, e, f, g, h) \
	VMOVD a(SI), X8; \
	VPINSRD $1, c(SI), X8, X8; \
	VPINSRD $2, e(SI), X8, X8; \
	VPINSRD $3, g(SI), X8, X8; \
	VMOVD b(SI), X9; \
	VPINSRD $1, d(SI), X9, X9; \
	VPINSRD $2, f(SI), X9, X9; \
	VPINSRD $3, h(SI), X9, X9; \
	VPSHUFB ·c256+consts256_dwords(SB), X8, X8; \
	VPSHUFB ·c256+consts256_dwords(SB), X9, X9; \
	VPUNPCKLQDQ X9, X8, X10; \
	VPUNPCKHQDQ X9, X8, X11; \
	VCVTPH2PS X10, Y10; \
	VCVTPH2PS X11, Y11; \
	VMOVUPS Y10, plainRow_scale(R8); \
	VMOVUPS Y11, plainRow_minus(R8)

// HALF spreads the half at (SI)+at over y.
#define HALF(at, x, y) VPBROADCASTW at(SI), x; VCVTPH2PS x, y

// PUT stores the 32 weights of block b.
#define PUT(y, b) VMOVDQU y, (32*b)(R8)

// NIBBLES makes 32 values of the 16 bytes at (SI)+at: low halves, then high
// halves. Y15 holds 15 in each byte.
#define NIBBLES(at, y) \
	VBROADCASTI128 at(SI), y; \
	VPSRLVQ ·c256+consts256_half4(SB), y, y; \
	VPAND Y15, y, y
#define NIBBLE_MASK VMOVDQU ·c256+consts256_nib(SB), Y15

// Q4_0: 8 too large
#define NIBBLE(at, b) NIBBLES(at, Y0); PUT(Y0, b)
#define UNPACK_Q4_0 \
	HALVES(0, 18, 36, 54, 72, 90, 108, 126); \
	NIBBLE_MASK; \
	NIBBLE(2, 0); \
	NIBBLE(20, 1); \
	NIBBLE(38, 2); \
	NIBBLE(56, 3); \
	NIBBLE(74, 4); \
	NIBBLE(92, 5); \
	NIBBLE(110, 6); \
	NIBBLE(128, 7)

// Q4_1
#define UNPACK_Q4_1 \
	PAIRS(0, 20, 40, 60, 80, 100, 120, 140); \
	NIBBLE_MASK; \
	NIBBLE(4, 0); \
	NIBBLE(24, 1); \
	NIBBLE(44, 2); \
	NIBBLE(64, 3); \
	NIBBLE(84, 4); \
	NIBBLE(104, 5); \
	NIBBLE(124, 6); \
	NIBBLE(144, 7)

// BITS makes 32 bytes of the 32 bits at m: 255 where a bit is set.
#define BITS(m, y) \
	VPBROADCASTD m, y; \
	VPSHUFB ·c256+consts256_spread(SB), y, y; \
	VPAND Y14, y, y; \
	VPCMPEQB Y14, y, y
#define BIT_MASK VMOVDQU ·c256+consts256_bit(SB), Y14

// Q5_0: 16 too large
#define FIFTH(bits, at, b) \
	NIBBLES(at, Y0); \
	BITS(bits(SI), Y1); \
	VPAND Y13, Y1, Y1; \
	VPOR Y1, Y0, Y0; \
	PUT(Y0, b)
#define FIFTH_MASKS \
	NIBBLE_MASK; \
	BIT_MASK; \
	VMOVDQU ·c256+consts256_sixteen(SB), Y13
#define UNPACK_Q5_0 \
	HALVES(0, 22, 44, 66, 88, 110, 132, 154); \
	FIFTH_MASKS; \
	FIFTH(2, 6, 0); \
	FIFTH(24, 28, 1); \
	FIFTH(46, 50, 2); \
	FIFTH(68, 72, 3); \
	FIFTH(90, 94, 4); \
	FIFTH(112, 116, 5); \
	FIFTH(134, 138, 6); \
	FIFTH(156, 160, 7)

// Q5_1
#define UNPACK_Q5_1 \
	PAIRS(0, 24, 48, 72, 96, 120, 144, 168); \
	FIFTH_MASKS; \
	FIFTH(4, 8, 0); \
	FIFTH(28, 32, 1); \
	FIFTH(52, 56, 2); \
	FIFTH(76, 80, 3); \
	FIFTH(100, 104, 4); \
	FIFTH(124, 128, 5); \
	FIFTH(148, 152, 6); \
	FIFTH(172, 176, 7)

// Q8_0: with sign
#define COPY(at, b) VMOVDQU at(SI), Y0; PUT(Y0, b)
#define UNPACK_Q8_0 \
	HALVES(0, 34, 68, 102, 136, 170, 204, 238); \
	COPY(2, 0); \
	COPY(36, 1); \
	COPY(70, 2); \
	COPY(104, 3); \
	COPY(138, 4); \
	COPY(172, 5); \
	COPY(206, 6); \
	COPY(240, 7)

// SCALES4K: the 6-bit numbers of Q4_K and Q5_K, scales in the lower, offsets in
// the upper 8 bytes of X8. The upper four of each kind have their upper bits at
// the top of other bytes.
#define SCALES4K \
	VMOVDQU (SI), X10; \
	VPSHUFB ·c256+consts256_lowK(SB), X10, X8; \
	VPSHUFB ·c256+consts256_highK(SB), X10, X9; \
	VPSRLW $4, X8, X11; \
	VPSRLW $2, X9, X9; \
	VPAND ·c256+consts256_maskK(SB), X8, X8; \
	VPAND ·c256+consts256_mask4K(SB), X11, X11; \
	VPAND ·c256+consts256_top2(SB), X9, X9; \
	VPOR X11, X8, X8; \
	VPOR X9, X8, X8; \
	VPSRLDQ $8, X8, X9; \
	VPMOVZXBD X8, Y8; \
	VPMOVZXBD X9, Y9; \
	HALF(0, X10, Y10); \
	HALF(2, X11, Y11); \
	VCVTDQ2PS Y8, Y8; \
	VCVTDQ2PS Y9, Y9; \
	VMULPS Y10, Y8, Y8; \
	VMULPS Y11, Y9, Y9; \
	VXORPS X10, X10, X10; \
	VSUBPS Y9, Y10, Y9; \
	VMOVUPS Y8, plainRow_scale(R8); \
	VMOVUPS Y9, plainRow_minus(R8)

// Q4_K
#define LOWHIGH(at, b) \
	VMOVDQU at(SI), Y0; \
	VPSRLW $4, Y0, Y1; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	PUT(Y0, b); \
	PUT(Y1, (b+1))
#define UNPACK_Q4_K \
	SCALES4K; \
	NIBBLE_MASK; \
	LOWHIGH(16, 0); \
	LOWHIGH(48, 2); \
	LOWHIGH(80, 4); \
	LOWHIGH(112, 6)

// Q5_K. LOWHIGH5: Y12 holds the fifth bits, moved so that the first of the two
// groups has its bit at bit 4 after SHIFT by n; the second is a bit above.
#define LOWHIGH5(at, b, SHIFTA, na, SHIFTB, nb) \
	VMOVDQU at(SI), Y0; \
	VPSRLW $4, Y0, Y1; \
	SHIFTA $na, Y12, Y2; \
	SHIFTB $nb, Y12, Y3; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VPAND Y13, Y2, Y2; \
	VPAND Y13, Y3, Y3; \
	VPOR Y2, Y0, Y0; \
	VPOR Y3, Y1, Y1; \
	PUT(Y0, b); \
	PUT(Y1, (b+1))
#define UNPACK_Q5_K \
	SCALES4K; \
	NIBBLE_MASK; \
	VMOVDQU ·c256+consts256_sixteen(SB), Y13; \
	VMOVDQU 16(SI), Y12; \
	LOWHIGH5(48, 0, VPSLLW, 4, VPSLLW, 3); \
	LOWHIGH5(80, 2, VPSLLW, 2, VPSLLW, 1); \
	LOWHIGH5(112, 4, VPSLLW, 0, VPSRLW, 1); \
	LOWHIGH5(144, 6, VPSRLW, 2, VPSRLW, 3)

// SCALES16 makes 16 scales of the bytes with sign in X8, already in the order
// of a record, and the half at (SI)+at.
#define SCALES16(at) \
	VPSRLDQ $8, X8, X9; \
	VPMOVSXBD X8, Y8; \
	VPMOVSXBD X9, Y9; \
	HALF(at, X10, Y10); \
	VCVTDQ2PS Y8, Y8; \
	VCVTDQ2PS Y9, Y9; \
	VMULPS Y10, Y8, Y8; \
	VMULPS Y10, Y9, Y9; \
	VMOVUPS Y8, plainRow_scale(R8); \
	VMOVUPS Y9, (plainRow_scale+32)(R8)

// Q6_K: 32 too large
#define SIX(low, high, b) \
	VMOVDQU low(SI), Y0; \
	VMOVDQU (low+32)(SI), Y1; \
	VMOVDQU high(SI), Y2; \
	VPSLLW $4, Y2, Y3; \
	VPSLLW $2, Y2, Y4; \
	VPSRLW $2, Y2, Y5; \
	VPSRLW $4, Y0, Y6; \
	VPSRLW $4, Y1, Y7; \
	VPAND Y14, Y3, Y3; \
	VPAND Y14, Y4, Y4; \
	VPAND Y14, Y2, Y2; \
	VPAND Y14, Y5, Y5; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VPAND Y15, Y6, Y6; \
	VPAND Y15, Y7, Y7; \
	VPOR Y3, Y0, Y0; \
	VPOR Y4, Y1, Y1; \
	VPOR Y2, Y6, Y6; \
	VPOR Y5, Y7, Y7; \
	PUT(Y0, b); \
	PUT(Y1, (b+1)); \
	PUT(Y6, (b+2)); \
	PUT(Y7, (b+3))
#define UNPACK_Q6_K \
	VMOVDQU 192(SI), X8; \
	VPSHUFB ·c256+consts256_order16(SB), X8, X8; \
	SCALES16(208); \
	NIBBLE_MASK; \
	VMOVDQU ·c256+consts256_top2(SB), Y14; \
	SIX(0, 128, 0); \
	SIX(64, 160, 4)

// TWO makes four times 32 values of the pairs of bits of the 32 bytes at
// (SI)+at: Y0-Y3. Y15 holds 3.
#define TWO(at) \
	VMOVDQU at(SI), Y0; \
	VPSRLW $2, Y0, Y1; \
	VPSRLW $4, Y0, Y2; \
	VPSRLW $6, Y0, Y3; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VPAND Y15, Y2, Y2; \
	VPAND Y15, Y3, Y3
#define TWO_MASK VMOVDQU ·c256+consts256_three(SB), Y15
#define PUT4(b) \
	PUT(Y0, b); \
	PUT(Y1, (b+1)); \
	PUT(Y2, (b+2)); \
	PUT(Y3, (b+3))

// Q2_K
#define UNPACK_Q2_K \
	VMOVDQU (SI), X8; \
	VPSHUFB ·c256+consts256_order16(SB), X8, X8; \
	VPSRLDQ $8, X8, X9; \
	VPMOVZXBD X8, Y8; \
	VPMOVZXBD X9, Y9; \
	VPSRLD $4, Y8, Y10; \
	VPSRLD $4, Y9, Y11; \
	VPAND ·c256+consts256_fifteen(SB), Y8, Y8; \
	VPAND ·c256+consts256_fifteen(SB), Y9, Y9; \
	VCVTDQ2PS Y8, Y8; \
	VCVTDQ2PS Y9, Y9; \
	VCVTDQ2PS Y10, Y10; \
	VCVTDQ2PS Y11, Y11; \
	HALF(80, X12, Y12); \
	HALF(82, X13, Y13); \
	VXORPS X14, X14, X14; \
	VMULPS Y12, Y8, Y8; \
	VMULPS Y12, Y9, Y9; \
	VMULPS Y13, Y10, Y10; \
	VMULPS Y13, Y11, Y11; \
	VSUBPS Y10, Y14, Y10; \
	VSUBPS Y11, Y14, Y11; \
	VMOVUPS Y8, plainRow_scale(R8); \
	VMOVUPS Y9, (plainRow_scale+32)(R8); \
	VMOVUPS Y10, plainRow_minus(R8); \
	VMOVUPS Y11, (plainRow_minus+32)(R8); \
	TWO_MASK; \
	TWO(16); \
	PUT4(0); \
	TWO(48); \
	PUT4(4)

// Q3_K: 4 too large. THIRD adds 4 where bits of Y12 are set; SHIFT by n brings
// them to bit 2. Y14 holds 4.
#define THIRD(SHIFT, n, y) \
	SHIFT $n, Y12, Y4; \
	VPAND Y14, Y4, Y4; \
	VPOR Y4, y, y
#define SCALES3(part, x, y) \
	VPMOVZXBD x, y; \
	VPSRLVD ·c256+(consts256_shift3+32*part)(SB), y, y; \
	VPAND ·c256+consts256_fifteen(SB), y, y
#define HIGH3(part, x, y) \
	VPMOVZXBD x, y; \
	VPSLLD $4, y, y; \
	VPSRLVD ·c256+(consts256_left3+32*part)(SB), y, y; \
	VPAND ·c256+consts256_upper(SB), y, y
#define UNPACK_Q3_K \
	VMOVQ 96(SI), X7; \
	VPINSRD $2, 104(SI), X7, X7; \
	VPSHUFB ·c256+consts256_low3(SB), X7, X8; \
	VPSHUFB ·c256+consts256_high3(SB), X7, X10; \
	VPSRLDQ $8, X8, X9; \
	VPSRLDQ $8, X10, X11; \
	SCALES3(0, X8, Y8); \
	SCALES3(1, X9, Y9); \
	HIGH3(0, X10, Y10); \
	HIGH3(1, X11, Y11); \
	VPOR Y10, Y8, Y8; \
	VPOR Y11, Y9, Y9; \
	VPSUBD ·c256+consts256_thirty2(SB), Y8, Y8; \
	VPSUBD ·c256+consts256_thirty2(SB), Y9, Y9; \
	HALF(108, X10, Y10); \
	VCVTDQ2PS Y8, Y8; \
	VCVTDQ2PS Y9, Y9; \
	VMULPS Y10, Y8, Y8; \
	VMULPS Y10, Y9, Y9; \
	VMOVUPS Y8, plainRow_scale(R8); \
	VMOVUPS Y9, (plainRow_scale+32)(R8); \
	TWO_MASK; \
	VMOVDQU ·c256+consts256_four(SB), Y14; \
	VMOVDQU (SI), Y12; \
	TWO(32); \
	THIRD(VPSLLW, 2, Y0); \
	THIRD(VPSLLW, 1, Y1); \
	THIRD(VPSLLW, 0, Y2); \
	THIRD(VPSRLW, 1, Y3); \
	PUT4(0); \
	TWO(64); \
	THIRD(VPSRLW, 2, Y0); \
	THIRD(VPSRLW, 3, Y1); \
	THIRD(VPSRLW, 4, Y2); \
	THIRD(VPSRLW, 5, Y3); \
	PUT4(4)

// TQ2_0: 1 too large
#define UNPACK_TQ2_0 \
	HALF(64, X8, Y8); \
	VMOVUPS Y8, plainRow_scale(R8); \
	TWO_MASK; \
	TWO(0); \
	PUT4(0); \
	TWO(32); \
	PUT4(4)

// TQ1_0: 1 too large
#define DIGIT(power, y, b) \
	VPSLLW $8, y, Y8; \
	VPAND Y15, y, Y9; \
	VPMULLW ·c256+(consts256_power+32*power)(SB), Y8, Y8; \
	VPMULLW ·c256+(consts256_power+32*power)(SB), Y9, Y9; \
	VPMULHUW Y14, Y8, Y8; \
	VPMULHUW Y14, Y9, Y9; \
	VPSLLW $8, Y9, Y9; \
	VPOR Y9, Y8, Y8; \
	PUT(Y8, b)
#define UNPACK_TQ1_0 \
	HALF(52, X8, Y8); \
	VMOVUPS Y8, plainRow_scale(R8); \
	VMOVDQU ·c256+consts256_highW(SB), Y15; \
	VMOVDQU ·c256+consts256_threeW(SB), Y14; \
	VMOVDQU (SI), Y0; \
	VBROADCASTI128 32(SI), Y1; \
	VPBROADCASTD 48(SI), Y2; \
	VPERM2I128 $0x20, Y2, Y1, Y2; \
	DIGIT(0, Y0, 0); \
	DIGIT(1, Y0, 1); \
	DIGIT(2, Y0, 2); \
	DIGIT(3, Y0, 3); \
	DIGIT(4, Y0, 4); \
	DIGIT(5, Y1, 5); \
	DIGIT(6, Y1, 6); \
	DIGIT(7, Y2, 7)

// Q2_0: 1 too large. QUAD makes 32 values of 8 bytes.
#define QUAD(at, b) \
	VPBROADCASTQ at(SI), Y0; \
	VPSHUFB Y15, Y0, Y0; \
	VPSRLW $2, Y0, Y1; \
	VPSRLW $4, Y0, Y2; \
	VPSRLW $6, Y0, Y3; \
	VPAND Y11, Y0, Y0; \
	VPAND Y12, Y1, Y1; \
	VPAND Y13, Y2, Y2; \
	VPAND Y14, Y3, Y3; \
	VPOR Y1, Y0, Y0; \
	VPOR Y3, Y2, Y2; \
	VPOR Y2, Y0, Y0; \
	PUT(Y0, b)
#define UNPACK_Q2_0 \
	HALVES(0, 0, 18, 18, 36, 36, 54, 54); \
	VMOVDQU ·c256+consts256_quads(SB), Y15; \
	VMOVDQU ·c256+consts256_quad(SB), Y11; \
	VMOVDQU ·c256+(consts256_quad+32)(SB), Y12; \
	VMOVDQU ·c256+(consts256_quad+64)(SB), Y13; \
	VMOVDQU ·c256+(consts256_quad+96)(SB), Y14; \
	QUAD(2, 0); \
	QUAD(10, 1); \
	QUAD(20, 2); \
	QUAD(28, 3); \
	QUAD(38, 4); \
	QUAD(46, 5); \
	QUAD(56, 6); \
	QUAD(64, 7)

// Q1_0: 1 too large
#define ONEBIT(at, b) \
	BITS(at(SI), Y0); \
	VPAND Y15, Y0, Y0; \
	PUT(Y0, b)
#define UNPACK_Q1_0 \
	HALVES(0, 0, 0, 0, 18, 18, 18, 18); \
	BIT_MASK; \
	VMOVDQU ·c256+consts256_two(SB), Y15; \
	ONEBIT(2, 0); \
	ONEBIT(6, 1); \
	ONEBIT(10, 2); \
	ONEBIT(14, 3); \
	ONEBIT(20, 4); \
	ONEBIT(24, 5); \
	ONEBIT(28, 6); \
	ONEBIT(32, 7)

// LEVEL is NIBBLE through the table in Y13.
#define LEVEL(at, b) \
	NIBBLES(at, Y0); \
	VPSHUFB Y0, Y13, Y0; \
	PUT(Y0, b)

// IQ4_NL: with sign
#define UNPACK_IQ4_NL \
	HALVES(0, 18, 36, 54, 72, 90, 108, 126); \
	NIBBLE_MASK; \
	VMOVDQU ·c256+consts256_uneven(SB), Y13; \
	LEVEL(2, 0); \
	LEVEL(20, 1); \
	LEVEL(38, 2); \
	LEVEL(56, 3); \
	LEVEL(74, 4); \
	LEVEL(92, 5); \
	LEVEL(110, 6); \
	LEVEL(128, 7)

// IQ4_XS: with sign
#define UNPACK_IQ4_XS \
	MOVL 4(SI), R13; \
	MOVWLZX 2(SI), R15; \
	PDEPQ ·c256+consts256_nibs(SB), R13, R13; \
	PDEPQ ·c256+consts256_tops(SB), R15, R15; \
	ORQ R15, R13; \
	VMOVQ R13, X8; \
	VPSHUFB ·c256+consts256_order32(SB), X8, X8; \
	VPMOVZXBD X8, Y8; \
	VPSUBD ·c256+consts256_thirty2(SB), Y8, Y8; \
	HALF(0, X9, Y9); \
	VCVTDQ2PS Y8, Y8; \
	VMULPS Y9, Y8, Y8; \
	VMOVUPS Y8, plainRow_scale(R8); \
	NIBBLE_MASK; \
	VMOVDQU ·c256+consts256_uneven(SB), Y13; \
	LEVEL(8, 0); \
	LEVEL(24, 1); \
	LEVEL(40, 2); \
	LEVEL(56, 3); \
	LEVEL(72, 4); \
	LEVEL(88, 5); \
	LEVEL(104, 6); \
	LEVEL(120, 7)

// The relaid IQ3_S, 16 too large, and IQ3_XXS, 64 too large (relay.go).
#define UNPACK_RELAID(table) \
	MOVL 4(SI), R13; \
	PDEPQ ·c256+consts256_nibs(SB), R13, R13; \
	VMOVQ R13, X8; \
	VPSHUFB ·c256+consts256_order32(SB), X8, X8; \
	VPMOVZXBD X8, Y8; \
	VBROADCASTSS (SI), Y9; \
	VPADDD Y8, Y8, Y8; \
	VPADDD ·c256+consts256_oneD(SB), Y8, Y8; \
	VCVTDQ2PS Y8, Y8; \
	VMULPS Y9, Y8, Y8; \
	VMOVUPS Y8, plainRow_scale(R8); \
	NIBBLE_MASK; \
	VMOVDQU ·c256+table(SB), Y13; \
	LEVEL(8, 0); \
	LEVEL(24, 1); \
	LEVEL(40, 2); \
	LEVEL(56, 3); \
	LEVEL(72, 4); \
	LEVEL(88, 5); \
	LEVEL(104, 6); \
	LEVEL(120, 7)

// MXFP4: 16 too large. The scale is 2^(e-128): see formats_avx512_amd64.h.
#define UNPACK_MXFP4 \
	VPXOR X8, X8, X8; \
	VPINSRB $0, (SI), X8, X8; \
	VPINSRB $1, 34(SI), X8, X8; \
	VPINSRB $2, 68(SI), X8, X8; \
	VPINSRB $3, 102(SI), X8, X8; \
	VPINSRB $4, 17(SI), X8, X8; \
	VPINSRB $5, 51(SI), X8, X8; \
	VPINSRB $6, 85(SI), X8, X8; \
	VPINSRB $7, 119(SI), X8, X8; \
	VPMOVZXBD X8, Y8; \
	VPSUBD ·c256+consts256_oneD(SB), Y8, Y9; \
	VMOVDQU ·c256+consts256_e8m0(SB), Y10; \
	VPSLLVD Y8, Y10, Y10; \
	VPCMPGTD ·c256+consts256_oneD(SB), Y8, Y11; \
	VPSLLD $23, Y9, Y9; \
	VPBLENDVB Y11, Y9, Y10, Y9; \
	VMOVUPS Y9, plainRow_scale(R8); \
	NIBBLE_MASK; \
	VMOVDQU ·c256+consts256_e2m1(SB), Y13; \
	LEVEL(1, 0); \
	LEVEL(18, 1); \
	LEVEL(35, 2); \
	LEVEL(52, 3); \
	LEVEL(69, 4); \
	LEVEL(86, 5); \
	LEVEL(103, 6); \
	LEVEL(120, 7)

// NVFP4: 16 too large. Scales: see formats_avx512_amd64.h.
#define LEVEL16(at, b) \
	VMOVDQU at(SI), X0; \
	VPERMQ $0x50, Y0, Y0; \
	VPSRLVQ ·c256+consts256_pair4(SB), Y0, Y0; \
	VPAND Y15, Y0, Y0; \
	VPSHUFB Y0, Y13, Y0; \
	PUT(Y0, b)
#define UNPACK_NVFP4 \
	VMOVD (SI), X8; \
	VPINSRD $1, 36(SI), X8, X8; \
	VPINSRD $2, 72(SI), X8, X8; \
	VPINSRD $3, 108(SI), X8, X8; \
	VPSHUFB ·c256+consts256_order16(SB), X8, X8; \
	VPCMPEQB ·c256+consts256_nan43(SB), X8, X9; \
	VPANDN X8, X9, X8; \
	VPMOVZXBW X8, Y8; \
	VPSLLW $9, Y8, Y8; \
	VPSRLW $2, Y8, Y8; \
	VEXTRACTI128 $1, Y8, X9; \
	VCVTPH2PS X8, Y8; \
	VCVTPH2PS X9, Y9; \
	VMULPS ·c256+consts256_two7(SB), Y8, Y8; \
	VMULPS ·c256+consts256_two7(SB), Y9, Y9; \
	VMOVUPS Y8, plainRow_scale(R8); \
	VMOVUPS Y9, (plainRow_scale+32)(R8); \
	NIBBLE_MASK; \
	VMOVDQU ·c256+consts256_e2m1(SB), Y13; \
	LEVEL16(4, 0); \
	LEVEL16(20, 1); \
	LEVEL16(40, 2); \
	LEVEL16(56, 3); \
	LEVEL16(76, 4); \
	LEVEL16(92, 5); \
	LEVEL16(112, 6); \
	LEVEL16(128, 7)

// The i-quants with grids take their vectors one by one: 64 too large, or for
// IQ1 16. AX, R9, R13 are numbers, R10 the grid.

// SIGNS turns the 32 magnitudes in Y0 around where the bits of Y1 are set.
#define SIGNS \
	VPSHUFB ·c256+consts256_spread(SB), Y1, Y1; \
	VPAND Y14, Y1, Y1; \
	VPCMPEQB Y14, Y1, Y1; \
	VPXOR Y1, Y0, Y0; \
	VPSUBB Y1, Y0, Y0; \
	VPADDB Y15, Y0, Y0
#define GRID_MASKS \
	BIT_MASK; \
	VMOVDQU ·c256+consts256_sixty4(SB), Y15
// SIGNS7 makes sign bits in Y1 of the four times seven bits in R13: bit 7 of a
// byte is the parity of the others.
#define SIGNS7 \
	ANDL $0x0FFFFFFF, R13; \
	PDEPQ ·c256+consts256_sevens(SB), R13, R13; \
	MOVQ R13, AX; \
	SHRQ $4, AX; \
	XORQ R13, AX; \
	MOVQ AX, R9; \
	SHRQ $2, R9; \
	XORQ R9, AX; \
	MOVQ AX, R9; \
	SHRQ $1, R9; \
	XORQ R9, AX; \
	ANDL $0x01010101, AX; \
	SHLL $7, AX; \
	ORL AX, R13; \
	VMOVD R13, X1; \
	VPBROADCASTD X1, Y1

// HALFUP makes floats of the whole numbers in y, plus a half, times Y10.
#define HALFUP(y) \
	VCVTDQ2PS y, y; \
	VADDPS ·c256+consts256_half(SB), y, y; \
	VMULPS Y10, y, y
// ODD makes floats of one more than twice the whole numbers in y, times Y10.
#define ODD(y) \
	VPADDD y, y, y; \
	VPADDD ·c256+consts256_oneD(SB), y, y; \
	VCVTDQ2PS y, y; \
	VMULPS Y10, y, y

// IQ2_XXS. BLOCK2XXS: numbers at (SI)+at, then the word of signs.
#define BLOCK2XXS(at, b) \
	MOVBLZX at(SI), AX; \
	MOVBLZX (at+1)(SI), R9; \
	VMOVQ (R10)(AX*8), X0; \
	VMOVHPS (R10)(R9*8), X0, X0; \
	MOVBLZX (at+2)(SI), AX; \
	MOVBLZX (at+3)(SI), R9; \
	VMOVQ (R10)(AX*8), X2; \
	VMOVHPS (R10)(R9*8), X2, X2; \
	VINSERTI128 $1, X2, Y0, Y0; \
	MOVL (at+4)(SI), R13; \
	SIGNS7; \
	SIGNS; \
	PUT(Y0, b)
#define UNPACK_IQ2_XXS \
	HALF(0, X10, Y10); \
	VMULPS ·c256+consts256_quarter(SB), Y10, Y10; \
	VMOVUPS 2(SI), Y8; \
	VSHUFPS $0xDD, 34(SI), Y8, Y8; \
	VMOVDQU ·c256+consts256_dword64(SB), Y9; \
	VPERMD Y8, Y9, Y8; \
	VPSRLD $28, Y8, Y8; \
	HALFUP(Y8); \
	VMOVUPS Y8, plainRow_scale(R8); \
	GRID_MASKS; \
	LEAQ ·gridIQ2XXS(SB), R10; \
	BLOCK2XXS(2, 0); \
	BLOCK2XXS(10, 1); \
	BLOCK2XXS(18, 2); \
	BLOCK2XXS(26, 3); \
	BLOCK2XXS(34, 4); \
	BLOCK2XXS(42, 5); \
	BLOCK2XXS(50, 6); \
	BLOCK2XXS(58, 7)

// NIBBLES16 makes 16 scales of the nibbles of the 8 bytes at (SI)+at.
#define NIBBLES16(at) \
	MOVL at(SI), R13; \
	MOVL (at+4)(SI), R15; \
	PDEPQ ·c256+consts256_nibs(SB), R13, R13; \
	PDEPQ ·c256+consts256_nibs(SB), R15, R15; \
	VMOVQ R13, X8; \
	VPINSRQ $1, R15, X8, X8; \
	VPSHUFB ·c256+consts256_order16(SB), X8, X8; \
	VPSRLDQ $8, X8, X9; \
	VPMOVZXBD X8, Y8; \
	VPMOVZXBD X9, Y9; \
	HALF(0, X10, Y10); \
	VMULPS ·c256+consts256_quarter(SB), Y10, Y10; \
	HALFUP(Y8); \
	HALFUP(Y9); \
	VMOVUPS Y8, plainRow_scale(R8); \
	VMOVUPS Y9, (plainRow_scale+32)(R8)

// IQ2_XS
#define BLOCK2XS(at, b) \
	MOVWLZX (at+0)(SI), AX; \
	ANDL $511, AX; \
	MOVWLZX (at+2)(SI), R9; \
	ANDL $511, R9; \
	VMOVQ (R10)(AX*8), X0; \
	VMOVHPS (R10)(R9*8), X0, X0; \
	MOVWLZX (at+4)(SI), AX; \
	ANDL $511, AX; \
	MOVWLZX (at+6)(SI), R9; \
	ANDL $511, R9; \
	VMOVQ (R10)(AX*8), X2; \
	VMOVHPS (R10)(R9*8), X2, X2; \
	VINSERTI128 $1, X2, Y0, Y0; \
	MOVQ at(SI), R13; \
	PEXTQ ·c256+consts256_upper7(SB), R13, R13; \
	SIGNS7; \
	SIGNS; \
	PUT(Y0, b)
#define UNPACK_IQ2_XS \
	NIBBLES16(66); \
	GRID_MASKS; \
	LEAQ ·gridIQ2XS(SB), R10; \
	BLOCK2XS(2, 0); \
	BLOCK2XS(10, 1); \
	BLOCK2XS(18, 2); \
	BLOCK2XS(26, 3); \
	BLOCK2XS(34, 4); \
	BLOCK2XS(42, 5); \
	BLOCK2XS(50, 6); \
	BLOCK2XS(58, 7)

// IQ2_S
#define BLOCK2S(b) \
	MOVBLZX (66+b)(SI), R13; \
	MOVL R13, R15; \
	SHLL $8, R15; \
	ANDL $0x300, R15; \
	MOVBLZX (2+4*b+0)(SI), AX; \
	ORL R15, AX; \
	MOVL R13, R15; \
	SHLL $6, R15; \
	ANDL $0x300, R15; \
	MOVBLZX (2+4*b+1)(SI), R9; \
	ORL R15, R9; \
	VMOVQ (R10)(AX*8), X0; \
	VMOVHPS (R10)(R9*8), X0, X0; \
	MOVL R13, R15; \
	SHLL $4, R15; \
	ANDL $0x300, R15; \
	MOVBLZX (2+4*b+2)(SI), AX; \
	ORL R15, AX; \
	MOVL R13, R15; \
	SHLL $2, R15; \
	ANDL $0x300, R15; \
	MOVBLZX (2+4*b+3)(SI), R9; \
	ORL R15, R9; \
	VMOVQ (R10)(AX*8), X2; \
	VMOVHPS (R10)(R9*8), X2, X2; \
	VINSERTI128 $1, X2, Y0, Y0; \
	VPBROADCASTD (34+4*b)(SI), Y1; \
	SIGNS; \
	PUT(Y0, b)
#define UNPACK_IQ2_S \
	NIBBLES16(74); \
	GRID_MASKS; \
	LEAQ ·gridIQ2S(SB), R10; \
	BLOCK2S(0); \
	BLOCK2S(1); \
	BLOCK2S(2); \
	BLOCK2S(3); \
	BLOCK2S(4); \
	BLOCK2S(5); \
	BLOCK2S(6); \
	BLOCK2S(7)

// IQ3_XXS
#define BLOCK3XXS(b) \
	MOVBLZX (2+8*b+0)(SI), AX; \
	VMOVD (R10)(AX*4), X0; \
	MOVBLZX (2+8*b+1)(SI), AX; \
	VPINSRD $1, (R10)(AX*4), X0, X0; \
	MOVBLZX (2+8*b+2)(SI), AX; \
	VPINSRD $2, (R10)(AX*4), X0, X0; \
	MOVBLZX (2+8*b+3)(SI), AX; \
	VPINSRD $3, (R10)(AX*4), X0, X0; \
	MOVBLZX (2+8*b+4)(SI), AX; \
	VMOVD (R10)(AX*4), X2; \
	MOVBLZX (2+8*b+5)(SI), AX; \
	VPINSRD $1, (R10)(AX*4), X2, X2; \
	MOVBLZX (2+8*b+6)(SI), AX; \
	VPINSRD $2, (R10)(AX*4), X2, X2; \
	MOVBLZX (2+8*b+7)(SI), AX; \
	VPINSRD $3, (R10)(AX*4), X2, X2; \
	VINSERTI128 $1, X2, Y0, Y0; \
	MOVL (66+4*b)(SI), R13; \
	SIGNS7; \
	SIGNS; \
	PUT(Y0, b)
#define UNPACK_IQ3_XXS \
	HALF(0, X10, Y10); \
	VMULPS ·c256+consts256_half(SB), Y10, Y10; \
	VMOVDQU 66(SI), Y8; \
	VPSRLD $28, Y8, Y8; \
	VMOVDQU ·c256+consts256_dword32(SB), Y9; \
	VPERMD Y8, Y9, Y8; \
	HALFUP(Y8); \
	VMOVUPS Y8, plainRow_scale(R8); \
	GRID_MASKS; \
	LEAQ ·gridIQ3XXS(SB), R10; \
	BLOCK3XXS(0); \
	BLOCK3XXS(1); \
	BLOCK3XXS(2); \
	BLOCK3XXS(3); \
	BLOCK3XXS(4); \
	BLOCK3XXS(5); \
	BLOCK3XXS(6); \
	BLOCK3XXS(7)

// IQ3_S
#define BLOCK3S(b) \
	MOVBLZX (66+b)(SI), R13; \
	MOVL R13, R15; \
	SHLL $8, R15; \
	ANDL $0x100, R15; \
	MOVBLZX (2+8*b+0)(SI), AX; \
	ORL R15, AX; \
	VMOVD (R10)(AX*4), X0; \
	MOVL R13, R15; \
	SHLL $7, R15; \
	ANDL $0x100, R15; \
	MOVBLZX (2+8*b+1)(SI), AX; \
	ORL R15, AX; \
	VPINSRD $1, (R10)(AX*4), X0, X0; \
	MOVL R13, R15; \
	SHLL $6, R15; \
	ANDL $0x100, R15; \
	MOVBLZX (2+8*b+2)(SI), AX; \
	ORL R15, AX; \
	VPINSRD $2, (R10)(AX*4), X0, X0; \
	MOVL R13, R15; \
	SHLL $5, R15; \
	ANDL $0x100, R15; \
	MOVBLZX (2+8*b+3)(SI), AX; \
	ORL R15, AX; \
	VPINSRD $3, (R10)(AX*4), X0, X0; \
	MOVL R13, R15; \
	SHLL $4, R15; \
	ANDL $0x100, R15; \
	MOVBLZX (2+8*b+4)(SI), AX; \
	ORL R15, AX; \
	VMOVD (R10)(AX*4), X2; \
	MOVL R13, R15; \
	SHLL $3, R15; \
	ANDL $0x100, R15; \
	MOVBLZX (2+8*b+5)(SI), AX; \
	ORL R15, AX; \
	VPINSRD $1, (R10)(AX*4), X2, X2; \
	MOVL R13, R15; \
	SHLL $2, R15; \
	ANDL $0x100, R15; \
	MOVBLZX (2+8*b+6)(SI), AX; \
	ORL R15, AX; \
	VPINSRD $2, (R10)(AX*4), X2, X2; \
	MOVL R13, R15; \
	SHLL $1, R15; \
	ANDL $0x100, R15; \
	MOVBLZX (2+8*b+7)(SI), AX; \
	ORL R15, AX; \
	VPINSRD $3, (R10)(AX*4), X2, X2; \
	VINSERTI128 $1, X2, Y0, Y0; \
	VPBROADCASTD (74+4*b)(SI), Y1; \
	SIGNS; \
	PUT(Y0, b)
#define UNPACK_IQ3_S \
	MOVL 106(SI), R13; \
	PDEPQ ·c256+consts256_nibs(SB), R13, R13; \
	VMOVQ R13, X8; \
	VPSHUFB ·c256+consts256_order32(SB), X8, X8; \
	VPMOVZXBD X8, Y8; \
	HALF(0, X10, Y10); \
	ODD(Y8); \
	VMOVUPS Y8, plainRow_scale(R8); \
	GRID_MASKS; \
	LEAQ ·gridIQ3S(SB), R10; \
	BLOCK3S(0); \
	BLOCK3S(1); \
	BLOCK3S(2); \
	BLOCK3S(3); \
	BLOCK3S(4); \
	BLOCK3S(5); \
	BLOCK3S(6); \
	BLOCK3S(7)

// TIMES8 makes eight times the vectors in Y0, plus the bytes of Y1.
#define TIMES8 \
	VPADDB Y0, Y0, Y0; \
	VPADDB Y0, Y0, Y0; \
	VPADDB Y0, Y0, Y0; \
	VPADDB Y1, Y0, Y0

// IQ1_S
#define BLOCK1S(b) \
	MOVWLZX (34+2*b)(SI), R13; \
	MOVL R13, R15; \
	SHLL $8, R15; \
	ANDL $0x700, R15; \
	MOVBLZX (2+4*b+0)(SI), AX; \
	ORL R15, AX; \
	MOVL R13, R15; \
	SHLL $5, R15; \
	ANDL $0x700, R15; \
	MOVBLZX (2+4*b+1)(SI), R9; \
	ORL R15, R9; \
	VMOVQ (R10)(AX*8), X0; \
	VMOVHPS (R10)(R9*8), X0, X0; \
	MOVL R13, R15; \
	SHLL $2, R15; \
	ANDL $0x700, R15; \
	MOVBLZX (2+4*b+2)(SI), AX; \
	ORL R15, AX; \
	MOVL R13, R15; \
	SHRL $1, R15; \
	ANDL $0x700, R15; \
	MOVBLZX (2+4*b+3)(SI), R9; \
	ORL R15, R9; \
	VMOVQ (R10)(AX*8), X2; \
	VMOVHPS (R10)(R9*8), X2, X2; \
	VINSERTI128 $1, X2, Y0, Y0; \
	SHRL $15, R13; \
	ADDL R13, R13; \
	NEGL R13; \
	ADDL $17, R13; \
	VMOVD R13, X1; \
	VPBROADCASTB X1, Y1; \
	TIMES8; \
	PUT(Y0, b)
#define UNPACK_IQ1_S \
	HALF(0, X10, Y10); \
	VMULPS ·c256+consts256_eighth(SB), Y10, Y10; \
	VMOVDQU 34(SI), X8; \
	VPSRLW $12, X8, X8; \
	VPMOVZXWD X8, Y8; \
	VPAND ·c256+consts256_seven(SB), Y8, Y8; \
	VMOVDQU ·c256+consts256_dword32(SB), Y9; \
	VPERMD Y8, Y9, Y8; \
	ODD(Y8); \
	VMOVUPS Y8, plainRow_scale(R8); \
	LEAQ ·gridIQ1(SB), R10; \
	BLOCK1S(0); \
	BLOCK1S(1); \
	BLOCK1S(2); \
	BLOCK1S(3); \
	BLOCK1S(4); \
	BLOCK1S(5); \
	BLOCK1S(6); \
	BLOCK1S(7)

// IQ1_M
#define BLOCK1M(b) \
	MOVWLZX (32+2*b)(SI), R13; \
	MOVL R13, R15; \
	SHLL $8, R15; \
	ANDL $0x700, R15; \
	MOVBLZX (4*b+0)(SI), AX; \
	ORL R15, AX; \
	MOVL R13, R15; \
	SHLL $4, R15; \
	ANDL $0x700, R15; \
	MOVBLZX (4*b+1)(SI), R9; \
	ORL R15, R9; \
	VMOVQ (R10)(AX*8), X0; \
	VMOVHPS (R10)(R9*8), X0, X0; \
	MOVL R13, R15; \
	ANDL $0x700, R15; \
	MOVBLZX (4*b+2)(SI), AX; \
	ORL R15, AX; \
	MOVL R13, R15; \
	SHRL $4, R15; \
	ANDL $0x700, R15; \
	MOVBLZX (4*b+3)(SI), R9; \
	ORL R15, R9; \
	VMOVQ (R10)(AX*8), X2; \
	VMOVHPS (R10)(R9*8), X2, X2; \
	VINSERTI128 $1, X2, Y0, Y0; \
	PEXTQ ·c256+consts256_eights(SB), R13, R13; \
	PDEPQ ·c256+consts256_twos(SB), R13, R13; \
	NEGL R13; \
	ADDL $0x11111111, R13; \
	VMOVD R13, X1; \
	VPBROADCASTD X1, Y1; \
	VPSHUFB ·c256+consts256_spread(SB), Y1, Y1; \
	TIMES8; \
	PUT(Y0, b)
#define UNPACK_IQ1_M \
	MOVQ 48(SI), R13; \
	PEXTQ ·c256+consts256_tops1M(SB), R13, R13; \
	VMOVD R13, X10; \
	VPBROADCASTW X10, X10; \
	VCVTPH2PS X10, Y10; \
	VMULPS ·c256+consts256_eighth(SB), Y10, Y10; \
	VPMOVZXWD 48(SI), X8; \
	VINSERTI128 $1, X8, Y8, Y8; \
	VPSRLVD ·c256+(consts256_shift1M+32)(SB), Y8, Y9; \
	VPSRLVD ·c256+consts256_shift1M(SB), Y8, Y8; \
	VPAND ·c256+consts256_seven(SB), Y8, Y8; \
	VPAND ·c256+consts256_seven(SB), Y9, Y9; \
	ODD(Y8); \
	ODD(Y9); \
	VMOVUPS Y8, plainRow_scale(R8); \
	VMOVUPS Y9, (plainRow_scale+32)(R8); \
	LEAQ ·gridIQ1(SB), R10; \
	BLOCK1M(0); \
	BLOCK1M(1); \
	BLOCK1M(2); \
	BLOCK1M(3); \
	BLOCK1M(4); \
	BLOCK1M(5); \
	BLOCK1M(6); \
	BLOCK1M(7)
