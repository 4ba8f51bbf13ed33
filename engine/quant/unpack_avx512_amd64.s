#include "go_asm.h"
#include "textflag.h"
#include "formats_avx512_amd64.h"

// Every function here brings 256 weights of each of some rows to plain rows
// (many.go).

#define UNPACK_BEGIN \
	MOVQ p+0(FP), DI; \
	MOVQ unpack_w(DI), SI; \
	MOVQ unpack_dst(DI), BX; \
	MOVQ unpack_rows(DI), CX
#define WEIGHTS \
	VMOVDQU64 Z0, (BX); \
	VMOVDQU64 Z1, 64(BX); \
	VMOVDQU64 Z2, 128(BX); \
	VMOVDQU64 Z3, 192(BX)
#define UNPACK_NEXT \
	ADDQ unpack_size(DI), SI; \
	ADDQ $plainRow__size, BX; \
	DECQ CX; \
	JNZ row; \
	VZEROUPPER; \
	RET

// func unpackQ4_0x512(p *unpack)
TEXT ·unpackQ4_0x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q4_0
row:
	UNPACK_Q4_0
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackQ4_1x512(p *unpack)
TEXT ·unpackQ4_1x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q4_1
row:
	UNPACK_Q4_1
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	VMOVUPS Y5, plainRow_minus(BX)
	UNPACK_NEXT

// func unpackQ5_0x512(p *unpack)
TEXT ·unpackQ5_0x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q5_0
row:
	UNPACK_Q5_0
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackQ5_1x512(p *unpack)
TEXT ·unpackQ5_1x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q5_1
row:
	UNPACK_Q5_1
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	VMOVUPS Y5, plainRow_minus(BX)
	UNPACK_NEXT

// func unpackQ8_0x512(p *unpack)
TEXT ·unpackQ8_0x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q8_0
row:
	UNPACK_Q8_0
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackQ2_Kx512(p *unpack)
TEXT ·unpackQ2_Kx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q2_K
row:
	UNPACK_Q2_K
	WEIGHTS
	VMOVUPS Z4, plainRow_scale(BX)
	VPXOR X6, X6, X6
	VSUBPS Z5, Z6, Z5
	VMOVUPS Z5, plainRow_minus(BX)
	UNPACK_NEXT

// func unpackQ3_Kx512(p *unpack)
TEXT ·unpackQ3_Kx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q3_K
row:
	UNPACK_Q3_K
	WEIGHTS
	VMOVUPS Z4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackQ4_Kx512(p *unpack)
TEXT ·unpackQ4_Kx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q4_K
row:
	UNPACK_Q4_K
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	VPXOR X6, X6, X6
	VSUBPS Y5, Y6, Y5
	VMOVUPS Y5, plainRow_minus(BX)
	UNPACK_NEXT

// func unpackQ5_Kx512(p *unpack)
TEXT ·unpackQ5_Kx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q5_K
row:
	UNPACK_Q5_K
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	VPXOR X6, X6, X6
	VSUBPS Y5, Y6, Y5
	VMOVUPS Y5, plainRow_minus(BX)
	UNPACK_NEXT

// func unpackQ6_Kx512(p *unpack)
TEXT ·unpackQ6_Kx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q6_K
row:
	UNPACK_Q6_K
	WEIGHTS
	VMOVUPS Z4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackIQ2_XXSx512(p *unpack)
TEXT ·unpackIQ2_XXSx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_IQ2_XXS
row:
	UNPACK_IQ2_XXS
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackIQ2_XSx512(p *unpack)
TEXT ·unpackIQ2_XSx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_IQ2_XS
row:
	UNPACK_IQ2_XS
	WEIGHTS
	VMOVUPS Z4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackIQ3_XXSx512(p *unpack)
TEXT ·unpackIQ3_XXSx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_IQ3_XXS
row:
	UNPACK_IQ3_XXS
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackIQ1_Sx512(p *unpack)
TEXT ·unpackIQ1_Sx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_IQ1_S
row:
	UNPACK_IQ1_S
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackIQ4_NLx512(p *unpack)
TEXT ·unpackIQ4_NLx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_IQ4_NL
row:
	UNPACK_IQ4_NL
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackIQ3_Sx512(p *unpack)
TEXT ·unpackIQ3_Sx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_IQ3_S
row:
	UNPACK_IQ3_S
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackIQ2_Sx512(p *unpack)
TEXT ·unpackIQ2_Sx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_IQ2_S
row:
	UNPACK_IQ2_S
	WEIGHTS
	VMOVUPS Z4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackIQ4_XSx512(p *unpack)
TEXT ·unpackIQ4_XSx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_IQ4_XS
row:
	UNPACK_IQ4_XS
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackIQ1_Mx512(p *unpack)
TEXT ·unpackIQ1_Mx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_IQ1_M
row:
	UNPACK_IQ1_M
	WEIGHTS
	VMOVUPS Z4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackTQ1_0x512(p *unpack)
TEXT ·unpackTQ1_0x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_TQ1_0
row:
	UNPACK_TQ1_0
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackTQ2_0x512(p *unpack)
TEXT ·unpackTQ2_0x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_TQ2_0
row:
	UNPACK_TQ2_0
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackMXFP4x512(p *unpack)
TEXT ·unpackMXFP4x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_MXFP4
row:
	UNPACK_MXFP4
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackNVFP4x512(p *unpack)
TEXT ·unpackNVFP4x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_NVFP4
row:
	UNPACK_NVFP4
	WEIGHTS
	VMOVUPS Z4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackQ1_0x512(p *unpack)
TEXT ·unpackQ1_0x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q1_0
row:
	UNPACK_Q1_0
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackQ2_0x512(p *unpack)
TEXT ·unpackQ2_0x512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_Q2_0
row:
	UNPACK_Q2_0
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackRelaid3Sx512(p *unpack)
TEXT ·unpackRelaid3Sx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_RELAID(consts512_relaid3S)
row:
	UNPACK_RELAID
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT

// func unpackRelaid3XXSx512(p *unpack)
TEXT ·unpackRelaid3XXSx512(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
	CONSTS_RELAID(consts512_relaid3XXS)
row:
	UNPACK_RELAID
	WEIGHTS
	VMOVUPS Y4, plainRow_scale(BX)
	UNPACK_NEXT
