//go:build !linux && !darwin && !windows

package engine

// systemCores is not known here; the Go runtime's count is used.
func systemCores() int { return 0 }
