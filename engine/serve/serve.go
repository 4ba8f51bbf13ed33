// Package serve is the engine's HTTP interface: OpenAI's chat completions,
// completions and models, Anthropic's messages, tokens, health, and a stream
// of telemetry. Window, terminal and foreign programs all use it.
//
// The path of a request: it is checked and turned into token ids before
// anything else, so that what is wrong with it is a real 4xx; then it waits in
// one queue for the one session; then its tokens are written as they come. A
// client that goes away cancels its own request and no other. What cannot be
// honoured (several answers, grammars, pictures) is refused, never ignored.
//
// The package knows no window and decides nothing about models or memory.
package serve

import (
	"context"
	"crypto/subtle"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"outcrop/engine"
	"outcrop/engine/guard"
	"outcrop/engine/token"
	"outcrop/engine/wire"
)

// Options say how the server behaves. The zero value is right for a private
// unix socket.
type Options struct {
	Key     string   // wanted from every client but for /health; "" wants none
	Origins []string // web origins that may call; "*" is all; none: only programs that are no web pages
	// Hosts are the names a client may use for this server; nil allows any. A
	// server on loopback sets it, so that a web page cannot reach it under a
	// name of its own (DNS rebinding).
	Hosts    []string
	MaxBody  int64 // bytes of a request, 0 is 32 MiB
	MaxQueue int   // requests that wait, 0 is 64
	Version  string
	Log      *slog.Logger // nil is silent
	// Cards reads the graphics cards; nil leaves them out.
	Cards func(now time.Time) []wire.Card
	// Keepalive is how often a silent stream sends a comment, 0 is 5 s.
	Keepalive time.Duration
	// Guard is the preset that memory is guarded by; "" is daily, "off" only
	// measures.
	Guard string
	// Unload is told that memory is nearly gone and the pack must leave; the
	// owner of the process ends it. nil does nothing.
	Unload func(words string)
}

// Session makes answers, one at a time.
type Session interface {
	Generate(ctx context.Context, r engine.Request, emit func(engine.Step) error) (engine.Result, error)
}

// Backend is a loaded pack.
type Backend struct {
	Name      string // what clients call it
	Info      wire.ModelInfo
	Tokenizer *token.Tokenizer
	Template  *token.Template
	Session   Session
	Telemetry func() engine.Sample
	// Residency is where the experts are; nil where nobody tells.
	Residency func() *engine.ResidencyMap
	// Wanted is the device that was asked for: cpu, auto, or names.
	Wanted   string
	Idle     string // why no card is used although one was wanted; what Telemetry says goes before
	Defaults Defaults
	Loaded   time.Time
	Close    func() error // may be nil
	// Watch has the memory guard look after the model until stop is called;
	// onChange is told of what it decides. It may be nil.
	Watch func(onChange func(guard.Decision)) (stop func() error)
}

// Defaults are the sampling settings of a request that names none.
type Defaults struct {
	Temperature, TopP, MinP, Repeat float32
	TopK                            int
}

// Server answers requests for one pack.
type Server struct {
	o     Options
	log   *slog.Logger
	mux   *http.ServeMux
	queue queue
	tele  telemetry
	http  *http.Server

	mu      sync.Mutex
	state   string // loading, ok, failed, stopping
	phase   string
	done    int64
	total   int64
	failure error
	backend *Backend

	stopping   chan struct{} // closed when shutdown begins: streams of telemetry end
	stopOnce   sync.Once
	answers    context.Context // ends when answers must end
	endAnswers context.CancelFunc
	working    sync.WaitGroup          // answers in progress or queued
	current    context.CancelCauseFunc // ends the running answer; nil when none runs
	guardStep  guard.Step              // what the guard asked for last
	unwatch    func() error            // ends the guard; nil without one
}

// New makes a server that is loading; Ready gives it its pack.
func New(o Options) *Server {
	if o.MaxBody <= 0 {
		o.MaxBody = 32 << 20
	}
	if o.MaxQueue <= 0 {
		o.MaxQueue = 64
	}
	if o.Keepalive <= 0 {
		o.Keepalive = 5 * time.Second
	}
	s := &Server{o: o, log: o.Log, state: "loading", phase: "loading", stopping: make(chan struct{})}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.answers, s.endAnswers = context.WithCancel(context.Background())
	s.queue.max = o.MaxQueue
	s.tele.init(s)
	s.routes()
	s.http = &http.Server{
		Handler:           s.guard(s.mux),
		ReadHeaderTimeout: 20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	return s
}

func (s *Server) routes() {
	m := http.NewServeMux()
	m.HandleFunc("GET /health", s.health)
	m.HandleFunc("GET /v1/health", s.health)
	m.HandleFunc("GET /telemetry", s.telemetry)
	m.HandleFunc("GET /v1/models", s.models)
	m.HandleFunc("GET /v1/models/{id...}", s.model)
	m.HandleFunc("POST /v1/chat/completions", s.chat)
	m.HandleFunc("POST /v1/completions", s.complete)
	m.HandleFunc("POST /v1/messages", s.messages)
	m.HandleFunc("POST /v1/messages/count_tokens", s.countTokens)
	m.HandleFunc("POST /tokenize", s.tokenize)
	m.HandleFunc("POST /detokenize", s.detokenize)
	m.HandleFunc("/", s.nowhere)
	s.mux = m
}

// Handler is the server for use without a listener.
func (s *Server) Handler() http.Handler { return s.http.Handler }

// Loading tells clients how far the pack is.
func (s *Server) Loading(phase string, done, total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == "loading" {
		s.phase, s.done, s.total = phase, done, total
	}
}

// Ready gives the server its pack; requests are answered from now on.
func (s *Server) Ready(b *Backend) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != "loading" {
		return
	}
	s.state, s.phase, s.backend = "ok", "ready", b
	s.done = s.total // headers and padding are not read as weights
	s.tele.wake()
	if b.Watch != nil {
		s.unwatch = b.Watch(s.guarded)
	}
}

