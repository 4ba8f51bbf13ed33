package jinja

import (
	"strings"
	"unicode"
)

func textFilter(f func(string) string) builtin {
	return func(in *interp, v any, c *call) any {
		out := f(in.str(c.line, v))
		in.made(c.line, len(out))
		return out
	}
}

// titleWords makes the first letter of each word large and the others small;
// words begin after white space, - ( { [ and <.
func titleWords(s string) string {
	start := true
	return strings.Map(func(r rune) rune {
		was := start
		start = unicode.IsSpace(r) || strings.ContainsRune("-({[<", r)
		if was {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func capitalize(s string) string {
	first := true
	return strings.Map(func(r rune) rune {
		if first {
			first = false
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func escape(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(s)
}

func striptags(s string) string {
	var b strings.Builder
	for {
		k := strings.IndexByte(s, '<')
		if k < 0 {
			break
		}
		end := strings.IndexByte(s[k:], '>')
		if end < 0 {
			break
		}
		b.WriteString(s[:k])
		s = s[k+end+1:]
	}
	b.WriteString(s)
	return strings.Join(strings.Fields(b.String()), " ")
}

func filterTrim(in *interp, v any, c *call) any {
	s := in.str(c.line, v)
	if cut, ok := c.arg(0, "chars"); ok && cut != nil {
		return strings.Trim(s, in.text(c.line, cut))
	}
	return strings.Trim(s, whites)
}

func filterString(in *interp, v any, c *call) any { return in.text(c.line, v) }

func filterReplace(in *interp, v any, c *call) any {
	s := in.str(c.line, v)
	from, to := in.text(c.line, c.need(0, "old", "replace")), in.text(c.line, c.need(1, "new", "replace"))
	return in.replace(c.line, s, from, to, c.int(in, 2, "count", "replace", -1))
}

// replace counts what it makes before it makes it.
func (in *interp) replace(line int, s, from, to string, most int64) string {
	in.work(line, len(s))
	n := int64(strings.Count(s, from))
	if most >= 0 {
		n = min(n, most)
	}
	grow := n * int64(len(to)-len(from))
	if int64(len(s))+grow > maxValue {
		tooMuch(line, "a value has more than %d bytes", maxValue)
	}
	in.made(line, len(s)+int(grow))
	return strings.Replace(s, from, to, int(n))
}

func filterIndent(in *interp, v any, c *call) any {
	s := in.str(c.line, v)
	var pad string
	if w, ok := c.arg(0, "width"); ok {
		if text, ok := w.(string); ok {
			pad = text
		} else {
			pad = in.repeat(c.line, " ", c.int(in, 0, "width", "indent", 4)).(string)
		}
	} else {
		pad = "    "
	}
	first, blank := c.flag(1, "first", false), c.flag(2, "blank", false)
	var out output
	for i, l := range strings.Split(s, "\n") {
		if i > 0 {
			out.write(in, c.line, "\n")
		}
		if (i > 0 || first) && (l != "" || blank && i > 0) {
			out.write(in, c.line, pad)
		}
		out.write(in, c.line, l)
	}
	return out.b.String()
}

// filterWordcount counts runs of letters, digits and underscores.
func filterWordcount(in *interp, v any, c *call) any {
	n, inside := int64(0), false
	for _, r := range in.str(c.line, v) {
		word := r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r)
		if word && !inside {
			n++
		}
		inside = word
	}
	return n
}

func filterTruncate(in *interp, v any, c *call) any {
	s := in.str(c.line, v)
	length := int(c.int(in, 0, "length", "truncate", 255))
	end := c.text(in, 2, "end", "truncate", "...")
	leeway := int(c.int(in, 3, "leeway", "truncate", 5))
	in.made(c.line, 4*len(s))
	r := []rune(s)
	if length < chars(end) || leeway < 0 {
		fail(c.line, "truncate: the length is too small")
	}
	if len(r) <= length+leeway {
		return s
	}
	cut := string(r[:length-chars(end)])
	if !c.flag(1, "killwords", false) {
		if k := strings.LastIndexByte(cut, ' '); k >= 0 {
			cut = cut[:k]
		}
	}
	return cut + end
}

func filterCenter(in *interp, v any, c *call) any {
	s := in.str(c.line, v)
	pad := c.int(in, 0, "width", "center", 80) - int64(chars(s))
	if pad <= 0 {
		return s
	}
	if pad > maxValue {
		tooMuch(c.line, "a value has more than %d bytes", maxValue)
	}
	// Python puts the odd blank on the left where the width is odd.
	left := pad/2 + pad&(pad+int64(chars(s)))&1
	in.made(c.line, len(s)+int(pad))
	return strings.Repeat(" ", int(left)) + s + strings.Repeat(" ", int(pad-left))
}

func filterFormat(in *interp, v any, c *call) any {
	if c.named != nil && len(c.args) == 0 {
		return in.format(c.line, in.str(c.line, v), c.named)
	}
	return in.format(c.line, in.str(c.line, v), &list{items: c.args, tuple: true})
}

func filterPprint(in *interp, v any, c *call) any {
	var b strings.Builder
	in.repr(c.line, &b, v, 0)
	in.made(c.line, b.Len())
	return b.String()
}
