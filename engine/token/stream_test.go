package token_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"outcrop/engine/token"
)

func TestStream(t *testing.T) {
	tok := qwen()
	for _, text := range []string{"Hello 👍🏽 wörld, 你好 🪨🪨 é", "👨‍👩‍👧‍👦🏳️‍🌈", "\xef\xbb\xbfBOM", ""} {
		s := tok.Stream(false)
		var out strings.Builder
		for _, id := range tok.Encode(text, token.Options{}) {
			part := s.Push(id)
			if !utf8.ValidString(part) {
				t.Errorf("%q: half a character in %q", text, part)
			}
			out.WriteString(part)
		}
		if rest := s.Flush(); rest != "" {
			t.Errorf("%q: %q was held", text, rest)
		}
		if out.String() != text {
			t.Errorf("got %q, want %q", out.String(), text)
		}
	}
	// Byte by byte: tokens of single bytes.
	bytesOf := func(s string) (ids []token.ID) {
		for _, b := range []byte(s) {
			found := token.ID(-1)
			for id := token.ID(0); id < 256; id++ {
				if p := tok.Piece(id); len(p) == 1 && p[0] == b {
					found = id
				}
			}
			ids = append(ids, found)
		}
		return ids
	}
	for _, c := range []struct {
		bytes string
		want  []string
		rest  string
	}{
		{"\xf0\x9f\x98\x80", []string{"", "", "", "😀"}, ""},
		{"\xf0\x9fA", []string{"", "", "\xf0\x9fA"}, ""}, // broken off: nothing stalls
		{"a\x80b", []string{"a", "\x80", "b"}, ""},
		{"\xc3\xa9\xe2\x82", []string{"", "é", "", ""}, "\xe2\x82"},
		{"\xff\xc0\xaf", []string{"\xff", "\xc0", "\xaf"}, ""},
		{"\xed\xa0\x80", []string{"", "\xed\xa0", "\x80"}, ""}, // a surrogate is no character
	} {
		s := tok.Stream(false)
		var got []string
		for _, id := range bytesOf(c.bytes) {
			got = append(got, s.Push(id))
		}
		if rest := s.Flush(); !slices.Equal(got, c.want) || rest != c.rest {
			t.Errorf("%q: got %q and %q", c.bytes, got, rest)
		}
	}
	// Control tokens show on request only.
	ids := tok.Encode("a<|im_end|>b", token.Options{Special: true})
	show, hide := tok.Stream(true), tok.Stream(false)
	var shown, hidden string
	for _, id := range ids {
		shown += show.Push(id)
		hidden += hide.Push(id)
	}
	if len(ids) != 3 || shown != "a<|im_end|>b" || hidden != "ab" {
		t.Errorf("%v: %q %q", ids, shown, hidden)
	}
}

// TestTagStream: tags of calls show, other control tokens do not.
func TestTagStream(t *testing.T) {
	v := pairVocab("tekken")
	first := len(v.Tokens)
	v.Tokens = append(v.Tokens, "[TOOL_CALLS]", "[ARGS]", "[INST]", "</s>")
	v.Types = make([]int32, len(v.Tokens))
	for i := range v.Types {
		v.Types[i] = 1
		if i >= first {
			v.Types[i] = 3
		}
	}
	tok, err := token.New(v)
	if err != nil {
		t.Fatal(err)
	}
	tags, plain := tok.TagStream(), tok.Stream(false)
	var shown, hidden string
	for _, id := range tok.Encode("[INST][TOOL_CALLS]f[ARGS]{}</s>", token.Options{Special: true}) {
		shown += tags.Push(id)
		hidden += plain.Push(id)
	}
	if shown != "[TOOL_CALLS]f[ARGS]{}" || hidden != "f{}" {
		t.Errorf("shown %q, hidden %q", shown, hidden)
	}
}

func TestDecode(t *testing.T) {
	spm := openVocab(t, filepath.Join("testdata", "spm", "vocab.gguf"))
	for _, c := range []struct {
		text    string
		options token.Options
		special bool
		want    string
	}{
		{"the model", token.Options{}, false, "the model"},
		{" the model", token.Options{}, false, " the model"},
		{"the model", token.Options{AddBOS: true}, false, "the model"},
		{"the model", token.Options{AddBOS: true}, true, "<s> the model</s>"},
		{"<|user|>x", token.Options{Special: true}, false, "x"},
		{"<|user|>x", token.Options{}, false, "<|user|>x"},
		{"🦙 and \xff", token.Options{}, false, "🦙 and \xff"},
	} {
		ids := spm.Encode(c.text, c.options)
		if got := string(spm.Decode(ids, c.special)); got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
	// A stream may go on from a prompt: the space in front stays.
	s := spm.Stream(false)
	got := ""
	for _, id := range spm.Encode("the", token.Options{}) {
		got += s.Push(id)
	}
	if got+s.Flush() != " the" {
		t.Errorf("stream %q", got)
	}
	// Llama 3 among others asks for spaces before punctuation to go.
	tidy, err := token.New(pairVocab("llama-bpe"))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"a , b . c ! d ?": "a, b. c! d?", "x ' y": "x'y", "it 's he 're I 'm we 've he 'd you 'll don 't": "it's he're I'm we've he 'd you 'll don 't", " .": ".", "' '": "' '", " ": " ", "a  .": "a .",
	} {
		if got := string(tidy.Decode(tidy.Encode(in, token.Options{}), false)); got != want {
			t.Errorf("tidy %q: got %q, want %q", in, got, want)
		}
	}
}
