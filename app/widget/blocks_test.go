package widget

import (
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		name, in string
		want     []Block
	}{
		{"nothing", "", nil},
		{"blank", "\n\n  \n", nil},
		{"two paragraphs", "a\nb\n\nc", []Block{{Text: "a\nb"}, {Text: "c"}}},
		{"code", "a\n```go\nx := 1\n\ny\n```\nb", []Block{{Text: "a"}, {Code: true, Lang: "go", Text: "x := 1\n\ny"}, {Text: "b"}}},
		{"open code", "```py\nprint(", []Block{{Code: true, Lang: "py", Text: "print(", Open: true}}},
		{"open code at a line end", "```py\nprint()\n", []Block{{Code: true, Lang: "py", Text: "print()", Open: true}}},
		{"fence being written", "a\n``", []Block{{Text: "a\n``"}}},
		{"info words", "```rust title=x\nfn\n```", []Block{{Code: true, Lang: "rust", Text: "fn"}}},
		{"tilde inside ticks", "```\n~~~\n```", []Block{{Code: true, Text: "~~~"}}},
		{"longer fence", "````\n```\nx\n```\n````", []Block{{Code: true, Text: "```\nx\n```"}}},
		{"inline ticks", "```x``` y", []Block{{Text: "```x``` y"}}},
		{"loose list", "1. a\n\n2. b\n\n   more\n\nend", []Block{{Text: "1. a\n\n2. b\n\n   more"}, {Text: "end"}}},
		{"list with code", "1. a\n   ```sh\n   ls\n     -l\n   ```\n2. b", []Block{{Text: "1. a"}, {Code: true, Lang: "sh", Text: "ls\n  -l"}, {Text: "2. b"}}},
		{"windows lines", "a\r\n\r\nb", []Block{{Text: "a"}, {Text: "b"}}},
		{"definition", "see [x]\n\n[x]: http://e.example", []Block{{Text: "see [x]\n\n[x]: http://e.example"}}},
	} {
		if got := Split(c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %#v, want %#v", c.name, got, c.want)
		}
	}
}

func TestSplitCutsLongParagraphs(t *testing.T) {
	long := strings.Repeat("This is a sentence of some words. ", 200)
	blocks := Split(long)
	if len(blocks) < 4 {
		t.Fatalf("got %d blocks", len(blocks))
	}
	var all []string
	for i, b := range blocks {
		if len(b.Text) > longest || b.Joined != (i > 0) {
			t.Errorf("block %d has %d bytes, joined %v", i, len(b.Text), b.Joined)
		}
		all = append(all, b.Text)
	}
	if strings.Join(all, " ") != strings.TrimSpace(long)+" " && strings.TrimSpace(strings.Join(all, " ")) != strings.TrimSpace(long) {
		t.Error("cutting changed the text")
	}
	for _, b := range Split(strings.Repeat("é", 4000)) {
		if !utf8.ValidString(b.Text) {
			t.Error("a character was cut in two")
		}
	}
}

// Growing text must not change blocks that came before, or streaming would
// redraw the whole answer.
func TestSplitIsStable(t *testing.T) {
	text := "Intro words.\n\n- one\n- two\n\n```go\nfunc main() {\n\tprintln(1)\n}\n```\n\nAfter **bold** text.\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n1. x\n\n2. y\n\nEnd."
	var before []Block
	for i := range text {
		now := Split(text[:i])
		for j := 0; j < len(before)-1 && j < len(now); j++ {
			if before[j] != now[j] && j < len(before)-2 {
				t.Fatalf("at %d, block %d changed from %q to %q", i, j, before[j].Text, now[j].Text)
			}
		}
		before = now
	}
}

func BenchmarkSplit2000Tokens(b *testing.B) {
	text := strings.Repeat("Some words in a paragraph that is of ordinary length, more or less.\n\n", 120)
	for b.Loop() {
		Split(text)
	}
}
