package jinja

import (
	"strings"
	"unicode/utf8"
)

func (x *compareExpr) eval(in *interp, s *scope) any {
	a := x.first.eval(in, s)
	for i, op := range x.ops {
		in.step(x.line)
		b := x.rest[i].eval(in, s)
		var ok bool
		switch op {
		case "==":
			ok = in.equal(a, b, 0)
		case "!=":
			ok = !in.equal(a, b, 0)
		case "in":
			ok = in.contains(x.line, b, a)
		case "not in":
			ok = !in.contains(x.line, b, a)
		default:
			ok = in.ordered(x.line, op, a, b)
		}
		if !ok {
			return false
		}
		a = b
	}
	return true
}

func (in *interp) ordered(line int, op string, a, b any) bool {
	if f, ok := a.(float64); ok && f != f {
		return false
	}
	if f, ok := b.(float64); ok && f != f {
		return false
	}
	c := in.compare(line, a, b, 0)
	switch op {
	case "<":
		return c < 0
	case "<=":
		return c <= 0
	case ">":
		return c > 0
	}
	return c >= 0
}

// contains is v in holder.
func (in *interp) contains(line int, holder, v any) bool {
	switch h := holder.(type) {
	case string:
		s, ok := v.(string)
		if !ok {
			in.mustDefine(line, v)
			fail(line, "a %s cannot be looked for in text", kindOf(v))
		}
		in.work(line, len(h))
		return strings.Contains(h, s)
	case *Dict:
		if !hashable(v) {
			return false
		}
		_, ok := h.get(v)
		return ok
	case *list:
		for _, x := range h.items {
			if in.equal(x, v, 0) {
				return true
			}
		}
		return false
	case undefined:
		return false
	}
	fail(line, "nothing can be in a %s", kindOf(holder))
	return false
}

// iterate lists what a loop over v goes through.
func (in *interp) iterate(line int, v any) []any {
	switch v := v.(type) {
	case *list:
		return v.items
	case *Dict:
		in.made(line, 16*len(v.keys))
		return append([]any(nil), v.keys...)
	case string:
		in.made(line, 32*len(v))
		items := make([]any, 0, len(v))
		for len(v) > 0 {
			_, n := utf8.DecodeRuneInString(v)
			items = append(items, v[:n])
			v = v[n:]
		}
		return items
	case undefined:
		return nil
	}
	fail(line, "a %s cannot be looped over", kindOf(v))
	return nil
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
