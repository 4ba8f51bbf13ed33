//go:build !(linux || darwin || windows || (freebsd && cgo))

package compute

import (
	"fmt"
	"runtime"
)

// openLibrary says that this build cannot load drivers: purego calls into C
// without cgo on Linux, macOS and Windows only.
func openLibrary(names ...string) (uintptr, error) {
	return 0, fmt.Errorf("load %s: a build for %s without cgo cannot load drivers; build it there with CGO_ENABLED=1, or use the CPU", names[0], runtime.GOOS)
}

func symbol(uintptr, string) (uintptr, error) {
	return 0, fmt.Errorf("no library can be loaded on %s", runtime.GOOS)
}

// bind and call are never reached: there is no symbol to bind.
func bind(any, uintptr) {}

func call(uintptr, ...uintptr) uintptr { return 0 }
