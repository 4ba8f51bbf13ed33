// Package kernels holds the GPU programs of Outcrop: OpenCL C 1.2 with feature
// macros, one op family a file. Every driver runs this text, or something that
// was generated from it (gen).
package kernels

// Module is one translation unit.
type Module struct {
	Name    string   // "gemv_q4_k"
	Text    string   // OpenCL C
	Defines []string // "FORMAT=12", in order
}
