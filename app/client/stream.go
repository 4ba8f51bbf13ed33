package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"outcrop/engine/wire"
)

// Event is one thing that a stream brought. Fields that it did not bring are
// empty.
type Event struct {
	Text      string
	Reasoning string
	ToolCalls []wire.ToolCall // fragments, joined by their Index
	LogProbs  []wire.TokenLogProb
	Finish    string // stop, length, tool_calls
	Usage     *wire.Usage
	Extra     *wire.Extra // queue, progress, timings; only from our own engine
}

// Stream is an answer that is being written. It belongs to one goroutine.
// Cancelling the context of the request, or Close, stops the engine's work.
type Stream struct {
	body     io.ReadCloser
	sse      *events
	finished bool
}

// Chat asks for an answer and returns when the server has accepted the
// request (for our own engine at once, also when others wait before it). The
// request is sent with stream and usage switched on.
func (c *Client) Chat(ctx context.Context, r wire.ChatRequest) (*Stream, error) {
	r.Stream = true
	r.StreamOptions = &wire.StreamOptions{IncludeUsage: true}
	return c.stream(ctx, "/v1/chat/completions", r)
}

// Complete asks for the continuation of a prompt without chat template.
func (c *Client) Complete(ctx context.Context, r wire.CompletionRequest) (*Stream, error) {
	r.Stream = true
	r.StreamOptions = &wire.StreamOptions{IncludeUsage: true}
	return c.stream(ctx, "/v1/completions", r)
}

func (c *Client) stream(ctx context.Context, path string, in any) (*Stream, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	resp, err := c.do(ctx, http.MethodPost, path, b)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		defer resp.Body.Close()
		b, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
		return nil, statusError(resp.StatusCode, b)
	}
	return &Stream{body: resp.Body, sse: newEvents(resp.Body)}, nil
}

// Close ends the stream; the engine stops within one step.
func (s *Stream) Close() error { return s.body.Close() }

// chunk is what both kinds of stream may bring in one event.
type chunk struct {
	Choices []struct {
		Text         string          `json:"text"`
		Delta        wire.Delta      `json:"delta"`
		LogProbs     json.RawMessage `json:"logprobs"`
		FinishReason *string         `json:"finish_reason"`
	} `json:"choices"`
	Usage   *wire.Usage     `json:"usage"`
	Outcrop *wire.Extra     `json:"outcrop"`
	Error   json.RawMessage `json:"error"`
}

// Next waits for the next event. io.EOF is the good end; ErrGone means the
// engine went away in the middle, and what came so far stays valid.
func (s *Stream) Next() (Event, error) {
	for {
		data, err := s.sse.next()
		switch {
		case err == io.EOF && s.finished:
			return Event{}, io.EOF // some servers leave [DONE] out
		case err == io.EOF:
			return Event{}, fmt.Errorf("the answer broke off: %w", ErrGone)
		case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
			return Event{}, err
		case err != nil:
			return Event{}, fmt.Errorf("the answer broke off: %w", gone(err))
		}
		if bytes.Equal(data, []byte("[DONE]")) {
			return Event{}, io.EOF
		}
		var c chunk
		if err := json.Unmarshal(data, &c); err != nil {
			return Event{}, fmt.Errorf("event of the stream: %w: %.100s", err, data)
		}
		if len(c.Error) > 0 && string(c.Error) != "null" {
			var e wire.Error
			if json.Unmarshal(c.Error, &e) != nil || e.Message == "" {
				e.Message = strings.Trim(string(c.Error), `"`)
			}
			return Event{}, &StatusError{http.StatusInternalServerError, &e}
		}
		ev := Event{Usage: c.Usage, Extra: c.Outcrop}
		for _, ch := range c.Choices {
			ev.Text += ch.Text
			if ch.Delta.Content != nil {
				ev.Text += *ch.Delta.Content
			}
			ev.Reasoning += ch.Delta.ReasoningContent
			ev.ToolCalls = append(ev.ToolCalls, ch.Delta.ToolCalls...)
			if ch.FinishReason != nil {
				ev.Finish = *ch.FinishReason
				s.finished = true
			}
			var lp wire.LogProbs
			if json.Unmarshal(ch.LogProbs, &lp) == nil {
				ev.LogProbs = append(ev.LogProbs, lp.Content...)
			}
		}
		return ev, nil
	}
}

// events reads server-sent events: "data:" lines up to an empty line;
// comments (":") and other fields are passed over.
type events struct{ sc *bufio.Scanner }

// maxEvent bounds one line; a chunk with log probabilities of 20 alternatives
// is a few KiB, an answer in one event from a foreign server may be more.
const maxEvent = 32 << 20

func newEvents(r io.Reader) *events {
	sc := bufio.NewScanner(r)
	sc.Buffer(make([]byte, 0, 64<<10), maxEvent)
	return &events{sc}
}

func (e *events) next() ([]byte, error) {
	var data []byte
	have := false
	for e.sc.Scan() {
		line := e.sc.Bytes()
		if len(line) == 0 {
			if have {
				return data, nil
			}
			continue
		}
		if v, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			if have {
				data = append(data, '\n')
			}
			data = append(data, bytes.TrimPrefix(v, []byte(" "))...)
			have = true
		}
	}
	if err := e.sc.Err(); err != nil {
		return nil, err
	}
	if have {
		return data, nil
	}
	return nil, io.EOF
}
