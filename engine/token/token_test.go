package token_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"outcrop/engine/token"
)

// qwen is the vocabulary of Qwen3, opened once.
var qwen = sync.OnceValue(func() *token.Tokenizer {
	return openVocab(opener{}, filepath.Join("testdata", "qwen3", "vocab.gguf.gz"))
})

// opener is a test that outlives its function: a panic is good enough there.
type opener struct{ testing.TB }

func (opener) Helper()           {}
func (opener) Fatal(args ...any) { panic(fmt.Sprint(args...)) }
func TestQwen3(t *testing.T)     { check(t, qwen(), filepath.Join("testdata", "qwen3")) }

func TestSentencePiece(t *testing.T) {
	dir := filepath.Join("testdata", "spm")
	check(t, openVocab(t, filepath.Join(dir, "vocab.gguf")), dir)
}

// TestStarter checks the vocabulary that the program carries.
func TestStarter(t *testing.T) {
	dir := filepath.Join("..", "..", "assets", "starter")
	if _, err := os.Stat(filepath.Join(dir, "starter.gguf")); err != nil {
		t.Skip("the starter pack is not in this tree:", err)
	}
	tok := openVocab(t, filepath.Join(dir, "starter.gguf"))
	var golden struct {
		Tokenizer []struct {
			Text    string
			IDs     []token.ID
			Special bool
		}
	}
	readJSON(t, filepath.Join(dir, "golden.json"), &golden)
	if len(golden.Tokenizer) < 30 {
		t.Fatal("golden.json has no tokenizer lines")
	}
	for _, c := range golden.Tokenizer {
		got := tok.Encode(c.Text, token.Options{Special: c.Special})
		if !slices.Equal(got, c.IDs) {
			t.Errorf("%q: got %v, want %v", c.Text, got, c.IDs)
		}
		if back := string(tok.Decode(got, true)); back != c.Text {
			t.Errorf("%q comes back as %q", c.Text, back)
		}
	}
	if !slices.Equal(tok.EOG(), []token.ID{4093, 4095}) || !tok.IsEOG(4095) || tok.IsEOG(4094) || tok.BOS() >= 0 && tok.AddsBOS() {
		t.Errorf("ends %v, bos %d", tok.EOG(), tok.BOS())
	}
}

// pairVocab is a vocabulary in which any two bytes merge, so that ids show
// where words begin and end.
func pairVocab(pre string) token.Vocab {
	name := func(b int) string {
		if b >= 33 && b <= 126 || b >= 161 && b != 173 {
			return string(rune(b))
		}
		n := 256
		for i := range b {
			if i < 33 || i > 126 && i < 161 || i == 173 {
				n++
			}
		}
		return string(rune(n))
	}
	v := token.Vocab{Model: "gpt2", Pre: pre, BOS: -1, EOS: -1, EOT: -1, EOM: -1, UNK: -1, SEP: -1, PAD: -1}
	for b := range 256 {
		v.Tokens = append(v.Tokens, name(b))
	}
	for a := range 256 {
		for b := range 256 {
			x, y := name((a*167+13)&255), name((b*91+7)&255)
			v.Merges = append(v.Merges, x+" "+y)
			v.Tokens = append(v.Tokens, x+y)
		}
	}
	return v
}

// TestPreTokenizers compares every pre-tokenizer with llama.cpp on texts drawn
// at random from characters that patterns tell apart.
func TestPreTokenizers(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "pre.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	var golden struct {
		Texts []string
		IDs   map[string][][]token.ID
	}
	if err := json.NewDecoder(z).Decode(&golden); err != nil {
		t.Fatal(err)
	}
	if len(golden.IDs) < 29 || len(golden.Texts) < 600 {
		t.Fatalf("%d pre-tokenizers, %d texts", len(golden.IDs), len(golden.Texts))
	}
	for pre, all := range golden.IDs {
		tok, err := token.New(pairVocab(pre))
		if err != nil {
			t.Fatal(err)
		}
		wrong := 0
		for i, want := range all {
			text, _ := base64.StdEncoding.DecodeString(golden.Texts[i])
			if got := tok.Encode(string(text), token.Options{}); !slices.Equal(got, want) {
				if wrong++; wrong < 3 {
					t.Errorf("%s: %q\n got %v\nwant %v", pre, text, got, want)
				}
			}
		}
		if wrong > 0 {
			t.Errorf("%s: %d of %d wrong", pre, wrong, len(all))
		}
	}
}

