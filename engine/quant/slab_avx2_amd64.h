// Products of a slab of 8 rows with four activation rows: see many.go.
//
// Registers: R8-R11 the activation rows, SI the slab, DX the chain, CX groups
// left, AX offset of the part's activations in an activation row, BX offset of
// its scale, DI offset of its sum over 16. Y0-Y3 hold the chain of each
// activation row, Y4-Y7 whole numbers, Y8-Y11 sums of 16 bits, Y12 weights, Y15
// words of 1, X14 the shift that makes of 128 what weights are too large.

// MACS_5 multiplies 16 weights of each row, at off of the part, of up to five
// bits: four sums of two products fit 16 bits.
#define FIRST(at, off) \
	VMOVDQU at(SI), Y12; \
	VPBROADCASTD off(R8)(AX*1), Y8; \
	VPMADDUBSW Y8, Y12, Y8; \
	VPBROADCASTD off(R9)(AX*1), Y9; \
	VPMADDUBSW Y9, Y12, Y9; \
	VPBROADCASTD off(R10)(AX*1), Y10; \
	VPMADDUBSW Y10, Y12, Y10; \
	VPBROADCASTD off(R11)(AX*1), Y11; \
	VPMADDUBSW Y11, Y12, Y11
#define NEXT(at, off) \
	VMOVDQU at(SI), Y12; \
	VPBROADCASTD off(R8)(AX*1), Y13; \
	VPMADDUBSW Y13, Y12, Y13; \
	VPADDW Y13, Y8, Y8; \
	VPBROADCASTD off(R9)(AX*1), Y13; \
	VPMADDUBSW Y13, Y12, Y13; \
	VPADDW Y13, Y9, Y9; \
	VPBROADCASTD off(R10)(AX*1), Y13; \
	VPMADDUBSW Y13, Y12, Y13; \
	VPADDW Y13, Y10, Y10; \
	VPBROADCASTD off(R11)(AX*1), Y13; \
	VPMADDUBSW Y13, Y12, Y13; \
	VPADDW Y13, Y11, Y11
#define WIDEN \
	VPMADDWD Y15, Y8, Y8; \
	VPADDD Y8, Y4, Y4; \
	VPMADDWD Y15, Y9, Y9; \
	VPADDD Y9, Y5, Y5; \
	VPMADDWD Y15, Y10, Y10; \
	VPADDD Y10, Y6, Y6; \
	VPMADDWD Y15, Y11, Y11; \
	VPADDD Y11, Y7, Y7
#define MACS_5(at, off) FIRST(at, off); NEXT((at+32), (off+4)); NEXT((at+64), (off+8)); NEXT((at+96), (off+12)); WIDEN

// MACS_7 does so with weights of up to seven bits.
#define MAC_7(at, off) \
	VMOVDQU at(SI), Y12; \
	VPBROADCASTD off(R8)(AX*1), Y8; \
	VPMADDUBSW Y8, Y12, Y8; \
	VPMADDWD Y15, Y8, Y8; \
	VPADDD Y8, Y4, Y4; \
	VPBROADCASTD off(R9)(AX*1), Y9; \
	VPMADDUBSW Y9, Y12, Y9; \
	VPMADDWD Y15, Y9, Y9; \
	VPADDD Y9, Y5, Y5; \
	VPBROADCASTD off(R10)(AX*1), Y10; \
	VPMADDUBSW Y10, Y12, Y10; \
	VPMADDWD Y15, Y10, Y10; \
	VPADDD Y10, Y6, Y6; \
	VPBROADCASTD off(R11)(AX*1), Y11; \
	VPMADDUBSW Y11, Y12, Y11; \
	VPMADDWD Y15, Y11, Y11; \
	VPADDD Y11, Y7, Y7
#define MACS_7(at, off) MAC_7(at, off); MAC_7((at+32), (off+4)); MAC_7((at+64), (off+8)); MAC_7((at+96), (off+12))

