package quant

// Kernels in unpack_avx512_amd64.s.

//go:noescape
func unpackQ4_0x512(p *unpack)

//go:noescape
func unpackQ4_1x512(p *unpack)

//go:noescape
func unpackQ5_0x512(p *unpack)

//go:noescape
func unpackQ5_1x512(p *unpack)

//go:noescape
func unpackQ8_0x512(p *unpack)

//go:noescape
func unpackQ2_Kx512(p *unpack)

//go:noescape
func unpackQ3_Kx512(p *unpack)

//go:noescape
func unpackQ4_Kx512(p *unpack)

//go:noescape
func unpackQ5_Kx512(p *unpack)

//go:noescape
func unpackQ6_Kx512(p *unpack)

//go:noescape
func unpackIQ2_XXSx512(p *unpack)

//go:noescape
func unpackIQ2_XSx512(p *unpack)

//go:noescape
func unpackIQ3_XXSx512(p *unpack)

//go:noescape
func unpackIQ1_Sx512(p *unpack)

//go:noescape
func unpackIQ4_NLx512(p *unpack)

//go:noescape
func unpackIQ3_Sx512(p *unpack)

//go:noescape
func unpackIQ2_Sx512(p *unpack)

//go:noescape
func unpackIQ4_XSx512(p *unpack)

//go:noescape
func unpackIQ1_Mx512(p *unpack)

//go:noescape
func unpackTQ1_0x512(p *unpack)

//go:noescape
func unpackTQ2_0x512(p *unpack)

//go:noescape
func unpackMXFP4x512(p *unpack)

//go:noescape
func unpackNVFP4x512(p *unpack)

//go:noescape
func unpackQ1_0x512(p *unpack)

//go:noescape
func unpackQ2_0x512(p *unpack)
