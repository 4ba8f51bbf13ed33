//go:build !linux

package engine

import (
	"errors"
	"os"
)

// openRead opens a file for reading. Direct reads are for Linux only so far.
func openRead(path string, direct bool) (*os.File, error) {
	if direct {
		return nil, errors.ErrUnsupported
	}
	return os.Open(path)
}

func forget(*os.File, int64, int64) {}
