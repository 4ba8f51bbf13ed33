package gguf

import (
	"os"

	"golang.org/x/sys/unix"
)

// dropCache gives clean cached pages of a file back. MADV_DONTNEED alone only
// takes them out of this process; they would stay in memory.
func dropCache(file *os.File, off, n int64) error {
	return unix.Fadvise(int(file.Fd()), off, n, unix.FADV_DONTNEED)
}
