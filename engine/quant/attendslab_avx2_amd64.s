#include "go_asm.h"
#include "textflag.h"
#include "attendslab_avx2_amd64.h"

// Attention over slabs of cached rows on AVX2 (attendslab.go). Rows of 8 bits
// become words; bytes of rows of 4 bits are multiplied as they are.

// QUERIES brings 64 values of each query to whole numbers in Y0-Y7, the sum of
// which goes to Y14.
#define TOP(y) \
	VPAND Y15, y, Y9; \
	VPMAXUD Y9, Y8, Y8
#define NUMBERS(y) \
	VMULPS Y9, y, y; \
	VCVTPS2DQ y, y; \
	VPADDD y, Y14, Y14
#define ACROSS(op, y, x, xt) \
	VEXTRACTI128 $1, y, xt; \
	op xt, x, x; \
	VPSHUFD $0x4e, x, xt; \
	op xt, x, x; \
	VPSHUFD $0xb1, x, xt; \
	op xt, x, x
#define WORDS2(a, b) \
	VPACKSSDW b, a, a; \
	VPERMQ $0xd8, a, a
#define QUERIES(most, STORE) \
	MOVQ a+0(FP), DI; \
	MOVQ slabCall_p(DI), SI; \
	MOVQ slabCall_x(DI), BX; \
	MOVQ slabCall_nq(DI), CX; \
	VPBROADCASTD slab256<>+72(SB), Y15; \
one: \
	VMOVUPS (SI), Y0; \
	VMOVUPS 32(SI), Y1; \
	VMOVUPS 64(SI), Y2; \
	VMOVUPS 96(SI), Y3; \
	VMOVUPS 128(SI), Y4; \
	VMOVUPS 160(SI), Y5; \
	VMOVUPS 192(SI), Y6; \
	VMOVUPS 224(SI), Y7; \
	VPXOR Y8, Y8, Y8; \
	TOP(Y0); \
	TOP(Y1); \
	TOP(Y2); \
	TOP(Y3); \
	TOP(Y4); \
	TOP(Y5); \
	TOP(Y6); \
	TOP(Y7); \
	ACROSS(VPMAXUD, Y8, X8, X9); \
	VMOVSS slab256<>+most(SB), X12; \
	VMOVSS slab256<>+76(SB), X13; \
	VCMPSS $30, X13, X8, X13; \
	VDIVSS X8, X12, X9; \
	VANDPS X13, X9, X9; \
	VBROADCASTSS X9, Y9; \
	VDIVSS X12, X8, X8; \
	VMOVSS X8, slabQuery_scale(BX); \
	VPXOR Y14, Y14, Y14; \
	NUMBERS(Y0); \
	NUMBERS(Y1); \
	NUMBERS(Y2); \
	NUMBERS(Y3); \
	NUMBERS(Y4); \
	NUMBERS(Y5); \
	NUMBERS(Y6); \
	NUMBERS(Y7); \
	ACROSS(VPADDD, Y14, X14, X9); \
	VCVTDQ2PS X14, X14; \
	VMULSS X8, X14, X14; \
	VMOVSS X14, slabQuery_offset(BX); \
	WORDS2(Y0, Y1); \
	WORDS2(Y2, Y3); \
	WORDS2(Y4, Y5); \
	WORDS2(Y6, Y7); \
	STORE; \
	ADDQ slabCall_ldp(DI), SI; \
	ADDQ $slabQuery__size, BX; \
	DECQ CX; \
	JNZ one; \
	VZEROUPPER; \
	RET
#define STORE8 \
	VMOVDQU Y0, (BX); \
	VMOVDQU Y2, 32(BX); \
	VMOVDQU Y4, 64(BX); \
	VMOVDQU Y6, 96(BX)
#define STORE4 \
	VPACKSSWB Y2, Y0, Y0; \
	VPACKSSWB Y6, Y4, Y4; \
	VPERMQ $0xd8, Y0, Y0; \
	VPERMQ $0xd8, Y4, Y4; \
	VMOVDQU Y0, (BX); \
	VMOVDQU Y4, 32(BX)

// func query8x256(a *slabCall)
// To 64 words, where others have high and low bytes.
TEXT ·query8x256(SB), NOSPLIT, $0-8
	QUERIES(100, STORE8)

// func query4x256(a *slabCall)
TEXT ·query4x256(SB), NOSPLIT, $0-8
	QUERIES(104, STORE4)

