//go:build unix

package engine

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// region is memory of our own, outside of the collector's heap: experts are
// large and long-lived, and their memory must go back to the system at once
// when the guard asks.
type region struct {
	mem []byte
	all []byte // with what alignment costs
}

// hugePage is the size of a large page on most processors.
const hugePage = 2 << 20

// newRegion reserves n bytes, in large pages where the system has them: a
// direct read then asks the disk for few long pieces, and the processor looks
// fewer pages up. They take memory only once they are written.
func newRegion(n int) (region, error) {
	if n == 0 {
		return region{}, nil
	}
	size, whole := n, (n+hugePage-1)/hugePage*hugePage
	if n >= hugePage {
		size = whole + hugePage
	}
	all, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return region{}, fmt.Errorf("reserve %d MiB for experts: %w", n>>20, err)
	}
	off := 0
	if n >= hugePage {
		off = int(-uintptr(unsafe.Pointer(&all[0])) & (hugePage - 1))
		largePages(all[off : off+whole]) // the last one too
	}
	return region{all[off : off+n : off+n], all}, nil
}

// release gives the whole pages in lo to hi-1 back; they read as zeros or as
// before until they are written again.
func (r *region) release(lo, hi int) {
	if lo < hi {
		_ = unix.Madvise(r.mem[lo:hi], dropPages)
	}
}

// letGo takes the whole pages of a mapped file out of this process; the system
// keeps them in its cache as long as it likes.
func letGo(b []byte) {
	if len(b) == 0 {
		return
	}
	page := uintptr(unix.Getpagesize())
	first := (page - uintptr(unsafe.Pointer(&b[0]))%page) % page
	if n := (uintptr(len(b)) - min(first, uintptr(len(b)))) / page * page; n > 0 {
		_ = unix.Madvise(b[first:first+n], unix.MADV_DONTNEED)
	}
}

func (r *region) free() {
	if r.all != nil {
		_ = unix.Munmap(r.all)
		r.mem, r.all = nil, nil
	}
}
