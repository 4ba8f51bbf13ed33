// Woven rows (woven.go) on AVX-512. A W_ unpack brings the 256 weights at (SI) to
// Z0-Z3, register k to register k, as bytes without sign, their scales to Y4 (eight)
// or Z4 (sixteen) and offsets to Y5 or Z5, all by lane. What they are too large by
// is in the comment. Z16-Z31 hold constants, Z6-Z14 and R13, R15 are free.

#define WCONST(at, z) VMOVDQU64 ·c512+at(SB), z

// WNIBBLES takes the nibbles at (SI)+at.
#define WNIBBLES_CONSTS \
	WCONST(consts512_high, Z30); \
	WCONST(consts512_fifteen, Z31)
#define WNIBBLES(at) \
	VMOVDQU64 at(SI), Z1; \
	VMOVDQU64 (at+64)(SI), Z3; \
	VPANDD Z1, Z31, Z0; \
	VPANDD Z3, Z31, Z2; \
	VGF2P8AFFINEQB $0, Z30, Z1, Z1; \
	VGF2P8AFFINEQB $0, Z30, Z3, Z3

// WFIFTH adds 16 where the bits at (SI)+at are set.
#define WFIFTH_CONSTS \
	WNIBBLES_CONSTS; \
	WCONST(consts512_fifth, Z20); \
	WCONST((consts512_fifth+64), Z21); \
	WCONST((consts512_fifth+128), Z22); \
	WCONST((consts512_fifth+192), Z23)
#define WFIFTH(at) \
	VBROADCASTI64X4 at(SI), Z6; \
	VGF2P8AFFINEQB $0, Z20, Z6, Z8; \
	VGF2P8AFFINEQB $0, Z21, Z6, Z9; \
	VGF2P8AFFINEQB $0, Z22, Z6, Z10; \
	VGF2P8AFFINEQB $0, Z23, Z6, Z11; \
	WXOR(Z8, Z9, Z10, Z11)
#define WXOR(a, b, c, d) \
	VPXORD a, Z0, Z0; \
	VPXORD b, Z1, Z1; \
	VPXORD c, Z2, Z2; \
	VPXORD d, Z3, Z3

// WLEVELS looks numbers up in the table in Z28.
#define WLEVELS \
	VPSHUFB Z0, Z28, Z0; \
	VPSHUFB Z1, Z28, Z1; \
	VPSHUFB Z2, Z28, Z2; \
	VPSHUFB Z3, Z28, Z3

// WSIXES takes sixes and their halves, scales and offsets.
#define WSIXES_CONSTS \
	WCONST(consts512_sixes, Z24); \
	WCONST(consts512_sixBits, Z25); \
	WCONST(consts512_sixHalves, Z26)
#define WSIXES \
	VMOVDQU (SI), X4; \
	VPMULTISHIFTQB X4, X24, X5; \
	VPERMW Y4, Y26, Y6; \
	VPANDD X25, X5, X5; \
	VPMOVZXBD X5, Z5; \
	VCVTPH2PS Y6, Z6; \
	VCVTDQ2PS Z5, Z5; \
	VMULPS Z6, Z5, Z4; \
	VEXTRACTF64X4 $1, Z4, Y5

// 8 too large
#define W4_0_CONSTS WNIBBLES_CONSTS
#define W4_0 \
	VCVTPH2PS (SI), Y4; \
	WNIBBLES(16)

// right, as all with offsets
#define W4_1_CONSTS WNIBBLES_CONSTS
#define W4_1 \
	VCVTPH2PS (SI), Y4; \
	VCVTPH2PS 16(SI), Y5; \
	WNIBBLES(32)

// 16 too large
#define W5_0_CONSTS WFIFTH_CONSTS
#define W5_0 \
	VCVTPH2PS (SI), Y4; \
	WNIBBLES(16); \
	WFIFTH(144)

#define W5_1_CONSTS WFIFTH_CONSTS
#define W5_1 \
	VCVTPH2PS (SI), Y4; \
	VCVTPH2PS 16(SI), Y5; \
	WNIBBLES(32); \
	WFIFTH(160)

// 128 too large
#define W8_0_CONSTS WCONST(consts512_flip, Z30)
#define W8_0 \
	VCVTPH2PS (SI), Y4; \
	VPXORD 16(SI), Z30, Z0; \
	VPXORD 80(SI), Z30, Z1; \
	VPXORD 144(SI), Z30, Z2; \
	VPXORD 208(SI), Z30, Z3

