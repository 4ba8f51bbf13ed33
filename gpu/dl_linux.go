package gpu

import (
	"fmt"

	"github.com/ebitengine/purego"
)

// openLib loads the first shared library of names that is there. Nothing is
// linked: a machine without a driver must run this program.
func openLib(names ...string) (uintptr, error) {
	var err error
	for _, n := range names {
		var h uintptr
		if h, err = purego.Dlopen(n, purego.RTLD_NOW|purego.RTLD_LOCAL); err == nil {
			return h, nil
		}
	}
	return 0, err
}

// bind makes fptr (a pointer to a function variable) call a symbol. A library
// older than the symbol is an error, not a crash.
func bind(h uintptr, name string, fptr any) error {
	p, err := purego.Dlsym(h, name)
	if err != nil || p == 0 {
		return fmt.Errorf("%s: not in this library", name)
	}
	purego.RegisterFunc(fptr, p)
	return nil
}
