// Formats with grids: as formats_avx512_amd64.h, which comes first.

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
