package gpu

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// HelperArg is the hidden first argument that makes this program a sensor
// helper; see [HelperMain].
const HelperArg = "__sensors"

// HelperName is the file beside this program that is preferred as the helper
// when it is there: a copy that was given CAP_PERFMON. The program itself should
// not have it, because such a program ignores LD_LIBRARY_PATH.
const HelperName = "outcrop-probe"

// HelperCard is what the helper says of one card.
type HelperCard struct {
	PCI      PCI     `json:"pci"`
	Source   string  `json:"source"`
	Total    int64   `json:"total"`
	Used     int64   `json:"used"`
	HaveUsed bool    `json:"have_used"`
	Temp     float64 `json:"temp,omitempty"`
	TempVRAM float64 `json:"temp_vram,omitempty"`
}

// HelperAnswer is one line of the helper.
type HelperAnswer struct {
	Cards   []HelperCard `json:"cards"`
	Perfmon bool         `json:"perfmon"` // the helper may see what others use
	Err     string       `json:"err,omitempty"`
}

// HelperMain is called first thing in main: when the arguments ask for the
// sensor helper it is run and true is returned, and main returns. The helper
// answers each line of its standard input with one line of JSON and ends when
// the input does, or after a minute without a question.
func HelperMain(args []string) bool {
	if len(args) < 2 || args[1] != HelperArg {
		return false
	}
	helperLoop(os.Stdin, os.Stdout, helperRead(), time.Minute)
	return true
}

// helperLoop serves questions until the input ends or nobody asks for idle.
func helperLoop(in io.Reader, out io.Writer, answer func() HelperAnswer, idle time.Duration) {
	ask := make(chan struct{})
	go func() {
		sc := bufio.NewScanner(in)
		for sc.Scan() {
			ask <- struct{}{}
		}
		close(ask)
	}()
	enc := json.NewEncoder(out)
	for {
		select {
		case _, ok := <-ask:
			if !ok || enc.Encode(answer()) != nil {
				return
			}
		case <-time.After(idle):
			return
		}
	}
}

// helper is the parent's side: the process, and its last answer. Questions are
// asked in the background, so that a slow driver never holds up a reading.
type helper struct {
	mu      sync.Mutex
	last    HelperAnswer
	at      time.Time
	err     error
	busy    bool
	stopped bool

	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// helperPath gives the program to start: the privileged copy when it is there.
func helperPath() (path string, privileged bool, err error) {
	exe, err := os.Executable()
	if err != nil {
		return "", false, fmt.Errorf("sensor helper: %w", err)
	}
	if p := filepath.Join(filepath.Dir(exe), HelperName); isFile(p) {
		return p, true, nil
	}
	return exe, false, nil
}

func isFile(p string) bool {
	i, err := os.Stat(p)
	return err == nil && i.Mode().IsRegular()
}

// latest gives the last answer when it is younger than maxAge, and asks for a new
// one when the last is older than every.
func (h *helper) latest(now time.Time, every, maxAge time.Duration) (HelperAnswer, bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.busy && !h.stopped && now.Sub(h.at) >= every {
		h.busy = true
		h.at = now
		go h.ask()
	}
	return h.last, h.err == nil && len(h.last.Cards) > 0 && now.Sub(h.at) < maxAge, h.err
}

// ask gets one answer, starting the process when it is not running.
func (h *helper) ask() {
	a, err := h.exchange()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy = false
	h.err = err
	if err == nil {
		h.last = a
		if a.Err != "" {
			h.err = fmt.Errorf("%s", a.Err)
		}
	}
}

func (h *helper) exchange() (HelperAnswer, error) {
	var a HelperAnswer
	h.mu.Lock()
	if h.stopped {
		h.mu.Unlock()
		return a, fmt.Errorf("sensor helper: closed")
	}
	if h.cmd == nil {
		if err := h.start(); err != nil {
			h.mu.Unlock()
			return a, err
		}
	}
	in, out, cmd := h.in, h.out, h.cmd
	h.mu.Unlock()
	type line struct {
		s   string
		err error
	}
	got := make(chan line, 1)
	go func() {
		if _, err := io.WriteString(in, "\n"); err != nil {
			got <- line{"", err}
			return
		}
		s, err := out.ReadString('\n')
		got <- line{s, err}
	}()
	var l line
	select {
	case l = <-got:
	case <-time.After(10 * time.Second):
		l.err = fmt.Errorf("no answer in 10 s")
	}
	if l.err != nil {
		h.drop(cmd)
		return a, fmt.Errorf("sensor helper: %w", l.err)
	}
	if err := json.Unmarshal([]byte(l.s), &a); err != nil {
		h.drop(cmd)
		return a, fmt.Errorf("sensor helper: %w", err)
	}
	return a, nil
}

// start runs the helper without what would keep zesInit from working. It ends
// with this program, because its input does.
func (h *helper) start() error {
	path, _, err := helperPath()
	if err != nil {
		return err
	}
	c := exec.Command(path, HelperArg)
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "ZES_ENABLE_SYSMAN=") {
			c.Env = append(c.Env, kv)
		}
	}
	in, err := c.StdinPipe()
	if err != nil {
		return fmt.Errorf("sensor helper: %w", err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return fmt.Errorf("sensor helper: %w", err)
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("sensor helper: %w", err)
	}
	h.cmd, h.in, h.out = c, in, bufio.NewReader(io.LimitReader(out, 64<<20))
	return nil
}

// drop ends a helper that failed; the next question starts a new one.
func (h *helper) drop(c *exec.Cmd) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cmd != c {
		return
	}
	h.in.Close()
	c.Process.Kill()
	go c.Wait()
	h.cmd = nil
}

// close ends the helper.
func (h *helper) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopped = true
	if h.cmd != nil {
		h.in.Close()
		h.cmd.Process.Kill()
		go h.cmd.Wait()
		h.cmd = nil
	}
}
