//go:build unix

package gguf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCutWhileReading cuts a file under its mapping: reading on is a fault of
// the processor, which must become an error.
func TestCutWhileReading(t *testing.T) {
	w := NewWriter()
	w.Set("k", strings.Repeat("x", 1<<20))
	path := filepath.Join(t.TempDir(), "m.gguf")
	if err := w.WriteFile(path); err != nil {
		t.Fatal(err)
	}
	m, err := mapFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	_, err = guarded(path, func() (*header, error) { return parse(m.data) })
	if err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("other panics must pass")
			}
		}()
		guarded(path, func() (*header, error) { panic("other") })
	}()
}
