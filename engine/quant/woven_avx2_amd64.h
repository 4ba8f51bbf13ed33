// Woven rows (woven.go) on AVX2. A V_ unpack brings the 256 weights at (SI) to
// Y0-Y7 as bytes, register 2*k+h to register 2*k+h, and their scales and minus
// their offsets, by lane, to the plain row at (R8). What weights are too large by
// is in the comment. Y8-Y13 and R13, R15 are free.

#define VC(at) ·c256+at(SB)

#define VNIBBLES(at) \
	VMOVDQU VC(consts256_nib), Y8; \
	VMOVDQU at(SI), Y0; \
	VMOVDQU (at+32)(SI), Y1; \
	VMOVDQU (at+64)(SI), Y4; \
	VMOVDQU (at+96)(SI), Y5; \
	VPSRLW $4, Y0, Y2; \
	VPSRLW $4, Y1, Y3; \
	VPSRLW $4, Y4, Y6; \
	VPSRLW $4, Y5, Y7; \
	VALL(VPAND)
#define VALL(OP) \
	OP Y8, Y0, Y0; \
	OP Y8, Y1, Y1; \
	OP Y8, Y2, Y2; \
	OP Y8, Y3, Y3; \
	OP Y8, Y4, Y4; \
	OP Y8, Y5, Y5; \
	OP Y8, Y6, Y6; \
	OP Y8, Y7, Y7

// VMERGE adds the bits of Y9, shifted, that Y10 has.
#define VMERGE(SHIFT, n, y) \
	SHIFT $n, Y9, Y11; \
	VPAND Y10, Y11, Y11; \
	VPOR Y11, y, y
#define VMERGE0(x, y) \
	VPAND Y10, x, Y11; \
	VPOR Y11, y, y
#define VFIFTH(at) \
	VMOVDQU VC(consts256_sixteen), Y10; \
	VMOVDQU at(SI), Y9; \
	VMERGE(VPSLLW, 4, Y0); \
	VMERGE(VPSLLW, 3, Y1); \
	VMERGE(VPSLLW, 2, Y2); \
	VMERGE(VPSLLW, 1, Y3); \
	VMERGE0(Y9, Y4); \
	VMERGE(VPSRLW, 1, Y5); \
	VMERGE(VPSRLW, 2, Y6); \
	VMERGE(VPSRLW, 3, Y7)

#define VPAIRS(at) \
	VMOVDQU VC(consts256_three), Y8; \
	VMOVDQU at(SI), Y0; \
	VMOVDQU (at+32)(SI), Y1; \
	VPSRLW $2, Y0, Y2; \
	VPSRLW $2, Y1, Y3; \
	VPSRLW $4, Y0, Y4; \
	VPSRLW $4, Y1, Y5; \
	VPSRLW $6, Y0, Y6; \
	VPSRLW $6, Y1, Y7; \
	VALL(VPAND)

// VLEVELS looks numbers up in a table.
#define VLEVEL(y) VPSHUFB y, Y8, y
#define VLEVELS(table) \
	VMOVDQU VC(table), Y8; \
	VLEVEL(Y0); \
	VLEVEL(Y1); \
	VLEVEL(Y2); \
	VLEVEL(Y3); \
	VLEVEL(Y4); \
	VLEVEL(Y5); \
	VLEVEL(Y6); \
	VLEVEL(Y7)

// VHALVES takes eight halves to scales, or offsets that are added.
#define VHALVES(at, to) \
	VCVTPH2PS at(SI), Y8; \
	VMOVUPS Y8, to(R8)
#define VHALF(at, x, y) VPBROADCASTW at(SI), x; VCVTPH2PS x, y

// VSIX takes eight numbers of six bits to y.
#define VSIX(at, y) \
	VPBROADCASTQ at(SI), Y8; \
	VPSRLVQ VC(consts256_sixes), Y8, y; \
	VPSRLVQ VC(consts256_sixes2), Y8, Y8; \
	VSHUFPS $0x88, Y8, y, y; \
	VPAND VC(consts256_sixBits), y, y
#define VSIXES \
	VSIX(0, Y9); \
	VSIX(8, Y10); \
	VHALF(6, X11, Y11); \
	VHALF(14, X12, Y12); \
	VCVTDQ2PS Y9, Y9; \
	VCVTDQ2PS Y10, Y10; \
	VMULPS Y11, Y9, Y9; \
	VMULPS Y12, Y10, Y10; \
	VXORPS X11, X11, X11; \
	VSUBPS Y10, Y11, Y10; \
	VMOVUPS Y9, plainRow_scale(R8); \
	VMOVUPS Y10, plainRow_minus(R8)