#define WPAIRS_CONSTS WCONST(consts512_three, Z31)
#define WPAIRS(at) \
	VMOVDQU64 at(SI), Z0; \
	VPSRLW $2, Z0, Z1; \
	VPSRLW $4, Z0, Z2; \
	VPSRLW $6, Z0, Z3; \
	VPANDD Z0, Z31, Z0; \
	VPANDD Z1, Z31, Z1; \
	VPANDD Z2, Z31, Z2; \
	VPANDD Z3, Z31, Z3

#define W2_K_CONSTS \
	WPAIRS_CONSTS; \
	WCONST(consts512_fifteenD, Z30)
#define W2_K \
	VPMOVZXBD (SI), Z5; \
	VPBROADCASTW 80(SI), Y6; \
	VPBROADCASTW 82(SI), Y7; \
	VPANDD Z30, Z5, Z4; \
	VPSRLD $4, Z5, Z5; \
	VCVTPH2PS Y6, Z6; \
	VCVTPH2PS Y7, Z7; \
	VCVTDQ2PS Z4, Z4; \
	VCVTDQ2PS Z5, Z5; \
	VMULPS Z6, Z4, Z4; \
	VMULPS Z7, Z5, Z5; \
	WPAIRS(16)

// 128 too large: the third bits as in CONSTS_Q3_K
#define W3_K_CONSTS \
	WPAIRS_CONSTS; \
	WCONST(consts512_third, Z20); \
	WCONST((consts512_third+64), Z21); \
	WCONST((consts512_third+128), Z22); \
	WCONST((consts512_third+192), Z23); \
	WCONST(consts512_sixes, Z24); \
	WCONST(consts512_sixBits, Z25); \
	WCONST(consts512_sixPlaces, Z26); \
	MOVL $32, AX; \
	VPBROADCASTB AX, X27
#define W3_K \
	WPAIRS(0); \
	VBROADCASTI64X4 64(SI), Z6; \
	VGF2P8AFFINEQB $0x7c, Z20, Z6, Z8; \
	VGF2P8AFFINEQB $0x7c, Z21, Z6, Z9; \
	VGF2P8AFFINEQB $0x7c, Z22, Z6, Z10; \
	VGF2P8AFFINEQB $0x7c, Z23, Z6, Z11; \
	WXOR(Z8, Z9, Z10, Z11); \
	VMOVDQU 94(SI), X4; \
	VPSHUFB X26, X4, X4; \
	VPMULTISHIFTQB X4, X24, X4; \
	VPANDD X25, X4, X4; \
	VPSUBB X27, X4, X4; \
	VPMOVSXBD X4, Z4; \
	VPBROADCASTW 108(SI), Y6; \
	VCVTPH2PS Y6, Z6; \
	VCVTDQ2PS Z4, Z4; \
	VMULPS Z6, Z4, Z4

#define W4_K_CONSTS \
	WNIBBLES_CONSTS; \
	WSIXES_CONSTS
#define W4_K \
	WSIXES; \
	WNIBBLES(16)

#define W5_K_CONSTS \
	WFIFTH_CONSTS; \
	WSIXES_CONSTS
#define W5_K \
	WSIXES; \
	WNIBBLES(16); \
	WFIFTH(144)

// 32 too large
#define W6_K_CONSTS \
	WNIBBLES_CONSTS; \
	WCONST(consts512_top2, Z29)
#define W6_K \
	WNIBBLES(0); \
	VMOVDQU64 128(SI), Z8; \
	VPMOVSXBD 192(SI), Z4; \
	VPBROADCASTW 208(SI), Y6; \
	VPSLLW $4, Z8, Z9; \
	VPSLLW $2, Z8, Z10; \
	VPSRLW $2, Z8, Z11; \
	VPTERNLOGD $0xF8, Z29, Z9, Z0; \
	VPTERNLOGD $0xF8, Z29, Z10, Z1; \
	VPTERNLOGD $0xF8, Z29, Z8, Z2; \
	VPTERNLOGD $0xF8, Z29, Z11, Z3; \
	VCVTPH2PS Y6, Z6; \
	VCVTDQ2PS Z4, Z4; \
	VMULPS Z6, Z4, Z4

