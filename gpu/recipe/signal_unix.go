//go:build unix

package recipe

import (
	"os"
	"syscall"
)

// signalOf gives the signal that ended a process and its number, "" when none
// did.
func signalOf(s *os.ProcessState) (string, int) {
	if w, ok := s.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return w.Signal().String(), int(w.Signal())
	}
	return "", 0
}
