//go:build unix

package gguf_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"outcrop/engine/gguf"
)

// A pipe named as a model is an error at once: opened, it would wait for
// somebody to write into it.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Skip("this file system makes no pipes: ", err)
	}
	for name, open := range map[string]func() error{
		"Open":     func() error { _, err := gguf.Open(path); return err },
		"ReadMeta": func() error { _, err := gguf.ReadMeta(path); return err },
	} {
		done := make(chan error, 1)
		go func() { done <- open() }()
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s waits for the pipe's writer", name)
		}
	}
}
