// Package jinja renders chat templates: the part of the Jinja template
// language (jinja.palletsprojects.com) that they use, with the settings under
// which Hugging Face's transformers runs them (trim_blocks, lstrip_blocks,
// loop controls, a generation tag, tojson that escapes nothing).
//
// A template comes out of a downloaded file, so it is a program by a stranger.
// Source, nesting, steps, recursion and memory are bounded, and whatever it
// does ends in text or in an error with a line number, within a few seconds.
// That is why this is no library: those at hand end the process on a macro
// that calls itself or on 'a' * 10**11, and no caller can catch that.
package jinja

import (
	"errors"
	"fmt"
	"time"
)

// Limits of a template. They are far above what a real one needs: the largest
// known has 25 kB. Most render a conversation of 2000 messages in 10^5 steps,
// two known ones look at all messages for each message and take 10^7.
const (
	maxSource = 1 << 20   // bytes of source
	maxNest   = 120       // statements and brackets inside one another
	maxCalls  = 100       // macros inside one another
	maxSteps  = 32 << 20  // nodes evaluated
	maxValue  = 64 << 20  // bytes of one string, or of the text rendered
	maxMade   = 512 << 20 // bytes of all strings and lists made while rendering
)

// ErrLimit is wrapped by errors about a template that goes past a limit.
var ErrLimit = errors.New("the template does too much")

// Template is a parsed template. It may be rendered by several goroutines at once.
type Template struct {
	body []statement
}

// Error is a fault of a template.
type Error struct {
	Line    int    // 0 when unknown
	Message string // without the line
	Raised  bool   // the template itself refused, by raise_exception
	err     error
}

// Error puts the line in front.
func (e *Error) Error() string {
	if e.Raised || e.Line == 0 {
		return e.Message
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Message)
}

// Unwrap gives ErrLimit or nil.
func (e *Error) Unwrap() error { return e.err }

// fail ends parsing or rendering. The panic never leaves the package.
func fail(line int, format string, args ...any) {
	panic(&Error{Line: line, Message: fmt.Sprintf(format, args...)})
}

func tooMuch(line int, format string, args ...any) {
	e := &Error{Line: line, Message: ErrLimit.Error() + ": " + fmt.Sprintf(format, args...), err: ErrLimit}
	panic(e)
}

// caught turns what fail threw into an error. Any other panic is a fault of
// this package; it must not end the program either.
func caught(err *error) {
	switch r := recover().(type) {
	case nil:
	case *Error:
		*err = r
	default:
		*err = &Error{Message: fmt.Sprintf("the template cannot be run: %v", r)}
	}
}

// Parse reads a template.
func Parse(source string) (t *Template, err error) {
	defer caught(&err)
	if len(source) > maxSource {
		tooMuch(0, "it has %d bytes, at most %d are read", len(source), maxSource)
	}
	p := &parser{tokens: lex(source)}
	body := p.statements()
	if p.at(tEnd) != nil {
		return &Template{body: body}, nil
	}
	fail(p.line(), "unexpected %s", p.describe())
	return nil, nil
}

// Render runs the template with variables. Values may be nil, bool, int,
// int64, float64, string, []any, *Dict, and map[string]any, whose keys come in
// sorted order. now is the time that strftime_now tells.
func (t *Template) Render(vars map[string]any, now time.Time) (text string, err error) {
	return t.render(vars, &interp{now: now, most: maxSteps})
}

func (t *Template) render(vars map[string]any, in *interp) (text string, err error) {
	defer caught(&err)
	in.filters = filters
	global := &scope{vars: map[string]any{}}
	for name, f := range globals {
		global.vars[name] = &function{name: name, call: f}
	}
	top := &scope{vars: make(map[string]any, len(vars)), up: global}
	for name, v := range vars {
		top.vars[name] = fromGo(v, 0)
	}
	var out output
	in.run(t.body, top, &out)
	return out.b.String(), nil
}
