// The frame of the kernels for rows with few activation rows, at all levels.
//
// Registers: DI the gemv, SI the weights, BX dst, DX rows left, CX groups of 256
// left, R11 offset of the record in an activation row, R12 where the next row
// begins while SI is at the copy of a tail (else 0), R8-R10 the walk over the
// activation rows, AX the record. An unpack may use AX, R8-R10, R13 and R15.

// BEGIN takes the argument; constants are loaded after it.
#define BEGIN \
	MOVQ p+0(FP), DI; \
	MOVQ gemv_w(DI), SI; \
	MOVQ gemv_dst(DI), BX; \
	MOVQ gemv_rows(DI), DX

// ROW starts a row: chains to zero. KEEP stores 16 floats of zero at (R10).
#define ROW(KEEP) \
row: \
	VPXOR X0, X0, X0; \
	LEAQ gemv_acc(DI), R10; \
	MOVQ gemv_t(DI), R9; \
zero: \
	KEEP; \
	ADDQ $64, R10; \
	DECQ R9; \
	JNZ zero; \
	XORL R11, R11; \
	XORL R12, R12; \
	MOVQ gemv_groups(DI), CX; \
	TESTQ CX, CX; \
	JZ rest; \
group:

// TOKENS walks over the activation rows, after an unpack.
#define TOKENS \
	LEAQ gemv_x(DI), R8; \
	LEAQ gemv_acc(DI), R10; \
	MOVQ gemv_t(DI), R9; \
token: \
	MOVQ (R8), AX; \
	ADDQ R11, AX

// NEXT ends the walk, the group and the row; bytes is the size of 256 weights,
// SUM adds up the chains. A tail is copied, eight bytes at a time and the last
// eight once more, to where zeros follow it.
#define NEXT(bytes, SUM) \
	ADDQ $8, R8; \
	ADDQ $64, R10; \
	DECQ R9; \
	JNZ token; \
	ADDQ $record__size, R11; \
	ADDQ $bytes, SI; \
	DECQ CX; \
	JNZ group; \
rest: \
	TESTQ R12, R12; \
	JNZ back; \
	MOVQ gemv_tail(DI), R13; \
	TESTQ R13, R13; \
	JZ sum; \
	LEAQ (SI)(R13*1), R12; \
	LEAQ gemv_pad(DI), AX; \
	MOVQ -8(R12), R15; \
	MOVQ R15, -8(AX)(R13*1); \
	SUBQ $8, R13; \
copy: \
	MOVQ (SI), R15; \
	MOVQ R15, (AX); \
	ADDQ $8, SI; \
	ADDQ $8, AX; \
	SUBQ $8, R13; \
	JG copy; \
	LEAQ gemv_pad(DI), SI; \
	MOVQ $1, CX; \
	JMP group; \
back: \
	MOVQ R12, SI; \
sum: \
	LEAQ gemv_acc(DI), R10; \
	MOVQ gemv_t(DI), R9; \
	MOVQ BX, AX; \
sums: \
	SUM; \
	VMOVSHDUP X0, X1; \
	VADDPS X1, X0, X0; \
	VPERMILPD $1, X0, X1; \
	VADDSS X1, X0, X0; \
	VMOVSS X0, (AX); \
	ADDQ gemv_ldd(DI), AX; \
	ADDQ $64, R10; \
	DECQ R9; \
	JNZ sums; \
	ADDQ $4, BX; \
	DECQ DX; \
	JNZ row; \
	VZEROUPPER; \
	RET

// SUM8 adds chains 2i and 2i+1 of eight into X0, SUM16 chains 4i to 4i+3 of 16.
#define SUM8 \
	VMOVUPS (R10), X0; \
	VADDPS 16(R10), X0, X0
#define SUM16 \
	VMOVUPS (R10), X0; \
	VADDPS 16(R10), X0, X0; \
	VMOVUPS 32(R10), X1; \
	VADDPS 48(R10), X1, X1; \
	VADDPS X1, X0, X0
