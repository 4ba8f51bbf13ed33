package launch

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// start runs cmd so that the kernel kills it when the calling thread's
// process dies, and apart from the terminal's foreground group, so that
// Ctrl-C reaches the chat only.
func start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	return cmd.Start()
}

// raiseOOMScore makes the kernel prefer the child when memory runs out. It
// may only raise, so a refusal means the score is higher already.
func raiseOOMScore(pid, score int) {
	if score == 0 {
		score = 500
	}
	f, err := os.OpenFile("/proc/"+strconv.Itoa(pid)+"/oom_score_adj", os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	f.WriteString(strconv.Itoa(score))
}
