// Package quant holds the number formats of GGUF tensors: their layout, their
// exact values, and products with activations.
//
// A tensor row is a sequence of blocks; a block holds Format.Block values in
// Format.Bytes bytes. Every quantised block can be written as small integers q
// with one float scale and one float offset per 16 values:
//
//	value = scale*q - min
//
// The function unpack of a format brings a block into that form, and both the
// decoder and the plain product loop are made from it. Formats that most models
// use have a faster loop of their own beside it (swar.go). LAYOUTS.md lists all
// layouts byte by byte.
//
// The names, type numbers and layouts are those of ggml (github.com/ggml-org/ggml,
// MIT licence; see NOTICE.md).
package quant

import "fmt"

// Type is the number of a tensor type in a GGUF file (enum ggml_type).
type Type uint32

// The tensor types that Outcrop knows. Numbers that are missing here belong to
// formats that were removed from GGUF or that exist in memory only.
const (
	F32     Type = 0
	F16     Type = 1
	Q4_0    Type = 2
	Q4_1    Type = 3
	Q5_0    Type = 6
	Q5_1    Type = 7
	Q8_0    Type = 8
	Q2_K    Type = 10
	Q3_K    Type = 11
	Q4_K    Type = 12
	Q5_K    Type = 13
	Q6_K    Type = 14
	IQ2_XXS Type = 16
	IQ2_XS  Type = 17
	IQ3_XXS Type = 18
	IQ1_S   Type = 19
	IQ4_NL  Type = 20
	IQ3_S   Type = 21
	IQ2_S   Type = 22
	IQ4_XS  Type = 23
	I8      Type = 24
	I16     Type = 25
	I32     Type = 26
	I64     Type = 27
	F64     Type = 28
	IQ1_M   Type = 29
	BF16    Type = 30
	TQ1_0   Type = 34
	TQ2_0   Type = 35
	MXFP4   Type = 39
	NVFP4   Type = 40
	Q1_0    Type = 41
	Q2_0    Type = 42
)

// String is the name of the type as llama.cpp writes it, or "type N".
func (t Type) String() string {
	if f := find(t); f != nil {
		return f.Name
	}
	return fmt.Sprintf("type %d", uint32(t))
}

// Format describes one tensor type.
type Format struct {
	Type  Type
	Name  string
	Block int // values per block
	Bytes int // bytes per block

	// Float says that products use the float activations; all other formats
	// that have Dot use the 8-bit copy of Acts.
	Float bool

	// Decode writes the values of src, which holds len(dst)/Block whole blocks.
	// len(dst) must be a multiple of Block.
	Decode func(dst []float32, src []byte)

	// Encode writes len(src)/Block blocks to dst. It is nil for formats that
	// Outcrop only reads. Values are rounded to the nearest value of a simple
	// search, which is good enough for caches and tests; published packs are
	// made with importance matrices and better searches.
	Encode func(dst []byte, src []float32)

	// Dot is the product of one row of a.n values with activation row t: the
	// plain loop that kernels are compared with. It reads the 8-bit copy that
	// the generic level makes (Use); Mul is the way to multiply at any level.
	// It is nil for types that never stand in a matrix (integers, F64).
	Dot func(row []byte, a *Acts, t int) float32

	// unpack splits one block into integers, scales and offsets; nil for types
	// whose values are not scaled integers.
	unpack func(t *tile, src []byte)
}

// RowBytes is the number of bytes of a row of n values. n must be a multiple
// of Block; a rest is dropped.
func (f *Format) RowBytes(n int) int { return n / f.Block * f.Bytes }

// Of finds the format of a type. The error names types that are unknown.
func Of(t Type) (*Format, error) {
	if f := find(t); f != nil {
		return f, nil
	}
	return nil, fmt.Errorf("read tensor type %d: not a type this version knows (it knows %d types up to %d, %s)",
		uint32(t), len(formats), uint32(formats[len(formats)-1].Type), formats[len(formats)-1].Name)
}

// find is Of without an error: nil for unknown types.
func find(t Type) *Format {
	if int(t) < len(byType) {
		return byType[t]
	}
	return nil
}

// byType indexes formats by type number.
var byType = func() (m [Q2_0 + 1]*Format) {
	for i := range formats {
		m[formats[i].Type] = &formats[i]
	}
	return m
}()
