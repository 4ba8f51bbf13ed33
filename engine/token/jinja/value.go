package jinja

import (
	"math"
	"sort"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Values are Go values: nil (None), bool, int64, float64, string, *list,
// *Dict, *namespace, *function, *loopState and undefined.

// undefined is a variable or an attribute that is not there. It prints as
// nothing and is false; anything else done with it is an error that hint explains.
type undefined struct{ hint string }

// list is a list or, with tuple, a tuple, which prints in other brackets.
type list struct {
	items []any
	tuple bool
}

// Dict is a mapping that keeps the order in which keys were set. Keys are
// nil, bool, int64, float64 or string.
type Dict struct {
	keys []any
	vals map[any]any
}

// NewDict makes an empty mapping.
func NewDict() *Dict { return &Dict{vals: map[any]any{}} }

// Set sets a key that is text.
func (d *Dict) Set(key string, v any) { d.set(key, v) }

// Len counts the keys.
func (d *Dict) Len() int { return len(d.keys) }

func (d *Dict) set(key, v any) {
	if _, ok := d.vals[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.vals[key] = v
}

func (d *Dict) get(key any) (any, bool) {
	v, ok := d.vals[key]
	return v, ok
}

func (d *Dict) remove(key any) {
	delete(d.vals, key)
	for i, k := range d.keys {
		if k == key {
			d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
			return
		}
	}
}

// namespace is what namespace() makes: the one thing whose attributes a
// template may set.
type namespace struct{ d *Dict }

// function is anything that can be called.
type function struct {
	name  string
	macro bool
	call  func(in *interp, c *call) any
}

// call is the arguments of a call.
type call struct {
	line  int
	args  []any
	named *Dict // nil for none
}

// fromGo takes a value of a caller over.
func fromGo(v any, depth int) any {
	if depth > maxNest {
		tooMuch(0, "a value is nested more than %d deep", maxNest)
	}
	switch v := v.(type) {
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	case []any:
		l := &list{items: make([]any, len(v))}
		for i, x := range v {
			l.items[i] = fromGo(x, depth+1)
		}
		return l
	case []string:
		l := &list{items: make([]any, len(v))}
		for i, x := range v {
			l.items[i] = x
		}
		return l
	case *Dict:
		d := NewDict()
		for _, k := range v.keys {
			d.set(k, fromGo(v.vals[k], depth+1))
		}
		return d
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		d := NewDict()
		for _, k := range keys {
			d.set(k, fromGo(v[k], depth+1))
		}
		return d
	case nil, bool, int64, float64, string:
		return v
	}
	fail(0, "a variable of Go type %T cannot be passed to a template", v)
	return nil
}

// kindOf names the type of a value as Python does.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *list:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *namespace:
		return "namespace"
	case *function:
		return "function"
	case *loopState:
		return "loop"
	}
	return "undefined"
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// number sees bools as the numbers they are in Python.
func number(v any) (i int64, f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return 0, 0, false, false
}

// equal is Python's ==.
func (in *interp) equal(a, b any, depth int) bool {
	in.step(0)
	if depth > maxNest {
		tooMuch(0, "values nested more than %d deep are compared", maxNest)
	}
	ai, af, aInt, aNum := number(a)
	bi, bf, bInt, bNum := number(b)
	if aNum || bNum {
		switch {
		case !aNum || !bNum:
			return false
		case aInt && bInt:
			return ai == bi
		}
		return af == bf
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case undefined:
		_, ok := b.(undefined)
		return ok
	case string:
		s, ok := b.(string)
		if !ok || len(s) != len(a) {
			return false
		}
		in.work(0, len(s))
		return a == s
	case *list:
		l, ok := b.(*list)
		if !ok || l.tuple != a.tuple || len(l.items) != len(a.items) {
			return false
		}
		for i := range a.items {
			if !in.equal(a.items[i], l.items[i], depth+1) {
				return false
			}
		}
		return true
	case *Dict:
		d, ok := b.(*Dict)
		if !ok || len(d.keys) != len(a.keys) {
			return false
		}
		for _, k := range a.keys {
			v, ok := d.get(k)
			if !ok || !in.equal(a.vals[k], v, depth+1) {
				return false
			}
		}
		return true
	case *namespace:
		n, ok := b.(*namespace)
		return ok && a == n
	case *function:
		f, ok := b.(*function)
		return ok && a == f
	}
	return false
}

// compare is Python's order: below 0, 0, above 0.
func (in *interp) compare(line int, a, b any, depth int) int {
	in.step(line)
	if depth > maxNest {
		tooMuch(line, "values nested more than %d deep are compared", maxNest)
	}
	ai, af, aInt, aNum := number(a)
	bi, bf, bInt, bNum := number(b)
	if aNum && bNum {
		if aInt && bInt {
			switch {
			case ai < bi:
				return -1
			case ai > bi:
				return 1
			}
			return 0
		}
		switch {
		case af < bf:
			return -1
		case af > bf:
			return 1
		}
		return 0
	}
	if s, ok := a.(string); ok {
		if t, ok := b.(string); ok {
			in.work(line, min(len(s), len(t)))
			return strings.Compare(s, t)
		}
	}
	if l, ok := a.(*list); ok {
		if m, ok := b.(*list); ok {
			for i := range min(len(l.items), len(m.items)) {
				if !in.equal(l.items[i], m.items[i], depth+1) {
					return in.compare(line, l.items[i], m.items[i], depth+1)
				}
			}
			return len(l.items) - len(m.items)
		}
	}
	in.mustDefine(line, a)
	in.mustDefine(line, b)
	fail(line, "a %s and a %s have no order", kindOf(a), kindOf(b))
	return 0
}

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
