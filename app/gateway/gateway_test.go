package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// engine is a server on a unix socket that answers like ours.
func engine(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "e.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener = l
	s.Start()
	t.Cleanup(s.Close)
	return "unix:" + path
}

func open(t *testing.T, target, key string) *Gateway {
	t.Helper()
	g := &Gateway{Target: func() (string, string) { return target, "engine-key" }}
	if err := g.Open("127.0.0.1:0", key); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.Close() })
	return g
}

func get(t *testing.T, g *Gateway, edit func(*http.Request)) (int, string) {
	t.Helper()
	r, err := http.NewRequest("POST", "http://"+g.Addr()+"/v1/chat/completions", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User-Agent", "probe/1.0 extra")
	if edit != nil {
		edit(r)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(b)
}

// last waits until no request is running and gives the newest.
func last(t *testing.T, g *Gateway) Request {
	t.Helper()
	for range 500 {
		if l := g.Requests(); len(l) > 0 && !l[0].Busy {
			return l[0]
		}
		time.Sleep(2 * time.Millisecond)
	}
	t.Fatal("the request does not end")
	return Request{}
}

func TestForwardsAndCounts(t *testing.T) {
	var auth string
	g := open(t, engine(t, func(w http.ResponseWriter, r *http.Request) {
		auth = r.Header.Get("Authorization")
		fmt.Fprint(w, `{"choices":[],"usage":{"completion_tokens":12},"outcrop":{"timings":{"decode_n":12,"decode_tok_s":38.5}}}`)
	}), "secret")
	if code, body := get(t, g, func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") }); code != 200 || !strings.Contains(body, "12") {
		t.Fatalf("got %d %s", code, body)
	}
	if auth != "Bearer engine-key" {
		t.Errorf("the engine was shown %q", auth)
	}
	if r := last(t, g); r.Tokens != 12 || r.TokS != 38.5 || r.Result != "ok" || r.Client != "127.0.0.1 probe/1.0" {
		t.Errorf("noted %+v", r)
	}
}

func TestStreamPassesAtOnce(t *testing.T) {
	go1 := make(chan bool)
	g := open(t, engine(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n")
		w.(http.Flusher).Flush()
		<-go1
		fmt.Fprint(w, "data: {\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\ndata: [DONE]\n\n")
	}), "")
	res, err := http.Post("http://"+g.Addr()+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := bufio.NewReader(res.Body)
	if line, err := b.ReadString('\n'); err != nil || !strings.Contains(line, `"a"`) {
		t.Fatalf("first event: %q, %v", line, err)
	}
	if l := g.Requests(); !l[0].Busy {
		t.Error("a request that is being answered is not busy")
	}
	close(go1)
	io.ReadAll(b)
	if r := last(t, g); r.Tokens != 7 {
		t.Errorf("noted %+v", r)
	}
}

func TestRefuses(t *testing.T) {
	called := false
	g := open(t, engine(t, func(http.ResponseWriter, *http.Request) { called = true }), "secret")
	for _, c := range []struct {
		name string
		code int
		edit func(*http.Request)
	}{
		{"no key", 401, nil},
		{"wrong key", 401, func(r *http.Request) { r.Header.Set("X-Api-Key", "other") }},
		{"foreign host", 403, func(r *http.Request) { r.Host = "evil.example"; r.Header.Set("X-Api-Key", "secret") }},
		{"foreign page", 403, func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("X-Api-Key", "secret")
		}},
	} {
		if code, body := get(t, g, c.edit); code != c.code || !strings.Contains(body, `"error"`) {
			t.Errorf("%s: got %d %s, want %d", c.name, code, body, c.code)
		}
	}
	if called {
		t.Error("a refused request reached the engine")
	}
	if code, _ := get(t, g, func(r *http.Request) { r.Header.Set("X-Api-Key", "secret") }); code != 200 {
		t.Errorf("the right key in Anthropic's header: %d", code)
	}
}

func TestNoEngine(t *testing.T) {
	g := open(t, "", "")
	if code, body := get(t, g, nil); code != 503 || !strings.Contains(body, "no pack is loaded") {
		t.Errorf("got %d %s", code, body)
	}
	g2 := open(t, "unix:"+filepath.Join(t.TempDir(), "gone.sock"), "")
	if code, _ := get(t, g2, nil); code != 502 {
		t.Errorf("engine gone: got %d", code)
	}
	if r := last(t, g2); r.Result != "the engine did not answer" {
		t.Errorf("noted %+v", r)
	}
}

func TestClientGoesAway(t *testing.T) {
	began, ended := make(chan bool), make(chan bool)
	g := open(t, engine(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "data: {}\n\n")
		w.(http.Flusher).Flush()
		close(began)
		<-r.Context().Done()
		close(ended)
	}), "")
	ctx, cancel := context.WithCancel(context.Background())
	r, _ := http.NewRequestWithContext(ctx, "POST", "http://"+g.Addr()+"/v1/chat/completions", strings.NewReader("{}"))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	<-began
	cancel()
	res.Body.Close()
	select {
	case <-ended:
	case <-time.After(5 * time.Second):
		t.Fatal("the engine goes on for a program that left")
	}
	if r := last(t, g); r.Result == "ok" {
		t.Errorf("noted %+v", r)
	}
}

func TestBusyPortNamesAFreeOne(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	g := &Gateway{Target: func() (string, string) { return "", "" }}
	if err := g.Open(l.Addr().String(), ""); err == nil || !strings.Contains(err.Error(), "is free") {
		t.Errorf("got %v", err)
	}
	if g.Addr() != "" {
		t.Error("a gateway that could not open says it is open")
	}
	if err := g.Open("127.0.0.1:0", ""); err != nil {
		t.Fatal(err)
	}
	if err := g.Open("127.0.0.1:0", ""); err == nil {
		t.Error("opened twice")
	}
	g.Close()
	if g.Addr() != "" {
		t.Error("a closed gateway has an address")
	}
}

func TestHostAllowed(t *testing.T) {
	for _, c := range []struct {
		addr, host string
		want       bool
	}{
		{"127.0.0.1:80", "localhost:80", true}, {"127.0.0.1:80", "127.0.0.1", true}, {"127.0.0.1:80", "[::1]:80", true},
		{"127.0.0.1:80", "evil.example:80", false}, {"[::1]:80", "10.0.0.1", false}, {"0.0.0.0:80", "anything", true}, {"192.168.1.2:80", "box.lan", true},
	} {
		if got := hostAllowed(c.addr, c.host); got != c.want {
			t.Errorf("hostAllowed(%q, %q): got %v", c.addr, c.host, got)
		}
	}
}
