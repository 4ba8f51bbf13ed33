//go:build unix

package gguf

import (
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// pageSize is the unit of advice.
var pageSize = int64(os.Getpagesize())

// mapping is a file mapped for reading. The file stays open: dropping its
// cached pages needs the descriptor.
type mapping struct {
	file *os.File
	data []byte
}

func mapFile(path string) (*mapping, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, err
	}
	size := info.Size()
	if size > math.MaxInt {
		file.Close()
		return nil, fmt.Errorf("open %s: %d bytes are more than this processor can map", path, size)
	}
	m := &mapping{file: file}
	if size == 0 {
		return m, nil // an empty mapping is not allowed
	}
	m.data, err = unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	return m, nil
}

func (m *mapping) close() error {
	if m.file == nil {
		return nil
	}
	var err error
	if m.data != nil {
		err = unix.Munmap(m.data)
		m.data = nil
	}
	if e := m.file.Close(); err == nil {
		err = e
	}
	m.file = nil
	return err
}

// advise passes the advice for bytes lo to hi on; lo is on a page.
func (m *mapping) advise(lo, hi int64, a Advice) error {
	how := unix.MADV_NORMAL
	switch a {
	case WillNeed:
		how = unix.MADV_WILLNEED
	case DontNeed:
		how = unix.MADV_DONTNEED
	case Random:
		how = unix.MADV_RANDOM
	case Sequential:
		how = unix.MADV_SEQUENTIAL
	}
	if err := unix.Madvise(m.data[lo:hi], how); err != nil {
		return err
	}
	if a == DontNeed {
		return dropCache(m.file, lo, hi-lo)
	}
	return nil
}
