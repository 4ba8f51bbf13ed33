package jinja

import (
	"strings"
	"time"
)

// interp is one rendering: its counters, which bound it.
type interp struct {
	now   time.Time
	steps int
	most  int // steps allowed

	filters map[string]builtin
	bytes   int
	depth   int
}

// step counts one unit of work.
func (in *interp) step(line int) {
	if in.steps++; in.steps > in.most {
		tooMuch(line, "it takes more than %d steps", in.most)
	}
}

// work counts going over n bytes of text.
func (in *interp) work(line, n int) {
	in.steps += n / 64
	in.step(line)
}

// made counts n bytes of a new value.
func (in *interp) made(line, n int) {
	if n > maxValue {
		tooMuch(line, "a value has more than %d bytes", maxValue)
	}
	if in.bytes += n; in.bytes > maxMade {
		tooMuch(line, "it makes more than %d bytes of text", maxMade)
	}
}

// newList counts and makes a list.
func (in *interp) newList(line int, items []any) *list {
	in.made(line, 16*len(items))
	return &list{items: items}
}

// output collects rendered text.
type output struct{ b strings.Builder }

func (o *output) write(in *interp, line int, s string) {
	if o.b.Len()+len(s) > maxValue {
		tooMuch(line, "the text has more than %d bytes", maxValue)
	}
	in.made(line, len(s))
	o.b.WriteString(s)
}

// scope holds the variables of a block; what is set in it ends with it.
type scope struct {
	vars map[string]any
	up   *scope
}

