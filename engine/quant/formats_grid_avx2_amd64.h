// Formats with grids: as formats_avx2_amd64.h, which comes first.

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
