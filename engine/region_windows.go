package engine

import (
	"fmt"
	"unsafe"

	win "golang.org/x/sys/windows"
)

// region is memory of our own, outside of the collector's heap: experts are
// large and long-lived, and their memory must go back to the system at once
// when the guard asks.
type region struct{ mem []byte }

// newRegion reserves and commits n bytes.
func newRegion(n int) (region, error) {
	if n == 0 {
		return region{}, nil
	}
	at, err := win.VirtualAlloc(0, uintptr(n), win.MEM_RESERVE|win.MEM_COMMIT, win.PAGE_READWRITE)
	if err != nil {
		return region{}, fmt.Errorf("reserve %d MiB for experts: %w", n>>20, err)
	}
	// The address is no Go pointer, and the collector must not take it for one.
	return region{unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&at))), n)}, nil
}

// release lets the system drop what is in lo to hi-1 without writing it to the
// page file. The pages stay committed, so that they can be written again.
func (r *region) release(lo, hi int) {
	if lo < hi {
		at := uintptr(unsafe.Pointer(&r.mem[lo]))
		if _, err := win.VirtualAlloc(at, uintptr(hi-lo), win.MEM_RESET, win.PAGE_READWRITE); err == nil {
			_ = win.VirtualUnlock(at, uintptr(hi-lo)) // takes them out of the working set
		}
	}
}

func (r *region) free() {
	if r.mem != nil {
		_ = win.VirtualFree(uintptr(unsafe.Pointer(&r.mem[0])), 0, win.MEM_RELEASE)
		r.mem = nil
	}
}

// letGo does nothing: a view's pages leave a process as the system wants.
func letGo([]byte) {}
