// Package gateway is the door through which other programs reach the engine
// of the window: a TCP address with an optional key, in front of the engine's
// private socket.
//
// It stays open while the engine is restarted or changes its pack, counts
// what passes, and keeps no text of it. It refuses what a web page could do to
// a local server: foreign Host names on loopback, and calls from pages.
package gateway

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"outcrop/engine/wire"
)

// Request is one call that came through.
type Request struct {
	ID     int64
	Time   time.Time
	Client string // address, and what it calls itself
	Path   string
	Tokens int
	TokS   float64
	Took   time.Duration
	Result string
	Busy   bool
}

// Gateway forwards to the engine. Target gives the engine's address
// ("unix:PATH" or "http://HOST:PORT") and key, or "" while there is none.
type Gateway struct {
	Target func() (addr, key string)

	mu     sync.Mutex
	server *http.Server
	addr   string
	key    string
	next   int64
	list   []*Request // newest first
	watch  map[int]func()
	watchN int
}

// most is how many requests are remembered.
const most = 200

// tail is how much of an answer's end is kept to read its figures from.
const tail = 8 << 10

// Open listens on HOST:PORT. With a key every request must show it. A busy
// port is an error that names the next free one.
func (g *Gateway) Open(addr, key string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.server != nil {
		return fmt.Errorf("open the gateway at %s: it is open at %s", addr, g.addr)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		if errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("the address %s is taken by another program; %s is free", addr, free(addr))
		}
		return fmt.Errorf("open the gateway at %s: %w", addr, err)
	}
	g.addr, g.key = l.Addr().String(), key
	g.server = &http.Server{Handler: http.HandlerFunc(g.serve), ReadHeaderTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute}
	go g.server.Serve(l)
	return nil
}

// free finds a port above one that is taken.
func free(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "another port"
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil {
		return "another port"
	}
	for i := n + 1; i < n+50 && i < 65536; i++ {
		a := net.JoinHostPort(host, fmt.Sprint(i))
		if l, err := net.Listen("tcp", a); err == nil {
			l.Close()
			return a
		}
	}
	return "another port"
}

// Close stops listening and ends what is being answered.
func (g *Gateway) Close() error {
	g.mu.Lock()
	s := g.server
	g.server, g.addr = nil, ""
	g.mu.Unlock()
	if s == nil {
		return nil
	}
	return s.Close()
}

// Addr is where it listens, "" while closed.
func (g *Gateway) Addr() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.addr
}

// Requests lists what came through, the newest first.
func (g *Gateway) Requests() []Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]Request, len(g.list))
	for i, r := range g.list {
		out[i] = *r
		if r.Busy {
			out[i].Took = time.Since(r.Time)
		}
	}
	return out
}

// Watch calls f, from any goroutine, when a request begins or ends.
func (g *Gateway) Watch(f func()) (stop func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.watch == nil {
		g.watch = map[int]func(){}
	}
	g.watchN++
	n := g.watchN
	g.watch[n] = f
	return func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.watch, n)
	}
}

func (g *Gateway) tell() {
	g.mu.Lock()
	fs := make([]func(), 0, len(g.watch))
	for _, f := range g.watch {
		fs = append(fs, f)
	}
	g.mu.Unlock()
	for _, f := range fs {
		f()
	}
}

func (g *Gateway) serve(w http.ResponseWriter, r *http.Request) {
	req := g.begin(r)
	defer g.tell()
	g.tell()
	fail := func(status int, kind, code, message, next string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		json.NewEncoder(w).Encode(wire.ErrorBody{Error: &wire.Error{Message: message, Type: kind, Code: code, Next: next}})
		g.end(req, fmt.Sprintf("%d %s", status, message), nil)
	}
	g.mu.Lock()
	key, addr := g.key, g.addr
	g.mu.Unlock()
	if !hostAllowed(addr, r.Host) {
		fail(http.StatusForbidden, "invalid_request_error", "", "host "+r.Host+" is not this computer", "use the address that the window shows")
		return
	}
	if origin := r.Header.Get("Origin"); origin != "" && !loopbackOrigin(origin) {
		fail(http.StatusForbidden, "invalid_request_error", "", "pages from "+origin+" may not use this engine", "")
		return
	}
	if key != "" && subtle.ConstantTimeCompare([]byte(shown(r)), []byte(key)) != 1 {
		fail(http.StatusUnauthorized, "authentication_error", wire.CodeKey, "the key is missing or wrong", "send the key that the window shows")
		return
	}
	target, tkey := g.Target()
	if target == "" {
		fail(http.StatusServiceUnavailable, "server_error", wire.CodeLoading, "no pack is loaded", "start one in the window")
		return
	}
	p, err := proxy(target, tkey)
	if err != nil {
		fail(http.StatusBadGateway, "server_error", "", err.Error(), "")
		return
	}
	defer p.Transport.(*http.Transport).CloseIdleConnections()
	var end lastBytes
	p.ModifyResponse = func(res *http.Response) error {
		end.status = res.StatusCode
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(res.Body, &end), res.Body}
		return nil
	}
	p.ErrorHandler = func(w http.ResponseWriter, r *http.Request, err error) {
		if r.Context().Err() != nil {
			end.broken = "the program went away"
			return
		}
		end.broken = "the engine did not answer"
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadGateway)
		json.NewEncoder(w).Encode(wire.ErrorBody{Error: &wire.Error{Message: end.broken, Type: "server_error", Next: "look at the window"}})
	}
	func() {
		// ReverseProxy panics with ErrAbortHandler when a stream breaks.
		defer func() {
			if e := recover(); e != nil {
				if e != http.ErrAbortHandler {
					panic(e)
				}
				end.broken = "cancelled"
			}
		}()
		p.ServeHTTP(w, r)
	}()
	result := "ok"
	switch {
	case end.broken != "":
		result = end.broken
	case r.Context().Err() != nil:
		result = "cancelled"
	case end.status >= 400:
		result = fmt.Sprintf("%d %s", end.status, http.StatusText(end.status))
	}
	g.end(req, result, end.buf.Bytes())
}

