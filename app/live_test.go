package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"outcrop/app/client"
	"outcrop/engine/catalog"
	"outcrop/engine/launch"
	"outcrop/engine/wire"
	"outcrop/gpu/doctor"
)

// TestMain lets the test binary stand in for the program: the engine that the
// window starts, and the commands whose answers it reads.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "serve":
			pretendEngine(os.Args[2:])
			return
		case "packs":
			fmt.Printf(`{"name":"p","arch":"llama","known":true,"bytes":%d,"metadata":{"general.name":"P"}}`, 42)
			return
		case "plan":
			fmt.Fprintln(os.Stderr, "outcrop: plan p: the pack has no layers")
			os.Exit(1)
		case "monitor":
			json.NewEncoder(os.Stdout).Encode(wire.Sample{Memory: wire.Memory{Level: "good"}})
			return
		}
	}
	os.Exit(m.Run())
}

// pretendEngine answers like an engine, one word every few milliseconds, for
// ever. A pack called broken does not load.
func pretendEngine(args []string) {
	socket := args[slices.Index(args, "--socket")+1]
	if strings.Contains(strings.Join(args, " "), "broken") {
		fmt.Fprintln(os.Stderr, "load broken: it is broken")
		os.Exit(3)
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	go launch.WithParent(os.Stdin, time.Second, func() { os.Exit(0) })
	m := http.NewServeMux()
	m.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(wire.Health{Status: "ok", Phase: "ready", PID: os.Getpid()})
	})
	m.HandleFunc("/v1/models", func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(wire.ModelList{Data: []wire.Model{{ID: "p", Outcrop: &wire.ModelInfo{Context: 2048, Threads: 3}}}})
	})
	m.HandleFunc("/telemetry", func(w http.ResponseWriter, r *http.Request) {
		s := wire.Sample{Engine: wire.Engine{Device: "CPU", Status: "ok", ContextSize: 2048}}
		if r.URL.Query().Get("once") != "" {
			json.NewEncoder(w).Encode(s)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		b, _ := json.Marshal(s)
		fmt.Fprintf(w, "data: %s\n\n", b)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	m.HandleFunc("/v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"word "}}],"usage":null}`+"\n\n")
			w.(http.Flusher).Flush()
			time.Sleep(5 * time.Millisecond)
		}
	})
	go http.Serve(l, m)
	launch.Announce(os.Stdout, "unix:"+socket)
	select {}
}

// reach waits until an engine has a phase.
func reach(t *testing.T, l *LiveEngine, p Phase) EngineState {
	t.Helper()
	got := make(chan EngineState, 100)
	stop := l.Watch(func(s EngineState) { got <- s })
	defer stop()
	if s := l.State(); s.Phase == p {
		return s
	}
	end := time.After(20 * time.Second)
	for {
		select {
		case s := <-got:
			if s.Phase == p {
				return s
			}
		case <-end:
			t.Fatalf("waited for phase %d in vain; it is %+v", p, l.State())
		}
	}
}

