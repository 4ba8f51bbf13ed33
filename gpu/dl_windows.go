package gpu

import (
	"fmt"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/windows"
)

// openLib loads the first library of names from the system folder.
func openLib(names ...string) (uintptr, error) {
	var err error
	for _, n := range names {
		var h windows.Handle
		if h, err = windows.LoadLibraryEx(n, 0, windows.LOAD_LIBRARY_SEARCH_SYSTEM32); err == nil {
			return uintptr(h), nil
		}
	}
	return 0, err
}

// bind makes fptr (a pointer to a function variable) call a symbol.
func bind(h uintptr, name string, fptr any) error {
	p, err := windows.GetProcAddress(windows.Handle(h), name)
	if err != nil || p == 0 {
		return fmt.Errorf("%s: not in this library", name)
	}
	purego.RegisterFunc(fptr, p)
	return nil
}
