package compute

import (
	"fmt"
	"os"
	"reflect"
	"strings"
)

// TraceVariable, set to anything, writes every call of a driver's API to
// standard error, unbuffered and before it is made: the last line before a
// crash inside a driver names the call that crashed.
const TraceVariable = "OUTCROP_GPU_TRACE"

// library is a loaded shared library whose symbols are looked up before use:
// a call of a missing one would end the program, and an older driver must only lose what it
// does not have.
type library struct {
	ref     uintptr
	missing []string
	traced  map[uintptr]string // names of addr; nil: no trace
}

// newLibrary is a library that was loaded, traced if the environment says so.
func newLibrary(ref uintptr) library {
	l := library{ref: ref}
	if os.Getenv(TraceVariable) != "" {
		l.traced = map[uintptr]string{}
	}
	return l
}

// need binds fn (a pointer to a func variable) to name, and notes a miss.
func (l *library) need(fn any, name string) {
	if !l.want(fn, name) {
		l.missing = append(l.missing, name)
	}
}

// want binds fn when the library has name.
func (l *library) want(fn any, name string) bool {
	addr, err := symbol(l.ref, name)
	if err != nil || addr == 0 {
		return false
	}
	bind(fn, addr)
	if l.traced != nil {
		v := reflect.ValueOf(fn).Elem()
		bound := reflect.ValueOf(v.Interface())
		v.Set(reflect.MakeFunc(v.Type(), func(args []reflect.Value) []reflect.Value {
			list := make([]any, len(args))
			for i, a := range args {
				list[i] = a.Interface()
			}
			traceCall(name, list)
			out := bound.Call(args)
			traceResult(out[0].Interface())
			return out
		}))
	}
	return true
}

// addr looks up a symbol for a hot call through SyscallN.
func (l *library) addr(name string) uintptr {
	a, err := symbol(l.ref, name)
	if err != nil || a == 0 {
		l.missing = append(l.missing, name)
		return 0
	}
	if l.traced != nil {
		l.traced[a] = name
	}
	return a
}

// invoke calls a symbol that addr found. What args point to must be kept alive
// by the caller.
func (l *library) invoke(fn uintptr, args ...uintptr) uintptr {
	if l.traced == nil {
		return call(fn, args...)
	}
	list := make([]any, len(args))
	for i, a := range args {
		list[i] = a
	}
	traceCall(l.traced[fn], list)
	r := call(fn, args...)
	traceResult(int32(r))
	return r
}

func traceCall(name string, args []any) {
	var b strings.Builder
	b.WriteString(name + "(")
	for i, a := range args {
		if i > 0 {
			b.WriteString(", ")
		}
		switch a := a.(type) {
		case string:
			fmt.Fprintf(&b, "%q", a)
		default:
			fmt.Fprintf(&b, "%#x", a)
		}
	}
	b.WriteString(")")
	os.Stderr.WriteString(b.String())
}

func traceResult(v any) { os.Stderr.WriteString(fmt.Sprintf(" = %v\n", v)) }

func (l *library) check(what string) error {
	if len(l.missing) > 0 {
		return fmt.Errorf("%s lacks %v: %w", what, l.missing, ErrNoDriver)
	}
	return nil
}
