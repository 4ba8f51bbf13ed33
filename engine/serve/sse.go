package serve

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// stream writes server-sent events. It sends a comment when nothing was said
// for a while, so that neither the client nor something between takes a long
// prefill for a dead connection.
type stream struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	rc   *http.ResponseController
	last time.Time
	err  error // the first failed write: the client is gone

	quit chan struct{}
	idle sync.WaitGroup
}

// writeLimit is how long a client may take to accept one event before it
// counts as gone; it must not hold up the queue for ever.
const writeLimit = 30 * time.Second

func newStream(w http.ResponseWriter, keepalive time.Duration) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no") // nginx
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, rc: http.NewResponseController(w), last: time.Now(), quit: make(chan struct{})}
	s.write([]byte(": outcrop\n\n"))
	s.idle.Go(func() {
		t := time.NewTicker(keepalive)
		defer t.Stop()
		for {
			select {
			case <-s.quit:
				return
			case <-t.C:
				s.mu.Lock()
				quiet := time.Since(s.last) >= keepalive*9/10
				s.mu.Unlock()
				if quiet {
					s.write([]byte(": keep-alive\n\n"))
				}
			}
		}
	})
	return s
}

// send writes one event with a name (may be empty) and a JSON value.
func (s *stream) send(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	out := make([]byte, 0, len(b)+len(name)+24)
	if name != "" {
		out = append(append(append(out, "event: "...), name...), '\n')
	}
	out = append(append(append(out, "data: "...), b...), "\n\n"...)
	return s.write(out)
}

func (s *stream) write(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.rc.SetWriteDeadline(time.Now().Add(writeLimit))
	if _, s.err = s.w.Write(b); s.err == nil {
		s.err = s.rc.Flush()
	}
	s.last = time.Now()
	return s.err
}

// end stops the comments; the handler may return then.
func (s *stream) end() {
	close(s.quit)
	s.idle.Wait()
	s.rc.SetWriteDeadline(time.Time{})
}
