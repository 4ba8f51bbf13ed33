package jinja

import (
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestLimits runs templates that would run for ever, or take all memory, or
// end the process by nesting too deep. All must end soon in an error.
func TestLimits(t *testing.T) {
	deep := func(open, inner, end string, n int) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	for _, c := range []struct{ name, src string }{
		{"macro that calls itself", "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"},
		{"macros that call each other", "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}"},
		{"macro that doubles", "{% macro f(n) %}{{ f(n + 1) }}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}"},
		{"macro tree", "{% macro f(n) %}{% if n > 0 %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}"},
		{"loop that calls itself", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"},
		{"caller that calls itself", "{% macro m() %}{{ caller() }}{% endmacro %}{% macro n() %}{% call m() %}{{ n() }}{% endcall %}{% endmacro %}{{ n() }}"},
		{"nested loops", "{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% endfor %}{% endfor %}{% endfor %}"},
		{"large range", "{{ range(10**12) | length }}"},
		{"range to the largest number", "{{ range(0, 9223372036854775807, 4611686018427387904) | list }}{{ range(9223372036854775807) }}"},
		{"text times a number", "{{ ('a' * 100000000000) | length }}"},
		{"list times a number", "{{ [1] * 100000000000 }}"},
		{"doubling text", "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"},
		{"doubling by join", "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set ns.s = [ns.s, ns.s] | join %}{% endfor %}"},
		{"doubling by replace", "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(60) %}{% set ns.s = ns.s | replace('a', 'aaaa') %}{% endfor %}"},
		{"doubling lists", "{% set ns = namespace(s=[1]) %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"},
		{"list in itself, printed", "{% set l = [] %}{{ l.append(l) }}{{ l }}"},
		{"list in itself, as JSON", "{% set l = [] %}{{ l.append(l) }}{{ l | tojson }}"},
		{"list in itself, compared", "{% set l = [] %}{{ l.append(l) }}{% set m = [] %}{{ m.append(m) }}{{ l == m }}"},
		{"list of lists that double, printed", "{% set ns = namespace(s=[1]) %}{% for i in range(100) %}{% set ns.s = [ns.s, ns.s] %}{% endfor %}{{ ns.s }}"},
		{"list of lists that double, compared", "{% set a = namespace(s=[1]) %}{% set b = namespace(s=[1]) %}{% for i in range(100) %}{% set a.s = [a.s, a.s] %}{% set b.s = [b.s, b.s] %}{% endfor %}{{ a.s == b.s }}"},
		{"much text", "{% for i in range(100000) %}{% for j in range(100) %}" + strings.Repeat("x", 1000) + "{% endfor %}{% endfor %}"},
		{"search in large text", "{% set s = 'ab' * 30000000 %}{% for i in range(100000) %}{{ 'b' * 1000 in s }}{% endfor %}"},
		{"wide conversion", "{{ '%999999999d' % 1 }}"},
		{"wide precision", "{{ '%.999999999f' % 1 }}"},
		{"wide format", "{{ '{:999999999d}'.format(1) }}"},
		{"wide center", "{{ 'a' | center(100000000000) }}"},
		{"wide zfill", "{{ '1'.zfill(100000000000) }}"},
		{"wide indent", "{{ 'a\nb' | indent(100000000000) }}"},
		{"wide JSON", "{{ [1] | tojson(indent=100000000000) }}"},
		{"huge batch", "{{ [1] | batch(60000000, 0) | list }}"},
		{"huge slice", "{{ [1] | slice(100000000000) | list }}"},
		{"huge power", "{{ 10 ** 1000 }}"},
		{"product too large", "{{ 9223372036854775807 * 2 }}"},
		{"sum too large", "{{ 9223372036854775807 + 1 }}"},
		{"number too large", "{{ 99999999999999999999 }}"},
		{"brackets", "{{ " + deep("(", "1", ")", 100000) + " }}"},
		{"lists", "{{ " + deep("[", "", "]", 100000) + " }}"},
		{"not", "{{ " + strings.Repeat("not ", 100000) + "1 }}"},
		{"minus", "{{ " + strings.Repeat("- ", 100000) + "1 }}"},
		{"ifs", deep("{% if 1 %}", "", "{% endif %}", 50000)},
		{"if else", "{{ " + strings.Repeat("1 if 0 else ", 50000) + "1 }}"},
		{"long sum", "{{ 1" + strings.Repeat("+1", 200000) + " }}"},
		{"long chain of attributes", "{{ a" + strings.Repeat(".a", 200000) + " }}"},
		{"long chain of filters", "{{ 'a'" + strings.Repeat("|e", 200000) + " }}"},
		{"long chain of tests", "{{ 1" + strings.Repeat(" is defined", 50000) + " }}"},
		{"long chain of calls", "{{ range" + strings.Repeat("()", 200000) + " }}"},
		{"targets", "{% set " + deep("(", "a", ")", 100000) + " = 1 %}"},
		{"large source", strings.Repeat("x", 2<<20)},
		{"never closed, gpt4all#3446", "{#"},
		{"never closed, gpt4all#3394", "{{ a[\"x("},
		{"never closed 2", "{{ f(a, b"},
		{"never closed 3", "{% for x in [1, 2"},
		{"never closed 4", "{% macro f(a, "},
		{"never closed 5", "{{ {'a': "},
		{"never closed 6", "{{ 'a' | replace("},
		{"only a brace", "{%"},
		{"raw without end", "{% raw %}{{ x }}"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			tpl, err := Parse(c.src)
			text := ""
			if err == nil {
				text, err = tpl.render(nil, &interp{most: 2 << 20}) // fewer steps, for time
			}
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Fatalf("no error, %d bytes of text", len(text))
			}
			if len(err.Error()) > 300 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			if strings.Contains(err.Error(), "runtime error") || strings.Contains(err.Error(), "cannot be run") {
				t.Errorf("a fault of our own: %v", err)
			}
			if took > 10*time.Second {
				t.Errorf("took %v", took)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 2<<30 {
				t.Errorf("made %d MiB", used>>20)
			}
			t.Logf("%v after %v, %d MiB", err, took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20)
		})
	}
}

func TestLimitIsNamed(t *testing.T) {
	tpl, err := Parse("line\n{% macro f() %}{{ f() }}{% endmacro %}\n{{ f() }}")
	if err != nil {
		t.Fatal(err)
	}
	_, err = tpl.Render(nil, time.Time{})
	var e *Error
	if !errors.Is(err, ErrLimit) || !errors.As(err, &e) || e.Line != 2 {
		t.Errorf("got %v", err)
	}
}

// TestIndependent renders one template in parallel, and makes sure that what
// one rendering changes is not seen by the next.
func TestIndependent(t *testing.T) {
	tpl, err := Parse("{{ l.append(1) }}{{ l | length }}{% set x = [] %}{{ x.append(2) }}{{ x }}")
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]any{"l": []any{"a"}}
	done := make(chan string)
	for range 8 {
		go func() {
			s, err := tpl.Render(vars, time.Time{})
			if err != nil {
				s = err.Error()
			}
			done <- s
		}()
	}
	for range 8 {
		if s := <-done; s != "None2None[2]" {
			t.Errorf("got %q", s)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	for _, s := range []string{
		"{{ x }}{% if a and not b %}{{ a.b[0] | upper }}{% else %}{% endif %}", "{%- for i, j in x.items() if j -%}{{ loop.index ~ i }}{% endfor %}",
		"{% macro f(a, b=1) %}{{ a }}{% endmacro %}{{ f(1, b=[2, {'k': (3,)}]) }}", "{% set ns = namespace(a=1) %}{% set ns.a = 2 %}{{ ns.a ** 2 // 3 % 4 }}",
		"{# c #}{% raw %}{{{% endraw %}", "{{ '%s' % x }}{{ 'a{}'.format(1) }}{{ 'x'.split('y')[1:][::-1] }}", "{{ a is divisibleby 3 }}{{ [1,2]|map('string')|join(',') }}",
		"{% call(x) f() %}{% endcall %}{% filter trim %} {% endfilter %}{% with a = 1 %}{{ a }}{% endwith %}", "{{ messages | selectattr('role', 'eq', 'user') | list | tojson(indent=2) }}",
	} {
		f.Add(s)
	}
	vars := map[string]any{"x": map[string]any{"k": []any{1, 2.5, nil, true}}, "a": "text é", "messages": []any{map[string]any{"role": "user", "content": "hi"}}}
	f.Fuzz(func(t *testing.T, src string) {
		start := time.Now()
		tpl, err := Parse(src)
		if err == nil {
			_, err = tpl.render(vars, &interp{most: 2 << 20})
		}
		if err != nil && strings.Contains(err.Error(), "cannot be run") {
			t.Error(err)
		}
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("took %v", took)
		}
	})
}
