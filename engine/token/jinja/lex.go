package jinja

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

type kind int

const (
	tEnd kind = iota
	tText
	tOpenOut   // {{
	tCloseOut  // }}
	tOpenStmt  // {%
	tCloseStmt // %}
	tName
	tString
	tInt
	tFloat
	tOp
)

type lexeme struct {
	kind kind
	text string
	line int
	num  any // of tInt and tFloat
}

// lexer cuts a template into lexemes.
type lexer struct {
	src   string
	pos   int
	line  int
	out   []lexeme
	fresh bool // the text before pos ends with a line break, or there is none
}

func lex(source string) []lexeme {
	source = strings.ReplaceAll(source, "\r\n", "\n")
	source = strings.ReplaceAll(source, "\r", "\n")
	// One line break at the end of a template is not part of it.
	source = strings.TrimSuffix(source, "\n")
	l := &lexer{src: source, line: 1, fresh: true}
	for l.pos < len(l.src) {
		l.data()
	}
	l.add(tEnd, "")
	return l.out
}

func (l *lexer) add(k kind, text string) {
	l.out = append(l.out, lexeme{kind: k, text: text, line: l.line})
}

// advance moves to a later position and counts lines.
func (l *lexer) advance(to int) {
	l.line += strings.Count(l.src[l.pos:to], "\n")
	if to > l.pos {
		l.fresh = l.src[to-1] == '\n'
	}
	l.pos = to
}

// data reads text up to the next tag, and the tag.
func (l *lexer) data() {
	rest := l.src[l.pos:]
	at := -1
	for i := 0; i+1 < len(rest); {
		k := strings.IndexByte(rest[i:], '{')
		if k < 0 || i+k+1 >= len(rest) {
			break
		}
		i += k
		if c := rest[i+1]; c == '{' || c == '%' || c == '#' {
			at = i
			break
		}
		i++
	}
	if at < 0 {
		l.add(tText, rest)
		l.advance(len(l.src))
		return
	}
	text, what := rest[:at], rest[at+1]
	open := at + 2
	sign := byte(0)
	if open < len(rest) && (rest[open] == '-' || rest[open] == '+') {
		sign = rest[open]
		open++
	}
	switch {
	case sign == '-':
		text = trimRight(text)
	case sign == 0 && what != '{':
		// lstrip_blocks: blanks between the start of a line and a tag go.
		start := strings.LastIndexByte(text, '\n') + 1
		if start > 0 || l.fresh {
			if strings.Trim(text[start:], " \t\f\v") == "" {
				text = text[:start]
			}
		}
	}
	if text != "" {
		l.add(tText, text)
	}
	l.advance(l.pos + open)
	switch what {
	case '#':
		l.comment()
	case '{':
		l.add(tOpenOut, "{{")
		l.inside("}}", tCloseOut)
	default:
		if l.raw() {
			return
		}
		l.add(tOpenStmt, "{%")
		l.inside("%}", tCloseStmt)
	}
}

// comment skips a comment.
func (l *lexer) comment() {
	k := strings.Index(l.src[l.pos:], "#}")
	if k < 0 {
		fail(l.line, "a comment is not closed with #}")
	}
	sign := byte(0)
	if k > 0 {
		sign = l.src[l.pos+k-1]
	}
	l.advance(l.pos + k + 2)
	l.afterTag(sign, true)
}

// afterTag drops white space after a tag: all after a minus, else the line
// break right behind a statement or a comment (trim_blocks).
func (l *lexer) afterTag(sign byte, block bool) {
	rest := l.src[l.pos:]
	switch {
	case sign == '-':
		l.advance(l.pos + len(rest) - len(trimLeft(rest)))
	case sign != '+' && block && strings.HasPrefix(rest, "\n"):
		l.advance(l.pos + 1)
	}
}

// raw reads {% raw %} ... {% endraw %} whole, if the tag at pos is one.
func (l *lexer) raw() bool {
	rest := l.src[l.pos:]
	body, ok := strings.CutPrefix(trimLeft(rest), "raw")
	if !ok {
		return false
	}
	body = trimLeft(body)
	sign := byte(0)
	if body != "" && (body[0] == '-' || body[0] == '+') {
		sign = body[0]
		body = body[1:]
	}
	if body, ok = strings.CutPrefix(body, "%}"); !ok {
		return false
	}
	l.advance(len(l.src) - len(body))
	l.afterTag(sign, true)
	// The end tag may have signs and blanks in it.
	for at := l.pos; ; {
		k := strings.Index(l.src[at:], "{%")
		if k < 0 {
			fail(l.line, "raw is not closed with endraw")
		}
		at += k + 2
		tag := l.src[at:]
		left, right := byte(0), byte(0)
		if tag != "" && (tag[0] == '-' || tag[0] == '+') {
			left = tag[0]
			tag = tag[1:]
		}
		tag, ok := strings.CutPrefix(trimLeft(tag), "endraw")
		if !ok {
			continue
		}
		tag = trimLeft(tag)
		if tag != "" && (tag[0] == '-' || tag[0] == '+') {
			right = tag[0]
			tag = tag[1:]
		}
		if tag, ok = strings.CutPrefix(tag, "%}"); !ok {
			continue
		}
		text := l.src[l.pos : at-2]
		switch {
		case left == '-':
			text = trimRight(text)
		case left == 0:
			start := strings.LastIndexByte(text, '\n') + 1
			if start > 0 && strings.Trim(text[start:], " \t\f\v") == "" {
				text = text[:start]
			}
		}
		if text != "" {
			l.add(tText, text)
		}
		l.advance(len(l.src) - len(tag))
		l.afterTag(right, true)
		return true
	}
}