// 128 too large, as all with tables
#define WLEVELS_CONSTS(table) \
	WNIBBLES_CONSTS; \
	WCONST(table, Z28)
#define W4_NL \
	W4_0; \
	WLEVELS

#define W4_XS_CONSTS \
	WLEVELS_CONSTS(consts512_uneven); \
	WCONST(consts512_sixes, Z24); \
	WCONST(consts512_sixBits, Z25); \
	MOVL $32, AX; \
	VPBROADCASTB AX, X27
#define W4_XS \
	VMOVQ (SI), X4; \
	VPMULTISHIFTQB X4, X24, X4; \
	VPBROADCASTW 6(SI), X5; \
	VPANDD X25, X4, X4; \
	VPSUBB X27, X4, X4; \
	VPMOVSXBD X4, Y4; \
	VCVTPH2PS X5, Y5; \
	VCVTDQ2PS Y4, Y4; \
	VMULPS Y5, Y4, Y4; \
	WNIBBLES(8); \
	WLEVELS

// The scale is 2^(e-128): see formats_small_avx512_amd64.h.
#define WMX_CONSTS \
	WLEVELS_CONSTS(consts512_e2m1); \
	MOVL $1, AX; \
	VPBROADCASTD AX, Y25; \
	MOVL $2, AX; \
	VPBROADCASTD AX, Y26; \
	MOVL $0x200000, AX; \
	VPBROADCASTD AX, Y27
#define WMX \
	VPMOVZXBD (SI), Y6; \
	VPSUBD Y25, Y6, Y4; \
	VPSLLD $23, Y4, Y4; \
	VPCMPUD $1, Y26, Y6, K3; \
	VPSLLVD Y6, Y27, K3, Y4; \
	WNIBBLES(8); \
	WLEVELS

#define WGRID3_CONSTS(table) \
	WLEVELS_CONSTS(table); \
	MOVL $1, AX; \
	VPBROADCASTD AX, Y25; \
	WCONST(consts512_fours, Z26); \
	WCONST(consts512_fifteenD, Z27)
#define WGRID3 \
	VPBROADCASTD 4(SI), Y4; \
	VBROADCASTSS (SI), Y5; \
	VPSRLVD Y26, Y4, Y4; \
	VPANDD Y27, Y4, Y4; \
	VPADDD Y4, Y4, Y4; \
	VPADDD Y25, Y4, Y4; \
	VCVTDQ2PS Y4, Y4; \
	VMULPS Y5, Y4, Y4; \
	WNIBBLES(8); \
	WLEVELS

// Z8 before the products: INIT_0 for weights that are right, INIT_128 and INIT_
// for those that are 128 or 128>>n too large.
#define INIT_0 VPXOR X8, X8, X8
#define INIT_128 VMOVDQU64 record_negW(AX), Z8
#define INIT_8 VPSRAD $4, record_negW(AX), Z8
#define INIT_16 VPSRAD $3, record_negW(AX), Z8
#define INIT_32 VPSRAD $2, record_negW(AX), Z8

// WDOT multiplies with the record at AX: sums of 16 in Z8. WDOT8 goes on to sums
// of 32 in Y8.
#define WDOT(INIT) \
	INIT; \
	VPXOR X9, X9, X9; \
	VPDPBUSD record_woven(AX), Z0, Z8; \
	VPDPBUSD (record_woven+64)(AX), Z1, Z9; \
	VPDPBUSD (record_woven+128)(AX), Z2, Z8; \
	VPDPBUSD (record_woven+192)(AX), Z3, Z9; \
	VPADDD Z9, Z8, Z8
#define WDOT8(INIT) \
	WDOT(INIT); \
	VEXTRACTI64X4 $1, Z8, Y9; \
	VPADDD Y9, Y8, Y8

// WCHAIN takes the sums to the chains in Y15 (Z15).
#define WCHAIN8 \
	VMULPS record_d(AX), Y4, Y10; \
	VCVTDQ2PS Y8, Y8; \
	VFMADD231PS Y10, Y8, Y15
#define WCHAIN8_LESS \
	WCHAIN8; \
	VFNMADD231PS record_dsum(AX), Y5, Y15
#define WCHAIN8_MORE \
	WCHAIN8; \
	VFMADD231PS record_dsum(AX), Y5, Y15
#define WCHAIN16 \
	VBROADCASTF64X4 record_d(AX), Z9; \
	VCVTDQ2PS Z8, Z8; \
	VMULPS Z9, Z4, Z10; \
	VFMADD231PS Z10, Z8, Z15
