// Formats on AVX-512: CONSTS_ loads what UNPACK_ keeps in registers, UNPACK_
// brings the 256 weights at (SI) to Z0-Z3 as bytes without sign, their scales to
// Y4 (eight) or Z4 (sixteen) and offsets to Y5 or Z5. Weights of formats without
// offsets are 128 too large. Layouts: LAYOUTS.md.

// UPPER_HALF puts the upper 32 bytes of a register into K1.
#define UPPER_HALF MOVL $0xFF00, AX; KMOVW AX, K1

// PAIRS loads the 16 bytes of each of eight blocks into both halves of their 32
// bytes.
#define PAIRS(a, b, c, d, e, f, g, h) \
	VBROADCASTI32X4 a(SI), Z0; \
	VBROADCASTI32X4 b(SI), K1, Z0; \
	VBROADCASTI32X4 c(SI), Z1; \
	VBROADCASTI32X4 d(SI), K1, Z1; \
	VBROADCASTI32X4 e(SI), Z2; \
	VBROADCASTI32X4 f(SI), K1, Z2; \
	VBROADCASTI32X4 g(SI), Z3; \
	VBROADCASTI32X4 h(SI), K1, Z3

// AFFINE applies matrices to Z0-Z3, SHUFFLE finds them in a table.
#define AFFINE(imm, z) \
	VGF2P8AFFINEQB imm, z, Z0, Z0; \
	VGF2P8AFFINEQB imm, z, Z1, Z1; \
	VGF2P8AFFINEQB imm, z, Z2, Z2; \
	VGF2P8AFFINEQB imm, z, Z3, Z3
#define SHUFFLE(z) \
	VPSHUFB Z0, z, Z0; \
	VPSHUFB Z1, z, Z1; \
	VPSHUFB Z2, z, Z2; \
	VPSHUFB Z3, z, Z3
#define XOR(a, b, c, d) \
	VPXORD a, Z0, Z0; \
	VPXORD b, Z1, Z1; \
	VPXORD c, Z2, Z2; \
	VPXORD d, Z3, Z3
#define ADDB(z) \
	VPADDB z, Z0, Z0; \
	VPADDB z, Z1, Z1; \
	VPADDB z, Z2, Z2; \
	VPADDB z, Z3, Z3

// HALF spreads the half at (SI)+at over a register of floats.
#define HALF(at, y, z) VPBROADCASTW at(SI), y; VCVTPH2PS y, z

// Q4_0
#define CONSTS_Q4_0 \
	UPPER_HALF; \
	VMOVDQU64 ·c512+consts512_nib8(SB), Z30; \
	VMOVDQU64 ·c512+consts512_half18(SB), Z31
#define HALVES18 \
	VMOVDQU64 (SI), Z6; \
	VPERMT2W 64(SI), Z31, Z6; \
	VCVTPH2PS X6, Y4
#define UNPACK_Q4_0 \
	HALVES18; \
	PAIRS(2, 20, 38, 56, 74, 92, 110, 128); \
	AFFINE($0x78, Z30)

// Q4_1
#define CONSTS_Q4_1 \
	UPPER_HALF; \
	VMOVDQU64 ·c512+consts512_nib(SB), Z30; \
	VMOVDQU64 ·c512+consts512_pair20(SB), Z31
#define UNPACK_Q4_1 \
	VMOVDQU64 (SI), Z6; \
	VPERMT2W 80(SI), Z31, Z6; \
	VCVTPH2PS Y6, Z4; \
	VEXTRACTF64X4 $1, Z4, Y5; \
	PAIRS(4, 24, 44, 64, 84, 104, 124, 144); \
	AFFINE($0, Z30)

// Q5_0 and Q5_1. FIFTH adds 16 where the bits of two words are set.
#define FIFTH(a, b, z) \
	KMOVD a(SI), K3; \
	KMOVD b(SI), K4; \
	KUNPCKDQ K3, K4, K3; \
	VPADDB Z29, z, K3, z
