#include "go_asm.h"
#include "textflag.h"
#include "attendslab_avx512_amd64.h"

// Sums of the values of slabs on AVX-512 with VNNI (attendslab.go).

// The bytes of four rows of four values by value, and the lowest or second bytes
// of four dwords, four times.
DATA turn<>+0(SB)/8, $0x0d0905010c080400
DATA turn<>+8(SB)/8, $0x0f0b07030e0a0602
GLOBL turn<>(SB), RODATA|NOPTR, $16
DATA lowest<>+0(SB)/8, $0x0c0804000c080400
DATA lowest<>+8(SB)/8, $0x0c0804000c080400
GLOBL lowest<>(SB), RODATA|NOPTR, $16
DATA second<>+0(SB)/8, $0x0d0905010d090501
DATA second<>+8(SB)/8, $0x0d0905010d090501
GLOBL second<>(SB), RODATA|NOPTR, $16

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
slab: \
	VCVTPH2PS (SI), Z0; \
	VMOVUPS Z0, (R8); \
	SECOND; \
	ADDQ $64, R8; \
	ADDQ $64, R9; \
	ADDQ R10, SI; \
	DECQ CX; \
	JNZ slab; \
	VZEROUPPER; \
	RET
#define OFFSETS VCVTPH2PS (SI)(R11*1), Z1; VMOVUPS Z1, (R9)

// func scales8x512(a *slabCall)
TEXT ·scales8x512(SB), NOSPLIT, $0-8
	SCALES(NOP)

// func scales4x512(a *slabCall)
TEXT ·scales4x512(SB), NOSPLIT, $0-8
	SCALES(OFFSETS)

// PRODUCT multiplies 16 weights with the scales of their rows; the largest so far
// as numbers without sign are in one of two registers, and no number is larger than all.
#define PRODUCT(i, z, most) \
	VMOVUPS (64*i)(AX), z; \
	VMULPS (64*i)(R9), z, z; \
	VPMAXUD z, most, most
#define PRODUCT_M(i, z, most) \
	VMOVUPS (64*i)(AX), Z19; \
	VMULPS (64*i)(R9), Z19, z; \
	VMULPS (64*i)(R10), Z19, Z19; \
	VADDPS Z19, Z30, Z30; \
	VPMAXUD z, most, most

#define SIXTEEN(P, a, b, c, d) \
	P(0, Z0, a); \
	P(1, Z1, b); \
	P(2, Z2, c); \
	P(3, Z3, d); \
	P(4, Z4, a); \
	P(5, Z5, b); \
	P(6, Z6, c); \
	P(7, Z7, d); \
	P(8, Z8, a); \
	P(9, Z9, b); \
	P(10, Z10, c); \
	P(11, Z11, d); \
	P(12, Z12, a); \
	P(13, Z13, b); \
	P(14, Z14, c); \
	P(15, Z15, d)

// NUMBERS8 makes whole numbers of 16 weights: their high and low bytes, four times
// each, for the four values that a row has in a register.
#define NUMBERS8(i, z, over) \
	VFMADD213PS Z27, Z28, z; \
	VPSHUFB Z25, z, Z18; \
	VPSHUFB Z24, z, Z19; \
	VMOVDQU64 Z18, (128*i)(BX); \
	VMOVDQU64 Z19, (128*i+64)(BX)
// NUMBERS4 carries over what is lost: VREDUCEPS takes the nearest whole number off.
#define NUMBERS4(i, z, over) \
	VMULPS Z28, z, z; \
	VADDPS over, z, z; \
	VADDPS Z27, z, Z18; \
	VREDUCEPS $0, z, over; \
	VPSHUFB Z24, Z18, Z18; \
	VMOVDQU64 Z18, (64*i)(BX)

#define WEIGHTS \
	MOVQ a+0(FP), DI; \
	MOVQ slabCall_p(DI), AX; \
	MOVQ slabCall_d(DI), R9; \
	MOVQ slabCall_m(DI), R10; \
	MOVQ slabCall_x(DI), BX; \
	MOVQ slabCall_nq(DI), CX; \
	MOVQ slabCall_fetch(DI), R14; \
	VBROADCASTI32X4 lowest<>(SB), Z24; \
	VBROADCASTI32X4 second<>(SB), Z25

