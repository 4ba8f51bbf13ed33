// Rows with few activation rows on AVX2: an unpack (formats_avx2_amd64.h) brings
// 256 weights to the plain row of the gemv, then each activation row is
// multiplied with it.

#define KEEP256 VMOVUPS Y0, (R10); VMOVUPS Y0, 32(R10)

// PLAIN aims an unpack at the gemv, ONES puts 16 words of 1 into Y15.
#define PLAIN LEAQ gemv_plain(DI), R8
#define ONES VMOVDQU ·c256+consts256_ones(SB), Y15

// DOT_U multiplies block b with its activations: eight sums of four to y.
// Weights without sign, up to 129, so that two products fit 16 bits.
#define DOT_U(b, x, y) \
	VMOVDQU (gemv_plain+32*b)(DI), y; \
	VPMADDUBSW (32*b)(AX), y, y; \
	VPMADDWD Y15, y, y

// DOT_S: weights with sign, which goes over to the activations.
#define DOT_S(b, x, y) \
	VMOVDQU (gemv_plain+32*b)(DI), y; \
	VMOVDQU (32*b)(AX), Y14; \
	VPSIGNB y, Y14, Y14; \
	VPABSB y, y; \
	VPMADDUBSW Y14, y, y; \
	VPMADDWD Y15, y, y

// FOLD adds what belongs to 16 weights: the sum of half block s to lane
// order16(s) of Y0, Y4.
#define FOLD(DOT) \
	DOT(0, 0, Y0); \
	DOT(2, 1, Y1); \
	DOT(4, 2, Y2); \
	DOT(6, 3, Y3); \
	DOT(1, 4, Y4); \
	DOT(3, 5, Y5); \
	DOT(5, 6, Y6); \
	DOT(7, 7, Y7); \
	VPUNPCKLDQ Y1, Y0, Y8; \
	VPUNPCKHDQ Y1, Y0, Y9; \
	VPUNPCKLDQ Y3, Y2, Y10; \
	VPUNPCKHDQ Y3, Y2, Y11; \
	VPADDD Y9, Y8, Y8; \
	VPADDD Y11, Y10, Y10; \
	VPUNPCKLQDQ Y10, Y8, Y0; \
	VPUNPCKHQDQ Y10, Y8, Y1; \
	VPUNPCKLDQ Y5, Y4, Y8; \
	VPUNPCKHDQ Y5, Y4, Y9; \
	VPUNPCKLDQ Y7, Y6, Y10; \
	VPUNPCKHDQ Y7, Y6, Y11; \
	VPADDD Y9, Y8, Y8; \
	VPADDD Y11, Y10, Y10; \
	VPADDD Y1, Y0, Y0; \
	VPUNPCKLQDQ Y10, Y8, Y4; \
	VPUNPCKHQDQ Y10, Y8, Y5; \
	VPADDD Y5, Y4, Y4

// FOLD5 is FOLD for weights of up to five bits, whose sums of eight products fit
// 16 bits: packing and multiplying by one takes fewer steps.
#define FOLD5(DOT) \
	DOT(0, 0, Y0); \
	DOT(2, 1, Y1); \
	DOT(4, 2, Y2); \
	DOT(6, 3, Y3); \
	DOT(1, 4, Y4); \
	DOT(3, 5, Y5); \
	DOT(5, 6, Y6); \
	DOT(7, 7, Y7); \
	VPACKSSDW Y1, Y0, Y0; \
	VPACKSSDW Y3, Y2, Y2; \
	VPACKSSDW Y5, Y4, Y4; \
	VPACKSSDW Y7, Y6, Y6; \
	VPMADDWD Y15, Y0, Y0; \
	VPMADDWD Y15, Y2, Y2; \
	VPMADDWD Y15, Y4, Y4; \
	VPMADDWD Y15, Y6, Y6; \
	VPACKSSDW Y2, Y0, Y0; \
	VPACKSSDW Y6, Y4, Y4; \
	VPMADDWD Y15, Y0, Y0; \
	VPMADDWD Y15, Y4, Y4

// FOLD32 goes on to 32 weights: block b to lane order32(b) of Y0.
#define FOLD32(DOT) \
	FOLD(DOT); \
	PAIR32
#define FOLD32_5(DOT) \
	FOLD5(DOT); \
	PAIR32
#define PAIR32 \
	VPERM2I128 $0x20, Y4, Y0, Y1; \
	VPERM2I128 $0x31, Y4, Y0, Y2; \
	VPADDD Y2, Y1, Y0

// SHIFT8 takes off what weights are too large: 128>>n.
#define SHIFT8(n) \
	VMOVDQU record_neg(AX), Y1; \
	VPSRAD $n, Y1, Y1; \
	VPADDD Y1, Y0, Y0
#define SHIFT16(n) \
	VMOVDQU record_neg16(AX), Y1; \
	VMOVDQU (record_neg16+32)(AX), Y2; \
	VPSRAD $n, Y1, Y1; \
	VPSRAD $n, Y2, Y2; \
	VPADDD Y1, Y0, Y0; \
	VPADDD Y2, Y4, Y4

// CHAIN8 takes the sums to the eight chains, OFFSETS8 adds offsets.
#define CHAIN8 \
	VMOVUPS record_d(AX), Y2; \
	VMULPS (gemv_plain+plainRow_scale)(DI), Y2, Y2; \
	VCVTDQ2PS Y0, Y0; \
	VFMADD213PS (R10), Y2, Y0
#define OFFSETS8 \
	VMOVUPS record_dsum(AX), Y2; \
	VFMADD231PS (gemv_plain+plainRow_minus)(DI), Y2, Y0
#define STORE8 VMOVUPS Y0, (R10)

// CHAIN16 takes the sums to 16 chains.
#define CHAIN16 \
	VBROADCASTF128 record_d(AX), Y2; \
	VBROADCASTF128 (record_d+16)(AX), Y3; \
	VMULPS (gemv_plain+plainRow_scale)(DI), Y2, Y5; \
	VMULPS (gemv_plain+plainRow_scale+32)(DI), Y3, Y6; \
	VCVTDQ2PS Y0, Y0; \
	VCVTDQ2PS Y4, Y4; \
	VFMADD213PS (R10), Y5, Y0; \
	VFMADD213PS 32(R10), Y6, Y4
#define OFFSETS16 \
	VMOVDQU record_neg16(AX), Y5; \
	VMOVDQU (record_neg16+32)(AX), Y6; \
	VPSRAD $7, Y5, Y5; \
	VPSRAD $7, Y6, Y6; \
	VCVTDQ2PS Y5, Y5; \
	VCVTDQ2PS Y6, Y6; \
	VMULPS Y2, Y5, Y5; \
	VMULPS Y3, Y6, Y6; \
	VFNMADD231PS (gemv_plain+plainRow_minus)(DI), Y5, Y0; \
	VFNMADD231PS (gemv_plain+plainRow_minus+32)(DI), Y6, Y4
#define STORE16 VMOVUPS Y0, (R10); VMOVUPS Y4, 32(R10)
