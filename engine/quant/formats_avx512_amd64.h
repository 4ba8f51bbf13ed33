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

// TWO brings two pairs of bits of each of 32 bytes to a register.
#define TWO(at) \
	VBROADCASTI64X4 at(SI), Z1; \
	VBROADCASTI64X4 (at+32)(SI), Z3; \
	VGF2P8AFFINEQB $0, Z28, Z1, Z0; \
	VGF2P8AFFINEQB $0, Z29, Z1, Z1; \
	VGF2P8AFFINEQB $0, Z28, Z3, Z2; \
	VGF2P8AFFINEQB $0, Z29, Z3, Z3
#define CONSTS_TWO \
	VMOVDQU64 ·c512+consts512_pairs(SB), Z28; \
	VMOVDQU64 ·c512+(consts512_pairs+64)(SB), Z29

// Q2_K
#define CONSTS_Q2_K \
	CONSTS_TWO; \
	MOVL $15, AX; \
	VPBROADCASTD AX, Z30; \
	VMOVDQU ·c512+consts512_order16(SB), X12; \
	VMOVDQA64 Z12, Z31
#define UNPACK_Q2_K \
	VMOVDQU (SI), X4; \
	VPSHUFB X31, X4, X4; \
	VPMOVZXBD X4, Z5; \
	VPANDD Z30, Z5, Z4; \
	VPSRLD $4, Z5, Z5; \
	HALF(80, Y6, Z6); \
	HALF(82, Y7, Z7); \
	VCVTDQ2PS Z4, Z4; \
	VCVTDQ2PS Z5, Z5; \
	VMULPS Z6, Z4, Z4; \
	VMULPS Z7, Z5, Z5; \
	TWO(16)

// Q3_K
#define CONSTS_Q3_K \
	CONSTS_TWO; \
	VMOVDQU64 ·c512+consts512_third(SB), Z20; \
	VMOVDQU64 ·c512+(consts512_third+64)(SB), Z21; \
	VMOVDQU64 ·c512+(consts512_third+128)(SB), Z22; \
	VMOVDQU64 ·c512+(consts512_third+192)(SB), Z23; \
	VMOVDQU64 ·c512+consts512_shift3(SB), Z24; \
	VMOVDQU64 ·c512+consts512_rotate3(SB), Z25; \
	MOVL $15, AX; \
	VPBROADCASTD AX, Z26; \
	MOVL $0x30, AX; \
	VPBROADCASTD AX, Z27; \
	MOVL $32, AX; \
	VPBROADCASTD AX, Z30; \
	VMOVDQU ·c512+consts512_low3(SB), X12; \
	VMOVDQA64 Z12, Z18; \
	VMOVDQU ·c512+consts512_high3(SB), X12; \
	VMOVDQA64 Z12, Z19
#define UNPACK_Q3_K \
	VMOVQ 96(SI), X4; \
	VPINSRD $2, 104(SI), X4, X4; \
	VPSHUFB X18, X4, X5; \
	VPSHUFB X19, X4, X6; \
	VPMOVZXBD X5, Z4; \
	VPMOVZXBD X6, Z6; \
	VPSRLVD Z24, Z4, Z4; \
	VPROLVD Z25, Z6, Z6; \
	VPANDD Z26, Z4, Z4; \
	VPTERNLOGD $0xF8, Z27, Z6, Z4; \
	VPSUBD Z30, Z4, Z4; \
	HALF(108, Y5, Z5); \
	VCVTDQ2PS Z4, Z4; \
	VMULPS Z5, Z4, Z4; \
	TWO(32); \
	VBROADCASTI64X4 (SI), Z6; \
	VGF2P8AFFINEQB $0x7C, Z20, Z6, Z8; \
	VGF2P8AFFINEQB $0x7C, Z21, Z6, Z9; \
	VGF2P8AFFINEQB $0x7C, Z22, Z6, Z10; \
	VGF2P8AFFINEQB $0x7C, Z23, Z6, Z11; \
	XOR(Z8, Z9, Z10, Z11)

// TQ2_0
#define CONSTS_TQ2_0 \
	CONSTS_TWO; \
	VMOVDQU64 ·c512+consts512_bias127(SB), Z30
#define UNPACK_TQ2_0 \
	HALF(64, X4, Y4); \
	TWO(0); \
	ADDB(Z30)

