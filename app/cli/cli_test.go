package cli

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"outcrop/assets"
	"outcrop/engine/catalog"
)

// engineRole makes the test binary the engine: launch starts it with the
// arguments of `outcrop serve`.
const engineRole = "OUTCROP_CLI_TEST_ENGINE"

func TestMain(m *testing.M) {
	if os.Getenv(engineRole) != "" {
		os.Exit(Main(context.Background(), Program{Version: "test", In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// console is a program with its input and outputs.
type console struct {
	Program
	out, err bytes.Buffer
}

func newConsole(t *testing.T, in string) *console {
	t.Helper()
	t.Setenv(engineRole, "1")
	t.Setenv("OUTCROP_HOME", filepath.Join(t.TempDir(), "home"))
	t.Setenv("DISPLAY", "")
	t.Setenv("WAYLAND_DISPLAY", "")
	c := &console{}
	c.Program = Program{Version: "test", In: strings.NewReader(in), Out: &c.out, Err: &c.err, Self: os.Args[0],
		Terminal: func() bool { return false }}
	return c
}

func (c *console) run(args ...string) int {
	c.out.Reset()
	c.err.Reset()
	return Main(context.Background(), c.Program, args)
}

func (c *console) good(t *testing.T, args ...string) string {
	t.Helper()
	if code := c.run(args...); code != 0 {
		t.Fatalf("outcrop %s: exit %d: %s", strings.Join(args, " "), code, c.err.String())
	}
	return c.out.String()
}

type goldenFile struct {
	Prompts []struct {
		Prompt       string  `json:"prompt"`
		PromptIDs    []int32 `json:"prompt_ids"`
		IDs          []int32 `json:"ids"`
		AnswerTokens int     `json:"answer_tokens"`
		Messages     []struct{ Role, Content string }
	} `json:"prompts"`
	Tokenizer []struct {
		Text    string  `json:"text"`
		IDs     []int32 `json:"ids"`
		Special bool    `json:"special"`
	} `json:"tokenizer"`
}

func golden(t *testing.T) goldenFile {
	t.Helper()
	var g goldenFile
	if err := json.Unmarshal(assets.Golden, &g); err != nil || len(g.Prompts) == 0 || len(g.Tokenizer) == 0 {
		t.Fatalf("golden answers: %v", err)
	}
	return g
}

func TestExitCodes(t *testing.T) {
	c := newConsole(t, "")
	for _, x := range []struct {
		args []string
		code int
		want string // on standard error
	}{
		{[]string{"--help"}, 0, ""},
		{[]string{"version"}, 0, ""},
		{[]string{"completion", "bash"}, 0, ""},
		{[]string{"packs"}, 0, ""},
		{[]string{"serv"}, 2, "did you mean serve"},
		{[]string{"chat", "--no-such-flag"}, 2, "unknown flag"},
		{[]string{"chat", "a", "b"}, 2, "at most 1 arg"},
		{[]string{"tokenize"}, 2, "accepts 1 arg"},
		{[]string{"logits", "starter"}, 2, "--tokens and --out"},
		{[]string{"bench", "starter", "--prompt", "0"}, 2, "at least 1"},
		{[]string{"bench", "--prompt", "many"}, 2, "invalid argument"},
		{[]string{"serve", "--listen", "x", "--socket", "y"}, 2, "exclude each other"},
		{[]string{"chat", "no-such-pack", "--prompt", "x"}, 1, "no such pack"},
		{[]string{"chat", "./no.gguf", "--prompt", "x"}, 1, "no such file"},
		{[]string{"serve", "--listen", "0.0.0.0:0"}, 1, "--allow-remote"},
		{[]string{"chat", "--prompt", "x", "--temperature", "NaN"}, 2, "--temperature is NaN"},
		{[]string{"chat", "--prompt", "x", "--threads", "-1"}, 2, "--threads is -1"},
		{[]string{"logits", "starter", "--tokens", "x", "--out", "y", "--context", "-1"}, 2, "--context is -1"},
		{[]string{"serve", "--queue", "-1"}, 2, "--queue is -1"},
		{[]string{"cards", "--root", "cli_test.go"}, 1, "holds no files"},
		{[]string{"packs", "inspect", "no\x1b[2Jsuch.gguf"}, 1, `no\x1b[2Jsuch.gguf`},
		{[]string{"doctor", "--light", "--root", "/"}, 2, "does not go with --root"},
		{[]string{"cards", "--devices", "--root", "/"}, 2, "does not go with --root"},
		{[]string{"doctor", "--light", "--card", "none:7"}, 1, "no driver offers that card"},
		{[]string{"--page", "nonsense"}, 2, "want one of [chat packs card monitor serve settings]"},
		{[]string{"doctor", "--card", "0000:99:00.0"}, 1, "no card at 0000:99:00.0"},
		{[]string{"packs", "rm", "nothing"}, 1, "no such pack"},
		{[]string{"packs", "add", "nowhere"}, 1, "no such file"},
		{[]string{"packs", "frobnicate"}, 2, "unknown command"},
		{[]string{"packs", "get", "not a reference"}, 1, "no address"},
		{[]string{"cards", "--root", "nowhere"}, 1, "no such file"},
		{[]string{"recipe", "--target", "toaster"}, 1, "toaster"},
		{[]string{"recipe", "--format", "stone"}, 1, "stone"},
		{[]string{"run"}, 2, "at least 1 arg"},
		{[]string{"run", "--", "no-such-program"}, 1, "no-such-program"},
		{nil, 2, "no terminal either"}, // no display, no terminal
	} {
		code := c.run(x.args...)
		if code != x.code || !strings.Contains(c.err.String(), x.want) {
			t.Errorf("outcrop %s: exit %d, %q; want %d with %q", strings.Join(x.args, " "), code, c.err.String(), x.code, x.want)
		}
		if strings.Contains(c.err.String(), "Usage:") {
			t.Errorf("outcrop %s: an error prints the whole help", strings.Join(x.args, " "))
		}
	}
}

func TestEveryCommandHelps(t *testing.T) {
	c := newConsole(t, "")
	var walk func(cmd *cobra.Command, path []string)
	walk = func(cmd *cobra.Command, path []string) {
		out := c.good(t, append(append([]string{}, path...), "--help")...)
		if !strings.Contains(out, "Usage:") || cmd.Short == "" {
			t.Errorf("%v: no help", path)
		}
		for _, s := range cmd.Commands() {
			walk(s, append(append([]string{}, path...), s.Name()))
		}
	}
	walk(c.root(), nil)
	names := c.good(t, "--help")
	for _, n := range strings.Fields("chat serve packs cards recipe doctor plan run bench monitor tokenize detokenize logits version completion") {
		if !strings.Contains(names, "\n  "+n+" ") {
			t.Errorf("the list of commands lacks %s", n)
		}
	}
}

func TestTokens(t *testing.T) {
	c := newConsole(t, "")
	for _, g := range golden(t).Tokenizer {
		args := []string{"tokenize", "starter"}
		if g.Special {
			args = append(args, "--special")
		}
		c.In = strings.NewReader(g.Text)
		out := c.good(t, args...)
		var ids []int32
		if err := json.Unmarshal([]byte(out), &ids); err != nil || fmt.Sprint(ids) != fmt.Sprint(g.IDs) {
			t.Errorf("%q: got %v, want %v (%v)", g.Text, ids, g.IDs, err)
		}
		c.In = strings.NewReader(out)
		if back := c.good(t, "detokenize", "starter"); back != g.Text {
			t.Errorf("back: got %q, want %q", back, g.Text)
		}
	}
	c.In = strings.NewReader("")
	if out := c.good(t, "tokenize", "starter"); out != "[]\n" {
		t.Errorf("nothing: got %q", out)
	}
	for _, bad := range []string{"[1,", "[4096]", "[-1]", "[null]", "[99999999999]", `{"a":1}`} {
		c.In = strings.NewReader(bad)
		if code := c.run("detokenize", "starter"); code != 1 {
			t.Errorf("%s: exit %d", bad, code)
		}
	}
}

func TestLogits(t *testing.T) {
	c := newConsole(t, "")
	g := golden(t).Prompts[0]
	dir := t.TempDir()
	ids, _ := json.Marshal(g.PromptIDs)
	os.WriteFile(filepath.Join(dir, "ids.json"), ids, 0o644)
	var first []byte
	for _, threads := range []string{"1", "2"} {
		out := filepath.Join(dir, "l.f32")
		c.good(t, "logits", "starter", "--tokens", filepath.Join(dir, "ids.json"), "--out", out, "--threads", threads)
		b, err := os.ReadFile(out)
		if err != nil || len(b) != len(g.PromptIDs)*4096*4 {
			t.Fatalf("got %d bytes, %v", len(b), err)
		}
		best, at := float32(math.Inf(-1)), 0
		for i, row := 0, b[len(b)-4096*4:]; i < 4096; i++ {
			if v := math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:])); v > best {
				best, at = v, i
			}
		}
		if at != int(g.IDs[0]) {
			t.Errorf("best token %d, want %d", at, g.IDs[0])
		}
		if first == nil {
			first = b
		} else if !bytes.Equal(first, b) {
			t.Error("logits depend on the number of threads")
		}
	}
}

func TestBench(t *testing.T) {
	c := newConsole(t, "")
	out := c.good(t, "bench", "starter", "--prompt", "32", "--generate", "8", "--repeat", "1", "--threads", "1", "--json")
	var m map[string]any
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"prefill_tok_s", "decode_tok_s", "threads", "kernel", "device", "peak_rss_bytes"} {
		if v, ok := m[k]; !ok || v == 0.0 || v == "" || v == nil && runtime.GOOS == "linux" {
			t.Errorf("%s is %v", k, v)
		}
	}
	if m["threads"] != 1.0 || m["prompt"] != 32.0 {
		t.Errorf("got %v", m)
	}
}

func TestPacks(t *testing.T) {
	c := newConsole(t, "")
	dir := t.TempDir()
	p := filepath.Join(dir, "My Model.gguf")
	os.WriteFile(p, assets.Starter, 0o644)
	if out := c.good(t, "packs", "add", p); !strings.Contains(out, "My Model: qwen35moe") {
		t.Errorf("add: %q", out)
	}
	var list []struct {
		Name   string         `json:"name"`
		Path   string         `json:"path"`
		Bytes  int64          `json:"bytes"`
		Health catalog.Health `json:"health"`
	}
	if err := json.Unmarshal([]byte(c.good(t, "packs", "list", "--json")), &list); err != nil || len(list) != 2 || list[1].Path != p || list[1].Bytes != int64(len(assets.Starter)) || list[1].Health.Status != catalog.Good {
		t.Fatalf("list: %+v, %v", list, err)
	}
	c.good(t, "packs", "rename", "my model", "mine")
	var in map[string]any
	for _, arg := range []string{"mine", "min", p, dir, "starter"} {
		if err := json.Unmarshal([]byte(c.good(t, "packs", "inspect", arg, "--json")), &in); err != nil {
			t.Fatal(err)
		}
		if in["arch"] != "qwen35moe" || in["experts"] != 16.0 || in["experts_used"] != 2.0 || in["draft_layers"] != 1.0 || in["known"] != true || len(in["tensor_list"].([]any)) != 169 {
			t.Errorf("%s: got arch %v, experts %v, %d tensors", arg, in["arch"], in["experts"], len(in["tensor_list"].([]any)))
		}
		md := in["metadata"].(map[string]any)
		if md["general.architecture"] != "qwen35moe" {
			t.Errorf("metadata: %v", md["general.architecture"])
		}
		if l, ok := md["tokenizer.ggml.tokens"].(map[string]any); !ok || l["length"] != 4096.0 {
			t.Errorf("a long list was printed whole")
		}
	}
	if out := c.good(t, "packs", "inspect", "mine"); !strings.Contains(out, "16 a layer") || !strings.Contains(out, "qwen35moe.expert_count") {
		t.Errorf("inspect: %s", out)
	}
	if out := c.good(t, "packs", "rm", "mine"); !strings.Contains(out, "stay") {
		t.Errorf("rm: %q", out)
	}
	if out := c.good(t, "packs", "get"); !strings.Contains(out, "Qwen3") {
		t.Errorf("get: %q", out)
	}
}

// What a model, a file's metadata or a file's name says reaches a terminal as
// text: no cursor moves, no colours, no titles.
func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"plain, é, 日本, 🎉\n\tcode": "plain, é, 日本, 🎉\n\tcode",
		"\x1b]0;title\a":          `\x1b]0;title\x07`,
		"a\rb\x7f\u009b2J":        `a\x0db\x7f\x9b2J`,
	} {
		if got := visible(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for v, want := range map[float64]string{3.14159: "3.1", 42.4: "42", 3580: "3600"} {
		if got := rate(v); got != want {
			t.Errorf("%v: got %s, want %s", v, got, want)
		}
	}
	if got := visibleLine("a\nb\x1b"); got != `a\nb\x1b` {
		t.Errorf("got %q", got)
	}
}

// failing is an output that takes nothing.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestAnswerThatCannotBePrinted(t *testing.T) {
	c := newConsole(t, "")
	p := c.Program
	p.Out = failing{}
	if code := Main(context.Background(), p, []string{"chat", "--prompt", "Hello", "--max-tokens", "3"}); code != 1 || !strings.Contains(c.err.String(), "no space left") {
		t.Errorf("exit %d, %q", code, c.err.String())
	}
}

