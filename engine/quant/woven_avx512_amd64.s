#include "go_asm.h"
#include "textflag.h"
#include "frame_amd64.h"
#include "avx512_amd64.h"
#include "woven_avx512_amd64.h"

// The meaning of every function here is Format.product (product.go) of the woven
// format for each row and each activation row of a gemv.

// func rowsW4_0x512(p *gemv)
TEXT ·rowsW4_0x512(SB), NOSPLIT, $0-8
	WROWS8(W4_0_CONSTS, FETCH3, W4_0, INIT_8, WCHAIN8, 144)

// func rowsW4_1x512(p *gemv)
TEXT ·rowsW4_1x512(SB), NOSPLIT, $0-8
	WROWS8(W4_1_CONSTS, FETCH3, W4_1, INIT_0, WCHAIN8_MORE, 160)

// func rowsW5_0x512(p *gemv)
TEXT ·rowsW5_0x512(SB), NOSPLIT, $0-8
	WROWS8(W5_0_CONSTS, FETCH3, W5_0, INIT_16, WCHAIN8, 176)

// func rowsW5_1x512(p *gemv)
TEXT ·rowsW5_1x512(SB), NOSPLIT, $0-8
	WROWS8(W5_1_CONSTS, FETCH3, W5_1, INIT_0, WCHAIN8_MORE, 192)

// func rowsW8_0x512(p *gemv)
TEXT ·rowsW8_0x512(SB), NOSPLIT, $0-8
	WROWS8(W8_0_CONSTS, FETCH5, W8_0, INIT_128, WCHAIN8, 272)

// func rowsW2_Kx512(p *gemv)
TEXT ·rowsW2_Kx512(SB), NOSPLIT, $0-8
	WROWS16(W2_K_CONSTS, FETCH2, W2_K, INIT_0, WCHAIN16_LESS, 84)

// func rowsW3_Kx512(p *gemv)
TEXT ·rowsW3_Kx512(SB), NOSPLIT, $0-8
	WROWS16(W3_K_CONSTS, FETCH2, W3_K, INIT_128, WCHAIN16, 110)

// func rowsW4_Kx512(p *gemv)
TEXT ·rowsW4_Kx512(SB), NOSPLIT, $0-8
	WROWS8(W4_K_CONSTS, FETCH3, W4_K, INIT_0, WCHAIN8_LESS, 144)

// func rowsW5_Kx512(p *gemv)
TEXT ·rowsW5_Kx512(SB), NOSPLIT, $0-8
	WROWS8(W5_K_CONSTS, FETCH3, W5_K, INIT_0, WCHAIN8_LESS, 176)

// func rowsW6_Kx512(p *gemv)
TEXT ·rowsW6_Kx512(SB), NOSPLIT, $0-8
	WROWS16(W6_K_CONSTS, FETCH4, W6_K, INIT_32, WCHAIN16, 210)

// func rowsW4_NLx512(p *gemv)
TEXT ·rowsW4_NLx512(SB), NOSPLIT, $0-8
	WROWS8(WLEVELS_CONSTS(consts512_uneven), FETCH3, W4_NL, INIT_128, WCHAIN8, 144)

// func rowsW4_XSx512(p *gemv)
TEXT ·rowsW4_XSx512(SB), NOSPLIT, $0-8
	WROWS8(W4_XS_CONSTS, FETCH3, W4_XS, INIT_128, WCHAIN8, 136)

// func rowsWMXx512(p *gemv)
TEXT ·rowsWMXx512(SB), NOSPLIT, $0-8
	WROWS8(WMX_CONSTS, FETCH3, WMX, INIT_128, WCHAIN8, 136)

// func rowsW3Sx512(p *gemv)
TEXT ·rowsW3Sx512(SB), NOSPLIT, $0-8
	WROWS8(WGRID3_CONSTS(consts512_relaid3S), FETCH3, WGRID3, INIT_128, WCHAIN8, 136)

// func rowsW3XXSx512(p *gemv)
TEXT ·rowsW3XXSx512(SB), NOSPLIT, $0-8
	WROWS8(WGRID3_CONSTS(consts512_relaid3XXS), FETCH3, WGRID3, INIT_128, WCHAIN8, 136)