func TestLiveEngineKilledAndStartedAgain(t *testing.T) {
	l := NewLiveEngine()
	defer l.Close()
	samples := make(chan wire.Sample, 10)
	defer l.Samples(func(s wire.Sample) {
		select {
		case samples <- s:
		default:
		}
	})()
	l.Start(EngineSpec{Name: "p", Path: "/p.gguf"})
	s := reach(t, l, EngineReady)
	if s.Device != "CPU" || s.Context != 2048 || s.Threads != 3 || s.PID == 0 {
		t.Errorf("got %+v", s)
	}
	select {
	case <-samples:
	case <-time.After(10 * time.Second):
		t.Error("no reading came")
	}
	if addr, _ := l.Target(); !strings.HasPrefix(addr, "unix:") {
		t.Errorf("the gateway's target is %q", addr)
	}
	// kill -9 in the middle of an answer: what came stays, and the end is
	// explained before Chat returns.
	n := 0
	err := l.Chat(context.Background(), wire.ChatRequest{}, func(e ChatEvent) {
		if n++; n == 5 {
			p, _ := os.FindProcess(l.State().PID)
			p.Kill()
		}
	})
	if !errors.Is(err, client.ErrGone) || n < 5 {
		t.Errorf("after a kill: %d pieces, %v", n, err)
	}
	if s := l.State(); s.Phase != EngineEnded || !strings.Contains(s.Text, "killed") {
		t.Errorf("after a kill: %+v", s)
	}
	if addr, _ := l.Target(); addr != "" {
		t.Errorf("a dead engine is a target: %q", addr)
	}
	l.Start(EngineSpec{Name: "p", Path: "/p.gguf"})
	reach(t, l, EngineReady)
	// Cancelling ends the answer, not the engine.
	ctx, cancel := context.WithCancel(context.Background())
	n = 0
	err = l.Chat(ctx, wire.ChatRequest{}, func(ChatEvent) {
		if n++; n == 3 {
			cancel()
		}
	})
	if err == nil || ctx.Err() == nil || l.State().Phase != EngineReady {
		t.Errorf("after a cancel: %v, %+v", err, l.State())
	}
	l.Stop()
	if s := l.State(); s.Phase != EngineOff {
		t.Errorf("after a stop: %+v", s)
	}
	if err := l.Chat(context.Background(), wire.ChatRequest{}, nil); err == nil {
		t.Error("an engine that is off answers")
	}
}

func TestLiveEngineThatCannotStart(t *testing.T) {
	l := NewLiveEngine()
	defer l.Close()
	l.Start(EngineSpec{Name: "broken", Path: "/broken.gguf"})
	if s := reach(t, l, EngineEnded); s.Text == "" {
		t.Errorf("got %+v", s)
	}
	// Starts in quick succession leave the last one.
	for range 3 {
		l.Start(EngineSpec{Name: "broken", Path: "/broken.gguf"})
	}
	l.Start(EngineSpec{Name: "p", Path: "/p.gguf"})
	if s := reach(t, l, EngineReady); s.Pack != "p" {
		t.Errorf("got %+v", s)
	}
}

func TestEngineArguments(t *testing.T) {
	got := strings.Join(EngineSpec{Name: "a b", Threads: 4, Context: 8192, KV: "q8", Guard: "busy", Device: "auto"}.args(), "|")
	if want := "--name=a b|--threads=4|--context=8192|--kv=q8|--guard=busy|--device=auto"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	got = strings.Join(EngineSpec{Name: "p", Placement: "vram+ram", Experts: "cpu", Slots: 2, VRAMLimits: []int{8, 0}, RAMLimit: 16}.args(), "|")
	if want := "--name=p|--placement=vram+ram|--experts=cpu|--slots=2147483648|--vram-limit=8589934592,none|--ram-limit=17179869184"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := (EngineSpec{Name: "x"}).args(); len(got) != 1 {
		t.Errorf("zero settings give %v", got)
	}
}

func TestLivePacksAskTheProgram(t *testing.T) {
	l := &LivePacks{Catalog: catalog.At(t.TempDir(), t.TempDir())}
	e := catalog.Entry{Name: "p", Path: filepath.Join(t.TempDir(), "p.gguf")}
	in, err := l.Inspect(context.Background(), e)
	if err != nil || in.Arch != "llama" || in.Bytes != 42 || in.Metadata["general.name"] != "P" {
		t.Errorf("got %+v, %v", in, err)
	}
	if _, err := l.Plan(context.Background(), e, (&App{}).wishes(e)); err == nil || err.Error() != "plan p: the pack has no layers" {
		t.Errorf("got %v", err)
	}
	list, err := l.List()
	if err != nil || len(list) != 1 || !list[0].Demo {
		t.Fatalf("got %+v, %v", list, err)
	}
	if _, err := os.Stat(list[0].Path); err != nil {
		t.Errorf("the starter is listed and not unpacked: %v", err)
	}
}

