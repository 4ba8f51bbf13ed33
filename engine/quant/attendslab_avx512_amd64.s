#include "go_asm.h"
#include "textflag.h"
#include "attendslab_avx512_amd64.h"

// Attention over slabs of cached rows on AVX-512 with VNNI (attendslab.go).

// TWO makes words of 32 floats times Z28, their numbers added to Z30.
#define TWO(a, b) \
	VMULPS Z28, a, a; \
	VMULPS Z28, b, b; \
	VCVTPS2DQ a, a; \
	VCVTPS2DQ b, b; \
	VPADDD a, Z30, Z30; \
	VPADDD b, Z30, Z30; \
	VPACKSSDW b, a, a

// PARTS takes words apart: the high byte stays, the low one goes to lo. Z27 is 128
// in each word.
#define PARTS(z, lo) \
	VPADDW Z27, z, lo; \
	VPSRAW $8, lo, Z29; \
	VPSLLW $8, Z29, lo; \
	VPSUBW lo, z, lo; \
	VMOVDQA64 Z29, z

// KEEP stores the words of Z0 and Z2, whose fours lie as packing left them, as bytes.
#define KEEP(a, b, mem) \
	VPACKSSWB b, a, a; \
	VPERMD a, Z26, a; \
	VMOVDQU64 a, mem

#define WHOLE4 \
	PARTS(Z0, Z4); \
	PARTS(Z2, Z5); \
	KEEP(Z0, Z2, slabQuery_high(BX)); \
	KEEP(Z4, Z5, slabQuery_low(BX))
#define BYTES4 KEEP(Z0, Z2, slabQuery_high(BX))

DATA packed<>+0(SB)/8, $0x0000000400000000
DATA packed<>+8(SB)/8, $0x0000000c00000008
DATA packed<>+16(SB)/8, $0x0000000500000001
DATA packed<>+24(SB)/8, $0x0000000d00000009
DATA packed<>+32(SB)/8, $0x0000000600000002
DATA packed<>+40(SB)/8, $0x0000000e0000000a
DATA packed<>+48(SB)/8, $0x0000000700000003
DATA packed<>+56(SB)/8, $0x0000000f0000000b
GLOBL packed<>(SB), RODATA|NOPTR, $64

#define QUERIES(most, NUMBERS) \
	MOVQ a+0(FP), DI; \
	MOVQ slabCall_p(DI), SI; \
	MOVQ slabCall_x(DI), BX; \
	MOVQ slabCall_nq(DI), CX; \
	VPBROADCASTD whole<>+8(SB), Z27; \
	VPBROADCASTD whole<>+4(SB), Z25; \
	VMOVDQU64 packed<>(SB), Z26; \
one: \
	VMOVUPS (SI), Z0; \
	VMOVUPS 64(SI), Z1; \
	VMOVUPS 128(SI), Z2; \
	VMOVUPS 192(SI), Z3; \
	VPANDD Z25, Z0, Z4; \
	VPANDD Z25, Z1, Z5; \
	VPANDD Z25, Z2, Z6; \
	VPANDD Z25, Z3, Z7; \
	VPMAXUD Z5, Z4, Z31; \
	VPMAXUD Z7, Z6, Z30; \
	VPMAXUD Z30, Z31, Z31; \
	LARGEST(VPMAXUD); \
	SCALE(most); \
	VMOVSS X31, slabQuery_scale(BX); \
	VPXORD Z30, Z30, Z30; \
	TWO(Z0, Z1); \
	TWO(Z2, Z3); \
	NUMBERS; \
	TOTAL(VPADDD); \
	VCVTDQ2PS X30, X29; \
	VMULSS X31, X29, X29; \
	VMOVSS X29, slabQuery_offset(BX); \
	VPSLLD $7, X30, X30; \
	VPXORD X29, X29, X29; \
	VPSUBD X30, X29, X30; \
	VMOVD X30, slabQuery_less(BX); \
	ADDQ slabCall_ldp(DI), SI; \
	ADDQ $slabQuery__size, BX; \
	DECQ CX; \
	JNZ one; \
	VZEROUPPER; \
	RET

// func query8x512(a *slabCall)
TEXT ·query8x512(SB), NOSPLIT, $0-8
	QUERIES(0, WHOLE4)

// func query4x512(a *slabCall)
TEXT ·query4x512(SB), NOSPLIT, $0-8
	QUERIES(20, BYTES4)

// FOUR multiplies four values of each of 16 rows with those of a query.
#define FOUR(j, z, hi, lo) \
	VPDPBUSD.BCST (slabQuery_high+4*j)(BX), z, hi; \
	VPDPBUSD.BCST (slabQuery_low+4*j)(BX), z, lo
