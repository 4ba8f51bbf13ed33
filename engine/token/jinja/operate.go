package jinja

import (
	"math"
	"math/bits"
	"strings"
)

func (x *unaryExpr) eval(in *interp, s *scope) any {
	v := x.x.eval(in, s)
	in.step(x.line)
	if x.op == "not" {
		return !truth(v)
	}
	i, f, isInt, ok := number(v)
	if !ok {
		in.mustDefine(x.line, v)
		fail(x.line, "a %s has no sign", kindOf(v))
	}
	switch {
	case x.op == "+" && isInt:
		return i
	case x.op == "+":
		return f
	case isInt:
		if i == math.MinInt64 {
			fail(x.line, "a number is too large")
		}
		return -i
	}
	return -f
}

func (x *binaryExpr) eval(in *interp, s *scope) any {
	a := x.a.eval(in, s)
	in.step(x.line)
	switch x.op {
	case "and":
		if !truth(a) {
			return a
		}
		return x.b.eval(in, s)
	case "or":
		if truth(a) {
			return a
		}
		return x.b.eval(in, s)
	}
	b := x.b.eval(in, s)
	switch x.op {
	case "~":
		l, r := in.text(x.line, a), in.text(x.line, b)
		in.made(x.line, len(l)+len(r))
		return l + r
	case "+":
		if l, ok := a.(string); ok {
			if r, ok := b.(string); ok {
				in.made(x.line, len(l)+len(r))
				return l + r
			}
		}
		if l, ok := a.(*list); ok {
			if r, ok := b.(*list); ok && l.tuple == r.tuple {
				items := append(append(make([]any, 0, len(l.items)+len(r.items)), l.items...), r.items...)
				sum := in.newList(x.line, items)
				sum.tuple = l.tuple
				return sum
			}
		}
	case "*":
		if n, _, isInt, ok := number(b); ok && isInt {
			if v := in.repeat(x.line, a, n); v != nil {
				return v
			}
		}
		if n, _, isInt, ok := number(a); ok && isInt {
			if v := in.repeat(x.line, b, n); v != nil {
				return v
			}
		}
	case "%":
		if f, ok := a.(string); ok {
			return in.format(x.line, f, b)
		}
	}
	return in.arithmetic(x.line, x.op, a, b)
}

// repeat is text or a list times a number; nil for other things.
func (in *interp) repeat(line int, v any, n int64) any {
	n = max(n, 0)
	switch v := v.(type) {
	case string:
		hi, size := bits.Mul64(uint64(len(v)), uint64(n))
		if hi != 0 || size > maxValue {
			tooMuch(line, "a value has more than %d bytes", maxValue)
		}
		in.made(line, int(size))
		return strings.Repeat(v, int(n))
	case *list:
		hi, size := bits.Mul64(uint64(len(v.items)), uint64(n))
		if hi != 0 || size > maxValue/16 {
			tooMuch(line, "a list has more than %d elements", maxValue/16)
		}
		items := make([]any, 0, int(size))
		for len(v.items) > 0 && uint64(len(items)) < size {
			items = append(items, v.items...)
		}
		l := in.newList(line, items)
		l.tuple = v.tuple
		return l
	}
	return nil
}

func (in *interp) arithmetic(line int, op string, a, b any) any {
	ai, af, aInt, aNum := number(a)
	bi, bf, bInt, bNum := number(b)
	if !aNum || !bNum {
		in.mustDefine(line, a)
		in.mustDefine(line, b)
		fail(line, "%s cannot be applied to a %s and a %s", op, kindOf(a), kindOf(b))
	}
	if (op == "/" || op == "//" || op == "%") && bf == 0 {
		fail(line, "division by zero")
	}
	if aInt && bInt && op != "/" {
		tooLarge := func(bad bool) {
			if bad {
				fail(line, "a number is too large")
			}
		}
		switch op {
		case "+":
			tooLarge(bi > 0 && ai > math.MaxInt64-bi || bi < 0 && ai < math.MinInt64-bi)
			return ai + bi
		case "-":
			tooLarge(bi < 0 && ai > math.MaxInt64+bi || bi > 0 && ai < math.MinInt64+bi)
			return ai - bi
		case "*":
			p := ai * bi
			tooLarge(ai != 0 && (p/ai != bi || ai == -1 && bi == math.MinInt64))
			return p
		case "//", "%":
			tooLarge(ai == math.MinInt64 && bi == -1)
			q, r := ai/bi, ai%bi
			if r != 0 && (r < 0) != (bi < 0) { // Python rounds down
				q--
				r += bi
			}
			if op == "%" {
				return r
			}
			return q
		case "**":
			if bi >= 0 {
				p := int64(1)
				for range min(bi, 64) {
					hi, lo := bits.Mul64(absolute(p), absolute(ai))
					tooLarge(hi != 0 || lo > math.MaxInt64)
					p *= ai
				}
				if bi > 64 {
					tooLarge(ai > 1 || ai < -1)
					if ai == -1 && bi%2 == 1 {
						p = -1
					}
				}
				return p
			}
		}
	}
	switch op {
	case "+":
		return af + bf
	case "-":
		return af - bf
	case "*":
		return af * bf
	case "/":
		return af / bf
	case "//":
		return math.Floor(af / bf)
	case "%":
		r := math.Mod(af, bf)
		if r != 0 && (r < 0) != (bf < 0) {
			r += bf
		}
		return r
	}
	return math.Pow(af, bf)
}

func absolute(i int64) uint64 {
	if i < 0 {
		return uint64(-i)
	}
	return uint64(i)
}