#define NEXT \
	CMPQ R14, slabCall_end(DI); \
	JAE fetched; \
	PREFETCHT1 (R14); \
	PREFETCHT1 64(R14); \
	PREFETCHT1 128(R14); \
	PREFETCHT1 192(R14); \
	ADDQ $256, R14; \
fetched: \
	ADDQ slabCall_ldp(DI), AX; \
	ADDQ $slabWeights__size, BX; \
	DECQ CX; \
	JNZ query; \
	MOVQ R14, slabCall_fetch(DI); \
	VZEROUPPER; \
	RET

// func weights8x512(a *slabCall)
TEXT ·weights8x512(SB), NOSPLIT, $0-8
	WEIGHTS
	VBROADCASTSS whole<>+32(SB), Z27
query:
	VPXORD Z16, Z16, Z16
	VPXORD Z17, Z17, Z17
	SIXTEEN(PRODUCT, Z16, Z17, Z16, Z17)
	VPMAXUD Z17, Z16, Z31
	LARGEST(VPMAXUD)
	SCALE(24)
	VMOVSS X31, slabWeights_scale(BX)
	SIXTEEN(NUMBERS8, Z16, Z16, Z16, Z16)
	NEXT

// func weights4x512(a *slabCall)
TEXT ·weights4x512(SB), NOSPLIT, $0-8
	WEIGHTS
	VBROADCASTSS whole<>+36(SB), Z27
query:
	VPXORD Z16, Z16, Z16
	VPXORD Z17, Z17, Z17
	VPXORD Z30, Z30, Z30
	SIXTEEN(PRODUCT_M, Z16, Z17, Z16, Z17)
	VPMAXUD Z17, Z16, Z31
	LARGEST(VPMAXUD)
	SCALE(28)
	VMOVSS X31, slabWeights_scale(BX)
	TOTAL(VADDPS)
	VMOVSS X30, slabWeights_offset(BX)
	VPXORD Z16, Z16, Z16
	VPXORD Z17, Z17, Z17
	VPXORD Z20, Z20, Z20
	VPXORD Z21, Z21, Z21
	SIXTEEN(NUMBERS4, Z16, Z17, Z20, Z21)
	NEXT

// Registers of MIX: SI values of the first slab, AX those of a slab, R13 weights,
// R8 and R12 results of the first and the fourth query. Z0-Z3 take 16 columns, a
// quarter of a register four rows, Z6 and Z7 are constants.
#define ROWS8 \
	VMOVDQU64 (AX), Z0; \
	VMOVDQU64 64(AX), Z1; \
	VMOVDQU64 128(AX), Z2; \
	VMOVDQU64 192(AX), Z3; \
	VPSHUFB Z6, Z0, Z0; \
	VPSHUFB Z6, Z1, Z1; \
	VPSHUFB Z6, Z2, Z2; \
	VPSHUFB Z6, Z3, Z3
#define ROWS4 \
	VMOVDQU64 (AX), Z0; \
	VMOVDQU64 64(AX), Z2; \
	VPSHUFB Z6, Z0, Z0; \
	VPSHUFB Z6, Z2, Z2; \
	VPSRLW $4, Z0, Z1; \
	VPSRLW $4, Z2, Z3; \
	VPANDD Z7, Z0, Z0; \
	VPANDD Z7, Z1, Z1; \
	VPANDD Z7, Z2, Z2; \
	VPANDD Z7, Z3, Z3

#define ZERO(a, b, c, d) \
	VPXORD a, a, a; \
	VPXORD b, b, b; \
	VPXORD c, c, c; \
	VPXORD d, d, d
#define TIMES(at, z, a, b, c, d) \
	VMOVDQU64 (at)(R13), z; \
	VPDPBUSD Z0, z, a; \
	VPDPBUSD Z1, z, b; \
	VPDPBUSD Z2, z, c; \
	VPDPBUSD Z3, z, d

