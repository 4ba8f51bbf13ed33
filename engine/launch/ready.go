package launch

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"outcrop/engine/wire"
)

// WaitReady waits until the pack is loaded, and tells progress, if it is not
// nil, each answer of /health on the way. An engine that ends first is an
// *ExitError with the reason.
func (e *Engine) WaitReady(ctx context.Context, progress func(wire.Health)) error {
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	base := e.addr
	if path, ok := strings.CutPrefix(e.addr, "unix:"); ok {
		base = "http://engine"
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
	}
	hc := &http.Client{Transport: tr, Timeout: 5 * time.Second}
	wait := 10 * time.Millisecond
	for {
		h, err := health(ctx, hc, base, e.key)
		if err == nil {
			if progress != nil {
				progress(h)
			}
			switch h.Status {
			case "ok":
				return nil
			case "failed":
				return fmt.Errorf("%s", h.Error)
			}
		}
		select {
		case <-e.done:
			return &ExitError{e.exit}
		case <-ctx.Done():
			return fmt.Errorf("wait for the pack to load: %w", ctx.Err())
		case <-time.After(wait):
		}
		if wait < 100*time.Millisecond {
			wait *= 2
		}
	}
}

func health(ctx context.Context, hc *http.Client, base, key string) (wire.Health, error) {
	var h wire.Health
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/health", nil)
	if err != nil {
		return h, err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := hc.Do(req)
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	err = json.NewDecoder(resp.Body).Decode(&h)
	return h, err
}
