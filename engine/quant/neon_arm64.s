#include "textflag.h"

// Instructions that the Go assembler does not know, from the Arm Architecture
// Reference Manual (A64, Advanced SIMD). Operands in the order of the
// assembler: sources first, destination last.

// signed dot products of 4 bytes each, added to four 32-bit numbers
#define SDOT(m, n, d) WORD $(0x4E809400 | (m)<<16 | (n)<<5 | (d))
// four 32-bit numbers to floats
#define SCVTF(n, d) WORD $(0x4E21D800 | (n)<<5 | (d))
// d = n * m, d += n * m, d = n - m, pairwise n + m: four floats
#define FMUL4(m, n, d) WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d))
#define FMLA4(m, n, d) WORD $(0x4E20CC00 | (m)<<16 | (n)<<5 | (d))
#define FSUB4(m, n, d) WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d))
#define FADDP4(m, n, d) WORD $(0x6E20D400 | (m)<<16 | (n)<<5 | (d))
// d += n * element i of m: floats; d = n * element, d += n * element: 32-bit numbers
#define FMLAE(m, i, n, d) WORD $(0x4F801000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
#define MULE(m, i, n, d) WORD $(0x4F808000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
#define MLAE(m, i, n, d) WORD $(0x6F800000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))
// sums of neighbours: eight 16-bit numbers to four of 32 bits
#define SADDLP(n, d) WORD $(0x4E602800 | (n)<<5 | (d))
// lower or upper half made twice as wide, with sign
#define SXTL8(n, d) WORD $(0x0F08A400 | (n)<<5 | (d))
#define SXTL8H(n, d) WORD $(0x4F08A400 | (n)<<5 | (d))
#define SXTL16(n, d) WORD $(0x0F10A400 | (n)<<5 | (d))
#define SXTL16H(n, d) WORD $(0x4F10A400 | (n)<<5 | (d))

#define ZERO(v) VEOR v.B16, v.B16, v.B16

// SUM4 adds the four floats of V0 into F0.
#define SUM4 FADDP4(0, 0, 0); FADDP4(0, 0, 0)

// SCALE leaves the half at (R0) times the float at (R2) in F4, and steps over
// both.
#define SCALE \
	MOVHU.P 2(R0), R5; FMOVS R5, F4; FCVTHS F4, F4; \
	FMOVS.P 4(R2), F5; FMULS F5, F4, F4

// NIBBLES loads 16 bytes and leaves the low nibbles in V6, the high in V7. V30
// holds 15 in each byte.
#define NIBBLES \
	VLD1.P 16(R0), [V7.B16]; \
	VAND V30.B16, V7.B16, V6.B16; VUSHR $4, V7.B16, V7.B16

// DOT32 multiplies V6, V7 with the next 32 activations into V18, as floats.
#define DOT32 \
	VLD1.P 32(R1), [V16.B16, V17.B16]; ZERO(V18); \
	SDOT(16, 6, 18); SDOT(17, 7, 18); SCVTF(18, 18)

// func neonQ8_0(w *byte, q *int8, d *float32, blocks int) float32
TEXT ·neonQ8_0(SB), NOSPLIT, $0-36
	MOVD w+0(FP), R0
	MOVD q+8(FP), R1
	MOVD d+16(FP), R2
	MOVD blocks+24(FP), R3
	ZERO(V0)
	ZERO(V1)
	CBZ  R3, end
	TBZ  $0, R3, loop
	SCALE
	VLD1.P 32(R0), [V6.B16, V7.B16]
	DOT32
	FMLAE(4, 0, 18, 0)
	SUB  $1, R3
	CBZ  R3, end
loop:
	SCALE
	VLD1.P 32(R0), [V6.B16, V7.B16]
	DOT32
	FMLAE(4, 0, 18, 0)
	SCALE
	VLD1.P 32(R0), [V6.B16, V7.B16]
	DOT32
	FMLAE(4, 0, 18, 1)
	SUB  $2, R3
	CBNZ R3, loop
end:
	WORD $0x4E21D400 // FADD V0.4S, V0.4S, V1.4S
	SUM4
	FMOVS F0, ret+32(FP)
	RET