func TestUnknownVocabularies(t *testing.T) {
	good := pairVocab("qwen2")
	for _, c := range []struct {
		change func(v *token.Vocab)
		want   string
	}{
		{func(v *token.Vocab) { v.Tokens = nil }, "has no tokens"},
		{func(v *token.Vocab) { v.Model = "bert" }, `unknown kind of vocabulary "bert"`},
		{func(v *token.Vocab) { v.Model = "" }, "does not say its kind"},
		{func(v *token.Vocab) { v.Pre = "new-one" }, `unknown pre-tokenizer "new-one", known are`},
		{func(v *token.Vocab) { v.Merges = nil }, "has no merges"},
		{func(v *token.Vocab) { v.Merges = []string{"ab"} }, `merge 0 is "ab"`},
		{func(v *token.Vocab) { v.Merges = []string{""} }, `merge 0 is ""`},
		{func(v *token.Vocab) { v.Merges = []string{"a "} }, `merge 0 is "a "`},
		{func(v *token.Vocab) { v.Types = []int32{1} }, "and 1 token types"},
		{func(v *token.Vocab) { v.Model = "llama" }, "and 0 scores"},
	} {
		v := good
		c.change(&v)
		if _, err := token.New(v); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	// Ids that lie outside are none.
	v := good
	v.BOS, v.EOS, v.EOG = 1<<30, -5, []token.ID{-1, 1 << 30, 7}
	tok, err := token.New(v)
	if err != nil {
		t.Fatal(err)
	}
	if tok.BOS() != -1 || tok.EOS() != -1 || !slices.Equal(tok.EOG(), []token.ID{7}) {
		t.Errorf("bos %d, eos %d, ends %v", tok.BOS(), tok.EOS(), tok.EOG())
	}
	for _, id := range []token.ID{-1, 1 << 30} {
		if tok.Special(id) || tok.IsEOG(id) || len(tok.Piece(id)) != 0 || len(tok.Decode([]token.ID{id}, true)) != 0 || tok.Stream(true).Push(id) != "" {
			t.Errorf("id %d is something", id)
		}
	}
}

func TestLookup(t *testing.T) {
	tok := qwen()
	id, ok := tok.Lookup("<|im_end|>")
	if !ok || id != 151645 || !tok.Special(id) || !tok.IsEOG(id) || string(tok.Piece(id)) != "<|im_end|>" {
		t.Errorf("<|im_end|>: %d %v", id, ok)
	}
	if id, ok := tok.Lookup("Ġthe"); !ok || string(tok.Piece(id)) != " the" {
		t.Errorf("Ġthe: %d %v %q", id, ok, tok.Piece(id))
	}
	if _, ok := tok.Lookup("no such token"); ok {
		t.Error("a token that is not there is found")
	}
	if tok.Len() != 151669 {
		t.Errorf("%d tokens", tok.Len())
	}
	// Fill-in tokens end generation too; "</s>" is HTML in this vocabulary.
	var names []string
	for _, id := range tok.EOG() {
		names = append(names, string(tok.Piece(id)))
	}
	if want := []string{"<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}; !slices.Equal(names, want) {
		t.Errorf("ends %q, want %q", names, want)
	}
}

// TestOverlappingSpecials: the longest token wins wherever it begins, then the leftmost.
func TestOverlappingSpecials(t *testing.T) {
	v := pairVocab("gpt-2")
	first := token.ID(len(v.Tokens))
	add := []string{"<a>", "<a><b>", "b><cc", "xx", "xxx", "é▁"}
	v.Tokens = append(v.Tokens, add...)
	v.Types = make([]int32, len(v.Tokens))
	for i := range v.Types {
		v.Types[i] = 1
		if i >= int(first) {
			v.Types[i] = 4
		}
	}
	tok, err := token.New(v)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"<a><b>":       "[<a><b>]",
		"<a><a><b>":    "[<a>][<a><b>]",
		"<a><b><cc":    "[<a><b>]<cc", // six characters against five
		"q<a>b><cc":    "q[<a>][b><cc]",
		"xxxxx":        "[xxx][xx]",
		"xxxxxxx":      "[xxx][xxx]x",
		"yxxxxé▁x":     "y[xxx]x[é▁]x",
		"":             "",
		"<a":           "<a",
		"<a><a><a><a>": "[<a>][<a>][<a>][<a>]",
	} {
		var got strings.Builder
		for _, id := range tok.Encode(text, token.Options{}) {
			if id >= first {
				fmt.Fprintf(&got, "[%s]", tok.Piece(id))
			} else {
				got.Write(tok.Piece(id))
			}
		}
		if got.String() != want {
			t.Errorf("%q: got %s, want %s", text, got.String(), want)
		}
	}
}

