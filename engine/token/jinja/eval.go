package jinja

import (
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"
)

type expr interface {
	eval(in *interp, s *scope) any
}

type (
	literal  struct{ v any }
	heldExpr struct{}
	nameExpr struct {
		line int
		name string
	}
	attrExpr struct {
		line int
		x    expr
		name string
	}
	itemExpr struct {
		line   int
		x, key expr
	}
	sliceExpr struct {
		line              int
		x, from, to, step expr
	}
	callExpr struct {
		line                int
		f                   expr
		args                []expr
		names               []string
		named               []expr
		spread, spreadNamed expr
	}
	filterExpr struct {
		line  int
		name  string
		apply builtin
		x     expr
		call  *callExpr
	}
	testExpr struct {
		line   int
		name   string
		apply  builtinTest
		x      expr
		call   *callExpr
		negate bool
	}
	unaryExpr struct {
		line int
		op   string
		x    expr
	}
	binaryExpr struct {
		line int
		op   string
		a, b expr
	}
	compareExpr struct {
		line  int
		first expr
		ops   []string
		rest  []expr
	}
	condExpr struct {
		line          int
		cond, yes, no expr
	}
	listExpr struct {
		line  int
		items []expr
		tuple bool
	}
	dictExpr struct {
		line         int
		keys, values []expr
	}
)

func (x *literal) eval(in *interp, s *scope) any { return x.v }

func (x *heldExpr) eval(in *interp, s *scope) any {
	v, _ := s.find(heldName)
	return v
}

func (x *nameExpr) eval(in *interp, s *scope) any {
	in.step(x.line)
	if v, ok := s.find(x.name); ok {
		return v
	}
	return undefined{"'" + x.name + "' is undefined"}
}

// mustDefine fails for a value that is not there.
func (in *interp) mustDefine(line int, v any) {
	if u, ok := v.(undefined); ok {
		fail(line, "%s", u.hint)
	}
}

// attr is x.name: a method or a loop's value first, then a key, as Jinja has it.
func (in *interp) attr(line int, v any, name string) any {
	in.step(line)
	if m := in.method(v, name); m != nil {
		return m
	}
	switch v := v.(type) {
	case *Dict:
		if x, ok := v.get(name); ok {
			return x
		}
	case *namespace:
		if x, ok := v.d.get(name); ok {
			return x
		}
	case *loopState:
		if x, ok := v.attr(in, name); ok {
			return x
		}
	case undefined:
		fail(line, "%s", v.hint)
	}
	return undefined{"'" + kindOf(v) + " object' has no attribute '" + name + "'"}
}

func (x *attrExpr) eval(in *interp, s *scope) any {
	return in.attr(x.line, x.x.eval(in, s), x.name)
}

// item is x[key]: a key or an index first, then an attribute.
func (in *interp) item(line int, v, key any) any {
	in.step(line)
	if i, _, isInt, ok := number(key); ok && isInt {
		switch v := v.(type) {
		case *list:
			if k := wrap(i, len(v.items)); k >= 0 {
				return v.items[k]
			}
			return undefined{"'" + kindOf(v) + " object' has no element " + in.text(line, key)}
		case string:
			if i >= 0 && isASCII(v) || i < 0 && isASCII(v) {
				if k := wrap(i, len(v)); k >= 0 {
					return v[k : k+1]
				}
			} else {
				in.made(line, 4*len(v))
				r := []rune(v)
				if k := wrap(i, len(r)); k >= 0 {
					return string(r[k])
				}
			}
			return undefined{"'str object' has no element " + in.text(line, key)}
		}
	}
	if d, ok := v.(*Dict); ok {
		if _, bad := key.(*list); bad {
			return undefined{"'dict object' has no such key"}
		}
		if hashable(key) {
			if x, ok := d.get(key); ok {
				return x
			}
		}
	}
	in.mustDefine(line, v)
	if name, ok := key.(string); ok {
		return in.attr(line, v, name)
	}
	return undefined{"'" + kindOf(v) + " object' has no element " + in.text(line, key)}
}

func hashable(key any) bool {
	switch key.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}

// wrap makes an index that may count from the end one from the start, or -1.
func wrap(i int64, n int) int {
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return -1
	}
	return int(i)
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (x *itemExpr) eval(in *interp, s *scope) any {
	return in.item(x.line, x.x.eval(in, s), x.key.eval(in, s))
}

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

