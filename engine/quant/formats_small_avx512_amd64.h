// Formats of up to three bits and with tables of levels: as formats_avx512_amd64.h,
// which comes first.

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