// TQ1_0. DIGIT brings the digits of the bytes in z to it.
#define CONSTS_TQ1_0 \
	MOVL $0xF000, AX; \
	KMOVW AX, K1; \
	VMOVDQU64 ·c512+consts512_power(SB), Z20; \
	VMOVDQU64 ·c512+(consts512_power+64)(SB), Z21; \
	VMOVDQU64 ·c512+(consts512_power+128)(SB), Z22; \
	VMOVDQU64 ·c512+(consts512_power+192)(SB), Z23; \
	VMOVDQU64 ·c512+consts512_threeW(SB), Z28; \
	VMOVDQU64 ·c512+consts512_highW(SB), Z29; \
	VMOVDQU64 ·c512+consts512_bias127(SB), Z30
#define DIGIT(power, z) \
	VPSLLW $8, z, Z6; \
	VPANDD Z29, z, Z7; \
	VPMULLW power, Z6, Z6; \
	VPMULLW power, Z7, Z7; \
	VPMULHUW Z28, Z6, Z6; \
	VPMULHUW Z28, Z7, Z7; \
	VPSLLW $8, Z7, Z7; \
	VPORD Z7, Z6, z
#define UNPACK_TQ1_0 \
	HALF(52, X4, Y4); \
	VBROADCASTI64X4 (SI), Z0; \
	VMOVDQA64 Z0, Z1; \
	VBROADCASTI32X4 32(SI), Z3; \
	VINSERTI64X4 $1, Y3, Z0, Z2; \
	VPBROADCASTD 48(SI), K1, Z3; \
	DIGIT(Z20, Z0); \
	DIGIT(Z21, Z1); \
	DIGIT(Z22, Z2); \
	DIGIT(Z23, Z3); \
	ADDB(Z30)

// Q2_0
#define CONSTS_Q2_0 \
	VMOVDQU64 ·c512+consts512_quads(SB), Z27; \
	VMOVDQU64 ·c512+consts512_quadBits(SB), Z28; \
	VMOVDQU64 ·c512+consts512_three(SB), Z29; \
	VMOVDQU64 ·c512+consts512_bias127(SB), Z30; \
	VMOVDQU64 ·c512+consts512_two18(SB), Z31
#define QUADS(at, z) \
	VBROADCASTI32X4 at(SI), z; \
	VPSHUFB Z27, z, z; \
	VPMULTISHIFTQB z, Z28, z; \
	VPANDD Z29, z, z
#define UNPACK_Q2_0 \
	VPERMW (SI), Z31, Z6; \
	VCVTPH2PS X6, Y4; \
	QUADS(2, Z0); \
	QUADS(20, Z1); \
	QUADS(38, Z2); \
	QUADS(56, Z3); \
	ADDB(Z30)

// Q1_0
#define CONSTS_Q1_0 \
	VMOVDQU64 ·c512+consts512_bias127(SB), Z30; \
	VMOVDQU64 ·c512+consts512_bias129(SB), Z31
#define SIGNED(at, z) \
	KMOVQ at(SI), K3; \
	VPBLENDMB Z31, Z30, K3, z
#define UNPACK_Q1_0 \
	VPBROADCASTW (SI), X4; \
	VPBROADCASTW 18(SI), X5; \
	VPBLENDW $0xCC, X5, X4, X4; \
	VCVTPH2PS X4, Y4; \
	SIGNED(2, Z0); \
	SIGNED(10, Z1); \
	SIGNED(20, Z2); \
	SIGNED(28, Z3)

// IQ4_NL
#define CONSTS_IQ4_NL \
	UPPER_HALF; \
	VMOVDQU64 ·c512+consts512_uneven(SB), Z29; \
	VMOVDQU64 ·c512+consts512_nib(SB), Z30; \
	VMOVDQU64 ·c512+consts512_half18(SB), Z31
#define UNPACK_IQ4_NL \
	HALVES18; \
	PAIRS(2, 20, 38, 56, 74, 92, 110, 128); \
	AFFINE($0, Z30); \
	SHUFFLE(Z29)

// IQ4_XS
#define CONSTS_IQ4_XS \
	UPPER_HALF; \
	VMOVDQU64 ·c512+consts512_uneven(SB), Z29; \
	VMOVDQU64 ·c512+consts512_nib(SB), Z30; \
	MOVL $32, AX; \
	VPBROADCASTD AX, Y28; \
	VMOVDQU ·c512+consts512_order32(SB), X12; \
	VMOVDQA64 Z12, Z31
