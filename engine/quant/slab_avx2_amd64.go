package quant

// Kernels in weave_avx2_amd64.s, slab_avx2_amd64.s and unpack_avx2_amd64.s.

//go:noescape
func weave32x256(p *weave)

//go:noescape
func weave16x256(p *weave)

//go:noescape
func slab32by4_5x256(p *slab)

//go:noescape
func slab32Offsetsby4_5x256(p *slab)

//go:noescape
func slab16by4_5x256(p *slab)

//go:noescape
func slab16Offsetsby4_5x256(p *slab)

//go:noescape
func slab32by4_7x256(p *slab)

//go:noescape
func slab16by4_7x256(p *slab)

//go:noescape
func slab32by4_Sx256(p *slab)

//go:noescape
func unpackQ4_0x256(p *unpack)

//go:noescape
func unpackQ4_1x256(p *unpack)

//go:noescape
func unpackQ5_0x256(p *unpack)

//go:noescape
func unpackQ5_1x256(p *unpack)

//go:noescape
func unpackQ8_0x256(p *unpack)

//go:noescape
func unpackQ2_Kx256(p *unpack)

//go:noescape
func unpackQ3_Kx256(p *unpack)

//go:noescape
func unpackQ4_Kx256(p *unpack)

//go:noescape
func unpackQ5_Kx256(p *unpack)

//go:noescape
func unpackQ6_Kx256(p *unpack)

//go:noescape
func unpackIQ2_XXSx256(p *unpack)

//go:noescape
func unpackIQ2_XSx256(p *unpack)

//go:noescape
func unpackIQ3_XXSx256(p *unpack)

//go:noescape
func unpackIQ1_Sx256(p *unpack)

//go:noescape
func unpackIQ4_NLx256(p *unpack)

//go:noescape
func unpackIQ3_Sx256(p *unpack)

//go:noescape
func unpackIQ2_Sx256(p *unpack)

//go:noescape
func unpackIQ4_XSx256(p *unpack)

//go:noescape
func unpackIQ1_Mx256(p *unpack)

//go:noescape
func unpackTQ1_0x256(p *unpack)

//go:noescape
func unpackTQ2_0x256(p *unpack)

//go:noescape
func unpackMXFP4x256(p *unpack)

//go:noescape
func unpackNVFP4x256(p *unpack)

//go:noescape
func unpackQ1_0x256(p *unpack)

//go:noescape
func unpackQ2_0x256(p *unpack)