#define SCALES(SECOND) \
	MOVQ a+0(FP), DI; \
	MOVQ slabCall_slabs(DI), SI; \
	MOVQ slabCall_size(DI), R10; \
	MOVQ slabCall_count(DI), CX; \
	MOVQ slabCall_d(DI), R8; \
	MOVQ slabCall_m(DI), R9; \
	MOVQ slabCall_group(DI), AX; \
	SHLQ $5, AX; \
	ADDQ AX, SI; \
	MOVQ slabCall_groups(DI), R11; \
	SHLQ $5, R11; \
	ADDQ SI, R11; \
slab: \
	VCVTPH2PS (SI), Y0; \
	VCVTPH2PS 16(SI), Y1; \
	VMOVUPS Y0, (R8); \
	VMOVUPS Y1, 32(R8); \
	SECOND; \
	ADDQ $64, R8; \
	ADDQ $64, R9; \
	ADDQ R10, SI; \
	ADDQ R10, R11; \
	DECQ CX; \
	JNZ slab; \
	VZEROUPPER; \
	RET
#define OFFSETS \
	VCVTPH2PS (R11), Y0; \
	VCVTPH2PS 16(R11), Y1; \
	VMOVUPS Y0, (R9); \
	VMOVUPS Y1, 32(R9)

// func scales8x256(a *slabCall)
TEXT ·scales8x256(SB), NOSPLIT, $0-8
	SCALES(NOP)

// func scales4x256(a *slabCall)
TEXT ·scales4x256(SB), NOSPLIT, $0-8
	SCALES(OFFSETS)

// PRODUCTS multiplies 256 weights with the scales of their rows, to the second
// half of the numbers; the largest goes to X0, and SECOND is done for 16 of them.
#define PRODUCTS(SECOND) \
	VPXOR Y0, Y0, Y0; \
	VPXOR Y1, Y1, Y1; \
	VXORPS Y8, Y8, Y8; \
	VXORPS Y9, Y9, Y9; \
	XORL R11, R11; \
products: \
	VMOVUPS (AX)(R11*1), Y2; \
	VMOVUPS 32(AX)(R11*1), Y3; \
	SECOND; \
	VMULPS (R9)(R11*1), Y2, Y2; \
	VMULPS 32(R9)(R11*1), Y3, Y3; \
	VMOVUPS Y2, 1024(BX)(R11*1); \
	VMOVUPS Y3, 1056(BX)(R11*1); \
	VPMAXUD Y2, Y0, Y0; \
	VPMAXUD Y3, Y1, Y1; \
	ADDQ $64, R11; \
	CMPQ R11, $1024; \
	JNE products; \
	VPMAXUD Y1, Y0, Y0; \
	VEXTRACTI128 $1, Y0, X1; \
	VPMAXUD X1, X0, X0; \
	VPSHUFD $0x4e, X0, X1; \
	VPMAXUD X1, X0, X0; \
	VPSHUFD $0xb1, X0, X1; \
	VPMAXUD X1, X0, X0
#define SUMS \
	VMULPS (R10)(R11*1), Y2, Y4; \
	VMULPS 32(R10)(R11*1), Y3, Y5; \
	VADDPS Y4, Y8, Y8; \
	VADDPS Y5, Y9, Y9

// SCALE makes of it the factor in Y6 and its inverse, which is stored.
#define SCALE(most) \
	VMOVSS slab256<>+most(SB), X1; \
	VMOVSS slab256<>+76(SB), X2; \
	VCMPSS $30, X2, X0, X2; \
	VDIVSS X0, X1, X6; \
	VANDPS X2, X6, X6; \
	VBROADCASTSS X6, Y6; \
	VDIVSS X1, X0, X0; \
	VMOVSS X0, slabWeights_scale(BX)

#define WEIGHTS \
	MOVQ a+0(FP), DI; \
	MOVQ slabCall_p(DI), AX; \
	MOVQ slabCall_d(DI), R9; \
	MOVQ slabCall_m(DI), R10; \
	MOVQ slabCall_x(DI), BX; \
	MOVQ slabCall_nq(DI), CX

#define NEXT \
	ADDQ slabCall_ldp(DI), AX; \
	ADDQ $slabWeights__size, BX; \
	DECQ CX; \
	JNZ query; \
	VZEROUPPER; \
	RET

// func weights8x256(a *slabCall)
// To 256 words.
TEXT ·weights8x256(SB), NOSPLIT, $0-8
	WEIGHTS
query:
	PRODUCTS(NOP)
	SCALE(80)
	VBROADCASTSS slab256<>+88(SB), Y7
	VPBROADCASTD slab256<>+96(SB), Y5
	MOVQ BX, R12
	XORL R11, R11
