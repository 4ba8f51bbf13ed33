#include "go_asm.h"
#include "textflag.h"
#include "slab_avx2_amd64.h"
#include "avxvnni_amd64.h"

// MACS_V multiplies 16 weights of each row, at off of the part. Y8-Y11 take every
// other four weights, so that an addition need not wait for the one before.
#define PAIR_0(at, off) \
	VMOVDQU at(SI), Y12; \
	VMOVDQU (at+32)(SI), Y15; \
	VPBROADCASTD off(R8)(AX*1), Y13; \
	VNNI(13, 12, 4); \
	VPXOR Y8, Y8, Y8; \
	VPBROADCASTD (off+4)(R8)(AX*1), Y13; \
	VNNI(13, 15, 8); \
	VPBROADCASTD off(R9)(AX*1), Y13; \
	VNNI(13, 12, 5); \
	VPXOR Y9, Y9, Y9; \
	VPBROADCASTD (off+4)(R9)(AX*1), Y13; \
	VNNI(13, 15, 9); \
	VPBROADCASTD off(R10)(AX*1), Y13; \
	VNNI(13, 12, 6); \
	VPXOR Y10, Y10, Y10; \
	VPBROADCASTD (off+4)(R10)(AX*1), Y13; \
	VNNI(13, 15, 10); \
	VPBROADCASTD off(R11)(AX*1), Y13; \
	VNNI(13, 12, 7); \
	VPXOR Y11, Y11, Y11; \
	VPBROADCASTD (off+4)(R11)(AX*1), Y13; \
	VNNI(13, 15, 11)
#define PAIR(at, off) \
	VMOVDQU at(SI), Y12; \
	VMOVDQU (at+32)(SI), Y15; \
	VPBROADCASTD off(R8)(AX*1), Y13; \
	VNNI(13, 12, 4); \
	VPBROADCASTD (off+4)(R8)(AX*1), Y13; \
	VNNI(13, 15, 8); \
	VPBROADCASTD off(R9)(AX*1), Y13; \
	VNNI(13, 12, 5); \
	VPBROADCASTD (off+4)(R9)(AX*1), Y13; \
	VNNI(13, 15, 9); \
	VPBROADCASTD off(R10)(AX*1), Y13; \
	VNNI(13, 12, 6); \
	VPBROADCASTD (off+4)(R10)(AX*1), Y13; \
	VNNI(13, 15, 10); \
	VPBROADCASTD off(R11)(AX*1), Y13; \
	VNNI(13, 12, 7); \
	VPBROADCASTD (off+4)(R11)(AX*1), Y13; \
	VNNI(13, 15, 11)
#define MACS_V16(at, off) PAIR_0(at, off); PAIR((at+64), (off+8))
#define MACS_V32(at, off) MACS_V16(at, off); PAIR((at+128), (off+16)); PAIR((at+192), (off+24))
#define BOTH \
	VPADDD Y8, Y4, Y4; \
	VPADDD Y9, Y5, Y5; \
	VPADDD Y10, Y6, Y6; \
	VPADDD Y11, Y7, Y7

// func slab32by4xVNNI(p *slab)
TEXT ·slab32by4xVNNI(SB), NOSPLIT, $0-8
	CHAINS(·places32)
	SHIFT32
	MACS_V32(0, 0)
	BOTH
	CHAIN(256)
	CHAINS_END(288, 8)

// func slab32Offsetsby4xVNNI(p *slab)
TEXT ·slab32Offsetsby4xVNNI(SB), NOSPLIT, $0-8
	CHAINS(·places32)
	ZERO
	MACS_V32(0, 0)
	BOTH
	CHAIN(256)
	OFFSETS32(288)
	CHAINS_END(320, 8)

// func slab16by4xVNNI(p *slab)
TEXT ·slab16by4xVNNI(SB), NOSPLIT, $0-8
	CHAINS(·places16)
	SHIFT16
	MACS_V16(0, 0)
	BOTH
	CHAIN(128)
	CHAINS_END(160, 16)

// func slab16Offsetsby4xVNNI(p *slab)
TEXT ·slab16Offsetsby4xVNNI(SB), NOSPLIT, $0-8
	CHAINS(·places16)
	ZERO
	MACS_V16(0, 0)
	BOTH
	CHAIN(128)
	OFFSETS16(160)
	CHAINS_END(192, 16)