#define UNPACK_IQ4_XS \
	MOVL 4(SI), R13; \
	MOVWLZX 2(SI), R15; \
	PDEPQ ·c512+consts512_nibs(SB), R13, R13; \
	PDEPQ ·c512+consts512_tops(SB), R15, R15; \
	ORQ R15, R13; \
	VMOVQ R13, X4; \
	VPSHUFB X31, X4, X4; \
	VPMOVZXBD X4, Y4; \
	VPSUBD Y28, Y4, Y4; \
	HALF(0, X5, Y5); \
	VCVTDQ2PS Y4, Y4; \
	VMULPS Y5, Y4, Y4; \
	PAIRS(8, 24, 40, 56, 72, 88, 104, 120); \
	AFFINE($0, Z30); \
	SHUFFLE(Z29)

// The relaid IQ3_S and IQ3_XXS (relay.go).
#define CONSTS_RELAID(table) \
	UPPER_HALF; \
	VMOVDQU64 ·c512+table(SB), Z29; \
	VMOVDQU64 ·c512+consts512_nib(SB), Z30; \
	MOVL $1, AX; \
	VPBROADCASTD AX, Y28; \
	VMOVDQU ·c512+consts512_order32(SB), X12; \
	VMOVDQA64 Z12, Z31
#define UNPACK_RELAID \
	MOVL 4(SI), R13; \
	PDEPQ ·c512+consts512_nibs(SB), R13, R13; \
	VMOVQ R13, X4; \
	VPSHUFB X31, X4, X4; \
	VPMOVZXBD X4, Y4; \
	VBROADCASTSS (SI), Y5; \
	VPADDD Y4, Y4, Y4; \
	VPADDD Y28, Y4, Y4; \
	VCVTDQ2PS Y4, Y4; \
	VMULPS Y5, Y4, Y4; \
	PAIRS(8, 24, 40, 56, 72, 88, 104, 120); \
	AFFINE($0, Z30); \
	SHUFFLE(Z29)

// MXFP4. The scale is 2^(e-128): e-1 in the exponent, or for e of 0 and 1 the
// fraction 2^21 shifted by e.
#define CONSTS_MXFP4 \
	UPPER_HALF; \
	MOVL $0x11111111, AX; \
	KMOVQ AX, K2; \
	MOVL $1, AX; \
	VPBROADCASTD AX, Y26; \
	MOVL $2, AX; \
	VPBROADCASTD AX, Y27; \
	MOVL $0x200000, AX; \
	VPBROADCASTD AX, Y28; \
	VMOVDQU64 ·c512+consts512_e2m1(SB), Z29; \
	VMOVDQU64 ·c512+consts512_nib(SB), Z30; \
	VMOVDQU64 ·c512+consts512_byte17(SB), Z31
#define UNPACK_MXFP4 \
	VMOVDQU64 (SI), Z6; \
	VPERMT2B.Z 64(SI), Z31, K2, Z6; \
	VPSUBD Y26, Y6, Y4; \
	VPSLLD $23, Y4, Y4; \
	VPCMPUD $1, Y27, Y6, K3; \
	VPSLLVD Y6, Y28, K3, Y4; \
	PAIRS(1, 18, 35, 52, 69, 86, 103, 120); \
	AFFINE($0, Z30); \
	SHUFFLE(Z29)

// NVFP4. A scale of four exponent and three fraction bits is a half with an
// exponent 8 less; the levels are doubled, so 2^7 is left. 0x7f stands for 0.
#define CONSTS_NVFP4 \
	MOVL $0x43000000, AX; \
	VPBROADCASTD AX, Z26; \
	MOVL $0x7F, AX; \
	VPBROADCASTB AX, X27; \
	VMOVDQU64 ·c512+consts512_e2m1(SB), Z29; \
	VMOVDQU64 ·c512+consts512_nib64(SB), Z30; \
	VMOVDQU ·c512+consts512_order16(SB), X12; \
	VMOVDQA64 Z12, Z31; \
	VPMOVZXBQ ·c512+consts512_doubled(SB), Z28