// JOIN adds up the quarters: 16 columns to Z1.
#define JOIN(a, b, c, d) \
	VSHUFI32X4 $0x44, b, a, Z0; \
	VSHUFI32X4 $0xee, b, a, Z1; \
	VSHUFI32X4 $0x44, d, c, Z2; \
	VSHUFI32X4 $0xee, d, c, Z3; \
	VPADDD Z1, Z0, Z0; \
	VPADDD Z3, Z2, Z2; \
	VSHUFI32X4 $0x88, Z2, Z0, Z1; \
	VSHUFI32X4 $0xdd, Z2, Z0, Z3; \
	VPADDD Z3, Z1, Z1; \
	VCVTDQ2PS Z1, Z1
#define HIGH(h, l) \
	VPSLLD $8, h, h; \
	VPADDD l, h, h
#define END8(at, mem, h0, h1, h2, h3, l0, l1, l2, l3) \
	HIGH(h0, l0); \
	HIGH(h1, l1); \
	HIGH(h2, l2); \
	HIGH(h3, l3); \
	JOIN(h0, h1, h2, h3); \
	VMULPS.BCST (at+slabWeights_scale)(BX), Z1, Z1; \
	VADDPS mem, Z1, Z1; \
	VMOVUPS Z1, mem
#define END4(at, mem, a, b, c, d) \
	JOIN(a, b, c, d); \
	VMULPS.BCST (at+slabWeights_scale)(BX), Z1, Z1; \
	VADDPS.BCST (at+slabWeights_offset)(BX), Z1, Z1; \
	VADDPS mem, Z1, Z1; \
	VMOVUPS Z1, mem

// HEAD and VALUES are how many bytes scales and values of a group take, as shifts.
#define MIX(HEAD, VALUES, WEIGHT, COLUMNS, ZERO, ROWS, TIMES, END) \
	MOVQ a+0(FP), DI; \
	MOVQ slabCall_groups(DI), SI; \
	SHLQ $HEAD, SI; \
	MOVQ slabCall_group(DI), AX; \
	SHLQ $VALUES, AX; \
	ADDQ AX, SI; \
	ADDQ slabCall_slabs(DI), SI; \
	MOVQ slabCall_size(DI), R10; \
	MOVQ slabCall_x(DI), BX; \
	MOVQ slabCall_dst(DI), R8; \
	MOVQ slabCall_ldd(DI), R9; \
	LEAQ (R9)(R9*2), R12; \
	ADDQ R8, R12; \
	MOVQ slabCall_fetch(DI), R14; \
	MOVQ slabCall_columns(DI), R11; \
	VBROADCASTI32X4 turn<>(SB), Z6; \
	VPBROADCASTD whole<>+40(SB), Z7; \
columns: \
	ZERO; \
	MOVQ SI, AX; \
	MOVQ BX, R13; \
	MOVQ slabCall_count(DI), CX; \
slab: \
	ROWS; \
	CMPQ R14, slabCall_end(DI); \
	JAE fetched; \
	MOVQ slabCall_lines(DI), R15; \
	MOVQ R14, DX; \
fetch: \
	PREFETCHT1 (DX); \
	ADDQ $64, DX; \
	DECQ R15; \
	JNZ fetch; \
	ADDQ slabCall_step(DI), R14; \
fetched: \
	TIMES; \
	ADDQ R10, AX; \
	ADDQ $WEIGHT, R13; \
	DECQ CX; \
	JNZ slab; \
	END; \
	ADDQ $COLUMNS, SI; \
	ADDQ $64, R8; \
	ADDQ $64, R12; \
	DECQ R11; \
	JNZ columns; \
	MOVQ R14, slabCall_fetch(DI); \
	VZEROUPPER; \
	RET

