package jinja

import (
	"math"
	"strconv"
	"strings"
)

func filterInt(in *interp, v any, c *call) any {
	what, ok := c.arg(0, "default")
	if !ok {
		what = int64(0)
	}
	switch x := v.(type) {
	case string:
		s := strings.ReplaceAll(strings.Trim(x, whites), "_", "")
		if n, err := strconv.ParseInt(s, int(c.int(in, 1, "base", "int", 10)), 64); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<62 {
			return int64(f)
		}
		return what
	}
	n, f, isInt, ok := number(v)
	switch {
	case !ok || !isInt && !(math.Abs(f) < 1<<62):
		return what
	case isInt:
		return n
	}
	return int64(f)
}

func filterFloat(in *interp, v any, c *call) any {
	what, ok := c.arg(0, "default")
	if !ok {
		what = 0.0
	}
	if s, ok := v.(string); ok {
		if f, err := strconv.ParseFloat(strings.Trim(s, whites), 64); err == nil {
			return f
		}
		return what
	}
	if _, f, _, ok := number(v); ok {
		return f
	}
	return what
}

func filterRound(in *interp, v any, c *call) any {
	i, f, isInt, ok := number(v)
	if !ok {
		in.mustDefine(c.line, v)
		fail(c.line, "a %s cannot be rounded", kindOf(v))
	}
	digits := c.int(in, 0, "precision", "round", 0)
	p := math.Pow(10, float64(digits))
	switch c.text(in, 1, "method", "round", "common") {
	case "ceil":
		return math.Ceil(f*p) / p
	case "floor":
		return math.Floor(f*p) / p
	}
	if isInt {
		return i
	}
	if digits >= 0 && digits < 300 {
		// Python rounds the exact value, halves to even.
		if r, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(digits), 64), 64); err == nil {
			return r
		}
	}
	return math.RoundToEven(f*p) / p
}

func filterAbs(in *interp, v any, c *call) any {
	i, f, isInt, ok := number(v)
	switch {
	case !ok:
		in.mustDefine(c.line, v)
		fail(c.line, "a %s has no absolute value", kindOf(v))
	case isInt && i == math.MinInt64:
		fail(c.line, "a number is too large")
	case isInt:
		return max(i, -i)
	}
	return math.Abs(f)
}
