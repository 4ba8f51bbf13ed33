package widget

import (
	"regexp"
	"strings"
)

// Block is a piece of a Markdown text that can be shown by itself.
type Block struct {
	Code   bool
	Lang   string // of code, as written after the fence
	Text   string // Markdown source, or the code without its fences
	Open   bool   // a code fence that is not closed yet
	Joined bool   // goes on from the block before it: a long paragraph was cut
}

// longest is where a paragraph without blank lines is cut, in bytes: the cost
// of wrapping grows faster than the length of one text segment.
const longest = 1500

var (
	listItem   = regexp.MustCompile(`^ {0,3}(?:[-*+]|\d{1,9}[.)])(?:\s|$)`)
	definition = regexp.MustCompile(`^ {0,3}\[[^\]]+\]:\s*\S+`)
)

// Split cuts Markdown into blocks at blank lines outside code fences. A text
// that grows at its end changes only its last blocks, which makes streaming
// cheap. Items of one list stay together, so that numbers survive; link
// definitions are repeated in every block that could use them.
func Split(md string) []Block {
	lines := strings.Split(strings.ReplaceAll(md, "\r\n", "\n"), "\n")
	var out []Block
	var cur []string
	var defs []string
	blank := 0 // blank lines held back inside a list

	flush := func() {
		if len(cur) > 0 {
			out = append(out, cutLong(strings.Join(cur, "\n"))...)
		}
		cur, blank = nil, 0
	}
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if f := fenceOf(line); f.width > 0 {
			flush()
			b := Block{Code: true, Lang: f.lang, Open: true}
			var code []string
			for i++; i < len(lines); i++ {
				if c := fenceOf(lines[i]); c.mark == f.mark && c.width >= f.width && c.lang == "" {
					b.Open = false
					break
				}
				code = append(code, outdent(lines[i], f.indent))
			}
			if b.Open && len(code) > 0 && code[len(code)-1] == "" {
				code = code[:len(code)-1] // the line that is being written
			}
			b.Text = strings.Join(code, "\n")
			out = append(out, b)
			continue
		}
		if strings.TrimSpace(line) == "" {
			if len(cur) > 0 && inList(cur) {
				blank++
				continue
			}
			flush()
			continue
		}
		if definition.MatchString(line) && len(cur) == 0 {
			defs = append(defs, line)
			continue
		}
		if blank > 0 {
			if listItem.MatchString(line) || strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t") {
				for ; blank > 0; blank-- {
					cur = append(cur, "")
				}
			} else {
				flush()
			}
		}
		cur = append(cur, line)
	}
	flush()
	if len(defs) > 0 {
		tail := "\n\n" + strings.Join(defs, "\n")
		for i := range out {
			if !out[i].Code && strings.Contains(out[i].Text, "[") {
				out[i].Text += tail
			}
		}
	}
	return out
}

func inList(cur []string) bool { return listItem.MatchString(cur[0]) }

type fence struct {
	mark   byte
	width  int
	indent int
	lang   string
}

// fenceOf reads a line as a code fence. Any indentation is taken, because
// models indent fences inside lists by guess.
func fenceOf(line string) fence {
	s := strings.TrimLeft(line, " \t")
	f := fence{indent: len(line) - len(s)}
	if len(s) < 3 || (s[0] != '`' && s[0] != '~') {
		return fence{}
	}
	f.mark = s[0]
	for f.width < len(s) && s[f.width] == f.mark {
		f.width++
	}
	if f.width < 3 {
		return fence{}
	}
	rest := strings.TrimSpace(s[f.width:])
	if f.mark == '`' && strings.Contains(rest, "`") {
		return fence{} // inline code
	}
	f.lang, _, _ = strings.Cut(rest, " ")
	return f
}

func outdent(line string, n int) string {
	i := 0
	for i < len(line) && i < n && (line[i] == ' ' || line[i] == '\t') {
		i++
	}
	return line[i:]
}

// cutLong cuts one long paragraph at ends of sentences, else at spaces.
func cutLong(text string) []Block {
	if len(text) <= longest || strings.Contains(text, "\n") {
		return []Block{{Text: text}}
	}
	var out []Block
	for len(text) > longest {
		at := strings.LastIndex(text[:longest], ". ")
		if at < longest/2 {
			at = strings.LastIndex(text[:longest], " ")
		} else {
			at++
		}
		if at <= 0 {
			at = longest
			for at > 0 && text[at]&0xC0 == 0x80 {
				at--
			}
		}
		out = append(out, Block{Text: text[:at], Joined: len(out) > 0})
		text = strings.TrimLeft(text[at:], " ")
	}
	return append(out, Block{Text: text, Joined: true})
}
