// The frame of the AVX-512 kernels for rows with few activation rows.
//
// Registers: DI the gemv, SI the weights, BX dst, DX rows left, CX groups of 256
// left, R11 offset of the record in an activation row, R12 where the next row
// begins while SI is at the copy of a tail (else 0), R8-R10 the walk over the
// activation rows, AX the record. An unpack leaves 256 weights as bytes without
// sign in Z0-Z3, in order, their scales in Z4 and offsets in Y5, and may use
// Z6-Z15 and R13, R15; Z16-Z31 hold its constants.

// BEGIN takes the argument; constants are loaded after it.
#define BEGIN \
	MOVQ p+0(FP), DI; \
	MOVQ gemv_w(DI), SI; \
	MOVQ gemv_dst(DI), BX; \
	MOVQ gemv_rows(DI), DX

// ROW starts a row: chains to zero.
#define ROW \
row: \
	VPXOR X0, X0, X0; \
	LEAQ gemv_acc(DI), R10; \
	MOVQ gemv_t(DI), R9; \
zero: \
	VMOVUPS Z0, (R10); \
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

// FOLD multiplies Z0-Z3 with the record and adds what belongs to 16 weights:
// the sum of half block s = 0..15 goes to lane order16(s) of Z8.
#define FOLD \
	VPXOR X8, X8, X8; \
	VPXOR X9, X9, X9; \
	VPXOR X10, X10, X10; \
	VPXOR X11, X11, X11; \
	VPDPBUSD (AX), Z0, Z8; \
	VPDPBUSD 64(AX), Z1, Z9; \
	VPDPBUSD 128(AX), Z2, Z10; \
	VPDPBUSD 192(AX), Z3, Z11; \
	VPUNPCKLDQ Z9, Z8, Z12; \
	VPUNPCKHDQ Z9, Z8, Z13; \
	VPUNPCKLDQ Z11, Z10, Z14; \
	VPUNPCKHDQ Z11, Z10, Z15; \
	VPADDD Z13, Z12, Z12; \
	VPADDD Z15, Z14, Z14; \
	VPUNPCKLQDQ Z14, Z12, Z8; \
	VPUNPCKHQDQ Z14, Z12, Z9; \
	VPADDD Z9, Z8, Z8

// FOLD32 goes on to 32 weights: block b = 0..7 to lane order32(b) of Y8.
#define FOLD32 \
	FOLD; \
	VSHUFI32X4 $0x88, Z8, Z8, Z9; \
	VSHUFI32X4 $0xDD, Z8, Z8, Z8; \
	VPADDD Y9, Y8, Y8

// CHAIN8 takes the sums in Y8 to the eight chains. SHIFT: the weights are 128
// too large; OFFS: they are as they should be and there are offsets in Y5, which
// FMA adds or takes off.
#define CHAIN8_SHIFT \
	VPADDD record_neg(AX), Y8, Y8; \
	VMULPS record_d(AX), Y4, Y9; \
	VCVTDQ2PS Y8, Y8; \
	VFMADD213PS (R10), Y9, Y8; \
	VMOVUPS Y8, (R10)
#define CHAIN8_OFFS(FMA) \
	VMULPS record_d(AX), Y4, Y9; \
	VCVTDQ2PS Y8, Y8; \
	VFMADD213PS (R10), Y9, Y8; \
	FMA record_dsum(AX), Y5, Y8; \
	VMOVUPS Y8, (R10)

// D16 spreads the scales of the record to half blocks: Z9.
#define D16 \
	VMOVUPS record_d(AX), Y9; \
	VSHUFF32X4 $0x50, Z9, Z9, Z9

// CHAIN16 takes the sums in Z8 to 16 chains.
#define CHAIN16_SHIFT \
	D16; \
	VPADDD record_neg16(AX), Z8, Z8; \
	VMULPS Z9, Z4, Z9; \
	VCVTDQ2PS Z8, Z8; \
	VFMADD213PS (R10), Z9, Z8; \
	VMOVUPS Z8, (R10)
#define CHAIN16_OFFS \
	D16; \
	VPSRAD $7, record_neg16(AX), Z10; \
	VMULPS Z9, Z4, Z11; \
	VCVTDQ2PS Z8, Z8; \
	VCVTDQ2PS Z10, Z10; \
	VMULPS Z10, Z9, Z9; \
	VFMADD213PS (R10), Z11, Z8; \
	VFMADD231PS Z9, Z5, Z8; \
	VMOVUPS Z8, (R10)
