package jinja

// loopState is the variable loop.
type loopState struct {
	items []any
	i     int
	depth int
	last  any // of changed()
	used  bool
	again func(line int, over any) string // recursive loops
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
