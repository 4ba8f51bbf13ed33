package jinja

import (
	"slices"
	"sort"
	"strconv"
	"strings"
)

// builtin is a filter: v|name(arguments).
type builtin func(in *interp, v any, c *call) any

// filters lists all filters. Those that take the name of another look it up
// through interp.filters, as a table cannot refer to itself.
var filters = map[string]builtin{
	"tojson": toJSON, "items": filterItems, "join": filterJoin, "default": filterDefault, "d": filterDefault,
	"trim": filterTrim, "lower": textFilter(strings.ToLower), "upper": textFilter(strings.ToUpper), "title": textFilter(titleWords),
	"capitalize": textFilter(capitalize), "first": filterFirst, "last": filterLast, "length": filterLength, "count": filterLength,
	"reverse": filterReverse, "sort": filterSort, "unique": filterUnique, "list": filterList, "int": filterInt, "float": filterFloat,
	"string": filterString, "safe": filterString, "replace": filterReplace, "round": filterRound, "abs": filterAbs, "map": filterMap,
	"select": filterSelect(true, false), "reject": filterSelect(false, false), "selectattr": filterSelect(true, true), "rejectattr": filterSelect(false, true),
	"indent": filterIndent, "wordcount": filterWordcount, "escape": textFilter(escape), "e": textFilter(escape), "forceescape": textFilter(escape),
	"dictsort": filterDictsort, "max": filterMost(1), "min": filterMost(-1), "sum": filterSum, "batch": filterBatch, "slice": filterSlice,
	"groupby": filterGroupby, "attr": filterAttr, "truncate": filterTruncate, "center": filterCenter, "format": filterFormat,
	"pprint": filterPprint, "striptags": textFilter(striptags), "fromjson": fromJSON, "from_json": fromJSON,
}

func filterItems(in *interp, v any, c *call) any {
	if _, ok := v.(undefined); ok {
		return in.newList(c.line, nil)
	}
	d, ok := v.(*Dict)
	if !ok {
		fail(c.line, "items needs a mapping, not a %s", kindOf(v))
	}
	return in.pairs(c.line, d)
}

func (in *interp) pairs(line int, d *Dict) *list {
	items := make([]any, len(d.keys))
	for i, k := range d.keys {
		items[i] = &list{items: []any{k, d.vals[k]}, tuple: true}
	}
	in.made(line, 64*len(items))
	return in.newList(line, items)
}

func filterJoin(in *interp, v any, c *call) any {
	sep := c.text(in, 0, "d", "join", "")
	attr, hasAttr := c.arg(1, "attribute")
	var out output
	for i, x := range in.items(c.line, v) {
		if i > 0 {
			out.write(in, c.line, sep)
		}
		if hasAttr {
			x = in.path(c.line, x, attr)
		}
		out.write(in, c.line, in.text(c.line, x))
	}
	return out.b.String()
}

// path is an attribute with dots, a.b.0, as filters take it.
func (in *interp) path(line int, v, attr any) any {
	s, ok := attr.(string)
	if !ok {
		return in.item(line, v, attr)
	}
	for part := range strings.SplitSeq(s, ".") {
		var key any = part
		if n, err := strconv.ParseInt(part, 10, 64); err == nil {
			key = n
		}
		v = in.item(line, v, key)
	}
	return v
}

func filterDefault(in *interp, v any, c *call) any {
	_, missing := v.(undefined)
	if missing || c.flag(1, "boolean", false) && !truth(v) {
		if d, ok := c.arg(0, "default_value"); ok {
			return d
		}
		return ""
	}
	return v
}

func filterFirst(in *interp, v any, c *call) any {
	switch x := v.(type) {
	case string:
		return in.item(c.line, x, int64(0))
	}
	if items := in.iterate(c.line, v); len(items) > 0 {
		return items[0]
	}
	return undefined{"no first item, the sequence is empty"}
}

func filterLast(in *interp, v any, c *call) any {
	switch x := v.(type) {
	case string:
		return in.item(c.line, x, int64(-1))
	}
	if items := in.iterate(c.line, v); len(items) > 0 {
		return items[len(items)-1]
	}
	return undefined{"no last item, the sequence is empty"}
}

func filterLength(in *interp, v any, c *call) any {
	switch x := v.(type) {
	case string:
		in.work(c.line, len(x))
		return int64(chars(x))
	case *list:
		return int64(len(x.items))
	case *Dict:
		return int64(len(x.keys))
	case undefined:
		return int64(0)
	}
	fail(c.line, "a %s has no length", kindOf(v))
	return nil
}