// MACS_S does so with weights with sign, which goes over to the activations.
#define MAC_S(at, off) \
	VMOVDQU at(SI), Y12; \
	VPABSB Y12, Y13; \
	VPBROADCASTD off(R8)(AX*1), Y8; \
	VPSIGNB Y12, Y8, Y8; \
	VPMADDUBSW Y8, Y13, Y8; \
	VPMADDWD Y15, Y8, Y8; \
	VPADDD Y8, Y4, Y4; \
	VPBROADCASTD off(R9)(AX*1), Y9; \
	VPSIGNB Y12, Y9, Y9; \
	VPMADDUBSW Y9, Y13, Y9; \
	VPMADDWD Y15, Y9, Y9; \
	VPADDD Y9, Y5, Y5; \
	VPBROADCASTD off(R10)(AX*1), Y10; \
	VPSIGNB Y12, Y10, Y10; \
	VPMADDUBSW Y10, Y13, Y10; \
	VPMADDWD Y15, Y10, Y10; \
	VPADDD Y10, Y6, Y6; \
	VPBROADCASTD off(R11)(AX*1), Y11; \
	VPSIGNB Y12, Y11, Y11; \
	VPMADDUBSW Y11, Y13, Y11; \
	VPMADDWD Y15, Y11, Y11; \
	VPADDD Y11, Y7, Y7
#define MACS_S(at, off) MAC_S(at, off); MAC_S((at+32), (off+4)); MAC_S((at+64), (off+8)); MAC_S((at+96), (off+12))

// ZERO begins the whole numbers with 0, SHIFT with what takes off what weights
// are too large.
#define ZERO \
	VPXOR Y4, Y4, Y4; \
	VPXOR Y5, Y5, Y5; \
	VPXOR Y6, Y6, Y6; \
	VPXOR Y7, Y7, Y7
#define SHIFT32 \
	VPBROADCASTD record_neg(R8)(BX*1), Y4; \
	VPSRAD X14, Y4, Y4; \
	VPBROADCASTD record_neg(R9)(BX*1), Y5; \
	VPSRAD X14, Y5, Y5; \
	VPBROADCASTD record_neg(R10)(BX*1), Y6; \
	VPSRAD X14, Y6, Y6; \
	VPBROADCASTD record_neg(R11)(BX*1), Y7; \
	VPSRAD X14, Y7, Y7
#define SHIFT16 \
	VPBROADCASTD record_neg16(R8)(DI*1), Y4; \
	VPSRAD X14, Y4, Y4; \
	VPBROADCASTD record_neg16(R9)(DI*1), Y5; \
	VPSRAD X14, Y5, Y5; \
	VPBROADCASTD record_neg16(R10)(DI*1), Y6; \
	VPSRAD X14, Y6, Y6; \
	VPBROADCASTD record_neg16(R11)(DI*1), Y7; \
	VPSRAD X14, Y7, Y7

// CHAIN takes the whole numbers to the chains, OFFSETS adds offsets.
#define CHAIN(at) \
	VBROADCASTSS record_d(R8)(BX*1), Y8; \
	VMULPS at(SI), Y8, Y8; \
	VCVTDQ2PS Y4, Y4; \
	VFMADD231PS Y4, Y8, Y0; \
	VBROADCASTSS record_d(R9)(BX*1), Y9; \
	VMULPS at(SI), Y9, Y9; \
	VCVTDQ2PS Y5, Y5; \
	VFMADD231PS Y5, Y9, Y1; \
	VBROADCASTSS record_d(R10)(BX*1), Y10; \
	VMULPS at(SI), Y10, Y10; \
	VCVTDQ2PS Y6, Y6; \
	VFMADD231PS Y6, Y10, Y2; \
	VBROADCASTSS record_d(R11)(BX*1), Y11; \
	VMULPS at(SI), Y11, Y11; \
	VCVTDQ2PS Y7, Y7; \
	VFMADD231PS Y7, Y11, Y3
