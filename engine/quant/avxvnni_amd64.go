package quant

// Kernels in rows_avxvnni_amd64.s and slab_avxvnni_amd64.s: as those of AVX2.

//go:noescape
func rowsQ4_0xVNNI(p *gemv)

//go:noescape
func rowsQ4_1xVNNI(p *gemv)

//go:noescape
func rowsQ5_0xVNNI(p *gemv)

//go:noescape
func rowsQ5_1xVNNI(p *gemv)

//go:noescape
func rowsQ8_0xVNNI(p *gemv)

//go:noescape
func rowsQ2_KxVNNI(p *gemv)

//go:noescape
func rowsQ3_KxVNNI(p *gemv)

//go:noescape
func rowsQ4_KxVNNI(p *gemv)

//go:noescape
func rowsQ5_KxVNNI(p *gemv)

//go:noescape
func rowsQ6_KxVNNI(p *gemv)

//go:noescape
func rowsIQ2_XXSxVNNI(p *gemv)

//go:noescape
func rowsIQ2_XSxVNNI(p *gemv)

//go:noescape
func rowsIQ3_XXSxVNNI(p *gemv)

//go:noescape
func rowsIQ1_SxVNNI(p *gemv)

//go:noescape
func rowsIQ4_NLxVNNI(p *gemv)

//go:noescape
func rowsIQ3_SxVNNI(p *gemv)

//go:noescape
func rowsIQ2_SxVNNI(p *gemv)

//go:noescape
func rowsIQ4_XSxVNNI(p *gemv)

//go:noescape
func rowsIQ1_MxVNNI(p *gemv)

//go:noescape
func rowsTQ1_0xVNNI(p *gemv)

//go:noescape
func rowsTQ2_0xVNNI(p *gemv)

//go:noescape
func rowsMXFP4xVNNI(p *gemv)

//go:noescape
func rowsNVFP4xVNNI(p *gemv)

//go:noescape
func rowsQ1_0xVNNI(p *gemv)

//go:noescape
func rowsQ2_0xVNNI(p *gemv)

//go:noescape
func slab32by4xVNNI(p *slab)

//go:noescape
func slab32Offsetsby4xVNNI(p *slab)

//go:noescape
func slab16by4xVNNI(p *slab)

//go:noescape
func slab16Offsetsby4xVNNI(p *slab)
