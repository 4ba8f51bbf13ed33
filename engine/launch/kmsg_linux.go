package launch

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// kernelSaysKilled looks for "Killed process PID" in the kernel's log, which
// only some systems let us read. One read(2) gives one record.
func kernelSaysKilled(pid int) bool {
	fd, err := syscall.Open("/dev/kmsg", syscall.O_RDONLY|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	f := os.NewFile(uintptr(fd), "/dev/kmsg")
	defer f.Close()
	want := fmt.Sprintf("Killed process %d ", pid)
	buf := make([]byte, 8192)
	found := false
	for range 200_000 {
		n, err := syscall.Read(fd, buf)
		if err == syscall.EPIPE { // records were overwritten while we read
			continue
		}
		if err != nil || n <= 0 {
			break
		}
		if strings.Contains(string(buf[:n]), want) {
			found = true
		}
	}
	return found
}
