// Formats of up to three bits and with tables of levels: as formats_avx2_amd64.h,
// which comes first.

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