#define FOUR_4(j, z, sum) VPDPBUSD.BCST (slabQuery_high+4*j)(BX), z, sum

// FETCH fetches rows that are read next into the second cache, and those of the
// next group into the first.
#define FETCH \
	MOVQ slabCall_lines(DI), R14; \
	MOVQ R15, CX; \
fetch: \
	PREFETCHT1 (CX); \
	PREFETCHT0 (R9); \
	ADDQ $64, CX; \
	ADDQ $64, R9; \
	DECQ R14; \
	JNZ fetch; \
	ADDQ slabCall_step(DI), R15

// SCORES is the walk over slabs, groups and queries. LOAD brings 64 values of 16
// rows as bytes without sign to Z0-Z15, four by four, and scales to Z24; TIMES
// leaves the scores of a query for them in Z20. VALUES is how many bytes they are.
#define SCORES(VALUES, LOAD, TIMES) \
	MOVQ a+0(FP), DI; \
	MOVQ slabCall_slabs(DI), SI; \
	MOVQ slabCall_groups(DI), R10; \
	MOVQ slabCall_dst(DI), R8; \
	MOVQ slabCall_fetch(DI), R11; \
	MOVQ slabCall_ldd(DI), R13; \
	VPBROADCASTD whole<>+12(SB), Z30; \
	VPBROADCASTD whole<>+40(SB), Z31; \
slab: \
	XORL R12, R12; \
	MOVQ slabCall_x(DI), BX; \
	MOVQ R11, R15; \
	KXORW K2, K2, K2; \
group: \
	LOAD; \
	ADDQ $VALUES, R9; \
	MOVQ R8, AX; \
	MOVQ slabCall_nq(DI), DX; \
query: \
	FETCH; \
	TIMES; \
	VMOVUPS.Z (AX), K2, Z21; \
	VADDPS Z20, Z21, Z21; \
	VMOVUPS Z21, (AX); \
	ADDQ R13, AX; \
	ADDQ $slabQuery__size, BX; \
	DECQ DX; \
	JNZ query; \
	KXNORW K2, K2, K2; \
	INCQ R12; \
	CMPQ R12, R10; \
	JB group; \
	ADDQ $64, R8; \
	ADDQ slabCall_size(DI), SI; \
	ADDQ slabCall_size(DI), R11; \
	DECQ slabCall_count(DI); \
	JNZ slab; \
	VZEROUPPER; \
	RET

#define LOAD8 \
	MOVQ R10, R9; \
	SHLQ $5, R9; \
	MOVQ R12, R14; \
	SHLQ $10, R14; \
	ADDQ R14, R9; \
	ADDQ SI, R9; \
	MOVQ R12, R14; \
	SHLQ $5, R14; \
	VCVTPH2PS (SI)(R14*1), Z24; \
	VPXORD 0(R9), Z30, Z0; \
	VPXORD 64(R9), Z30, Z1; \
	VPXORD 128(R9), Z30, Z2; \
	VPXORD 192(R9), Z30, Z3; \
	VPXORD 256(R9), Z30, Z4; \
	VPXORD 320(R9), Z30, Z5; \
	VPXORD 384(R9), Z30, Z6; \
	VPXORD 448(R9), Z30, Z7; \
	VPXORD 512(R9), Z30, Z8; \
	VPXORD 576(R9), Z30, Z9; \
	VPXORD 640(R9), Z30, Z10; \
	VPXORD 704(R9), Z30, Z11; \
	VPXORD 768(R9), Z30, Z12; \
	VPXORD 832(R9), Z30, Z13; \
	VPXORD 896(R9), Z30, Z14; \
	VPXORD 960(R9), Z30, Z15

#define TIMES8 \
	VPBROADCASTD slabQuery_less(BX), Z16; \
	VPXORD Z17, Z17, Z17; \
	VPXORD Z18, Z18, Z18; \
	VPXORD Z19, Z19, Z19; \
	FOUR(0, Z0, Z17, Z16); \
	FOUR(1, Z1, Z18, Z19); \
	FOUR(2, Z2, Z17, Z16); \
	FOUR(3, Z3, Z18, Z19); \
	FOUR(4, Z4, Z17, Z16); \
	FOUR(5, Z5, Z18, Z19); \
	FOUR(6, Z6, Z17, Z16); \
	FOUR(7, Z7, Z18, Z19); \
	FOUR(8, Z8, Z17, Z16); \
	FOUR(9, Z9, Z18, Z19); \
	FOUR(10, Z10, Z17, Z16); \
	FOUR(11, Z11, Z18, Z19); \
	FOUR(12, Z12, Z17, Z16); \
	FOUR(13, Z13, Z18, Z19); \
	FOUR(14, Z14, Z17, Z16); \
	FOUR(15, Z15, Z18, Z19); \
	VPADDD Z18, Z17, Z17; \
	VPADDD Z19, Z16, Z16; \
	VPSLLD $8, Z17, Z17; \
	VPADDD Z17, Z16, Z16; \
	VCVTDQ2PS Z16, Z16; \
	VMULPS.BCST slabQuery_scale(BX), Z24, Z20; \
	VMULPS Z16, Z20, Z20

