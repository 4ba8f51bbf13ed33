#include "go_asm.h"
#include "textflag.h"
#include "turn_avx512_amd64.h"

// Attention over cached rows of 8 bits on AVX-512 with VNNI (attend8_amd64.go).
// Queries and weights are whole numbers of two signed bytes, 256*high + low, so
// that nothing is lost that a row of 8 bits could show. Cached bytes get 128
// added, because VPDPBUSD takes one factor without sign; what that adds is known
// beforehand, and sums begin with minus that.

// WHOLE brings 16 floats times Z28 to whole numbers: high bytes to hi, low ones to
// lo, the numbers added to Z30. Z27 is 128 in each lane.
#define WHOLE(z, x, hi, lo) \
	VMULPS Z28, z, z; \
	VCVTPS2DQ z, z; \
	VPADDD z, Z30, Z30; \
	VPADDD Z27, z, Z29; \
	VPSRAD $8, Z29, Z29; \
	VPMOVDB Z29, x; \
	VMOVDQU x, hi; \
	VPSLLD $8, Z29, Z29; \
	VPSUBD Z29, z, z; \
	VPMOVDB z, x; \
	VMOVDQU x, lo

// LARGEST spreads the largest lane of Z31 over all of it; Z28 and Z29 are used.
#define LARGEST \
	VSHUFF32X4 $0x4e, Z31, Z31, Z28; \
	VMAXPS Z28, Z31, Z31; \
	VSHUFF32X4 $0xb1, Z31, Z31, Z28; \
	VMAXPS Z28, Z31, Z31; \
	VPERMILPS $0x4e, Z31, Z28; \
	VMAXPS Z28, Z31, Z31; \
	VPERMILPS $0xb1, Z31, Z28; \
	VMAXPS Z28, Z31, Z31

// TOTAL adds the lanes of Z30 into its first; op is for floats or whole numbers.
#define TOTAL(op) \
	VEXTRACTI64X4 $1, Z30, Y29; \
	op Y29, Y30, Y30; \
	VEXTRACTI32X4 $1, Y30, X29; \
	op X29, X30, X30; \
	VPSHUFD $0x4e, X30, X29; \
	op X29, X30, X30; \
	VPSHUFD $0xb1, X30, X29; \
	op X29, X30, X30

// The largest number of two bytes is 127*256 + 127.
DATA whole<>+0(SB)/4, $32639.0
DATA whole<>+4(SB)/4, $0x7fffffff
DATA whole<>+8(SB)/4, $128
DATA whole<>+12(SB)/4, $0x80808080
DATA whole<>+16(SB)/4, $1.0e-34
GLOBL whole<>(SB), RODATA|NOPTR, $20

// SCALE makes of the largest number in Z31 the factor to whole numbers in Z28,
// which is 0 where that number is too small to divide by, and its inverse in X31.
#define SCALE \
	VMOVUPS Z31, Z28; \
	VBROADCASTSS whole<>+16(SB), Z29; \
	VCMPPS $30, Z29, Z31, K2; \
	VBROADCASTSS whole<>+0(SB), Z29; \
	VDIVPS.Z Z28, Z29, K2, Z28; \
	VDIVPS Z29, Z31, Z31