#define UNPACK_NVFP4 \
	VMOVD (SI), X4; \
	VPINSRD $1, 36(SI), X4, X4; \
	VPINSRD $2, 72(SI), X4, X4; \
	VPINSRD $3, 108(SI), X4, X4; \
	VPSHUFB X31, X4, X4; \
	VPCMPUB $4, X27, X4, K3; \
	VPMOVZXBW X4, Y4; \
	VPSLLW $9, Y4, Y4; \
	VPSRLW $2, Y4, Y4; \
	VCVTPH2PS Y4, Z4; \
	VMULPS.Z Z26, Z4, K3, Z4; \
	VMOVDQU 4(SI), Y0; \
	VMOVDQU 40(SI), Y1; \
	VMOVDQU 76(SI), Y2; \
	VMOVDQU 112(SI), Y3; \
	VPERMQ Z0, Z28, Z0; \
	VPERMQ Z1, Z28, Z1; \
	VPERMQ Z2, Z28, Z2; \
	VPERMQ Z3, Z28, Z3; \
	AFFINE($0, Z30); \
	SHUFFLE(Z29)

// The i-quants with grids: see grids_amd64.go. FIND1 brings those codes to z
// that lie in the 128 bytes whose first half is in reg and second half at mem;
// Z6 holds the numbers.
#define FIND1(mem, reg, z) \
	VMOVDQA64 Z6, z; \
	VPERMI2B mem, reg, z

// PICK turns the codes in Z8 and Z9 into the levels of 64 values: at are the
// places, Z24 the fields, Z25 the levels.
#define PICK(at, z) \
	VMOVDQU64 at, z; \
	VPERMI2B Z9, Z8, z; \
	VPMULTISHIFTQB z, Z24, z; \
	VPERMB Z25, z, z

// MINUS turns the signs of the values of z that are set in k.
#define MINUS(k, z) VPSUBB z, Z26, k, z
// MINUSK does so by the bits at mem.
#define MINUSK(mem, z) KMOVQ mem, K3; MINUS(K3, z)
// MINUSV does so by the signs in Z12, whose places are at; Z27 holds 1<<i%8.
#define MINUSV(at, z) \
	VMOVDQU64 at, Z13; \
	VPERMB Z12, Z13, Z13; \
	VPTESTMB Z27, Z13, K3; \
	MINUS(K3, z)

// HALFUP adds a half, which is in half, to the whole numbers in y.
#define HALFUP(half, y) \
	VCVTDQ2PS y, y; \
	VADDPS half, y, y

#define CONSTS_GRID(fields, levels) \
	VMOVDQU64 ·c512+fields(SB), Z24; \
	VMOVDQU64 ·c512+levels(SB), Z25; \
	VPXOR X12, X12, X12; \
	VMOVDQA64 Z12, Z26

// IQ2_XXS
#define CONSTS_IQ2_XXS \
	CONSTS_GRID(consts512_fields2, consts512_levels2); \
	VMOVDQU64 ·c512+consts512_codes2XXS(SB), Z16; \
	VMOVDQU64 ·c512+(consts512_codes2XXS+64)(SB), Z17; \
	VMOVDQU64 ·c512+(consts512_codes2XXS+128)(SB), Z18; \
	VMOVDQU64 ·c512+(consts512_codes2XXS+192)(SB), Z19; \
	VMOVDQU64 ·c512+(consts512_codes2XXS+256)(SB), Z20; \
	VMOVDQU64 ·c512+(consts512_codes2XXS+320)(SB), Z21; \
	VMOVDQU64 ·c512+(consts512_codes2XXS+384)(SB), Z22; \
	VMOVDQU64 ·c512+(consts512_codes2XXS+448)(SB), Z23; \
	VMOVDQU64 ·c512+consts512_bit(SB), Z27; \
	VMOVDQU64 ·c512+consts512_fields7b(SB), Z28; \
	MOVL $0x3F000000, AX; \
	VPBROADCASTD AX, Z29; \
	MOVL $0x3E800000, AX; \
	VPBROADCASTD AX, Z30; \
	VMOVDQU64 ·c512+consts512_dword64(SB), Z31
