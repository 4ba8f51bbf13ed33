#include "go_asm.h"
#include "textflag.h"

// Products of a slab with four or eight activation rows: see many.go.
//
// Registers: R8-R15 the activation rows, SI the slab, DX the chain, CX groups
// left, AX offset of the part's activations in an activation row, BX offset of
// its scale, DI offset of its sum over 16. Z0-Z7 hold the chain of each
// activation row, Z8-Z15 the whole numbers, Z16 weights, Z17 scales, Z18
// offsets.

// MAC multiplies four weights of each row, MAC4 16 of them, at off of the part.
#define MAC_4(at, off) \
	VMOVDQU64 at(SI), Z16; \
	VPDPBUSD.BCST off(R8)(AX*1), Z16, Z8; \
	VPDPBUSD.BCST off(R9)(AX*1), Z16, Z9; \
	VPDPBUSD.BCST off(R10)(AX*1), Z16, Z10; \
	VPDPBUSD.BCST off(R11)(AX*1), Z16, Z11
#define MAC4_4(at, off) MAC_4(at, off); MAC_4(at+64, off+4); MAC_4(at+128, off+8); MAC_4(at+192, off+12)
#define ZERO_4 \
	VPXOR X8, X8, X8; \
	VPXOR X9, X9, X9; \
	VPXOR X10, X10, X10; \
	VPXOR X11, X11, X11
#define NEG_4 \
	VPBROADCASTD record_neg(R8)(BX*1), Z8; \
	VPBROADCASTD record_neg(R9)(BX*1), Z9; \
	VPBROADCASTD record_neg(R10)(BX*1), Z10; \
	VPBROADCASTD record_neg(R11)(BX*1), Z11
#define NEG16_4 \
	VPBROADCASTD record_neg16(R8)(DI*1), Z8; \
	VPBROADCASTD record_neg16(R9)(DI*1), Z9; \
	VPBROADCASTD record_neg16(R10)(DI*1), Z10; \
	VPBROADCASTD record_neg16(R11)(DI*1), Z11
#define CHAIN_4(at) \
	VMOVUPS at(SI), Z17; \
	VMULPS.BCST record_d(R8)(BX*1), Z17, Z19; \
	VMULPS.BCST record_d(R9)(BX*1), Z17, Z20; \
	VMULPS.BCST record_d(R10)(BX*1), Z17, Z21; \
	VMULPS.BCST record_d(R11)(BX*1), Z17, Z22; \
	VCVTDQ2PS Z8, Z8; \
	VCVTDQ2PS Z9, Z9; \
	VCVTDQ2PS Z10, Z10; \
	VCVTDQ2PS Z11, Z11; \
	VFMADD231PS Z8, Z19, Z0; \
	VFMADD231PS Z9, Z20, Z1; \
	VFMADD231PS Z10, Z21, Z2; \
	VFMADD231PS Z11, Z22, Z3
#define OFFSETS_4(at) \
	VMOVUPS at(SI), Z18; \
	VFMADD231PS.BCST record_dsum(R8)(BX*1), Z18, Z0; \
	VFMADD231PS.BCST record_dsum(R9)(BX*1), Z18, Z1; \
	VFMADD231PS.BCST record_dsum(R10)(BX*1), Z18, Z2; \
	VFMADD231PS.BCST record_dsum(R11)(BX*1), Z18, Z3
#define OFFSETS16_4(at) \
	VMOVUPS at(SI), Z18; \
	VPBROADCASTD record_neg16(R8)(DI*1), Z8; \
	VPSRAD $7, Z8, Z8; \
	VCVTDQ2PS Z8, Z8; \
	VMULPS.BCST record_d(R8)(BX*1), Z8, Z8; \
	VFNMADD231PS Z8, Z18, Z0; \
	VPBROADCASTD record_neg16(R9)(DI*1), Z9; \
	VPSRAD $7, Z9, Z9; \
	VCVTDQ2PS Z9, Z9; \
	VMULPS.BCST record_d(R9)(BX*1), Z9, Z9; \
	VFNMADD231PS Z9, Z18, Z1; \
	VPBROADCASTD record_neg16(R10)(DI*1), Z10; \
	VPSRAD $7, Z10, Z10; \
	VCVTDQ2PS Z10, Z10; \
	VMULPS.BCST record_d(R10)(BX*1), Z10, Z10; \
	VFNMADD231PS Z10, Z18, Z2; \
	VPBROADCASTD record_neg16(R11)(DI*1), Z11; \
	VPSRAD $7, Z11, Z11; \
	VCVTDQ2PS Z11, Z11; \
	VMULPS.BCST record_d(R11)(BX*1), Z11, Z11; \
	VFNMADD231PS Z11, Z18, Z3
