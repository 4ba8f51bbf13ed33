package quant

// Kernels in woven_avx512_amd64.s and unwoven_avx512_amd64.s: the woven formats
// (woven.go).

//go:noescape
func rowsW4_0x512(p *gemv)

//go:noescape
func unpackW4_0x512(p *unpack)

//go:noescape
func rowsW4_1x512(p *gemv)

//go:noescape
func unpackW4_1x512(p *unpack)

//go:noescape
func rowsW5_0x512(p *gemv)

//go:noescape
func unpackW5_0x512(p *unpack)

//go:noescape
func rowsW5_1x512(p *gemv)

//go:noescape
func unpackW5_1x512(p *unpack)

//go:noescape
func rowsW8_0x512(p *gemv)

//go:noescape
func unpackW8_0x512(p *unpack)

//go:noescape
func rowsW2_Kx512(p *gemv)

//go:noescape
func unpackW2_Kx512(p *unpack)

//go:noescape
func rowsW3_Kx512(p *gemv)

//go:noescape
func unpackW3_Kx512(p *unpack)

//go:noescape
func rowsW4_Kx512(p *gemv)

//go:noescape
func unpackW4_Kx512(p *unpack)

//go:noescape
func rowsW5_Kx512(p *gemv)

//go:noescape
func unpackW5_Kx512(p *unpack)

//go:noescape
func rowsW6_Kx512(p *gemv)

//go:noescape
func unpackW6_Kx512(p *unpack)

//go:noescape
func rowsW4_NLx512(p *gemv)

//go:noescape
func unpackW4_NLx512(p *unpack)

//go:noescape
func rowsW4_XSx512(p *gemv)

//go:noescape
func unpackW4_XSx512(p *unpack)

//go:noescape
func rowsWMXx512(p *gemv)

//go:noescape
func unpackWMXx512(p *unpack)

//go:noescape
func rowsW3Sx512(p *gemv)

//go:noescape
func unpackW3Sx512(p *unpack)

//go:noescape
func rowsW3XXSx512(p *gemv)

//go:noescape
func unpackW3XXSx512(p *unpack)
