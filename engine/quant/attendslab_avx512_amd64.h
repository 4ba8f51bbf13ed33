// What the kernels over slabs share (attendslab_avx512_amd64.s).

// LARGEST brings the largest lane of Z31 into its first; op is for floats or
// whole numbers.
#define LARGEST(op) \
	VEXTRACTI64X4 $1, Z31, Y29; \
	op Y29, Y31, Y31; \
	VEXTRACTI32X4 $1, Y31, X29; \
	op X29, X31, X31; \
	VPSHUFD $0x4e, X31, X29; \
	op X29, X31, X31; \
	VPSHUFD $0xb1, X31, X29; \
	op X29, X31, X31

// TOTAL adds the lanes of Z30 into its first; op is for floats or whole numbers.
#define TOTAL(op) \
	VEXTRACTI64X4 $1, Z30, Y29; \
	op Y29, Y30, Y30; \
	VEXTRACTI32X4 $1, Y30, X29; \
	op X29, X30, X30; \
	VPSHUFD $0x4e, X30, X29; \
	op X29, X30, X30; \
	VPSHUFD $0xb1, X30, X29; \
	op X29, X30, X30

// Constants as in attendplain.go.
DATA whole<>+0(SB)/4, $32639.0
DATA whole<>+4(SB)/4, $0x7fffffff
DATA whole<>+8(SB)/4, $0x00800080
DATA whole<>+12(SB)/4, $0x80808080
DATA whole<>+16(SB)/4, $1.0e-34
DATA whole<>+20(SB)/4, $127.0
DATA whole<>+24(SB)/4, $32767.0
DATA whole<>+28(SB)/4, $254.0
DATA whole<>+32(SB)/4, $8388608.0
DATA whole<>+36(SB)/4, $12582912.0
DATA whole<>+40(SB)/4, $0x0f0f0f0f
GLOBL whole<>(SB), RODATA|NOPTR, $44


// SCALE makes of the largest number in X31 the factor to whole numbers in Z28,
// which is 0 where that number is too small to divide by, and its inverse in X31.
#define SCALE(most) \
	VMOVAPS X31, X28; \
	VBROADCASTSS whole<>+16(SB), X29; \
	VCMPPS $30, X29, X31, K2; \
	VBROADCASTSS whole<>+most(SB), X29; \
	VDIVPS.Z X28, X29, K2, X28; \
	VBROADCASTSS X28, Z28; \
	VDIVSS X29, X31, X31
