#include "textflag.h"

// Attention over cached rows on AVX2. n is the number of values of a row, a
// multiple of 8; stride is the distance of rows in bytes. A row's result does not depend on its neighbours.

// SUM4 adds the lanes of Y0, Y1, Y2, Y3 into the lanes of X0.
#define SUM4 \
	VHADDPS Y1, Y0, Y0; \
	VHADDPS Y3, Y2, Y2; \
	VHADDPS Y2, Y0, Y0; \
	VEXTRACTF128 $1, Y0, X1; \
	VADDPS X1, X0, X0
#define SUM1 \
	VHADDPS Y0, Y0, Y0; \
	VHADDPS Y0, Y0, Y0; \
	VEXTRACTF128 $1, Y0, X1; \
	VADDPS X1, X0, X0

// for r := range rows { dst[r] = sum of q[i] * key r, value i }
// LOAD brings values of W bytes to floats.
#define SCORES1(LOAD, W) \
	MOVQ dst+0(FP), DI; \
	MOVQ q+8(FP), R8; \
	MOVQ k+16(FP), SI; \
	MOVQ rows+24(FP), DX; \
	MOVQ n+32(FP), R9; \
	MOVQ stride+40(FP), R10; \
	LEAQ (R10)(R10*2), R11; \
	SUBQ $4, DX; \
	JL ones; \
fours: \
	VXORPS X0, X0, X0; \
	VXORPS X1, X1, X1; \
	VXORPS X2, X2, X2; \
	VXORPS X3, X3, X3; \
	MOVQ SI, AX; \
	MOVQ R8, BX; \
	MOVQ R9, CX; \
four: \
	PREFETCHT0 (512*W)(AX); \
	PREFETCHT0 (512*W)(AX)(R10*2); \
	VMOVUPS (BX), Y4; \
	LOAD (AX), Y5; \
	LOAD (AX)(R10*1), Y6; \
	LOAD (AX)(R10*2), Y7; \
	LOAD (AX)(R11*1), Y8; \
	VFMADD231PS Y4, Y5, Y0; \
	VFMADD231PS Y4, Y6, Y1; \
	VFMADD231PS Y4, Y7, Y2; \
	VFMADD231PS Y4, Y8, Y3; \
	ADDQ $32, BX; \
	ADDQ $(8*W), AX; \
	SUBQ $8, CX; \
	JNZ four; \
	SUM4; \
	VMOVUPS X0, (DI); \
	ADDQ $16, DI; \
	LEAQ (SI)(R10*4), SI; \
	SUBQ $4, DX; \
	JGE fours; \
ones: \
	ADDQ $4, DX; \
	JZ done; \
one: \
	VXORPS X0, X0, X0; \
	MOVQ SI, AX; \
	MOVQ R8, BX; \
	MOVQ R9, CX; \
eight: \
	LOAD (AX), Y5; \
	VFMADD231PS (BX), Y5, Y0; \
	ADDQ $32, BX; \
	ADDQ $(8*W), AX; \
	SUBQ $8, CX; \
	JNZ eight; \
	SUM1; \
	VMOVSS X0, (DI); \
	ADDQ $4, DI; \
	ADDQ R10, SI; \
	DECQ DX; \
	JNZ one; \
done: \
	VZEROUPPER; \
	RET

// for r := range rows { for i := range n { dst[i] += p[r] * row r, value i } }
#define MIX1(LOAD, W) \
	MOVQ dst+0(FP), DI; \
	MOVQ p+8(FP), R8; \
	MOVQ v+16(FP), SI; \
	MOVQ rows+24(FP), DX; \
	MOVQ n+32(FP), R9; \
	MOVQ stride+40(FP), R10; \
	SUBQ $64, R9; \
	JL eights; \
columns64: \
	VMOVUPS (DI), Y0; \
	VMOVUPS 32(DI), Y1; \
	VMOVUPS 64(DI), Y2; \
	VMOVUPS 96(DI), Y3; \
	VMOVUPS 128(DI), Y4; \
	VMOVUPS 160(DI), Y5; \
	VMOVUPS 192(DI), Y6; \
	VMOVUPS 224(DI), Y7; \
	MOVQ SI, AX; \
	MOVQ R8, BX; \
	MOVQ DX, CX; \
row64: \
	VBROADCASTSS (BX), Y15; \
	LOAD (AX), Y8; \
	LOAD (8*W)(AX), Y9; \
	LOAD (16*W)(AX), Y10; \
	LOAD (24*W)(AX), Y11; \
	VFMADD231PS Y15, Y8, Y0; \
	VFMADD231PS Y15, Y9, Y1; \
	VFMADD231PS Y15, Y10, Y2; \
	VFMADD231PS Y15, Y11, Y3; \
	LOAD (32*W)(AX), Y8; \
	LOAD (40*W)(AX), Y9; \
	LOAD (48*W)(AX), Y10; \
	LOAD (56*W)(AX), Y11; \
	VFMADD231PS Y15, Y8, Y4; \
	VFMADD231PS Y15, Y9, Y5; \
	VFMADD231PS Y15, Y10, Y6; \
	VFMADD231PS Y15, Y11, Y7; \
	PREFETCHT0 (AX)(R10*8); \
	PREFETCHT0 64(AX)(R10*8); \
	ADDQ R10, AX; \
	ADDQ $4, BX; \
	DECQ CX; \
	JNZ row64; \
	VMOVUPS Y0, (DI); \
	VMOVUPS Y1, 32(DI); \
	VMOVUPS Y2, 64(DI); \
	VMOVUPS Y3, 96(DI); \
	VMOVUPS Y4, 128(DI); \
	VMOVUPS Y5, 160(DI); \
	VMOVUPS Y6, 192(DI); \
	VMOVUPS Y7, 224(DI); \
	ADDQ $256, DI; \
	ADDQ $(64*W), SI; \
	SUBQ $64, R9; \
	JGE columns64; \
eights: \
	ADDQ $64, R9; \
	JZ done; \
columns8: \
	VMOVUPS (DI), Y0; \
	MOVQ SI, AX; \
	MOVQ R8, BX; \
	MOVQ DX, CX; \
row8: \
	VBROADCASTSS (BX), Y15; \
	LOAD (AX), Y8; \
	VFMADD231PS Y15, Y8, Y0; \
	ADDQ R10, AX; \
	ADDQ $4, BX; \
	DECQ CX; \
	JNZ row8; \
	VMOVUPS Y0, (DI); \
	ADDQ $32, DI; \
	ADDQ $(8*W), SI; \
	SUBQ $8, R9; \
	JNZ columns8; \
done: \
	VZEROUPPER; \
	RET

// func scoresF16x256(dst, q *float32, k unsafe.Pointer, rows, n, stride int)
TEXT ·scoresF16x256(SB), NOSPLIT, $0-48
	SCORES1(VCVTPH2PS, 2)

// func scoresF32x256(dst, q *float32, k unsafe.Pointer, rows, n, stride int)
TEXT ·scoresF32x256(SB), NOSPLIT, $0-48
	SCORES1(VMOVUPS, 4)

// func mixF16x256(dst, p *float32, v unsafe.Pointer, rows, n, stride int)
TEXT ·mixF16x256(SB), NOSPLIT, $0-48
	MIX1(VCVTPH2PS, 2)

// func mixF32x256(dst, p *float32, v unsafe.Pointer, rows, n, stride int)
TEXT ·mixF32x256(SB), NOSPLIT, $0-48
	MIX1(VMOVUPS, 4)
