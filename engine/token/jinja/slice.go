package jinja

import (
	"math"
	"strings"
)

func (x *sliceExpr) eval(in *interp, s *scope) any {
	v := x.x.eval(in, s)
	bound := func(e expr) (int64, bool) {
		if e == nil {
			return 0, false
		}
		b := e.eval(in, s)
		if b == nil {
			return 0, false
		}
		i, _, isInt, ok := number(b)
		if !ok || !isInt {
			in.mustDefine(x.line, b)
			fail(x.line, "a slice needs integers, not %s", kindOf(b))
		}
		return i, true
	}
	from, hasFrom := bound(x.from)
	to, hasTo := bound(x.to)
	step, hasStep := bound(x.step)
	if !hasStep {
		step = 1
	}
	if step == 0 {
		fail(x.line, "the step of a slice is 0")
	}
	span := func(n int64) (lo, hi int64) {
		clip := func(i, least, most int64) int64 {
			if i < 0 {
				i += n
			}
			return max(least, min(i, most))
		}
		if step > 0 {
			lo, hi = 0, n
			if hasFrom {
				lo = clip(from, 0, n)
			}
			if hasTo {
				hi = clip(to, 0, n)
			}
			return lo, hi
		}
		lo, hi = n-1, -1
		if hasFrom {
			lo = clip(from, -1, n-1)
		}
		if hasTo {
			hi = clip(to, -1, n-1)
		}
		return lo, hi
	}
	each := func(n int, yield func(i int)) {
		lo, hi := span(int64(n))
		for i := lo; step > 0 && i < hi || step < 0 && i > hi; {
			in.step(x.line)
			yield(int(i))
			if step > 0 && i > math.MaxInt64-step || step < 0 && i < math.MinInt64-step {
				return
			}
			i += step
		}
	}
	switch v := v.(type) {
	case *list:
		var items []any
		each(len(v.items), func(i int) { items = append(items, v.items[i]) })
		l := in.newList(x.line, items)
		l.tuple = v.tuple
		return l
	case string:
		if step == 1 && isASCII(v) {
			lo, hi := span(int64(len(v)))
			if lo >= hi {
				return ""
			}
			return v[lo:hi]
		}
		in.made(x.line, 4*len(v))
		r := []rune(v)
		var b strings.Builder
		each(len(r), func(i int) { b.WriteRune(r[i]) })
		return b.String()
	}
	in.mustDefine(x.line, v)
	fail(x.line, "a %s cannot be sliced", kindOf(v))
	return nil
}
