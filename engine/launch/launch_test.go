//go:build unix

package launch

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The test binary plays the parts of engine and parent when this variable
// says so.
const role = "OUTCROP_LAUNCH_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "engine": // listens, then waits for its parent's end
		end := make(chan struct{})
		WithParent(os.Stdin, time.Minute, func() { close(end) })
		fmt.Fprintln(os.Stderr, "pid", os.Getpid(), "setting", os.Getenv("OUTCROP_TEST_RECIPE"))
		Announce(os.Stdout, "unix:/nowhere")
		<-end
	case "deaf": // an engine that does not look at its standard input
		Announce(os.Stdout, "unix:/nowhere")
		fmt.Fprintln(os.Stderr, "pid", os.Getpid())
		select {}
	case "broken":
		fmt.Fprintln(os.Stderr, "outcrop: open pack x.gguf: bad magic")
		os.Exit(1)
	case "panic":
		panic("no such layer")
	case "task": // says two lines and dies as its variable says
		fmt.Println("one")
		fmt.Println("two")
		switch os.Getenv("OUTCROP_LAUNCH_TEST_END") {
		case "crash":
			syscall.Kill(os.Getpid(), syscall.SIGSEGV)
			time.Sleep(time.Minute)
		case "hang":
			select {}
		}
	case "parent": // starts the engine named by the next variable and waits to be killed
		e, err := startRole(os.Getenv("OUTCROP_LAUNCH_TEST_CHILD"))
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println("child", e.PID())
		select {}
	}
}

func startRole(r string) (*Engine, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return Start(ctx, Spec{command: []string{"-test.run=^$"}, Env: []string{role + "=" + r, "OUTCROP_TEST_RECIPE=yes"}})
}

func TestStartStop(t *testing.T) {
	e, err := startRole("engine")
	if err != nil {
		t.Fatal(err)
	}
	if e.Addr() != "unix:/nowhere" {
		t.Errorf("address: got %q", e.Addr())
	}
	if runtime.GOOS == "linux" {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", e.PID()))
		if n, _ := strconv.Atoi(strings.TrimSpace(string(b))); err != nil || n < 500 {
			t.Errorf("oom_score_adj of the child: got %s, %v", b, err)
		}
	}
	began := time.Now()
	e.Stop()
	if d := time.Since(began); d > 4*time.Second {
		t.Errorf("stop took %v: the child did not see its standard input end", d)
	}
	x := e.Exit()
	if !x.Stopped || x.Code != 0 || x.OOM {
		t.Errorf("got %+v", x)
	}
	if !strings.Contains(strings.Join(x.Log, "\n"), "setting yes") {
		t.Errorf("the recipe's environment did not reach the child: %q", x.Log)
	}
	e.Stop() // twice is fine
}

func TestKilledInTheMiddle(t *testing.T) {
	e, err := startRole("engine")
	if err != nil {
		t.Fatal(err)
	}
	syscall.Kill(e.PID(), syscall.SIGKILL)
	x := e.Exit()
	if x.Signal != "SIGKILL" || x.Stopped || x.OOM {
		t.Errorf("got %+v", x)
	}
	if runtime.GOOS == "linux" && !strings.Contains(x.Text, "from outside") {
		t.Errorf("got %q", x.Text)
	}
	again, err := e.Restart(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	again.Stop()
}

func TestEndsBeforeListening(t *testing.T) {
	for r, want := range map[string]string{
		"broken": "open pack x.gguf: bad magic",
		"panic":  "no such layer",
	} {
		_, err := startRole(r)
		var ee *ExitError
		if !errors.As(err, &ee) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", r, err)
		}
	}
	if _, err := Start(context.Background(), Spec{Binary: "/no/such/program"}); err == nil {
		t.Error("a missing program was started")
	}
}

// No orphan survives the app, whatever kills it: the parent dies by SIGKILL,
// so nothing of its own can run, and the child must be gone all the same. The
// deaf child proves the kernel's signal alone, without the pipe.
func TestNoOrphan(t *testing.T) {
	roles := []string{"engine"}
	if runtime.GOOS == "linux" {
		roles = append(roles, "deaf")
	}
	for _, child := range roles {
		parent := exec.Command(os.Args[0], "-test.run=^$")
		parent.Env = append(os.Environ(), role+"=parent", "OUTCROP_LAUNCH_TEST_CHILD="+child)
		out, err := parent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := parent.Start(); err != nil {
			t.Fatal(err)
		}
		line, _ := bufio.NewReader(out).ReadString('\n')
		pid, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "child "))
		if err != nil {
			t.Fatalf("%s: parent said %q", child, line)
		}
		parent.Process.Kill()
		parent.Wait()
		if !gone(pid) {
			syscall.Kill(pid, syscall.SIGKILL)
			t.Errorf("%s: the child outlived its parent", child)
		}
	}
}

