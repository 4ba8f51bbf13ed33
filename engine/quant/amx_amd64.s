#include "go_asm.h"
#include "textflag.h"

// Products of a slab with 16 activation rows on AMX. The assembler has no names
// for these instructions, so that they stand as bytes; TestTileForms compares
// them with those of an assembler that has. A part of a slab is a tile as it is:
// row k holds four weights of each of 16 rows, and the product of a tile of
// activations with it is the sums over 32 values, a row of 16 for each
// activation row. These sums become floats where product.go says so.

// The shapes of tiles (Intel SDM, volume 1, chapter 18): palette 1, bytes of a
// row from byte 16 on as 16 bits, rows from byte 48 on. Tile 0 takes sums, 1
// activations, 2 weights.
DATA tiles32<>+0(SB)/8, $1
DATA tiles32<>+8(SB)/8, $0
DATA tiles32<>+16(SB)/8, $0x0000004000200040
DATA tiles32<>+24(SB)/8, $0
DATA tiles32<>+32(SB)/8, $0
DATA tiles32<>+40(SB)/8, $0
DATA tiles32<>+48(SB)/8, $0x0000000000081010
DATA tiles32<>+56(SB)/8, $0
GLOBL tiles32<>(SB), RODATA|NOPTR, $64

// ldtilecfg [rcx]
#define LDTILECFG BYTE $0xC4; LONG $0x014978E2
// tilezero tmm0
#define TILEZERO BYTE $0xC4; LONG $0xC0497BE2
// tileloadd tmm1, [r14+r9]
#define TILELOAD1 WORD $0x82C4; LONG $0x0E0C4B7B
// tileloadd tmm2, [rsi+rbx]
#define TILELOAD2 WORD $0xE2C4; LONG $0x1E144B7B
// tdpbssd tmm0, tmm1, tmm2
#define TDPBSSD BYTE $0xC4; LONG $0xC15E6BE2
// tilestored [r15+rbx], tmm0
#define TILESTORE WORD $0xC2C4; LONG $0x1F044B7A
// tilerelease
#define TILERELEASE BYTE $0xC4; LONG $0xC04978E2

// SUMS takes the sums of one activation row into its chain; mem is where its
// scales are, Z28 the scales of the weights.
#define SUMS(at, mem, z) \
	VCVTDQ2PS at(R15), Z16; \
	VMULPS.BCST record_d mem, Z28, Z17; \
	VFMADD231PS Z16, Z17, z
#define SUMS16 \
	SUMS(0, (R8), Z0); \
	SUMS(64, (R8)(R9*1), Z1); \
	SUMS(128, (R8)(R9*2), Z2); \
	SUMS(192, (R8)(R10*1), Z3); \
	SUMS(256, (R11), Z4); \
	SUMS(320, (R11)(R9*1), Z5); \
	SUMS(384, (R11)(R9*2), Z6); \
	SUMS(448, (R11)(R10*1), Z7); \
	SUMS(512, (R12), Z8); \
	SUMS(576, (R12)(R9*1), Z9); \
	SUMS(640, (R12)(R9*2), Z10); \
	SUMS(704, (R12)(R10*1), Z11); \
	SUMS(768, (R13), Z12); \
	SUMS(832, (R13)(R9*1), Z13); \
	SUMS(896, (R13)(R9*2), Z14); \
	SUMS(960, (R13)(R10*1), Z15)

// MINUS takes the offsets of the weights, in Z29 with their sign turned.
#define MINUS(mem, z) VFMADD231PS.BCST record_dsum mem, Z29, z
#define MINUS16 \
	MINUS((R8), Z0); \
	MINUS((R8)(R9*1), Z1); \
	MINUS((R8)(R9*2), Z2); \
	MINUS((R8)(R10*1), Z3); \
	MINUS((R11), Z4); \
	MINUS((R11)(R9*1), Z5); \
	MINUS((R11)(R9*2), Z6); \
	MINUS((R11)(R10*1), Z7); \
	MINUS((R12), Z8); \
	MINUS((R12)(R9*1), Z9); \
	MINUS((R12)(R9*2), Z10); \
	MINUS((R12)(R10*1), Z11); \
	MINUS((R13), Z12); \
	MINUS((R13)(R9*1), Z13); \
	MINUS((R13)(R9*2), Z14); \
	MINUS((R13)(R10*1), Z15)
#define CLEAR16 \
	VPXORD Z0, Z0, Z0; \
	VPXORD Z1, Z1, Z1; \
	VPXORD Z2, Z2, Z2; \
	VPXORD Z3, Z3, Z3; \
	VPXORD Z4, Z4, Z4; \
	VPXORD Z5, Z5, Z5; \
	VPXORD Z6, Z6, Z6; \
	VPXORD Z7, Z7, Z7; \
	VPXORD Z8, Z8, Z8; \
	VPXORD Z9, Z9, Z9; \
	VPXORD Z10, Z10, Z10; \
	VPXORD Z11, Z11, Z11; \
	VPXORD Z12, Z12, Z12; \
	VPXORD Z13, Z13, Z13; \
	VPXORD Z14, Z14, Z14; \
	VPXORD Z15, Z15, Z15
#define JOIN16 \
	VADDPS 0(BX), Z0, Z0; \
	VADDPS 64(BX), Z1, Z1; \
	VADDPS 128(BX), Z2, Z2; \
	VADDPS 192(BX), Z3, Z3; \
	VADDPS 256(BX), Z4, Z4; \
	VADDPS 320(BX), Z5, Z5; \
	VADDPS 384(BX), Z6, Z6; \
	VADDPS 448(BX), Z7, Z7; \
	VADDPS 512(BX), Z8, Z8; \
	VADDPS 576(BX), Z9, Z9; \
	VADDPS 640(BX), Z10, Z10; \
	VADDPS 704(BX), Z11, Z11; \
	VADDPS 768(BX), Z12, Z12; \
	VADDPS 832(BX), Z13, Z13; \
	VADDPS 896(BX), Z14, Z14; \
	VADDPS 960(BX), Z15, Z15
