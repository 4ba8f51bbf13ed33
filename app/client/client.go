// Package client talks to a running engine over its HTTP interface: our own
// on a unix socket or a TCP address, or any server with an OpenAI-compatible
// /v1. Window and terminal use nothing else to chat, so what they can do other
// programs can do too. It keeps no state of a conversation.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"outcrop/engine/wire"
)

// Client is one server. It may be used from several goroutines.
type Client struct {
	base string // http://host without trailing slash or /v1
	addr string // as given, for messages
	key  string
	http *http.Client
}

// New makes a client of addr: "unix:PATH", "http://HOST:PORT",
// "https://HOST/v1" or "HOST:PORT". key may be empty.
func New(addr, key string) *Client {
	c := &Client{addr: addr, key: key}
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.ResponseHeaderTimeout = 0 // a queued request without stream has no headers until its turn
	tr.DisableCompression = true
	if path, ok := strings.CutPrefix(addr, "unix:"); ok {
		c.base = "http://engine"
		tr.Proxy = nil
		tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}
	} else {
		c.base = addr
		if !strings.Contains(addr, "://") {
			c.base = "http://" + addr
		}
		c.base = strings.TrimSuffix(strings.TrimRight(c.base, "/"), "/v1")
	}
	c.http = &http.Client{Transport: tr}
	return c
}

// Addr is the address the client was made with.
func (c *Client) Addr() string { return c.addr }

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// StatusError is an answer that is not a success. It unwraps to *wire.Error.
type StatusError struct {
	Status int
	Err    *wire.Error
}

func (e *StatusError) Error() string { return e.Err.Error() }
func (e *StatusError) Unwrap() error { return e.Err }

// ErrGone means that nobody answers at the address, or that the connection
// broke in the middle: for our own engine, that its process has ended.
var ErrGone = errors.New("the engine is not there")

// Health asks how the server is. A server that is still loading answers
// without error; look at Status. A foreign server without /health that lists
// its models counts as ok.
func (c *Client) Health(ctx context.Context) (wire.Health, error) {
	var h wire.Health
	resp, err := c.do(ctx, http.MethodGet, "/health", nil)
	if err != nil {
		return h, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return h, gone(err)
	}
	if json.Unmarshal(b, &h) == nil && h.Status != "" {
		return h, nil
	}
	if resp.StatusCode == http.StatusNotFound {
		if _, err := c.Models(ctx); err != nil {
			return h, err
		}
		return wire.Health{Status: "ok", Phase: "ready"}, nil
	}
	if resp.StatusCode != http.StatusOK {
		return h, statusError(resp.StatusCode, b)
	}
	return wire.Health{Status: "ok", Phase: "ready"}, nil
}

// Models lists what the server offers.
func (c *Client) Models(ctx context.Context) ([]wire.Model, error) {
	var l wire.ModelList
	err := c.call(ctx, http.MethodGet, "/v1/models", nil, &l)
	return l.Data, err
}

// Tokenize turns text into ids.
func (c *Client) Tokenize(ctx context.Context, r wire.TokenizeRequest) (wire.TokenizeResponse, error) {
	var out wire.TokenizeResponse
	err := c.post(ctx, "/tokenize", r, &out)
	return out, err
}

// Sample takes one telemetry reading.
func (c *Client) Sample(ctx context.Context) (wire.Sample, error) {
	var s wire.Sample
	err := c.call(ctx, http.MethodGet, "/telemetry?once=1", nil, &s)
	return s, err
}

func (c *Client) post(ctx context.Context, path string, in, out any) error {
	b, err := json.Marshal(in)
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, path, b, out)
}

// call sends one request and decodes the answer.
func (c *Client) call(ctx context.Context, method, path string, body []byte, out any) error {
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 256<<20))
	if err != nil {
		return gone(err)
	}
	if resp.StatusCode/100 != 2 {
		return statusError(resp.StatusCode, b)
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("answer of %s%s: %w", c.addr, path, err)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("address %s: %w", c.addr, err)
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%s: %w", c.addr, gone(err))
	}
	return resp, nil
}

// gone marks the errors that mean that the other side is not there any more.
func gone(err error) error {
	var op *net.OpError
	if errors.As(err, &op) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// statusError reads an error body, ours or a foreign one.
func statusError(status int, b []byte) error {
	var body wire.ErrorBody
	if json.Unmarshal(b, &body) == nil && body.Error != nil && body.Error.Message != "" {
		return &StatusError{status, body.Error}
	}
	var text struct {
		Error   string `json:"error"`
		Message string `json:"message"`
		Detail  string `json:"detail"`
	}
	json.Unmarshal(b, &text)
	msg := text.Error + text.Message + text.Detail
	if msg == "" {
		msg = strings.TrimSpace(string(b[:min(len(b), 300)]))
		if status == http.StatusNotFound && strings.HasPrefix(msg, "<") { // a page of some web server
			msg = "with a web page: the program at this address runs no models"
		}
	}
	return &StatusError{status, &wire.Error{Message: strings.TrimSpace(fmt.Sprintf("HTTP %d %s %s", status, http.StatusText(status), msg)), Type: "server_error"}}
}

// retryWait is how long Telemetry waits before it asks again: quick at first,
// for an engine that restarts, then slow.
func retryWait(attempt int) time.Duration {
	return min(250*time.Millisecond<<min(attempt, 5), 5*time.Second)
}