// func neonQ4_0(w *byte, q *int8, d *float32, blocks int) float32
TEXT ·neonQ4_0(SB), NOSPLIT, $0-36
	MOVD w+0(FP), R0
	MOVD q+8(FP), R1
	MOVD d+16(FP), R2
	MOVD blocks+24(FP), R3
	VMOVI $15, V30.B16
	VMOVI $8, V31.B16
	ZERO(V0)
	CBZ  R3, end
loop:
	SCALE
	NIBBLES
	VSUB V31.B16, V6.B16, V6.B16
	VSUB V31.B16, V7.B16, V7.B16
	DOT32
	FMLAE(4, 0, 18, 0)
	SUB  $1, R3
	CBNZ R3, loop
end:
	SUM4
	FMOVS F0, ret+32(FP)
	RET

// func neonQ4_1(w *byte, q *int8, d *float32, s *int16, blocks int) float32
TEXT ·neonQ4_1(SB), NOSPLIT, $0-44
	MOVD w+0(FP), R0
	MOVD q+8(FP), R1
	MOVD d+16(FP), R2
	MOVD s+24(FP), R3
	MOVD blocks+32(FP), R4
	VMOVI $15, V30.B16
	ZERO(V0)
	FMOVS ZR, F1
	CBZ  R4, end
loop:
	// offset times sum of 32 activations times their scale
	MOVHU 2(R0), R5
	FMOVS R5, F2
	FCVTHS F2, F2
	MOVH.P 2(R3), R6
	MOVH.P 2(R3), R7
	ADD  R6, R7
	SCVTFWS R7, F3
	FMOVS (R2), F5
	FMULS F5, F2, F2
	FMADDS F2, F1, F3, F1
	SCALE
	ADD  $2, R0
	NIBBLES
	DOT32
	FMLAE(4, 0, 18, 0)
	SUB  $1, R4
	CBNZ R4, loop
end:
	SUM4
	FADDS F1, F0
	FMOVS F0, ret+40(FP)
	RET

// func neonIQ4_NL(w *byte, q *int8, d *float32, blocks int, levels *[16]int8) float32
TEXT ·neonIQ4_NL(SB), NOSPLIT, $0-44
	MOVD w+0(FP), R0
	MOVD q+8(FP), R1
	MOVD d+16(FP), R2
	MOVD blocks+24(FP), R3
	MOVD levels+32(FP), R4
	VLD1 (R4), [V31.B16]
	VMOVI $15, V30.B16
	ZERO(V0)
	CBZ  R3, end
loop:
	SCALE
	NIBBLES
	VTBL V6.B16, [V31.B16], V6.B16
	VTBL V7.B16, [V31.B16], V7.B16
	DOT32
	FMLAE(4, 0, 18, 0)
	SUB  $1, R3
	CBNZ R3, loop
end:
	SUM4
	FMOVS F0, ret+40(FP)
	RET

// func neonIQ4_XS(w *byte, q *int8, d *float32, blocks int, levels *[16]int8) float32
TEXT ·neonIQ4_XS(SB), NOSPLIT, $0-44
	MOVD w+0(FP), R0
	MOVD q+8(FP), R1
	MOVD d+16(FP), R2
	MOVD blocks+24(FP), R3
	MOVD levels+32(FP), R4
	VLD1 (R4), [V31.B16]
	VMOVI $15, V30.B16
	ZERO(V0)
	CBZ  R3, end
loop:
	MOVHU (R0), R5
	FMOVS R5, F3
	FCVTHS F3, F3
	MOVHU 2(R0), R6  // upper two bits of the scales
	MOVWU 4(R0), R7  // lower four
	ADD  $8, R0
	ZERO(V19)
	MOVD $8, R8
group:
	AND  $15, R7, R9
	AND  $3, R6, R10
	ORR  R10<<4, R9, R9
	SUB  $32, R9
	SCVTFWS R9, F4
	FMOVS.P 4(R2), F5
	FMULS F5, F4, F4
	LSR  $4, R7
	LSR  $2, R6
	NIBBLES
	VTBL V6.B16, [V31.B16], V6.B16
	VTBL V7.B16, [V31.B16], V7.B16
	DOT32
	FMLAE(4, 0, 18, 19)
	SUB  $1, R8
	CBNZ R8, group
	FMLAE(3, 0, 19, 0)
	SUB  $1, R3
	CBNZ R3, loop
