//go:build slow && unix

package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"outcrop/app/client"
	"outcrop/assets"
	"outcrop/engine/wire"
)

// These tests build the program without cgo and use it as a person or another
// program would: processes, sockets, signals.

var builtProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "outcrop-slow-")
	if err != nil {
		return "", err
	}
	out := filepath.Join(dir, "outcrop")
	cmd := exec.Command("go", "build", "-o", out, "outcrop")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w: %s", err, b)
	}
	return out, nil
})

// program prepares a command of the built program with its own folders and no
// display.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := builtProgram()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, bin, args...)
	cmd.Env = append(os.Environ(), "OUTCROP_HOME="+t.TempDir(), "DISPLAY=", "WAYLAND_DISPLAY=", engineRole+"=")
	return cmd
}

type once struct {
	PromptIDs []int32       `json:"prompt_ids"`
	IDs       []int32       `json:"ids"`
	Text      string        `json:"text"`
	Finish    string        `json:"finish_reason"`
	Timings   *wire.Timings `json:"timings"`
}

func answer(t *testing.T, args ...string) (o once) {
	t.Helper()
	cmd := program(t, append([]string{"chat", "starter", "--json", "--temperature", "0"}, args...)...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	b, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return o
}

// The whole program gives the starter's known answers, with and without
// drafts, with and without its template.
func TestSlowGolden(t *testing.T) {
	var g struct {
		Prompts, Extra []struct {
			Prompt    string  `json:"prompt"`
			PromptIDs []int32 `json:"prompt_ids"`
			IDs       []int32 `json:"ids"`
			Stable    int     `json:"stable_tokens"`
			Messages  []wire.Message
		}
	}
	if err := json.Unmarshal(assets.Golden, &g); err != nil {
		t.Fatal(err)
	}
	for i, p := range g.Prompts {
		o := answer(t, "--raw", "--prompt", p.Prompt, "--max-tokens", "64", "--ignore-eos", "--threads", fmt.Sprint(1+i%2), "--draft", []string{"auto", "off", "lookup"}[i%3])
		if fmt.Sprint(o.PromptIDs) != fmt.Sprint(p.PromptIDs) || fmt.Sprint(o.IDs) != fmt.Sprint(p.IDs) {
			t.Errorf("prompt %d: got %v\nwant %v", i, o.IDs, p.IDs)
		}
	}
	for i, p := range g.Extra {
		o := answer(t, "--raw", "--prompt", p.Prompt, "--max-tokens", "64", "--ignore-eos")
		n := min(p.Stable, len(o.IDs))
		if n < p.Stable || fmt.Sprint(o.IDs[:n]) != fmt.Sprint(p.IDs[:n]) {
			t.Errorf("extra %d: got %v\nwant %v", i, o.IDs[:n], p.IDs[:n])
		}
	}
}

// server starts `outcrop serve` and returns its address.
func server(t *testing.T, args ...string) (*exec.Cmd, string, *bytes.Buffer) {
	t.Helper()
	cmd := program(t, append([]string{"serve", "starter"}, args...)...)
	errs := &bytes.Buffer{}
	cmd.Stderr = errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listening on ")
	if err != nil || !ok {
		t.Fatalf("got %q, %v, %s", line, err, errs.String())
	}
	go io.Copy(io.Discard, out)
	c := client.New(addr, "")
	defer c.Close()
	for range 600 {
		if h, err := c.Health(context.Background()); err == nil && h.Status == "ok" {
			return cmd, addr, errs
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("never ready: %s", errs.String())
	return nil, "", nil
}

func chatText(t *testing.T, ctx context.Context, addr, question string, n int) (string, error) {
	c := client.New(addr, "")
	defer c.Close()
	zero := 0.0
	s, err := c.Chat(ctx, wire.ChatRequest{Messages: []wire.Message{{Role: "user", Content: wire.Content(question)}},
		Sampling: wire.Sampling{Temperature: &zero, MaxTokens: &n}})
	if err != nil {
		return "", err
	}
	defer s.Close()
	text := ""
	for {
		e, err := s.Next()
		if err == io.EOF {
			return text, nil
		}
		if err != nil {
			return text, err
		}
		text += e.Text
	}
}

// Many clients at once over TCP and unix socket: each gets the answer it would
// get alone; one that leaves disturbs nobody; SIGTERM ends in good order.
func TestSlowServe(t *testing.T) {
	questions := []string{"Hi, who are you?", "What are the months of the year?", "Tell me a joke", "What is a cat?", "Count to ten", "why is my model so slow on my laptop?"}
	sock := filepath.Join(t.TempDir(), "s")
	for _, args := range [][]string{{"--listen", "127.0.0.1:0"}, {"--socket", sock}} {
		cmd, addr, errs := server(t, args...)
		want := map[string]string{}
		for _, q := range questions {
			text, err := chatText(t, t.Context(), addr, q, 60)
			if err != nil || text == "" {
				t.Fatalf("%s: %q, %v", q, text, err)
			}
			want[q] = text
		}
		var wg sync.WaitGroup
		for i := range 18 {
			wg.Go(func() {
				q := questions[i%len(questions)]
				if i%6 == 5 { // leaves early
					ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
					defer cancel()
					chatText(t, ctx, addr, q, 60)
					return
				}
				if text, err := chatText(t, t.Context(), addr, q, 60); err != nil || text != want[q] {
					t.Errorf("%s: got %q, %v\nwant %q", q, text, err, want[q])
				}
			})
		}
		wg.Wait()
		c := client.New(addr, "")
		s, err := c.Sample(t.Context())
		if err != nil || s.Engine.Active != 0 || s.Engine.Queue != 0 || s.Engine.Tokens == 0 || s.Engine.Use.Weights == 0 {
			t.Errorf("after all: %+v, %v", s.Engine, err)
		}
		c.Close()
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("SIGTERM: %v, %s", err, errs.String())
		}
	}
	if _, err := os.Stat(sock); err == nil {
		t.Error("the socket is left behind")
	}
}

// children lists the child processes of pid.
func children(pid int) (out []int) {
	var n int
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, f := range tasks {
		b, _ := os.ReadFile(f)
		for w := range strings.FieldsSeq(string(b)) {
			fmt.Sscan(w, &n)
			out = append(out, n)
		}
	}
	return out
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

// No orphan survives the program, whatever kills it.
func TestSlowNoOrphan(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGSEGV} {
		cmd := program(t, "chat", "starter", "--prompt", "Tell me a story about a fox", "--ignore-eos")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil { // the answer has begun
			t.Fatal(err)
		}
		kids := children(cmd.Process.Pid)
		if len(kids) != 1 {
			t.Fatalf("children: %v", kids)
		}
		cmd.Process.Signal(sig)
		cmd.Wait()
		gone := false
		for range 500 {
			if !alive(kids[0]) {
				gone = true
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if !gone {
			syscall.Kill(kids[0], syscall.SIGKILL)
			t.Errorf("%v: the engine outlived the program", sig)
		}
	}
}

// Kill -9 of the engine while it answers one prompt: what was said stays on
// standard output, the end is explained on standard error.
func TestSlowEngineKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("reads /proc")
	}
	cmd := program(t, "chat", "starter", "--prompt", "Tell me a story about a fox", "--temperature", "0", "--ignore-eos")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 40)
	if _, err := io.ReadFull(out, first); err != nil {
		t.Fatal(err)
	}
	for _, k := range children(cmd.Process.Pid) {
		syscall.Kill(k, syscall.SIGKILL)
	}
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit %v", err)
	}
	if !strings.HasPrefix(string(first)+string(rest), "In a time not so long ago") || !strings.Contains(errs.String(), "killed from outside (SIGKILL)") {
		t.Errorf("got %q and %q", string(first)+string(rest), errs.String())
	}
}

