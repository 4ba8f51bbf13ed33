// Package launch runs the engine as a child process of the same binary, so
// that a driver crash or an out-of-memory kill costs one answer and never the
// window (design: the app outlives the engine).
//
// Start gives the child its environment (the recipe), raises its
// oom_score_adj so that the kernel takes it before the desktop, and waits for
// the one line on its standard output that names its address. A watcher keeps
// the last readings of the child's memory; when the child ends, Exit says in
// words how and why. The child never outlives its parent: on Linux the kernel
// kills it with the parent (and a pipe on its standard input tells it too), on
// Windows a job object does.
//
// The package refuses to know models: what the child loads is in its
// arguments, and all talk goes over the HTTP interface.
package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Spec says what to start. Only Pack is needed.
type Spec struct {
	Binary string    // "" is this program itself
	Pack   string    // name, GGUF file or folder, as `outcrop serve` takes it
	Base   []string  // the child's environment, such as a recipe applied to ours; nil is ours
	Env    []string  // NAME=VALUE, added to Base; later ones win
	Args   []string  // further flags of `outcrop serve`
	Log    io.Writer // gets the child's standard error as it comes; may be nil
	// OOMScore is the child's oom_score_adj; 0 means 500. The kernel allows
	// raising it to anybody.
	OOMScore int
	// command replaces the arguments of the child, for tests of this package.
	command []string
}

// announce begins the line by which `outcrop serve` says that it listens.
const announce = "listening on "

// Announce writes the line that Start waits for.
func Announce(w io.Writer, addr string) error {
	_, err := fmt.Fprintf(w, "%s%s\n", announce, addr)
	return err
}

// ParentFlag makes `outcrop serve` end when its standard input does.
const ParentFlag = "--with-parent"

// KeyVariable hands the child its API key without showing it in the list of
// processes.
const KeyVariable = "OUTCROP_KEY"

// Engine is one running (or ended) child.
type Engine struct {
	spec  Spec
	cmd   *exec.Cmd
	addr  string
	key   string
	dir   string // private directory of the socket, removed at the end
	stdin io.Closer
	began time.Time

	mu      sync.Mutex
	said    tail // of standard error
	before  []Reading
	stopped bool

	done  chan struct{}
	exit  Exit // valid after done is closed
	quiet chan struct{}
}

// keptReadings bounds what is kept of a child's past.
const keptReadings = 15

// Start runs the engine and returns when it listens; the pack is still
// loading then (see wire.Health). ctx bounds the wait only: the engine goes on
// until Stop, or until this process ends. An engine that ends before it
// listens is an *ExitError.
func Start(ctx context.Context, s Spec) (*Engine, error) {
	if s.Binary == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find this program: %w", err)
		}
		s.Binary = self
	}
	e := &Engine{spec: s, done: make(chan struct{}), quiet: make(chan struct{})}
	args, err := e.arguments()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(s.Binary, args...)
	cmd.Env = s.Base
	if cmd.Env == nil {
		cmd.Env = os.Environ()
	}
	// The key last: one that this process was given is for other servers.
	cmd.Env = append(append(slices.Clip(cmd.Env), s.Env...), KeyVariable+"="+e.key)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	e.cmd, e.stdin = cmd, stdin
	before := kills()

	started := make(chan error, 1)
	var drained sync.WaitGroup
	drained.Add(2)
	address := make(chan string, 1)
	go func() {
		// The kernel's parent-death signal belongs to the thread that forked,
		// so this goroutine keeps its thread until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		e.began = time.Now()
		if err := start(cmd); err != nil {
			started <- err
			return
		}
		started <- nil
		drained.Wait() // Wait closes the pipes: read them out first
		err := cmd.Wait()
		e.finish(err, before)
	}()
	if err := <-started; err != nil {
		os.RemoveAll(e.dir)
		return nil, fmt.Errorf("start the engine %s: %w", s.Binary, err)
	}
	raiseOOMScore(cmd.Process.Pid, s.OOMScore)
	go func() { defer drained.Done(); e.readOut(stdout, address) }()
	go func() { defer drained.Done(); e.readErr(stderr) }()
	go e.watch(cmd.Process.Pid)

	select {
	case a := <-address:
		e.addr = a
		return e, nil
	case <-e.done:
		return nil, &ExitError{e.exit}
	case <-ctx.Done():
		e.Stop()
		return nil, fmt.Errorf("wait for the engine to listen: %w", ctx.Err())
	}
}

