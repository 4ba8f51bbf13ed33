package jinja

import (
	"slices"
	"strings"
	"unicode"
)

// method finds a method of a value, nil when it has none of the name.
func (in *interp) method(v any, name string) any {
	var f func(in *interp, c *call) any
	switch v := v.(type) {
	case string:
		if m, ok := stringMethods[name]; ok {
			f = func(in *interp, c *call) any {
				in.work(c.line, len(v))
				return m(in, v, c)
			}
		}
	case *list:
		if m, ok := listMethods[name]; ok && (!v.tuple || name == "index" || name == "count") {
			f = func(in *interp, c *call) any { return m(in, v, c) }
		}
	case *Dict:
		if m, ok := dictMethods[name]; ok {
			f = func(in *interp, c *call) any { return m(in, v, c) }
		}
	}
	if f == nil {
		return nil
	}
	return &function{name: name, call: f}
}

// cutter makes strip, lstrip and rstrip.
func cutter(trim func(s, cut string) string) func(in *interp, s string, c *call) any {
	return func(in *interp, s string, c *call) any {
		cut := whites
		if v, ok := c.arg(0, "chars"); ok && v != nil {
			cut = c.text(in, 0, "chars", "strip", "")
		}
		return trim(s, cut)
	}
}

// ender makes startswith and endswith, which take a text or a tuple of them.
func ender(has func(s, part string) bool) func(in *interp, s string, c *call) any {
	return func(in *interp, s string, c *call) any {
		if l, ok := c.need(0, "prefix", "startswith").(*list); ok {
			return slices.ContainsFunc(l.items, func(x any) bool {
				p, ok := x.(string)
				return ok && has(s, p)
			})
		}
		return has(s, c.text(in, 0, "prefix", "startswith", ""))
	}
}

func changer(f func(string) string) func(in *interp, s string, c *call) any {
	return func(in *interp, s string, c *call) any {
		out := f(s)
		in.made(c.line, len(out))
		return out
	}
}

// finder makes find and rfind; strict ones fail when there is nothing.
func finder(index func(s, part string) int, strict bool) func(in *interp, s string, c *call) any {
	return func(in *interp, s string, c *call) any {
		k := index(s, c.text(in, 0, "sub", "find", ""))
		if k < 0 {
			if strict {
				fail(c.line, "the text looked for is not there")
			}
			return int64(-1)
		}
		return int64(chars(s[:k]))
	}
}

// letters makes isalpha and its kind: some characters, all of which fit.
func letters(fits func(r rune) bool) func(in *interp, s string, c *call) any {
	return func(in *interp, s string, c *call) any {
		return s != "" && strings.IndexFunc(s, func(r rune) bool { return !fits(r) }) < 0
	}
}

