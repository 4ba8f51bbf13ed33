package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"outcrop/gpu"
)

// stampFile holds, in a folder of compiled kernels, the drivers that made them.
const stampFile = "outcrop-drivers"

// StampCache notes in a folder of compiled kernels which drivers fill it. It is
// called by whoever makes the folder, and when it was emptied.
func StampCache(dir string, m gpu.Machine) error {
	if err := os.WriteFile(filepath.Join(dir, stampFile), []byte(Stamp(m)+"\n"), 0o644); err != nil {
		return fmt.Errorf("stamp the compile cache: %w", err)
	}
	return nil
}

// ReadCache reads the note of a folder. A folder that is not there, or that has
// no note, has no version: nothing is said about it.
func ReadCache(dir string) (Cache, error) {
	b, err := os.ReadFile(filepath.Join(dir, stampFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Cache{Path: dir}, nil
	}
	if err != nil {
		return Cache{}, fmt.Errorf("read the compile cache: %w", err)
	}
	return Cache{Path: dir, Version: strings.TrimSpace(string(b))}, nil
}
