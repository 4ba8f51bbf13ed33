package quant

import "golang.org/x/sys/cpu"

// weaveBytes brings bytes into the order of woven rows.
func weaveBytes(dst, q *[256]byte) {
	if cpu.X86.HasAVX2 {
		weave256(dst, q)
		return
	}
	weavePlain(dst, q)
}

// Kernels in woven_avx2_amd64.s, woven_avxvnni_amd64.s and unwoven_avx2_amd64.s: the
// woven formats (woven.go).

//go:noescape
func rowsW4_0x256(p *gemv)

//go:noescape
func rowsW4_0xVNNI(p *gemv)

//go:noescape
func unpackW4_0x256(p *unpack)

//go:noescape
func rowsW4_1x256(p *gemv)

//go:noescape
func rowsW4_1xVNNI(p *gemv)

//go:noescape
func unpackW4_1x256(p *unpack)

//go:noescape
func rowsW5_0x256(p *gemv)

//go:noescape
func rowsW5_0xVNNI(p *gemv)

//go:noescape
func unpackW5_0x256(p *unpack)

//go:noescape
func rowsW5_1x256(p *gemv)

//go:noescape
func rowsW5_1xVNNI(p *gemv)

//go:noescape
func unpackW5_1x256(p *unpack)

//go:noescape
func rowsW8_0x256(p *gemv)

//go:noescape
func rowsW8_0xVNNI(p *gemv)

//go:noescape
func unpackW8_0x256(p *unpack)

//go:noescape
func rowsW2_Kx256(p *gemv)

//go:noescape
func rowsW2_KxVNNI(p *gemv)

//go:noescape
func unpackW2_Kx256(p *unpack)

//go:noescape
func rowsW3_Kx256(p *gemv)

//go:noescape
func rowsW3_KxVNNI(p *gemv)

//go:noescape
func unpackW3_Kx256(p *unpack)

//go:noescape
func rowsW4_Kx256(p *gemv)

//go:noescape
func rowsW4_KxVNNI(p *gemv)

//go:noescape
func unpackW4_Kx256(p *unpack)

//go:noescape
func rowsW5_Kx256(p *gemv)

//go:noescape
func rowsW5_KxVNNI(p *gemv)

//go:noescape
func unpackW5_Kx256(p *unpack)

//go:noescape
func rowsW6_Kx256(p *gemv)

//go:noescape
func rowsW6_KxVNNI(p *gemv)

//go:noescape
func unpackW6_Kx256(p *unpack)

//go:noescape
func rowsW4_NLx256(p *gemv)

//go:noescape
func rowsW4_NLxVNNI(p *gemv)

//go:noescape
func unpackW4_NLx256(p *unpack)

//go:noescape
func rowsW4_XSx256(p *gemv)

//go:noescape
func rowsW4_XSxVNNI(p *gemv)

//go:noescape
func unpackW4_XSx256(p *unpack)

//go:noescape
func rowsWMXx256(p *gemv)

//go:noescape
func rowsWMXxVNNI(p *gemv)

//go:noescape
func unpackWMXx256(p *unpack)

//go:noescape
func rowsW3Sx256(p *gemv)

//go:noescape
func rowsW3SxVNNI(p *gemv)

//go:noescape
func unpackW3Sx256(p *unpack)

//go:noescape
func rowsW3XXSx256(p *gemv)

//go:noescape
func rowsW3XXSxVNNI(p *gemv)

//go:noescape
func unpackW3XXSx256(p *unpack)

// weave256 is in quantize_avx2_amd64.s.
//
//go:noescape
func weave256(dst, q *[256]byte)
