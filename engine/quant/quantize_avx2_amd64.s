#include "go_asm.h"
#include "textflag.h"
#include "avx2_amd64.h"

// MOST leaves max|x| of the 32 floats at x(SI) in lane place of (SP). Bits of
// absolute values compare like whole numbers, and NaN and infinity win.
#define MOST(x, place) \
	VPAND x(SI), Y15, Y0; \
	VPAND (x+32)(SI), Y15, Y1; \
	VPAND (x+64)(SI), Y15, Y2; \
	VPAND (x+96)(SI), Y15, Y3; \
	VPMAXUD Y1, Y0, Y0; \
	VPMAXUD Y3, Y2, Y2; \
	VPMAXUD Y2, Y0, Y0; \
	VEXTRACTI128 $1, Y0, X1; \
	VPMAXUD X1, X0, X0; \
	VPSHUFD $0x4E, X0, X1; \
	VPMAXUD X1, X0, X0; \
	VPSHUFD $0xB1, X0, X1; \
	VPMAXUD X1, X0, X0; \
	VMOVD X0, (4*place)(SP)

// ROUND writes the 32 bytes of the floats at x(SI) to q(AX); the inverse scale
// is in lane place of (SP). NaN, which infinity times 0 is too, becomes 0. Y13
// puts the fours of bytes into order.
#define WHOLE(m, y) \
	VMULPS m, Y4, y; \
	VCMPPS $7, y, y, Y5; \
	VCVTPS2DQ y, y; \
	VPAND Y5, y, y
#define ROUND(x, q, place) \
	VBROADCASTSS (4*place)(SP), Y4; \
	WHOLE(x(SI), Y0); \
	WHOLE((x+32)(SI), Y1); \
	WHOLE((x+64)(SI), Y2); \
	WHOLE((x+96)(SI), Y3); \
	VPACKSSDW Y1, Y0, Y0; \
	VPACKSSDW Y3, Y2, Y2; \
	VPACKSSWB Y2, Y0, Y0; \
	VPERMD Y0, Y13, Y0; \
	VMOVDQU Y0, q(AX)

// DOT_1 adds activations in fours. Y14 holds bytes of 1.
#define DOT_1(b, x, y) \
	VPMADDUBSW (32*b)(AX), Y14, y; \
	VPMADDWD Y15, y, y

// WEAVE writes the fours of values of two of four registers in the order of woven
// rows, to (BX)+at.
#define FOURS(first, UNPCK, y, z) \
	VMOVDQU first(AX), Y0; \
	VMOVDQU (first+128)(AX), Y1; \
	UNPCK (first+64)(AX), Y0, Y0; \
	UNPCK (first+192)(AX), Y1, Y1; \
	VPUNPCKLQDQ Y1, Y0, y; \
	VPUNPCKHQDQ Y1, Y0, z
#define PUTWOVEN(even, odd, at) \
	VPERM2I128 $0x20, odd, even, Y0; \
	VPERM2I128 $0x31, odd, even, Y1; \
	VMOVDQU Y0, at(BX); \
	VMOVDQU Y1, (at+32)(BX)
#define WEAVE(UNPCK, at) \
	FOURS(0, UNPCK, Y2, Y3); \
	FOURS(32, UNPCK, Y4, Y5); \
	PUTWOVEN(Y2, Y4, at); \
	PUTWOVEN(Y3, Y5, (at+64))

// func quantize256(r *record, x *float32, groups int)
// See quantizePlainRecords.
TEXT ·quantize256(SB), NOSPLIT, $32-24
	MOVQ r+0(FP), AX
	MOVQ x+8(FP), SI
	MOVQ groups+16(FP), CX
	VMOVDQU ·c256+consts256_packed(SB), Y13
group:
	VPCMPEQD Y15, Y15, Y15
	VPSRLD $1, Y15, Y15
	MOST(0, 0)
	MOST(128, 4)
	MOST(256, 1)
	MOST(384, 5)
	MOST(512, 2)
	MOST(640, 6)
	MOST(768, 3)
	MOST(896, 7)
	VMOVUPS (SP), Y0
	VBROADCASTSS ·c256+consts256_top127(SB), Y1
	VBROADCASTSS ·c256+consts256_tiny(SB), Y2
	VSUBPS Y0, Y0, Y3 // 0, NaN where not finite
	VCMPPS $13, Y2, Y0, Y4 // at least 2^-120
	VCMPPS $7, Y3, Y3, Y5 // finite
	VANDPS Y4, Y5, Y4
	VDIVPS Y0, Y1, Y6
	VDIVPS Y1, Y0, Y7
	VANDPS Y4, Y6, Y6 // 127/most, else 0
	VBLENDVPS Y4, Y7, Y3, Y7 // most/127, else 0 or NaN
	VMOVUPS Y6, (SP)
	VMOVUPS Y7, record_d(AX)
	ROUND(0, 0, 0)
	ROUND(128, 32, 4)
	ROUND(256, 64, 1)
	ROUND(384, 96, 5)
	ROUND(512, 128, 2)
	ROUND(640, 160, 6)
	ROUND(768, 192, 3)
	ROUND(896, 224, 7)
	ONES
	VMOVDQU ·c256+consts256_one(SB), Y14
	FOLD(DOT_1)
	VPXOR X9, X9, X9
	VPERM2I128 $0x20, Y4, Y0, Y1
	VPERM2I128 $0x31, Y4, Y0, Y2
	VPSLLD $7, Y0, Y0
	VPSLLD $7, Y4, Y4
	VPSUBD Y0, Y9, Y0
	VPSUBD Y4, Y9, Y4
	VMOVDQU Y0, record_neg16(AX)
	VMOVDQU Y4, (record_neg16+32)(AX)
	VPADDD Y2, Y1, Y0
	VPSLLD $7, Y0, Y1
	VPSUBD Y1, Y9, Y1
	VMOVDQU Y1, record_neg(AX)
	VCVTDQ2PS Y0, Y0
	VMULPS record_d(AX), Y0, Y0
	VMOVUPS Y0, record_dsum(AX)
	VMOVDQU record_neg16(AX), Y0
	VMOVDQU (record_neg16+32)(AX), Y1
	VPERM2I128 $0x20, Y1, Y0, Y2
	VPERM2I128 $0x31, Y1, Y0, Y3
	VMOVDQU Y2, record_negW(AX)
	VMOVDQU Y3, (record_negW+32)(AX)
	LEAQ record_woven(AX), BX
	WEAVE(VPUNPCKLDQ, 0)
	WEAVE(VPUNPCKHDQ, 128)
	ADDQ $1024, SI
	ADDQ $record__size, AX
	DECQ CX
	JNZ group
	VZEROUPPER
	RET

// func weave256(dst, q *[256]byte)
TEXT ·weave256(SB), NOSPLIT, $0-16
	MOVQ dst+0(FP), BX
	MOVQ q+8(FP), AX
	WEAVE(VPUNPCKLDQ, 0)
	WEAVE(VPUNPCKHDQ, 128)
	VZEROUPPER
	RET
