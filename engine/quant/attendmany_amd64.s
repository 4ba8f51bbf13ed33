#include "textflag.h"

// Three queries over cached rows of halves, or of floats: LOAD brings values of W
// bytes to floats (attendmany.go). Additions go in the order of the kernels for one
// query (attend_avx2_amd64.s), so that the results are theirs.

// SUMROW adds the lanes of four registers into the lanes of the first.
#define SUMROW(a, b, c, d, xa, xb) \
	VHADDPS b, a, a; \
	VHADDPS d, c, c; \
	VHADDPS c, a, a; \
	VEXTRACTF128 $1, a, xb; \
	VADDPS xb, xa, xa

// KEY multiplies one key with the three queries.
#define KEY(LOAD, mem, a, b, c) \
	LOAD mem, Y15; \
	VFMADD231PS Y12, Y15, a; \
	VFMADD231PS Y13, Y15, b; \
	VFMADD231PS Y14, Y15, c

// for i := range 3 { for r := range rows { dst[i*ldd+r] = sum q[i*n+c] * key r, value c } }
// rows is a multiple of 4, n of 8; stride and ldd are bytes.
#define SCORES3(LOAD, W) \
	MOVQ dst+0(FP), DI; \
	MOVQ q+8(FP), R8; \
	MOVQ k+16(FP), SI; \
	MOVQ rows+24(FP), DX; \
	MOVQ n+32(FP), R9; \
	MOVQ stride+40(FP), R10; \
	MOVQ ldd+48(FP), R12; \
	LEAQ (R10)(R10*2), R11; \
	LEAQ (R9*4), R13; \
	MOVQ ahead+56(FP), R15; \
fours: \
	VXORPS X0, X0, X0; \
	VXORPS X1, X1, X1; \
	VXORPS X2, X2, X2; \
	VXORPS X3, X3, X3; \
	VXORPS X4, X4, X4; \
	VXORPS X5, X5, X5; \
	VXORPS X6, X6, X6; \
	VXORPS X7, X7, X7; \
	VXORPS X8, X8, X8; \
	VXORPS X9, X9, X9; \
	VXORPS X10, X10, X10; \
	VXORPS X11, X11, X11; \
	MOVQ SI, AX; \
	MOVQ R8, BX; \
	MOVQ R9, CX; \
	LEAQ (SI)(R15*1), R14; \
columns: \
	PREFETCHT1 (R14); \
	PREFETCHT1 (R14)(R10*1); \
	PREFETCHT1 (R14)(R10*2); \
	PREFETCHT1 (R14)(R11*1); \
	ADDQ $(8*W), R14; \
	VMOVUPS (BX), Y12; \
	VMOVUPS (BX)(R13*1), Y13; \
	VMOVUPS (BX)(R13*2), Y14; \
	KEY(LOAD, (AX), Y0, Y4, Y8); \
	KEY(LOAD, (AX)(R10*1), Y1, Y5, Y9); \
	KEY(LOAD, (AX)(R10*2), Y2, Y6, Y10); \
	KEY(LOAD, (AX)(R11*1), Y3, Y7, Y11); \
	ADDQ $32, BX; \
	ADDQ $(8*W), AX; \
	SUBQ $8, CX; \
	JNZ columns; \
	SUMROW(Y0, Y1, Y2, Y3, X0, X1); \
	SUMROW(Y4, Y5, Y6, Y7, X4, X5); \
	SUMROW(Y8, Y9, Y10, Y11, X8, X9); \
	VMOVUPS X0, (DI); \
	VMOVUPS X4, (DI)(R12*1); \
	VMOVUPS X8, (DI)(R12*2); \
	ADDQ $16, DI; \
	LEAQ (SI)(R10*4), SI; \
	SUBQ $4, DX; \
	JNZ fours; \
	VZEROUPPER; \
	RET

// VALUE multiplies eight columns of one row with the three weights.
#define VALUE(LOAD, mem, a, b, c) \
	LOAD mem, Y15; \
	VFMADD231PS Y12, Y15, a; \
	VFMADD231PS Y13, Y15, b; \
	VFMADD231PS Y14, Y15, c