// Two copies with one home: both unpack the starter, both write the list.
func TestSlowTwoCopies(t *testing.T) {
	home := t.TempDir()
	model := filepath.Join(home, "m.gguf")
	os.WriteFile(model, assets.Starter, 0o644)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			cmd := program(t, "chat", "starter", "--prompt", "Hi, who are you?", "--temperature", "0")
			if i%2 == 1 {
				cmd = program(t, "packs", "add", model, "--name", fmt.Sprintf("copy%d", i))
			}
			cmd.Env = append(cmd.Env, "OUTCROP_HOME="+home)
			if b, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("copy %d: %v: %s", i, err, b)
			}
		})
	}
	wg.Wait()
}

// A real kill by the kernel for memory, in a control group with a limit: the
// program lives, and says what happened with the numbers.
func TestSlowOutOfMemory(t *testing.T) {
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err != nil {
		t.Skip("needs a memory control group of version 1 that this test may write into")
	}
	dir := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("outcrop-test-%d", os.Getpid()))
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skip("may not make a control group: ", err)
	}
	defer os.Remove(dir)
	const limit = 96 << 20
	if err := os.WriteFile(filepath.Join(dir, "memory.limit_in_bytes"), fmt.Append(nil, limit), 0o644); err != nil {
		t.Skip("may not set a limit: ", err)
	}
	inside := func(cmd *exec.Cmd) *exec.Cmd {
		cmd.Args = append([]string{"sh", "-c", `echo $$ > "$0/cgroup.procs"; exec "$@"`, dir}, cmd.Args...)
		cmd.Path = "/bin/sh"
		return cmd
	}
	cmd := inside(program(t, "chat", "starter", "-p", "Tell me a story about a fox", "--temperature", "0", "--ignore-eos"))
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := make([]byte, 30)
	if _, err := io.ReadFull(out, first); err != nil {
		t.Fatalf("%v, %s", err, errs.String())
	}
	// Something else in the group takes what is left and a little more. It is
	// much bigger than the tiny engine, so the engine's score is raised to the
	// most, where the kernel takes it first; without the engine all fits again.
	for _, k := range children(cmd.Process.Pid) {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", k), []byte("1000"), 0); err != nil {
			t.Fatal(err)
		}
	}
	stat, err := os.ReadFile(filepath.Join(dir, "memory.stat"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), "total_rss ")
	var rss int
	fmt.Sscan(after, &rss)
	eater := inside(exec.Command("tail", "-c", fmt.Sprint(limit-rss+4<<20)))
	zero, err := os.Open("/dev/zero")
	if err != nil {
		t.Fatal(err)
	}
	defer zero.Close()
	eater.Stdin = io.LimitReader(zero, limit)
	if err := eater.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { eater.Process.Kill(); eater.Wait() }()
	rest, _ := io.ReadAll(out)
	cmd.Wait()
	text := string(first) + string(rest)
	if cmd.ProcessState.ExitCode() != 1 || !strings.HasPrefix(text, "In a time not so long ago") ||
		!strings.Contains(errs.String(), "The kernel ended the engine because memory ran out. Last readings before: control group") {
		t.Errorf("exit %v, %.200q, said %q", cmd.ProcessState, text, errs.String())
	}
	t.Log(errs.String())
}
