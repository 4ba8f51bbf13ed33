package jinja

// arg returns an argument by position or by name.
func (c *call) arg(i int, name string) (any, bool) {
	if i >= 0 && i < len(c.args) {
		return c.args[i], true
	}
	if c.named != nil && name != "" {
		return c.named.get(name)
	}
	return nil, false
}

// need is arg for an argument that must be given.
func (c *call) need(i int, name, of string) any {
	v, ok := c.arg(i, name)
	if !ok {
		fail(c.line, "%s needs the argument %q", of, name)
	}
	return v
}

// text is an argument that must be text; what when it is not given.
func (c *call) text(in *interp, i int, name, of, what string) string {
	v, ok := c.arg(i, name)
	if !ok {
		return what
	}
	s, ok := v.(string)
	if !ok {
		in.mustDefine(c.line, v)
		fail(c.line, "%s: %s must be text, not a %s", of, name, kindOf(v))
	}
	return s
}

// int is an argument that must be an integer; what when it is not given or none.
func (c *call) int(in *interp, i int, name, of string, what int64) int64 {
	v, ok := c.arg(i, name)
	if !ok || v == nil {
		return what
	}
	n, _, isInt, ok := number(v)
	if !ok || !isInt {
		in.mustDefine(c.line, v)
		fail(c.line, "%s: %s must be an integer, not a %s", of, name, kindOf(v))
	}
	return n
}

// flag is an argument that is true or false.
func (c *call) flag(i int, name string, what bool) bool {
	v, ok := c.arg(i, name)
	if !ok {
		return what
	}
	return truth(v)
}

// str is the value that a filter works on as text.
func (in *interp) str(line int, v any) string {
	s := in.text(line, v)
	in.work(line, len(s))
	return s
}

// items is the value that a filter works on as a sequence.
func (in *interp) items(line int, v any) []any {
	items := in.iterate(line, v)
	in.work(line, 16*len(items))
	return items
}
