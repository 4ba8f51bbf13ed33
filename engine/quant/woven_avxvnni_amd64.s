#include "go_asm.h"
#include "textflag.h"
#include "frame_amd64.h"
#include "avx2_amd64.h"
#include "woven_avx2_amd64.h"
#include "avxvnni_amd64.h"

// The kernels of woven_avx2_amd64.s with VPDPBUSD.

// NNI multiplies weights without sign; with sign they are made 128 too large.
#define NNI_TIMES(j, sum) \
	VMOVDQU (record_woven+32*j)(AX), Y10; \
	VNNI(10, j, sum)
#define NNI \
	VPXOR X8, X8, X8; \
	VPXOR X9, X9, X9; \
	NNI_TIMES(0, 8); \
	NNI_TIMES(1, 9); \
	NNI_TIMES(2, 8); \
	NNI_TIMES(3, 9); \
	NNI_TIMES(4, 8); \
	NNI_TIMES(5, 9); \
	NNI_TIMES(6, 8); \
	NNI_TIMES(7, 9); \
	VMOVDQA Y8, Y0; \
	VMOVDQA Y9, Y1
#define NNI_S \
	VMOVDQU VC(consts256_flip), Y8; \
	VALL(VPXOR); \
	NNI

// func rowsW4_0xVNNI(p *gemv)
TEXT ·rowsW4_0xVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_0, NNI, VLESS(4), VCHAIN8, 144)

// func rowsW4_1xVNNI(p *gemv)
TEXT ·rowsW4_1xVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_1, NNI, VEXACT, VCHAIN8_OFFS, 160)

// func rowsW5_0xVNNI(p *gemv)
TEXT ·rowsW5_0xVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V5_0, NNI, VLESS(3), VCHAIN8, 176)

// func rowsW5_1xVNNI(p *gemv)
TEXT ·rowsW5_1xVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V5_1, NNI, VEXACT, VCHAIN8_OFFS, 192)

// func rowsW8_0xVNNI(p *gemv)
TEXT ·rowsW8_0xVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH5, V8_0, NNI_S, VLESS(0), VCHAIN8, 272)

// func rowsW2_KxVNNI(p *gemv)
TEXT ·rowsW2_KxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH2, V2_K, NNI, VEXACT, VCHAIN16_OFFS, 84)

// func rowsW3_KxVNNI(p *gemv)
TEXT ·rowsW3_KxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH2, V3_K, NNI, VLESS(5), VCHAIN16, 110)

// func rowsW4_KxVNNI(p *gemv)
TEXT ·rowsW4_KxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_K, NNI, VEXACT, VCHAIN8_OFFS, 144)

// func rowsW5_KxVNNI(p *gemv)
TEXT ·rowsW5_KxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V5_K, NNI, VEXACT, VCHAIN8_OFFS, 176)

// func rowsW6_KxVNNI(p *gemv)
TEXT ·rowsW6_KxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH4, V6_K, NNI, VLESS(2), VCHAIN16, 210)

// func rowsW4_NLxVNNI(p *gemv)
TEXT ·rowsW4_NLxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_NL, NNI_S, VLESS(0), VCHAIN8, 144)

// func rowsW4_XSxVNNI(p *gemv)
TEXT ·rowsW4_XSxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_XS, NNI_S, VLESS(0), VCHAIN8, 136)

// func rowsWMXxVNNI(p *gemv)
TEXT ·rowsWMXxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, VMX, NNI, VLESS(3), VCHAIN8, 136)

// func rowsW3SxVNNI(p *gemv)
TEXT ·rowsW3SxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V3S, NNI, VLESS(3), VCHAIN8, 136)

// func rowsW3XXSxVNNI(p *gemv)
TEXT ·rowsW3XXSxVNNI(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V3XXS, NNI, VLESS(1), VCHAIN8, 136)
