#include "go_asm.h"
#include "textflag.h"

// Attention over cached rows of halves, or of floats, on AVX-512, for one to six
// queries (attendmany_amd64.go). Each kernel fetches other rows of the same shape
// into the second cache while it runs: those that are ahead bytes further on.

// SUM4 adds the lanes of four registers into the four lanes of X29.
#define SUM4(a, b, c, d) \
	VUNPCKLPS b, a, Z28; \
	VUNPCKHPS b, a, Z29; \
	VADDPS Z29, Z28, Z28; \
	VUNPCKLPS d, c, Z29; \
	VUNPCKHPS d, c, Z30; \
	VADDPS Z30, Z29, Z29; \
	VUNPCKLPD Z29, Z28, Z30; \
	VUNPCKHPD Z29, Z28, Z31; \
	VADDPS Z31, Z30, Z29; \
	VEXTRACTF64X4 $1, Z29, Y30; \
	VADDPS Y30, Y29, Y29; \
	VEXTRACTF32X4 $1, Y29, X30; \
	VADDPS X30, X29, X29

#define ZERO4(a, b, c, d) \
	VPXORD a, a, a; \
	VPXORD b, b, b; \
	VPXORD c, c, c; \
	VPXORD d, d, d

// QUERY multiplies 16 columns of four keys with a query.
#define QUERY(mem, a, b, c, d) \
	VMOVUPS mem, Z28; \
	VFMADD231PS Z28, Z24, a; \
	VFMADD231PS Z28, Z25, b; \
	VFMADD231PS Z28, Z26, c; \
	VFMADD231PS Z28, Z27, d

#define ZERO_1 ZERO4(Z0, Z1, Z2, Z3)
#define ZERO_2 ZERO_1; ZERO4(Z4, Z5, Z6, Z7)
#define ZERO_3 ZERO_2; ZERO4(Z8, Z9, Z10, Z11)
#define ZERO_4 ZERO_3; ZERO4(Z12, Z13, Z14, Z15)
#define ZERO_5 ZERO_4; ZERO4(Z16, Z17, Z18, Z19)
#define ZERO_6 ZERO_5; ZERO4(Z20, Z21, Z22, Z23)
#define QUERY_1 QUERY((BX), Z0, Z1, Z2, Z3)
#define QUERY_2 QUERY_1; QUERY((BX)(R13*1), Z4, Z5, Z6, Z7)
#define QUERY_3 QUERY_2; QUERY((BX)(R13*2), Z8, Z9, Z10, Z11)
#define QUERY_4 QUERY_3; QUERY((R14), Z12, Z13, Z14, Z15)
#define QUERY_5 QUERY_4; QUERY((R14)(R13*1), Z16, Z17, Z18, Z19)
#define QUERY_6 QUERY_5; QUERY((R14)(R13*2), Z20, Z21, Z22, Z23)

// KEEP stores the products of a query with the keys in K1.
#define KEEP(mem, a, b, c, d) \
	SUM4(a, b, c, d); \
	VMOVUPS X29, K1, mem
#define KEEP_1 KEEP((DI), Z0, Z1, Z2, Z3)
#define KEEP_2 KEEP_1; KEEP((DI)(R12*1), Z4, Z5, Z6, Z7)
#define KEEP_3 KEEP_2; KEEP((DI)(R12*2), Z8, Z9, Z10, Z11)
#define KEEP_4 KEEP_3; KEEP((R8), Z12, Z13, Z14, Z15)
#define KEEP_5 KEEP_4; KEEP((R8)(R12*1), Z16, Z17, Z18, Z19)
#define KEEP_6 KEEP_5; KEEP((R8)(R12*2), Z20, Z21, Z22, Z23)

