//go:build unix

package engine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// region is memory of our own, outside of the collector's heap: experts are
// large and long-lived, and their memory must go back to the system at once
// when the guard asks.
type region struct{ mem []byte }

// newRegion reserves n bytes. They take memory only once they are written.
func newRegion(n int) (region, error) {
	if n == 0 {
		return region{}, nil
	}
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return region{}, fmt.Errorf("reserve %d MiB for experts: %w", n>>20, err)
	}
	return region{mem}, nil
}

// release gives the whole pages in lo to hi-1 back; they read as zeros or as
// before until they are written again.
func (r *region) release(lo, hi int) {
	if lo < hi {
		_ = unix.Madvise(r.mem[lo:hi], dropPages)
	}
}

func (r *region) free() {
	if r.mem != nil {
		_ = unix.Munmap(r.mem)
		r.mem = nil
	}
}
