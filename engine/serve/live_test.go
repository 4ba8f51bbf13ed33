package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"outcrop/engine/wire"
)

// ask starts a streamed chat and returns its lines.
func ask(t *testing.T, ctx context.Context, url, more string) (*bufio.Reader, func()) {
	t.Helper()
	req, _ := http.NewRequestWithContext(ctx, "POST", url+"/v1/chat/completions", strings.NewReader(`{`+hi+`,"stream":true,"return_progress":true`+more+`}`))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != 200 {
		b, _ := io.ReadAll(resp.Body)
		t.Fatalf("got %d %s", resp.StatusCode, b)
	}
	return bufio.NewReader(resp.Body), func() { resp.Body.Close() }
}

// until reads lines until one contains s.
func until(t *testing.T, r *bufio.Reader, s string) string {
	t.Helper()
	for {
		l, err := r.ReadString('\n')
		if strings.Contains(l, s) {
			return l
		}
		if err != nil {
			t.Fatalf("the stream ended (%v) before %q", err, s)
		}
	}
}

func waitEnded(t *testing.T, s *scripted, n int) []error {
	t.Helper()
	for range 1000 {
		s.mu.Lock()
		got := append([]error(nil), s.ended...)
		s.mu.Unlock()
		if len(got) >= n {
			return got
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("fewer than %d answers ended", n)
	return nil
}

// T50: requests wait in order; one that goes away while it waits takes no
// other with it; one that goes away while it runs is cancelled alone.
func TestQueue(t *testing.T) {
	s := &scripted{words: []string{"a", "b"}, hold: make(chan struct{}), entered: make(chan struct{}, 9)}
	srv, h := running(t, s, Options{})
	bg := context.Background()
	first, close1 := ask(t, bg, h.URL, "")
	defer close1()
	<-s.entered
	ctx2, cancel2 := context.WithCancel(bg)
	second, close2 := ask(t, ctx2, h.URL, "")
	defer close2()
	until(t, second, `"queue_ahead":1`)
	third, close3 := ask(t, bg, h.URL, "")
	defer close3()
	until(t, third, `"queue_ahead":2`)
	if a, w := srv.queue.counts(); a != 1 || w != 2 {
		t.Errorf("got %d active, %d waiting", a, w)
	}
	cancel2() // the second leaves the queue
	until(t, third, `"queue_ahead":1`)
	until(t, first, `"phase":"prefill","done":3,"total":7`)
	s.hold <- struct{}{}
	until(t, first, "[DONE]")
	<-s.entered
	s.hold <- struct{}{}
	until(t, third, "[DONE]")
	if got := waitEnded(t, s, 2); len(got) != 2 || got[0] != nil || got[1] != nil {
		t.Errorf("got %v", got)
	}
	if len(s.seen) != 2 {
		t.Errorf("%d requests reached the engine, want 2: the one that left must not", len(s.seen))
	}
}

func TestQueueFull(t *testing.T) {
	s := &scripted{words: []string{"a"}, hold: make(chan struct{}), entered: make(chan struct{}, 9)}
	_, h := running(t, s, Options{MaxQueue: 1})
	_, close1 := ask(t, context.Background(), h.URL, "")
	defer close1()
	<-s.entered
	second, close2 := ask(t, context.Background(), h.URL, "")
	defer close2()
	until(t, second, `"queue_ahead":1`)
	// A stream is refused before its first byte, so that programs see the status.
	for _, c := range [][3]string{
		{"chat/completions", `{` + hi + `}`, "queue_full"},
		{"chat/completions", `{` + hi + `,"stream":true}`, "queue_full"},
		{"completions", `{"prompt":"Hi","stream":true}`, "queue_full"},
		{"messages", `{` + hi + `,"max_tokens":5,"stream":true}`, "rate_limit_error"},
	} {
		status, body := post(t, h.URL+"/v1/"+c[0], c[1])
		if status != 429 || !strings.Contains(body, c[2]) {
			t.Errorf("%s: got %d %s", c[0], status, body)
		}
	}
}

func TestDroppedClientCancelsItsOwn(t *testing.T) {
	s := &scripted{words: []string{"tick "}, endless: true, entered: make(chan struct{}, 9)}
	_, h := running(t, s, Options{})
	for _, stream := range []bool{true, false} {
		ctx, cancel := context.WithCancel(context.Background())
		if stream {
			r, done := ask(t, ctx, h.URL, "")
			until(t, r, "tick")
			cancel()
			done()
		} else {
			go func() { <-s.entered; cancel() }()
			req, _ := http.NewRequestWithContext(ctx, "POST", h.URL+"/v1/chat/completions", strings.NewReader(`{`+hi+`}`))
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
			cancel()
		}
		n := 1
		if !stream {
			n = 2
		} else {
			<-s.entered
		}
		if got := waitEnded(t, s, n); got[n-1] == nil {
			t.Errorf("stream %v: the engine went on", stream)
		}
	}
}

func TestKeepalive(t *testing.T) {
	s := &scripted{words: []string{"a"}, hold: make(chan struct{})}
	_, h := running(t, s, Options{Keepalive: 20 * time.Millisecond})
	r, done := ask(t, context.Background(), h.URL, "")
	defer done()
	until(t, r, ": keep-alive")
	until(t, r, ": keep-alive")
	close(s.hold)
	until(t, r, "[DONE]")
}

func TestShutdown(t *testing.T) {
	s := &scripted{words: []string{"a", "b"}, hold: make(chan struct{}), entered: make(chan struct{}, 9)}
	srv, h := running(t, s, Options{})
	closed := false
	srv.backend.Close = func() error { closed = true; return nil }
	r, done := ask(t, context.Background(), h.URL, "")
	defer done()
	<-s.entered
	ended := make(chan error)
	go func() { ended <- srv.Shutdown(context.Background()) }()
	<-srv.stopping
	status, body := post(t, h.URL+"/v1/chat/completions", `{`+hi+`}`)
	if status != 503 || !strings.Contains(body, "shutting_down") {
		t.Errorf("got %d %s", status, body)
	}
	close(s.hold)
	until(t, r, "[DONE]") // a running answer ends in good order
	if err := <-ended; err != nil || !closed {
		t.Errorf("got %v, closed %v", err, closed)
	}
}

func TestShutdownByForce(t *testing.T) {
	s := &scripted{words: []string{"tick "}, endless: true}
	srv, h := running(t, s, Options{})
	r, done := ask(t, context.Background(), h.URL, "")
	defer done()
	until(t, r, "tick")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	go srv.Shutdown(ctx)
	until(t, r, "shutting_down")
	if got := waitEnded(t, s, 1); got[0] == nil {
		t.Error("the answer did not end by force")
	}
}

func TestTelemetryStream(t *testing.T) {
	s := &scripted{words: []string{"a"}, hold: make(chan struct{}), entered: make(chan struct{}, 9)}
	_, h := running(t, s, Options{Cards: func(time.Time) []wire.Card {
		return []wire.Card{{PCI: "0000:03:00.0", Name: "Card", VRAM: wire.Unknown("bytes", "sysfs", "no such file")}}
	}})
	resp, err := http.Get(h.URL + "/telemetry")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	r := bufio.NewReader(resp.Body)
	l := until(t, r, "data: ")
	var m wire.Sample
	if err := json.Unmarshal([]byte(strings.TrimPrefix(l, "data: ")), &m); err != nil {
		t.Fatal(err)
	}
	if m.Pack != "test" || m.Engine.Phase != "idle" || m.Engine.Use.Weights != 1000 || m.Engine.Device != "CPU" || m.Process.PID != os.Getpid() || len(m.Cards) != 1 || m.Cards[0].VRAM.Known {
		t.Errorf("got %+v", m)
	}
	if runtime.GOOS == "linux" && (!m.Memory.Total.Known || !m.Process.RSS.Known || m.Memory.Level == "") {
		t.Errorf("memory: got %+v", m.Memory)
	}
	_, done := ask(t, context.Background(), h.URL, "")
	defer done()
	<-s.entered
	until(t, r, `"phase":"prefill"`) // a change is told at once, not at the next second
	close(s.hold)
	until(t, r, `"phase":"idle"`)
}

func TestKeyHostOrigin(t *testing.T) {
	_, h := running(t, &scripted{words: []string{"x"}}, Options{Key: "secret", Hosts: LoopbackHosts, Origins: []string{"https://ok.example"}})
	for _, c := range []struct {
		name   string
		method string
		path   string
		header map[string]string
		host   string
		status int
	}{
		{"no key", "GET", "/v1/models", nil, "", 401},
		{"wrong key", "GET", "/v1/models", map[string]string{"Authorization": "Bearer secre"}, "", 401},
		{"key", "GET", "/v1/models", map[string]string{"Authorization": "Bearer secret"}, "", 200},
		{"the other header", "GET", "/v1/models", map[string]string{"X-API-Key": "secret"}, "", 200},
		{"health is open", "GET", "/health", nil, "", 200},
		{"rebinding", "GET", "/health", nil, "evil.example", 403},
		{"by name", "GET", "/health", nil, "localhost:8080", 200},
		{"web page", "GET", "/v1/models", map[string]string{"Authorization": "Bearer secret", "Origin": "https://evil.example"}, "", 403},
		{"allowed page", "GET", "/v1/models", map[string]string{"Authorization": "Bearer secret", "Origin": "https://ok.example"}, "", 200},
		{"preflight", "OPTIONS", "/v1/chat/completions", map[string]string{"Origin": "https://ok.example"}, "", 204},
	} {
		req, _ := http.NewRequest(c.method, h.URL+c.path, nil)
		for k, v := range c.header {
			req.Header.Set(k, v)
		}
		if c.host != "" {
			req.Host = c.host
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != c.status {
			t.Errorf("%s: got %d, want %d", c.name, resp.StatusCode, c.status)
		}
		if o := resp.Header.Get("Access-Control-Allow-Origin"); (c.header["Origin"] == "https://ok.example") != (o != "") {
			t.Errorf("%s: allowed origin %q", c.name, o)
		}
	}
}

func TestListenTCP(t *testing.T) {
	l, err := ListenTCP("127.0.0.1:0", false, "")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err := ListenTCP(l.Addr().String(), false, ""); err == nil || !strings.Contains(err.Error(), "is free") {
		t.Errorf("a busy port: got %v", err) // T100
	}
	for addr, want := range map[string]string{"0.0.0.0:0": "--allow-remote", ":0": "--allow-remote", "[::]:0": "--allow-remote", "8080": "HOST:PORT"} {
		if _, err := ListenTCP(addr, false, "key"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", addr, err)
		}
	}
	if _, err := ListenTCP("0.0.0.0:0", true, ""); err == nil || !strings.Contains(err.Error(), "key") {
		t.Errorf("remote without key: got %v", err)
	}
}

func TestListenUnix(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("unix modes have no meaning on Windows")
	}
	base, err := os.MkdirTemp("", "oc")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(base)
	path := filepath.Join(base, "private", "s")
	l, err := ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(filepath.Dir(path)); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("directory: %v, %v", st.Mode(), err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", st.Mode(), err)
	}
	if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), "another engine") {
		t.Errorf("a second engine: got %v", err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	l, err = ListenUnix(path) // the socket of a dead engine
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	os.WriteFile(path, []byte("x"), 0o600)
	if _, err := ListenUnix(path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file in the way: got %v", err)
	}
	open := filepath.Join(base, "open")
	os.Mkdir(open, 0o700)
	os.Chmod(open, 0o777)
	if _, err := ListenUnix(filepath.Join(open, "s")); err == nil || !strings.Contains(err.Error(), "others may write") {
		t.Errorf("an open directory: got %v", err)
	}
	if _, err := ListenUnix("/" + strings.Repeat("x", 120)); err == nil || !strings.Contains(err.Error(), "107") {
		t.Errorf("a long path: got %v", err)
	}
}

func TestAnthropic(t *testing.T) {
	s := &scripted{words: []string{"Hel", "lo"}}
	_, h := running(t, s, Options{})
	body := `{"model":"x","max_tokens":20,"system":[{"type":"text","text":"Be brief."}],"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]`
	status, got := post(t, h.URL+"/v1/messages", body+`}`)
	var r wire.AnthropicResponse
	if err := json.Unmarshal([]byte(got), &r); err != nil || status != 200 || len(r.Content) != 1 || r.Content[0].Text != "Hello" || r.StopReason != "end_turn" || r.Usage.OutputTokens != 2 ||
		r.Usage.CacheRead != 1 || r.Usage.InputTokens != len(s.seen[0].Prompt)-1 {
		t.Errorf("got %d %s", status, got)
	}
	if p := string(backend(t, s).Tokenizer.Decode(s.seen[0].Prompt, true)); !strings.Contains(p, "system\nBe brief.") {
		t.Errorf("prompt %q", p)
	}
	_, got = post(t, h.URL+"/v1/messages", body+`,"stream":true}`)
	var order []string
	for l := range strings.Lines(got) {
		if e, ok := strings.CutPrefix(strings.TrimSpace(l), "event: "); ok {
			order = append(order, e)
		}
	}
	want := "message_start ping content_block_start content_block_delta content_block_delta content_block_stop message_delta message_stop"
	if strings.Join(order, " ") != want {
		t.Errorf("got %v", order)
	}
	for in, want := range map[string]string{
		`{"messages":[{"role":"user","content":"x"}]}`:                                             "max_tokens",
		`{"max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`:   "image",
		`{"max_tokens":5,"messages":[{"role":"system","content":"x"}]}`:                            "role",
		`{"max_tokens":5,"messages":[{"role":"user","content":"x"}],"tool_choice":{"type":"any"}}`: "tool_choice",
	} {
		status, got := post(t, h.URL+"/v1/messages", in)
		if status != 400 || !strings.Contains(got, want) || !strings.Contains(got, `"type":"error"`) {
			t.Errorf("%s: got %d %s", in, status, got)
		}
	}
	if _, got := post(t, h.URL+"/v1/messages/count_tokens", `{"messages":[{"role":"user","content":"Hi"}]}`); !strings.Contains(got, `"input_tokens":`) {
		t.Errorf("got %s", got)
	}
}

// A request that is too large is answered, also to a client that sends all of
// it before it reads, and the next one finds the server well.
func TestTooLargeIsAnswered(t *testing.T) {
	s := &scripted{words: []string{"x"}}
	_, h := running(t, s, Options{MaxBody: 1 << 20})
	for _, n := range []int{1<<20 + 1, 6 << 20} {
		conn, err := net.Dial("tcp", h.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(20 * time.Second))
		body := strings.Repeat(" ", n-2) + "{}"
		if _, err := io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+fmt.Sprint(n)+"\r\n\r\n"+body); err != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatalf("%d bytes: %v", n, err)
		}
		b, err := io.ReadAll(resp.Body)
		if resp.StatusCode != 413 || !strings.Contains(string(b), "larger than 1 MiB") || !resp.Close || err != nil {
			t.Errorf("%d bytes: got %d %s, %v", n, resp.StatusCode, b, err)
		}
		conn.Close()
	}
	// One that asks first sends nothing.
	conn, err := net.Dial("tcp", h.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	io.WriteString(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 99999999\r\n\r\n")
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 413 {
		t.Errorf("asked first: %v, %v", resp, err)
	}
	// Just what is allowed is read.
	resp, err := http.Post(h.URL+"/v1/chat/completions", "application/json", strings.NewReader(strings.Repeat(" ", 1<<20-len(hi)-2)+"{"+hi+"}"))
	if err != nil || resp.StatusCode != 200 {
		t.Errorf("the most that is allowed: %v, %v", resp, err)
	}
}
