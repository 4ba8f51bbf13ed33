#include "go_asm.h"
#include "textflag.h"
#include "turn_avx512_amd64.h"

// A slab is 16 rows side by side: each dword lane of a register is one row. See
// many.go.

// ROWS16 loads 64 bytes at (SI)+off of each of 16 plain rows to Z0-Z15.
#define ROWS16(off) \
	VMOVDQU64 (off+0*plainRow__size)(SI), Z0; \
	VMOVDQU64 (off+1*plainRow__size)(SI), Z1; \
	VMOVDQU64 (off+2*plainRow__size)(SI), Z2; \
	VMOVDQU64 (off+3*plainRow__size)(SI), Z3; \
	VMOVDQU64 (off+4*plainRow__size)(SI), Z4; \
	VMOVDQU64 (off+5*plainRow__size)(SI), Z5; \
	VMOVDQU64 (off+6*plainRow__size)(SI), Z6; \
	VMOVDQU64 (off+7*plainRow__size)(SI), Z7; \
	VMOVDQU64 (off+8*plainRow__size)(SI), Z8; \
	VMOVDQU64 (off+9*plainRow__size)(SI), Z9; \
	VMOVDQU64 (off+10*plainRow__size)(SI), Z10; \
	VMOVDQU64 (off+11*plainRow__size)(SI), Z11; \
	VMOVDQU64 (off+12*plainRow__size)(SI), Z12; \
	VMOVDQU64 (off+13*plainRow__size)(SI), Z13; \
	VMOVDQU64 (off+14*plainRow__size)(SI), Z14; \
	VMOVDQU64 (off+15*plainRow__size)(SI), Z15

// STORE32 puts 64 columns of weights to the parts at (BX) and one chain further.
// R8 is the distance of chains.
#define STORE32 \
	VMOVDQU64 Z0, 0(BX); \
	VMOVDQU64 Z4, 64(BX); \
	VMOVDQU64 Z8, 128(BX); \
	VMOVDQU64 Z12, 192(BX); \
	VMOVDQU64 Z1, 256(BX); \
	VMOVDQU64 Z5, 320(BX); \
	VMOVDQU64 Z9, 384(BX); \
	VMOVDQU64 Z13, 448(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z2, 0(BX); \
	VMOVDQU64 Z6, 64(BX); \
	VMOVDQU64 Z10, 128(BX); \
	VMOVDQU64 Z14, 192(BX); \
	VMOVDQU64 Z3, 256(BX); \
	VMOVDQU64 Z7, 320(BX); \
	VMOVDQU64 Z11, 384(BX); \
	VMOVDQU64 Z15, 448(BX); \
	ADDQ R8, BX

// STORE16 does so for four parts of 16 weights.
#define STORE16 \
	VMOVDQU64 Z0, 0(BX); \
	VMOVDQU64 Z4, 64(BX); \
	VMOVDQU64 Z8, 128(BX); \
	VMOVDQU64 Z12, 192(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z1, 0(BX); \
	VMOVDQU64 Z5, 64(BX); \
	VMOVDQU64 Z9, 128(BX); \
	VMOVDQU64 Z13, 192(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z2, 0(BX); \
	VMOVDQU64 Z6, 64(BX); \
	VMOVDQU64 Z10, 128(BX); \
	VMOVDQU64 Z14, 192(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z3, 0(BX); \
	VMOVDQU64 Z7, 64(BX); \
	VMOVDQU64 Z11, 128(BX); \
	VMOVDQU64 Z15, 192(BX); \
	ADDQ R8, BX

// SCALES32 and SCALES16 put columns of scales, which come in the order of a
// record, behind the weights of all chains.
#define SCALES32(at) \
	VMOVDQU64 Z0, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z1, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z4, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z5, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z8, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z9, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z12, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z13, at(BX)

// MINUS32 does so with the offsets of 32 weights, which come in the upper half of
// the scales.
#define MINUS32(at) \
	VMOVDQU64 Z2, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z3, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z6, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z7, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z10, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z11, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z14, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z15, at(BX)

#define SCALES16(at) \
	VMOVDQU64 Z0, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z1, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z2, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z3, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z4, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z5, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z6, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z7, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z8, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z9, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z10, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z11, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z12, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z13, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z14, at(BX); \
	ADDQ R8, BX; \
	VMOVDQU64 Z15, at(BX)

#define WEAVE(STORE) \
	MOVQ p+0(FP), DI; \
	MOVQ weave_rows(DI), SI; \
	MOVQ weave_slab(DI), BX; \
	MOVQ weave_chain(DI), R8; \
	ROWS16(0); \
	TURN; \
	STORE; \
	ROWS16(64); \
	TURN; \
	STORE; \
	ROWS16(128); \
	TURN; \
	STORE; \
	ROWS16(192); \
	TURN; \
	STORE; \
	ROWS16(plainRow_scale); \
	TURN; \
	MOVQ weave_slab(DI), BX

// func weave32x512(p *weave)
TEXT ·weave32x512(SB), NOSPLIT, $0-8
	WEAVE(STORE32)
	SCALES32(512)
	CMPQ weave_offsets(DI), $0
	JEQ done
	MOVQ weave_slab(DI), BX
	MINUS32(576)
done:
	VZEROUPPER
	RET

// func weave16x512(p *weave)
TEXT ·weave16x512(SB), NOSPLIT, $0-8
	WEAVE(STORE16)
	SCALES16(256)
	CMPQ weave_offsets(DI), $0
	JEQ done
	ROWS16(plainRow_minus)
	TURN
	MOVQ weave_slab(DI), BX
	SCALES16(320)
done:
	VZEROUPPER
	RET
