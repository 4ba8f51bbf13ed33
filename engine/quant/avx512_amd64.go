package quant

// Kernels in avx512_amd64.s: for each row and each activation row of g,
// Format.product.

//go:noescape
func rowsQ4_0x512(p *gemv)

//go:noescape
func rowsQ4_1x512(p *gemv)

//go:noescape
func rowsQ8_0x512(p *gemv)

//go:noescape
func rowsQ4_Kx512(p *gemv)

//go:noescape
func rowsQ6_Kx512(p *gemv)
