package engine

import (
	"os"

	"golang.org/x/sys/unix"
)

// openRead opens a file for reading; direct reads pass the page cache by, and
// are refused by file systems that live in it.
func openRead(path string, direct bool) (*os.File, error) {
	how := os.O_RDONLY
	if direct {
		how |= unix.O_DIRECT
	}
	return os.OpenFile(path, how, 0)
}

// forget drops what an ordinary read left in the page cache: we hold it now.
func forget(f *os.File, off, n int64) {
	_ = unix.Fadvise(int(f.Fd()), off, n, unix.FADV_DONTNEED)
}
