package token_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/token"
)

// benchText is prose and code of this package, about 1 MB.
func benchText(b *testing.B) string {
	b.Helper()
	var all strings.Builder
	files, _ := filepath.Glob("*.go")
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		all.Write(raw)
	}
	return strings.Repeat(all.String(), 1+(1<<20)/all.Len())[:1<<20]
}

func BenchmarkEncode(b *testing.B) {
	text := benchText(b)
	spm := openVocab(b, filepath.Join("testdata", "spm", "vocab.gguf"))
	run := func(name string, tok *token.Tokenizer, text string) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				tok.Encode(text, token.Options{Special: true})
			}
		})
	}
	run("qwen3", qwen(), text)
	run("qwen3, one letter", qwen(), strings.Repeat("a", 1<<18))
	run("qwen3, Chinese", qwen(), strings.Repeat("潮水退去，岩石露出水面。今天是2026年11月29日。", 5000))
	run("spm", spm, text)
	root := os.Getenv("OUTCROP_FIXTURES")
	for _, name := range []string{"llama3", "gpt-oss", "deepseek_v3", "gemma3", "llama2"} {
		path := filepath.Join(root, name, "vocab.gguf")
		if _, err := os.Stat(path); root == "" || err != nil {
			continue
		}
		run(name, openVocab(b, path), text)
	}
}

func BenchmarkNew(b *testing.B) {
	root := os.Getenv("OUTCROP_FIXTURES")
	if root == "" {
		b.Skip("OUTCROP_FIXTURES is not set to a folder of tokenizer fixtures")
	}
	for _, name := range []string{"qwen3", "gpt-oss", "gemma3"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				m, err := gguf.ReadMeta(filepath.Join(root, name, "vocab.gguf"))
				if err != nil {
					b.Fatal(err)
				}
				v, err := token.ReadVocab(m)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := token.New(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
