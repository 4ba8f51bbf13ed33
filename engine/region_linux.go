package engine

import "golang.org/x/sys/unix"

// dropPages frees anonymous pages at once.
const dropPages = unix.MADV_DONTNEED

// largePages asks for them; a system that has none gives small ones.
func largePages(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }
