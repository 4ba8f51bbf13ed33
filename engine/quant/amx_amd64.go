package quant

import "golang.org/x/sys/cpu"

// The AMX level is that of AVX-512 with products of many activation rows by
// tiles. A part of a slab is a tile of weights, so that layout, order of
// additions and results are the same; weights have their sign back, which
// needs no correction of the sums then.
//
// The state of tiles is 8 KiB that only live inside of a kernel: each begins
// with ldtilecfg and ends with tilerelease. The Go scheduler stops a goroutine
// by a signal, in whose frame the kernel saves all registers, tiles included,
// some 11 KiB; signal stacks of Go's runtime have 32 KiB, and the system
// refuses the permission where a signal stack is too small. Assembly is no
// place where a goroutine can be switched, so that it goes on with its tiles.

//go:noescape
func slab32by16xAMX(p *slab)

//go:noescape
func slab32Offsetsby16xAMX(p *slab)

//go:noescape
func flip16xAMX(rows *plainRow)

// xcr0 reads which registers the system saves; the processor must have OSXSAVE.
func xcr0() uint64

// hasTiles says whether processor and system have AMX with 8-bit products: CPUID
// leaf 7, EDX bits 24 and 25, and bits 17 and 18 of XCR0.
func hasTiles() bool {
	x := &cpu.X86
	const state = 1<<17 | 1<<18
	return x.HasAMXTile && x.HasAMXInt8 && x.HasOSXSAVE && xcr0()&state == state
}

var amx = func() kernels {
	k := avx512
	k.level = AMX
	for t := range k.many {
		s := &k.many[t]
		switch {
		case s.unpack == nil || parts16[t]:
			// A tile of 16 values is half a product for the same vector operations
			// beside it: Q6_K 102 against 138 Gmac/s by VPDPBUSD (BENCH.md).
		case offsets[t]: // weights of 0 to 31 as they are
			s.by16 = slab32Offsetsby16xAMX
		default:
			s.by16, s.weave = slab32by16xAMX, weaveFlipped32
		}
	}
	return k
}()

func weaveFlipped32(w *weave) {
	flip16xAMX(w.rows)
	weave32x512(w)
}