// for i := range 3 { for r := range rows { for c := range n { dst[i*ldd+c] += p[i*ldp+r] * row r, value c } } }
// n is a multiple of 32; stride, ldd and ldp are bytes.
#define MIX3(LOAD, W) \
	MOVQ dst+0(FP), DI; \
	MOVQ p+8(FP), R8; \
	MOVQ v+16(FP), SI; \
	MOVQ rows+24(FP), DX; \
	MOVQ n+32(FP), R9; \
	MOVQ stride+40(FP), R10; \
	MOVQ ldd+48(FP), R12; \
	MOVQ ldp+56(FP), R13; \
	MOVQ ahead+64(FP), R15; \
columns32: \
	VMOVUPS (DI), Y0; \
	VMOVUPS 32(DI), Y1; \
	VMOVUPS 64(DI), Y2; \
	VMOVUPS 96(DI), Y3; \
	VMOVUPS (DI)(R12*1), Y4; \
	VMOVUPS 32(DI)(R12*1), Y5; \
	VMOVUPS 64(DI)(R12*1), Y6; \
	VMOVUPS 96(DI)(R12*1), Y7; \
	VMOVUPS (DI)(R12*2), Y8; \
	VMOVUPS 32(DI)(R12*2), Y9; \
	VMOVUPS 64(DI)(R12*2), Y10; \
	VMOVUPS 96(DI)(R12*2), Y11; \
	MOVQ SI, AX; \
	MOVQ R8, BX; \
	MOVQ DX, CX; \
row: \
	VBROADCASTSS (BX), Y12; \
	VBROADCASTSS (BX)(R13*1), Y13; \
	VBROADCASTSS (BX)(R13*2), Y14; \
	VALUE(LOAD, (AX), Y0, Y4, Y8); \
	VALUE(LOAD, (8*W)(AX), Y1, Y5, Y9); \
	VALUE(LOAD, (16*W)(AX), Y2, Y6, Y10); \
	VALUE(LOAD, (24*W)(AX), Y3, Y7, Y11); \
	PREFETCHT1 (AX)(R15*1); \
	ADDQ R10, AX; \
	ADDQ $4, BX; \
	DECQ CX; \
	JNZ row; \
	VMOVUPS Y0, (DI); \
	VMOVUPS Y1, 32(DI); \
	VMOVUPS Y2, 64(DI); \
	VMOVUPS Y3, 96(DI); \
	VMOVUPS Y4, (DI)(R12*1); \
	VMOVUPS Y5, 32(DI)(R12*1); \
	VMOVUPS Y6, 64(DI)(R12*1); \
	VMOVUPS Y7, 96(DI)(R12*1); \
	VMOVUPS Y8, (DI)(R12*2); \
	VMOVUPS Y9, 32(DI)(R12*2); \
	VMOVUPS Y10, 64(DI)(R12*2); \
	VMOVUPS Y11, 96(DI)(R12*2); \
	ADDQ $128, DI; \
	ADDQ $(32*W), SI; \
	SUBQ $32, R9; \
	JNZ columns32; \
	VZEROUPPER; \
	RET

// func scoresF16by3x256(dst, q *float32, k unsafe.Pointer, rows, n, stride, ldd int, ahead uintptr)
TEXT ·scoresF16by3x256(SB), NOSPLIT, $0-64
	SCORES3(VCVTPH2PS, 2)

// func scoresF32by3x256(dst, q *float32, k unsafe.Pointer, rows, n, stride, ldd int, ahead uintptr)
TEXT ·scoresF32by3x256(SB), NOSPLIT, $0-64
	SCORES3(VMOVUPS, 4)

// func mixF16by3x256(dst, p *float32, v unsafe.Pointer, rows, n, stride, ldd, ldp int, ahead uintptr)
TEXT ·mixF16by3x256(SB), NOSPLIT, $0-72
	MIX3(VCVTPH2PS, 2)

// func mixF32by3x256(dst, p *float32, v unsafe.Pointer, rows, n, stride, ldd, ldp int, ahead uintptr)
TEXT ·mixF32by3x256(SB), NOSPLIT, $0-72
	MIX3(VMOVUPS, 4)
