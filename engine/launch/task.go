package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Task is a child of this program that does one job, says how it goes line by
// line on its standard output, and ends: first light of a card, whose driver
// may crash or hang.
type Task struct {
	Binary string   // "" is this program itself
	Args   []string // its arguments
	Env    []string // the whole environment; nil is ours
	What   string   // what it is, in words with a small letter: "the test"; "" is the engine
	Line   func([]byte)
}

// Run starts the task and waits for its end. Line is called with each line of
// its standard output, from another goroutine than the caller's. The child is killed when ctx
// is done, and dies with this process. The error is for a child that could not
// be started or was given up; how one ended otherwise is in Exit: a crash is no error.
func (t Task) Run(ctx context.Context) (Exit, error) {
	if t.Binary == "" {
		self, err := os.Executable()
		if err != nil {
			return Exit{}, fmt.Errorf("find this program: %w", err)
		}
		t.Binary = self
	}
	cmd := exec.Command(t.Binary, t.Args...)
	cmd.Env = t.Env
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return Exit{}, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return Exit{}, err
	}
	before := kills()
	began := time.Now()
	var said tail
	var drained sync.WaitGroup
	drained.Add(2)
	started, done := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread() // see Start
		defer runtime.UnlockOSThread()
		err := start(cmd)
		started <- err
		if err != nil {
			return
		}
		drained.Wait()
		done <- cmd.Wait()
	}()
	if err := <-started; err != nil {
		return Exit{}, fmt.Errorf("start %s %s: %w", t.Binary, strings.Join(t.Args[:min(1, len(t.Args))], ""), err)
	}
	raiseOOMScore(cmd.Process.Pid, 0)
	go func() {
		defer drained.Done()
		eachLine(stdout, func(line string) {
			if t.Line != nil {
				t.Line([]byte(line))
			}
		})
	}()
	go func() { defer drained.Done(); eachLine(stderr, said.add) }()
	var end error
	select {
	case end = <-done:
	case <-ctx.Done():
		cmd.Process.Kill()
		<-done
		return Exit{}, ctx.Err()
	}
	var ee *exec.ExitError
	if end != nil && !errors.As(end, &ee) {
		said.add(end.Error())
	}
	f := facts{ran: time.Since(began), log: said.lines, fault: said.fault, foreign: said.foreign, what: t.What,
		kills: kills().since(before), kmsg: kernelSaysKilled(cmd.Process.Pid)}
	f.code, f.signal = status(cmd.ProcessState)
	return explain(f), nil
}
