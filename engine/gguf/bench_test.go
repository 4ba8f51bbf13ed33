package gguf_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/quant"
)

// BenchmarkOpen opens a file with the header of a large model: a quarter of a
// million tokens, nearly twice as many merges, a thousand tensors. A safety
// check once made this step slow elsewhere (llama.cpp PR19856).
func BenchmarkOpen(b *testing.B) {
	tokens := make([]string, 256000)
	for i := range tokens {
		tokens[i] = fmt.Sprintf("token%d", i*7919%1000003)
	}
	merges := make([]string, 450000)
	for i := range merges {
		merges[i] = fmt.Sprintf("left%d right%d", i, i*31%65537)
	}
	w := gguf.NewWriter()
	w.Set("general.architecture", "llama")
	w.Set("tokenizer.ggml.tokens", tokens)
	w.Set("tokenizer.ggml.merges", merges)
	w.Set("tokenizer.ggml.token_type", make([]int32, len(tokens)))
	for i := range 1000 {
		w.Add(fmt.Sprintf("blk.%d.weight", i), quant.F32, []int64{8}, make([]byte, 32))
	}
	path := filepath.Join(b.TempDir(), "m.gguf")
	if err := w.WriteFile(path); err != nil {
		b.Fatal(err)
	}
	b.Run("open", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f, err := gguf.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			f.Close()
		}
	})
	b.Run("open and list tokens", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f, err := gguf.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			if got, err := f.Meta().Strings("tokenizer.ggml.tokens"); err != nil || len(got) != len(tokens) {
				b.Fatal(len(got), err)
			}
			f.Close()
		}
	})
}
