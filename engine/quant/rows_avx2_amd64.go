package quant

// Kernels in rows_avx2_amd64.s: for each row and each activation row of p,
// Format.product.

//go:noescape
func rowsQ4_0x256(p *gemv)

//go:noescape
func rowsQ4_1x256(p *gemv)

//go:noescape
func rowsQ5_0x256(p *gemv)

//go:noescape
func rowsQ5_1x256(p *gemv)

//go:noescape
func rowsQ8_0x256(p *gemv)

//go:noescape
func rowsQ2_Kx256(p *gemv)

//go:noescape
func rowsQ3_Kx256(p *gemv)

//go:noescape
func rowsQ4_Kx256(p *gemv)

//go:noescape
func rowsQ5_Kx256(p *gemv)

//go:noescape
func rowsQ6_Kx256(p *gemv)

//go:noescape
func rowsIQ2_XXSx256(p *gemv)

//go:noescape
func rowsIQ2_XSx256(p *gemv)

//go:noescape
func rowsIQ3_XXSx256(p *gemv)

//go:noescape
func rowsIQ1_Sx256(p *gemv)

//go:noescape
func rowsIQ4_NLx256(p *gemv)

//go:noescape
func rowsIQ3_Sx256(p *gemv)

//go:noescape
func rowsIQ2_Sx256(p *gemv)

//go:noescape
func rowsIQ4_XSx256(p *gemv)

//go:noescape
func rowsIQ1_Mx256(p *gemv)

//go:noescape
func rowsTQ1_0x256(p *gemv)

//go:noescape
func rowsTQ2_0x256(p *gemv)

//go:noescape
func rowsMXFP4x256(p *gemv)

//go:noescape
func rowsNVFP4x256(p *gemv)

//go:noescape
func rowsQ1_0x256(p *gemv)

//go:noescape
func rowsQ2_0x256(p *gemv)

//go:noescape
func quantize256(r *record, x *float32, groups int)

// Kernels in floats_avx2_amd64.s: for each row and each activation row of p,
// Format.productFloat; groups counts 16 values, there is no tail.

//go:noescape
func rowsF32x256(p *gemv)

//go:noescape
func rowsF16x256(p *gemv)

//go:noescape
func rowsBF16x256(p *gemv)