#define CLEAR_4 \
	VPXOR X0, X0, X0; \
	VPXOR X1, X1, X1; \
	VPXOR X2, X2, X2; \
	VPXOR X3, X3, X3
#define ADD_4 \
	VADDPS 0(BX), Z0, Z0; \
	VADDPS 64(BX), Z1, Z1; \
	VADDPS 128(BX), Z2, Z2; \
	VADDPS 192(BX), Z3, Z3
#define KEEP_4 \
	VMOVUPS Z0, 0(BX); \
	VMOVUPS Z1, 64(BX); \
	VMOVUPS Z2, 128(BX); \
	VMOVUPS Z3, 192(BX)
#define TAKE_4 \
	MOVQ (slab_x+0)(DI), R8; \
	MOVQ (slab_x+8)(DI), R9; \
	MOVQ (slab_x+16)(DI), R10; \
	MOVQ (slab_x+24)(DI), R11
#define MAC_8(at, off) \
	VMOVDQU64 at(SI), Z16; \
	VPDPBUSD.BCST off(R8)(AX*1), Z16, Z8; \
	VPDPBUSD.BCST off(R9)(AX*1), Z16, Z9; \
	VPDPBUSD.BCST off(R10)(AX*1), Z16, Z10; \
	VPDPBUSD.BCST off(R11)(AX*1), Z16, Z11; \
	VPDPBUSD.BCST off(R12)(AX*1), Z16, Z12; \
	VPDPBUSD.BCST off(R13)(AX*1), Z16, Z13; \
	VPDPBUSD.BCST off(R14)(AX*1), Z16, Z14; \
	VPDPBUSD.BCST off(R15)(AX*1), Z16, Z15
#define MAC4_8(at, off) MAC_8(at, off); MAC_8(at+64, off+4); MAC_8(at+128, off+8); MAC_8(at+192, off+12)
#define ZERO_8 \
	VPXOR X8, X8, X8; \
	VPXOR X9, X9, X9; \
	VPXOR X10, X10, X10; \
	VPXOR X11, X11, X11; \
	VPXOR X12, X12, X12; \
	VPXOR X13, X13, X13; \
	VPXOR X14, X14, X14; \
	VPXOR X15, X15, X15
#define NEG_8 \
	VPBROADCASTD record_neg(R8)(BX*1), Z8; \
	VPBROADCASTD record_neg(R9)(BX*1), Z9; \
	VPBROADCASTD record_neg(R10)(BX*1), Z10; \
	VPBROADCASTD record_neg(R11)(BX*1), Z11; \
	VPBROADCASTD record_neg(R12)(BX*1), Z12; \
	VPBROADCASTD record_neg(R13)(BX*1), Z13; \
	VPBROADCASTD record_neg(R14)(BX*1), Z14; \
	VPBROADCASTD record_neg(R15)(BX*1), Z15
#define NEG16_8 \
	VPBROADCASTD record_neg16(R8)(DI*1), Z8; \
	VPBROADCASTD record_neg16(R9)(DI*1), Z9; \
	VPBROADCASTD record_neg16(R10)(DI*1), Z10; \
	VPBROADCASTD record_neg16(R11)(DI*1), Z11; \
	VPBROADCASTD record_neg16(R12)(DI*1), Z12; \
	VPBROADCASTD record_neg16(R13)(DI*1), Z13; \
	VPBROADCASTD record_neg16(R14)(DI*1), Z14; \
	VPBROADCASTD record_neg16(R15)(DI*1), Z15
