package jinja

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"sort"
	"strings"
	"unicode/utf8"
)

// toJSON is the tojson of transformers: Python's json.dumps with
// ensure_ascii=False, in which nothing is escaped for HTML.
func toJSON(in *interp, v any, c *call) any {
	j := &jsonWriter{in: in, line: c.line, item: ", ", key: ": "}
	j.ascii = c.flag(-1, "ensure_ascii", false)
	j.sort = c.flag(-1, "sort_keys", false)
	if indent, ok := c.arg(0, "indent"); ok && indent != nil {
		j.item = ","
		j.indented = true
		if s, ok := indent.(string); ok {
			j.indent = s
		} else {
			n := c.int(in, 0, "indent", "tojson", 0)
			if n > 64 {
				fail(c.line, "tojson: an indent of %d is too large", n)
			}
			j.indent = strings.Repeat(" ", int(max(n, 0)))
		}
	}
	if sep, ok := c.arg(-1, "separators"); ok && sep != nil {
		l, ok := sep.(*list)
		if !ok || len(l.items) != 2 {
			fail(c.line, "tojson: separators must be two texts")
		}
		j.item, j.key = in.text(c.line, l.items[0]), in.text(c.line, l.items[1])
	}
	j.value(v, 0)
	in.made(c.line, j.b.Len())
	return j.b.String()
}

type jsonWriter struct {
	in        *interp
	line      int
	b         strings.Builder
	item, key string
	indent    string
	indented  bool
	ascii     bool
	sort      bool
}

func (j *jsonWriter) value(v any, depth int) {
	j.in.step(j.line)
	if depth > maxNest {
		tooMuch(j.line, "a value nested more than %d deep is written as JSON", maxNest)
	}
	if j.b.Len() > maxValue {
		tooMuch(j.line, "a value has more than %d bytes", maxValue)
	}
	switch v := v.(type) {
	case nil:
		j.b.WriteString("null")
	case bool:
		if v {
			j.b.WriteString("true")
		} else {
			j.b.WriteString("false")
		}
	case float64:
		switch {
		case math.IsInf(v, 1):
			j.b.WriteString("Infinity")
		case math.IsInf(v, -1):
			j.b.WriteString("-Infinity")
		case v != v:
			j.b.WriteString("NaN")
		default:
			j.b.WriteString(floatText(v))
		}
	case int64:
		j.b.WriteString(j.in.text(j.line, v))
	case string:
		j.text(v)
	case *list:
		if len(v.items) == 0 {
			j.b.WriteString("[]")
			return
		}
		j.b.WriteByte('[')
		for i, x := range v.items {
			j.gap(i, depth+1)
			j.value(x, depth+1)
		}
		j.line0(depth)
		j.b.WriteByte(']')
	case *Dict:
		if len(v.keys) == 0 {
			j.b.WriteString("{}")
			return
		}
		keys := v.keys
		if j.sort {
			keys = append([]any(nil), keys...)
			sort.SliceStable(keys, func(a, b int) bool { return j.in.compare(j.line, keys[a], keys[b], 0) < 0 })
		}
		j.b.WriteByte('{')
		for i, k := range keys {
			j.gap(i, depth+1)
			switch k := k.(type) {
			case string:
				j.text(k)
			case nil, bool, int64, float64:
				j.b.WriteByte('"')
				j.value(k, depth+1)
				j.b.WriteByte('"')
			}
			j.b.WriteString(j.key)
			j.value(v.vals[k], depth+1)
		}
		j.line0(depth)
		j.b.WriteByte('}')
	case *namespace:
		j.value(v.d, depth+1)
	case undefined:
		fail(j.line, "tojson: %s", v.hint)
	default:
		fail(j.line, "tojson: a %s cannot be written as JSON", kindOf(v))
	}
}

// gap goes before element i.
func (j *jsonWriter) gap(i, depth int) {
	if i > 0 {
		j.b.WriteString(j.item)
	}
	j.line0(depth)
}

// line0 starts a line when lines are indented.
func (j *jsonWriter) line0(depth int) {
	if j.indented {
		j.b.WriteByte('\n')
		for range depth {
			j.b.WriteString(j.indent)
		}
	}
}

func (j *jsonWriter) text(s string) {
	const hex = "0123456789abcdef"
	j.in.work(j.line, len(s))
	unit := func(r rune) {
		j.b.WriteString(`\u`)
		for shift := 12; shift >= 0; shift -= 4 {
			j.b.WriteByte(hex[r>>shift&15])
		}
	}
	j.b.WriteByte('"')
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '"' || r == '\\':
			j.b.WriteByte('\\')
			j.b.WriteByte(byte(r))
		case r == '\n':
			j.b.WriteString(`\n`)
		case r == '\r':
			j.b.WriteString(`\r`)
		case r == '\t':
			j.b.WriteString(`\t`)
		case r == '\b':
			j.b.WriteString(`\b`)
		case r == '\f':
			j.b.WriteString(`\f`)
		case r < 0x20:
			unit(r)
		case j.ascii && r > 0xFFFF:
			unit(0xD800 + (r-0x10000)>>10)
			unit(0xDC00 + (r-0x10000)&0x3FF)
		case j.ascii && r >= 0x7F:
			unit(r)
		default:
			j.b.WriteString(s[i : i+n])
		}
		i += n
	}
	j.b.WriteByte('"')
}

func fromJSON(in *interp, v any, c *call) any {
	s, ok := v.(string)
	if !ok {
		return v
	}
	in.made(c.line, 2*len(s))
	x, err := FromJSON([]byte(s))
	if err != nil {
		fail(c.line, "fromjson: %v", err)
	}
	return fromGo(x, 0)
}

// FromJSON reads JSON for Render: objects become Dicts, which keep the order
// of their keys, and whole numbers stay whole.
func FromJSON(raw []byte) (any, error) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	v, err := readJSON(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is text behind the JSON value")
	}
	return v, nil
}

func readJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxNest {
		return nil, errors.New("the JSON value is nested too deep")
	}
	tok, err := d.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch v := tok.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n, nil
		}
		return v.Float64()
	case json.Delim:
		items := []any{}
		dict := NewDict()
		for d.More() {
			key := ""
			if v == '{' {
				k, err := d.Token()
				if err != nil {
					return nil, err
				}
				key, _ = k.(string)
			}
			x, err := readJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			if v == '{' {
				dict.Set(key, x)
			} else {
				items = append(items, x)
			}
		}
		if _, err := d.Token(); err != nil {
			return nil, err
		}
		if v == '{' {
			return dict, nil
		}
		return items, nil
	}
	return tok, nil
}