// VSCALES16 makes scales of the whole numbers in Y8 and Y9 and the half at (SI)+at.
#define VSCALES16(at) \
	VHALF(at, X10, Y10); \
	VCVTDQ2PS Y8, Y8; \
	VCVTDQ2PS Y9, Y9; \
	VMULPS Y10, Y8, Y8; \
	VMULPS Y10, Y9, Y9; \
	VMOVUPS Y8, plainRow_scale(R8); \
	VMOVUPS Y9, (plainRow_scale+32)(R8)

// 8 too large
#define V4_0 \
	VHALVES(0, plainRow_scale); \
	VNIBBLES(16)

// right, as all with offsets
#define V4_1 \
	VHALVES(0, plainRow_scale); \
	VHALVES(16, plainRow_minus); \
	VNIBBLES(32)

// 16 too large
#define V5_0 \
	VHALVES(0, plainRow_scale); \
	VNIBBLES(16); \
	VFIFTH(144)

#define V5_1 \
	VHALVES(0, plainRow_scale); \
	VHALVES(16, plainRow_minus); \
	VNIBBLES(32); \
	VFIFTH(160)

// with sign
#define V8_0 \
	VHALVES(0, plainRow_scale); \
	VMOVDQU 16(SI), Y0; \
	VMOVDQU 48(SI), Y1; \
	VMOVDQU 80(SI), Y2; \
	VMOVDQU 112(SI), Y3; \
	VMOVDQU 144(SI), Y4; \
	VMOVDQU 176(SI), Y5; \
	VMOVDQU 208(SI), Y6; \
	VMOVDQU 240(SI), Y7

#define V2_K \
	VPMOVZXBD (SI), Y8; \
	VPMOVZXBD 8(SI), Y9; \
	VPSRLD $4, Y8, Y10; \
	VPSRLD $4, Y9, Y11; \
	VHALF(82, X12, Y12); \
	VCVTDQ2PS Y10, Y10; \
	VCVTDQ2PS Y11, Y11; \
	VMULPS Y12, Y10, Y10; \
	VMULPS Y12, Y11, Y11; \
	VXORPS X12, X12, X12; \
	VSUBPS Y10, Y12, Y10; \
	VSUBPS Y11, Y12, Y11; \
	VMOVUPS Y10, plainRow_minus(R8); \
	VMOVUPS Y11, (plainRow_minus+32)(R8); \
	VPAND VC(consts256_fifteen), Y8, Y8; \
	VPAND VC(consts256_fifteen), Y9, Y9; \
	VSCALES16(80); \
	VPAIRS(16)

// 4 too large
#define V3_K \
	VSIX(96, Y10); \
	VSIX(102, Y9); \
	VPSUBD VC(consts256_thirty2), Y10, Y8; \
	VPSUBD VC(consts256_thirty2), Y9, Y9; \
	VSCALES16(108); \
	VPAIRS(0); \
	VMOVDQU VC(consts256_four), Y10; \
	VMOVDQU 64(SI), Y9; \
	VMERGE(VPSLLW, 2, Y0); \
	VMERGE(VPSLLW, 1, Y1); \
	VMERGE0(Y9, Y2); \
	VMERGE(VPSRLW, 1, Y3); \
	VMERGE(VPSRLW, 2, Y4); \
	VMERGE(VPSRLW, 3, Y5); \
	VMERGE(VPSRLW, 4, Y6); \
	VMERGE(VPSRLW, 5, Y7)

#define V4_K \
	VSIXES; \
	VNIBBLES(16)

#define V5_K \
	VSIXES; \
	VNIBBLES(16); \
	VFIFTH(144)

// 32 too large
#define V6_K \
	VPMOVSXBD 192(SI), Y8; \
	VPMOVSXBD 200(SI), Y9; \
	VSCALES16(208); \
	VNIBBLES(0); \
	VMOVDQU VC(consts256_top2), Y10; \
	VMOVDQU 128(SI), Y9; \
	VMERGE(VPSLLW, 4, Y0); \
	VMERGE(VPSLLW, 2, Y2); \
	VMERGE0(Y9, Y4); \
	VMERGE(VPSRLW, 2, Y6); \
	VMOVDQU 160(SI), Y9; \
	VMERGE(VPSLLW, 4, Y1); \
	VMERGE(VPSLLW, 2, Y3); \
	VMERGE0(Y9, Y5); \
	VMERGE(VPSRLW, 2, Y7)

// with sign
#define V4_NL \
	V4_0; \
	VLEVELS(consts256_uneven)

// with sign
#define V4_XS \
	VSIX(0, Y9); \
	VPSUBD VC(consts256_thirty2), Y9, Y9; \
	VHALF(6, X10, Y10); \
	VCVTDQ2PS Y9, Y9; \
	VMULPS Y10, Y9, Y9; \
	VMOVUPS Y9, plainRow_scale(R8); \
	VNIBBLES(8); \
	VLEVELS(consts256_uneven)