// for i := range N { for r := range rows { dst[i*ldd+r] = sum of q[i*n+c] * row r, value c } }
// LOAD brings values of W bytes to floats. Four rows at a time; the last ones one by one, as four times the same row, so
// that additions go in the same order.
#define SCORES(LOAD, W, ZERO, QUERIES, KEEP) \
	MOVQ p+0(FP), R15; \
	MOVQ attend_dst(R15), DI; \
	MOVQ attend_ldd(R15), R12; \
	LEAQ (R12)(R12*2), R8; \
	ADDQ DI, R8; \
	MOVQ attend_rows(R15), SI; \
	MOVQ attend_n(R15), R13; \
	SHLQ $2, R13; \
	MOVQ attend_count(R15), DX; \
	MOVQ attend_stride(R15), R10; \
	LEAQ (R10)(R10*2), R11; \
	MOVQ $15, AX; \
	KMOVW AX, K1; \
	SUBQ $4, DX; \
	JGE keys; \
ones: \
	ADDQ $4, DX; \
	JZ done; \
	XORL R10, R10; \
	XORL R11, R11; \
	MOVQ $1, AX; \
	KMOVW AX, K1; \
keys: \
	ZERO; \
	MOVQ SI, AX; \
	MOVQ SI, R9; \
	ADDQ attend_ahead(R15), R9; \
	MOVQ attend_x(R15), BX; \
	LEAQ (BX)(R13*2), R14; \
	ADDQ R13, R14; \
	MOVQ attend_n(R15), CX; \
columns: \
	LOAD (AX), Z24; \
	LOAD (AX)(R10*1), Z25; \
	LOAD (AX)(R10*2), Z26; \
	LOAD (AX)(R11*1), Z27; \
	PREFETCHT1 (R9); \
	PREFETCHT1 (R9)(R10*1); \
	PREFETCHT1 (R9)(R10*2); \
	PREFETCHT1 (R9)(R11*1); \
	QUERIES; \
	ADDQ $(16*W), AX; \
	ADDQ $(16*W), R9; \
	ADDQ $64, BX; \
	ADDQ $64, R14; \
	SUBQ $16, CX; \
	JNZ columns; \
	KEEP; \
	TESTQ R10, R10; \
	JZ one; \
	ADDQ $16, DI; \
	ADDQ $16, R8; \
	LEAQ (SI)(R10*4), SI; \
	SUBQ $4, DX; \
	JGE keys; \
	JMP ones; \
one: \
	ADDQ $4, DI; \
	ADDQ $4, R8; \
	ADDQ attend_stride(R15), SI; \
	DECQ DX; \
	JNZ keys; \
done: \
	VZEROUPPER; \
	RET

// func scoresF16by1x512(p *attend)
TEXT ·scoresF16by1x512(SB), NOSPLIT, $0-8
	SCORES(VCVTPH2PS, 2, ZERO_1, QUERY_1, KEEP_1)

// func scoresF32by1x512(p *attend)
TEXT ·scoresF32by1x512(SB), NOSPLIT, $0-8
	SCORES(VMOVUPS, 4, ZERO_1, QUERY_1, KEEP_1)

// func scoresF16by2x512(p *attend)
TEXT ·scoresF16by2x512(SB), NOSPLIT, $0-8
	SCORES(VCVTPH2PS, 2, ZERO_2, QUERY_2, KEEP_2)

// func scoresF32by2x512(p *attend)
TEXT ·scoresF32by2x512(SB), NOSPLIT, $0-8
	SCORES(VMOVUPS, 4, ZERO_2, QUERY_2, KEEP_2)

// func scoresF16by3x512(p *attend)
TEXT ·scoresF16by3x512(SB), NOSPLIT, $0-8
	SCORES(VCVTPH2PS, 2, ZERO_3, QUERY_3, KEEP_3)

// func scoresF32by3x512(p *attend)
TEXT ·scoresF32by3x512(SB), NOSPLIT, $0-8
	SCORES(VMOVUPS, 4, ZERO_3, QUERY_3, KEEP_3)

// func scoresF16by4x512(p *attend)
TEXT ·scoresF16by4x512(SB), NOSPLIT, $0-8
	SCORES(VCVTPH2PS, 2, ZERO_4, QUERY_4, KEEP_4)

// func scoresF32by4x512(p *attend)
TEXT ·scoresF32by4x512(SB), NOSPLIT, $0-8
	SCORES(VMOVUPS, 4, ZERO_4, QUERY_4, KEEP_4)

