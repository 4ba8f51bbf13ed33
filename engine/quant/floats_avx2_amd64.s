#include "go_asm.h"
#include "textflag.h"

// Rows of floats on AVX2: as floats_avx512_amd64.s, without a tail. Registers: DI
// the gemv, SI four rows, AX, R12, R13 where the others of them are, BX dst, DX
// rows left, R8 an activation row, R9 activation rows left, R10 the walk over
// them, R11 results of this one, CX groups of 16 left. Rows 0 to 3 have chains
// 0..7 in Y0, Y2, Y4, Y6, chains 8..15 in Y1, Y3, Y5, Y7.

#define LOAD32(m, y) VMOVUPS m, y
#define LOAD16(m, y) VCVTPH2PS m, y
#define LOADB16(m, y) VPMOVZXWD m, y; VPSLLD $16, y, y

// ADD16 adds 16 chains into lane 0: l and l+8, then l and l+4, and so on.
#define ADD16(y1, y, x) \
	VADDPS y1, y, y; \
	VEXTRACTF128 $1, y, X8; \
	VADDPS X8, x, x; \
	VPERMILPD $1, x, X8; \
	VADDPS X8, x, x; \
	VMOVSHDUP x, X8; \
	VADDSS X8, x, x

#define FLOATROWS(size, LOAD) \
	MOVQ p+0(FP), DI; \
	MOVQ gemv_w(DI), SI; \
	MOVQ gemv_dst(DI), BX; \
	MOVQ gemv_rows(DI), DX; \
	SUBQ $4, DX; \
	JL ones; \
fours: \
	LEAQ gemv_x(DI), R10; \
	MOVQ gemv_t(DI), R9; \
	MOVQ BX, R11; \
four: \
	MOVQ (R10), R8; \
	MOVQ SI, AX; \
	MOVQ gemv_size(DI), R12; \
	LEAQ (R12)(R12*2), R13; \
	VXORPS X0, X0, X0; \
	VXORPS X1, X1, X1; \
	VXORPS X2, X2, X2; \
	VXORPS X3, X3, X3; \
	VXORPS X4, X4, X4; \
	VXORPS X5, X5, X5; \
	VXORPS X6, X6, X6; \
	VXORPS X7, X7, X7; \
	MOVQ gemv_groups(DI), CX; \
fourloop: \
	PREFETCHT0 1024(AX); \
	PREFETCHT0 1024(AX)(R12*1); \
	PREFETCHT0 1024(AX)(R12*2); \
	PREFETCHT0 1024(AX)(R13*1); \
	VMOVUPS (R8), Y8; \
	VMOVUPS 32(R8), Y9; \
	LOAD((AX), Y10); \
	LOAD((size/2)(AX), Y11); \
	LOAD((AX)(R12*1), Y12); \
	LOAD((size/2)(AX)(R12*1), Y13); \
	VFMADD231PS Y8, Y10, Y0; \
	VFMADD231PS Y9, Y11, Y1; \
	VFMADD231PS Y8, Y12, Y2; \
	VFMADD231PS Y9, Y13, Y3; \
	LOAD((AX)(R12*2), Y10); \
	LOAD((size/2)(AX)(R12*2), Y11); \
	LOAD((AX)(R13*1), Y12); \
	LOAD((size/2)(AX)(R13*1), Y13); \
	VFMADD231PS Y8, Y10, Y4; \
	VFMADD231PS Y9, Y11, Y5; \
	VFMADD231PS Y8, Y12, Y6; \
	VFMADD231PS Y9, Y13, Y7; \
	ADDQ $64, R8; \
	ADDQ $size, AX; \
	DECQ CX; \
	JNZ fourloop; \
	ADD16(Y1, Y0, X0); \
	ADD16(Y3, Y2, X2); \
	ADD16(Y5, Y4, X4); \
	ADD16(Y7, Y6, X6); \
	VMOVSS X0, (R11); \
	VMOVSS X2, 4(R11); \
	VMOVSS X4, 8(R11); \
	VMOVSS X6, 12(R11); \
	ADDQ gemv_ldd(DI), R11; \
	ADDQ $8, R10; \
	DECQ R9; \
	JNZ four; \
	LEAQ (SI)(R12*4), SI; \
	ADDQ $16, BX; \
	SUBQ $4, DX; \
	JGE fours; \
ones: \
	ADDQ $4, DX; \
	JZ done; \
oneloop: \
	LEAQ gemv_x(DI), R10; \
	MOVQ gemv_t(DI), R9; \
	MOVQ BX, R11; \
one: \
	MOVQ (R10), R8; \
	MOVQ SI, AX; \
	VXORPS X0, X0, X0; \
	VXORPS X1, X1, X1; \
	MOVQ gemv_groups(DI), CX; \
onestep: \
	PREFETCHT0 1024(AX); \
	LOAD((AX), Y10); \
	LOAD((size/2)(AX), Y11); \
	VFMADD231PS (R8), Y10, Y0; \
	VFMADD231PS 32(R8), Y11, Y1; \
	ADDQ $64, R8; \
	ADDQ $size, AX; \
	DECQ CX; \
	JNZ onestep; \
	ADD16(Y1, Y0, X0); \
	VMOVSS X0, (R11); \
	ADDQ gemv_ldd(DI), R11; \
	ADDQ $8, R10; \
	DECQ R9; \
	JNZ one; \
	ADDQ gemv_size(DI), SI; \
	ADDQ $4, BX; \
	DECQ DX; \
	JNZ oneloop; \
done: \
	VZEROUPPER; \
	RET

// func rowsF32x256(p *gemv)
TEXT ·rowsF32x256(SB), NOSPLIT, $0-8
	FLOATROWS(64, LOAD32)

// func rowsF16x256(p *gemv)
TEXT ·rowsF16x256(SB), NOSPLIT, $0-8
	FLOATROWS(32, LOAD16)

// func rowsBF16x256(p *gemv)
TEXT ·rowsBF16x256(SB), NOSPLIT, $0-8
	FLOATROWS(32, LOADB16)
