//go:build !windows

package engine

import "github.com/google/renameio/v2"

// replaceFile writes a file so that whoever reads it, at any time and after
// any crash, finds the old or the new contents.
func replaceFile(path string, b []byte) error { return renameio.WriteFile(path, b, 0o600) }
