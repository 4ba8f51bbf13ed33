#include "go_asm.h"
#include "textflag.h"
#include "avx512_amd64.h"

// MOST leaves max|x| of the 32 floats at x(SI) in lane place of (SP). Bits of
// absolute values compare like whole numbers, and NaN and infinity win.
#define MOST(x, place) \
	VPANDD x(SI), Z31, Z0; \
	VPANDD (x+64)(SI), Z31, Z1; \
	VPMAXUD Z1, Z0, Z0; \
	VEXTRACTI64X4 $1, Z0, Y1; \
	VPMAXUD Y1, Y0, Y0; \
	VEXTRACTI128 $1, Y0, X1; \
	VPMAXUD X1, X0, X0; \
	VPSHUFD $0x4E, X0, X1; \
	VPMAXUD X1, X0, X0; \
	VPSHUFD $0xB1, X0, X1; \
	VPMAXUD X1, X0, X0; \
	VMOVD X0, (4*place)(SP)

// ROUND writes the 32 bytes of the floats at x(SI) to q(AX); the inverse scale
// is in lane place of (SP).
#define ROUND(x, q, place) \
	VBROADCASTSS (4*place)(SP), Z2; \
	VMULPS x(SI), Z2, Z0; \
	VMULPS (x+64)(SI), Z2, Z1; \
	VCMPPS $7, Z0, Z0, K1; \
	VCMPPS $7, Z1, Z1, K2; \
	VCVTPS2DQ.Z Z0, K1, Z0; \
	VCVTPS2DQ.Z Z1, K2, Z1; \
	VPMOVDB Z0, q(AX); \
	VPMOVDB Z1, (q+16)(AX)

// func quantize512(r *record, x *float32, groups int)
// See quantizePlainRecords.
TEXT ·quantize512(SB), NOSPLIT, $32-24
	MOVQ r+0(FP), AX
	MOVQ x+8(FP), SI
	MOVQ groups+16(FP), CX
	MOVL $0x7FFFFFFF, DX
	VPBROADCASTD DX, Z31
	MOVL $0x42FE0000, DX // 127
	VPBROADCASTD DX, Y30
	MOVL $0x03800000, DX // 2^-120
	VPBROADCASTD DX, Y29
	MOVL $0x7F800000, DX // infinity
	VPBROADCASTD DX, Y28
	MOVL $0x3C000000, DX // 1/128
	VPBROADCASTD DX, Y27
group:
	MOST(0, 0)
	MOST(128, 4)
	MOST(256, 1)
	MOST(384, 5)
	MOST(512, 2)
	MOST(640, 6)
	MOST(768, 3)
	MOST(896, 7)
	VMOVUPS (SP), Y0
	VPCMPUD $1, Y28, Y0, K1 // finite
	VPCMPUD $5, Y29, Y0, K2 // at least 2^-120
	KANDW K1, K2, K3
	VDIVPS.Z Y0, Y30, K3, Y1 // 127/most, else 0
	VSUBPS Y0, Y0, Y2 // 0, NaN where not finite
	VDIVPS Y30, Y0, K3, Y2 // most/127 where both hold
	VMOVUPS Y1, (SP)
	VMOVUPS Y2, record_d(AX)
	ROUND(0, 0, 0)
	ROUND(128, 32, 4)
	ROUND(256, 64, 1)
	ROUND(384, 96, 5)
	ROUND(512, 128, 2)
	ROUND(640, 160, 6)
	ROUND(768, 192, 3)
	ROUND(896, 224, 7)
	// sums: the product with weights of 128
	VMOVDQU64 ·c512+consts512_flip(SB), Z0
	VMOVDQA64 Z0, Z1
	VMOVDQA64 Z0, Z2
	VMOVDQA64 Z0, Z3
	FOLD
	VPXOR X10, X10, X10
	VPSUBD Z8, Z10, Z9
	VMOVDQU64 Z9, record_neg16(AX)
	VSHUFI32X4 $0x88, Z8, Z8, Z9
	VSHUFI32X4 $0xDD, Z8, Z8, Z8
	VPADDD Y9, Y8, Y8
	VPSUBD Y8, Y10, Y9
	VMOVDQU Y9, record_neg(AX)
	VCVTDQ2PS Y8, Y8
	VMULPS Y27, Y8, Y8
	VMULPS record_d(AX), Y8, Y8
	VMOVUPS Y8, record_dsum(AX)
	VMOVDQU64 record_neg16(AX), Z8
	VSHUFI32X4 $0xD8, Z8, Z8, Z8
	VMOVDQU64 Z8, record_negW(AX)
	// the order of woven rows: fours of values across the four registers
	VMOVDQU64 (AX), Z0
	VMOVDQU64 64(AX), Z1
	VMOVDQU64 128(AX), Z2
	VMOVDQU64 192(AX), Z3
	VPUNPCKLDQ Z1, Z0, Z8
	VPUNPCKHDQ Z1, Z0, Z9
	VPUNPCKLDQ Z3, Z2, Z10
	VPUNPCKHDQ Z3, Z2, Z11
	VPUNPCKLQDQ Z10, Z8, Z0
	VPUNPCKHQDQ Z10, Z8, Z1
	VPUNPCKLQDQ Z11, Z9, Z2
	VPUNPCKHQDQ Z11, Z9, Z3
	VSHUFI32X4 $0xD8, Z0, Z0, Z0
	VSHUFI32X4 $0xD8, Z1, Z1, Z1
	VSHUFI32X4 $0xD8, Z2, Z2, Z2
	VSHUFI32X4 $0xD8, Z3, Z3, Z3
	VMOVDQU64 Z0, record_woven(AX)
	VMOVDQU64 Z1, (record_woven+64)(AX)
	VMOVDQU64 Z2, (record_woven+128)(AX)
	VMOVDQU64 Z3, (record_woven+192)(AX)
	ADDQ $1024, SI
	ADDQ $record__size, AX
	DECQ CX
	JNZ group
	VZEROUPPER
	RET
