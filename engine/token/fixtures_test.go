package token_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/token"
)

// tokenCase is one line of a fixture: text and what llama.cpp makes of it.
type tokenCase struct {
	Name    string     `json:"name"`
	B64     string     `json:"b64"`
	Plain   []token.ID `json:"ids_plain"`
	Special []token.ID `json:"ids_special"`
	Added   []token.ID `json:"ids_added"`
	Detok   string     `json:"detok_b64"`
	DetokS  string     `json:"detok_special_b64"`
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, v); err != nil {
		t.Fatal(path, err)
	}
}

// openVocab opens a vocabulary, unpacking it first when it ends in .gz.
func openVocab(t testing.TB, path string) *token.Tokenizer {
	t.Helper()
	if strings.HasSuffix(path, ".gz") {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if b, err = io.ReadAll(z); err != nil {
			t.Fatal(err)
		}
		dir, err := os.MkdirTemp("", "vocab")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "vocab.gguf")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	m, err := gguf.ReadMeta(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := token.ReadVocab(m)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := token.New(v)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// check runs all cases of a folder.
func check(t *testing.T, tok *token.Tokenizer, dir string) {
	var cases []tokenCase
	readJSON(t, filepath.Join(dir, "cases.json"), &cases)
	if len(cases) == 0 {
		t.Fatal("no cases in", dir)
	}
	var either []struct {
		Name string     `json:"name"`
		Npm  []token.ID `json:"ids_npm"`
	}
	if _, err := os.Stat(filepath.Join(dir, "differences.json")); err == nil {
		readJSON(t, filepath.Join(dir, "differences.json"), &either)
	}
	for _, c := range cases {
		raw, err := base64.StdEncoding.DecodeString(c.B64)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		differs := false
		equal := func(what string, got, want []token.ID) {
			if slices.Equal(got, want) {
				return
			}
			for _, e := range either {
				if e.Name == c.Name {
					differs = true
					if what != "special" || slices.Equal(got, e.Npm) {
						return
					}
				}
			}
			t.Errorf("%s, %s: %q\n got %v\nwant %v", c.Name, what, text, got, want)
		}
		plain := tok.Encode(text, token.Options{})
		special := tok.Encode(text, token.Options{Special: true})
		equal("plain", plain, c.Plain)
		equal("special", special, c.Special)
		equal("added", tok.Encode(text, token.Options{Special: true, AddBOS: true}), c.Added)
		if differs {
			continue
		}
		if got := base64.StdEncoding.EncodeToString(tok.Decode(plain, true)); got != c.Detok {
			t.Errorf("%s: decode of plain ids %q, want %q", c.Name, unbase(got), unbase(c.Detok))
		}
		if got := base64.StdEncoding.EncodeToString(tok.Decode(special, true)); got != c.DetokS {
			t.Errorf("%s: decode of special ids %q, want %q", c.Name, unbase(got), unbase(c.DetokS))
		}
	}
}

func unbase(s string) string {
	b, _ := base64.StdEncoding.DecodeString(s)
	return string(b)
}

// TestFixtures runs a full set of vocabularies and cases, each a folder with
// vocab.gguf or vocab.gguf.gz, cases.json and differences.json.
func TestFixtures(t *testing.T) {
	root := os.Getenv("OUTCROP_FIXTURES")
	if root == "" {
		t.Skip("OUTCROP_FIXTURES is not set to a folder of tokenizer fixtures")
	}
	dirs, err := filepath.Glob(filepath.Join(root, "*", "cases.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatal("no fixtures in", root, err)
	}
	for _, d := range dirs {
		dir := filepath.Dir(d)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			path := filepath.Join(dir, "vocab.gguf")
			if _, err := os.Stat(path); err != nil {
				path += ".gz"
			}
			if _, err := os.Stat(path); err != nil {
				t.Skip("this folder has no vocabulary")
			}
			check(t, openVocab(t, path), dir)
		})
	}
}