var stringMethods = map[string]func(in *interp, s string, c *call) any{
	"strip": cutter(strings.Trim), "lstrip": cutter(strings.TrimLeft), "rstrip": cutter(strings.TrimRight),
	"startswith": ender(strings.HasPrefix), "endswith": ender(strings.HasSuffix),
	"upper": changer(strings.ToUpper), "lower": changer(strings.ToLower), "casefold": changer(strings.ToLower),
	"capitalize": changer(capitalize), "title": changer(pythonTitle), "swapcase": changer(swapcase),
	"find": finder(strings.Index, false), "rfind": finder(strings.LastIndex, false),
	"index": finder(strings.Index, true), "rindex": finder(strings.LastIndex, true),
	"isalpha": letters(unicode.IsLetter), "isdigit": letters(unicode.IsDigit), "isdecimal": letters(unicode.IsDigit), "isnumeric": letters(unicode.IsNumber),
	"isalnum": letters(func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }),
	"isspace": letters(func(r rune) bool { return strings.ContainsRune(whites, r) }),
	"isupper": func(in *interp, s string, c *call) any { return s == strings.ToUpper(s) && s != strings.ToLower(s) },
	"islower": func(in *interp, s string, c *call) any { return s == strings.ToLower(s) && s != strings.ToUpper(s) },
	"split":   func(in *interp, s string, c *call) any { return in.split(s, c, false) },
	"rsplit":  func(in *interp, s string, c *call) any { return in.split(s, c, true) },
	"splitlines": func(in *interp, s string, c *call) any {
		keep := c.flag(0, "keepends", false)
		var out []any
		for s != "" {
			line, rest := s, ""
			if k := strings.IndexAny(s, "\n\r"); k >= 0 {
				n := 1
				if strings.HasPrefix(s[k:], "\r\n") {
					n = 2
				}
				line, rest = s[:k], s[k+n:]
				if keep {
					line = s[:k+n]
				}
			}
			out = append(out, line)
			s = rest
		}
		return in.newList(c.line, out)
	},
	"replace": func(in *interp, s string, c *call) any {
		c.need(0, "old", "replace")
		c.need(1, "new", "replace")
		return in.replace(c.line, s, c.text(in, 0, "old", "replace", ""), c.text(in, 1, "new", "replace", ""), c.int(in, 2, "count", "replace", -1))
	},
	"count": func(in *interp, s string, c *call) any {
		return int64(strings.Count(s, c.text(in, 0, "sub", "count", "")))
	},
	"join": func(in *interp, s string, c *call) any {
		var out output
		for i, x := range in.items(c.line, c.need(0, "iterable", "join")) {
			t, ok := x.(string)
			if !ok {
				in.mustDefine(c.line, x)
				fail(c.line, "join: element %d must be text, not a %s", i, kindOf(x))
			}
			if i > 0 {
				out.write(in, c.line, s)
			}
			out.write(in, c.line, t)
		}
		return out.b.String()
	},
	"removeprefix": func(in *interp, s string, c *call) any {
		return strings.TrimPrefix(s, c.text(in, 0, "prefix", "removeprefix", ""))
	},
	"removesuffix": func(in *interp, s string, c *call) any {
		return strings.TrimSuffix(s, c.text(in, 0, "suffix", "removesuffix", ""))
	},
	"partition": func(in *interp, s string, c *call) any {
		sep := c.text(in, 0, "sep", "partition", "")
		a, b, ok := strings.Cut(s, sep)
		if !ok {
			sep = ""
		}
		return &list{items: []any{a, sep, b}, tuple: true}
	},
	"rpartition": func(in *interp, s string, c *call) any {
		sep := c.text(in, 0, "sep", "rpartition", "")
		k := strings.LastIndex(s, sep)
		if k < 0 {
			return &list{items: []any{"", "", s}, tuple: true}
		}
		return &list{items: []any{s[:k], sep, s[k+len(sep):]}, tuple: true}
	},
	"zfill":  func(in *interp, s string, c *call) any { return in.pad(s, c, true, "0") },
	"rjust":  func(in *interp, s string, c *call) any { return in.pad(s, c, true, " ") },
	"ljust":  func(in *interp, s string, c *call) any { return in.pad(s, c, false, " ") },
	"format": func(in *interp, s string, c *call) any { return in.braces(s, c) },
}

func (in *interp) pad(s string, c *call, left bool, with string) string {
	n := c.int(in, 0, "width", "padding", 0) - int64(chars(s))
	if n <= 0 {
		return s
	}
	fill := in.repeat(c.line, c.text(in, 1, "fillchar", "padding", with), n).(string)
	in.made(c.line, len(s)+len(fill))
	if left {
		return fill + s
	}
	return s + fill
}

// pythonTitle makes letters behind other letters small, and the others large.
func pythonTitle(s string) string {
	inside := false
	return strings.Map(func(r rune) rune {
		was := inside
		inside = unicode.IsLetter(r)
		if was {
			return unicode.ToLower(r)
		}
		return unicode.ToTitle(r)
	}, s)
}

func swapcase(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsUpper(r) {
			return unicode.ToLower(r)
		}
		return unicode.ToUpper(r)
	}, s)
}

// split is str.split and str.rsplit.
func (in *interp) split(s string, c *call, right bool) *list {
	most := c.int(in, 1, "maxsplit", "split", -1)
	var parts []string
	if v, ok := c.arg(0, "sep"); !ok || v == nil {
		parts = splitWhite(s, most, right)
	} else {
		sep := c.text(in, 0, "sep", "split", "")
		if sep == "" {
			fail(c.line, "split needs a separator that is not empty")
		}
		in.made(c.line, 16*strings.Count(s, sep))
		switch {
		case most < 0:
			parts = strings.Split(s, sep)
		case !right:
			parts = strings.SplitN(s, sep, int(min(most, maxValue))+1)
		default:
			for ; most > 0; most-- {
				k := strings.LastIndex(s, sep)
				if k < 0 {
					break
				}
				parts = append(parts, s[k+len(sep):])
				s = s[:k]
			}
			parts = append(parts, s)
			slices.Reverse(parts)
		}
	}
	items := make([]any, len(parts))
	for i, p := range parts {
		items[i] = p
	}
	return in.newList(c.line, items)
}

// splitWhite splits at runs of white space, at most so many times.
func splitWhite(s string, most int64, right bool) (parts []string) {
	if most < 0 {
		return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(whites, r) })
	}
	if right {
		for s = trimRight(s); s != ""; most-- {
			k := strings.LastIndexAny(s, whites)
			if k < 0 || most == 0 {
				parts = append(parts, trimLeft(s))
				break
			}
			word := trimLeft(s[k:])
			parts = append(parts, word)
			s = trimRight(s[:len(s)-len(word)])
		}
		slices.Reverse(parts)
		return parts
	}
	for s = trimLeft(s); s != ""; most-- {
		k := strings.IndexAny(s, whites)
		if k < 0 || most == 0 {
			return append(parts, trimRight(s))
		}
		parts = append(parts, s[:k])
		s = trimLeft(s[k:])
	}
	return parts
}

