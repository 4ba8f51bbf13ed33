//go:build unix && !linux

package gguf

import "os"

// dropCache does nothing: these systems have no such call for a part of a file.
func dropCache(*os.File, int64, int64) error { return nil }
