//go:build !linux

package engine

// makeLarge is known on Linux only.
func makeLarge([]byte) {}