// 16 too large. The scale is 2^(e-128): see formats_small_avx512_amd64.h.
#define VMX \
	VPMOVZXBD (SI), Y8; \
	VPSUBD VC(consts256_oneD), Y8, Y9; \
	VMOVDQU VC(consts256_e8m0), Y10; \
	VPSLLVD Y8, Y10, Y10; \
	VPCMPGTD VC(consts256_oneD), Y8, Y11; \
	VPSLLD $23, Y9, Y9; \
	VPBLENDVB Y11, Y9, Y10, Y9; \
	VMOVUPS Y9, plainRow_scale(R8); \
	VNIBBLES(8); \
	VLEVELS(consts256_e2m1)

// 16 and 64 too large
#define VGRID3 \
	VPBROADCASTD 4(SI), Y8; \
	VBROADCASTSS (SI), Y9; \
	VPSRLVD VC(consts256_fours), Y8, Y8; \
	VPAND VC(consts256_fifteen), Y8, Y8; \
	VPADDD Y8, Y8, Y8; \
	VPADDD VC(consts256_oneD), Y8, Y8; \
	VCVTDQ2PS Y8, Y8; \
	VMULPS Y9, Y8, Y8; \
	VMOVUPS Y8, plainRow_scale(R8); \
	VNIBBLES(8)
#define V3S \
	VGRID3; \
	VLEVELS(consts256_relaid3S)
#define V3XXS \
	VGRID3; \
	VLEVELS(consts256_relaid3XXS)

// Products with the record at AX: sums over the first 16 of each block in Y0, over
// the second 16 in Y1. U5 is for weights of up to five bits, the sums of which fit
// 16 bits four by four; U6 and U7 for six and seven bits; S for weights with sign,
// which goes over to the activations. VNNI is in woven_avxvnni_amd64.s.
#define VTIMES(j, y) VPMADDUBSW (record_woven+32*j)(AX), y, y
#define VTIMES8 \
	VTIMES(0, Y0); \
	VTIMES(1, Y1); \
	VTIMES(2, Y2); \
	VTIMES(3, Y3); \
	VTIMES(4, Y4); \
	VTIMES(5, Y5); \
	VTIMES(6, Y6); \
	VTIMES(7, Y7); \
	VMOVDQU VC(consts256_ones), Y8
#define VADD8(OP) \
	OP Y2, Y0, Y0; \
	OP Y3, Y1, Y1; \
	OP Y6, Y4, Y4; \
	OP Y7, Y5, Y5
#define VADD4(OP) \
	OP Y4, Y0, Y0; \
	OP Y5, Y1, Y1
#define U5 \
	VTIMES8; \
	VADD8(VPADDW); \
	VADD4(VPADDW); \
	VPMADDWD Y8, Y0, Y0; \
	VPMADDWD Y8, Y1, Y1
#define U6 \
	VTIMES8; \
	VADD8(VPADDW); \
	VPMADDWD Y8, Y0, Y0; \
	VPMADDWD Y8, Y1, Y1; \
	VPMADDWD Y8, Y4, Y4; \
	VPMADDWD Y8, Y5, Y5; \
	VADD4(VPADDD)
#define U7 \
	VTIMES8; \
	VALL(VPMADDWD); \
	VADD8(VPADDD); \
	VADD4(VPADDD)
#define VTIMES_S(j, y) \
	VMOVDQU (record_woven+32*j)(AX), Y9; \
	VPSIGNB y, Y9, Y9; \
	VPABSB y, y; \
	VPMADDUBSW Y9, y, y
#define S8 \
	VTIMES_S(0, Y0); \
	VTIMES_S(1, Y1); \
	VTIMES_S(2, Y2); \
	VTIMES_S(3, Y3); \
	VTIMES_S(4, Y4); \
	VTIMES_S(5, Y5); \
	VTIMES_S(6, Y6); \
	VTIMES_S(7, Y7); \
	VMOVDQU VC(consts256_ones), Y8; \
	VALL(VPMADDWD); \
	VADD8(VPADDD); \
	VADD4(VPADDD)

// VLESS takes off what weights are too large, 128>>n.
#define VLESS(n) \
	VMOVDQU record_negW(AX), Y2; \
	VMOVDQU (record_negW+32)(AX), Y3; \
	VPSRAD $n, Y2, Y2; \
	VPSRAD $n, Y3, Y3; \
	VPADDD Y2, Y0, Y0; \
	VPADDD Y3, Y1, Y1
#define VEXACT

// VCHAIN takes the sums to the chains in Y14 and Y15.
#define VCHAIN8 \
	VPADDD Y1, Y0, Y0; \
	VMOVUPS record_d(AX), Y2; \
	VMULPS (gemv_plain+plainRow_scale)(DI), Y2, Y2; \
	VCVTDQ2PS Y0, Y0; \
	VFMADD231PS Y2, Y0, Y14