// func scoresF16by5x512(p *attend)
TEXT ·scoresF16by5x512(SB), NOSPLIT, $0-8
	SCORES(VCVTPH2PS, 2, ZERO_5, QUERY_5, KEEP_5)

// func scoresF32by5x512(p *attend)
TEXT ·scoresF32by5x512(SB), NOSPLIT, $0-8
	SCORES(VMOVUPS, 4, ZERO_5, QUERY_5, KEEP_5)

// func scoresF16by6x512(p *attend)
TEXT ·scoresF16by6x512(SB), NOSPLIT, $0-8
	SCORES(VCVTPH2PS, 2, ZERO_6, QUERY_6, KEEP_6)

// func scoresF32by6x512(p *attend)
TEXT ·scoresF32by6x512(SB), NOSPLIT, $0-8
	SCORES(VMOVUPS, 4, ZERO_6, QUERY_6, KEEP_6)

// WEIGHT adds 64 columns of a row, times its weight, to a query's sum.
#define WEIGHT(mem, a, b, c, d) \
	VBROADCASTSS mem, Z28; \
	VFMADD231PS Z28, Z24, a; \
	VFMADD231PS Z28, Z25, b; \
	VFMADD231PS Z28, Z26, c; \
	VFMADD231PS Z28, Z27, d
#define WEIGHT_1 WEIGHT((BX), Z0, Z1, Z2, Z3)
#define WEIGHT_2 WEIGHT_1; WEIGHT((BX)(R13*1), Z4, Z5, Z6, Z7)
#define WEIGHT_3 WEIGHT_2; WEIGHT((BX)(R13*2), Z8, Z9, Z10, Z11)
#define WEIGHT_4 WEIGHT_3; WEIGHT((R14), Z12, Z13, Z14, Z15)
#define WEIGHT_5 WEIGHT_4; WEIGHT((R14)(R13*1), Z16, Z17, Z18, Z19)
#define WEIGHT_6 WEIGHT_5; WEIGHT((R14)(R13*2), Z20, Z21, Z22, Z23)

// TAKE and GIVE move 64 columns of sums from and to memory.
#define TAKE4(base, index, a, b, c, d) \
	VMOVUPS (base)(index), a; \
	VMOVUPS 64(base)(index), b; \
	VMOVUPS 128(base)(index), c; \
	VMOVUPS 192(base)(index), d
#define GIVE4(base, index, a, b, c, d) \
	VMOVUPS a, (base)(index); \
	VMOVUPS b, 64(base)(index); \
	VMOVUPS c, 128(base)(index); \
	VMOVUPS d, 192(base)(index)
#define TAKE_1 VMOVUPS (DI), Z0; VMOVUPS 64(DI), Z1; VMOVUPS 128(DI), Z2; VMOVUPS 192(DI), Z3
#define TAKE_2 TAKE_1; TAKE4(DI, R12*1, Z4, Z5, Z6, Z7)
#define TAKE_3 TAKE_2; TAKE4(DI, R12*2, Z8, Z9, Z10, Z11)
#define TAKE_4 TAKE_3; VMOVUPS (R8), Z12; VMOVUPS 64(R8), Z13; VMOVUPS 128(R8), Z14; VMOVUPS 192(R8), Z15
#define TAKE_5 TAKE_4; TAKE4(R8, R12*1, Z16, Z17, Z18, Z19)
#define TAKE_6 TAKE_5; TAKE4(R8, R12*2, Z20, Z21, Z22, Z23)
#define GIVE_1 VMOVUPS Z0, (DI); VMOVUPS Z1, 64(DI); VMOVUPS Z2, 128(DI); VMOVUPS Z3, 192(DI)
#define GIVE_2 GIVE_1; GIVE4(DI, R12*1, Z4, Z5, Z6, Z7)
#define GIVE_3 GIVE_2; GIVE4(DI, R12*2, Z8, Z9, Z10, Z11)
#define GIVE_4 GIVE_3; VMOVUPS Z12, (R8); VMOVUPS Z13, 64(R8); VMOVUPS Z14, 128(R8); VMOVUPS Z15, 192(R8)
#define GIVE_5 GIVE_4; GIVE4(R8, R12*1, Z16, Z17, Z18, Z19)
#define GIVE_6 GIVE_5; GIVE4(R8, R12*2, Z20, Z21, Z22, Z23)