func TestLiveReadings(t *testing.T) {
	got := make(chan wire.Sample, 1)
	stop := (&LiveCards{}).Readings(func(s wire.Sample) {
		select {
		case got <- s:
		default:
		}
	})
	defer stop()
	select {
	case s := <-got:
		if s.Memory.Level != "good" {
			t.Errorf("got %+v", s)
		}
	case <-time.After(15 * time.Second):
		t.Fatal("no reading came")
	}
}

// First light of the real kind: a child that tells its lines and ends well, one
// that a driver takes along, one that knows no such card, one that hangs and is stopped.
func TestLiveFirstLight(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the children are shell scripts")
	}
	script := func(text string) *LiveCards {
		path := filepath.Join(t.TempDir(), "outcrop")
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
		return &LiveCards{Binary: path}
	}
	const lines = `echo '{"device":"cuda:0","name":"H200","step":{"step":"patterns","title":"patterns","passed":2,"total":2}}'
`
	var got []doctor.LightLine
	keep := func(n doctor.LightLine) { got = append(got, n) }
	// Wrong results are no error of the test.
	err := script(`[ "$*" = "doctor --light --json --card cuda:0" ] || exit 9
[ "$FROM_RECIPE" = yes ] || exit 8
`+lines+`echo 'what no program of ours says'
echo '{"device":"cuda:0","name":"H200","result":{"device":"H200","passed":1,"total":2}}'
exit 1
`).FirstLight(t.Context(), "cuda:0", []string{"FROM_RECIPE=yes"}, keep)
	if err != nil || len(got) != 2 || got[0].Step.Passed != 2 || got[1].Result.Total != 2 {
		t.Errorf("got %+v, %v", got, err)
	}
	err = script(lines+"echo 'SIGSEGV: segmentation violation' >&2; echo 'signal arrived during cgo execution' >&2; exit 2\n").FirstLight(t.Context(), "cuda:0", nil, keep)
	if err == nil || !strings.Contains(err.Error(), "The test crashed (SIGSEGV) inside a library") || !strings.Contains(err.Error(), "the card's driver") {
		t.Errorf("a crash of a driver: %v", err)
	}
	err = script("kill -SEGV $$\n").FirstLight(t.Context(), "cuda:0", nil, keep)
	if err == nil || !strings.Contains(err.Error(), "The test crashed (SIGSEGV)") {
		t.Errorf("a crash: %v", err)
	}
	err = script("echo 'outcrop: no driver offers that card' >&2; exit 1\n").FirstLight(t.Context(), "cuda:7", nil, keep)
	if err == nil || !strings.Contains(err.Error(), "no driver offers that card") {
		t.Errorf("no such card: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = script(lines+"exec sleep 60\n").FirstLight(ctx, "cuda:0", nil, func(doctor.LightLine) { cancel() })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}

// A pack that is refused since it does not fit is told without what only the
// terminal has; any other end keeps its words and its log.
func TestRefusalInTheWindow(t *testing.T) {
	var st EngineState
	explainExit(&st, launch.Exit{Text: "The engine ended with an error: p does not fit: RAM is short of 3 GiB; would fit: a context of 4096; or load it all the same with --force.", Next: "See the last lines of its log.", Log: []string{"a"}})
	if want := "P does not fit: RAM is short of 3 GiB; would fit: a context of 4096."; !st.Refused || st.Text != want || st.Next != "" || st.Log != nil || st.Phase != EngineEnded {
		t.Errorf("got %+v", st)
	}
	st = EngineState{}
	explainExit(&st, launch.Exit{Text: "the engine was killed", Next: "start it again", Log: []string{"a"}})
	if st.Refused || st.Next != "Start it again." || len(st.Log) != 1 {
		t.Errorf("got %+v", st)
	}
}