func TestMachineCommands(t *testing.T) {
	c := newConsole(t, "")
	machines, err := filepath.Glob("../../gpu/recipe/testdata/machines/*.txt")
	if err != nil || len(machines) == 0 {
		t.Fatalf("no recorded machines are in this tree: %v", err)
	}
	for _, m := range machines[:min(4, len(machines))] {
		var cards struct {
			Cards []map[string]any `json:"cards"`
			Host  map[string]any   `json:"host"`
		}
		if err := json.Unmarshal([]byte(c.good(t, "cards", "--root", m, "--json")), &cards); err != nil || cards.Cards == nil || cards.Host == nil {
			t.Errorf("%s: cards: %v", m, err)
		}
		var recipe map[string]any
		if err := json.Unmarshal([]byte(c.good(t, "recipe", "--root", m, "--json")), &recipe); err != nil || recipe["target"] != "outcrop" {
			t.Errorf("%s: recipe: %v, %v", m, recipe["target"], err)
		}
		var list []any
		if err := json.Unmarshal([]byte(c.good(t, "doctor", "--root", m, "--json")), &list); err != nil {
			t.Errorf("%s: doctor: %v", m, err)
		}
		var plan map[string]any
		if err := json.Unmarshal([]byte(c.good(t, "plan", "starter", "--root", m, "--json")), &plan); err != nil || plan["placement"] == nil {
			t.Errorf("%s: plan: %v, %v", m, plan["placement"], err)
		}
		for _, cmd := range []string{"cards", "recipe", "doctor", "plan"} {
			if out := c.good(t, cmd, "--root", m); len(out) < 20 {
				t.Errorf("%s: %s prints %q", m, cmd, out)
			}
		}
		c.good(t, "monitor", "--root", m, "--once")
	}
}

