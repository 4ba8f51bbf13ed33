package widget

import (
	"html"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Fyne's own Markdown segments are not used: they fetch pictures from the
// network, drop inline HTML (and with it every "vector<int>") and trust the
// shape of task items. What is shown here is text that a model wrote, so
// nothing is fetched and nothing is dropped.

// run is a piece of a line in one style.
type run struct {
	text                       string
	bold, italic, strike, code bool
	link                       string
}

type nodeKind int

const (
	paragraph nodeKind = iota
	heading
	quote
	list
	item
	table
	rule
	codeBlock
)

// node is a block of Markdown, ready to be shown.
type node struct {
	kind   nodeKind
	level  int    // of a heading
	marker string // of an item
	lang   string // of code
	text   string // of code
	tight  bool   // of a list
	runs   []run
	kids   []node
	rows   [][][]run // of a table: first the header
	right  []bool    // of a table: columns of numbers
}

func (n node) equal(m node) bool {
	return n.kind == m.kind && n.level == m.level && n.marker == m.marker && n.lang == m.lang && n.text == m.text &&
		n.tight == m.tight && slices.Equal(n.runs, m.runs) && slices.EqualFunc(n.kids, m.kids, node.equal) &&
		slices.EqualFunc(n.rows, m.rows, func(a, b [][]run) bool {
			return slices.EqualFunc(a, b, func(c, d []run) bool { return slices.Equal(c, d) })
		}) && slices.Equal(n.right, m.right)
}

var markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Linkify)).Parser()

// parse reads one block of Split that is not code.
func parse(source string) []node {
	src := []byte(source)
	p := parser{src: src}
	return p.blocks(markdown.Parse(text.NewReader(src)))
}

type parser struct{ src []byte }

func (p *parser) blocks(parent ast.Node) []node {
	var out []node
	for c := parent.FirstChild(); c != nil; c = c.NextSibling() {
		switch t := c.(type) {
		case *ast.Paragraph, *ast.TextBlock:
			out = append(out, node{kind: paragraph, runs: p.inlines(c)})
		case *ast.Heading:
			out = append(out, node{kind: heading, level: t.Level, runs: p.inlines(c)})
		case *ast.Blockquote:
			out = append(out, node{kind: quote, kids: p.blocks(c)})
		case *ast.List:
			out = append(out, p.list(t))
		case *ast.ThematicBreak:
			out = append(out, node{kind: rule})
		case *ast.FencedCodeBlock:
			out = append(out, node{kind: codeBlock, lang: string(t.Language(p.src)), text: p.lines(c)})
		case *ast.CodeBlock:
			out = append(out, node{kind: codeBlock, text: p.lines(c)})
		case *east.Table:
			out = append(out, p.table(t))
		case *ast.HTMLBlock:
			s := p.lines(c)
			if t.HasClosure() {
				s += "\n" + strings.TrimRight(string(t.ClosureLine.Value(p.src)), "\n")
			}
			out = append(out, node{kind: paragraph, runs: []run{{text: s}}})
		default:
			if c.Type() == ast.TypeBlock && c.HasChildren() {
				out = append(out, p.blocks(c)...)
			}
		}
	}
	return out
}

func (p *parser) lines(n ast.Node) string {
	var b strings.Builder
	l := n.Lines()
	for i := range l.Len() {
		seg := l.At(i)
		b.Write(seg.Value(p.src))
	}
	return strings.TrimRight(b.String(), "\n")
}

func (p *parser) list(l *ast.List) node {
	n := node{kind: list, tight: l.IsTight}
	number := l.Start
	for c := l.FirstChild(); c != nil; c = c.NextSibling() {
		it := node{kind: item, marker: "•", kids: p.blocks(c)}
		if l.IsOrdered() {
			it.marker = strconv.Itoa(number) + "."
			number++
		}
		if box := task(c); box != nil {
			it.marker = "☐"
			if box.IsChecked {
				it.marker = "☑"
			}
		}
		n.kids = append(n.kids, it)
	}
	return n
}

// task finds the check box that a list item begins with, or nil.
func task(item ast.Node) *east.TaskCheckBox {
	first := item.FirstChild()
	if first == nil {
		return nil
	}
	box, _ := first.FirstChild().(*east.TaskCheckBox)
	return box
}

func (p *parser) table(t *east.Table) node {
	n := node{kind: table}
	for _, a := range t.Alignments {
		n.right = append(n.right, a == east.AlignRight)
	}
	for r := t.FirstChild(); r != nil; r = r.NextSibling() {
		var row [][]run
		for c := r.FirstChild(); c != nil; c = c.NextSibling() {
			row = append(row, p.inlines(c))
		}
		n.rows = append(n.rows, row)
	}
	return n
}

// inlines flattens what stands inside a block.
func (p *parser) inlines(parent ast.Node) []run {
	var out []run
	p.inline(parent, run{}, &out)
	// Neighbours of one style are one run: fewer objects to draw.
	var joined []run
	for _, r := range out {
		if n := len(joined); n > 0 {
			last := joined[n-1]
			last.text = r.text
			if last == r {
				joined[n-1].text += r.text
				continue
			}
		}
		joined = append(joined, r)
	}
	return joined
}

func (p *parser) inline(parent ast.Node, style run, out *[]run) {
	add := func(s string) {
		if s != "" {
			r := style
			r.text = s
			*out = append(*out, r)
		}
	}
	for c := parent.FirstChild(); c != nil; c = c.NextSibling() {
		switch t := c.(type) {
		case *ast.Text:
			s := string(t.Value(p.src))
			if !t.IsRaw() {
				s = html.UnescapeString(s)
			}
			// A single line break is kept: models write verses and addresses,
			// hardly ever text filled to a width.
			if t.SoftLineBreak() || t.HardLineBreak() {
				s += "\n"
			}
			add(s)
		case *ast.String:
			add(string(t.Value))
		case *ast.CodeSpan:
			in := style
			in.code = true
			p.inline(c, in, out)
		case *ast.Emphasis:
			in := style
			if t.Level >= 2 {
				in.bold = true
			} else {
				in.italic = true
			}
			p.inline(c, in, out)
		case *east.Strikethrough:
			in := style
			in.strike = true
			p.inline(c, in, out)
		case *ast.Link:
			in := style
			in.link = string(t.Destination)
			p.inline(c, in, out)
		case *ast.AutoLink:
			in := style
			in.link = string(t.URL(p.src))
			in.text = string(t.Label(p.src))
			*out = append(*out, in)
		case *ast.Image:
			// Never fetched: a picture's address can carry the text of the chat away.
			in := style
			in.link = string(t.Destination)
			in.text = "[image: "
			*out = append(*out, in)
			p.inline(c, in, out)
			in.text = "]"
			*out = append(*out, in)
		case *ast.RawHTML:
			for i := range t.Segments.Len() {
				seg := t.Segments.At(i)
				add(string(seg.Value(p.src)))
			}
		case *east.TaskCheckBox:
			// shown as the item's marker
		default:
			p.inline(c, style, out)
		}
	}
}