#define CHAIN_8(at) \
	VMOVUPS at(SI), Z17; \
	VMULPS.BCST record_d(R8)(BX*1), Z17, Z19; \
	VMULPS.BCST record_d(R9)(BX*1), Z17, Z20; \
	VMULPS.BCST record_d(R10)(BX*1), Z17, Z21; \
	VMULPS.BCST record_d(R11)(BX*1), Z17, Z22; \
	VMULPS.BCST record_d(R12)(BX*1), Z17, Z23; \
	VMULPS.BCST record_d(R13)(BX*1), Z17, Z24; \
	VMULPS.BCST record_d(R14)(BX*1), Z17, Z25; \
	VMULPS.BCST record_d(R15)(BX*1), Z17, Z26; \
	VCVTDQ2PS Z8, Z8; \
	VCVTDQ2PS Z9, Z9; \
	VCVTDQ2PS Z10, Z10; \
	VCVTDQ2PS Z11, Z11; \
	VCVTDQ2PS Z12, Z12; \
	VCVTDQ2PS Z13, Z13; \
	VCVTDQ2PS Z14, Z14; \
	VCVTDQ2PS Z15, Z15; \
	VFMADD231PS Z8, Z19, Z0; \
	VFMADD231PS Z9, Z20, Z1; \
	VFMADD231PS Z10, Z21, Z2; \
	VFMADD231PS Z11, Z22, Z3; \
	VFMADD231PS Z12, Z23, Z4; \
	VFMADD231PS Z13, Z24, Z5; \
	VFMADD231PS Z14, Z25, Z6; \
	VFMADD231PS Z15, Z26, Z7
#define OFFSETS_8(at) \
	VMOVUPS at(SI), Z18; \
	VFMADD231PS.BCST record_dsum(R8)(BX*1), Z18, Z0; \
	VFMADD231PS.BCST record_dsum(R9)(BX*1), Z18, Z1; \
	VFMADD231PS.BCST record_dsum(R10)(BX*1), Z18, Z2; \
	VFMADD231PS.BCST record_dsum(R11)(BX*1), Z18, Z3; \
	VFMADD231PS.BCST record_dsum(R12)(BX*1), Z18, Z4; \
	VFMADD231PS.BCST record_dsum(R13)(BX*1), Z18, Z5; \
	VFMADD231PS.BCST record_dsum(R14)(BX*1), Z18, Z6; \
	VFMADD231PS.BCST record_dsum(R15)(BX*1), Z18, Z7
#define OFFSETS16_8(at) \
	VMOVUPS at(SI), Z18; \
	VPBROADCASTD record_neg16(R8)(DI*1), Z8; \
	VPSRAD $7, Z8, Z8; \
	VCVTDQ2PS Z8, Z8; \
	VMULPS.BCST record_d(R8)(BX*1), Z8, Z8; \
	VFNMADD231PS Z8, Z18, Z0; \
	VPBROADCASTD record_neg16(R9)(DI*1), Z9; \
	VPSRAD $7, Z9, Z9; \
	VCVTDQ2PS Z9, Z9; \
	VMULPS.BCST record_d(R9)(BX*1), Z9, Z9; \
	VFNMADD231PS Z9, Z18, Z1; \
	VPBROADCASTD record_neg16(R10)(DI*1), Z10; \
	VPSRAD $7, Z10, Z10; \
	VCVTDQ2PS Z10, Z10; \
	VMULPS.BCST record_d(R10)(BX*1), Z10, Z10; \
	VFNMADD231PS Z10, Z18, Z2; \
	VPBROADCASTD record_neg16(R11)(DI*1), Z11; \
	VPSRAD $7, Z11, Z11; \
	VCVTDQ2PS Z11, Z11; \
	VMULPS.BCST record_d(R11)(BX*1), Z11, Z11; \
	VFNMADD231PS Z11, Z18, Z3; \
	VPBROADCASTD record_neg16(R12)(DI*1), Z12; \
	VPSRAD $7, Z12, Z12; \
	VCVTDQ2PS Z12, Z12; \
	VMULPS.BCST record_d(R12)(BX*1), Z12, Z12; \
	VFNMADD231PS Z12, Z18, Z4; \
	VPBROADCASTD record_neg16(R13)(DI*1), Z13; \
	VPSRAD $7, Z13, Z13; \
	VCVTDQ2PS Z13, Z13; \
	VMULPS.BCST record_d(R13)(BX*1), Z13, Z13; \
	VFNMADD231PS Z13, Z18, Z5; \
	VPBROADCASTD record_neg16(R14)(DI*1), Z14; \
	VPSRAD $7, Z14, Z14; \
	VCVTDQ2PS Z14, Z14; \
	VMULPS.BCST record_d(R14)(BX*1), Z14, Z14; \
	VFNMADD231PS Z14, Z18, Z6; \
	VPBROADCASTD record_neg16(R15)(DI*1), Z15; \
	VPSRAD $7, Z15, Z15; \
	VCVTDQ2PS Z15, Z15; \
	VMULPS.BCST record_d(R15)(BX*1), Z15, Z15; \
	VFNMADD231PS Z15, Z18, Z7