// operators in the order in which they are tried.
var operators = []string{"**", "//", "==", "!=", "<=", ">=", "+", "-", "*", "/", "%", "~", "(", ")", "[", "]", "{", "}", ",", ".", ":", "|", "<", ">", "=", ";"}

// inside reads the lexemes of a tag up to its end.
func (l *lexer) inside(end string, closing kind) {
	opened := l.line
	depth := 0
	for {
		rest := l.src[l.pos:]
		if rest == "" {
			fail(opened, "a tag is not closed with %s", end)
		}
		c := rest[0]
		if depth == 0 {
			sign := byte(0)
			tail := rest
			if c == '-' || c == '+' {
				sign, tail = c, rest[1:]
			}
			if strings.HasPrefix(tail, end) {
				l.add(closing, end)
				l.advance(l.pos + len(rest) - len(tail) + len(end))
				if sign == '+' && closing == tCloseOut {
					sign = 0
				}
				l.afterTag(sign, closing == tCloseStmt)
				return
			}
		}
		switch {
		case strings.IndexByte(" \t\n\f\v", c) >= 0:
			l.advance(l.pos + 1)
		case c == '"' || c == '\'':
			l.str(c)
		case c >= '0' && c <= '9':
			l.number()
		case c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z' || c >= utf8.RuneSelf:
			n := 1
			for n < len(rest) && (rest[n] == '_' || rest[n]|0x20 >= 'a' && rest[n]|0x20 <= 'z' || rest[n] >= '0' && rest[n] <= '9' || rest[n] >= utf8.RuneSelf) {
				n++
			}
			l.add(tName, rest[:n])
			l.advance(l.pos + n)
		default:
			op := ""
			for _, o := range operators {
				if strings.HasPrefix(rest, o) {
					op = o
					break
				}
			}
			switch op {
			case "":
				fail(l.line, "unexpected character %q", rest[:1])
			case "(", "[", "{":
				if depth++; depth > maxNest {
					tooMuch(l.line, "brackets are nested more than %d deep", maxNest)
				}
			case ")", "]", "}":
				if depth--; depth < 0 {
					fail(l.line, "unexpected %q", op)
				}
			}
			l.add(tOp, op)
			l.advance(l.pos + len(op))
		}
	}
}

// str reads a string literal with Python's escapes.
func (l *lexer) str(quote byte) {
	var b strings.Builder
	s := l.src[l.pos+1:]
	i := 0
	for ; ; i++ {
		if i >= len(s) {
			fail(l.line, "a string is not closed with %c", quote)
		}
		c := s[i]
		if c == quote {
			break
		}
		if c != '\\' || i+1 >= len(s) {
			b.WriteByte(c)
			continue
		}
		i++
		switch e := s[i]; e {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'a':
			b.WriteByte('\a')
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'v':
			b.WriteByte('\v')
		case '\\', '\'', '"':
			b.WriteByte(e)
		case '\n':
		case 'x', 'u', 'U':
			n := map[byte]int{'x': 2, 'u': 4, 'U': 8}[e]
			if i+n >= len(s) {
				fail(l.line, "an escape in a string is cut off")
			}
			r, err := strconv.ParseUint(s[i+1:i+1+n], 16, 32)
			if err != nil || r > utf8.MaxRune {
				fail(l.line, "the escape \\%s is no character", s[i:i+1+n])
			}
			b.WriteRune(rune(r))
			i += n
		case '0', '1', '2', '3', '4', '5', '6', '7':
			n, r := 0, 0
			for n < 3 && i+n < len(s) && s[i+n] >= '0' && s[i+n] <= '7' {
				r = r*8 + int(s[i+n]-'0')
				n++
			}
			b.WriteRune(rune(r))
			i += n - 1
		default:
			b.WriteByte('\\')
			b.WriteByte(e)
		}
	}
	l.add(tString, b.String())
	l.advance(l.pos + 1 + i + 1)
}

// number reads an integer or a float; digits may be grouped by underscores.
func (l *lexer) number() {
	s := l.src[l.pos:]
	digits := func(i int) int {
		for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '_') {
			i++
		}
		return i
	}
	n := digits(0)
	isFloat := false
	if n+1 < len(s) && s[n] == '.' && s[n+1] >= '0' && s[n+1] <= '9' {
		n = digits(n + 1)
		isFloat = true
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		k := n + 1
		if k < len(s) && (s[k] == '+' || s[k] == '-') {
			k++
		}
		if end := digits(k); end > k {
			n, isFloat = end, true
		}
	}
	text := strings.ReplaceAll(s[:n], "_", "")
	x := lexeme{kind: tInt, text: s[:n], line: l.line}
	if isFloat {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil {
			fail(l.line, "the number %s cannot be read", s[:n])
		}
		x.kind, x.num = tFloat, f
	} else {
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			fail(l.line, "the number %s is too large", s[:n])
		}
		x.num = i
	}
	l.out = append(l.out, x)
	l.advance(l.pos + n)
}

// White space as Python's str.strip and regular expressions have it.
const whites = " \t\n\r\f\v\u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\x1c\x1d\x1e\x1f"

func trimLeft(s string) string  { return strings.TrimLeft(s, whites) }
func trimRight(s string) string { return strings.TrimRight(s, whites) }
