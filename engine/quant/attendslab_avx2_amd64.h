// Constants of the kernels over slabs on AVX2 (attendslab_avx2_amd64.s), as in
// attendplain.go, and orders of bytes: four rows of four values by value, and the
// lowest bytes of four dwords, four times.
DATA slab256<>+0(SB)/8, $0x0d0905010c080400
DATA slab256<>+8(SB)/8, $0x0f0b07030e0a0602
DATA slab256<>+16(SB)/8, $0x0d0905010c080400
DATA slab256<>+24(SB)/8, $0x0f0b07030e0a0602
DATA slab256<>+32(SB)/8, $0x0c0804000c080400
DATA slab256<>+40(SB)/8, $0x0c0804000c080400
DATA slab256<>+48(SB)/8, $0x0c0804000c080400
DATA slab256<>+56(SB)/8, $0x0c0804000c080400
DATA slab256<>+64(SB)/4, $0x0f0f0f0f
DATA slab256<>+68(SB)/4, $0x00010001
DATA slab256<>+72(SB)/4, $0x7fffffff
DATA slab256<>+76(SB)/4, $1.0e-34
DATA slab256<>+80(SB)/4, $32767.0
DATA slab256<>+84(SB)/4, $254.0
DATA slab256<>+88(SB)/4, $8388608.0
DATA slab256<>+92(SB)/4, $12582912.0
DATA slab256<>+96(SB)/4, $0x0000ffff
DATA slab256<>+100(SB)/4, $32639.0
DATA slab256<>+104(SB)/4, $127.0
GLOBL slab256<>(SB), RODATA|NOPTR, $108

// FETCH fetches the next lines at R14, as far as they are wanted; R15 is used.
#define FETCH \
	CMPQ R14, slabCall_end(DI); \
	JAE fetched; \
	MOVQ slabCall_lines(DI), R15; \
	MOVQ R14, DX; \
fetch: \
	PREFETCHT1 (DX); \
	ADDQ $64, DX; \
	DECQ R15; \
	JNZ fetch; \
	ADDQ slabCall_step(DI), R14; \
fetched:

// BEGIN_MIX aims SI at the values of a group in the first slab; HEAD and VALUES
// are how many bytes scales and values of a group take, as shifts.
#define BEGIN_MIX(HEAD, VALUES) \
	MOVQ a+0(FP), DI; \
	MOVQ slabCall_groups(DI), SI; \
	SHLQ $HEAD, SI; \
	MOVQ slabCall_group(DI), AX; \
	SHLQ $VALUES, AX; \
	ADDQ AX, SI; \
	ADDQ slabCall_slabs(DI), SI; \
	MOVQ slabCall_size(DI), R10; \
	MOVQ slabCall_x(DI), BX; \
	MOVQ slabCall_dst(DI), R8; \
	MOVQ slabCall_ldd(DI), R9; \
	MOVQ slabCall_fetch(DI), R14; \
	MOVQ slabCall_columns(DI), R11; \
	ADDQ R11, R11

// The walk over columns, eight at a time, and slabs; COLUMNS and WEIGHT are bytes.
#define WALK_MIX(COLUMNS, WEIGHT, ZERO, ROWS, END) \
columns: \
	ZERO; \
	MOVQ SI, AX; \
	MOVQ BX, R13; \
	MOVQ slabCall_count(DI), CX; \
slab: \
	FETCH; \
	ROWS; \
	ADDQ R10, AX; \
	ADDQ $WEIGHT, R13; \
	DECQ CX; \
	JNZ slab; \
	END; \
	ADDQ $COLUMNS, SI; \
	ADDQ $32, R8; \
	DECQ R11; \
	JNZ columns; \
	MOVQ R14, slabCall_fetch(DI); \
	VZEROUPPER; \
	RET

#define ZERO(a, b) \
	VPXOR a, a, a; \
	VPXOR b, b, b

// NIBBLES brings eight values of 16 rows to bytes, by value: the first four to
// Y0 and Y1, the others to Y2 and Y3, eight rows each. Y15 is 15 in each byte.
#define NIBBLES \
	VMOVDQU (AX), Y0; \
	VMOVDQU 32(AX), Y1; \
	VPSHUFB slab256<>+0(SB), Y0, Y0; \
	VPSHUFB slab256<>+0(SB), Y1, Y1; \
	VPSRLW $4, Y0, Y2; \
	VPSRLW $4, Y1, Y3; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VPAND Y15, Y2, Y2; \
	VPAND Y15, Y3, Y3

// END4 adds the eight sums of a query in a and b to its results.
#define END4(at, mem, a, b) \
	VPERM2I128 $0x20, b, a, Y0; \
	VPERM2I128 $0x31, b, a, Y1; \
	VPADDD Y1, Y0, Y0; \
	VBROADCASTSS (at+slabWeights_scale)(BX), Y2; \
	VBROADCASTSS (at+slabWeights_offset)(BX), Y3; \
	VCVTDQ2PS Y0, Y0; \
	VMULPS Y2, Y0, Y0; \
	VADDPS Y3, Y0, Y0; \
	VADDPS mem, Y0, Y0; \
	VMOVUPS Y0, mem