numbers:
	VMOVUPS 1024(BX)(R11*1), Y0
	VMOVUPS 1056(BX)(R11*1), Y1
	VFMADD213PS Y7, Y6, Y0
	VFMADD213PS Y7, Y6, Y1
	VPAND Y5, Y0, Y0
	VPAND Y5, Y1, Y1
	VPACKUSDW Y1, Y0, Y0
	VPERMQ $0xd8, Y0, Y0
	VMOVDQU Y0, (R12)
	ADDQ $32, R12
	ADDQ $64, R11
	CMPQ R11, $1024
	JNE numbers
	NEXT

// CARRY makes whole numbers of eight weights, and carries over what is lost.
#define CARRY(at, over) \
	VMULPS (1024+at)(BX)(R11*1), Y6, Y0; \
	VADDPS over, Y0, Y0; \
	VADDPS Y7, Y0, Y1; \
	VSUBPS Y7, Y1, Y2; \
	VSUBPS Y2, Y0, over; \
	VPSHUFB Y5, Y1, Y1; \
	VMOVDQU Y1, (at)(BX)(R11*1)

// func weights4x256(a *slabCall)
// To 256 bytes, each four times.
TEXT ·weights4x256(SB), NOSPLIT, $0-8
	WEIGHTS
query:
	PRODUCTS(SUMS)
	SCALE(84)
	VADDPS Y9, Y8, Y8
	VEXTRACTF128 $1, Y8, X1
	VADDPS X1, X8, X8
	VPSHUFD $0x4e, X8, X1
	VADDPS X1, X8, X8
	VPSHUFD $0xb1, X8, X1
	VADDPS X1, X8, X8
	VMOVSS X8, slabWeights_offset(BX)
	VBROADCASTSS slab256<>+92(SB), Y7
	VMOVDQU slab256<>+32(SB), Y5
	VXORPS Y8, Y8, Y8
	VXORPS Y9, Y9, Y9
	VXORPS Y10, Y10, Y10
	VXORPS Y11, Y11, Y11
	VXORPS Y12, Y12, Y12
	VXORPS Y13, Y13, Y13
	VXORPS Y14, Y14, Y14
	VXORPS Y15, Y15, Y15
	XORL R11, R11
numbers:
	CARRY(0, Y8)
	CARRY(32, Y9)
	CARRY(64, Y10)
	CARRY(96, Y11)
	CARRY(128, Y12)
	CARRY(160, Y13)
	CARRY(192, Y14)
	CARRY(224, Y15)
	ADDQ $256, R11
	CMPQ R11, $1024
	JNE numbers
	NEXT

// PAIR multiplies four values of four rows, in Y12, with those of two queries.
#define PAIR(at, a, b) \
	VPMOVSXBW (at)(R9), Y12; \
	VPMADDWD Y8, Y12, Y13; \
	VPADDD Y13, a, a; \
	VPMADDWD Y9, Y12, Y13; \
	VPADDD Y13, b, b
#define FOUR(at, a) \
	VPMOVSXBW (at)(R9), Y12; \
	VPMADDWD Y8, Y12, Y13; \
	VPADDD Y13, a, a

// KEEP adds the scores of 16 rows for a query, sums of halves of fours, to mem
// and up.
#define KEEP(at, mem, up, a, b, c, d) \
	VPHADDD b, a, a; \
	VPHADDD d, c, c; \
	VPERMQ $0xd8, a, a; \
	VPERMQ $0xd8, c, c; \
	VCVTDQ2PS a, a; \
	VCVTDQ2PS c, c; \
	VBROADCASTSS (at+slabQuery_scale)(BX), b; \
	VMULPS Y10, b, d; \
	VMULPS Y11, b, b; \
	VMULPS d, a, a; \
	VMULPS b, c, c; \
	VXORPS b, b, b; \
	VXORPS d, d, d; \
	TESTQ R12, R12; \
	JZ 3(PC); \
	VMOVUPS mem, b; \
	VMOVUPS up, d; \
	VADDPS b, a, a; \
	VADDPS d, c, c; \
	VMOVUPS a, mem; \
	VMOVUPS c, up