#define UNPACK_IQ2_XXS \
	VMOVDQU64 2(SI), Z6; \
	HALF(0, X5, Y5); \
	VPSRLD $28, Z6, Z7; \
	VPERMD Z7, Z31, Z4; \
	HALFUP(Y29, Y4); \
	VMULPS Z30, Z5, Z5; \
	VMULPS Y5, Y4, Y4; \
	VPMULTISHIFTQB Z6, Z28, Z12; \
	VGF2P8AFFINEQB $0, ·c512+consts512_parity(SB), Z12, Z12; \
	VPMOVB2M Z6, K1; \
	FIND1(Z17, Z16, Z8); \
	FIND1(Z19, Z18, Z10); \
	FIND1(Z21, Z20, Z9); \
	FIND1(Z23, Z22, Z11); \
	VMOVDQU8 Z10, K1, Z8; \
	VMOVDQU8 Z11, K1, Z9; \
	PICK(·c512+consts512_at2(SB), Z0); \
	PICK(·c512+(consts512_at2+64)(SB), Z1); \
	PICK(·c512+(consts512_at2+128)(SB), Z2); \
	PICK(·c512+(consts512_at2+192)(SB), Z3); \
	MINUSV(·c512+consts512_sign(SB), Z0); \
	MINUSV(·c512+(consts512_sign+64)(SB), Z1); \
	MINUSV(·c512+(consts512_sign+128)(SB), Z2); \
	MINUSV(·c512+(consts512_sign+192)(SB), Z3)

// FIND4 brings the codes of 512 numbers to z: K1 has bit 7 of the numbers in
// Z6, K2 bit 8; first halves of the tables in registers, all of them at mem.
#define FIND4(mem, r0, r1, r2, r3, z) \
	FIND1(·c512+(mem+64)(SB), r0, z); \
	FIND1(·c512+(mem+192)(SB), r1, Z10); \
	FIND1(·c512+(mem+320)(SB), r2, Z11); \
	FIND1(·c512+(mem+448)(SB), r3, Z13); \
	VMOVDQU8 Z10, K1, z; \
	VMOVDQU8 Z13, K1, Z11; \
	VMOVDQU8 Z11, K2, z
#define TABLES4(mem, r0, r1, r2, r3) \
	VMOVDQU64 ·c512+(mem)(SB), r0; \
	VMOVDQU64 ·c512+(mem+128)(SB), r1; \
	VMOVDQU64 ·c512+(mem+256)(SB), r2; \
	VMOVDQU64 ·c512+(mem+384)(SB), r3

// NIBBLES16 makes numbers of the 16 nibbles at mem: Z4, in the order of half
// blocks. X31 has the order.
#define NIBBLES16(at) \
	MOVL at(SI), R13; \
	MOVL (at+4)(SI), R15; \
	PDEPQ ·c512+consts512_nibs(SB), R13, R13; \
	PDEPQ ·c512+consts512_nibs(SB), R15, R15; \
	VMOVQ R13, X4; \
	VPINSRQ $1, R15, X4, X4; \
	VPSHUFB X31, X4, X4; \
	VPMOVZXBD X4, Z4

// FOUR brings four vectors of eight to y: R10 is the grid, R13 has their numbers,
// 16 bits each; t is used up.
#define FOUR(y, x, t) \
	MOVWLZX R13, AX; \
	SHRQ $16, R13; \
	MOVWLZX R13, R9; \
	SHRQ $16, R13; \
	MOVWLZX R13, R15; \
	SHRQ $16, R13; \
	VMOVQ (R10)(AX*8), x; \
	VMOVHPS (R10)(R9*8), x, x; \
	VMOVQ (R10)(R15*8), t; \
	VMOVHPS (R10)(R13*8), t, t; \
	VINSERTI128 $1, t, y, y
// VECTORS32 brings 32 vectors to Z0-Z3; NUMBERS(k) makes numbers 4k to 4k+3.
#define VECTORS32(NUMBERS) \
	NUMBERS(0); \
	FOUR(Y0, X0, X8); \
	NUMBERS(1); \
	FOUR(Y9, X9, X8); \
	VINSERTI64X4 $1, Y9, Z0, Z0; \
	NUMBERS(2); \
	FOUR(Y1, X1, X8); \
	NUMBERS(3); \
	FOUR(Y9, X9, X8); \
	VINSERTI64X4 $1, Y9, Z1, Z1; \
	NUMBERS(4); \
	FOUR(Y2, X2, X8); \
	NUMBERS(5); \
	FOUR(Y9, X9, X8); \
	VINSERTI64X4 $1, Y9, Z2, Z2; \
	NUMBERS(6); \
	FOUR(Y3, X3, X8); \
	NUMBERS(7); \
	FOUR(Y9, X9, X8); \
	VINSERTI64X4 $1, Y9, Z3, Z3