#define CLEAR_8 \
	VPXOR X0, X0, X0; \
	VPXOR X1, X1, X1; \
	VPXOR X2, X2, X2; \
	VPXOR X3, X3, X3; \
	VPXOR X4, X4, X4; \
	VPXOR X5, X5, X5; \
	VPXOR X6, X6, X6; \
	VPXOR X7, X7, X7
#define ADD_8 \
	VADDPS 0(BX), Z0, Z0; \
	VADDPS 64(BX), Z1, Z1; \
	VADDPS 128(BX), Z2, Z2; \
	VADDPS 192(BX), Z3, Z3; \
	VADDPS 256(BX), Z4, Z4; \
	VADDPS 320(BX), Z5, Z5; \
	VADDPS 384(BX), Z6, Z6; \
	VADDPS 448(BX), Z7, Z7
#define KEEP_8 \
	VMOVUPS Z0, 0(BX); \
	VMOVUPS Z1, 64(BX); \
	VMOVUPS Z2, 128(BX); \
	VMOVUPS Z3, 192(BX); \
	VMOVUPS Z4, 256(BX); \
	VMOVUPS Z5, 320(BX); \
	VMOVUPS Z6, 384(BX); \
	VMOVUPS Z7, 448(BX)
#define TAKE_8 \
	MOVQ (slab_x+0)(DI), R8; \
	MOVQ (slab_x+8)(DI), R9; \
	MOVQ (slab_x+16)(DI), R10; \
	MOVQ (slab_x+24)(DI), R11; \
	MOVQ (slab_x+32)(DI), R12; \
	MOVQ (slab_x+40)(DI), R13; \
	MOVQ (slab_x+48)(DI), R14; \
	MOVQ (slab_x+56)(DI), R15

// The loop over chains and groups. Chains are added as they come, like a binary
// count: chain c joins what stands on each level whose bit is set in c. places
// has for each chain where in a record its weights, scale and sum are.
#define CHAINS(TAKE, CLEAR, places) \
	MOVQ p+0(FP), DI; \
	MOVQ slab_parts(DI), SI; \
	TAKE; \
	XORL DX, DX; \
chain: \
	CLEAR; \
	LEAQ places(SB), CX; \
	MOVQ DX, BX; \
	SHLQ $5, BX; \
	ADDQ BX, CX; \
	MOVQ (CX), AX; \
	MOVQ 8(CX), BX; \
	MOVQ 16(CX), DI; \
	MOVQ p+0(FP), CX; \
	MOVQ slab_groups(CX), CX; \
part:

#define CHAINS_END(bytes, chains, ADD, KEEP) \
	ADDQ $record__size, AX; \
	ADDQ $record__size, BX; \
	ADDQ $record__size, DI; \
	ADDQ $bytes, SI; \
	DECQ CX; \
	JNZ part; \
	MOVQ p+0(FP), BX; \
	LEAQ slab_levels(BX), BX; \
	MOVQ DX, CX; \
join: \
	TESTQ $1, CX; \
	JZ keep; \
	ADD; \
	ADDQ $512, BX; \
	SHRQ $1, CX; \
	JMP join; \
