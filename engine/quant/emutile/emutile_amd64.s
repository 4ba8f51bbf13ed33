#include "textflag.h"

// What a call leaves as it was: all registers and flags. The state lies in
// memory of its own, because the stack of a kernel is short.
GLOBL saved<>(SB), NOPTR, $2304

// enter is called with, from the top of the stack on: where to go back, the
// number of the instruction, its index and its base register.
TEXT ·enter(SB), NOSPLIT|NOFRAME, $0
	MOVQ AX, saved<>+0(SB)
	MOVQ CX, saved<>+8(SB)
	MOVQ DX, saved<>+16(SB)
	MOVQ BX, saved<>+24(SB)
	MOVQ BP, saved<>+32(SB)
	MOVQ SI, saved<>+40(SB)
	MOVQ DI, saved<>+48(SB)
	MOVQ R8, saved<>+56(SB)
	MOVQ R9, saved<>+64(SB)
	MOVQ R10, saved<>+72(SB)
	MOVQ R11, saved<>+80(SB)
	MOVQ R12, saved<>+88(SB)
	MOVQ R13, saved<>+96(SB)
	MOVQ R14, saved<>+104(SB)
	MOVQ R15, saved<>+112(SB)
	PUSHFQ
	POPQ AX
	MOVQ AX, saved<>+120(SB)
	MOVQ 8(SP), AX
	MOVQ AX, ·argSite(SB)
	MOVQ 16(SP), AX
	MOVQ AX, ·argIndex(SB)
	MOVQ 24(SP), AX
	MOVQ AX, ·argBase(SB)
	VMOVUPS Z0, saved<>+256(SB)
	VMOVUPS Z1, saved<>+320(SB)
	VMOVUPS Z2, saved<>+384(SB)
	VMOVUPS Z3, saved<>+448(SB)
	VMOVUPS Z4, saved<>+512(SB)
	VMOVUPS Z5, saved<>+576(SB)
	VMOVUPS Z6, saved<>+640(SB)
	VMOVUPS Z7, saved<>+704(SB)
	VMOVUPS Z8, saved<>+768(SB)
	VMOVUPS Z9, saved<>+832(SB)
	VMOVUPS Z10, saved<>+896(SB)
	VMOVUPS Z11, saved<>+960(SB)
	VMOVUPS Z12, saved<>+1024(SB)
	VMOVUPS Z13, saved<>+1088(SB)
	VMOVUPS Z14, saved<>+1152(SB)
	VMOVUPS Z15, saved<>+1216(SB)
	VMOVUPS Z16, saved<>+1280(SB)
	VMOVUPS Z17, saved<>+1344(SB)
	VMOVUPS Z18, saved<>+1408(SB)
	VMOVUPS Z19, saved<>+1472(SB)
	VMOVUPS Z20, saved<>+1536(SB)
	VMOVUPS Z21, saved<>+1600(SB)
	VMOVUPS Z22, saved<>+1664(SB)
	VMOVUPS Z23, saved<>+1728(SB)
	VMOVUPS Z24, saved<>+1792(SB)
	VMOVUPS Z25, saved<>+1856(SB)
	VMOVUPS Z26, saved<>+1920(SB)
	VMOVUPS Z27, saved<>+1984(SB)
	VMOVUPS Z28, saved<>+2048(SB)
	VMOVUPS Z29, saved<>+2112(SB)
	VMOVUPS Z30, saved<>+2176(SB)
	VMOVUPS Z31, saved<>+2240(SB)
	KMOVQ K1, saved<>+128(SB)
	CALL ·emulate(SB)
	KMOVQ saved<>+128(SB), K1
	VMOVUPS saved<>+256(SB), Z0
	VMOVUPS saved<>+320(SB), Z1
	VMOVUPS saved<>+384(SB), Z2
	VMOVUPS saved<>+448(SB), Z3
	VMOVUPS saved<>+512(SB), Z4
	VMOVUPS saved<>+576(SB), Z5
	VMOVUPS saved<>+640(SB), Z6
	VMOVUPS saved<>+704(SB), Z7
	VMOVUPS saved<>+768(SB), Z8
	VMOVUPS saved<>+832(SB), Z9
	VMOVUPS saved<>+896(SB), Z10
	VMOVUPS saved<>+960(SB), Z11
	VMOVUPS saved<>+1024(SB), Z12
	VMOVUPS saved<>+1088(SB), Z13
	VMOVUPS saved<>+1152(SB), Z14
	VMOVUPS saved<>+1216(SB), Z15
	VMOVUPS saved<>+1280(SB), Z16
	VMOVUPS saved<>+1344(SB), Z17
	VMOVUPS saved<>+1408(SB), Z18
	VMOVUPS saved<>+1472(SB), Z19
	VMOVUPS saved<>+1536(SB), Z20
	VMOVUPS saved<>+1600(SB), Z21
	VMOVUPS saved<>+1664(SB), Z22
	VMOVUPS saved<>+1728(SB), Z23
	VMOVUPS saved<>+1792(SB), Z24
	VMOVUPS saved<>+1856(SB), Z25
	VMOVUPS saved<>+1920(SB), Z26
	VMOVUPS saved<>+1984(SB), Z27
	VMOVUPS saved<>+2048(SB), Z28
	VMOVUPS saved<>+2112(SB), Z29
	VMOVUPS saved<>+2176(SB), Z30
	VMOVUPS saved<>+2240(SB), Z31
	MOVQ saved<>+120(SB), AX
	PUSHQ AX
	POPFQ
	MOVQ saved<>+0(SB), AX
	MOVQ saved<>+8(SB), CX
	MOVQ saved<>+16(SB), DX
	MOVQ saved<>+24(SB), BX
	MOVQ saved<>+32(SB), BP
	MOVQ saved<>+40(SB), SI
	MOVQ saved<>+48(SB), DI
	MOVQ saved<>+56(SB), R8
	MOVQ saved<>+64(SB), R9
	MOVQ saved<>+72(SB), R10
	MOVQ saved<>+80(SB), R11
	MOVQ saved<>+88(SB), R12
	MOVQ saved<>+96(SB), R13
	MOVQ saved<>+104(SB), R14
	MOVQ saved<>+112(SB), R15
	RET

// func enterAt() uintptr
TEXT ·enterAt(SB), NOSPLIT, $0-8
	LEAQ ·enter(SB), AX
	MOVQ AX, ret+0(FP)
	RET
