package gguf

import (
	"fmt"
	"math"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// pageSize is the unit of advice.
var pageSize = int64(os.Getpagesize())

// mapping is a file mapped for reading.
type mapping struct {
	file *os.File
	data []byte
	addr uintptr
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
	h, err := windows.CreateFileMapping(windows.Handle(file.Fd()), nil, windows.PAGE_READONLY, 0, 0, nil)
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	// The view keeps the mapping object alive; its handle is not needed again.
	defer windows.CloseHandle(h)
	m.addr, err = windows.MapViewOfFile(h, windows.FILE_MAP_READ, 0, 0, uintptr(size))
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("map %s: %w", path, err)
	}
	// The address is outside Go's heap and stays put until UnmapViewOfFile;
	// reading it through a pointer to the field keeps vet's rules on uintptr.
	m.data = unsafe.Slice(*(**byte)(unsafe.Pointer(&m.addr)), int(size))
	return m, nil
}

func (m *mapping) close() error {
	if m.file == nil {
		return nil
	}
	var err error
	if m.data != nil {
		err = windows.UnmapViewOfFile(m.addr)
		m.data = nil
	}
	if e := m.file.Close(); err == nil {
		err = e
	}
	m.file = nil
	return err
}

// advise does nothing: Windows has no advice for a part of a mapped file that
// is worth its cost here; its cache manager watches the access pattern itself.
func (m *mapping) advise(lo, hi int64, a Advice) error { return nil }
