#include "go_asm.h"
#include "textflag.h"
#include "slab_avx2_amd64.h"

// func slab32by4_5x256(p *slab)
TEXT ·slab32by4_5x256(SB), NOSPLIT, $0-8
	CHAINS(·places32)
	SHIFT32
	MACS_5(0, 0)
	MACS_5(128, 16)
	CHAIN(256)
	CHAINS_END(288, 8)

// func slab32Offsetsby4_5x256(p *slab)
TEXT ·slab32Offsetsby4_5x256(SB), NOSPLIT, $0-8
	CHAINS(·places32)
	ZERO
	MACS_5(0, 0)
	MACS_5(128, 16)
	CHAIN(256)
	OFFSETS32(288)
	CHAINS_END(320, 8)

// func slab16by4_5x256(p *slab)
TEXT ·slab16by4_5x256(SB), NOSPLIT, $0-8
	CHAINS(·places16)
	SHIFT16
	MACS_5(0, 0)
	CHAIN(128)
	CHAINS_END(160, 16)

// func slab16Offsetsby4_5x256(p *slab)
TEXT ·slab16Offsetsby4_5x256(SB), NOSPLIT, $0-8
	CHAINS(·places16)
	ZERO
	MACS_5(0, 0)
	CHAIN(128)
	OFFSETS16(160)
	CHAINS_END(192, 16)

// func slab32by4_7x256(p *slab)
TEXT ·slab32by4_7x256(SB), NOSPLIT, $0-8
	CHAINS(·places32)
	SHIFT32
	MACS_7(0, 0)
	MACS_7(128, 16)
	CHAIN(256)
	CHAINS_END(288, 8)

// func slab16by4_7x256(p *slab)
TEXT ·slab16by4_7x256(SB), NOSPLIT, $0-8
	CHAINS(·places16)
	SHIFT16
	MACS_7(0, 0)
	CHAIN(128)
	CHAINS_END(160, 16)

// func slab32by4_Sx256(p *slab)
TEXT ·slab32by4_Sx256(SB), NOSPLIT, $0-8
	CHAINS(·places32)
	ZERO
	MACS_S(0, 0)
	MACS_S(128, 16)
	CHAIN(256)
	CHAINS_END(288, 8)