// func scores8x256(a *slabCall)
TEXT ·scores8x256(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ slabCall_slabs(DI), SI
	MOVQ slabCall_count(DI), DX
	MOVQ slabCall_groups(DI), R10
	MOVQ slabCall_dst(DI), R8
	MOVQ slabCall_fetch(DI), R11
	MOVQ slabCall_ldd(DI), R13
slab:
	XORL R12, R12
	MOVQ slabCall_x(DI), BX
	MOVQ R11, R15
group:
	MOVQ R12, R9
	SHLQ $5, R9
	VCVTPH2PS (SI)(R9*1), Y10
	VCVTPH2PS 16(SI)(R9*1), Y11
	MOVQ R8, AX
	MOVQ slabCall_nq(DI), CX
query:
	MOVQ slabCall_lines(DI), R14
fetch:
	PREFETCHT1 (R15)
	ADDQ $64, R15
	DECQ R14
	JNZ fetch
	MOVQ R10, R9
	SHLQ $5, R9
	MOVQ R12, R14
	SHLQ $10, R14
	ADDQ R14, R9
	ADDQ SI, R9
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	XORL R14, R14
	CMPQ CX, $2
	JB one
	VPXOR Y4, Y4, Y4
	VPXOR Y5, Y5, Y5
	VPXOR Y6, Y6, Y6
	VPXOR Y7, Y7, Y7
pairs:
	VPBROADCASTQ (BX)(R14*1), Y8
	VPBROADCASTQ slabQuery__size(BX)(R14*1), Y9
	PAIR(0, Y0, Y4)
	PAIR(16, Y1, Y5)
	PAIR(32, Y2, Y6)
	PAIR(48, Y3, Y7)
	ADDQ $64, R9
	ADDQ $8, R14
	CMPQ R14, $128
	JNE pairs
	KEEP(0, (AX), 32(AX), Y0, Y1, Y2, Y3)
	KEEP(slabQuery__size, (AX)(R13*1), 32(AX)(R13*1), Y4, Y5, Y6, Y7)
	LEAQ (AX)(R13*2), AX
	ADDQ $(2*slabQuery__size), BX
	SUBQ $2, CX
	JNZ query
	JMP next
one:
	VPBROADCASTQ (BX)(R14*1), Y8
	FOUR(0, Y0)
	FOUR(16, Y1)
	FOUR(32, Y2)
	FOUR(48, Y3)
	ADDQ $64, R9
	ADDQ $8, R14
	CMPQ R14, $128
	JNE one
	KEEP(0, (AX), 32(AX), Y0, Y1, Y2, Y3)
	ADDQ $slabQuery__size, BX
next:
	INCQ R12
	CMPQ R12, R10
	JB group
	ADDQ $64, R8
	ADDQ slabCall_size(DI), SI
	ADDQ slabCall_size(DI), R11
	DECQ DX
	JNZ slab
	VZEROUPPER
	RET

// Four values of eight rows, on the stack, times those of a query: sums of eight
// times two products fit 16 bits.
#define TIMES(j, sum) \
	VPBROADCASTD (slabQuery_high+4*j)(BX), Y3; \
	VMOVDQU (32*j)(SP), Y2; \
	VPMADDUBSW Y3, Y2, Y2; \
	VPADDW Y2, sum, sum
#define TIMES64 \
	VPXOR Y0, Y0, Y0; \
	VPXOR Y1, Y1, Y1; \
	TIMES(0, Y0); \
	TIMES(1, Y0); \
	TIMES(2, Y0); \
	TIMES(3, Y0); \
	TIMES(4, Y0); \
	TIMES(5, Y0); \
	TIMES(6, Y0); \
	TIMES(7, Y0); \
	TIMES(8, Y1); \
	TIMES(9, Y1); \
	TIMES(10, Y1); \
	TIMES(11, Y1); \
	TIMES(12, Y1); \
	TIMES(13, Y1); \
	TIMES(14, Y1); \
	TIMES(15, Y1); \
	VPMADDWD Y14, Y0, Y0; \
	VPMADDWD Y14, Y1, Y1; \
	VPADDD Y1, Y0, Y0

// func scores4x256(a *slabCall)
TEXT ·scores4x256(SB), 0, $512-8
	SCORES4(TIMES64)

// WORDS brings eight values of four rows to words, by value.
#define WORDS(at) \
	VMOVDQU (at)(AX), X0; \
	VMOVDQU (64+at)(AX), X1; \
	VPSHUFB X15, X0, X0; \
	VPSHUFB X15, X1, X1; \
	VPMOVSXBW X0, Y0; \
	VPMOVSXBW X1, Y1
#define WEIGH(at, a, b) \
	VPBROADCASTQ (at)(R13), Y2; \
	VPMADDWD Y2, Y0, Y3; \
	VPMADDWD Y2, Y1, Y4; \
	VPADDD Y3, a, a; \
	VPADDD Y4, b, b
#define END8(at, mem, a, b) \
	VPHADDD b, a, Y0; \
	VPERMQ $0xd8, Y0, Y0; \
	VBROADCASTSS (at+slabWeights_scale)(BX), Y2; \
	VCVTDQ2PS Y0, Y0; \
	VMULPS Y2, Y0, Y0; \
	VADDPS mem, Y0, Y0; \
	VMOVUPS Y0, mem

#define WEIGH_1(L) WEIGH(0*slabWeights__size+8*L, Y8, Y9)
#define END8_1 END8(0*slabWeights__size, (R8), Y8, Y9)
#define ROWS8_1 WORDS(0); WEIGH_1(0); WORDS(16); WEIGH_1(1); WORDS(32); WEIGH_1(2); WORDS(48); WEIGH_1(3)
#define WEIGH_2(L) WEIGH_1(L); WEIGH(1*slabWeights__size+8*L, Y10, Y11)
#define END8_2 END8_1; END8(1*slabWeights__size, (R8)(R9*1), Y10, Y11)
#define ROWS8_2 WORDS(0); WEIGH_2(0); WORDS(16); WEIGH_2(1); WORDS(32); WEIGH_2(2); WORDS(48); WEIGH_2(3)
#define WEIGH_3(L) WEIGH_2(L); WEIGH(2*slabWeights__size+8*L, Y12, Y13)
#define END8_3 END8_2; END8(2*slabWeights__size, (R8)(R9*2), Y12, Y13)
#define ROWS8_3 WORDS(0); WEIGH_3(0); WORDS(16); WEIGH_3(1); WORDS(32); WEIGH_3(2); WORDS(48); WEIGH_3(3)

// func mix8by1x256(a *slabCall)
TEXT ·mix8by1x256(SB), NOSPLIT, $0-8
	BEGIN_MIX(5, 10)
	VMOVDQU slab256<>+0(SB), X15
	WALK_MIX(128, 32, ZERO_1, ROWS8_1, END8_1)

// func mix8by2x256(a *slabCall)
TEXT ·mix8by2x256(SB), NOSPLIT, $0-8
	BEGIN_MIX(5, 10)
	VMOVDQU slab256<>+0(SB), X15
	WALK_MIX(128, 32, ZERO_2, ROWS8_2, END8_2)

// func mix8by3x256(a *slabCall)
TEXT ·mix8by3x256(SB), NOSPLIT, $0-8
	BEGIN_MIX(5, 10)
	VMOVDQU slab256<>+0(SB), X15
	WALK_MIX(128, 32, ZERO_3, ROWS8_3, END8_3)

// WEIGH4 multiplies bytes with the weights of a query.
#define WEIGH4(at, a, b) \
	VMOVDQU (at)(R13), Y4; \
	VMOVDQU (at+32)(R13), Y5; \
	VPMADDUBSW Y0, Y4, Y6; \
	VPMADDUBSW Y1, Y5, Y7; \
	VPADDW Y7, Y6, Y6; \
	VPMADDWD Y14, Y6, Y6; \
	VPADDD Y6, a, a; \
	VPMADDUBSW Y2, Y4, Y6; \
	VPMADDUBSW Y3, Y5, Y7; \
	VPADDW Y7, Y6, Y6; \
	VPMADDWD Y14, Y6, Y6; \
	VPADDD Y6, b, b

#define ROWS4_1 NIBBLES; WEIGH4(0*slabWeights__size, Y8, Y9)
#define ROWS4_2 ROWS4_1; WEIGH4(1*slabWeights__size, Y10, Y11)
#define ROWS4_3 ROWS4_2; WEIGH4(2*slabWeights__size, Y12, Y13)

// func mix4by1x256(a *slabCall)
TEXT ·mix4by1x256(SB), NOSPLIT, $0-8
	BEGIN_MIX(6, 9)
	VPBROADCASTD slab256<>+64(SB), Y15
	VPBROADCASTD slab256<>+68(SB), Y14
	WALK_MIX(64, 64, ZERO_1, ROWS4_1, END4_1)

// func mix4by2x256(a *slabCall)
TEXT ·mix4by2x256(SB), NOSPLIT, $0-8
	BEGIN_MIX(6, 9)
	VPBROADCASTD slab256<>+64(SB), Y15
	VPBROADCASTD slab256<>+68(SB), Y14
	WALK_MIX(64, 64, ZERO_2, ROWS4_2, END4_2)

// func mix4by3x256(a *slabCall)
TEXT ·mix4by3x256(SB), NOSPLIT, $0-8
	BEGIN_MIX(6, 9)
	VPBROADCASTD slab256<>+64(SB), Y15
	VPBROADCASTD slab256<>+68(SB), Y14
	WALK_MIX(64, 64, ZERO_3, ROWS4_3, END4_3)