end:
	SUM4
	FMOVS F0, ret+40(FP)
	RET

// PAIR4K multiplies the next 32 bytes of nibbles with 64 activations. Elements
// i and i+1 of s hold scale times activation scale.
#define PAIR4K(s, i) \
	VLD1.P 32(R0), [V4.B16, V5.B16]; \
	VLD1.P 64(R1), [V8.B16, V9.B16, V10.B16, V11.B16]; \
	VAND V30.B16, V4.B16, V6.B16; VAND V30.B16, V5.B16, V7.B16; \
	VUSHR $4, V4.B16, V4.B16; VUSHR $4, V5.B16, V5.B16; \
	ZERO(V12); ZERO(V13); \
	SDOT(8, 6, 12); SDOT(9, 7, 12); SDOT(10, 4, 13); SDOT(11, 5, 13); \
	SCVTF(12, 12); SCVTF(13, 13); \
	FMLAE(s, i, 12, 19); FMLAE(s, (i)+1, 13, 19)

// WIDEN makes the eight bytes of r floats in the registers a and b.
#define WIDEN(r, va, vb, a, b) \
	VMOV r, va.D[0]; \
	VUXTL va.B8, va.H8; VUXTL2 va.H8, vb.S4; VUXTL va.H4, va.S4; \
	SCVTF(a, a); SCVTF(b, b)

// func neonQ4_K(w *byte, q *int8, d *float32, s *int16, blocks int) float32
TEXT ·neonQ4_K(SB), NOSPLIT, $0-44
	MOVD w+0(FP), R0
	MOVD q+8(FP), R1
	MOVD d+16(FP), R2
	MOVD s+24(FP), R3
	MOVD blocks+32(FP), R4
	VMOVI $15, V30.B16
	MOVD $0x3f3f3f3f, R13
	MOVD $0x0f0f0f0f, R14
	MOVD $0x30303030, R15
	ZERO(V0)
	ZERO(V1)
	CBZ  R4, end
loop:
	MOVHU (R0), R5
	FMOVS R5, F2
	FCVTHS F2, F2
	MOVHU 2(R0), R5
	FMOVS R5, F3
	FCVTHS F3, F3
	// eight scales as the bytes of R8, eight offsets as those of R9
	MOVWU 4(R0), R5
	MOVWU 8(R0), R6
	MOVWU 12(R0), R7
	ADD  $16, R0
	AND  R13, R5, R8
	LSR  $2, R5, R5
	AND  R15, R5, R5
	AND  R14, R7, R10
	ORR  R5, R10, R10
	ORR  R10<<32, R8, R8
	AND  R13, R6, R9
	LSR  $2, R6, R6
	AND  R15, R6, R6
	LSR  $4, R7, R10
	AND  R14, R10, R10
	ORR  R6, R10, R10
	ORR  R10<<32, R9, R9
	WIDEN(R8, V21, V22, 21, 22)
	WIDEN(R9, V23, V24, 23, 24)
	VLD1.P 32(R2), [V25.S4, V26.S4]
	FMUL4(25, 21, 21)
	FMUL4(26, 22, 22)
	// offsets times sums of 32 activations times their scale
	VLD1.P 32(R3), [V27.H8, V28.H8]
	SADDLP(27, 27)
	SADDLP(28, 28)
	SCVTF(27, 27)
	SCVTF(28, 28)
	FMUL4(25, 27, 27)
	FMUL4(26, 28, 28)
	FMUL4(23, 27, 29)
	FMLA4(24, 28, 29)
	ZERO(V19)
	PAIR4K(21, 0)
	PAIR4K(21, 2)
	PAIR4K(22, 0)
	PAIR4K(22, 2)
	FMLAE(2, 0, 19, 0)
	FMLAE(3, 0, 29, 1)
	SUB  $1, R4
	CBNZ R4, loop
end:
	FSUB4(1, 0, 0)
	SUM4
	FMOVS F0, ret+40(FP)
	RET

