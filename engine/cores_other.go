//go:build !linux

package engine

// allowedCPUs is known on Linux only; elsewhere the Go runtime's count is used.
func allowedCPUs() []int { return nil }