func TestRun(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a POSIX shell")
	}
	c := newConsole(t, "")
	if code := c.run("run", "--", "sh", "-c", "exit 7"); code != 7 {
		t.Errorf("exit %d, want 7", code)
	}
	if out := c.good(t, "run", "sh", "-c", "echo $0-$1 $OUTCROP_HOME", "a", "--json"); !strings.HasPrefix(out, "a---json /") {
		t.Errorf("got %q", out)
	}
	// Where no record can be made the program runs; one that was asked for must be.
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OUTCROP_HOME", file)
	if out := c.good(t, "run", "--", "echo", "runs"); out != "runs\n" || !strings.Contains(c.err.String(), "this run is not kept") {
		t.Errorf("got %q, %s", out, c.err.String())
	}
	if code := c.run("run", "--keep", file+"/here", "--", "echo", "runs"); code != 1 {
		t.Errorf("exit %d where the record asked for cannot be kept", code)
	}
}

func TestMonitorOnce(t *testing.T) {
	c := newConsole(t, "")
	var m map[string]any
	if err := json.Unmarshal([]byte(c.good(t, "monitor", "--once", "--json")), &m); err != nil || m["memory"] == nil || m["cards"] == nil {
		t.Errorf("got %v, %v", m, err)
	}
}

func TestNoDisplay(t *testing.T) {
	c := newConsole(t, "/quit\n")
	c.Terminal = func() bool { return true }
	if code := c.run(); code != 0 || !strings.Contains(c.err.String(), "No display was found") || !strings.Contains(c.out.String(), "starter") {
		t.Errorf("exit %d: %s%s", code, c.err.String(), c.out.String())
	}
	// A build without window, with a display.
	c.In = strings.NewReader("/quit\n")
	c.Display = func() bool { return true }
	c.Window = func(WindowArgs) error { return fmt.Errorf("%w: %w: built without cgo", ErrNoWindow, ErrNoWindow) }
	if code := c.run(); code != 0 || !strings.Contains(c.err.String(), "The window cannot open: built without cgo, so the chat starts here") {
		t.Errorf("exit %d: %s", code, c.err.String())
	}
	var got WindowArgs
	c.Window = func(w WindowArgs) error { got = w; return nil }
	if code := c.run("starter", "--page", "card"); code != 0 || got.Pack != "starter" || got.Page != "card" {
		t.Errorf("exit %d, window %+v", code, got)
	}
	// The window is given a folder also where a machine file is named.
	c.Window = func(w WindowArgs) error {
		if st, err := os.Stat(filepath.Join(w.Root, "sys")); err != nil || !st.IsDir() {
			t.Errorf("the window looks at %q: %v", w.Root, err)
		}
		return nil
	}
	if code := c.run("--root", "../../gpu/recipe/testdata/machines/gsd-12641-two-a770.txt"); code != 0 {
		t.Errorf("exit %d: %s", code, c.err.String())
	}
}

