#include "go_asm.h"
#include "textflag.h"

// Rows of floats. Registers: DI the gemv, SI four rows, AX, R12, R13 where the
// others of them are, BX dst, DX rows left, R8 an activation row, R9
// activation rows left, R10 the walk over them, R11 results of this one, CX
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

#define FLOATROWS(size, LOAD, LOADK) \
	MOVQ p+0(FP), DI; \
	MOVQ gemv_w(DI), SI; \
	MOVQ gemv_dst(DI), BX; \
	MOVQ gemv_rows(DI), DX; \
	MOVQ gemv_tail(DI), CX; \
	MOVL $1, AX; \
	SHLL CX, AX; \
	DECL AX; \
	KMOVW AX, K1; \
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
	DECQ DX; \
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