// IQ2_XS
#define CONSTS_IQ2_XS \
	VPXOR X12, X12, X12; \
	VMOVDQA64 Z12, Z26; \
	VMOVDQU64 ·c512+consts512_bit(SB), Z27; \
	MOVL $0x3F000000, AX; \
	VPBROADCASTD AX, Z29; \
	MOVL $0x3E800000, AX; \
	VPBROADCASTD AX, Z30; \
	VMOVDQU ·c512+consts512_order16(SB), X12; \
	VMOVDQA64 Z12, Z31
#define NUMBERS2XS(k) \
	MOVQ (2+8*k)(SI), R13; \
	ANDQ R8, R13
#define UNPACK_IQ2_XS \
	VMOVDQU64 2(SI), Z6; \
	LEAQ ·c512+consts512_grid2XS(SB), R10; \
	NIBBLES16(66); \
	HALF(0, Y5, Z5); \
	HALFUP(Z29, Z4); \
	VMULPS Z30, Z5, Z5; \
	VMULPS Z5, Z4, Z4; \
	VPSRLW $9, Z6, Z12; \
	VGF2P8AFFINEQB $0, ·c512+consts512_parity(SB), Z12, Z12; \
	MOVQ $0x01ff01ff01ff01ff, R8; \
	VECTORS32(NUMBERS2XS); \
	MINUSV(·c512+(consts512_sign+256)(SB), Z0); \
	MINUSV(·c512+(consts512_sign+320)(SB), Z1); \
	MINUSV(·c512+(consts512_sign+384)(SB), Z2); \
	MINUSV(·c512+(consts512_sign+448)(SB), Z3)

// IQ2_S
#define CONSTS_IQ2_S \
	VPXOR X12, X12, X12; \
	VMOVDQA64 Z12, Z26; \
	MOVL $0x3F000000, AX; \
	VPBROADCASTD AX, Z29; \
	MOVL $0x3E800000, AX; \
	VPBROADCASTD AX, Z30; \
	VMOVDQU ·c512+consts512_order16(SB), X12; \
	VMOVDQA64 Z12, Z31
#define NUMBERS2S(k) \
	MOVL (2+4*k)(SI), R13; \
	MOVBLZX (66+k)(SI), R9; \
	PDEPQ ·c512+consts512_bytes(SB), R13, R13; \
	PDEPQ ·c512+consts512_two8(SB), R9, R9; \
	ORQ R9, R13
#define UNPACK_IQ2_S \
	LEAQ ·c512+consts512_grid2S(SB), R10; \
	NIBBLES16(74); \
	HALF(0, Y5, Z5); \
	HALFUP(Z29, Z4); \
	VMULPS Z30, Z5, Z5; \
	VMULPS Z5, Z4, Z4; \
	VECTORS32(NUMBERS2S); \
	MINUSK(34(SI), Z0); \
	MINUSK(42(SI), Z1); \
	MINUSK(50(SI), Z2); \
	MINUSK(58(SI), Z3)

// IQ3_XXS
#define CONSTS_IQ3_XXS \
	CONSTS_GRID(consts512_fields3, consts512_levels3); \
	VMOVDQU64 ·c512+consts512_codes3XXS(SB), Z16; \
	VMOVDQU64 ·c512+(consts512_codes3XXS+64)(SB), Z17; \
	VMOVDQU64 ·c512+(consts512_codes3XXS+128)(SB), Z18; \
	VMOVDQU64 ·c512+(consts512_codes3XXS+192)(SB), Z19; \
	VMOVDQU64 ·c512+(consts512_codes3XXS+256)(SB), Z20; \
	VMOVDQU64 ·c512+(consts512_codes3XXS+320)(SB), Z21; \
	VMOVDQU64 ·c512+(consts512_codes3XXS+384)(SB), Z22; \
	VMOVDQU64 ·c512+(consts512_codes3XXS+448)(SB), Z23; \
	VMOVDQU64 ·c512+consts512_bit(SB), Z27; \
	VMOVDQU64 ·c512+consts512_fields7(SB), Z28; \
	MOVL $0x3F000000, AX; \
	VPBROADCASTD AX, Z29; \
	VMOVDQA64 Z29, Z30; \
	VMOVDQU ·c512+consts512_dword32(SB), Y12; \
	VMOVDQA64 Z12, Z31
