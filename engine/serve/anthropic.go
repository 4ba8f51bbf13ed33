package serve

import (
	"encoding/json"
	"net/http"

	"outcrop/engine"
	"outcrop/engine/wire"
)

// messages answers POST /v1/messages in Anthropic's shape. The request is
// translated to a chat request, so that both interfaces mean the same.
func (s *Server) messages(w http.ResponseWriter, r *http.Request) {
	b, done, herr := s.begin()
	if herr != nil {
		writeAnthropicError(w, herr)
		return
	}
	defer done()
	in, j, herr := b.prepareMessages(w, r)
	if herr != nil {
		writeAnthropicError(w, herr)
		return
	}
	id := "msg_" + randomID()
	if in.Stream {
		s.streamMessages(w, r, j, id)
		return
	}
	var m wire.Message
	o, herr := s.run(r.Context(), b, j.req, hooks{step: func(st engine.Step) error { j.reply.push(st.Text, &m); return nil }})
	if herr != nil {
		if r.Context().Err() == nil {
			writeAnthropicError(w, herr)
		}
		return
	}
	j.reply.end(&m)
	out := wire.AnthropicResponse{
		ID: id, Type: "message", Role: "assistant", Model: b.Name, Content: []wire.AnthropicBlock{},
		Usage: anthropicUsage(o),
	}
	if m.ReasoningContent != "" {
		out.Content = append(out.Content, wire.AnthropicBlock{Type: "thinking", Thinking: m.ReasoningContent})
	}
	if m.Content != "" {
		out.Content = append(out.Content, wire.AnthropicBlock{Type: "text", Text: string(m.Content)})
	}
	for _, c := range m.ToolCalls {
		out.Content = append(out.Content, wire.AnthropicBlock{Type: "tool_use", ID: c.ID, Name: c.Function.Name, Input: input(c)})
	}
	out.StopReason, out.StopSequence = stopReason(o, len(m.ToolCalls))
	writeJSON(w, http.StatusOK, out)
}

func (b *Backend) prepareMessages(w http.ResponseWriter, r *http.Request) (*wire.AnthropicRequest, *chatJob, *httpError) {
	var in wire.AnthropicRequest
	if err := decode(w, r, &in); err != nil {
		return nil, nil, err
	}
	if in.MaxTokens < 1 {
		return nil, nil, bad("max_tokens", "max_tokens is %d, want at least 1", in.MaxTokens)
	}
	chat, herr := toChat(&in)
	if herr != nil {
		return nil, nil, herr
	}
	// Programs written for this interface send the names of its makers'
	// models and cannot be told otherwise; the loaded pack answers.
	chat.Model = ""
	j, herr := b.prepareChat(chat)
	return &in, j, herr
}

// toChat translates a request.
func toChat(in *wire.AnthropicRequest) (*wire.ChatRequest, *httpError) {
	out := &wire.ChatRequest{Sampling: wire.Sampling{
		MaxTokens: &in.MaxTokens, Temperature: in.Temperature, TopP: in.TopP, TopK: in.TopK, Stop: in.StopSequences,
	}}
	if in.System != "" {
		out.Messages = append(out.Messages, wire.Message{Role: "system", Content: wire.Content(in.System)})
	}
	for _, m := range in.Messages {
		if m.Role != "user" && m.Role != "assistant" {
			return nil, bad("messages", "role %q is not one of user, assistant", m.Role)
		}
		msg := wire.Message{Role: m.Role}
		for _, c := range m.Content {
			switch c.Type {
			case "text":
				msg.Content += wire.Content(c.Text)
			case "thinking":
				msg.ReasoningContent += c.Thinking
			case "redacted_thinking":
			case "tool_use":
				msg.ToolCalls = append(msg.ToolCalls, wire.ToolCall{ID: c.ID, Type: "function", Function: wire.FunctionCall{Name: c.Name, Arguments: string(c.Input)}})
			case "tool_result":
				// A result is a turn of its own for a template.
				if msg.Content != "" {
					out.Messages = append(out.Messages, msg)
					msg = wire.Message{Role: m.Role}
				}
				out.Messages = append(out.Messages, wire.Message{Role: "tool", ToolCallID: c.ToolUseID, Content: wire.Content(c.Content.Text())})
			default:
				return nil, unsupported("messages", "content of type %q is not supported: this engine reads text only", c.Type)
			}
		}
		if msg.Content != "" || msg.ReasoningContent != "" || len(msg.ToolCalls) > 0 {
			out.Messages = append(out.Messages, msg)
		}
	}
	for _, t := range in.Tools {
		if t.Type != "" && t.Type != "custom" {
			return nil, unsupported("tools", "tool type %q is not supported", t.Type)
		}
		raw, err := json.Marshal(map[string]any{"type": "function", "function": struct {
			Name        string          `json:"name"`
			Description string          `json:"description,omitempty"`
			Parameters  json.RawMessage `json:"parameters,omitempty"`
		}{t.Name, t.Description, t.InputSchema}})
		if err != nil {
			return nil, bad("tools", "tool %q: %v", t.Name, err)
		}
		out.Tools = append(out.Tools, raw)
	}
	if in.ToolChoice != nil {
		switch in.ToolChoice.Type {
		case "auto":
		case "none":
			out.Tools = nil
		default:
			return nil, unsupported("tool_choice", "tool_choice %q is not supported: the model decides whether it calls", in.ToolChoice.Type)
		}
	}
	if in.Thinking != nil {
		out.TemplateArgs = map[string]any{"enable_thinking": in.Thinking.Type == "enabled" || in.Thinking.Type == "adaptive"}
	}
	return out, nil
}