#define ZERO_1 ZERO(Y8, Y9)
#define END4_1 END4(0*slabWeights__size, (R8), Y8, Y9)
#define ZERO_2 ZERO_1; ZERO(Y10, Y11)
#define END4_2 END4_1; END4(1*slabWeights__size, (R8)(R9*1), Y10, Y11)
#define ZERO_3 ZERO_2; ZERO(Y12, Y13)
#define END4_3 END4_2; END4(2*slabWeights__size, (R8)(R9*2), Y12, Y13)

// SCORES4 is the walk over slabs, halves of them, groups and queries, in rows of 4
// bits: bytes of 64 values of eight rows go to the stack, four by four. TIMES
// leaves the sums of products with a query in Y0.
#define SCORES4(TIMES) \
	MOVQ a+0(FP), DI; \
	MOVQ slabCall_slabs(DI), SI; \
	MOVQ slabCall_count(DI), DX; \
	ADDQ DX, DX; \
	MOVQ slabCall_groups(DI), R10; \
	MOVQ slabCall_dst(DI), R8; \
	MOVQ slabCall_fetch(DI), R11; \
	MOVQ slabCall_ldd(DI), R13; \
	VPBROADCASTD slab256<>+64(SB), Y15; \
	VPBROADCASTD slab256<>+68(SB), Y14; \
half: \
	XORL R12, R12; \
	MOVQ slabCall_x(DI), BX; \
	MOVQ R11, R15; \
group: \
	MOVQ DX, R14; \
	ANDQ $1, R14; \
	MOVQ R12, R9; \
	SHLQ $5, R9; \
	ADDQ SI, R9; \
	MOVQ R10, AX; \
	SHLQ $5, AX; \
	ADDQ R9, AX; \
	SHLQ $4, R14; \
	VCVTPH2PS (R9)(R14*1), Y12; \
	VCVTPH2PS (AX)(R14*1), Y13; \
	MOVQ R10, R9; \
	SHLQ $6, R9; \
	MOVQ R12, AX; \
	SHLQ $9, AX; \
	ADDQ AX, R9; \
	ADDQ SI, R9; \
	LEAQ (R9)(R14*2), R9; \
	VMOVDQU 0(R9), Y0; \
	VPSRLW $4, Y0, Y1; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VMOVDQU Y0, (0)(SP); \
	VMOVDQU Y1, (32)(SP); \
	VMOVDQU 64(R9), Y0; \
	VPSRLW $4, Y0, Y1; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VMOVDQU Y0, (64)(SP); \
	VMOVDQU Y1, (96)(SP); \
	VMOVDQU 128(R9), Y0; \
	VPSRLW $4, Y0, Y1; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VMOVDQU Y0, (128)(SP); \
	VMOVDQU Y1, (160)(SP); \
	VMOVDQU 192(R9), Y0; \
	VPSRLW $4, Y0, Y1; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VMOVDQU Y0, (192)(SP); \
	VMOVDQU Y1, (224)(SP); \
	VMOVDQU 256(R9), Y0; \
	VPSRLW $4, Y0, Y1; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VMOVDQU Y0, (256)(SP); \
	VMOVDQU Y1, (288)(SP); \
	VMOVDQU 320(R9), Y0; \
	VPSRLW $4, Y0, Y1; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VMOVDQU Y0, (320)(SP); \
	VMOVDQU Y1, (352)(SP); \
	VMOVDQU 384(R9), Y0; \
	VPSRLW $4, Y0, Y1; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VMOVDQU Y0, (384)(SP); \
	VMOVDQU Y1, (416)(SP); \
	VMOVDQU 448(R9), Y0; \
	VPSRLW $4, Y0, Y1; \
	VPAND Y15, Y0, Y0; \
	VPAND Y15, Y1, Y1; \
	VMOVDQU Y0, (448)(SP); \
	VMOVDQU Y1, (480)(SP); \
	MOVQ R8, AX; \
	MOVQ slabCall_nq(DI), CX; \
query: \
	MOVQ slabCall_lines(DI), R14; \
fetch: \
	PREFETCHT1 (R15); \
	ADDQ $64, R15; \
	DECQ R14; \
	JNZ fetch; \
	TIMES; \
	VBROADCASTSS slabQuery_scale(BX), Y1; \
	VBROADCASTSS slabQuery_offset(BX), Y2; \
	VCVTDQ2PS Y0, Y0; \
	VMULPS Y1, Y12, Y1; \
	VMULPS Y2, Y13, Y2; \
	VMULPS Y0, Y1, Y0; \
	VADDPS Y2, Y0, Y0; \
	VXORPS Y1, Y1, Y1; \
	TESTQ R12, R12; \
	JZ first; \
	VMOVUPS (AX), Y1; \
first: \
	VADDPS Y1, Y0, Y0; \
	VMOVUPS Y0, (AX); \
	ADDQ R13, AX; \
	ADDQ $slabQuery__size, BX; \
	DECQ CX; \
	JNZ query; \
	INCQ R12; \
	CMPQ R12, R10; \
	JB group; \
	ADDQ $32, R8; \
	MOVQ DX, R14; \
	ANDQ $1, R14; \
	JZ same; \
	ADDQ slabCall_size(DI), SI; \
	ADDQ slabCall_size(DI), R11; \
same: \
	DECQ DX; \
	JNZ half; \
	VZEROUPPER; \
	RET