// tap calls f with everything written so far.
type tap struct {
	mu sync.Mutex
	b  bytes.Buffer
	f  func(sofar string)
}

func (t *tap) Write(p []byte) (int, error) {
	t.mu.Lock()
	t.b.Write(p)
	s := t.b.String()
	t.mu.Unlock()
	if t.f != nil {
		t.f(s)
	}
	return len(p), nil
}

// What the refusal of a pack that does not fit advises can be done.
func TestChatForce(t *testing.T) {
	c := newConsole(t, "")
	args := []string{"chat", "--prompt", "x", "--max-tokens", "2", "--quiet", "--placement", "vram"}
	if code := c.run(args...); code != 1 || !strings.Contains(c.err.String(), "load it all the same with --force") {
		t.Errorf("exit %d, %q", code, c.err.String())
	}
	if out := c.good(t, append(args, "--force")...); strings.TrimSpace(out) == "" {
		t.Errorf("no answer: %q", c.err.String())
	}
}

// Ctrl-C says the same at every phase: here before the engine listens.
func TestChatStopped(t *testing.T) {
	c := newConsole(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	code := Main(ctx, c.Program, []string{"chat", "--prompt", "x", "--ignore-eos", "--quiet"})
	if code != 1 || c.err.String() != "outcrop: stopped\n" {
		t.Errorf("exit %d, %q", code, c.err.String())
	}
}

func TestChatOnce(t *testing.T) {
	c := newConsole(t, "")
	g := golden(t).Prompts[0]
	n := fmt.Sprint(g.AnswerTokens + 5)
	question := g.Messages[len(g.Messages)-1].Content
	type result struct {
		PromptIDs []int32 `json:"prompt_ids"`
		IDs       []int32 `json:"ids"`
		Text      string  `json:"text"`
		Finish    string  `json:"finish_reason"`
		Timings   map[string]any
		Usage     map[string]any
	}
	check := func(name, out string) (r result) {
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("%s: %v in %s", name, err, out)
		}
		want := g.IDs[:g.AnswerTokens+1] // with the end token
		if fmt.Sprint(r.IDs) != fmt.Sprint(want) || fmt.Sprint(r.PromptIDs) != fmt.Sprint(g.PromptIDs) || r.Finish != "stop" || r.Text == "" || r.Timings["decode_tok_s"] == nil || r.Usage == nil {
			t.Errorf("%s: got %+v, want ids %v", name, r, want)
		}
		return r
	}
	r := check("chat", c.good(t, "chat", "starter", "--prompt", question, "--max-tokens", n, "--temperature", "0", "--json"))
	check("raw", c.good(t, "chat", "starter", "--prompt", g.Prompt, "--max-tokens", n, "--temperature", "0", "--raw", "--json"))
	c.In = strings.NewReader(question + "\n")
	check("piped", c.good(t, "chat", "--max-tokens", n, "--temperature", "0", "--json"))
	if out := c.good(t, "chat", "-p", question, "-n", n, "--temperature", "0"); out != r.Text+"\n" {
		t.Errorf("plain: got %q, want %q", out, r.Text)
	}
	if c.err.Len() != 0 {
		t.Errorf("nobody reads, and something was said: %q", c.err.String())
	}
	json.Unmarshal([]byte(c.good(t, "chat", "-p", question, "-n", "3", "--temperature", "0", "--json")), &r)
	if r.Finish != "length" || len(r.IDs) != 3 {
		t.Errorf("limit: got %+v", r)
	}
	c.In = strings.NewReader("")
	if code := c.run("chat"); code != 1 || !strings.Contains(c.err.String(), "standard input is empty") {
		t.Errorf("nothing piped: exit %d, %s", code, c.err.String())
	}
	long := strings.Repeat("word ", 3000)
	if code := c.run("chat", "-p", long); code != 1 || !strings.Contains(c.err.String(), "the context of this engine holds 2048") {
		t.Errorf("too long: exit %d, %s", code, c.err.String())
	}
}

