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