#define ZERO_1 ZERO(Z8, Z9, Z10, Z11)
#define TIMES4_1 TIMES(0*slabWeights__size, Z4, Z8, Z9, Z10, Z11)
#define END4_1 END4(0*slabWeights__size, (R8), Z8, Z9, Z10, Z11)
#define ZERO_2 ZERO_1; ZERO(Z12, Z13, Z14, Z15)
#define TIMES4_2 TIMES4_1; TIMES(1*slabWeights__size, Z5, Z12, Z13, Z14, Z15)
#define END4_2 END4_1; END4(1*slabWeights__size, (R8)(R9*1), Z12, Z13, Z14, Z15)
#define ZERO_3 ZERO_2; ZERO(Z16, Z17, Z18, Z19)
#define TIMES4_3 TIMES4_2; TIMES(2*slabWeights__size, Z4, Z16, Z17, Z18, Z19)
#define END4_3 END4_2; END4(2*slabWeights__size, (R8)(R9*2), Z16, Z17, Z18, Z19)
#define ZERO_4 ZERO_3; ZERO(Z20, Z21, Z22, Z23)
#define TIMES4_4 TIMES4_3; TIMES(3*slabWeights__size, Z5, Z20, Z21, Z22, Z23)
#define END4_4 END4_3; END4(3*slabWeights__size, (R12), Z20, Z21, Z22, Z23)
#define ZERO_5 ZERO_4; ZERO(Z24, Z25, Z26, Z27)
#define TIMES4_5 TIMES4_4; TIMES(4*slabWeights__size, Z4, Z24, Z25, Z26, Z27)
#define END4_5 END4_4; END4(4*slabWeights__size, (R12)(R9*1), Z24, Z25, Z26, Z27)
#define ZERO_6 ZERO_5; ZERO(Z28, Z29, Z30, Z31)
#define TIMES4_6 TIMES4_5; TIMES(5*slabWeights__size, Z5, Z28, Z29, Z30, Z31)
#define END4_6 END4_5; END4(5*slabWeights__size, (R12)(R9*2), Z28, Z29, Z30, Z31)
#define TIMES8_1 TIMES(0*slabWeights__size, Z4, Z8, Z9, Z10, Z11); TIMES(0*slabWeights__size+64, Z5, Z12, Z13, Z14, Z15)
#define END8_1 END8(0*slabWeights__size, (R8), Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
#define TIMES8_2 TIMES8_1; TIMES(1*slabWeights__size, Z4, Z16, Z17, Z18, Z19); TIMES(1*slabWeights__size+64, Z5, Z20, Z21, Z22, Z23)
#define END8_2 END8_1; END8(1*slabWeights__size, (R8)(R9*1), Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)
#define TIMES8_3 TIMES8_2; TIMES(2*slabWeights__size, Z4, Z24, Z25, Z26, Z27); TIMES(2*slabWeights__size+64, Z5, Z28, Z29, Z30, Z31)
#define END8_3 END8_2; END8(2*slabWeights__size, (R8)(R9*2), Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31)

// func mix8by1x512(a *slabCall)
TEXT ·mix8by1x512(SB), NOSPLIT, $0-8
	MIX(5, 10, 128, 256, ZERO_2, ROWS8, TIMES8_1, END8_1)

// func mix8by2x512(a *slabCall)
TEXT ·mix8by2x512(SB), NOSPLIT, $0-8
	MIX(5, 10, 128, 256, ZERO_4, ROWS8, TIMES8_2, END8_2)

// func mix8by3x512(a *slabCall)
TEXT ·mix8by3x512(SB), NOSPLIT, $0-8
	MIX(5, 10, 128, 256, ZERO_6, ROWS8, TIMES8_3, END8_3)

// func mix4by1x512(a *slabCall)
TEXT ·mix4by1x512(SB), NOSPLIT, $0-8
	MIX(6, 9, 64, 128, ZERO_1, ROWS4, TIMES4_1, END4_1)

// func mix4by2x512(a *slabCall)
TEXT ·mix4by2x512(SB), NOSPLIT, $0-8
	MIX(6, 9, 64, 128, ZERO_2, ROWS4, TIMES4_2, END4_2)

// func mix4by3x512(a *slabCall)
TEXT ·mix4by3x512(SB), NOSPLIT, $0-8
	MIX(6, 9, 64, 128, ZERO_3, ROWS4, TIMES4_3, END4_3)

// func mix4by4x512(a *slabCall)
TEXT ·mix4by4x512(SB), NOSPLIT, $0-8
	MIX(6, 9, 64, 128, ZERO_4, ROWS4, TIMES4_4, END4_4)

// func mix4by6x512(a *slabCall)
TEXT ·mix4by6x512(SB), NOSPLIT, $0-8
	MIX(6, 9, 64, 128, ZERO_6, ROWS4, TIMES4_6, END4_6)