keep: \
	KEEP; \
	INCQ DX; \
	CMPQ DX, $chains; \
	JB chain; \
	MOVQ p+0(FP), DI; \
	KMOVW slab_mask(DI), K1; \
	MOVQ slab_dst(DI), AX; \
	MOVQ slab_ldd(DI), BX; \
	MOVQ slab_t(DI), CX

// OUT stores the results of one activation row, while there are more.
#define OUT(z) \
	VMOVUPS z, K1, (AX); \
	ADDQ BX, AX; \
	DECQ CX; \
	JZ done
#define OUT_4 OUT(Z0); OUT(Z1); OUT(Z2); OUT(Z3)
#define OUT_8 OUT_4; OUT(Z4); OUT(Z5); OUT(Z6); OUT(Z7)
#define DONE \
done: \
	VZEROUPPER; \
	RET

// func slab32by8x512(p *slab)
TEXT ·slab32by8x512(SB), NOSPLIT, $0-8
	CHAINS(TAKE_8, CLEAR_8, ·places32)
	NEG_8
	MAC4_8(0, 0)
	MAC4_8(256, 16)
	CHAIN_8(512)
	CHAINS_END(576, 8, ADD_8, KEEP_8)
	OUT_8
	DONE

// func slab32Offsetsby8x512(p *slab)
TEXT ·slab32Offsetsby8x512(SB), NOSPLIT, $0-8
	CHAINS(TAKE_8, CLEAR_8, ·places32)
	ZERO_8
	MAC4_8(0, 0)
	MAC4_8(256, 16)
	CHAIN_8(512)
	OFFSETS_8(576)
	CHAINS_END(640, 8, ADD_8, KEEP_8)
	OUT_8
	DONE

// func slab16by8x512(p *slab)
TEXT ·slab16by8x512(SB), NOSPLIT, $0-8
	CHAINS(TAKE_8, CLEAR_8, ·places16)
	NEG16_8
	MAC4_8(0, 0)
	CHAIN_8(256)
	CHAINS_END(320, 16, ADD_8, KEEP_8)
	OUT_8
	DONE

// func slab16Offsetsby8x512(p *slab)
TEXT ·slab16Offsetsby8x512(SB), NOSPLIT, $0-8
	CHAINS(TAKE_8, CLEAR_8, ·places16)
	ZERO_8
	MAC4_8(0, 0)
	CHAIN_8(256)
	OFFSETS16_8(320)
	CHAINS_END(384, 16, ADD_8, KEEP_8)
	OUT_8
	DONE

// func slab32by4x512(p *slab)
TEXT ·slab32by4x512(SB), NOSPLIT, $0-8
	CHAINS(TAKE_4, CLEAR_4, ·places32)
	NEG_4
	MAC4_4(0, 0)
	MAC4_4(256, 16)
	CHAIN_4(512)
	CHAINS_END(576, 8, ADD_4, KEEP_4)
	OUT_4
	DONE

// func slab32Offsetsby4x512(p *slab)
TEXT ·slab32Offsetsby4x512(SB), NOSPLIT, $0-8
	CHAINS(TAKE_4, CLEAR_4, ·places32)
	ZERO_4
	MAC4_4(0, 0)
	MAC4_4(256, 16)
	CHAIN_4(512)
	OFFSETS_4(576)
	CHAINS_END(640, 8, ADD_4, KEEP_4)
	OUT_4
	DONE

// func slab16by4x512(p *slab)
TEXT ·slab16by4x512(SB), NOSPLIT, $0-8
	CHAINS(TAKE_4, CLEAR_4, ·places16)
	NEG16_4
	MAC4_4(0, 0)
	CHAIN_4(256)
	CHAINS_END(320, 16, ADD_4, KEEP_4)
	OUT_4
	DONE

// func slab16Offsetsby4x512(p *slab)
TEXT ·slab16Offsetsby4x512(SB), NOSPLIT, $0-8
	CHAINS(TAKE_4, CLEAR_4, ·places16)
	ZERO_4
	MAC4_4(0, 0)
	CHAIN_4(256)
	OFFSETS16_4(320)
	CHAINS_END(384, 16, ADD_4, KEEP_4)
	OUT_4
	DONE
