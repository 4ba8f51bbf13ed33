#include "textflag.h"

// Vector operations on AVX2, for levels that have it (registers of 32 bytes are
// as fast as those of 64 on the processors measured). n and rows are numbers of
// floats and of rows; n is a multiple of 8 and not zero: callers own the rest
// (vec_amd64.go). Above each function stands the loop that it replaces.

// Constants of e^x, eight times each where a vector operation reads them.
#define FLOAT8(name, bits) \
	DATA name<>+0(SB)/4, $bits; \
	GLOBL name<>(SB), RODATA|NOPTR, $4

FLOAT8(log2e, 0x3fb8aa3b)
FLOAT8(ln2hi, 0x3f317218)  // nearest to ln 2
FLOAT8(ln2lo, 0xb102e308)  // the rest of it
FLOAT8(exp0, 0x3efffffe)   // (e^r - 1 - r)/r^2 for |r| <= ln(2)/2: a minimax polynomial
FLOAT8(exp1, 0x3e2aaa49)   // whose largest error is 3.1e-9 of e^r
FLOAT8(exp2, 0x3d2aac79)
FLOAT8(exp3, 0x3c091d10)
FLOAT8(exp4, 0x3ab511e8)
FLOAT8(one, 0x3f800000)
FLOAT8(low, 0xc2aeac50)    // -87.33654: below it e^x is no normal number
FLOAT8(high, 0x42b20000)   // 89: from here on e^x is infinite
FLOAT8(minusOne, 0xbf800000)
FLOAT8(gelu2, 0xbfcc422a)  // -2*sqrt(2/pi)
FLOAT8(cube, 0x3d372713)   // 0.044715
DATA bias<>+0(SB)/4, $127
GLOBL bias<>(SB), RODATA|NOPTR, $4

// EXP_CONSTS keeps the constants of EXP in Y4-Y15.
#define EXP_CONSTS \
	VBROADCASTSS log2e<>(SB), Y4; \
	VBROADCASTSS ln2hi<>(SB), Y5; \
	VBROADCASTSS ln2lo<>(SB), Y6; \
	VBROADCASTSS exp0<>(SB), Y7; \
	VBROADCASTSS exp1<>(SB), Y8; \
	VBROADCASTSS exp2<>(SB), Y9; \
	VBROADCASTSS exp3<>(SB), Y10; \
	VBROADCASTSS exp4<>(SB), Y11; \
	VBROADCASTSS one<>(SB), Y12; \
	VBROADCASTSS low<>(SB), Y13; \
	VBROADCASTSS high<>(SB), Y14; \
	VPBROADCASTD bias<>(SB), Y15

// EXP replaces Y0 by e^Y0; Y1-Y3 are used up. e^x = 2^n * e^r with n the whole
// number nearest x/ln 2. 2^n is made as two factors, since n may be 128. NaN
// passes: VMINPS gives its second source (here x) where one is NaN.
#define EXP \
	VCMPPS $1, Y13, Y0, Y3; \
	VMINPS Y0, Y14, Y0; \
	VMULPS Y4, Y0, Y1; \
	VROUNDPS $8, Y1, Y1; \
	VFNMADD231PS Y5, Y1, Y0; \
	VFNMADD231PS Y6, Y1, Y0; \
	VCVTPS2DQ Y1, Y1; \
	VMOVAPS Y11, Y2; \
	VFMADD213PS Y10, Y0, Y2; \
	VFMADD213PS Y9, Y0, Y2; \
	VFMADD213PS Y8, Y0, Y2; \
	VFMADD213PS Y7, Y0, Y2; \
	VANDNPS Y0, Y3, Y0; \
	VMULPS Y0, Y2, Y2; \
	VFMADD213PS Y0, Y0, Y2; \
	VADDPS Y12, Y2, Y0; \
	VPSRAD $1, Y1, Y2; \
	VPSUBD Y2, Y1, Y1; \
	VPADDD Y15, Y2, Y2; \
	VPADDD Y15, Y1, Y1; \
	VPSLLD $23, Y2, Y2; \
	VPSLLD $23, Y1, Y1; \
	VMULPS Y2, Y0, Y0; \
	VMULPS Y1, Y0, Y0; \
	VANDNPS Y0, Y3, Y0

