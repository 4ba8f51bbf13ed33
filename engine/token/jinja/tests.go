package jinja

import "strings"

// builtinTest is a test: v is name(arguments).
type builtinTest func(in *interp, v any, c *call) bool

func kindTest(f func(v any) bool) builtinTest {
	return func(_ *interp, v any, _ *call) bool { return f(v) }
}

func orderTest(op string) builtinTest {
	return func(in *interp, v any, c *call) bool {
		return in.ordered(c.line, op, v, c.need(0, "other", "a comparison"))
	}
}

func equalTest(in *interp, v any, c *call) bool {
	return in.equal(v, c.need(0, "other", "a comparison"), 0)
}

func unequalTest(in *interp, v any, c *call) bool { return !equalTest(in, v, c) }

// remainderTest asks whether v modulo by, or modulo the argument for 0, is want.
func remainderTest(by, want int64) builtinTest {
	return func(in *interp, v any, c *call) bool {
		n := by
		if n == 0 {
			n = c.int(in, 0, "num", "divisibleby", 0)
		}
		return in.equal(in.arithmetic(c.line, "%", v, n), want, 0)
	}
}

// tests lists all tests.
var tests = map[string]builtinTest{
	"defined":   kindTest(func(v any) bool { _, u := v.(undefined); return !u }),
	"undefined": kindTest(func(v any) bool { _, u := v.(undefined); return u }),
	"none":      kindTest(func(v any) bool { return v == nil }),
	"boolean":   kindTest(func(v any) bool { _, ok := v.(bool); return ok }),
	"true":      kindTest(func(v any) bool { b, _ := v.(bool); return b }),
	"false":     kindTest(func(v any) bool { b, ok := v.(bool); return ok && !b }),
	"integer":   kindTest(func(v any) bool { _, ok := v.(int64); return ok }),
	"float":     kindTest(func(v any) bool { _, ok := v.(float64); return ok }),
	"number":    kindTest(func(v any) bool { _, _, _, ok := number(v); return ok }),
	"string":    kindTest(func(v any) bool { _, ok := v.(string); return ok }),
	"mapping":   kindTest(func(v any) bool { _, ok := v.(*Dict); return ok }),
	"iterable": kindTest(func(v any) bool {
		switch v.(type) {
		case string, *list, *Dict, undefined, *loopState:
			return true
		}
		return false
	}),
	"sequence": kindTest(func(v any) bool {
		switch v.(type) {
		case string, *list, *Dict, undefined:
			return true
		}
		return false
	}),
	"callable": kindTest(func(v any) bool { _, ok := v.(*function); return ok }),
	"escaped":  kindTest(func(v any) bool { return false }),
	"eq":       equalTest, "equalto": equalTest, "==": equalTest,
	"ne": unequalTest, "!=": unequalTest,
	"lt": orderTest("<"), "lessthan": orderTest("<"), "<": orderTest("<"),
	"le": orderTest("<="), "<=": orderTest("<="),
	"gt": orderTest(">"), "greaterthan": orderTest(">"), ">": orderTest(">"),
	"ge": orderTest(">="), ">=": orderTest(">="),
	"in":          func(in *interp, v any, c *call) bool { return in.contains(c.line, c.need(0, "seq", "in"), v) },
	"odd":         remainderTest(2, 1),
	"even":        remainderTest(2, 0),
	"divisibleby": remainderTest(0, 0),
	"upper": func(in *interp, v any, c *call) bool {
		s := in.str(c.line, v)
		return s == strings.ToUpper(s) && s != strings.ToLower(s)
	},
	"lower": func(in *interp, v any, c *call) bool {
		s := in.str(c.line, v)
		return s == strings.ToLower(s) && s != strings.ToUpper(s)
	},
	"sameas": func(in *interp, v any, c *call) bool {
		other := c.need(0, "other", "sameas")
		return kindOf(v) == kindOf(other) && in.equal(v, other, 0)
	},
	"filter": func(in *interp, v any, c *call) bool { _, ok := in.filters[in.text(c.line, v)]; return ok },
}