// gone polls for the end of a process that is not our child. A zombie counts
// as gone: nobody may be there to collect it inside a container.
func gone(pid int) bool {
	for range 500 {
		if syscall.Kill(pid, 0) == syscall.ESRCH {
			return true
		}
		if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
			if i := strings.LastIndexByte(string(b), ')'); i > 0 && strings.HasPrefix(string(b[i:]), ") Z") {
				return true
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func TestPrivateDir(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	old := syscall.Umask(0o077)
	dir, err := PrivateDir()
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	st, err := os.Stat(dir)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v", st.Mode(), err)
	}
}

// What a killed program left behind goes at the next start; what answers, or
// is young, stays.
func TestSweep(t *testing.T) {
	base, err := os.MkdirTemp("", "oc")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	t.Setenv("XDG_RUNTIME_DIR", base)
	t.Setenv("TMPDIR", base)
	old := time.Now().Add(-time.Hour)
	make := func(name string, alive, young bool) string {
		p := filepath.Join(base, dirPrefix+name, socketName)
		os.Mkdir(filepath.Dir(p), 0o700)
		l, err := net.Listen("unix", p)
		if err != nil {
			t.Fatal(err)
		}
		if alive {
			t.Cleanup(func() { l.Close() })
		} else {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
			l.Close()
		}
		if !young {
			os.Chtimes(p, old, old)
		}
		return p
	}
	dead, alive, young := make("dead", false, false), make("alive", true, false), make("young", false, true)
	if got := Running(); len(got) != 3 {
		t.Errorf("running: %v", got)
	}
	sweep()
	for p, want := range map[string]bool{dead: false, alive: true, young: true} {
		if _, err := os.Stat(p); (err == nil) != want {
			t.Errorf("%s: %v", p, err)
		}
	}
}

// A task tells its lines, and its end is explained: a good one, a crash, one
// that hangs and is given up.
func TestTask(t *testing.T) {
	run := func(ctx context.Context, end string, line func([]byte)) (Exit, error) {
		return Task{Args: []string{"-test.run=^$"}, What: "the test", Line: line, Env: append(os.Environ(), role+"=task", "OUTCROP_LAUNCH_TEST_END="+end)}.Run(ctx)
	}
	var lines []string
	keep := func(b []byte) { lines = append(lines, strings.TrimSpace(string(b))) }
	x, err := run(t.Context(), "", keep)
	if err != nil || x.Code != 0 || x.Signal != "" || len(lines) < 2 || lines[0] != "one" || lines[1] != "two" {
		t.Errorf("got %+v, %v, %q", x, err, lines)
	}
	lines = nil
	x, err = run(t.Context(), "crash", keep)
	if err != nil || x.Signal != "SIGSEGV" || len(lines) != 2 || !strings.HasPrefix(x.Text, "The test crashed (SIGSEGV)") {
		t.Errorf("got %+v, %v, %q", x, err, lines)
	}
	ctx, cancel := context.WithCancel(t.Context())
	x, err = run(ctx, "hang", func(b []byte) {
		if strings.HasPrefix(string(b), "two") {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %+v, %v", x, err)
	}
	if _, err := (Task{Binary: filepath.Join(t.TempDir(), "none")}).Run(t.Context()); err == nil {
		t.Error("a program that is not there was started")
	}
}

// The line that begins a crash is kept, however long the trace after it is.
func TestTailKeepsTheFault(t *testing.T) {
	var said tail
	eachLine(strings.NewReader("outcrop: hello\nSIGSEGV: segmentation violation\nPC=0x1 m=0 sigcode=1\nsignal arrived during cgo execution\n"+strings.Repeat("frame\n", 200)+"panic: later"), said.add)
	if said.fault != "SIGSEGV: segmentation violation" || !said.foreign || len(said.lines) != keptLines || said.lines[keptLines-1] != "panic: later" {
		t.Errorf("kept %q, %v, %d lines", said.fault, said.foreign, len(said.lines))
	}
	said = tail{}
	eachLine(strings.NewReader("unexpected fault address 0x7f\nfatal error: fault\n[signal SIGBUS: bus error code=0x2 addr=0x7f pc=0x1]\n"), said.add)
	if x := explain(facts{code: 2, fault: said.fault, foreign: said.foreign, log: said.lines}); !strings.Contains(x.Text, "mapped file") {
		t.Errorf("said %q", x.Text)
	}
}