// arguments makes the command line, and the private directory or the key that
// belong to it.
func (e *Engine) arguments() ([]string, error) {
	if e.spec.command != nil {
		return e.spec.command, nil
	}
	args := []string{"serve"}
	if runtime.GOOS == "windows" {
		key, err := randomKey()
		if err != nil {
			return nil, err
		}
		e.key = key
		args = append(args, "--listen", "127.0.0.1:0")
	} else {
		dir, err := PrivateDir()
		if err != nil {
			return nil, err
		}
		e.dir = dir
		args = append(args, "--socket", filepath.Join(dir, socketName))
	}
	args = append(args, ParentFlag)
	args = append(args, e.spec.Args...)
	if e.spec.Pack != "" {
		args = append(args, "--", e.spec.Pack)
	}
	return args, nil
}

// Addr is where the engine listens: "unix:PATH" or "http://HOST:PORT".
func (e *Engine) Addr() string { return e.addr }

// Key is the API key the engine wants; "" on a unix socket.
func (e *Engine) Key() string { return e.key }

// PID is the child's process id.
func (e *Engine) PID() int { return e.cmd.Process.Pid }

// Done is closed when the child has ended.
func (e *Engine) Done() <-chan struct{} { return e.done }

// Exit says how the child ended; it waits for the end.
func (e *Engine) Exit() Exit {
	<-e.done
	return e.exit
}

// Log returns the last lines that the child wrote to its standard error.
func (e *Engine) Log() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.said.lines...)
}

// Stop ends the child and waits: first by closing its standard input, on
// which it finishes in good order, then by force. Safe to call twice, and
// after the end.
func (e *Engine) Stop() {
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
	e.stdin.Close()
	if waitFor(e.done, 5*time.Second) {
		return
	}
	terminate(e.cmd.Process)
	if waitFor(e.done, 2*time.Second) {
		return
	}
	e.cmd.Process.Kill()
	<-e.done
}

// Restart stops the child if it still runs and starts another by the same
// Spec, changed by edit if that is not nil.
func (e *Engine) Restart(ctx context.Context, edit func(*Spec)) (*Engine, error) {
	e.Stop()
	s := e.spec
	if edit != nil {
		edit(&s)
	}
	return Start(ctx, s)
}

func waitFor(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-done:
		return true
	case <-t.C:
		return false
	}
}

// readOut looks for the address and drops the rest.
func (e *Engine) readOut(r io.Reader, address chan<- string) {
	sc := bufio.NewScanner(r)
	for sc.Scan() {
		if a, ok := strings.CutPrefix(sc.Text(), announce); ok {
			select {
			case address <- strings.TrimSpace(a):
			default:
			}
		}
	}
	io.Copy(io.Discard, r) // a line over the scanner's limit must not block the child
}

// readErr keeps the last lines and hands all of them on.
func (e *Engine) readErr(r io.Reader) {
	eachLine(r, func(line string) {
		if e.spec.Log != nil {
			io.WriteString(e.spec.Log, line)
		}
		e.mu.Lock()
		e.said.add(line)
		e.mu.Unlock()
	})
}

// finish records how the child ended.
func (e *Engine) finish(err error, before killCounts) {
	var ee *exec.ExitError
	if err != nil && !errors.As(err, &ee) {
		e.mu.Lock()
		e.said.add(err.Error())
		e.mu.Unlock()
	}
	close(e.quiet)
	e.mu.Lock()
	f := facts{
		stopped: e.stopped,
		ran:     time.Since(e.began),
		before:  e.before,
		log:     append([]string(nil), e.said.lines...),
		fault:   e.said.fault,
		foreign: e.said.foreign,
		kills:   kills().since(before),
		kmsg:    kernelSaysKilled(e.cmd.Process.Pid),
	}
	e.mu.Unlock()
	f.code, f.signal = status(e.cmd.ProcessState)
	e.exit = explain(f)
	if e.dir != "" {
		os.RemoveAll(e.dir)
	}
	close(e.done)
}
