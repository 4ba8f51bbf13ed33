package quant

// Kernels in weave_avx512_amd64.s and slab_avx512_amd64.s.

//go:noescape
func weave32x512(p *weave)

//go:noescape
func weave16x512(p *weave)

//go:noescape
func slab32by8x512(p *slab)

//go:noescape
func slab32Offsetsby8x512(p *slab)

//go:noescape
func slab16by8x512(p *slab)

//go:noescape
func slab16Offsetsby8x512(p *slab)

//go:noescape
func slab32by4x512(p *slab)

//go:noescape
func slab32Offsetsby4x512(p *slab)

//go:noescape
func slab16by4x512(p *slab)

//go:noescape
func slab16Offsetsby4x512(p *slab)
