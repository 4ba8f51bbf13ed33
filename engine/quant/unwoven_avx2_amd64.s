#include "go_asm.h"
#include "textflag.h"
#include "frame_amd64.h"
#include "avx2_amd64.h"
#include "woven_avx2_amd64.h"

// Every function here brings 256 woven weights of each of some rows to plain rows
// (many.go), as those of unpack_avx2_amd64.s.

#define UNPACK_BEGIN \
	MOVQ p+0(FP), DI; \
	MOVQ unpack_w(DI), SI; \
	MOVQ unpack_dst(DI), R8; \
	MOVQ unpack_rows(DI), CX
#define UNPACK_NEXT \
	ADDQ unpack_size(DI), SI; \
	ADDQ $plainRow__size, R8; \
	DECQ CX; \
	JNZ row; \
	VZEROUPPER; \
	RET

// TURN changes rows and columns of four registers, in halves.
#define TURN(a, b, c, d) \
	VPUNPCKLDQ b, a, Y8; \
	VPUNPCKHDQ b, a, Y9; \
	VPUNPCKLDQ d, c, Y10; \
	VPUNPCKHDQ d, c, Y11; \
	VPUNPCKLQDQ Y10, Y8, a; \
	VPUNPCKHQDQ Y10, Y8, b; \
	VPUNPCKLQDQ Y11, Y9, c; \
	VPUNPCKHQDQ Y11, Y9, d
#define PAIR(a, b, at) \
	VPERM2I128 $0x20, b, a, Y8; \
	VPERM2I128 $0x31, b, a, Y9; \
	VMOVDQU Y8, at(R8); \
	VMOVDQU Y9, (at+32)(R8)
#define WEIGHTS \
	TURN(Y0, Y2, Y4, Y6); \
	TURN(Y1, Y3, Y5, Y7); \
	PAIR(Y0, Y1, 0); \
	PAIR(Y2, Y3, 64); \
	PAIR(Y4, Y5, 128); \
	PAIR(Y6, Y7, 192)

// ORDER16 brings scales of 16 into the order of a record.
#define ORDER16(at) \
	VMOVUPS at(R8), Y8; \
	VMOVUPS (at+32)(R8), Y9; \
	VPERM2F128 $0x20, Y9, Y8, Y10; \
	VPERM2F128 $0x31, Y9, Y8, Y11; \
	VMOVUPS Y10, at(R8); \
	VMOVUPS Y11, (at+32)(R8)

// func unpackW4_0x256(p *unpack)
TEXT ·unpackW4_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 432(SI)
	PREFETCHT0 496(SI)
	PREFETCHT0 560(SI)
	V4_0
	WEIGHTS
	UNPACK_NEXT

// func unpackW4_1x256(p *unpack)
TEXT ·unpackW4_1x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 480(SI)
	PREFETCHT0 544(SI)
	PREFETCHT0 608(SI)
	V4_1
	WEIGHTS
	UNPACK_NEXT

// func unpackW5_0x256(p *unpack)
TEXT ·unpackW5_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 528(SI)
	PREFETCHT0 592(SI)
	PREFETCHT0 656(SI)
	V5_0
	WEIGHTS
	UNPACK_NEXT

// func unpackW5_1x256(p *unpack)
TEXT ·unpackW5_1x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 576(SI)
	PREFETCHT0 640(SI)
	PREFETCHT0 704(SI)
	V5_1
	WEIGHTS
	UNPACK_NEXT

// func unpackW8_0x256(p *unpack)
TEXT ·unpackW8_0x256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 816(SI)
	PREFETCHT0 880(SI)
	PREFETCHT0 944(SI)
	PREFETCHT0 1008(SI)
	PREFETCHT0 1072(SI)
	V8_0
	WEIGHTS
	UNPACK_NEXT

// func unpackW2_Kx256(p *unpack)
TEXT ·unpackW2_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 252(SI)
	PREFETCHT0 316(SI)
	V2_K
	WEIGHTS
	ORDER16(plainRow_scale)
	ORDER16(plainRow_minus)
	UNPACK_NEXT

// func unpackW3_Kx256(p *unpack)
TEXT ·unpackW3_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 330(SI)
	PREFETCHT0 394(SI)
	V3_K
	WEIGHTS
	ORDER16(plainRow_scale)
	UNPACK_NEXT

// func unpackW4_Kx256(p *unpack)
TEXT ·unpackW4_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 432(SI)
	PREFETCHT0 496(SI)
	PREFETCHT0 560(SI)
	V4_K
	WEIGHTS
	UNPACK_NEXT

// func unpackW5_Kx256(p *unpack)
TEXT ·unpackW5_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 528(SI)
	PREFETCHT0 592(SI)
	PREFETCHT0 656(SI)
	V5_K
	WEIGHTS
	UNPACK_NEXT

// func unpackW6_Kx256(p *unpack)
TEXT ·unpackW6_Kx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 630(SI)
	PREFETCHT0 694(SI)
	PREFETCHT0 758(SI)
	PREFETCHT0 822(SI)
	V6_K
	WEIGHTS
	ORDER16(plainRow_scale)
	UNPACK_NEXT

// func unpackW4_NLx256(p *unpack)
TEXT ·unpackW4_NLx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 432(SI)
	PREFETCHT0 496(SI)
	PREFETCHT0 560(SI)
	V4_NL
	WEIGHTS
	UNPACK_NEXT

// func unpackW4_XSx256(p *unpack)
TEXT ·unpackW4_XSx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 408(SI)
	PREFETCHT0 472(SI)
	PREFETCHT0 536(SI)
	V4_XS
	WEIGHTS
	UNPACK_NEXT

// func unpackWMXx256(p *unpack)
TEXT ·unpackWMXx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 408(SI)
	PREFETCHT0 472(SI)
	PREFETCHT0 536(SI)
	VMX
	WEIGHTS
	UNPACK_NEXT

// func unpackW3Sx256(p *unpack)
TEXT ·unpackW3Sx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 408(SI)
	PREFETCHT0 472(SI)
	PREFETCHT0 536(SI)
	V3S
	WEIGHTS
	UNPACK_NEXT

// func unpackW3XXSx256(p *unpack)
TEXT ·unpackW3XXSx256(SB), NOSPLIT, $0-8
	UNPACK_BEGIN
row:
	PREFETCHT0 408(SI)
	PREFETCHT0 472(SI)
	PREFETCHT0 536(SI)
	V3XXS
	WEIGHTS
	UNPACK_NEXT
