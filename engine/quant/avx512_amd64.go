package quant

// Kernels in rows_avx512_amd64.s: for each row and each activation row of p,
// Format.product.

//go:noescape
func rowsQ4_0x512(p *gemv)

//go:noescape
func rowsQ4_1x512(p *gemv)

//go:noescape
func rowsQ5_0x512(p *gemv)

//go:noescape
func rowsQ5_1x512(p *gemv)

//go:noescape
func rowsQ8_0x512(p *gemv)

//go:noescape
func rowsQ2_Kx512(p *gemv)

//go:noescape
func rowsQ3_Kx512(p *gemv)

//go:noescape
func rowsQ4_Kx512(p *gemv)

//go:noescape
func rowsQ5_Kx512(p *gemv)

//go:noescape
func rowsQ6_Kx512(p *gemv)

//go:noescape
func rowsIQ2_XXSx512(p *gemv)

//go:noescape
func rowsIQ2_XSx512(p *gemv)

//go:noescape
func rowsIQ3_XXSx512(p *gemv)

//go:noescape
func rowsIQ1_Sx512(p *gemv)

//go:noescape
func rowsIQ4_NLx512(p *gemv)

//go:noescape
func rowsIQ3_Sx512(p *gemv)

//go:noescape
func rowsIQ2_Sx512(p *gemv)

//go:noescape
func rowsIQ4_XSx512(p *gemv)

//go:noescape
func rowsIQ1_Mx512(p *gemv)

//go:noescape
func rowsTQ1_0x512(p *gemv)

//go:noescape
func rowsTQ2_0x512(p *gemv)

//go:noescape
func rowsMXFP4x512(p *gemv)

//go:noescape
func rowsNVFP4x512(p *gemv)

//go:noescape
func rowsQ1_0x512(p *gemv)

//go:noescape
func rowsQ2_0x512(p *gemv)

//go:noescape
func quantize512(r *record, x *float32, groups int)

// Kernels in floats_avx512_amd64.s: for each row and each activation row of g,
// Format.productFloat. groups and tail count 16 values and single values.

//go:noescape
func rowsF32x512(p *gemv)

//go:noescape
func rowsF16x512(p *gemv)

//go:noescape
func rowsBF16x512(p *gemv)