func filterReverse(in *interp, v any, c *call) any {
	if s, ok := v.(string); ok {
		in.made(c.line, 4*len(s))
		r := []rune(s)
		slices.Reverse(r)
		return string(r)
	}
	items := slices.Clone(in.items(c.line, v))
	slices.Reverse(items)
	return in.newList(c.line, items)
}

// folded is a value to sort by: text without regard to case unless wanted.
func (in *interp) folded(line int, v any, exact bool) any {
	if s, ok := v.(string); ok && !exact {
		in.made(line, len(s))
		return strings.ToLower(s)
	}
	return v
}

// sorted sorts items by a key, stably.
func (in *interp) sorted(line int, items []any, key func(any) any, reverse bool) []any {
	type row struct{ key, item any }
	rows := make([]row, len(items))
	for i, x := range items {
		rows[i] = row{key(x), x}
	}
	in.made(line, 32*len(rows))
	sort.SliceStable(rows, func(i, j int) bool {
		if reverse {
			return in.compare(line, rows[i].key, rows[j].key, 0) > 0
		}
		return in.compare(line, rows[i].key, rows[j].key, 0) < 0
	})
	out := make([]any, len(rows))
	for i, r := range rows {
		out[i] = r.item
	}
	return out
}

func filterSort(in *interp, v any, c *call) any {
	exact := c.flag(1, "case_sensitive", false)
	attr, has := c.arg(2, "attribute")
	key := func(x any) any {
		if has && attr != nil {
			x = in.path(c.line, x, attr)
		}
		return in.folded(c.line, x, exact)
	}
	return in.newList(c.line, in.sorted(c.line, in.items(c.line, v), key, c.flag(0, "reverse", false)))
}

func filterUnique(in *interp, v any, c *call) any {
	exact := c.flag(0, "case_sensitive", false)
	attr, has := c.arg(1, "attribute")
	seen := map[any]bool{}
	var odd []any // values that cannot be keys
	var out []any
	for _, x := range in.items(c.line, v) {
		k := x
		if has && attr != nil {
			k = in.path(c.line, x, attr)
		}
		k = in.folded(c.line, k, exact)
		if hashable(k) {
			if seen[k] {
				continue
			}
			seen[k] = true
		} else {
			if slices.ContainsFunc(odd, func(o any) bool { return in.equal(o, k, 0) }) {
				continue
			}
			odd = append(odd, k)
		}
		out = append(out, x)
	}
	return in.newList(c.line, out)
}

func filterList(in *interp, v any, c *call) any {
	return in.newList(c.line, slices.Clone(in.items(c.line, v)))
}

// without drops the first n arguments of a call.
func (c *call) without(n int) *call {
	return &call{line: c.line, args: c.args[min(n, len(c.args)):], named: c.named}
}

func filterMap(in *interp, v any, c *call) any {
	if !truth(v) {
		return in.newList(c.line, nil) // anything empty, even None
	}
	items := in.items(c.line, v)
	out := make([]any, len(items))
	if attr, ok := c.arg(-1, "attribute"); ok {
		what, has := c.arg(-1, "default")
		for i, x := range items {
			out[i] = in.path(c.line, x, attr)
			if _, missing := out[i].(undefined); missing && has {
				out[i] = what
			}
		}
		return in.newList(c.line, out)
	}
	name := c.text(in, 0, "filter", "map", "")
	f, ok := in.filters[name]
	if !ok {
		fail(c.line, "unknown filter %q", name)
	}
	for i, x := range items {
		in.step(c.line)
		out[i] = f(in, x, c.without(1))
	}
	return in.newList(c.line, out)
}

// filterSelect makes select, reject, selectattr and rejectattr.
func filterSelect(keep, attr bool) builtin {
	return func(in *interp, v any, c *call) any {
		var name any
		rest := c
		if attr {
			name = c.need(0, "attribute", "selectattr")
			rest = c.without(1)
		}
		test := builtinTest(func(_ *interp, v any, _ *call) bool { return truth(v) })
		if len(rest.args) > 0 {
			n := rest.text(in, 0, "test", "select", "")
			var ok bool
			if test, ok = tests[n]; !ok {
				fail(c.line, "unknown test %q", n)
			}
			rest = rest.without(1)
		}
		var out []any
		if !truth(v) {
			return in.newList(c.line, nil)
		}
		for _, x := range in.items(c.line, v) {
			in.step(c.line)
			y := x
			if attr {
				y = in.path(c.line, x, name)
			}
			if test(in, y, rest) == keep {
				out = append(out, x)
			}
		}
		return in.newList(c.line, out)
	}
}
