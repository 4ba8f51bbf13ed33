package engine

import "golang.org/x/sys/unix"

// makeLarge moves written memory into large pages (Linux 6.1 and later; others
// leave it as it is).
func makeLarge(mem []byte) { _ = unix.Madvise(mem, unix.MADV_COLLAPSE) }
