package jinja

import (
	"strings"
	"time"
)

// globals lists the functions that every template has.
var globals = map[string]func(in *interp, c *call) any{
	"range": globalRange,
	"namespace": func(in *interp, c *call) any {
		return &namespace{globalDict(in, c).(*Dict)}
	},
	"dict": globalDict,
	"raise_exception": func(in *interp, c *call) any {
		panic(&Error{Line: c.line, Message: in.text(c.line, c.need(0, "message", "raise_exception")), Raised: true})
	},
	"strftime_now": func(in *interp, c *call) any {
		return strftime(in.now, c.text(in, 0, "format", "strftime_now", "%Y-%m-%d"))
	},
	"joiner": func(in *interp, c *call) any {
		sep := c.text(in, 0, "sep", "joiner", ", ")
		used := false
		return &function{name: "joiner", call: func(in *interp, c *call) any {
			if used {
				return sep
			}
			used = true
			return ""
		}}
	},
	"cycler": func(in *interp, c *call) any {
		if len(c.args) == 0 {
			fail(c.line, "cycler needs values")
		}
		items, i := c.args, 0
		d := NewDict()
		d.set("current", items[0])
		d.set("next", &function{name: "next", call: func(in *interp, c *call) any {
			v := items[i]
			i = (i + 1) % len(items)
			d.set("current", items[i])
			return v
		}})
		d.set("reset", &function{name: "reset", call: func(in *interp, c *call) any {
			i = 0
			d.set("current", items[0])
			return nil
		}})
		return &namespace{d}
	},
}

func globalDict(in *interp, c *call) any {
	d := NewDict()
	if len(c.args) > 0 {
		switch from := c.args[0].(type) {
		case *Dict:
			for _, k := range from.keys {
				d.set(k, from.vals[k])
			}
		case *list:
			for _, x := range from.items {
				pair, ok := x.(*list)
				if !ok || len(pair.items) != 2 || !hashable(pair.items[0]) {
					fail(c.line, "dict needs pairs")
				}
				d.set(pair.items[0], pair.items[1])
			}
		default:
			in.mustDefine(c.line, from)
			fail(c.line, "dict needs a mapping, not a %s", kindOf(from))
		}
	}
	if c.named != nil {
		for _, k := range c.named.keys {
			d.set(k, c.named.vals[k])
		}
	}
	in.made(c.line, 32*len(d.keys))
	return d
}

func globalRange(in *interp, c *call) any {
	from, to, step := int64(0), int64(0), int64(1)
	switch len(c.args) {
	case 1:
		to = c.int(in, 0, "stop", "range", 0)
	case 2, 3:
		from, to, step = c.int(in, 0, "start", "range", 0), c.int(in, 1, "stop", "range", 0), c.int(in, 2, "step", "range", 1)
	default:
		fail(c.line, "range needs one to three numbers")
	}
	if step == 0 {
		fail(c.line, "the step of range is 0")
	}
	// Jinja's own sandbox stops at 100,000 as well.
	const most = 100000
	var items []any
	for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
		if len(items) >= most {
			tooMuch(c.line, "a range has more than %d numbers", most)
		}
		items = append(items, i)
		if step > 0 && i > to-step || step < 0 && i < to-step {
			break // the next one is past the end, and might wrap around
		}
	}
	return in.newList(c.line, items)
}

// strftime formats a time as Python does, in English.
func strftime(t time.Time, format string) string {
	layouts := map[byte]string{
		'Y': "2006", 'm': "01", 'd': "02", 'H': "15", 'M': "04", 'S': "05", 'B': "January", 'b': "Jan", 'h': "Jan", 'A': "Monday", 'a': "Mon",
		'p': "PM", 'I': "03", 'Z': "MST", 'z': "-0700", 'j': "002", 'y': "06", 'e': "_2", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06",
		'R': "15:04", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'r': "03:04:05 PM", 'f': "000000", 'k': "15", 'l': "3",
	}
	bare := map[byte]string{'d': "2", 'm': "1", 'I': "3", 'M': "4", 'S': "5", 'e': "2", 'y': "06", 'Y': "2006"} // %-d: without a leading zero
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 >= len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		switch c := format[i]; {
		case c == '%':
			b.WriteByte('%')
		case c == 'n':
			b.WriteByte('\n')
		case c == 't':
			b.WriteByte('\t')
		case c == 'f':
			b.WriteString(t.Format(".000000")[1:])
		case c == 'u':
			b.WriteByte('0' + byte((int(t.Weekday())+6)%7+1))
		case c == 'w':
			b.WriteByte('0' + byte(t.Weekday()))
		case c == '-' && i+1 < len(format):
			i++
			switch layout, ok := bare[format[i]]; {
			case ok:
				b.WriteString(t.Format(layout))
			case format[i] == 'H':
				b.WriteString(strings.TrimPrefix(t.Format("15"), "0"))
			default:
				b.WriteString("%-" + format[i:i+1])
			}
		default:
			layout, ok := layouts[c]
			if !ok {
				b.WriteString("%" + format[i:i+1])
				continue
			}
			b.WriteString(t.Format(layout))
		}
	}
	return b.String()
}