// GROUP6K takes 32 numbers of 0..63 in V8, V9: elements e and e+1 of sv are
// their two scales, element i of dv the scale of the activations.
#define GROUP6K(sv, e, dv, i) \
	VSUB V31.B16, V8.B16, V8.B16; VSUB V31.B16, V9.B16, V9.B16; \
	VLD1.P 32(R1), [V10.B16, V11.B16]; \
	ZERO(V12); ZERO(V13); \
	SDOT(10, 8, 12); SDOT(11, 9, 13); \
	MULE(sv, e, 12, 12); MLAE(sv, (e)+1, 13, 12); \
	SCVTF(12, 12); FMLAE(dv, i, 12, 19)

// HALF6K is 128 values: low nibbles at R0, upper pairs of bits at R6; scales in
// sa, sb, scales of activations in dv.
#define HALF6K(sa, sb, dv) \
	VLD1.P 64(R0), [V2.B16, V3.B16, V4.B16, V5.B16]; \
	VLD1.P 32(R6), [V6.B16, V7.B16]; \
	VAND V30.B16, V2.B16, V8.B16; VAND V30.B16, V3.B16, V9.B16; \
	VSHL $4, V6.B16, V14.B16; VSHL $4, V7.B16, V15.B16; \
	VAND V29.B16, V14.B16, V14.B16; VAND V29.B16, V15.B16, V15.B16; \
	VORR V14.B16, V8.B16, V8.B16; VORR V15.B16, V9.B16, V9.B16; \
	GROUP6K(sa, 0, dv, 0); \
	VAND V30.B16, V4.B16, V8.B16; VAND V30.B16, V5.B16, V9.B16; \
	VSHL $2, V6.B16, V14.B16; VSHL $2, V7.B16, V15.B16; \
	VAND V29.B16, V14.B16, V14.B16; VAND V29.B16, V15.B16, V15.B16; \
	VORR V14.B16, V8.B16, V8.B16; VORR V15.B16, V9.B16, V9.B16; \
	GROUP6K(sa, 2, dv, 1); \
	VUSHR $4, V2.B16, V8.B16; VUSHR $4, V3.B16, V9.B16; \
	VAND V29.B16, V6.B16, V14.B16; VAND V29.B16, V7.B16, V15.B16; \
	VORR V14.B16, V8.B16, V8.B16; VORR V15.B16, V9.B16, V9.B16; \
	GROUP6K(sb, 0, dv, 2); \
	VUSHR $4, V4.B16, V8.B16; VUSHR $4, V5.B16, V9.B16; \
	VUSHR $2, V6.B16, V14.B16; VUSHR $2, V7.B16, V15.B16; \
	VAND V29.B16, V14.B16, V14.B16; VAND V29.B16, V15.B16, V15.B16; \
	VORR V14.B16, V8.B16, V8.B16; VORR V15.B16, V9.B16, V9.B16; \
	GROUP6K(sb, 2, dv, 3)

// func neonQ6_K(w *byte, q *int8, d *float32, blocks int) float32
TEXT ·neonQ6_K(SB), NOSPLIT, $0-36
	MOVD w+0(FP), R0
	MOVD q+8(FP), R1
	MOVD d+16(FP), R2
	MOVD blocks+24(FP), R3
	VMOVI $15, V30.B16
	VMOVI $48, V29.B16
	VMOVI $32, V31.B16
	ZERO(V0)
	CBZ  R3, end
loop:
	ADD  $128, R0, R6
	ADD  $192, R0, R7
	VLD1 (R7), [V20.B16]
	MOVHU 16(R7), R5
	FMOVS R5, F27
	FCVTHS F27, F27
	SXTL8H(20, 22)
	SXTL8(20, 20)
	SXTL16H(20, 21)
	SXTL16(20, 20)
	SXTL16H(22, 23)
	SXTL16(22, 22)
	VLD1.P 32(R2), [V25.S4, V26.S4]
	ZERO(V19)
	HALF6K(20, 21, 25)
	HALF6K(22, 23, 26)
	FMLAE(27, 0, 19, 0)
	ADD  $82, R0
	SUB  $1, R3
	CBNZ R3, loop
end:
	SUM4
	FMOVS F0, ret+32(FP)
	RET
