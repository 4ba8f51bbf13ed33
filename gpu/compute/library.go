package compute

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// library is a loaded shared library whose symbols are looked up before use:
// purego panics on a missing one, and an older driver must only lose what it
// does not have.
type library struct {
	ref     uintptr
	missing []string
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
	purego.RegisterFunc(fn, addr)
	return true
}

// addr looks up a symbol for a hot call through SyscallN.
func (l *library) addr(name string) uintptr {
	a, err := symbol(l.ref, name)
	if err != nil || a == 0 {
		l.missing = append(l.missing, name)
		return 0
	}
	return a
}

func (l *library) check(what string) error {
	if len(l.missing) > 0 {
		return fmt.Errorf("%s lacks %v: %w", what, l.missing, ErrNoDriver)
	}
	return nil
}