// arguments evaluates the arguments of a call.
func (x *callExpr) arguments(in *interp, s *scope) *call {
	c := &call{line: x.line}
	for _, a := range x.args {
		c.args = append(c.args, a.eval(in, s))
	}
	if x.spread != nil {
		c.args = append(c.args, in.iterate(x.line, x.spread.eval(in, s))...)
	}
	if len(x.names) > 0 || x.spreadNamed != nil {
		c.named = NewDict()
		for i, n := range x.names {
			c.named.set(n, x.named[i].eval(in, s))
		}
	}
	if x.spreadNamed != nil {
		d, ok := x.spreadNamed.eval(in, s).(*Dict)
		if !ok {
			fail(x.line, "** needs a mapping")
		}
		for _, k := range d.keys {
			if _, ok := k.(string); !ok {
				fail(x.line, "** needs keys that are text")
			}
			c.named.set(k, d.vals[k])
		}
	}
	return c
}

func (in *interp) invoke(line int, f any, c *call) any {
	in.step(line)
	switch f := f.(type) {
	case *function:
		return f.call(in, c)
	case *loopState:
		if f.again != nil && len(c.args) == 1 {
			return f.again(line, c.args[0])
		}
		fail(line, "a loop that is not recursive cannot be called")
	}
	in.mustDefine(line, f)
	fail(line, "a %s cannot be called", kindOf(f))
	return nil
}

func (x *callExpr) eval(in *interp, s *scope) any {
	f := x.f.eval(in, s)
	return in.invoke(x.line, f, x.arguments(in, s))
}

func (x *filterExpr) eval(in *interp, s *scope) any {
	v := x.x.eval(in, s)
	c := x.call.arguments(in, s)
	in.step(x.line)
	return x.apply(in, v, c)
}

func (x *testExpr) eval(in *interp, s *scope) any {
	v := x.x.eval(in, s)
	c := x.call.arguments(in, s)
	in.step(x.line)
	return x.apply(in, v, c) != x.negate
}

func (x *condExpr) eval(in *interp, s *scope) any {
	if truth(x.cond.eval(in, s)) {
		return x.yes.eval(in, s)
	}
	if x.no == nil {
		return undefined{"the inline if on line " + in.text(x.line, int64(x.line)) + " has no else"}
	}
	return x.no.eval(in, s)
}

func (x *listExpr) eval(in *interp, s *scope) any {
	items := make([]any, len(x.items))
	for i, e := range x.items {
		items[i] = e.eval(in, s)
	}
	l := in.newList(x.line, items)
	l.tuple = x.tuple
	return l
}

func (x *dictExpr) eval(in *interp, s *scope) any {
	d := NewDict()
	for i := range x.keys {
		k := x.keys[i].eval(in, s)
		if !hashable(k) {
			in.mustDefine(x.line, k)
			fail(x.line, "a %s cannot be a key", kindOf(k))
		}
		d.set(k, x.values[i].eval(in, s))
	}
	in.made(x.line, 32*len(x.keys))
	return d
}

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

// attr is loop.name.
func (l *loopState) attr(in *interp, name string) (any, bool) {
	n := int64(len(l.items))
	i := int64(l.i)
	switch name {
	case "index":
		return i + 1, true
	case "index0":
		return i, true
	case "revindex":
		return n - i, true
	case "revindex0":
		return n - i - 1, true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return n, true
	case "depth":
		return int64(l.depth) + 1, true
	case "depth0":
		return int64(l.depth), true
	case "previtem":
		if i == 0 {
			return undefined{"there is no previous item"}, true
		}
		return l.items[i-1], true
	case "nextitem":
		if i == n-1 {
			return undefined{"there is no next item"}, true
		}
		return l.items[i+1], true
	case "cycle":
		return &function{name: "cycle", call: func(in *interp, c *call) any {
			if len(c.args) == 0 {
				fail(c.line, "cycle needs values")
			}
			return c.args[i%int64(len(c.args))]
		}}, true
	case "changed":
		return &function{name: "changed", call: func(in *interp, c *call) any {
			v := &list{items: c.args, tuple: true}
			if l.used && in.equal(l.last, v, 0) {
				return false
			}
			l.last, l.used = v, true
			return true
		}}, true
	}
	return nil, false
}
