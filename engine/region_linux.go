package engine

import "golang.org/x/sys/unix"

// dropPages frees anonymous pages at once.
const dropPages = unix.MADV_DONTNEED
