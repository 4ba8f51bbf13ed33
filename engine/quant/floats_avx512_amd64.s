#include "go_asm.h"
#include "textflag.h"

// Rows of floats. Registers: DI the gemv, SI four rows, AX, R12, R13 where the
// others of them are, BX dst, R9 activation rows left, R10 the walk over them,
// R11 their results, R8 an activation row, or R8, R14, R15, DX four of them, CX
// groups of 16 left. K1 has the values of the tail. LOAD takes 16 values, LOADK
// those of the tail; size is the number of bytes of 16 weights.

#define LOAD32(m, z) VMOVUPS m, z
#define LOADK32(m, z) VMOVUPS.Z m, K1, z
#define LOAD16(m, z) VCVTPH2PS m, z
#define LOADK16(m, z) VCVTPH2PS.Z m, K1, z
#define LOADB16(m, z) VPMOVZXWD m, z; VPSLLD $16, z, z
#define LOADBK16(m, z) VPMOVZXWD.Z m, K1, z; VPSLLD $16, z, z

// ADD16 adds the 16 lanes of a register into lane 0: l and l+8, then l and
// l+4, l and l+2, l and l+1.
#define ADD16(z, y, x) \
	VEXTRACTF64X4 $1, z, Y8; \
	VADDPS Y8, y, y; \
	VEXTRACTF128 $1, y, X8; \
	VADDPS X8, x, x; \
	VPERMILPD $1, x, X8; \
	VADDPS X8, x, x; \
	VMOVSHDUP x, X8; \
	VADDSS X8, x, x

// ADD4 multiplies four rows (Z20-Z23) with an activation row into four sums.
#define ADD4(x, a, b, c, d) \
	VFMADD231PS x, Z20, a; \
	VFMADD231PS x, Z21, b; \
	VFMADD231PS x, Z22, c; \
	VFMADD231PS x, Z23, d

// SUMS4 stores four results of an activation row.
#define SUMS4(z0, y0, x0, z1, y1, x1, z2, y2, x2, z3, y3, x3) \
	SUM16(z0, y0, x0); \
	SUM16(z1, y1, x1); \
	SUM16(z2, y2, x2); \
	SUM16(z3, y3, x3); \
	VMOVSS x0, (R11); \
	VMOVSS x1, 4(R11); \
	VMOVSS x2, 8(R11); \
	VMOVSS x3, 12(R11); \
	ADDQ gemv_ldd(DI), R11

// SUM16 is ADD16 with other registers.
#define SUM16(z, y, x) \
	VEXTRACTF64X4 $1, z, Y20; \
	VADDPS Y20, y, y; \
	VEXTRACTF32X4 $1, y, X20; \
	VADDPS X20, x, x; \
	VPERMILPD $1, x, X20; \
	VADDPS X20, x, x; \
	VMOVSHDUP x, X20; \
	VADDSS X20, x, x

#define FLOATROWS(size, LOAD, LOADK) \
	MOVQ p+0(FP), DI; \
	MOVQ gemv_w(DI), SI; \
	MOVQ gemv_dst(DI), BX; \
	MOVQ gemv_tail(DI), CX; \
	MOVL $1, AX; \
	SHLL CX, AX; \
	DECL AX; \
	KMOVW AX, K1; \
	MOVQ gemv_size(DI), R12; \
	LEAQ (R12)(R12*2), R13; \
	SUBQ $4, gemv_rows(DI); \
	JL ones; \
fours: \
	LEAQ gemv_x(DI), R10; \
	MOVQ gemv_t(DI), R9; \
	MOVQ BX, R11; \
	CMPQ R9, $4; \
	JL four; \
block: \
	MOVQ gemv_groups(DI), CX; \
	SHLQ $6, CX; \
	MOVQ (R10), R8; \
	MOVQ 8(R10), R14; \
	MOVQ 16(R10), R15; \
	MOVQ 24(R10), DX; \
	ADDQ CX, R8; \
	ADDQ CX, R14; \
	ADDQ CX, R15; \
	ADDQ CX, DX; \
	NEGQ CX; \
	MOVQ SI, AX; \
	VPXOR X0, X0, X0; \
	VPXOR X1, X1, X1; \
	VPXOR X2, X2, X2; \
	VPXOR X3, X3, X3; \
	VPXOR X4, X4, X4; \
	VPXOR X5, X5, X5; \
	VPXOR X6, X6, X6; \
	VPXOR X7, X7, X7; \
	VPXOR X8, X8, X8; \
	VPXOR X9, X9, X9; \
	VPXOR X10, X10, X10; \
	VPXOR X11, X11, X11; \
	VPXOR X12, X12, X12; \
	VPXOR X13, X13, X13; \
	VPXOR X14, X14, X14; \
	VPXOR X15, X15, X15; \
	TESTQ CX, CX; \
	JZ blocktail; \
blockloop: \
	LOAD((AX), Z20); \
	LOAD((AX)(R12*1), Z21); \
	LOAD((AX)(R12*2), Z22); \
	LOAD((AX)(R13*1), Z23); \
	VMOVUPS (R8)(CX*1), Z16; \
	VMOVUPS (R14)(CX*1), Z17; \
	VMOVUPS (R15)(CX*1), Z18; \
	VMOVUPS (DX)(CX*1), Z19; \
	ADD4(Z16, Z0, Z1, Z2, Z3); \
	ADD4(Z17, Z4, Z5, Z6, Z7); \
	ADD4(Z18, Z8, Z9, Z10, Z11); \
	ADD4(Z19, Z12, Z13, Z14, Z15); \
	ADDQ $size, AX; \
	ADDQ $64, CX; \
	JNZ blockloop; \
blocktail: \
	CMPQ gemv_tail(DI), $0; \
	JEQ blocksum; \
	LOADK((AX), Z20); \
	LOADK((AX)(R12*1), Z21); \
	LOADK((AX)(R12*2), Z22); \
	LOADK((AX)(R13*1), Z23); \
	VMOVUPS.Z (R8), K1, Z16; \
	VMOVUPS.Z (R14), K1, Z17; \
	VMOVUPS.Z (R15), K1, Z18; \
	VMOVUPS.Z (DX), K1, Z19; \
	ADD4(Z16, Z0, Z1, Z2, Z3); \
	ADD4(Z17, Z4, Z5, Z6, Z7); \
	ADD4(Z18, Z8, Z9, Z10, Z11); \
	ADD4(Z19, Z12, Z13, Z14, Z15); \
blocksum: \
	SUMS4(Z0, Y0, X0, Z1, Y1, X1, Z2, Y2, X2, Z3, Y3, X3); \
	SUMS4(Z4, Y4, X4, Z5, Y5, X5, Z6, Y6, X6, Z7, Y7, X7); \
	SUMS4(Z8, Y8, X8, Z9, Y9, X9, Z10, Y10, X10, Z11, Y11, X11); \
	SUMS4(Z12, Y12, X12, Z13, Y13, X13, Z14, Y14, X14, Z15, Y15, X15); \
	ADDQ $32, R10; \
	SUBQ $4, R9; \
	JZ fournext; \
	CMPQ R9, $4; \
	JGE block; \
four: \
	MOVQ (R10), R8; \
	MOVQ SI, AX; \
	VPXOR X0, X0, X0; \
	VPXOR X1, X1, X1; \
	VPXOR X2, X2, X2; \
	VPXOR X3, X3, X3; \
	MOVQ gemv_groups(DI), CX; \
	TESTQ CX, CX; \
	JZ fourtail; \