// proxy forwards to the engine; nothing is buffered, so that tokens pass as
// they come.
func proxy(target, key string) (*httputil.ReverseProxy, error) {
	t := &http.Transport{DisableCompression: true}
	base := target
	if path, ok := strings.CutPrefix(target, "unix:"); ok {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
		base = "http://engine"
	}
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("the engine's address %q: %w", target, err)
	}
	return &httputil.ReverseProxy{
		Transport: t, FlushInterval: -1,
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(u)
			p.Out.Header.Del("Authorization")
			p.Out.Header.Del("X-Api-Key")
			if key != "" {
				p.Out.Header.Set("Authorization", "Bearer "+key)
			}
		},
	}, nil
}

// shown is the key that a request shows, as OpenAI's or Anthropic's clients
// send it.
func shown(r *http.Request) string {
	if k, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		return strings.TrimSpace(k)
	}
	return r.Header.Get("X-Api-Key")
}

// hostAllowed refuses foreign names at a loopback address: a web page could
// otherwise reach it under a name of its own that resolves to 127.0.0.1.
func hostAllowed(addr, host string) bool {
	at, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true
	}
	if ip := net.ParseIP(at); ip == nil || !ip.IsLoopback() {
		return true
	}
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.Trim(name, "[]")
	if ip := net.ParseIP(name); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(name, "localhost")
}

func loopbackOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(u.Hostname()); ip != nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(u.Hostname(), "localhost")
}

func (g *Gateway) begin(r *http.Request) *Request {
	client, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		client = r.RemoteAddr
	}
	if a := r.UserAgent(); a != "" {
		name, _, _ := strings.Cut(a, " ")
		if len(name) > 40 {
			name = name[:40]
		}
		client += " " + name
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	req := &Request{ID: g.next, Time: time.Now(), Client: client, Path: r.URL.Path, Busy: true}
	g.list = slices.Insert(g.list, 0, req)
	if len(g.list) > most {
		g.list = g.list[:most]
	}
	return req
}

func (g *Gateway) end(r *Request, result string, answer []byte) {
	tokens, rate := figures(answer)
	g.mu.Lock()
	defer g.mu.Unlock()
	r.Busy, r.Took, r.Result, r.Tokens, r.TokS = false, time.Since(r.Time), result, tokens, rate
}

// lastBytes keeps the end of what is written to it.
type lastBytes struct {
	buf    bytes.Buffer
	status int
	broken string
}

func (b *lastBytes) Write(p []byte) (int, error) {
	b.buf.Write(p)
	if b.buf.Len() > 2*tail {
		b.buf.Next(b.buf.Len() - tail)
	}
	return len(p), nil
}

// figures reads tokens and rate from the end of an answer: a whole JSON
// answer, or the last events of a stream that carry them.
func figures(answer []byte) (tokens int, rate float64) {
	take := func(b []byte) bool {
		var a struct {
			Usage *struct {
				Completion int `json:"completion_tokens"`
				Output     int `json:"output_tokens"`
			} `json:"usage"`
			Outcrop *wire.Extra `json:"outcrop"`
		}
		if json.Unmarshal(b, &a) != nil {
			return false
		}
		if a.Usage != nil {
			tokens = max(tokens, a.Usage.Completion, a.Usage.Output)
		}
		if a.Outcrop != nil && a.Outcrop.Timings != nil {
			tokens, rate = max(tokens, a.Outcrop.Timings.DecodeN), a.Outcrop.Timings.DecodeTokS
		}
		return true
	}
	if take(answer) {
		return tokens, rate
	}
	for line := range bytes.SplitSeq(answer, []byte("\n")) {
		if data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:")); ok {
			take(bytes.TrimSpace(data))
		}
	}
	return tokens, rate
}