// func query8x512(a *query8)
// 64 floats of each of n queries, gap bytes apart, to n whole8.
TEXT ·query8x512(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ query8_x(DI), SI
	MOVQ query8_to(DI), BX
	MOVQ query8_n(DI), CX
	VPBROADCASTD whole<>+8(SB), Z27
	VPBROADCASTD whole<>+4(SB), Z26
one:
	VMOVUPS (SI), Z0
	VMOVUPS 64(SI), Z1
	VMOVUPS 128(SI), Z2
	VMOVUPS 192(SI), Z3
	VPANDD Z26, Z0, Z4
	VPANDD Z26, Z1, Z5
	VPANDD Z26, Z2, Z6
	VPANDD Z26, Z3, Z7
	VMAXPS Z5, Z4, Z31
	VMAXPS Z7, Z6, Z30
	VMAXPS Z30, Z31, Z31
	// A sum of nothings is zero, unless one of them is infinite or no number.
	VADDPS Z5, Z4, Z4
	VADDPS Z7, Z6, Z6
	VADDPS Z6, Z4, Z30
	VPXORD Z29, Z29, Z29
	VMULPS Z29, Z30, Z30
	TOTAL(VADDPS)
	VMOVAPS X30, X25
	LARGEST
	SCALE
	VADDSS X25, X31, X31
	VMOVSS X31, whole8_scale(BX)
	VPXORD Z30, Z30, Z30
	WHOLE(Z0, X4, whole8_high(BX), whole8_low(BX))
	WHOLE(Z1, X4, (whole8_high+16)(BX), (whole8_low+16)(BX))
	WHOLE(Z2, X4, (whole8_high+32)(BX), (whole8_low+32)(BX))
	WHOLE(Z3, X4, (whole8_high+48)(BX), (whole8_low+48)(BX))
	TOTAL(VPADDD)
	VPSLLD $7, X30, X30
	VPXORD X29, X29, X29
	VPSUBD X30, X29, X30
	VMOVD X30, whole8_less(BX)
	ADDQ query8_gap(DI), SI
	ADDQ $whole8__size, BX
	DECQ CX
	JNZ one
	VZEROUPPER
	RET

// ROWS4 loads 64 bytes of four rows.
#define ROWS4(a, b, c, d) \
	VMOVDQU64 2(AX), a; \
	VMOVDQU64 2(AX)(R10*1), b; \
	VMOVDQU64 2(AX)(R10*2), c; \
	VMOVDQU64 2(AX)(R11*1), d

// FOUR multiplies four weights of each of 16 keys with those of a query.
#define FOUR(j, z, hi, lo) \
	VPDPBUSD.BCST (whole8_high+4*j)(BX), z, hi; \
	VPDPBUSD.BCST (whole8_low+4*j)(BX), z, lo

// func scores8x512(a *attend8)
// for i := range nq { for r := range count { dst[i*ldd+r] = query i times row r } }
// count is a multiple of 16.
TEXT ·scores8x512(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ attend8_rows(DI), SI
	MOVQ attend8_count(DI), DX
	MOVQ attend8_stride(DI), R10
	LEAQ (R10)(R10*2), R11
	MOVQ attend8_dst(DI), R8
keys:
	XORL R12, R12 // group
	MOVQ attend8_x(DI), BX
group:
	IMUL3Q $66, R12, R13
	ADDQ SI, R13
	MOVQ R13, AX
	IMUL3Q $1056, R12, R15 // 16 rows are fetched in as many parts as there are groups
	ADDQ SI, R15
	ADDQ attend8_ahead(DI), R15
	ROWS4(Z0, Z1, Z2, Z3)
	LEAQ (AX)(R10*4), AX
	ROWS4(Z4, Z5, Z6, Z7)
	LEAQ (AX)(R10*4), AX
	ROWS4(Z8, Z9, Z10, Z11)
	LEAQ (AX)(R10*4), AX
	ROWS4(Z12, Z13, Z14, Z15)
	TURN
	VPBROADCASTD whole<>+12(SB), Z16
	VPXORD Z16, Z0, Z0
	VPXORD Z16, Z1, Z1
	VPXORD Z16, Z2, Z2
	VPXORD Z16, Z3, Z3
	VPXORD Z16, Z4, Z4
	VPXORD Z16, Z5, Z5
	VPXORD Z16, Z6, Z6
	VPXORD Z16, Z7, Z7
	VPXORD Z16, Z8, Z8
	VPXORD Z16, Z9, Z9
	VPXORD Z16, Z10, Z10
	VPXORD Z16, Z11, Z11
	VPXORD Z16, Z12, Z12
	VPXORD Z16, Z13, Z13
	VPXORD Z16, Z14, Z14
	VPXORD Z16, Z15, Z15
	VMOVDQU32 attend8_index(DI), Z25
	KXNORW K1, K1, K1
	VPGATHERDD (R13)(Z25*1), K1, Z24
	VPMOVDW Z24, Y24
	VCVTPH2PS Y24, Z24
	MOVQ R8, AX
	MOVQ attend8_nq(DI), CX
	XORL R9, R9
	TESTQ R12, R12
	JZ first
	DECQ R9
first:
	KMOVW R9, K2 // all but in the first group: what is there already
query:
	MOVQ attend8_lines(DI), R14
fetch:
	PREFETCHT1 (R15)
	ADDQ $64, R15
	DECQ R14
	JNZ fetch
	VPBROADCASTD whole8_less(BX), Z16
	VPXORD Z17, Z17, Z17
	VPXORD Z18, Z18, Z18
	VPXORD Z19, Z19, Z19
	FOUR(0, Z0, Z17, Z16)
	FOUR(1, Z4, Z18, Z19)
	FOUR(2, Z8, Z17, Z16)
	FOUR(3, Z12, Z18, Z19)
	FOUR(4, Z1, Z17, Z16)
	FOUR(5, Z5, Z18, Z19)
	FOUR(6, Z9, Z17, Z16)
	FOUR(7, Z13, Z18, Z19)
	FOUR(8, Z2, Z17, Z16)
	FOUR(9, Z6, Z18, Z19)
	FOUR(10, Z10, Z17, Z16)
	FOUR(11, Z14, Z18, Z19)
	FOUR(12, Z3, Z17, Z16)
	FOUR(13, Z7, Z18, Z19)
	FOUR(14, Z11, Z17, Z16)
	FOUR(15, Z15, Z18, Z19)
	VPADDD Z18, Z17, Z17
	VPADDD Z19, Z16, Z16
	VPSLLD $8, Z17, Z17
	VPADDD Z17, Z16, Z16
	VCVTDQ2PS Z16, Z16
	VMULPS.BCST whole8_scale(BX), Z24, Z20
	VMOVUPS.Z (AX), K2, Z21
	VFMADD231PS Z16, Z20, Z21
	VMOVUPS Z21, (AX)
	ADDQ attend8_ldd(DI), AX
	ADDQ $whole8__size, BX
	DECQ CX
	JNZ query
	INCQ R12
	CMPQ R12, attend8_groups(DI)
	JB group
	ADDQ $64, R8
	MOVQ R10, AX
	SHLQ $4, AX
	ADDQ AX, SI
	SUBQ $16, DX
	JNZ keys
	VZEROUPPER
	RET

// MASK makes K1 of the next rows, up to 16, of CX that are left.
#define MASK \
	MOVQ $16, R13; \
	CMPQ CX, R13; \
	CMOVQLT CX, R13; \
	MOVQ $-1, R12; \
	BZHIQ R13, R12, R12; \
	KMOVW R12, K1

// func weights8x512(a *attend8)
// Weights of count rows times the scales of one group of theirs, for nq queries,
// to whole numbers: rows8 has room for 256 of them. Weights are floats at x, ldx
// bytes apart; rows past count get weights of zero up to the next 16.
TEXT ·weights8x512(SB), NOSPLIT, $0-8
	MOVQ a+0(FP), DI
	MOVQ attend8_rows(DI), SI
	MOVQ attend8_stride(DI), R10
	SHLQ $4, R10
	LEAQ attend8_scales(DI), R9
	MOVQ attend8_count(DI), CX
	VMOVDQU32 attend8_index(DI), Z25
	VPBROADCASTD whole<>+8(SB), Z27
	VPBROADCASTD whole<>+4(SB), Z26
scales:
	MASK
	VPXORD Z24, Z24, Z24
	KMOVW K1, K2
	VPGATHERDD (SI)(Z25*1), K2, Z24
	VPMOVDW Z24, Y24
	VCVTPH2PS Y24, Z24
	VMOVUPS Z24, (R9)
	ADDQ $64, R9
	ADDQ R10, SI
	SUBQ $16, CX
	JG scales
	MOVQ attend8_x(DI), R8
	MOVQ attend8_weights(DI), BX
	MOVQ attend8_nq(DI), DX
query:
	VPXORD Z31, Z31, Z31
	VPXORD Z30, Z30, Z30
	MOVQ R8, AX
	LEAQ attend8_scales(DI), R9
	MOVQ attend8_count(DI), CX
most:
	MASK
	VMOVUPS.Z (AX), K1, Z0
	VMULPS (R9), Z0, Z0
	VPANDD Z26, Z0, Z0
	VMAXPS Z0, Z31, Z31
	VADDPS Z0, Z30, Z30
	ADDQ $64, AX
	ADDQ $64, R9
	SUBQ $16, CX
	JG most
	VPXORD Z29, Z29, Z29
	VMULPS Z29, Z30, Z30
	TOTAL(VADDPS)
	VMOVAPS X30, X22
	LARGEST
	SCALE
	VADDSS X22, X31, X31
	VMOVSS X31, rows8_scale(BX)
	VPXORD Z30, Z30, Z30
	MOVQ R8, AX
	LEAQ attend8_scales(DI), R9
	LEAQ rows8_high(BX), R11
	MOVQ attend8_count(DI), CX
whole:
	MASK
	VMOVUPS.Z (AX), K1, Z0
	VMULPS (R9), Z0, Z0
	WHOLE(Z0, X4, (R11), (rows8_low-rows8_high)(R11))
	ADDQ $64, AX
	ADDQ $64, R9
	ADDQ $16, R11
	SUBQ $16, CX
	JG whole
	TOTAL(VPADDD)
	VPSLLD $7, X30, X30
	VPXORD X29, X29, X29
	VPSUBD X30, X29, X30
	VMOVD X30, rows8_less(BX)
	ADDQ attend8_ldx(DI), R8
	ADDQ $rows8__size, BX
	DECQ DX
	JNZ query
	VZEROUPPER
	RET

// WEAVE lays 64 bytes of four rows side by side, 128 added: the fours of columns
// 16L+4i come to lane L of Zi. Z31 is 128 in each byte.
#define WEAVE4 \
	VMOVDQU64 2(AX), Z0; \
	VMOVDQU64 2(AX)(R10*1), Z1; \
	VMOVDQU64 2(AX)(R12*1), Z2; \
	VMOVDQU64 2(AX)(R13*1), Z3; \
	VPUNPCKLBW Z1, Z0, Z4; \
	VPUNPCKHBW Z1, Z0, Z5; \
	VPUNPCKLBW Z3, Z2, Z6; \
	VPUNPCKHBW Z3, Z2, Z7; \
	VPUNPCKLWD Z6, Z4, Z0; \
	VPUNPCKHWD Z6, Z4, Z1; \
	VPUNPCKLWD Z7, Z5, Z2; \
	VPUNPCKHWD Z7, Z5, Z3; \
	VPXORD Z31, Z0, Z0; \
	VPXORD Z31, Z1, Z1; \
	VPXORD Z31, Z2, Z2; \
	VPXORD Z31, Z3, Z3

// TIMES multiplies them with the weights of a query.
#define TIMES(at, h0, h1, h2, h3, l0, l1, l2, l3) \
	VPBROADCASTD (at+rows8_high)(BX), Z4; \
	VPBROADCASTD (at+rows8_low)(BX), Z5; \
	VPDPBUSD Z4, Z0, h0; \
	VPDPBUSD Z4, Z1, h1; \
	VPDPBUSD Z4, Z2, h2; \
	VPDPBUSD Z4, Z3, h3; \
	VPDPBUSD Z5, Z0, l0; \
	VPDPBUSD Z5, Z1, l1; \
	VPDPBUSD Z5, Z2, l2; \
	VPDPBUSD Z5, Z3, l3
#define BEGIN(at, h0, h1, h2, h3, l0, l1, l2, l3) \
	VPXORD h0, h0, h0; \
	VPXORD h1, h1, h1; \
	VPXORD h2, h2, h2; \
	VPXORD h3, h3, h3; \
	VPBROADCASTD (at+rows8_less)(BX), l0; \
	VMOVDQA64 l0, l1; \
	VMOVDQA64 l0, l2; \
	VMOVDQA64 l0, l3

// END joins high and low sums, brings the columns in order and adds them, times
// the scale, to 64 floats.
#define END(at, mem0, mem1, mem2, mem3, h0, h1, h2, h3, l0, l1, l2, l3) \
	VPSLLD $8, h0, h0; \
	VPSLLD $8, h1, h1; \
	VPSLLD $8, h2, h2; \
	VPSLLD $8, h3, h3; \
	VPADDD h0, l0, l0; \
	VPADDD h1, l1, l1; \
	VPADDD h2, l2, l2; \
	VPADDD h3, l3, l3; \
	VSHUFI32X4 $0x88, l1, l0, h0; \
	VSHUFI32X4 $0xdd, l1, l0, h1; \
	VSHUFI32X4 $0x88, l3, l2, h2; \
	VSHUFI32X4 $0xdd, l3, l2, h3; \
	VSHUFI32X4 $0x88, h2, h0, l0; \
	VSHUFI32X4 $0x88, h3, h1, l1; \
	VSHUFI32X4 $0xdd, h2, h0, l2; \
	VSHUFI32X4 $0xdd, h3, h1, l3; \
	VBROADCASTSS (at+rows8_scale)(BX), h0; \
	VCVTDQ2PS l0, l0; \
	VCVTDQ2PS l1, l1; \
	VCVTDQ2PS l2, l2; \
	VCVTDQ2PS l3, l3; \
	VFMADD213PS mem0, h0, l0; \
	VFMADD213PS mem1, h0, l1; \
	VFMADD213PS mem2, h0, l2; \
	VFMADD213PS mem3, h0, l3; \
	VMOVUPS l0, mem0; \
	VMOVUPS l1, mem1; \
	VMOVUPS l2, mem2; \
	VMOVUPS l3, mem3

#define BEGIN_1 BEGIN(0, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
#define BEGIN_2 BEGIN_1; BEGIN(rows8__size, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)
#define TIMES_1 TIMES(0, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
#define TIMES_2 TIMES_1; TIMES(rows8__size, Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)
#define END_1 END(0, (R8), 64(R8), 128(R8), 192(R8), Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15)
#define END_2 END_1; END(rows8__size, (R8)(R9*1), 64(R8)(R9*1), 128(R8)(R9*1), 192(R8)(R9*1), Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23)

// for i := range N { dst[i*ldd:][:64] += sum over rows of weight times 64 bytes }
// Weights are those of weights8x512; the last four rows may be fewer.
#define MIX8(BEGIN, TIMES, END) \
	MOVQ a+0(FP), DI; \
	MOVQ attend8_rows(DI), AX; \
	MOVQ attend8_fetch(DI), R14; \
	MOVQ attend8_lines(DI), R11; \
	MOVQ attend8_count(DI), CX; \
	MOVQ attend8_stride(DI), R10; \
	LEAQ (R10)(R10*1), R12; \
	LEAQ (R10)(R10*2), R13; \
	MOVQ attend8_weights(DI), BX; \
	MOVQ attend8_dst(DI), R8; \
	MOVQ attend8_ldd(DI), R9; \
	VPBROADCASTD whole<>+12(SB), Z31; \
	BEGIN; \
four: \
	CMPQ CX, $4; \
	JGE all; \
	XORL R13, R13; \
	CMPQ CX, $3; \
	JGE all; \
	XORL R12, R12; \
	CMPQ CX, $2; \
	JGE all; \
	XORL R10, R10; \
all: \
	WEAVE4; \
	MOVQ R11, R15; \
fetch: \
	PREFETCHT1 (R14); \
	ADDQ $64, R14; \
	DECQ R15; \
	JNZ fetch; \
	TIMES; \
	LEAQ (AX)(R10*4), AX; \
	ADDQ $4, BX; \
	SUBQ $4, CX; \
	JG four; \
	MOVQ attend8_weights(DI), BX; \
	END; \
	VZEROUPPER; \
	RET

// func mix8by1x512(a *attend8)
TEXT ·mix8by1x512(SB), NOSPLIT, $0-8
	MIX8(BEGIN_1, TIMES_1, END_1)

// func mix8by2x512(a *attend8)
TEXT ·mix8by2x512(SB), NOSPLIT, $0-8
	MIX8(BEGIN_2, TIMES_2, END_2)