#define WCHAIN16_LESS \
	WCHAIN16; \
	VPSRAD $7, record_negW(AX), Z11; \
	VCVTDQ2PS Z11, Z11; \
	VMULPS Z11, Z9, Z11; \
	VFMADD231PS Z11, Z5, Z15

// The frames. With one activation row the chains stay in Z15 and AX is the record;
// with more the frame of frame_amd64.h is used, chains in memory.
#define WEND(FOLD, bytes) \
	ADDQ $record__size, AX; \
	ADDQ $bytes, SI; \
	DECQ CX; \
	JNZ one; \
	FOLD; \
	VEXTRACTF128 $1, Y15, X0; \
	VADDPS X15, X0, X0; \
	VMOVSHDUP X0, X1; \
	VADDPS X1, X0, X0; \
	VPERMILPD $1, X0, X1; \
	VADDSS X1, X0, X0; \
	VMOVSS X0, (BX); \
	ADDQ $4, BX; \
	DECQ DX; \
	JNZ first; \
	VZEROUPPER; \
	RET
#define WBEGIN(CONSTS) \
	BEGIN; \
	CONSTS; \
	CMPQ gemv_t(DI), $1; \
	JNE row; \
first: \
	VPXOR X15, X15, X15; \
	MOVQ gemv_x(DI), AX; \
	MOVQ gemv_groups(DI), CX; \
one:
#define FOLD_NONE
#define FOLD_HALVES \
	VEXTRACTF64X4 $1, Z15, Y0; \
	VADDPS Y0, Y15, Y15
#define WSUM16 \
	VMOVUPS (R10), Y0; \
	VADDPS 32(R10), Y0, Y0; \
	VEXTRACTF128 $1, Y0, X1; \
	VADDPS X1, X0, X0

#define WROWS8(CONSTS, FETCH, UNPACK, INIT, CHAIN, bytes) \
	WBEGIN(CONSTS); \
	FETCH; \
	UNPACK; \
	WDOT8(INIT); \
	CHAIN; \
	WEND(FOLD_NONE, bytes); \
	ROW(KEEP512); \
	FETCH; \
	UNPACK; \
	TOKENS; \
	VMOVUPS (R10), Y15; \
	WDOT8(INIT); \
	CHAIN; \
	VMOVUPS Y15, (R10); \
	NEXT(bytes, SUM8)
#define WROWS16(CONSTS, FETCH, UNPACK, INIT, CHAIN, bytes) \
	WBEGIN(CONSTS); \
	FETCH; \
	UNPACK; \
	WDOT(INIT); \
	CHAIN; \
	WEND(FOLD_HALVES, bytes); \
	ROW(KEEP512); \
	FETCH; \
	UNPACK; \
	TOKENS; \
	VMOVUPS (R10), Z15; \
	WDOT(INIT); \
	CHAIN; \
	VMOVUPS Z15, (R10); \
	NEXT(bytes, WSUM16)

// FETCH asks for the lines of a group, 6 KiB ahead.
#define FETCH2 PREFETCHT1 6144(SI); PREFETCHT1 6208(SI)
#define FETCH3 FETCH2; PREFETCHT1 6272(SI)
#define FETCH4 FETCH3; PREFETCHT1 6336(SI)
#define FETCH5 FETCH4; PREFETCHT1 6400(SI)

// UNWEAVE puts the weights in Z0-Z3 into the order of values.
#define UNWEAVE \
	VSHUFI32X4 $0xD8, Z0, Z0, Z0; \
	VSHUFI32X4 $0xD8, Z1, Z1, Z1; \
	VSHUFI32X4 $0xD8, Z2, Z2, Z2; \
	VSHUFI32X4 $0xD8, Z3, Z3, Z3; \
	VPUNPCKLDQ Z1, Z0, Z6; \
	VPUNPCKHDQ Z1, Z0, Z7; \
	VPUNPCKLDQ Z3, Z2, Z8; \
	VPUNPCKHDQ Z3, Z2, Z9; \
	VPUNPCKLQDQ Z8, Z6, Z0; \
	VPUNPCKHQDQ Z8, Z6, Z1; \
	VPUNPCKLQDQ Z9, Z7, Z2; \
	VPUNPCKHQDQ Z9, Z7, Z3