#define OFFSETS32(at) \
	VMOVUPS at(SI), Y12; \
	VBROADCASTSS record_dsum(R8)(BX*1), Y13; \
	VFMADD231PS Y12, Y13, Y0; \
	VBROADCASTSS record_dsum(R9)(BX*1), Y13; \
	VFMADD231PS Y12, Y13, Y1; \
	VBROADCASTSS record_dsum(R10)(BX*1), Y13; \
	VFMADD231PS Y12, Y13, Y2; \
	VBROADCASTSS record_dsum(R11)(BX*1), Y13; \
	VFMADD231PS Y12, Y13, Y3
#define OFFSETS16(at) \
	VMOVUPS at(SI), Y12; \
	VPBROADCASTD record_neg16(R8)(DI*1), Y13; \
	VPSRAD $7, Y13, Y13; \
	VCVTDQ2PS Y13, Y13; \
	VBROADCASTSS record_d(R8)(BX*1), Y8; \
	VMULPS Y8, Y13, Y13; \
	VFNMADD231PS Y12, Y13, Y0; \
	VPBROADCASTD record_neg16(R9)(DI*1), Y13; \
	VPSRAD $7, Y13, Y13; \
	VCVTDQ2PS Y13, Y13; \
	VBROADCASTSS record_d(R9)(BX*1), Y8; \
	VMULPS Y8, Y13, Y13; \
	VFNMADD231PS Y12, Y13, Y1; \
	VPBROADCASTD record_neg16(R10)(DI*1), Y13; \
	VPSRAD $7, Y13, Y13; \
	VCVTDQ2PS Y13, Y13; \
	VBROADCASTSS record_d(R10)(BX*1), Y8; \
	VMULPS Y8, Y13, Y13; \
	VFNMADD231PS Y12, Y13, Y2; \
	VPBROADCASTD record_neg16(R11)(DI*1), Y13; \
	VPSRAD $7, Y13, Y13; \
	VCVTDQ2PS Y13, Y13; \
	VBROADCASTSS record_d(R11)(BX*1), Y8; \
	VMULPS Y8, Y13, Y13; \
	VFNMADD231PS Y12, Y13, Y3
#define CLEAR \
	VXORPS Y0, Y0, Y0; \
	VXORPS Y1, Y1, Y1; \
	VXORPS Y2, Y2, Y2; \
	VXORPS Y3, Y3, Y3
#define ADD \
	VADDPS 0(BX), Y0, Y0; \
	VADDPS 64(BX), Y1, Y1; \
	VADDPS 128(BX), Y2, Y2; \
	VADDPS 192(BX), Y3, Y3
#define KEEP \
	VMOVUPS Y0, 0(BX); \
	VMOVUPS Y1, 64(BX); \
	VMOVUPS Y2, 128(BX); \
	VMOVUPS Y3, 192(BX)

// The loop over chains and groups: as in slab_avx512_amd64.s.
#define CHAINS(places) \
	MOVQ p+0(FP), DI; \
	MOVQ slab_parts(DI), SI; \
	MOVQ slab_x(DI), R8; \
	MOVQ (slab_x+8)(DI), R9; \
	MOVQ (slab_x+16)(DI), R10; \
	MOVQ (slab_x+24)(DI), R11; \
	VMOVQ slab_shift(DI), X14; \
	VMOVDQU ·c256+consts256_ones(SB), Y15; \
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

#define CHAINS_END(bytes, chains) \
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
	VMOVDQU slab_lanes(DI), Y12; \
	MOVQ slab_dst(DI), AX; \
	MOVQ slab_ldd(DI), BX; \
	MOVQ slab_t(DI), CX; \
	OUT(Y0); \
	OUT(Y1); \
	OUT(Y2); \
	OUT(Y3); \
done: \
	VZEROUPPER; \
	RET

// OUT stores the results of one activation row, while there are more.
#define OUT(y) \
	VMASKMOVPS y, Y12, (AX); \
	ADDQ BX, AX; \
	DECQ CX; \
	JZ done