func (s *scope) find(name string) (any, bool) {
	for ; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (s *scope) set(name string, v any) {
	if s.vars == nil {
		s.vars = map[string]any{}
	}
	s.vars[name] = v
}

// jump says how a list of statements ended.
type jump int

const (
	onward jump = iota
	breaks
	continues
)

type statement interface {
	run(in *interp, s *scope, out *output) jump
}

func (in *interp) run(list []statement, s *scope, out *output) jump {
	for _, st := range list {
		in.step(0)
		if j := st.run(in, s, out); j != onward {
			return j
		}
	}
	return onward
}

// capture runs statements and returns their text.
func (in *interp) capture(list []statement, s *scope) string {
	var out output
	in.run(list, s, &out)
	return out.b.String()
}

type (
	textNode string
	outNode  struct {
		line int
		x    expr
	}
	ifNode struct {
		line  int
		arms  []arm
		other []statement
	}
	arm struct {
		cond expr
		body []statement
	}
	forNode struct {
		line        int
		target      target
		over, cond  expr
		recursive   bool
		body, other []statement
	}
	setNode struct {
		line   int
		target target
		x      expr
	}
	setBlockNode struct {
		line   int
		target target
		chain  expr // filters, nil for none
		body   []statement
	}
	macroNode struct {
		line   int
		name   string
		params []parameter
		body   []statement
	}
	parameter struct {
		name  string
		value expr // default, nil for none
	}
	callNode struct {
		line   int
		params []parameter
		x      *callExpr
		body   []statement
	}
	filterNode struct {
		line  int
		chain expr
		body  []statement
	}
	withNode struct {
		line   int
		names  []target
		values []expr
		body   []statement
	}
	blockNode struct{ body []statement }
	doNode    struct {
		line int
		x    expr
	}
	jumpNode bool // true to break
)

// target is what a value is assigned to.
type target struct {
	line int
	name string
	attr string   // of a namespace
	many []target // for several values
}

func (t *target) assign(in *interp, s *scope, v any) {
	in.step(t.line)
	switch {
	case t.many != nil:
		items := in.iterate(t.line, v)
		if len(items) != len(t.many) {
			fail(t.line, "%d values cannot be assigned to %d names", len(items), len(t.many))
		}
		for i := range t.many {
			t.many[i].assign(in, s, items[i])
		}
	case t.attr != "":
		holder, _ := s.find(t.name)
		ns, ok := holder.(*namespace)
		if !ok {
			fail(t.line, "cannot set %s.%s: %s is no namespace", t.name, t.attr, t.name)
		}
		ns.d.set(t.attr, v)
	default:
		s.set(t.name, v)
	}
}

func (n textNode) run(in *interp, s *scope, out *output) jump {
	out.write(in, 0, string(n))
	return onward
}

func (n *outNode) run(in *interp, s *scope, out *output) jump {
	out.write(in, n.line, in.text(n.line, n.x.eval(in, s)))
	return onward
}

func (n *ifNode) run(in *interp, s *scope, out *output) jump {
	for _, a := range n.arms {
		if truth(a.cond.eval(in, s)) {
			return in.run(a.body, s, out)
		}
	}
	return in.run(n.other, s, out)
}

func (n *forNode) run(in *interp, s *scope, out *output) jump {
	n.loop(in, s, out, n.over.eval(in, s), 0)
	return onward
}

func (n *forNode) loop(in *interp, s *scope, out *output, over any, depth int) {
	if depth >= maxCalls {
		tooMuch(n.line, "a loop runs inside itself more than %d times", maxCalls)
	}
	items := in.iterate(n.line, over)
	if n.cond != nil {
		var kept []any
		for _, v := range items {
			inner := &scope{up: s}
			n.target.assign(in, inner, v)
			if truth(n.cond.eval(in, inner)) {
				kept = append(kept, v)
			}
		}
		items = kept
	}
	if len(items) == 0 {
		in.run(n.other, s, out)
		return
	}
	l := &loopState{items: items, depth: depth}
	if n.recursive {
		l.again = func(line int, over any) string {
			var inner output
			n.loop(in, s, &inner, over, depth+1)
			return inner.b.String()
		}
	}
	for i, v := range items {
		in.step(n.line)
		l.i = i
		inner := &scope{vars: map[string]any{"loop": l}, up: s}
		n.target.assign(in, inner, v)
		if in.run(n.body, inner, out) == breaks {
			return
		}
	}
}

func (n *setNode) run(in *interp, s *scope, out *output) jump {
	n.target.assign(in, s, n.x.eval(in, s))
	return onward
}

func (n *setBlockNode) run(in *interp, s *scope, out *output) jump {
	var v any = in.capture(n.body, &scope{up: s})
	if n.chain != nil {
		v = n.chain.eval(in, hold(s, v))
	}
	n.target.assign(in, s, v)
	return onward
}

func (n *macroNode) run(in *interp, s *scope, out *output) jump {
	s.set(n.name, in.macro(n.name, n.params, n.body, s))
	return onward
}

// macro makes a function of statements. The scope is the one it was defined
// in: a macro sees what that holds when it is called.
func (in *interp) macro(name string, params []parameter, body []statement, up *scope) *function {
	return &function{name: name, macro: true, call: func(in *interp, c *call) any {
		if in.depth++; in.depth > maxCalls {
			tooMuch(c.line, "macros call one another more than %d deep", maxCalls)
		}
		defer func() { in.depth-- }()
		s := &scope{vars: make(map[string]any, len(params)+1), up: up}
		used := 0
		for i, p := range params {
			if i < len(c.args) {
				s.vars[p.name] = c.args[i]
				continue
			}
			if c.named != nil {
				if v, ok := c.named.get(p.name); ok {
					s.vars[p.name] = v
					used++
					continue
				}
			}
			s.vars[p.name] = undefined{"parameter '" + p.name + "' was not provided"}
			if p.value != nil {
				s.vars[p.name] = p.value.eval(in, s)
			}
		}
		rest := &list{tuple: true}
		if len(c.args) > len(params) {
			rest.items = c.args[len(params):]
		}
		s.vars["varargs"] = rest
		more := NewDict()
		if c.named != nil {
			for _, k := range c.named.keys {
				key := k.(string)
				if _, taken := s.vars[key]; taken && key != "varargs" {
					continue
				}
				if key == "caller" {
					s.vars[key] = c.named.vals[k]
					continue
				}
				more.set(k, c.named.vals[k])
			}
		}
		s.vars["kwargs"] = more
		return in.capture(body, s)
	}}
}

func (n *callNode) run(in *interp, s *scope, out *output) jump {
	c := n.x.arguments(in, s)
	if c.named == nil {
		c.named = NewDict()
	}
	c.named.set("caller", in.macro("caller", n.params, n.body, s))
	out.write(in, n.line, in.text(n.line, in.invoke(n.line, n.x.f.eval(in, s), c)))
	return onward
}

func (n *filterNode) run(in *interp, s *scope, out *output) jump {
	text := in.capture(n.body, &scope{up: s})
	out.write(in, n.line, in.text(n.line, n.chain.eval(in, hold(s, text))))
	return onward
}

func (n *withNode) run(in *interp, s *scope, out *output) jump {
	inner := &scope{up: s}
	for i := range n.names {
		n.names[i].assign(in, inner, n.values[i].eval(in, s))
	}
	return in.run(n.body, inner, out)
}

func (n *blockNode) run(in *interp, s *scope, out *output) jump { return in.run(n.body, s, out) }

func (n *doNode) run(in *interp, s *scope, out *output) jump {
	n.x.eval(in, s)
	return onward
}

func (n jumpNode) run(in *interp, s *scope, out *output) jump {
	if n {
		return breaks
	}
	return continues
}

// heldName is a variable that no template can name: the text that a filter
// statement or a set block hands to its filters.
const heldName = "|"

func hold(s *scope, v any) *scope {
	return &scope{vars: map[string]any{heldName: v}, up: s}
}