#define UNPACK_IQ3_XXS \
	VMOVDQU64 2(SI), Z6; \
	VMOVDQU 66(SI), Y7; \
	HALF(0, X5, Y5); \
	VPMOVZXDQ Y7, Z12; \
	VPSRLD $28, Y7, Y7; \
	VPERMD Y7, Y31, Y4; \
	HALFUP(Y29, Y4); \
	VMULPS Z30, Z5, Z5; \
	VMULPS Y5, Y4, Y4; \
	VPMULTISHIFTQB Z12, Z28, Z12; \
	VGF2P8AFFINEQB $0, ·c512+consts512_parity(SB), Z12, Z12; \
	VPMOVB2M Z6, K1; \
	FIND1(Z17, Z16, Z8); \
	FIND1(Z19, Z18, Z10); \
	FIND1(Z21, Z20, Z9); \
	FIND1(Z23, Z22, Z11); \
	VMOVDQU8 Z10, K1, Z8; \
	VMOVDQU8 Z11, K1, Z9; \
	PICK(·c512+consts512_at3(SB), Z0); \
	PICK(·c512+(consts512_at3+64)(SB), Z1); \
	PICK(·c512+(consts512_at3+128)(SB), Z2); \
	PICK(·c512+(consts512_at3+192)(SB), Z3); \
	MINUSV(·c512+consts512_sign(SB), Z0); \
	MINUSV(·c512+(consts512_sign+64)(SB), Z1); \
	MINUSV(·c512+(consts512_sign+128)(SB), Z2); \
	MINUSV(·c512+(consts512_sign+192)(SB), Z3)

// IQ3_S
#define CONSTS_IQ3_S \
	CONSTS_GRID(consts512_fields3, consts512_levelsS); \
	TABLES4(consts512_codes3S, Z16, Z17, Z18, Z19); \
	TABLES4(consts512_codes3S+512, Z20, Z21, Z22, Z23); \
	MOVL $1, AX; \
	VPBROADCASTD AX, Y30; \
	VMOVDQU ·c512+consts512_order32(SB), X12; \
	VMOVDQA64 Z12, Z31
#define UNPACK_IQ3_S \
	VMOVDQU64 2(SI), Z6; \
	MOVL 106(SI), R13; \
	PDEPQ ·c512+consts512_nibs(SB), R13, R13; \
	VMOVQ R13, X4; \
	VPSHUFB X31, X4, X4; \
	VPMOVZXBD X4, Y4; \
	HALF(0, X5, Y5); \
	VPADDD Y4, Y4, Y4; \
	VPADDD Y30, Y4, Y4; \
	VCVTDQ2PS Y4, Y4; \
	VMULPS Y5, Y4, Y4; \
	VPMOVB2M Z6, K1; \
	KMOVQ 66(SI), K2; \
	FIND4(consts512_codes3S, Z16, Z17, Z18, Z19, Z8); \
	FIND4(consts512_codes3S+512, Z20, Z21, Z22, Z23, Z9); \
	PICK(·c512+consts512_at3(SB), Z0); \
	PICK(·c512+(consts512_at3+64)(SB), Z1); \
	PICK(·c512+(consts512_at3+128)(SB), Z2); \
	PICK(·c512+(consts512_at3+192)(SB), Z3); \
	MINUSK(74(SI), Z0); \
	MINUSK(82(SI), Z1); \
	MINUSK(90(SI), Z2); \
	MINUSK(98(SI), Z3)

// IQ1_S. The grid holds eight times the vectors, 128 too large.
#define CONSTS_IQ1_S \
	MOVL $7, AX; \
	VPBROADCASTD AX, Z19; \
	MOVL $1, AX; \
	VPBROADCASTD AX, Z20; \
	VPBROADCASTW AX, Z27; \
	VMOVDQU64 ·c512+consts512_move1(SB), Z23; \
	VMOVDQU64 ·c512+(consts512_move1+64)(SB), Z24; \
	VMOVDQU64 ·c512+(consts512_move1+128)(SB), Z25; \
	VMOVDQU64 ·c512+(consts512_move1+192)(SB), Z26; \
	MOVL $0x3E000000, AX; \
	VPBROADCASTD AX, Z30; \
	VMOVDQU ·c512+consts512_dword32(SB), Y12; \
	VMOVDQA64 Z12, Z31
