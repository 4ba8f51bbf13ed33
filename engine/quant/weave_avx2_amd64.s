#include "go_asm.h"
#include "textflag.h"

// A slab is 8 rows side by side: each dword lane of a register is one row. See
// many.go.

// ROWS8 loads 32 bytes at (SI)+off of each of 8 plain rows to Y0-Y7.
#define ROWS8(off) \
	VMOVDQU (off+0*plainRow__size)(SI), Y0; \
	VMOVDQU (off+1*plainRow__size)(SI), Y1; \
	VMOVDQU (off+2*plainRow__size)(SI), Y2; \
	VMOVDQU (off+3*plainRow__size)(SI), Y3; \
	VMOVDQU (off+4*plainRow__size)(SI), Y4; \
	VMOVDQU (off+5*plainRow__size)(SI), Y5; \
	VMOVDQU (off+6*plainRow__size)(SI), Y6; \
	VMOVDQU (off+7*plainRow__size)(SI), Y7

// FLIP adds to weights what the kernel wants of them: 128, or nothing.
#define FLIP \
	VPXOR weave_flip(DI), Y0, Y0; \
	VPXOR weave_flip(DI), Y1, Y1; \
	VPXOR weave_flip(DI), Y2, Y2; \
	VPXOR weave_flip(DI), Y3, Y3; \
	VPXOR weave_flip(DI), Y4, Y4; \
	VPXOR weave_flip(DI), Y5, Y5; \
	VPXOR weave_flip(DI), Y6, Y6; \
	VPXOR weave_flip(DI), Y7, Y7

// TURN exchanges rows and columns of the 8 dwords in each of Y0-Y7; columns come
// to Y8-Y15.
#define TURN \
	VPUNPCKLDQ Y1, Y0, Y8; \
	VPUNPCKHDQ Y1, Y0, Y9; \
	VPUNPCKLDQ Y3, Y2, Y10; \
	VPUNPCKHDQ Y3, Y2, Y11; \
	VPUNPCKLDQ Y5, Y4, Y12; \
	VPUNPCKHDQ Y5, Y4, Y13; \
	VPUNPCKLDQ Y7, Y6, Y14; \
	VPUNPCKHDQ Y7, Y6, Y15; \
	VPUNPCKLQDQ Y10, Y8, Y0; \
	VPUNPCKHQDQ Y10, Y8, Y1; \
	VPUNPCKLQDQ Y11, Y9, Y2; \
	VPUNPCKHQDQ Y11, Y9, Y3; \
	VPUNPCKLQDQ Y14, Y12, Y4; \
	VPUNPCKHQDQ Y14, Y12, Y5; \
	VPUNPCKLQDQ Y15, Y13, Y6; \
	VPUNPCKHQDQ Y15, Y13, Y7; \
	VPERM2I128 $0x20, Y4, Y0, Y8; \
	VPERM2I128 $0x31, Y4, Y0, Y12; \
	VPERM2I128 $0x20, Y5, Y1, Y9; \
	VPERM2I128 $0x31, Y5, Y1, Y13; \
	VPERM2I128 $0x20, Y6, Y2, Y10; \
	VPERM2I128 $0x31, Y6, Y2, Y14; \
	VPERM2I128 $0x20, Y7, Y3, Y11; \
	VPERM2I128 $0x31, Y7, Y3, Y15

// WEIGHTS32 puts block b to its chain, WEIGHTS16 to its two.
#define WEIGHTS32(b) \
	ROWS8((32*b)); \
	FLIP; \
	TURN; \
	VMOVDQU Y8, 0(BX); \
	VMOVDQU Y9, 32(BX); \
	VMOVDQU Y10, 64(BX); \
	VMOVDQU Y11, 96(BX); \
	VMOVDQU Y12, 128(BX); \
	VMOVDQU Y13, 160(BX); \
	VMOVDQU Y14, 192(BX); \
	VMOVDQU Y15, 224(BX); \
	ADDQ R8, BX
#define WEIGHTS16(b) \
	ROWS8((32*b)); \
	FLIP; \
	TURN; \
	VMOVDQU Y8, 0(BX); \
	VMOVDQU Y9, 32(BX); \
	VMOVDQU Y10, 64(BX); \
	VMOVDQU Y11, 96(BX); \
	ADDQ R8, BX; \
	VMOVDQU Y12, 0(BX); \
	VMOVDQU Y13, 32(BX); \
	VMOVDQU Y14, 64(BX); \
	VMOVDQU Y15, 96(BX); \
	ADDQ R8, BX

// SCALES32 puts the eight floats at off of each row behind the weights of all
// chains, SCALES16 sixteen. They come in the order of a record.
#define SCALES32(off, at) \
	MOVQ weave_slab(DI), BX; \
	ROWS8(off); \
	TURN; \
	VMOVDQU Y8, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU Y12, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU Y9, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU Y13, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU Y10, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU Y14, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU Y11, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU Y15, at(BX)
#define SCALES16(off, at) \
	MOVQ weave_slab(DI), BX; \
	LEAQ (BX)(R8*2), R9; \
	ROWS8(off); \
	TURN; \
	VMOVDQU Y8, at(BX); \
	VMOVDQU Y12, at(BX)(R8*1); \
	LEAQ (BX)(R8*4), BX; \
	VMOVDQU Y9, at(BX); \
	VMOVDQU Y13, at(BX)(R8*1); \
	LEAQ (BX)(R8*4), BX; \
	VMOVDQU Y10, at(BX); \
	VMOVDQU Y14, at(BX)(R8*1); \
	LEAQ (BX)(R8*4), BX; \
	VMOVDQU Y11, at(BX); \
	VMOVDQU Y15, at(BX)(R8*1); \
	ROWS8(off+32); \
	TURN; \
	VMOVDQU Y8, at(R9); \
	VMOVDQU Y12, at(R9)(R8*1); \
	LEAQ (R9)(R8*4), R9; \
	VMOVDQU Y9, at(R9); \
	VMOVDQU Y13, at(R9)(R8*1); \
	LEAQ (R9)(R8*4), R9; \
	VMOVDQU Y10, at(R9); \
	VMOVDQU Y14, at(R9)(R8*1); \
	LEAQ (R9)(R8*4), R9; \
	VMOVDQU Y11, at(R9); \
	VMOVDQU Y15, at(R9)(R8*1)

#define WEAVE(WEIGHTS, SCALES, bytes) \
	MOVQ p+0(FP), DI; \
	MOVQ weave_rows(DI), SI; \
	MOVQ weave_slab(DI), BX; \
	MOVQ weave_chain(DI), R8; \
	WEIGHTS(0); \
	WEIGHTS(1); \
	WEIGHTS(2); \
	WEIGHTS(3); \
	WEIGHTS(4); \
	WEIGHTS(5); \
	WEIGHTS(6); \
	WEIGHTS(7); \
	SCALES(plainRow_scale, bytes); \
	CMPQ weave_offsets(DI), $0; \
	JEQ done; \
	SCALES(plainRow_minus, bytes+32); \
done: \
	VZEROUPPER; \
	RET

// func weave32x256(p *weave)
TEXT ·weave32x256(SB), NOSPLIT, $0-8
	WEAVE(WEIGHTS32, SCALES32, 256)

// func weave16x256(p *weave)
TEXT ·weave16x256(SB), NOSPLIT, $0-8
	WEAVE(WEIGHTS16, SCALES16, 128)
