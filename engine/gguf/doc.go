// Package gguf reads and writes model files in the GGUF container format,
// versions 2 and 3, little endian, as described by the format's public
// specification (ggml-org/ggml docs/gguf.md).
//
// A file is mapped, not read: Open costs the header only, and [File.Data]
// hands out slices of the mapping. Every length, count, dimension and offset
// in the file is compared with the bytes that are really there before it is
// used, so a damaged or hostile file ends in an error that names the field,
// never in a panic, a long loop or a large allocation.
//
// A model split over several files (shards) is opened from any of them.
package gguf
