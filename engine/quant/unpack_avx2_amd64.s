#include "go_asm.h"
#include "textflag.h"
#include "formats_avx2_amd64.h"

// Every function here brings 256 weights of each of some rows to plain rows
// (many.go).

#define UNPACK_BEGIN \
	MOVQ p+0(FP), DI; \
	MOVQ unpack_w(DI), SI; \
	MOVQ unpack_dst(DI), R8; \
	MOVQ unpack_rows(DI), CX
#define UNPACK_NEXT \
	ADDQ unpack_size(DI), SI; \
	ADDQ $plainRow__size, R8; \
	DECQ CX; \
	JNZ row; \
	VZEROUPPER; \
	RET

// func unpackQ4_0x256(p *unpack)
TEXT ·unpackQ4_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q4_0
	UNPACK_NEXT

// func unpackQ4_1x256(p *unpack)
TEXT ·unpackQ4_1x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q4_1
	UNPACK_NEXT

// func unpackQ5_0x256(p *unpack)
TEXT ·unpackQ5_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q5_0
	UNPACK_NEXT

// func unpackQ5_1x256(p *unpack)
TEXT ·unpackQ5_1x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q5_1
	UNPACK_NEXT

// func unpackQ8_0x256(p *unpack)
TEXT ·unpackQ8_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q8_0
	UNPACK_NEXT

// func unpackQ2_Kx256(p *unpack)
TEXT ·unpackQ2_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q2_K
	UNPACK_NEXT

// func unpackQ3_Kx256(p *unpack)
TEXT ·unpackQ3_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q3_K
	UNPACK_NEXT

// func unpackQ4_Kx256(p *unpack)
TEXT ·unpackQ4_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q4_K
	UNPACK_NEXT

// func unpackQ5_Kx256(p *unpack)
TEXT ·unpackQ5_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q5_K
	UNPACK_NEXT

// func unpackQ6_Kx256(p *unpack)
TEXT ·unpackQ6_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q6_K
	UNPACK_NEXT

// func unpackIQ2_XXSx256(p *unpack)
TEXT ·unpackIQ2_XXSx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_IQ2_XXS
	UNPACK_NEXT

// func unpackIQ2_XSx256(p *unpack)
TEXT ·unpackIQ2_XSx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_IQ2_XS
	UNPACK_NEXT

// func unpackIQ3_XXSx256(p *unpack)
TEXT ·unpackIQ3_XXSx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_IQ3_XXS
	UNPACK_NEXT

// func unpackIQ1_Sx256(p *unpack)
TEXT ·unpackIQ1_Sx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_IQ1_S
	UNPACK_NEXT

// func unpackIQ4_NLx256(p *unpack)
TEXT ·unpackIQ4_NLx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_IQ4_NL
	UNPACK_NEXT

// func unpackIQ3_Sx256(p *unpack)
TEXT ·unpackIQ3_Sx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_IQ3_S
	UNPACK_NEXT

// func unpackIQ2_Sx256(p *unpack)
TEXT ·unpackIQ2_Sx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_IQ2_S
	UNPACK_NEXT

// func unpackIQ4_XSx256(p *unpack)
TEXT ·unpackIQ4_XSx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_IQ4_XS
	UNPACK_NEXT

// func unpackIQ1_Mx256(p *unpack)
TEXT ·unpackIQ1_Mx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_IQ1_M
	UNPACK_NEXT

// func unpackTQ1_0x256(p *unpack)
TEXT ·unpackTQ1_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_TQ1_0
	UNPACK_NEXT

// func unpackTQ2_0x256(p *unpack)
TEXT ·unpackTQ2_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_TQ2_0
	UNPACK_NEXT

// func unpackMXFP4x256(p *unpack)
TEXT ·unpackMXFP4x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_MXFP4
	UNPACK_NEXT

// func unpackNVFP4x256(p *unpack)
TEXT ·unpackNVFP4x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_NVFP4
	UNPACK_NEXT

// func unpackQ1_0x256(p *unpack)
TEXT ·unpackQ1_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q1_0
	UNPACK_NEXT

// func unpackQ2_0x256(p *unpack)
TEXT ·unpackQ2_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_Q2_0
	UNPACK_NEXT

// func unpackRelaid3Sx256(p *unpack)
TEXT ·unpackRelaid3Sx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_RELAID(consts256_relaid3S)
	UNPACK_NEXT

// func unpackRelaid3XXSx256(p *unpack)
TEXT ·unpackRelaid3XXSx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	UNPACK_RELAID(consts256_relaid3XXS)
	UNPACK_NEXT
