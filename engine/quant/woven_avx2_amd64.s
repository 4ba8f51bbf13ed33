#include "go_asm.h"
#include "textflag.h"
#include "frame_amd64.h"
#include "avx2_amd64.h"
#include "woven_avx2_amd64.h"

// The meaning of every function here is Format.product (product.go) of the woven
// format for each row and each activation row of a gemv.

// func rowsW4_0x256(p *gemv)
TEXT ·rowsW4_0x256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_0, U5, VLESS(4), VCHAIN8, 144)

// func rowsW4_1x256(p *gemv)
TEXT ·rowsW4_1x256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_1, U5, VEXACT, VCHAIN8_OFFS, 160)

// func rowsW5_0x256(p *gemv)
TEXT ·rowsW5_0x256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V5_0, U5, VLESS(3), VCHAIN8, 176)

// func rowsW5_1x256(p *gemv)
TEXT ·rowsW5_1x256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V5_1, U5, VEXACT, VCHAIN8_OFFS, 192)

// func rowsW8_0x256(p *gemv)
TEXT ·rowsW8_0x256(SB), NOSPLIT, $0-8
	VROWS(FETCH5, V8_0, S8, VEXACT, VCHAIN8, 272)

// func rowsW2_Kx256(p *gemv)
TEXT ·rowsW2_Kx256(SB), NOSPLIT, $0-8
	VROWS(FETCH2, V2_K, U5, VEXACT, VCHAIN16_OFFS, 84)

// func rowsW3_Kx256(p *gemv)
TEXT ·rowsW3_Kx256(SB), NOSPLIT, $0-8
	VROWS(FETCH2, V3_K, U5, VLESS(5), VCHAIN16, 110)

// func rowsW4_Kx256(p *gemv)
TEXT ·rowsW4_Kx256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_K, U5, VEXACT, VCHAIN8_OFFS, 144)

// func rowsW5_Kx256(p *gemv)
TEXT ·rowsW5_Kx256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V5_K, U5, VEXACT, VCHAIN8_OFFS, 176)

// func rowsW6_Kx256(p *gemv)
TEXT ·rowsW6_Kx256(SB), NOSPLIT, $0-8
	VROWS(FETCH4, V6_K, U6, VLESS(2), VCHAIN16, 210)

// func rowsW4_NLx256(p *gemv)
TEXT ·rowsW4_NLx256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_NL, S8, VEXACT, VCHAIN8, 144)

// func rowsW4_XSx256(p *gemv)
TEXT ·rowsW4_XSx256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V4_XS, S8, VEXACT, VCHAIN8, 136)

// func rowsWMXx256(p *gemv)
TEXT ·rowsWMXx256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, VMX, U5, VLESS(3), VCHAIN8, 136)

// func rowsW3Sx256(p *gemv)
TEXT ·rowsW3Sx256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V3S, U5, VLESS(3), VCHAIN8, 136)

// func rowsW3XXSx256(p *gemv)
TEXT ·rowsW3XXSx256(SB), NOSPLIT, $0-8
	VROWS(FETCH3, V3XXS, U7, VLESS(1), VCHAIN8, 136)