func TestTalk(t *testing.T) {
	c := newConsole(t, strings.Join([]string{
		"/help", "/regen", "/frob", "My name is Johannes.", "What is my name?", `two \`, "lines", "/stats", "/new", "/system Be brief.", "/system", "", "/quit", "never",
	}, "\n")+"\n")
	c.Terminal = func() bool { return true }
	out := c.good(t, "chat", "--temperature", "0", "--max-tokens", "40")
	for _, want := range []string{"/regen", "nothing to answer again", "/frob is no command", "Johannes", "tok/s", "memory by use", "New conversation", "System prompt set"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in the conversation:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\x1b[") {
		t.Error("colour where nobody sees it")
	}
}

// Kill -9 of the engine in the middle of an answer: what was said stays, the
// end is explained, and the next message starts the engine again.
func TestEngineKilledInTheMiddle(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs signals")
	}
	in, feed := io.Pipe()
	c := newConsole(t, "")
	c.In = in
	c.Terminal = func() bool { return true }
	o := chatOptions{given: map[string]bool{"temperature": true}, ignoreEOS: true}
	h := newHost(&c.Program, &o)
	defer h.stop()
	killed, done := false, false
	w := &tap{f: func(s string) {
		switch {
		case !killed && strings.Contains(s, "computer program"):
			killed = true
			if p, err := os.FindProcess(h.eng.PID()); err == nil {
				p.Kill()
			}
		case killed && !done && strings.Contains(s, "starts the engine again."):
			done = true
			o.ignoreEOS = false
			go func() { io.WriteString(feed, "/regen\n/quit\n"); feed.Close() }()
		}
	}}
	c.Out = w
	go io.WriteString(feed, "Hi, who are you?\n")
	if err := c.talk(context.Background(), h, &o); err != nil {
		t.Fatal(err)
	}
	s := w.b.String()
	for _, want := range []string{"The engine was killed", "The conversation is kept", "so that you can try the app"} {
		if !strings.Contains(s, want) {
			t.Errorf("%q is not in:\n%s", want, s)
		}
	}
}

// A pack is fetched from an address, checked, put on the list, and answers.
func TestPacksGet(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/files/small-Q4.gguf" {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(assets.Starter))
	}))
	defer srv.Close()
	c := newConsole(t, "")
	dir := t.TempDir()
	if out := c.good(t, "packs", "get", srv.URL+"/files/small-Q4.gguf", "--dir", dir, "--name", "fetched"); !strings.Contains(out, "fetched: qwen35moe") {
		t.Errorf("get: %q", out)
	}
	if out := c.good(t, "packs", "list"); !strings.Contains(out, "fetched") {
		t.Errorf("list: %q", out)
	}
	if out := c.good(t, "chat", "fetched", "-p", "Hi", "-n", "3"); out == "" {
		t.Error("the fetched pack does not answer")
	}
	if code := c.run("packs", "get", srv.URL+"/files/none.gguf", "--dir", dir); code != 1 || !strings.Contains(c.err.String(), "not there") {
		t.Errorf("a missing file: exit %d, %s", code, c.err.String())
	}
}