fourloop: \
	PREFETCHT0 1024(AX); \
	PREFETCHT0 1024(AX)(R12*1); \
	PREFETCHT0 1024(AX)(R12*2); \
	PREFETCHT0 1024(AX)(R13*1); \
	VMOVUPS (R8), Z4; \
	LOAD((AX), Z5); \
	LOAD((AX)(R12*1), Z6); \
	LOAD((AX)(R12*2), Z7); \
	LOAD((AX)(R13*1), Z8); \
	VFMADD231PS Z4, Z5, Z0; \
	VFMADD231PS Z4, Z6, Z1; \
	VFMADD231PS Z4, Z7, Z2; \
	VFMADD231PS Z4, Z8, Z3; \
	ADDQ $64, R8; \
	ADDQ $size, AX; \
	DECQ CX; \
	JNZ fourloop; \
fourtail: \
	CMPQ gemv_tail(DI), $0; \
	JEQ foursum; \
	VMOVUPS.Z (R8), K1, Z4; \
	LOADK((AX), Z5); \
	LOADK((AX)(R12*1), Z6); \
	LOADK((AX)(R12*2), Z7); \
	LOADK((AX)(R13*1), Z8); \
	VFMADD231PS Z4, Z5, Z0; \
	VFMADD231PS Z4, Z6, Z1; \
	VFMADD231PS Z4, Z7, Z2; \
	VFMADD231PS Z4, Z8, Z3; \
foursum: \
	ADD16(Z0, Y0, X0); \
	ADD16(Z1, Y1, X1); \
	ADD16(Z2, Y2, X2); \
	ADD16(Z3, Y3, X3); \
	VMOVSS X0, (R11); \
	VMOVSS X1, 4(R11); \
	VMOVSS X2, 8(R11); \
	VMOVSS X3, 12(R11); \
	ADDQ gemv_ldd(DI), R11; \
	ADDQ $8, R10; \
	DECQ R9; \
	JNZ four; \
fournext: \
	LEAQ (SI)(R12*4), SI; \
	ADDQ $16, BX; \
	SUBQ $4, gemv_rows(DI); \
	JGE fours; \
ones: \
	ADDQ $4, gemv_rows(DI); \
	JZ done; \
oneloop: \
	LEAQ gemv_x(DI), R10; \
	MOVQ gemv_t(DI), R9; \
	MOVQ BX, R11; \
one: \
	MOVQ (R10), R8; \
	MOVQ SI, AX; \
	VPXOR X0, X0, X0; \
	MOVQ gemv_groups(DI), CX; \
	TESTQ CX, CX; \
	JZ onetail; \
onestep: \
	PREFETCHT0 1024(AX); \
	LOAD((AX), Z5); \
	VFMADD231PS (R8), Z5, Z0; \
	ADDQ $64, R8; \
	ADDQ $size, AX; \
	DECQ CX; \
	JNZ onestep; \
onetail: \
	CMPQ gemv_tail(DI), $0; \
	JEQ onesum; \
	VMOVUPS.Z (R8), K1, Z4; \
	LOADK((AX), Z5); \
	VFMADD231PS Z4, Z5, Z0; \
onesum: \
	ADD16(Z0, Y0, X0); \
	VMOVSS X0, (R11); \
	ADDQ gemv_ldd(DI), R11; \
	ADDQ $8, R10; \
	DECQ R9; \
	JNZ one; \
	ADDQ gemv_size(DI), SI; \
	ADDQ $4, BX; \
	DECQ gemv_rows(DI); \
	JNZ oneloop; \
done: \
	VZEROUPPER; \
	RET

// func rowsF32x512(p *gemv)
TEXT ·rowsF32x512(SB), NOSPLIT, $0-8
	FLOATROWS(64, LOAD32, LOADK32)

// func rowsF16x512(p *gemv)
TEXT ·rowsF16x512(SB), NOSPLIT, $0-8
	FLOATROWS(32, LOAD16, LOADK16)

// func rowsBF16x512(p *gemv)
TEXT ·rowsBF16x512(SB), NOSPLIT, $0-8
	FLOATROWS(32, LOADB16, LOADBK16)
