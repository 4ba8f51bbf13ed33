package jinja

import "unicode/utf8"

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
