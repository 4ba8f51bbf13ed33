package jinja

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// text is what printing a value gives.
func (in *interp) text(line int, v any) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	var b strings.Builder
	in.repr(line, &b, v, 0)
	in.made(line, b.Len())
	return b.String()
}

// repr writes a value as Python's repr does.
func (in *interp) repr(line int, b *strings.Builder, v any, depth int) {
	in.step(line)
	if depth > maxNest {
		tooMuch(line, "a value nested more than %d deep is printed", maxNest)
	}
	if b.Len() > maxValue {
		tooMuch(line, "a value of more than %d bytes is printed", maxValue)
	}
	switch v := v.(type) {
	case nil:
		b.WriteString("None")
	case bool:
		if v {
			b.WriteString("True")
		} else {
			b.WriteString("False")
		}
	case int64:
		b.WriteString(strconv.FormatInt(v, 10))
	case float64:
		b.WriteString(floatText(v))
	case string:
		reprString(b, v)
	case *list:
		open, end := "[", "]"
		if v.tuple {
			open, end = "(", ")"
			if len(v.items) == 1 {
				end = ",)"
			}
		}
		b.WriteString(open)
		for i, x := range v.items {
			if i > 0 {
				b.WriteString(", ")
			}
			in.repr(line, b, x, depth+1)
		}
		b.WriteString(end)
	case *Dict:
		b.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				b.WriteString(", ")
			}
			in.repr(line, b, k, depth+1)
			b.WriteString(": ")
			in.repr(line, b, v.vals[k], depth+1)
		}
		b.WriteByte('}')
	case *namespace:
		b.WriteString("<Namespace ")
		in.repr(line, b, v.d, depth+1)
		b.WriteByte('>')
	case *function:
		if v.macro {
			b.WriteString("<Macro '" + v.name + "'>")
			return
		}
		b.WriteString("<function " + v.name + ">")
	case *loopState:
		b.WriteString("<LoopContext " + strconv.Itoa(v.i+1) + "/" + strconv.Itoa(len(v.items)) + ">")
	case undefined:
		b.WriteString("Undefined")
	}
}

// floatText prints a float as Python's repr: the shortest digits that read
// back, with a point or an exponent.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f != f:
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// reprString quotes text as Python does: in double quotes if it holds single
// ones and no double ones.
func reprString(b *strings.Builder, s string) {
	quote := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = '"'
	}
	const hex = "0123456789abcdef"
	b.WriteByte(quote)
	for _, r := range s {
		switch {
		case r == rune(quote) || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7F:
			b.WriteString(`\x`)
			b.WriteByte(hex[r>>4])
			b.WriteByte(hex[r&15])
		case r > 0x7F && !unicode.IsPrint(r) && r <= 0xFF:
			b.WriteString(`\x`)
			b.WriteByte(hex[r>>4])
			b.WriteByte(hex[r&15])
		case r > 0xFF && !unicode.IsPrint(r) && r <= 0xFFFF:
			b.WriteString(`\u` + leftPad(strconv.FormatInt(int64(r), 16), 4, "0"))
		case r > 0xFFFF && !unicode.IsPrint(r):
			b.WriteString(`\U` + leftPad(strconv.FormatInt(int64(r), 16), 8, "0"))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte(quote)
}

func leftPad(s string, n int, with string) string {
	if k := n - len(s); k > 0 {
		return strings.Repeat(with, k) + s
	}
	return s
}

// chars counts the characters of s.
func chars(s string) int { return utf8.RuneCountInString(s) }