#define CONSTS_Q5_0 \
	UPPER_HALF; \
	MOVL $0x88, AX; \
	KMOVW AX, K2; \
	VMOVDQU64 ·c512+consts512_half22b(SB), Z28; \
	VMOVDQU64 ·c512+consts512_sixteen(SB), Z29; \
	VMOVDQU64 ·c512+consts512_nib(SB), Z30; \
	VMOVDQU64 ·c512+consts512_half22(SB), Z31
#define UNPACK_Q5_0 \
	VMOVDQU64 (SI), Z6; \
	VPERMT2W 64(SI), Z31, Z6; \
	VPERMW 112(SI), Z28, K2, Z6; \
	VCVTPH2PS X6, Y4; \
	PAIRS(6, 28, 50, 72, 94, 116, 138, 160); \
	AFFINE($0x70, Z30); \
	FIFTH(2, 24, Z0); \
	FIFTH(46, 68, Z1); \
	FIFTH(90, 112, Z2); \
	FIFTH(134, 156, Z3)
#define CONSTS_Q5_1 \
	UPPER_HALF; \
	MOVL $0x8888, AX; \
	KMOVW AX, K2; \
	VMOVDQU64 ·c512+consts512_pair24b(SB), Z28; \
	VMOVDQU64 ·c512+consts512_sixteen(SB), Z29; \
	VMOVDQU64 ·c512+consts512_nib(SB), Z30; \
	VMOVDQU64 ·c512+consts512_pair24(SB), Z31
#define UNPACK_Q5_1 \
	VMOVDQU64 (SI), Z6; \
	VPERMT2W 64(SI), Z31, Z6; \
	VPERMW 128(SI), Z28, K2, Z6; \
	VCVTPH2PS Y6, Z4; \
	VEXTRACTF64X4 $1, Z4, Y5; \
	PAIRS(8, 32, 56, 80, 104, 128, 152, 176); \
	AFFINE($0, Z30); \
	FIFTH(4, 28, Z0); \
	FIFTH(52, 76, Z1); \
	FIFTH(100, 124, Z2); \
	FIFTH(148, 172, Z3)

// Q8_0
#define CONSTS_Q8_0 \
	VMOVDQU64 ·c512+consts512_flip(SB), Z30; \
	VMOVDQU64 ·c512+consts512_half34(SB), Z31
#define UNPACK_Q8_0 \
	VMOVDQU64 (SI), Z6; \
	VPERMT2W 64(SI), Z31, Z6; \
	VMOVDQU64 136(SI), Z7; \
	VPERMT2W 200(SI), Z31, Z7; \
	VPBLENDD $0xA, X7, X6, X6; \
	VCVTPH2PS X6, Y4; \
	VMOVDQU 2(SI), Y0; \
	VINSERTI64X4 $1, 36(SI), Z0, Z0; \
	VMOVDQU 70(SI), Y1; \
	VINSERTI64X4 $1, 104(SI), Z1, Z1; \
	VMOVDQU 138(SI), Y2; \
	VINSERTI64X4 $1, 172(SI), Z2, Z2; \
	VMOVDQU 206(SI), Y3; \
	VINSERTI64X4 $1, 240(SI), Z3, Z3; \
	XOR(Z30, Z30, Z30, Z30)

// Q4_K and Q5_K
#define CONSTS4K \
	VMOVDQU64 ·c512+consts512_lowK(SB), Z24; \
	VMOVDQU64 ·c512+consts512_highK(SB), Z25; \
	VMOVDQU64 ·c512+consts512_shiftK(SB), Z26; \
	VMOVDQU64 ·c512+consts512_maskK(SB), Z27; \
	VMOVDQU64 ·c512+consts512_upperK(SB), Z28; \
	VMOVDQU ·c512+consts512_halvesK(SB), Y12; \
	VMOVDQA64 Z12, Z29
