//go:build slow && unix

package cli

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"outcrop/app/client"
)

// The built window under a display of its own: it starts the engine as its
// child; killing the engine leaves the window; killing the window leaves no
// engine. OUTCROP_WINDOW names the program with the window.
func TestSlowWindow(t *testing.T) {
	bin := os.Getenv("OUTCROP_WINDOW")
	if bin == "" {
		t.Skip("OUTCROP_WINDOW does not name a program that was built with its window")
	}
	if runtime.GOOS != "linux" {
		t.Skip("needs Xvfb and /proc")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	x := exec.Command("Xvfb", "-displayfd", "3", "-screen", "0", "1280x800x24", "+extension", "GLX")
	x.ExtraFiles = []*os.File{w}
	if err := x.Start(); err != nil {
		t.Skip("Xvfb cannot be started: ", err)
	}
	defer func() { x.Process.Kill(); x.Wait() }()
	w.Close()
	num, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatalf("Xvfb names no display: %v", err)
	}

	home, err := os.MkdirTemp("", "oc-win") // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	window := func() *exec.Cmd {
		cmd := exec.Command(bin)
		cmd.Env = append(os.Environ(), "DISPLAY=:"+strings.TrimSpace(num), "WAYLAND_DISPLAY=", "OUTCROP_HOME="+filepath.Join(home, "o"),
			"XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_RUNTIME_DIR="+home, "DBUS_SESSION_BUS_ADDRESS=disabled:", "LANG=C.UTF-8", engineRole+"=")
		out, err := os.OpenFile(filepath.Join(home, "out"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
		return cmd
	}
	cmd := window()
	engine := waitEngine(t, cmd.Process.Pid, home)
	syscall.Kill(engine, syscall.SIGKILL)
	wait(t, "the engine to be gone", func() bool { return !alive(engine) })
	time.Sleep(time.Second) // the window has time to notice, and to fall over
	if !alive(cmd.Process.Pid) {
		b, _ := os.ReadFile(filepath.Join(home, "out"))
		t.Fatalf("the window did not outlive its engine: %s", b)
	}
	cmd.Process.Kill()
	cmd.Wait()

	// Another one, killed with its engine alive.
	cmd = window()
	engine = waitEngine(t, cmd.Process.Pid, home)
	cmd.Process.Kill()
	cmd.Wait()
	wait(t, "the engine to follow its window", func() bool { return !alive(engine) })
}

// waitEngine waits for the window's child to answer, and returns its id.
func waitEngine(t *testing.T, window int, runtimeDir string) (pid int) {
	t.Helper()
	wait(t, "the engine to be ready", func() bool {
		socks, _ := filepath.Glob(filepath.Join(runtimeDir, "outcrop-*", "engine.sock"))
		for _, s := range socks {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			c := client.New("unix:"+s, "")
			h, err := c.Health(ctx)
			c.Close()
			cancel()
			if err == nil && h.Status == "ok" {
				pid = h.PID
				return true
			}
		}
		return false
	})
	if kids := children(window); len(kids) == 0 {
		t.Errorf("the engine is no child of the window")
	}
	return pid
}

func wait(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 600 {
		if done() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}