// Failed tells clients that the pack cannot be loaded.
func (s *Server) Failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state == "loading" {
		s.state, s.phase, s.failure = "failed", "the pack could not be loaded", err
	}
}

// Serve answers on l until Shutdown.
func (s *Server) Serve(l net.Listener) error {
	err := s.http.Serve(l)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Shutdown refuses new requests, lets running answers end until ctx does, and
// then cuts them off: each ends as cancelled, with its text so far.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	if s.state != "failed" {
		s.state, s.phase = "stopping", "shutting down"
	}
	s.mu.Unlock()
	s.stopOnce.Do(func() { close(s.stopping) })
	idle := make(chan struct{})
	go func() { s.working.Wait(); close(idle) }()
	select {
	case <-idle:
	case <-ctx.Done():
		s.endAnswers()
		<-idle // one step at most
	}
	s.endAnswers()
	short, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	err := s.http.Shutdown(short)
	if err != nil {
		err = s.http.Close()
	}
	s.mu.Lock()
	b, unwatch := s.backend, s.unwatch
	s.backend, s.unwatch = nil, nil
	s.mu.Unlock()
	if unwatch != nil {
		if werr := unwatch(); werr != nil {
			s.log.Warn("guard", "error", werr)
		}
	}
	if b != nil && b.Close != nil {
		if cerr := b.Close(); err == nil {
			err = cerr
		}
	}
	return err
}

// ready is the backend, or the error that says why there is none.
func (s *Server) ready() (*Backend, *httpError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case "ok":
		return s.backend, nil
	case "loading":
		return nil, fail(http.StatusServiceUnavailable, wire.CodeLoading, "", "the pack is loading: %s", s.phase)
	case "failed":
		return nil, fail(http.StatusServiceUnavailable, "load_failed", "", "the pack could not be loaded: %v", s.failure)
	}
	return nil, fail(http.StatusServiceUnavailable, wire.CodeStopping, "", "the engine is shutting down")
}

// begin counts an answer, so that Shutdown can wait for it.
func (s *Server) begin() (*Backend, func(), *httpError) {
	s.mu.Lock()
	if s.state == "ok" {
		s.working.Add(1)
		b := s.backend
		s.mu.Unlock()
		return b, s.working.Done, nil
	}
	s.mu.Unlock()
	_, err := s.ready()
	return nil, nil, err
}

// guard is what every request passes: its host, its origin, its key, its size.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.o.Hosts != nil && !allowedHost(r.Host, s.o.Hosts) {
			writeError(w, fail(http.StatusForbidden, "host_not_allowed", "", "this server does not go by the name %q", r.Host))
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" {
			if !s.allowedOrigin(origin) {
				writeError(w, fail(http.StatusForbidden, "origin_not_allowed", "", "web pages of %s may not use this engine; start it with --origin %s to allow it", origin, origin))
				return
			}
			h := w.Header()
			h.Set("Access-Control-Allow-Origin", origin)
			h.Set("Vary", "Origin")
			if r.Method == http.MethodOptions {
				h.Set("Access-Control-Allow-Methods", "GET, POST, OPTIONS")
				h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-API-Key, Anthropic-Version")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		if s.o.Key != "" && r.URL.Path != "/health" && !sameKey(r, s.o.Key) {
			w.Header().Set("WWW-Authenticate", "Bearer")
			writeError(w, fail(http.StatusUnauthorized, wire.CodeKey, "", "the API key is missing or wrong"))
			return
		}
		r.Body = limitBody(w, r, s.o.MaxBody)
		next.ServeHTTP(w, r)
	})
}

// sameKey compares in constant time.
func sameKey(r *http.Request, key string) bool {
	got, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		got = r.Header.Get("X-API-Key")
	}
	return subtle.ConstantTimeCompare([]byte(got), []byte(key)) == 1
}

func allowedHost(host string, names []string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.ToLower(strings.Trim(host, "[]"))
	for _, n := range names {
		if host == n {
			return true
		}
	}
	return false
}

func (s *Server) allowedOrigin(origin string) bool {
	for _, o := range s.o.Origins {
		if o == "*" || strings.EqualFold(strings.TrimRight(o, "/"), origin) {
			return true
		}
	}
	return false
}

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	h := wire.Health{Status: s.state, Phase: s.phase, Done: s.done, Total: s.total, Version: s.o.Version, PID: os.Getpid()}
	if s.failure != nil {
		h.Error = s.failure.Error()
	}
	if s.backend != nil {
		h.Pack = s.backend.Name
	}
	s.mu.Unlock()
	status := http.StatusOK
	if h.Status != "ok" {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, h)
}

func (s *Server) nowhere(w http.ResponseWriter, r *http.Request) {
	writeError(w, fail(http.StatusNotFound, "not_found", "", "there is no %s %s here; see /v1/models, /v1/chat/completions, /v1/completions, /v1/messages, /health, /telemetry", r.Method, r.URL.Path))
}