// listMethods has those that change a list too: transformers forbids them, but
// templates made for other programs use them, and the list is the template's own.
var listMethods = map[string]func(in *interp, l *list, c *call) any{
	"append": func(in *interp, l *list, c *call) any {
		in.made(c.line, 16)
		l.items = append(l.items, c.need(0, "object", "append"))
		return nil
	},
	"extend": func(in *interp, l *list, c *call) any {
		more := in.items(c.line, c.need(0, "iterable", "extend"))
		in.made(c.line, 16*len(more))
		l.items = append(l.items, more...)
		return nil
	},
	"insert": func(in *interp, l *list, c *call) any {
		n := int64(len(l.items))
		i := c.int(in, 0, "index", "insert", 0)
		if i < 0 {
			i += n
		}
		in.made(c.line, 16)
		in.work(c.line, 16*len(l.items))
		l.items = slices.Insert(l.items, int(max(0, min(i, n))), c.need(1, "object", "insert"))
		return nil
	},
	"pop": func(in *interp, l *list, c *call) any {
		k := wrap(c.int(in, 0, "index", "pop", -1), len(l.items))
		if k < 0 {
			fail(c.line, "pop: the list has no such element")
		}
		in.work(c.line, 16*len(l.items))
		v := l.items[k]
		l.items = slices.Delete(l.items, k, k+1)
		return v
	},
	"index": func(in *interp, l *list, c *call) any {
		v := c.need(0, "value", "index")
		for i, x := range l.items {
			if in.equal(x, v, 0) {
				return int64(i)
			}
		}
		fail(c.line, "index: the value is not in the list")
		return nil
	},
	"count": func(in *interp, l *list, c *call) any {
		n := int64(0)
		for _, x := range l.items {
			if in.equal(x, c.need(0, "value", "count"), 0) {
				n++
			}
		}
		return n
	},
	"copy": func(in *interp, l *list, c *call) any { return in.newList(c.line, slices.Clone(l.items)) },
	"reverse": func(in *interp, l *list, c *call) any {
		in.work(c.line, 16*len(l.items))
		slices.Reverse(l.items)
		return nil
	},
}

var dictMethods = map[string]func(in *interp, d *Dict, c *call) any{
	"items": func(in *interp, d *Dict, c *call) any { return in.pairs(c.line, d) },
	"keys":  func(in *interp, d *Dict, c *call) any { return in.newList(c.line, slices.Clone(d.keys)) },
	"values": func(in *interp, d *Dict, c *call) any {
		items := make([]any, len(d.keys))
		for i, k := range d.keys {
			items[i] = d.vals[k]
		}
		return in.newList(c.line, items)
	},
	"get": func(in *interp, d *Dict, c *call) any {
		if k := c.need(0, "key", "get"); hashable(k) {
			if v, ok := d.get(k); ok {
				return v
			}
		}
		v, _ := c.arg(1, "default")
		return v
	},
	"pop": func(in *interp, d *Dict, c *call) any {
		k := c.need(0, "key", "pop")
		if hashable(k) {
			if v, ok := d.get(k); ok {
				in.work(c.line, 16*len(d.keys))
				d.remove(k)
				return v
			}
		}
		v, ok := c.arg(1, "default")
		if !ok {
			fail(c.line, "pop: the mapping has no such key")
		}
		return v
	},
	"setdefault": func(in *interp, d *Dict, c *call) any {
		k := c.need(0, "key", "setdefault")
		if !hashable(k) {
			fail(c.line, "a %s cannot be a key", kindOf(k))
		}
		if v, ok := d.get(k); ok {
			return v
		}
		v, _ := c.arg(1, "default")
		in.made(c.line, 32)
		d.set(k, v)
		return v
	},
	"update": func(in *interp, d *Dict, c *call) any {
		for _, from := range []any{first(c.args), c.named} {
			if more, ok := from.(*Dict); ok && more != nil {
				in.made(c.line, 32*len(more.keys))
				for _, k := range slices.Clone(more.keys) {
					d.set(k, more.vals[k])
				}
			}
		}
		return nil
	},
	"copy": func(in *interp, d *Dict, c *call) any {
		in.made(c.line, 32*len(d.keys))
		out := NewDict()
		for _, k := range d.keys {
			out.set(k, d.vals[k])
		}
		return out
	},
}

func first(args []any) any {
	if len(args) > 0 {
		return args[0]
	}
	return nil
}