// TestLongRuns encodes long runs of one character: what is quadratic in other
// programs takes minutes here.
func TestLongRuns(t *testing.T) {
	spm := openVocab(t, filepath.Join("testdata", "spm", "vocab.gguf"))
	pairs, err := token.New(pairVocab("llama-bpe"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tok := range map[string]*token.Tokenizer{"qwen3": qwen(), "spm": spm, "pairs": pairs} {
		for _, unit := range []string{"a", " ", "\n", "=", "中", "ab", "é", "<", "\x80", "<|im_end|", "1", " \n", "'"} {
			text := strings.Repeat(unit, 300000/len(unit))
			start := time.Now()
			ids := tok.Encode(text, token.Options{Special: true})
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("%s: %d bytes of %q took %v", name, len(text), unit, took)
			}
			if got := tok.Decode(ids, true); name == "qwen3" && unit != "\x80" && string(got) != text {
				t.Errorf("%s: a run of %q does not come back", name, unit)
			}
		}
	}
}

// TestParallel uses one tokenizer from several goroutines.
func TestParallel(t *testing.T) {
	tok := qwen()
	text := strings.Repeat("The tide went out, and größere Straßen 12345 lagen trocken. ", 50)
	want := tok.Encode(text, token.Options{})
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 20 {
				if !slices.Equal(tok.Encode(text, token.Options{}), want) {
					t.Error("ids differ")
				}
			}
		})
	}
	group.Wait()
}

func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", "Hello, world!", "  naïve\n\n\t٣½ 你好 👍🏽", "<|im_start|>x", "\x80\xc0\xaf\xed\xa0\x80\xff", "a\u0301\u200d\u2028"} {
		f.Add(s)
	}
	smollm, err := token.New(pairVocab("smollm"))
	if err != nil {
		f.Fatal(err)
	}
	deepseek, err := token.New(pairVocab("deepseek-v3"))
	if err != nil {
		f.Fatal(err)
	}
	gpt4o, err := token.New(pairVocab("gpt-4o"))
	if err != nil {
		f.Fatal(err)
	}
	spm := openVocab(f, filepath.Join("testdata", "spm", "vocab.gguf"))
	f.Fuzz(func(t *testing.T, text string) {
		for name, tok := range map[string]*token.Tokenizer{"qwen3": qwen(), "smollm": smollm, "deepseek": deepseek, "gpt-4o": gpt4o, "spm": spm} {
			ids := tok.Encode(text, token.Options{})
			back := string(tok.Decode(ids, true))
			if utf8.ValidString(text) && back != text && !(name == "spm" && back == strings.ReplaceAll(text, "▁", " ")) {
				t.Errorf("%s: %q comes back as %q", name, text, back)
			}
			s := tok.Stream(true)
			streamed := ""
			for _, id := range ids {
				streamed += s.Push(id)
			}
			streamed += s.Flush()
			if name == "spm" {
				streamed = strings.TrimPrefix(streamed, " ")
			}
			if streamed != back {
				t.Errorf("%s: streamed %q, decoded %q", name, streamed, back)
			}
			if again := tok.Encode(text, token.Options{}); !slices.Equal(again, ids) {
				t.Errorf("%s: %q gives other ids the second time", name, text)
			}
		}
	})
}
