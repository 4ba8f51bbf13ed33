package compute

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"time"
)

// Compiled modules are kept in files: 32 bytes of SHA-256, then what the hash
// is of. A file that was cut short or damaged is as good as absent: drivers
// crash on broken binaries. Files are written beside their place and renamed, so that
// programs that compile the same at the same time do not see each other's halves.

// unfinished is the pattern of files that are being written.
const unfinished = "new-*"

// sweepCache removes what programs that were killed left behind.
func sweepCache(dir string) {
	if dir == "" {
		return
	}
	list, _ := filepath.Glob(filepath.Join(dir, unfinished)) // the pattern is sound
	for _, f := range list {
		if st, err := os.Stat(f); err == nil && time.Since(st.ModTime()) > time.Hour {
			os.Remove(f)
		}
	}
}

func readCache(dir, key string) []byte {
	if dir == "" {
		return nil
	}
	b, err := os.ReadFile(filepath.Join(dir, key))
	if err != nil || len(b) <= sha256.Size {
		return nil
	}
	sum := sha256.Sum256(b[sha256.Size:])
	if !bytes.Equal(sum[:], b[:sha256.Size]) {
		return nil
	}
	return b[sha256.Size:]
}

// writeCache keeps data under key. That it fails costs time at the next start,
// nothing else, so it says nothing.
func writeCache(dir, key string, data []byte) {
	if dir == "" || os.MkdirAll(dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(dir, unfinished)
	if err != nil {
		return
	}
	sum := sha256.Sum256(data)
	_, err = f.Write(append(sum[:], data...))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, key))
	}
	if err != nil {
		os.Remove(f.Name())
	}
}
