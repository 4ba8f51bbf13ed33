package widget

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	para := func(r ...run) node { return node{kind: paragraph, runs: r} }
	for _, c := range []struct {
		name, in string
		want     []node
	}{
		{"styles", "a **b** *c* `d` ~~e~~", []node{para(run{text: "a "}, run{text: "b", bold: true}, run{text: " "},
			run{text: "c", italic: true}, run{text: " "}, run{text: "d", code: true}, run{text: " "}, run{text: "e", strike: true})}},
		{"type names stay", "use vector<int> or <think>", []node{para(run{text: "use vector<int> or <think>"})}},
		{"html block stays", "<details>\nx\n</details>", []node{para(run{text: "<details>\nx\n</details>"})}},
		{"entities", "a &lt; b &amp;c", []node{para(run{text: "a < b &c"})}},
		{"line break kept", "roses\nviolets", []node{para(run{text: "roses\nviolets"})}},
		{"heading", "## Title *x*", []node{{kind: heading, level: 2, runs: []run{{text: "Title "}, {text: "x", italic: true}}}}},
		{"rule", "---", []node{{kind: rule}}},
		{"picture is not fetched", "![cat](http://e.example/c.png)", []node{para(run{text: "[image: cat]", link: "http://e.example/c.png"})}},
		{"link", "[x](http://e.example)", []node{para(run{text: "x", link: "http://e.example"})}},
		{"bare address", "see https://e.example/a", []node{para(run{text: "see "}, run{text: "https://e.example/a", link: "https://e.example/a"})}},
		{"numbers go on", "7. x\n8. y", []node{{kind: list, tight: true, kids: []node{
			{kind: item, marker: "7.", kids: []node{para(run{text: "x"})}},
			{kind: item, marker: "8.", kids: []node{para(run{text: "y"})}}}}}},
		// Fyne's own reader panics on this one.
		{"task with style", "- [ ] **b**\n- [x] c", []node{{kind: list, tight: true, kids: []node{
			{kind: item, marker: "☐", kids: []node{para(run{text: "b", bold: true})}},
			{kind: item, marker: "☑", kids: []node{para(run{text: "c"})}}}}}},
		{"nested", "- a\n  - b", []node{{kind: list, tight: true, kids: []node{{kind: item, marker: "•", kids: []node{
			para(run{text: "a"}), {kind: list, tight: true, kids: []node{{kind: item, marker: "•", kids: []node{para(run{text: "b"})}}}}}}}}}},
		{"quote", "> a\n> > b", []node{{kind: quote, kids: []node{para(run{text: "a"}), {kind: quote, kids: []node{para(run{text: "b"})}}}}}},
		{"table", "| a | b |\n|---|--:|\n| 1 | *2* |", []node{{kind: table, right: []bool{false, true}, rows: [][][]run{
			{{{text: "a"}}, {{text: "b"}}}, {{{text: "1"}}, {{text: "2", italic: true}}}}}}},
		{"indented code", "    x := 1", []node{{kind: codeBlock, text: "x := 1"}}},
	} {
		got := parse(c.in)
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %#v\nwant %#v", c.name, got, c.want)
		}
		for i := range got {
			if !got[i].equal(got[i]) {
				t.Errorf("%s: node %d does not equal itself", c.name, i)
			}
		}
	}
}

// plain is all the text of nodes.
func plain(list []node) string {
	var b strings.Builder
	for _, n := range list {
		for _, r := range n.runs {
			b.WriteString(r.text)
		}
		for _, row := range n.rows {
			for _, cell := range row {
				for _, r := range cell {
					b.WriteString(r.text)
				}
			}
		}
		b.WriteString(n.text)
		b.WriteString(plain(n.kids))
	}
	return b.String()
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a **b", "- [ ] **x**\n- [x]", "| a |\n|-|\n| `|` |", "> ```\n> x", "1. a\n\n   ```\n   x", "[a]: <", "<a b='", "![](", "***", "&#0;", "- [ ]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, b := range Split(s) {
			if !b.Code {
				_ = plain(parse(b.Text))
			}
		}
	})
}
