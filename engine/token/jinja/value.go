package jinja

import "sort"

// Values are Go values: nil (None), bool, int64, float64, string, *list,
// *Dict, *namespace, *function, *loopState and undefined.

// undefined is a variable or an attribute that is not there. It prints as
// nothing and is false; anything else done with it is an error that hint explains.
type undefined struct{ hint string }

// list is a list or, with tuple, a tuple, which prints in other brackets.
type list struct {
	items []any
	tuple bool
}

// Dict is a mapping that keeps the order in which keys were set. Keys are
// nil, bool, int64, float64 or string.
type Dict struct {
	keys []any
	vals map[any]any
}

// NewDict makes an empty mapping.
func NewDict() *Dict { return &Dict{vals: map[any]any{}} }

// Set sets a key that is text.
func (d *Dict) Set(key string, v any) { d.set(key, v) }

// Len counts the keys.
func (d *Dict) Len() int { return len(d.keys) }

func (d *Dict) set(key, v any) {
	if _, ok := d.vals[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.vals[key] = v
}

func (d *Dict) get(key any) (any, bool) {
	v, ok := d.vals[key]
	return v, ok
}

func (d *Dict) remove(key any) {
	delete(d.vals, key)
	for i, k := range d.keys {
		if k == key {
			d.keys = append(d.keys[:i:i], d.keys[i+1:]...)
			return
		}
	}
}

// namespace is what namespace() makes: the one thing whose attributes a
// template may set.
type namespace struct{ d *Dict }

// function is anything that can be called.
type function struct {
	name  string
	macro bool
	call  func(in *interp, c *call) any
}

// call is the arguments of a call.
type call struct {
	line  int
	args  []any
	named *Dict // nil for none
}

// fromGo takes a value of a caller over.
func fromGo(v any, depth int) any {
	if depth > maxNest {
		tooMuch(0, "a value is nested more than %d deep", maxNest)
	}
	switch v := v.(type) {
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float32:
		return float64(v)
	case []any:
		l := &list{items: make([]any, len(v))}
		for i, x := range v {
			l.items[i] = fromGo(x, depth+1)
		}
		return l
	case []string:
		l := &list{items: make([]any, len(v))}
		for i, x := range v {
			l.items[i] = x
		}
		return l
	case *Dict:
		d := NewDict()
		for _, k := range v.keys {
			d.set(k, fromGo(v.vals[k], depth+1))
		}
		return d
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		d := NewDict()
		for _, k := range keys {
			d.set(k, fromGo(v[k], depth+1))
		}
		return d
	case nil, bool, int64, float64, string:
		return v
	}
	fail(0, "a variable of Go type %T cannot be passed to a template", v)
	return nil
}

// kindOf names the type of a value as Python does.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case *list:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *Dict:
		return "dict"
	case *namespace:
		return "namespace"
	case *function:
		return "function"
	case *loopState:
		return "loop"
	}
	return "undefined"
}

func truth(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// number sees bools as the numbers they are in Python.
func number(v any) (i int64, f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, 1, true, true
		}
		return 0, 0, true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return 0, 0, false, false
}
