package jinja

import (
	"fmt"
	"strconv"
	"strings"
)

// format is Python's "text" % values, for the conversions that templates use.
func (in *interp) format(line int, f string, values any) string {
	args, isTuple := values.(*list)
	if isTuple && !args.tuple {
		isTuple = false
	}
	named, _ := values.(*Dict)
	used := 0
	next := func() any {
		if isTuple {
			if used >= len(args.items) {
				fail(line, "there are fewer values than conversions in %q", short(f))
			}
			used++
			return args.items[used-1]
		}
		if used++; used > 1 {
			fail(line, "there are fewer values than conversions in %q", short(f))
		}
		return values
	}
	var out output
	for {
		k := strings.IndexByte(f, '%')
		if k < 0 || k+1 >= len(f) {
			out.write(in, line, f)
			return out.b.String()
		}
		out.write(in, line, f[:k])
		f = f[k+1:]
		var v any
		have := false
		if f[0] == '(' {
			end := strings.IndexByte(f, ')')
			if end < 0 || named == nil {
				fail(line, "a named conversion needs a mapping")
			}
			x, ok := named.get(f[1:end])
			if !ok {
				fail(line, "the mapping has no key %q", f[1:end])
			}
			v, have, f = x, true, f[end+1:]
		}
		n := 0
		for n < len(f) && strings.IndexByte("-+ 0#.123456789", f[n]) >= 0 {
			n++
		}
		if n >= len(f) || n > 12 {
			fail(line, "a conversion is cut off")
		}
		flags, verb := f[:n], f[n]
		f = f[n+1:]
		if verb == '%' {
			out.write(in, line, "%")
			continue
		}
		if !have {
			v = next()
		}
		out.write(in, line, in.convert(line, flags, verb, v))
	}
}

// maxWidth bounds the width and precision of a conversion.
const maxWidth = 1000

// convert prints one value by flags and a verb.
func (in *interp) convert(line int, flags string, verb byte, v any) string {
	for _, part := range strings.FieldsFunc(flags, func(r rune) bool { return r < '0' || r > '9' }) {
		if n, err := strconv.Atoi(part); err != nil || n > maxWidth {
			tooMuch(line, "a conversion is wider than %d", maxWidth)
		}
	}
	switch verb {
	case 's', 'r':
		text := ""
		if s, ok := v.(string); ok && verb == 's' {
			text = s
		} else if verb == 's' {
			text = in.text(line, v)
		} else {
			var b strings.Builder
			in.repr(line, &b, v, 0)
			text = b.String()
		}
		return fmt.Sprintf("%"+flags+"s", text)
	case 'd', 'i', 'u', 'x', 'X', 'o', 'c':
		if s, ok := v.(string); ok && verb == 'c' {
			return s
		}
		i, f, isInt, ok := number(v)
		if !ok {
			in.mustDefine(line, v)
			fail(line, "a number is needed for %%%c, not a %s", verb, kindOf(v))
		}
		if !isInt {
			i = int64(f)
		}
		if verb == 'i' || verb == 'u' {
			verb = 'd'
		}
		return fmt.Sprintf("%"+flags+string(verb), i)
	case 'f', 'F', 'e', 'E', 'g', 'G':
		_, f, _, ok := number(v)
		if !ok {
			in.mustDefine(line, v)
			fail(line, "a number is needed for %%%c, not a %s", verb, kindOf(v))
		}
		return fmt.Sprintf("%"+flags+string(verb), f)
	}
	fail(line, "the conversion %%%c is not supported", verb)
	return ""
}

// braces is str.format: {}, {0}, {name} and {:.2f}.
func (in *interp) braces(f string, c *call) string {
	var out output
	auto := 0
	for {
		k := strings.IndexAny(f, "{}")
		if k < 0 {
			out.write(in, c.line, f)
			return out.b.String()
		}
		out.write(in, c.line, f[:k])
		if k+1 < len(f) && f[k] == f[k+1] {
			out.write(in, c.line, f[k:k+1])
			f = f[k+2:]
			continue
		}
		end := strings.IndexByte(f[k:], '}')
		if f[k] == '}' || end < 0 {
			fail(c.line, "a brace in a format has no partner")
		}
		field := f[k+1 : k+end]
		f = f[k+end+1:]
		field, spec, _ := strings.Cut(field, ":")
		var v any
		ok := false
		switch n, err := strconv.Atoi(field); {
		case field == "":
			v, ok = c.arg(auto, "")
			auto++
		case err == nil && n >= 0:
			v, ok = c.arg(n, "")
		case c.named != nil:
			v, ok = c.named.get(field)
		}
		if !ok {
			fail(c.line, "a format has no value for {%s}", short(field))
		}
		if spec == "" {
			out.write(in, c.line, in.text(c.line, v))
			continue
		}
		verb := spec[len(spec)-1]
		if verb >= '0' && verb <= '9' {
			verb = 's'
		} else {
			spec = spec[:len(spec)-1]
		}
		switch {
		case strings.HasPrefix(spec, "<"):
			spec = "-" + spec[1:]
		case strings.HasPrefix(spec, ">"):
			spec = spec[1:]
		}
		for i := range len(spec) {
			if strings.IndexByte("-+ 0#.123456789", spec[i]) < 0 {
				fail(c.line, "the format {:%s} is not supported", short(spec))
			}
		}
		if verb == 's' {
			if _, _, isInt, ok := number(v); ok && isInt {
				verb = 'd'
			}
		}
		out.write(in, c.line, in.convert(c.line, spec, verb, v))
	}
}

func short(s string) string {
	if len(s) > 40 {
		return s[:40] + "..."
	}
	return s
}
