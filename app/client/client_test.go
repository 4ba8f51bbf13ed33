package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"outcrop/engine/wire"
)

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	c := New(s.URL, "")
	t.Cleanup(func() { c.Close(); s.Close() })
	return c
}

func sse(w http.ResponseWriter, lines ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, l := range lines {
		fmt.Fprintf(w, "%s\n\n", l)
	}
	w.(http.Flusher).Flush()
}

func read(s *Stream) (text, finish string, usage *wire.Usage, err error) {
	for {
		e, err := s.Next()
		if err == io.EOF {
			return text, finish, usage, nil
		}
		if err != nil {
			return text, finish, usage, err
		}
		text += e.Text
		if e.Finish != "" {
			finish = e.Finish
		}
		if e.Usage != nil {
			usage = e.Usage
		}
	}
}

func TestChat(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Path != "/v1/chat/completions" || !strings.Contains(string(b), `"stream":true`) {
			t.Errorf("got %s %s", r.URL.Path, b)
		}
		sse(w, ": keep alive",
			`data: {"choices":[{"delta":{"role":"assistant","content":""}}]}`,
			`data: {"choices":[{"delta":{"content":"Hel"}}],"usage":null}`,
			`data: {"choices":[{"delta":{"content":"lo"},"finish_reason":null}]}`,
			`data: {"choices":[{"delta":{},"finish_reason":"stop"}],"outcrop":{"finish":"stop"}}`,
			`data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`,
			"data: [DONE]")
	})
	s, err := c.Chat(context.Background(), wire.ChatRequest{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	text, finish, usage, err := read(s)
	if err != nil || text != "Hello" || finish != "stop" || usage == nil || usage.TotalTokens != 5 {
		t.Errorf("got %q %q %+v %v", text, finish, usage, err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		name, body string
		status     int
		want       string
	}{
		{"ours", `{"error":{"message":"too long","code":"context_length_exceeded","type":"invalid_request_error","next":"shorten it"}}`, 400, "too long; shorten it"},
		{"a string", `{"error":"no such model"}`, 404, "no such model"},
		{"detail", `{"detail":"nope"}`, 422, "nope"},
		{"not JSON", `<html>bad gateway</html>`, 502, "HTTP 502 Bad Gateway <html>"},
		{"empty", ``, 401, "HTTP 401 Unauthorized"},
	} {
		cl := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(c.status)
			io.WriteString(w, c.body)
		})
		_, err := cl.Chat(context.Background(), wire.ChatRequest{})
		var se *StatusError
		if !errors.As(err, &se) || se.Status != c.status || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
		var we *wire.Error
		if !errors.As(err, &we) {
			t.Errorf("%s: does not unwrap to the wire error", c.name)
		}
	}
}

func TestStreamErrorAndBreak(t *testing.T) {
	first := `data: {"choices":[{"delta":{"content":"so far"}}]}`
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sse(w, first, `data: {"error":{"message":"not a finite number","code":"not_finite"}}`)
	})
	s, err := c.Chat(context.Background(), wire.ChatRequest{})
	if err != nil {
		t.Fatal(err)
	}
	text, _, _, err := read(s)
	var we *wire.Error
	if text != "so far" || !errors.As(err, &we) || we.Code != "not_finite" {
		t.Errorf("got %q, %v", text, err)
	}

	// The engine is killed in the middle: the connection is cut.
	c = serve(t, func(w http.ResponseWriter, r *http.Request) {
		sse(w, first)
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	})
	s, err = c.Chat(context.Background(), wire.ChatRequest{})
	if err != nil {
		t.Fatal(err)
	}
	text, _, _, err = read(s)
	if text != "so far" || !errors.Is(err, ErrGone) {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestCancelReachesTheServer(t *testing.T) {
	cancelled := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sse(w, `data: {"choices":[{"delta":{"content":"x"}}]}`)
		<-r.Context().Done()
		close(cancelled)
	})
	ctx, cancel := context.WithCancel(context.Background())
	s, err := c.Chat(ctx, wire.ChatRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Next(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := s.Next(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-cancelled:
	case <-time.After(10 * time.Second):
		t.Error("the server never learned of it")
	}
}

func TestUnixSocketAndNobodyThere(t *testing.T) {
	dir, err := os.MkdirTemp("", "oc")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	c := New("unix:"+path, "key")
	if _, err := c.Health(context.Background()); !errors.Is(err, ErrGone) {
		t.Errorf("nobody there: got %v", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip("no unix sockets here: ", err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer key" {
			w.WriteHeader(401)
			return
		}
		w.WriteHeader(503)
		io.WriteString(w, `{"status":"loading","phase":"reading weights"}`)
	})}
	go srv.Serve(l)
	defer srv.Close()
	h, err := c.Health(context.Background())
	if err != nil || h.Status != "loading" {
		t.Errorf("got %+v, %v", h, err)
	}
}

func TestForeignServer(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		io.WriteString(w, `{"object":"list","data":[{"id":"m"}]}`)
	})
	c2 := New(c.Addr()+"/v1/", "")
	defer c2.Close()
	for _, c := range []*Client{c, c2} {
		if h, err := c.Health(context.Background()); err != nil || h.Status != "ok" {
			t.Errorf("got %+v, %v", h, err)
		}
		if m, err := c.Models(context.Background()); err != nil || len(m) != 1 || m[0].ID != "m" {
			t.Errorf("got %+v, %v", m, err)
		}
	}
}

func TestTelemetryReconnects(t *testing.T) {
	var n atomic.Int32
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		sse(w, fmt.Sprintf(`data: {"pack":"p%d","memory":{"total":{"value":null,"why":"x"}}}`, n.Add(1)))
	})
	ctx, cancel := context.WithCancel(context.Background())
	seen := map[string]bool{}
	failed := false
	for u := range c.Telemetry(ctx) {
		if u.Err != nil {
			failed = true
		} else {
			seen[u.Sample.Pack] = true
			if u.Sample.Memory.Total.Known {
				t.Error("null became a number")
			}
		}
		if len(seen) >= 2 {
			cancel()
		}
	}
	cancel()
	if len(seen) < 2 {
		t.Errorf("got %v, failed %v", seen, failed)
	}
}

func TestWebServer(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, "<!DOCTYPE html>\n<title>Not here</title>")
	})
	if _, err := c.Models(context.Background()); err == nil || !strings.Contains(err.Error(), "404") || !strings.Contains(err.Error(), "runs no models") || strings.Contains(err.Error(), "<") {
		t.Errorf("got %v", err)
	}
}
