package jinja

import "slices"

func filterDictsort(in *interp, v any, c *call) any {
	d, ok := v.(*Dict)
	if !ok {
		in.mustDefine(c.line, v)
		fail(c.line, "dictsort needs a mapping, not a %s", kindOf(v))
	}
	exact := c.flag(0, "case_sensitive", false)
	at := 0
	if by := c.text(in, 1, "by", "dictsort", "key"); by == "value" {
		at = 1
	} else if by != "key" {
		fail(c.line, "dictsort sorts by key or value, not by %q", by)
	}
	key := func(x any) any { return in.folded(c.line, x.(*list).items[at], exact) }
	return in.newList(c.line, in.sorted(c.line, in.pairs(c.line, d).items, key, c.flag(2, "reverse", false)))
}

// filterMost makes max and min.
func filterMost(sign int) builtin {
	return func(in *interp, v any, c *call) any {
		exact := c.flag(0, "case_sensitive", false)
		attr, has := c.arg(1, "attribute")
		key := func(x any) any {
			if has && attr != nil {
				x = in.path(c.line, x, attr)
			}
			return in.folded(c.line, x, exact)
		}
		items := in.items(c.line, v)
		if len(items) == 0 {
			return undefined{"no item, the sequence is empty"}
		}
		best := items[0]
		for _, x := range items[1:] {
			if in.compare(c.line, key(x), key(best), 0)*sign > 0 {
				best = x
			}
		}
		return best
	}
}

func filterSum(in *interp, v any, c *call) any {
	attr, has := c.arg(0, "attribute")
	var sum any = int64(0)
	if s, ok := c.arg(1, "start"); ok {
		sum = s
	}
	for _, x := range in.items(c.line, v) {
		if has && attr != nil {
			x = in.path(c.line, x, attr)
		}
		sum = in.arithmetic(c.line, "+", sum, x)
	}
	return sum
}

func filterBatch(in *interp, v any, c *call) any {
	n := c.int(in, 0, "linecount", "batch", 0)
	if n < 1 || n > maxValue {
		fail(c.line, "batch needs a size above 0")
	}
	fill, has := c.arg(1, "fill_with")
	var out []any
	for part := range slices.Chunk(in.items(c.line, v), int(n)) {
		part = slices.Clone(part)
		in.made(c.line, 16*int(n))
		for has && fill != nil && len(part) < int(n) {
			part = append(part, fill)
		}
		out = append(out, in.newList(c.line, part))
	}
	return in.newList(c.line, out)
}

func filterSlice(in *interp, v any, c *call) any {
	n := c.int(in, 0, "slices", "slice", 0)
	if n < 1 || n > maxSteps {
		fail(c.line, "slice needs a number above 0")
	}
	fill, has := c.arg(1, "fill_with")
	items := in.items(c.line, v)
	each, extra := len(items)/int(n), len(items)%int(n)
	var out []any
	for i := range int(n) {
		in.step(c.line)
		k := each
		if i < extra {
			k++
		}
		part := slices.Clone(items[:k])
		items = items[k:]
		if has && fill != nil && extra > 0 && i >= extra {
			part = append(part, fill)
		}
		out = append(out, in.newList(c.line, part))
	}
	return in.newList(c.line, out)
}

func filterGroupby(in *interp, v any, c *call) any {
	attr := c.need(0, "attribute", "groupby")
	what, has := c.arg(1, "default")
	exact := c.flag(2, "case_sensitive", false)
	raw := func(x any) any {
		k := in.path(c.line, x, attr)
		if _, missing := k.(undefined); missing && has {
			return what
		}
		return k
	}
	key := func(x any) any { return in.folded(c.line, raw(x), exact) }
	var out []any
	var last any
	var group *list
	for _, x := range in.sorted(c.line, in.items(c.line, v), key, false) {
		if k := key(x); group == nil || !in.equal(k, last, 0) {
			last = k
			group = &list{}
			out = append(out, &list{items: []any{raw(x), group}, tuple: true})
		}
		group.items = append(group.items, x)
		in.made(c.line, 16)
	}
	return in.newList(c.line, out)
}

func filterAttr(in *interp, v any, c *call) any {
	return in.attr(c.line, v, c.text(in, 0, "name", "attr", ""))
}