// SIGMOID replaces Y0, which holds -x, by 1/(1+e^-x).
#define SIGMOID \
	EXP; \
	VADDPS Y12, Y0, Y0; \
	VDIVPS Y0, Y12, Y0

// for i := range n { dst[i] = e^x[i] }
// func exp256(dst, x *float32, n int)
TEXT ·exp256(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	EXP_CONSTS
loop:
	VMOVUPS (SI), Y0
	EXP
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for i := range n { x[i] = e^(x[i]-top); sum += x[i] }
// func expSum256(x *float32, n int, top float32) (sum float32)
TEXT ·expSum256(SB), NOSPLIT, $32-28
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	EXP_CONSTS
	VXORPS X0, X0, X0
	VMOVUPS Y0, (SP)
loop:
	VBROADCASTSS top+16(FP), Y1
	VMOVUPS (DI), Y0
	VSUBPS Y1, Y0, Y0
	EXP
	VMOVUPS Y0, (DI)
	VADDPS (SP), Y0, Y0
	VMOVUPS Y0, (SP)
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VHADDPS X0, X0, X0
	VHADDPS X0, X0, X0
	VMOVSS X0, sum+24(FP)
	VZEROUPPER
	RET

// EXP512 replaces z by e^z as EXP does, on AVX-512, whose VSCALEFPS multiplies by
// 2^n; a and b are used up. k is what is not below the limit, NaN included.
#define EXP512(z, a, b, k) \
	VCMPPS $21, Z13, z, k; \
	VMINPS z, Z14, z; \
	VMULPS Z4, z, a; \
	VRNDSCALEPS $8, a, a; \
	VFNMADD231PS Z5, a, z; \
	VFNMADD231PS Z6, a, z; \
	VMOVAPS Z11, b; \
	VFMADD213PS Z10, z, b; \
	VFMADD213PS Z9, z, b; \
	VFMADD213PS Z8, z, b; \
	VFMADD213PS Z7, z, b; \
	VMULPS z, b, b; \
	VFMADD213PS z, z, b; \
	VADDPS Z12, b, z; \
	VSCALEFPS.Z a, z, k, z

// func expSum512(x *float32, n int, top float32) (sum float32)
// n is a multiple of 32.
TEXT ·expSum512(SB), NOSPLIT, $0-28
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX
	VBROADCASTSS log2e<>(SB), Z4
	VBROADCASTSS ln2hi<>(SB), Z5
	VBROADCASTSS ln2lo<>(SB), Z6
	VBROADCASTSS exp0<>(SB), Z7
	VBROADCASTSS exp1<>(SB), Z8
	VBROADCASTSS exp2<>(SB), Z9
	VBROADCASTSS exp3<>(SB), Z10
	VBROADCASTSS exp4<>(SB), Z11
	VBROADCASTSS one<>(SB), Z12
	VBROADCASTSS low<>(SB), Z13
	VBROADCASTSS high<>(SB), Z14
	VBROADCASTSS top+16(FP), Z15
	VPXORD Z16, Z16, Z16
	VPXORD Z17, Z17, Z17
loop:
	VMOVUPS (DI), Z0
	VMOVUPS 64(DI), Z18
	VSUBPS Z15, Z0, Z0
	VSUBPS Z15, Z18, Z18
	EXP512(Z0, Z1, Z2, K1)
	EXP512(Z18, Z19, Z20, K2)
	VMOVUPS Z0, (DI)
	VMOVUPS Z18, 64(DI)
	VADDPS Z0, Z16, Z16
	VADDPS Z18, Z17, Z17
	ADDQ $128, DI
	SUBQ $32, CX
	JNZ loop
	VADDPS Z17, Z16, Z0
	VEXTRACTF64X4 $1, Z0, Y1
	VADDPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VHADDPS X0, X0, X0
	VHADDPS X0, X0, X0
	VMOVSS X0, sum+24(FP)
	VZEROUPPER
	RET

// for i := range n { dst[i] = 1/(1+e^-x[i]) }
// func sigmoid256(dst, x *float32, n int)
TEXT ·sigmoid256(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	EXP_CONSTS
loop:
	VBROADCASTSS minusOne<>(SB), Y1
	VMULPS (SI), Y1, Y0
	SIGMOID
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for i := range n { dst[i] = x[i]/(1+e^-x[i]) }
// func silu256(dst, x *float32, n int)
TEXT ·silu256(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	EXP_CONSTS
loop:
	VBROADCASTSS minusOne<>(SB), Y1
	VMULPS (SI), Y1, Y0
	SIGMOID
	VMULPS (SI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for i := range n { dst[i] = gate[i]/(1+e^-gate[i]) * up[i] }
// func swiGLU256(dst, gate, up *float32, n int)
TEXT ·swiGLU256(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ gate+8(FP), SI
	MOVQ up+16(FP), DX
	MOVQ n+24(FP), CX
	EXP_CONSTS
loop:
	VBROADCASTSS minusOne<>(SB), Y1
	VMULPS (SI), Y1, Y0
	SIGMOID
	VMULPS (SI), Y0, Y0
	VMULPS (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for i := range n { g := gate[i]; dst[i] = g/(1+e^(-2*sqrt(2/pi)*g*(1+0.044715*g*g))) * up[i] }
// func geGLU256(dst, gate, up *float32, n int)
TEXT ·geGLU256(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ gate+8(FP), SI
	MOVQ up+16(FP), DX
	MOVQ n+24(FP), CX
	EXP_CONSTS
loop:
	VMOVUPS (SI), Y1
	VBROADCASTSS cube<>(SB), Y2
	VBROADCASTSS gelu2<>(SB), Y3
	VMULPS Y1, Y1, Y0
	VFMADD213PS Y12, Y2, Y0
	VMULPS Y1, Y0, Y0
	VMULPS Y3, Y0, Y0
	SIGMOID
	VMULPS (SI), Y0, Y0
	VMULPS (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for i := range n { s[i%32] += a[i]*b[i] }; the 32 sums are added by halves
// func dot256(a, b *float32, n int) (sum float32)
TEXT ·dot256(SB), NOSPLIT, $0-28
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ n+16(FP), CX
	VXORPS X0, X0, X0
	VXORPS X1, X1, X1
	VXORPS X2, X2, X2
	VXORPS X3, X3, X3
	SUBQ $32, CX
	JL eights
loop:
	VMOVUPS (SI), Y4
	VMOVUPS 32(SI), Y5
	VMOVUPS 64(SI), Y6
	VMOVUPS 96(SI), Y7
	VFMADD231PS (DI), Y4, Y0
	VFMADD231PS 32(DI), Y5, Y1
	VFMADD231PS 64(DI), Y6, Y2
	VFMADD231PS 96(DI), Y7, Y3
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JGE loop
eights:
	ADDQ $32, CX
	JZ sum
eight:
	VMOVUPS (SI), Y4
	VFMADD231PS (DI), Y4, Y0
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ eight
sum:
	VADDPS Y2, Y0, Y0
	VADDPS Y3, Y1, Y1
	VADDPS Y1, Y0, Y0
	VEXTRACTF128 $1, Y0, X1
	VADDPS X1, X0, X0
	VHADDPS X0, X0, X0
	VHADDPS X0, X0, X0
	VMOVSS X0, sum+24(FP)
	VZEROUPPER
	RET

// for i := range n { dst[i] += s*x[i] }
// func axpy256(dst, x *float32, n int, s float32)
TEXT ·axpy256(SB), NOSPLIT, $0-28
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
	VBROADCASTSS s+24(FP), Y2
loop:
	VMOVUPS (DI), Y0
	VFMADD231PS (SI), Y2, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for i := range n { dst[i] *= s }
// func scale256(dst *float32, n int, s float32)
TEXT ·scale256(SB), NOSPLIT, $0-20
	MOVQ dst+0(FP), DI
	MOVQ n+8(FP), CX
	VBROADCASTSS s+16(FP), Y2
loop:
	VMULPS (DI), Y2, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for i := range n { dst[i] = x[i]*s*w[i] }
// func scaleMul256(dst, x, w *float32, n int, s float32)
TEXT ·scaleMul256(SB), NOSPLIT, $0-36
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ w+16(FP), DX
	MOVQ n+24(FP), CX
	VBROADCASTSS s+32(FP), Y2
loop:
	VMULPS (SI), Y2, Y0
	VMULPS (DX), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for i := range n { dst[i] += x[i] }
// func add256(dst, x *float32, n int)
TEXT ·add256(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	VMOVUPS (DI), Y0
	VADDPS (SI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for i := range n { dst[i] *= x[i] }
// func mul256(dst, x *float32, n int)
TEXT ·mul256(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	VMOVUPS (DI), Y0
	VMULPS (SI), Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// top = x[0]; for i := range n { top = max(top, x[i]) }, NaN or not as VMAXPS has it
// func max256(x *float32, n int) (top float32)
TEXT ·max256(SB), NOSPLIT, $0-20
	MOVQ x+0(FP), SI
	MOVQ n+8(FP), CX
	VMOVUPS (SI), Y0
loop:
	VMAXPS (SI), Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JNZ loop
	VEXTRACTF128 $1, Y0, X1
	VMAXPS X1, X0, X0
	VPERMILPD $1, X0, X1
	VMAXPS X1, X0, X0
	VMOVSHDUP X0, X1
	VMAXSS X1, X0, X0
	VMOVSS X0, top+16(FP)
	VZEROUPPER
	RET

// for i := range n { dst[i] = half(x[i]) }
// func toF16x256(dst *uint16, x *float32, n int)
TEXT ·toF16x256(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	VMOVUPS (SI), Y0
	VCVTPS2PH $0, Y0, (DI)
	ADDQ $32, SI
	ADDQ $16, DI
	SUBQ $8, CX
	JNZ loop
	VZEROUPPER
	RET

// for each 8 bytes of b { x ^= them }; n is a multiple of 256
// func sweep256(b *byte, n int) (x uint64)
TEXT ·sweep256(SB), NOSPLIT, $0-24
	MOVQ b+0(FP), SI
	MOVQ n+8(FP), CX
	VPXOR X0, X0, X0
	VPXOR X1, X1, X1
	VPXOR X2, X2, X2
	VPXOR X3, X3, X3
loop:
	PREFETCHT0 2048(SI)
	PREFETCHT0 2112(SI)
	PREFETCHT0 2176(SI)
	PREFETCHT0 2240(SI)
	VPXOR (SI), Y0, Y0
	VPXOR 32(SI), Y1, Y1
	VPXOR 64(SI), Y2, Y2
	VPXOR 96(SI), Y3, Y3
	VPXOR 128(SI), Y0, Y0
	VPXOR 160(SI), Y1, Y1
	VPXOR 192(SI), Y2, Y2
	VPXOR 224(SI), Y3, Y3
	ADDQ $256, SI
	SUBQ $256, CX
	JNZ loop
	VPXOR Y1, Y0, Y0
	VPXOR Y3, Y2, Y2
	VPXOR Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPXOR X1, X0, X0
	VPEXTRQ $1, X0, AX
	VMOVQ X0, BX
	XORQ BX, AX
	MOVQ AX, x+16(FP)
	VZEROUPPER
	RET