#define LOAD4 \
	MOVQ R10, R9; \
	SHLQ $6, R9; \
	MOVQ R12, R14; \
	SHLQ $9, R14; \
	ADDQ R14, R9; \
	ADDQ SI, R9; \
	MOVQ R12, R14; \
	SHLQ $5, R14; \
	VCVTPH2PS (SI)(R14*1), Z24; \
	ADDQ SI, R14; \
	MOVQ R10, AX; \
	SHLQ $5, AX; \
	VCVTPH2PS (R14)(AX*1), Z25; \
	VMOVDQU64 0(R9), Z0; \
	VPSRLW $4, Z0, Z1; \
	VPANDD Z31, Z0, Z0; \
	VPANDD Z31, Z1, Z1; \
	VMOVDQU64 64(R9), Z2; \
	VPSRLW $4, Z2, Z3; \
	VPANDD Z31, Z2, Z2; \
	VPANDD Z31, Z3, Z3; \
	VMOVDQU64 128(R9), Z4; \
	VPSRLW $4, Z4, Z5; \
	VPANDD Z31, Z4, Z4; \
	VPANDD Z31, Z5, Z5; \
	VMOVDQU64 192(R9), Z6; \
	VPSRLW $4, Z6, Z7; \
	VPANDD Z31, Z6, Z6; \
	VPANDD Z31, Z7, Z7; \
	VMOVDQU64 256(R9), Z8; \
	VPSRLW $4, Z8, Z9; \
	VPANDD Z31, Z8, Z8; \
	VPANDD Z31, Z9, Z9; \
	VMOVDQU64 320(R9), Z10; \
	VPSRLW $4, Z10, Z11; \
	VPANDD Z31, Z10, Z10; \
	VPANDD Z31, Z11, Z11; \
	VMOVDQU64 384(R9), Z12; \
	VPSRLW $4, Z12, Z13; \
	VPANDD Z31, Z12, Z12; \
	VPANDD Z31, Z13, Z13; \
	VMOVDQU64 448(R9), Z14; \
	VPSRLW $4, Z14, Z15; \
	VPANDD Z31, Z14, Z14; \
	VPANDD Z31, Z15, Z15

#define TIMES4 \
	VPXORD Z16, Z16, Z16; \
	VPXORD Z17, Z17, Z17; \
	VPXORD Z18, Z18, Z18; \
	VPXORD Z19, Z19, Z19; \
	FOUR_4(0, Z0, Z16); \
	FOUR_4(1, Z1, Z17); \
	FOUR_4(2, Z2, Z18); \
	FOUR_4(3, Z3, Z19); \
	FOUR_4(4, Z4, Z16); \
	FOUR_4(5, Z5, Z17); \
	FOUR_4(6, Z6, Z18); \
	FOUR_4(7, Z7, Z19); \
	FOUR_4(8, Z8, Z16); \
	FOUR_4(9, Z9, Z17); \
	FOUR_4(10, Z10, Z18); \
	FOUR_4(11, Z11, Z19); \
	FOUR_4(12, Z12, Z16); \
	FOUR_4(13, Z13, Z17); \
	FOUR_4(14, Z14, Z18); \
	FOUR_4(15, Z15, Z19); \
	VPADDD Z18, Z17, Z17; \
	VPADDD Z19, Z16, Z16; \
	VPADDD Z17, Z16, Z16; \
	VCVTDQ2PS Z16, Z16; \
	VMULPS.BCST slabQuery_scale(BX), Z24, Z20; \
	VMULPS.BCST slabQuery_offset(BX), Z25, Z21; \
	VMULPS Z16, Z20, Z20; \
	VADDPS Z21, Z20, Z20

// func scores8x512(a *slabCall)
TEXT ·scores8x512(SB), NOSPLIT, $0-8
	SCORES(1024, LOAD8, TIMES8)

// func scores4x512(a *slabCall)
TEXT ·scores4x512(SB), NOSPLIT, $0-8
	SCORES(512, LOAD4, TIMES4)