#define VCHAIN8_OFFS \
	VCHAIN8; \
	VMOVUPS record_dsum(AX), Y2; \
	VFMADD231PS (gemv_plain+plainRow_minus)(DI), Y2, Y14
#define VCHAIN16 \
	VMOVUPS record_d(AX), Y2; \
	VMULPS (gemv_plain+plainRow_scale)(DI), Y2, Y3; \
	VMULPS (gemv_plain+plainRow_scale+32)(DI), Y2, Y4; \
	VCVTDQ2PS Y0, Y0; \
	VCVTDQ2PS Y1, Y1; \
	VFMADD231PS Y3, Y0, Y14; \
	VFMADD231PS Y4, Y1, Y15
#define VCHAIN16_OFFS \
	VCHAIN16; \
	VMOVDQU record_negW(AX), Y5; \
	VMOVDQU (record_negW+32)(AX), Y6; \
	VPSRAD $7, Y5, Y5; \
	VPSRAD $7, Y6, Y6; \
	VCVTDQ2PS Y5, Y5; \
	VCVTDQ2PS Y6, Y6; \
	VMULPS Y2, Y5, Y5; \
	VMULPS Y2, Y6, Y6; \
	VFNMADD231PS (gemv_plain+plainRow_minus)(DI), Y5, Y14; \
	VFNMADD231PS (gemv_plain+plainRow_minus+32)(DI), Y6, Y15

// The frame. With one activation row the chains stay in registers and AX is the
// record; with more the frame of frame_amd64.h is used, chains in memory.
#define VROWS(FETCH, UNPACK, DOT, LESS, CHAIN, bytes) \
	BEGIN; \
	CMPQ gemv_t(DI), $1; \
	JNE row; \
	LEAQ gemv_plain(DI), R8; \
first: \
	VPXOR X14, X14, X14; \
	VPXOR X15, X15, X15; \
	MOVQ gemv_x(DI), AX; \
	MOVQ gemv_groups(DI), CX; \
one: \
	FETCH; \
	UNPACK; \
	DOT; \
	LESS; \
	CHAIN; \
	ADDQ $record__size, AX; \
	ADDQ $bytes, SI; \
	DECQ CX; \
	JNZ one; \
	VADDPS Y15, Y14, Y14; \
	VEXTRACTF128 $1, Y14, X0; \
	VADDPS X14, X0, X0; \
	VMOVSHDUP X0, X1; \
	VADDPS X1, X0, X0; \
	VPERMILPD $1, X0, X1; \
	VADDSS X1, X0, X0; \
	VMOVSS X0, (BX); \
	ADDQ $4, BX; \
	DECQ DX; \
	JNZ first; \
	VZEROUPPER; \
	RET; \
	ROW(KEEP256); \
	FETCH; \
	PLAIN; \
	UNPACK; \
	VKEEP(R8); \
	TOKENS; \
	VMOVDQU gemv_plain(DI), Y0; \
	VMOVDQU (gemv_plain+32)(DI), Y1; \
	VMOVDQU (gemv_plain+64)(DI), Y2; \
	VMOVDQU (gemv_plain+96)(DI), Y3; \
	VMOVDQU (gemv_plain+128)(DI), Y4; \
	VMOVDQU (gemv_plain+160)(DI), Y5; \
	VMOVDQU (gemv_plain+192)(DI), Y6; \
	VMOVDQU (gemv_plain+224)(DI), Y7; \
	VMOVUPS (R10), Y14; \
	VMOVUPS 32(R10), Y15; \
	DOT; \
	LESS; \
	CHAIN; \
	VMOVUPS Y14, (R10); \
	VMOVUPS Y15, 32(R10); \
	NEXT(bytes, VSUM)
#define VSUM \
	VMOVUPS (R10), Y0; \
	VADDPS 32(R10), Y0, Y0; \
	VEXTRACTF128 $1, Y0, X1; \
	VADDPS X1, X0, X0
#define VKEEP(r) \
	VMOVDQU Y0, (r); \
	VMOVDQU Y1, 32(r); \
	VMOVDQU Y2, 64(r); \
	VMOVDQU Y3, 96(r); \
	VMOVDQU Y4, 128(r); \
	VMOVDQU Y5, 160(r); \
	VMOVDQU Y6, 192(r); \
	VMOVDQU Y7, 224(r)

// FETCH asks for the lines of a group, 6 KiB ahead.
#define FETCH2 PREFETCHT1 6144(SI); PREFETCHT1 6208(SI)
#define FETCH3 FETCH2; PREFETCHT1 6272(SI)
#define FETCH4 FETCH3; PREFETCHT1 6336(SI)
#define FETCH5 FETCH4; PREFETCHT1 6400(SI)
