//go:build unix

package compute

import (
	"fmt"
	"syscall"
)

// pages takes n bytes, a multiple of a page, that lie outside of Go's heap, so that
// they do not count when the garbage collector decides how far that may grow.
func pages(n int64) (mem []byte, free func(), err error) {
	mem, err = syscall.Mmap(-1, 0, int(n), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: map %d bytes: %w", ErrMemory, n, err)
	}
	return mem, func() { _ = syscall.Munmap(mem) }, nil
}
