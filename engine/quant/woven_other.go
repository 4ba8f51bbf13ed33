//go:build !amd64

package quant

// weaveBytes brings bytes into the order of woven rows.
func weaveBytes(dst, q *[256]byte) { weavePlain(dst, q) }