#define SCALES4K \
	VMOVDQU (SI), X4; \
	VPERMB Z4, Z24, Z5; \
	VPERMB Z4, Z25, Z6; \
	VPERMW Z4, Z29, Z7; \
	VPSRLVD Z26, Z5, Z5; \
	VPSRLD $2, Z6, Z6; \
	VPANDD Z27, Z5, Z5; \
	VPTERNLOGD $0xF8, Z28, Z6, Z5; \
	VCVTPH2PS Y7, Z7; \
	VCVTDQ2PS Z5, Z5; \
	VMULPS Z7, Z5, Z4; \
	VEXTRACTF64X4 $1, Z4, Y5
#define CONSTS_Q4_K \
	CONSTS4K; \
	VMOVDQU64 ·c512+consts512_nib32(SB), Z30
#define UNPACK_Q4_K \
	SCALES4K; \
	VBROADCASTI64X4 16(SI), Z0; \
	VBROADCASTI64X4 48(SI), Z1; \
	VBROADCASTI64X4 80(SI), Z2; \
	VBROADCASTI64X4 112(SI), Z3; \
	AFFINE($0, Z30)
#define CONSTS_Q5_K \
	CONSTS_Q4_K; \
	VMOVDQU64 ·c512+consts512_fifth(SB), Z20; \
	VMOVDQU64 ·c512+(consts512_fifth+64)(SB), Z21; \
	VMOVDQU64 ·c512+(consts512_fifth+128)(SB), Z22; \
	VMOVDQU64 ·c512+(consts512_fifth+192)(SB), Z23
#define UNPACK_Q5_K \
	SCALES4K; \
	VBROADCASTI64X4 48(SI), Z0; \
	VBROADCASTI64X4 80(SI), Z1; \
	VBROADCASTI64X4 112(SI), Z2; \
	VBROADCASTI64X4 144(SI), Z3; \
	AFFINE($0, Z30); \
	VBROADCASTI64X4 16(SI), Z6; \
	VGF2P8AFFINEQB $0, Z20, Z6, Z8; \
	VGF2P8AFFINEQB $0, Z21, Z6, Z9; \
	VGF2P8AFFINEQB $0, Z22, Z6, Z10; \
	VGF2P8AFFINEQB $0, Z23, Z6, Z11; \
	XOR(Z8, Z9, Z10, Z11)

// SCALES16 makes 16 scales of the bytes in X4, which have a sign, and the half
// at (SI)+at.
#define SCALES16(at) \
	VPSHUFB X31, X4, X4; \
	VPMOVSXBD X4, Z4; \
	HALF(at, Y5, Z5); \
	VCVTDQ2PS Z4, Z4; \
	VMULPS Z5, Z4, Z4

// Q6_K
#define CONSTS_Q6_K \
	VMOVDQU64 ·c512+consts512_sixth(SB), Z27; \
	VMOVDQU64 ·c512+(consts512_sixth+64)(SB), Z28; \
	VMOVDQU64 ·c512+consts512_low(SB), Z29; \
	VMOVDQU64 ·c512+consts512_high(SB), Z30; \
	VMOVDQU ·c512+consts512_order16(SB), X12; \
	VMOVDQA64 Z12, Z31
#define UNPACK_Q6_K \
	VMOVDQU 192(SI), X4; \
	SCALES16(208); \
	VMOVDQU64 (SI), Z1; \
	VMOVDQU64 64(SI), Z3; \
	VBROADCASTI64X4 128(SI), Z6; \
	VBROADCASTI64X4 160(SI), Z7; \
	VGF2P8AFFINEQB $0, Z29, Z1, Z0; \
	VGF2P8AFFINEQB $0, Z30, Z1, Z1; \
	VGF2P8AFFINEQB $0, Z29, Z3, Z2; \
	VGF2P8AFFINEQB $0, Z30, Z3, Z3; \
	VGF2P8AFFINEQB $0x60, Z27, Z6, Z8; \
	VGF2P8AFFINEQB $0x60, Z28, Z6, Z9; \
	VGF2P8AFFINEQB $0x60, Z27, Z7, Z10; \
	VGF2P8AFFINEQB $0x60, Z28, Z7, Z11; \
	XOR(Z8, Z9, Z10, Z11)
