//go:build windows

package compute

import (
	"errors"
	"fmt"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/windows"
)

// openLibrary loads the first library of names that loads, from the system
// folder only. The error holds what the loader said of each.
func openLibrary(names ...string) (uintptr, error) {
	var all []error
	for _, n := range names {
		h, err := windows.LoadLibraryEx(n, 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32)
		if err == nil {
			return uintptr(h), nil
		}
		all = append(all, fmt.Errorf("%s: %w", n, err))
	}
	return 0, errors.Join(all...)
}

func symbol(lib uintptr, name string) (uintptr, error) {
	return windows.GetProcAddress(windows.Handle(lib), name)
}

// bind makes fn, a pointer to a func variable, call what is at addr.
func bind(fn any, addr uintptr) { purego.RegisterFunc(fn, addr) }

func call(addr uintptr, args ...uintptr) uintptr {
	r, _, _ := purego.SyscallN(addr, args...)
	return r
}
