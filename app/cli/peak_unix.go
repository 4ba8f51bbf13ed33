//go:build unix

package cli

import (
	"os"
	"runtime"
	"syscall"
)

// peakOf is the largest resident set of an ended process, in bytes.
func peakOf(s *os.ProcessState) int64 {
	u, ok := s.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	n := int64(u.Maxrss)
	if runtime.GOOS != "darwin" {
		n <<= 10 // KiB everywhere but there
	}
	return n
}
