//go:build unix && !linux

package launch

import (
	"os/exec"
	"syscall"
)

// start runs cmd apart from the terminal's foreground group. There is no
// parent-death signal here; the pipe on standard input does that work.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}

func raiseOOMScore(pid, score int) {}
