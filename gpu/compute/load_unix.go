//go:build linux || darwin || (freebsd && cgo)

package compute

import (
	"errors"

	"github.com/ebitengine/purego"
)

// openLibrary loads the first library of names that loads. The error holds what
// the loader said of each.
func openLibrary(names ...string) (uintptr, error) {
	var all []error
	for _, n := range names {
		lib, err := purego.Dlopen(n, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err == nil {
			return lib, nil
		}
		all = append(all, err)
	}
	return 0, errors.Join(all...)
}

func symbol(lib uintptr, name string) (uintptr, error) { return purego.Dlsym(lib, name) }

// bind makes fn, a pointer to a func variable, call what is at addr.
func bind(fn any, addr uintptr) { purego.RegisterFunc(fn, addr) }

func call(addr uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(addr, args...)
	return r
}
