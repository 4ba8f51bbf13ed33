//go:build !linux

package rates

import (
	"os"
	"path/filepath"
)

// openPast opens a file for reading. Nothing keeps the page cache out here, so
// a rate may be too good where the file has been read before.
func openPast(path string, size int) (reader, string, error) {
	f, err := os.Open(path)
	return reader{file: f, buf: make([]byte, size)}, "through the page cache", err
}

// diskKey names the disk a file lies on: its volume, or its folder.
func diskKey(path string) (string, error) {
	p, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if v := filepath.VolumeName(p); v != "" {
		return v, nil
	}
	return filepath.Dir(p), nil
}