#define KEEP16 \
	VMOVUPS Z0, 0(BX); \
	VMOVUPS Z1, 64(BX); \
	VMOVUPS Z2, 128(BX); \
	VMOVUPS Z3, 192(BX); \
	VMOVUPS Z4, 256(BX); \
	VMOVUPS Z5, 320(BX); \
	VMOVUPS Z6, 384(BX); \
	VMOVUPS Z7, 448(BX); \
	VMOVUPS Z8, 512(BX); \
	VMOVUPS Z9, 576(BX); \
	VMOVUPS Z10, 640(BX); \
	VMOVUPS Z11, 704(BX); \
	VMOVUPS Z12, 768(BX); \
	VMOVUPS Z13, 832(BX); \
	VMOVUPS Z14, 896(BX); \
	VMOVUPS Z15, 960(BX)
#define OUT(z) \
	VMOVUPS z, K1, (AX); \
	ADDQ BX, AX; \
	DECQ CX; \
	JZ done
#define OUT16 \
	OUT(Z0); \
	OUT(Z1); \
	OUT(Z2); \
	OUT(Z3); \
	OUT(Z4); \
	OUT(Z5); \
	OUT(Z6); \
	OUT(Z7); \
	OUT(Z8); \
	OUT(Z9); \
	OUT(Z10); \
	OUT(Z11); \
	OUT(Z12); \
	OUT(Z13); \
	OUT(Z14); \
	OUT(Z15)

// SLAB is the loop over chains and parts. Chains are added as they come, as in
// slab_avx512_amd64.s. A part is bytes long, the scales of its weights are behind
// 512 of weights.
// Four places for sums take turns, so that the next product need not wait until
// the sums of the last have been read.
#define SLAB(bytes, OFFSETS) \
	MOVQ p+0(FP), DI; \
	LEAQ tiles32<>(SB), CX; \
	LDTILECFG; \
	MOVQ slab_parts(DI), SI; \
	MOVQ slab_gap(DI), R9; \
	LEAQ (R9)(R9*2), R10; \
	XORL DX, DX; \
	XORL AX, AX; \
chain: \
	LEAQ ·places32(SB), CX; \
	MOVQ DX, BX; \
	SHLQ $5, BX; \
	ADDQ BX, CX; \
	MOVQ slab_x(DI), R8; \
	MOVQ R8, R14; \
	ADDQ (CX), R14; \
	ADDQ 8(CX), R8; \
	LEAQ (R8)(R9*4), R11; \
	LEAQ (R11)(R9*4), R12; \
	LEAQ (R12)(R9*4), R13; \
	MOVQ slab_groups(DI), CX; \
	MOVL $64, BX; \
	CLEAR16; \
part: \
	LEAQ slab_sums(DI)(AX*1), R15; \
	TILEZERO; \
	TILELOAD1; \
	TILELOAD2; \
	TDPBSSD; \
	TILESTORE; \
	VMOVUPS 512(SI), Z28; \
	SUMS16; \
	OFFSETS; \
	ADDQ $1024, AX; \
	ANDQ $4095, AX; \
	ADDQ $record__size, R8; \
	ADDQ $record__size, R11; \
	ADDQ $record__size, R12; \
	ADDQ $record__size, R13; \
	ADDQ $record__size, R14; \
	ADDQ $bytes, SI; \
	DECQ CX; \
	JNZ part; \
	LEAQ slab_wide(DI), BX; \
	MOVQ DX, CX; \
join: \
	TESTQ $1, CX; \
	JZ keep; \
	JOIN16; \
	ADDQ $1024, BX; \
	SHRQ $1, CX; \
	JMP join; \
keep: \
	KEEP16; \
	INCQ DX; \
	CMPQ DX, $8; \
	JB chain; \
	TILERELEASE; \
	KMOVW slab_mask(DI), K1; \
	MOVQ slab_dst(DI), AX; \
	MOVQ slab_ldd(DI), BX; \
	MOVQ slab_t(DI), CX; \
	OUT16; \
done: \
	VZEROUPPER; \
	RET

#define NOOFFSETS NOP
#define OFFSETS32 \
	VMOVUPS 576(SI), Z29; \
	MINUS16

// func slab32by16xAMX(p *slab)
TEXT ·slab32by16xAMX(SB), NOSPLIT, $0-8
	SLAB(576, NOOFFSETS)

// func slab32Offsetsby16xAMX(p *slab)
TEXT ·slab32Offsetsby16xAMX(SB), NOSPLIT, $0-8
	SLAB(640, OFFSETS32)

// FLIP turns the first bit of 64 weights in each of 16 plain rows.
#define FLIP(at) \
	VPXORD (at)(SI), Z0, Z1; \
	VMOVDQU32 Z1, (at)(SI)

// func flip16xAMX(rows *plainRow)
TEXT ·flip16xAMX(SB), NOSPLIT, $0-8
	MOVQ rows+0(FP), SI
	MOVL $0x80808080, AX
	VPBROADCASTD AX, Z0
	MOVL $16, CX
row:
	FLIP(0)
	FLIP(64)
	FLIP(128)
	FLIP(192)
	ADDQ $plainRow__size, SI
	DECL CX
	JNZ row
	VZEROUPPER
	RET

// func xcr0() uint64
TEXT ·xcr0(SB), NOSPLIT, $0-8
	XORL CX, CX
	XGETBV
	SHLQ $32, DX
	ORQ DX, AX
	MOVQ AX, ret+0(FP)
	RET
