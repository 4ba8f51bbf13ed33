// Rows with few activation rows on AVX-512. An unpack (formats_avx512_amd64.h)
// leaves 256 weights as bytes without sign in Z0-Z3, in order, their scales in Z4
// and offsets in Z5. It may use Z6-Z15; Z16-Z31 hold its constants.

#define KEEP512 VMOVUPS Z0, (R10)

// FOLD multiplies Z0-Z3 with the record and adds what belongs to 16 weights:
// the sum of half block s = 0..15 goes to lane order16(s) of Z8.
#define FOLD \
	VPXOR X8, X8, X8; \
	VPXOR X9, X9, X9; \
	VPXOR X10, X10, X10; \
	VPXOR X11, X11, X11; \
	VPDPBUSD (AX), Z0, Z8; \
	VPDPBUSD 64(AX), Z1, Z9; \
	VPDPBUSD 128(AX), Z2, Z10; \
	VPDPBUSD 192(AX), Z3, Z11; \
	VPUNPCKLDQ Z9, Z8, Z12; \
	VPUNPCKHDQ Z9, Z8, Z13; \
	VPUNPCKLDQ Z11, Z10, Z14; \
	VPUNPCKHDQ Z11, Z10, Z15; \
	VPADDD Z13, Z12, Z12; \
	VPADDD Z15, Z14, Z14; \
	VPUNPCKLQDQ Z14, Z12, Z8; \
	VPUNPCKHQDQ Z14, Z12, Z9; \
	VPADDD Z9, Z8, Z8

// FOLD32 goes on to 32 weights: block b = 0..7 to lane order32(b) of Y8.
#define FOLD32 \
	FOLD; \
	VSHUFI32X4 $0x88, Z8, Z8, Z9; \
	VSHUFI32X4 $0xDD, Z8, Z8, Z8; \
	VPADDD Y9, Y8, Y8

// CHAIN8 takes the sums in Y8 to the eight chains. SHIFT: the weights are 128
// too large; OFFS: they are as they should be and there are offsets in Y5, which
// FMA adds or takes off.
#define CHAIN8_SHIFT \
	VPADDD record_neg(AX), Y8, Y8; \
	VMULPS record_d(AX), Y4, Y9; \
	VCVTDQ2PS Y8, Y8; \
	VFMADD213PS (R10), Y9, Y8; \
	VMOVUPS Y8, (R10)
#define CHAIN8_OFFS(FMA) \
	VMULPS record_d(AX), Y4, Y9; \
	VCVTDQ2PS Y8, Y8; \
	VFMADD213PS (R10), Y9, Y8; \
	FMA record_dsum(AX), Y5, Y8; \
	VMOVUPS Y8, (R10)

// D16 spreads the scales of the record to half blocks: Z9.
#define D16 \
	VMOVUPS record_d(AX), Y9; \
	VSHUFF32X4 $0x50, Z9, Z9, Z9

// CHAIN16 takes the sums in Z8 to 16 chains.
#define CHAIN16_SHIFT \
	D16; \
	VPADDD record_neg16(AX), Z8, Z8; \
	VMULPS Z9, Z4, Z9; \
	VCVTDQ2PS Z8, Z8; \
	VFMADD213PS (R10), Z9, Z8; \
	VMOVUPS Z8, (R10)
#define CHAIN16_OFFS \
	D16; \
	VPSRAD $7, record_neg16(AX), Z10; \
	VMULPS Z9, Z4, Z11; \
	VCVTDQ2PS Z8, Z8; \
	VCVTDQ2PS Z10, Z10; \
	VMULPS Z10, Z9, Z9; \
	VFMADD213PS (R10), Z11, Z8; \
	VFMADD231PS Z9, Z5, Z8; \
	VMOVUPS Z8, (R10)