// The same for 16 columns.
#define WEIGHT16_1 VBROADCASTSS (BX), Z28; VFMADD231PS Z28, Z24, Z0
#define WEIGHT16_2 WEIGHT16_1; VBROADCASTSS (BX)(R13*1), Z29; VFMADD231PS Z29, Z24, Z4
#define WEIGHT16_3 WEIGHT16_2; VBROADCASTSS (BX)(R13*2), Z30; VFMADD231PS Z30, Z24, Z8
#define WEIGHT16_4 WEIGHT16_3; VBROADCASTSS (R14), Z28; VFMADD231PS Z28, Z24, Z12
#define WEIGHT16_5 WEIGHT16_4; VBROADCASTSS (R14)(R13*1), Z29; VFMADD231PS Z29, Z24, Z16
#define WEIGHT16_6 WEIGHT16_5; VBROADCASTSS (R14)(R13*2), Z30; VFMADD231PS Z30, Z24, Z20
#define TAKE16_1 VMOVUPS (DI), Z0
#define TAKE16_2 TAKE16_1; VMOVUPS (DI)(R12*1), Z4
#define TAKE16_3 TAKE16_2; VMOVUPS (DI)(R12*2), Z8
#define TAKE16_4 TAKE16_3; VMOVUPS (R8), Z12
#define TAKE16_5 TAKE16_4; VMOVUPS (R8)(R12*1), Z16
#define TAKE16_6 TAKE16_5; VMOVUPS (R8)(R12*2), Z20
#define GIVE16_1 VMOVUPS Z0, (DI)
#define GIVE16_2 GIVE16_1; VMOVUPS Z4, (DI)(R12*1)
#define GIVE16_3 GIVE16_2; VMOVUPS Z8, (DI)(R12*2)
#define GIVE16_4 GIVE16_3; VMOVUPS Z12, (R8)
#define GIVE16_5 GIVE16_4; VMOVUPS Z16, (R8)(R12*1)
#define GIVE16_6 GIVE16_5; VMOVUPS Z20, (R8)(R12*2)

#define ROWS_FROM \
	MOVQ SI, AX; \
	MOVQ SI, R9; \
	ADDQ attend_ahead(R15), R9; \
	MOVQ attend_x(R15), BX; \
	LEAQ (BX)(R13*2), R14; \
	ADDQ R13, R14; \
	MOVQ attend_count(R15), CX

// for i := range N { for r := range rows { for c := range n { dst[i*ldd+c] += x[i*ldx+r] * row r, value c } } }
#define MIX(LOAD, W, TAKE, WEIGHTS, GIVE, TAKE16, WEIGHTS16, GIVE16) \
	MOVQ p+0(FP), R15; \
	MOVQ attend_dst(R15), DI; \
	MOVQ attend_ldd(R15), R12; \
	LEAQ (R12)(R12*2), R8; \
	ADDQ DI, R8; \
	MOVQ attend_rows(R15), SI; \
	MOVQ attend_n(R15), R11; \
	MOVQ attend_ldx(R15), R13; \
	MOVQ attend_stride(R15), R10; \
	SUBQ $64, R11; \
	JL narrow; \
wide: \
	TAKE; \
	ROWS_FROM; \
row: \
	LOAD (AX), Z24; \
	LOAD (16*W)(AX), Z25; \
	LOAD (32*W)(AX), Z26; \
	LOAD (48*W)(AX), Z27; \
	PREFETCHT1 (R9); \
	PREFETCHT1 64(R9); \
	WEIGHTS; \
	ADDQ R10, AX; \
	ADDQ R10, R9; \
	ADDQ $4, BX; \
	ADDQ $4, R14; \
	DECQ CX; \
	JNZ row; \
	GIVE; \
	ADDQ $256, DI; \
	ADDQ $256, R8; \
	ADDQ $(64*W), SI; \
	SUBQ $64, R11; \
	JGE wide; \
narrow: \
	ADDQ $64, R11; \
	JZ done; \
