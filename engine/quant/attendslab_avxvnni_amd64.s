#include "go_asm.h"
#include "textflag.h"
#include "avxvnni_amd64.h"
#include "attendslab_avx2_amd64.h"

// Attention over slabs of rows of 4 bits on AVX2 with VPDPBUSD.

#define TIMES(j, sum) \
	VPBROADCASTD (slabQuery_high+4*j)(BX), Y3; \
	VMOVDQU (32*j)(SP), Y2; \
	VNNI(3, 2, sum)
#define TIMES64 \
	VPXOR Y0, Y0, Y0; \
	VPXOR Y1, Y1, Y1; \
	TIMES(0, 0); \
	TIMES(1, 1); \
	TIMES(2, 0); \
	TIMES(3, 1); \
	TIMES(4, 0); \
	TIMES(5, 1); \
	TIMES(6, 0); \
	TIMES(7, 1); \
	TIMES(8, 0); \
	TIMES(9, 1); \
	TIMES(10, 0); \
	TIMES(11, 1); \
	TIMES(12, 0); \
	TIMES(13, 1); \
	TIMES(14, 0); \
	TIMES(15, 1); \
	VPADDD Y1, Y0, Y0

// func scores4xVNNI(a *slabCall)
TEXT ·scores4xVNNI(SB), 0, $512-8
	SCORES4(TIMES64)

#define WEIGH4(at, a, b) \
	VMOVDQU (at)(R13), Y4; \
	VMOVDQU (at+32)(R13), Y5; \
	VNNI(0, 4, a); \
	VNNI(2, 4, b); \
	VNNI(1, 5, a); \
	VNNI(3, 5, b)

#define ROWS4_1 NIBBLES; WEIGH4(0*slabWeights__size, 8, 9)
#define ROWS4_2 ROWS4_1; WEIGH4(1*slabWeights__size, 10, 11)
#define ROWS4_3 ROWS4_2; WEIGH4(2*slabWeights__size, 12, 13)

// func mix4by1xVNNI(a *slabCall)
TEXT ·mix4by1xVNNI(SB), NOSPLIT, $0-8
	BEGIN_MIX(6, 9)
	VPBROADCASTD slab256<>+64(SB), Y15
	WALK_MIX(64, 64, ZERO_1, ROWS4_1, END4_1)

// func mix4by2xVNNI(a *slabCall)
TEXT ·mix4by2xVNNI(SB), NOSPLIT, $0-8
	BEGIN_MIX(6, 9)
	VPBROADCASTD slab256<>+64(SB), Y15
	WALK_MIX(64, 64, ZERO_2, ROWS4_2, END4_2)

// func mix4by3xVNNI(a *slabCall)
TEXT ·mix4by3xVNNI(SB), NOSPLIT, $0-8
	BEGIN_MIX(6, 9)
	VPBROADCASTD slab256<>+64(SB), Y15
	WALK_MIX(64, 64, ZERO_3, ROWS4_3, END4_3)