#define NUMBERS1S(k) \
	MOVL (2+4*k)(SI), R13; \
	MOVWLZX (34+2*k)(SI), R9; \
	PDEPQ ·c512+consts512_bytes(SB), R13, R13; \
	PDEPQ ·c512+consts512_three8(SB), R9, R9; \
	ORQ R9, R13
#define UNPACK_IQ1_S \
	VMOVDQU 34(SI), X11; \
	LEAQ ·c512+consts512_grid1(SB), R10; \
	VPSRLW $12, X11, X4; \
	VPMOVZXWD X4, Y4; \
	VPANDD Y19, Y4, Y4; \
	VPERMD Y4, Y31, Y4; \
	VPADDD Y4, Y4, Y4; \
	VPADDD Y20, Y4, Y4; \
	VCVTDQ2PS Y4, Y4; \
	HALF(0, X5, Y5); \
	VMULPS Y30, Y5, Y5; \
	VMULPS Y5, Y4, Y4; \
	VPSRAW $15, X11, X11; \
	VPADDW X11, X11, X11; \
	VPADDW X27, X11, X11; \
	VECTORS32(NUMBERS1S); \
	VPERMB Z11, Z23, Z12; \
	VPERMB Z11, Z24, Z13; \
	VPERMB Z11, Z25, Z14; \
	VPERMB Z11, Z26, Z15; \
	VPADDB Z12, Z0, Z0; \
	VPADDB Z13, Z1, Z1; \
	VPADDB Z14, Z2, Z2; \
	VPADDB Z15, Z3, Z3

// IQ1_M. MOVED adds 1, or takes 1 off where bit 3 of the nibble of a vector is
// set; Z11 has the nibbles in its odd bytes.
#define MOVED(at, z) \
	VPERMB Z11, at, Z12; \
	VPTESTMB Z28, Z12, K3; \
	VPADDB Z27, z, z; \
	VPSUBB Z29, z, K3, z
#define CONSTS_IQ1_M \
	MOVL $7, AX; \
	VPBROADCASTD AX, Z19; \
	MOVL $1, AX; \
	VPBROADCASTD AX, Z20; \
	VPBROADCASTB AX, Z27; \
	MOVL $8, AX; \
	VPBROADCASTB AX, Z28; \
	MOVL $2, AX; \
	VPBROADCASTB AX, Z29; \
	VMOVDQU64 ·c512+consts512_high1M(SB), Z21; \
	VMOVDQU64 ·c512+consts512_move1M(SB), Z23; \
	VMOVDQU64 ·c512+(consts512_move1M+64)(SB), Z24; \
	VMOVDQU64 ·c512+(consts512_move1M+128)(SB), Z25; \
	VMOVDQU64 ·c512+(consts512_move1M+192)(SB), Z26; \
	MOVL $0x3E000000, AX; \
	VPBROADCASTD AX, Z30; \
	VMOVDQU64 ·c512+consts512_shift1M(SB), Z31
#define NUMBERS1M(k) \
	MOVL (4*k)(SI), R13; \
	MOVWLZX (32+2*k)(SI), R9; \
	PDEPQ ·c512+consts512_bytes(SB), R13, R13; \
	PEXTQ ·c512+consts512_sevens(SB), R9, R9; \
	PDEPQ ·c512+consts512_three8(SB), R9, R9; \
	ORQ R9, R13
#define UNPACK_IQ1_M \
	VPMOVZXWQ 32(SI), Z11; \
	VPMULTISHIFTQB Z11, Z21, Z11; \
	LEAQ ·c512+consts512_grid1(SB), R10; \
	MOVQ 48(SI), R13; \
	VPMOVZXWD 48(SI), X4; \
	PEXTQ ·c512+consts512_tops1M(SB), R13, R13; \
	VSHUFI32X4 $0, Z4, Z4, Z4; \
	VPSRLVD Z31, Z4, Z4; \
	VPANDD Z19, Z4, Z4; \
	VPADDD Z4, Z4, Z4; \
	VPADDD Z20, Z4, Z4; \
	VCVTDQ2PS Z4, Z4; \
	VPBROADCASTW R13, Y5; \
	VCVTPH2PS Y5, Z5; \
	VMULPS Z30, Z5, Z5; \
	VMULPS Z5, Z4, Z4; \
	VECTORS32(NUMBERS1M); \
	MOVED(Z23, Z0); \
	MOVED(Z24, Z1); \
	MOVED(Z25, Z2); \
	MOVED(Z26, Z3)