narrow16: \
	TAKE16; \
	ROWS_FROM; \
row16: \
	LOAD (AX), Z24; \
	PREFETCHT1 (R9); \
	WEIGHTS16; \
	ADDQ R10, AX; \
	ADDQ R10, R9; \
	ADDQ $4, BX; \
	ADDQ $4, R14; \
	DECQ CX; \
	JNZ row16; \
	GIVE16; \
	ADDQ $64, DI; \
	ADDQ $64, R8; \
	ADDQ $(16*W), SI; \
	SUBQ $16, R11; \
	JNZ narrow16; \
done: \
	VZEROUPPER; \
	RET

// func mixF16by1x512(p *attend)
TEXT ·mixF16by1x512(SB), NOSPLIT, $0-8
	MIX(VCVTPH2PS, 2, TAKE_1, WEIGHT_1, GIVE_1, TAKE16_1, WEIGHT16_1, GIVE16_1)

// func mixF32by1x512(p *attend)
TEXT ·mixF32by1x512(SB), NOSPLIT, $0-8
	MIX(VMOVUPS, 4, TAKE_1, WEIGHT_1, GIVE_1, TAKE16_1, WEIGHT16_1, GIVE16_1)

// func mixF16by2x512(p *attend)
TEXT ·mixF16by2x512(SB), NOSPLIT, $0-8
	MIX(VCVTPH2PS, 2, TAKE_2, WEIGHT_2, GIVE_2, TAKE16_2, WEIGHT16_2, GIVE16_2)

// func mixF32by2x512(p *attend)
TEXT ·mixF32by2x512(SB), NOSPLIT, $0-8
	MIX(VMOVUPS, 4, TAKE_2, WEIGHT_2, GIVE_2, TAKE16_2, WEIGHT16_2, GIVE16_2)

// func mixF16by3x512(p *attend)
TEXT ·mixF16by3x512(SB), NOSPLIT, $0-8
	MIX(VCVTPH2PS, 2, TAKE_3, WEIGHT_3, GIVE_3, TAKE16_3, WEIGHT16_3, GIVE16_3)

// func mixF32by3x512(p *attend)
TEXT ·mixF32by3x512(SB), NOSPLIT, $0-8
	MIX(VMOVUPS, 4, TAKE_3, WEIGHT_3, GIVE_3, TAKE16_3, WEIGHT16_3, GIVE16_3)

// func mixF16by4x512(p *attend)
TEXT ·mixF16by4x512(SB), NOSPLIT, $0-8
	MIX(VCVTPH2PS, 2, TAKE_4, WEIGHT_4, GIVE_4, TAKE16_4, WEIGHT16_4, GIVE16_4)

// func mixF32by4x512(p *attend)
TEXT ·mixF32by4x512(SB), NOSPLIT, $0-8
	MIX(VMOVUPS, 4, TAKE_4, WEIGHT_4, GIVE_4, TAKE16_4, WEIGHT16_4, GIVE16_4)

// func mixF16by5x512(p *attend)
TEXT ·mixF16by5x512(SB), NOSPLIT, $0-8
	MIX(VCVTPH2PS, 2, TAKE_5, WEIGHT_5, GIVE_5, TAKE16_5, WEIGHT16_5, GIVE16_5)

// func mixF32by5x512(p *attend)
TEXT ·mixF32by5x512(SB), NOSPLIT, $0-8
	MIX(VMOVUPS, 4, TAKE_5, WEIGHT_5, GIVE_5, TAKE16_5, WEIGHT16_5, GIVE16_5)

// func mixF16by6x512(p *attend)
TEXT ·mixF16by6x512(SB), NOSPLIT, $0-8
	MIX(VCVTPH2PS, 2, TAKE_6, WEIGHT_6, GIVE_6, TAKE16_6, WEIGHT16_6, GIVE16_6)

// func mixF32by6x512(p *attend)
TEXT ·mixF32by6x512(SB), NOSPLIT, $0-8
	MIX(VMOVUPS, 4, TAKE_6, WEIGHT_6, GIVE_6, TAKE16_6, WEIGHT16_6, GIVE16_6)