// countTokens answers POST /v1/messages/count_tokens.
func (s *Server) countTokens(w http.ResponseWriter, r *http.Request) {
	b, herr := s.ready()
	if herr != nil {
		writeAnthropicError(w, herr)
		return
	}
	var in wire.AnthropicRequest
	if herr := decode(w, r, &in); herr != nil {
		writeAnthropicError(w, herr)
		return
	}
	in.MaxTokens = 1
	chat, herr := toChat(&in)
	if herr == nil {
		var p chatPrompt
		if p, herr = b.chatPrompt(chat); herr == nil {
			writeJSON(w, http.StatusOK, map[string]int{"input_tokens": len(p.ids)})
			return
		}
	}
	writeAnthropicError(w, herr)
}

// streamMessages writes the events of Anthropic's streams: message_start, then
// for each block its start, deltas and stop, then message_delta and
// message_stop.
func (s *Server) streamMessages(w http.ResponseWriter, r *http.Request, j *chatJob, id string) {
	place, full := s.queue.join()
	if full != nil {
		writeAnthropicError(w, fromEngine(full))
		return
	}
	st := newStream(w, s.o.Keepalive)
	defer st.end()
	type m map[string]any
	st.send("message_start", m{"type": "message_start", "message": wire.AnthropicResponse{
		ID: id, Type: "message", Role: "assistant", Model: j.b.Name, Content: []wire.AnthropicBlock{},
		Usage: wire.AnthropicUsage{InputTokens: len(j.prompt)},
	}})
	st.send("ping", m{"type": "ping"})
	block, open, calls := -1, "", 0
	end := func() {
		if open != "" {
			st.send("content_block_stop", m{"type": "content_block_stop", "index": block})
			open = ""
		}
	}
	begin := func(kind string, b m) {
		if open != kind {
			end()
			block++
			open = kind
			st.send("content_block_start", m{"type": "content_block_start", "index": block, "content_block": b})
		}
	}
	delta := func(d m) error {
		return st.send("content_block_delta", m{"type": "content_block_delta", "index": block, "delta": d})
	}
	emit := func(x *wire.Message) (err error) {
		if x.ReasoningContent != "" {
			begin("thinking", m{"type": "thinking", "thinking": "", "signature": ""})
			err = delta(m{"type": "thinking_delta", "thinking": x.ReasoningContent})
		}
		if x.Content != "" {
			begin("text", m{"type": "text", "text": ""})
			err = delta(m{"type": "text_delta", "text": string(x.Content)})
		}
		for _, c := range x.ToolCalls {
			end()
			calls++
			begin("tool_use", m{"type": "tool_use", "id": c.ID, "name": c.Function.Name, "input": m{}})
			err = delta(m{"type": "input_json_delta", "partial_json": string(input(c))})
			end()
		}
		return err
	}
	o, herr := s.run(r.Context(), j.b, j.req, hooks{place: place, step: func(step engine.Step) error {
		var x wire.Message
		j.reply.push(step.Text, &x)
		return emit(&x)
	}})
	var x wire.Message
	j.reply.end(&x)
	emit(&x)
	end()
	if herr != nil {
		st.send("error", anthropicError(herr))
		return
	}
	reason, seq := stopReason(o, calls)
	st.send("message_delta", m{"type": "message_delta", "delta": m{"stop_reason": reason, "stop_sequence": seq}, "usage": anthropicUsage(o)})
	st.send("message_stop", m{"type": "message_stop"})
}

// anthropicUsage counts tokens that were kept from before beside the others,
// not among them, as that interface does.
func anthropicUsage(o outcome) wire.AnthropicUsage {
	kept := o.usage.PromptTokensDetails.CachedTokens
	return wire.AnthropicUsage{InputTokens: o.usage.PromptTokens - kept, OutputTokens: o.usage.CompletionTokens, CacheRead: kept}
}

func stopReason(o outcome, calls int) (reason string, seq *string) {
	switch {
	case calls > 0 && o.finish == "stop":
		return "tool_use", nil
	case o.stopped != "":
		return "stop_sequence", &o.stopped
	case o.finish == "length":
		return "max_tokens", nil
	}
	return "end_turn", nil
}

// input is a call's arguments as an object; text that is none is wrapped.
func input(c wire.ToolCall) json.RawMessage {
	if json.Valid([]byte(c.Function.Arguments)) {
		return json.RawMessage(c.Function.Arguments)
	}
	b, _ := json.Marshal(map[string]string{"text": c.Function.Arguments})
	return b
}

func anthropicError(h *httpError) wire.AnthropicError {
	kind := h.e.Type
	switch {
	case h.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case h.status == http.StatusServiceUnavailable:
		kind = "overloaded_error"
	case h.status >= 500:
		kind = "api_error"
	}
	return wire.AnthropicError{Type: "error", Error: wire.AnthropicErrorDetail{Type: kind, Message: h.Error()}}
}

func writeAnthropicError(w http.ResponseWriter, h *httpError) {
	writeJSON(w, h.status, anthropicError(h))
}
