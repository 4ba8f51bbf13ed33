package serve

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"outcrop/engine"
	"outcrop/engine/token"
	"outcrop/engine/wire"
)

// chatJob is a chat request that was checked and is ready to run.
type chatJob struct {
	b      *Backend
	req    engine.Request
	reply  *reply
	prompt []token.ID
	notes  []string
}

// prepareChat checks a request and makes its prompt. Nothing has been written
// to the client yet, so every error is a real status.
func (b *Backend) prepareChat(r *wire.ChatRequest) (*chatJob, *httpError) {
	if err := checkModel(b, r.Model); err != nil {
		return nil, err
	}
	if err := checkFormat(r.ResponseFormat); err != nil {
		return nil, err
	}
	top, err := topAsked(r.LogProbs, r.TopLogProbs, "top_logprobs")
	if err != nil {
		return nil, err
	}
	p, err := b.chatPrompt(r)
	if err != nil {
		return nil, err
	}
	if err := b.fits("messages", p.ids); err != nil {
		return nil, err
	}
	s := r.Sampling
	if r.MaxCompletionTokens != nil {
		s.MaxTokens = r.MaxCompletionTokens
	}
	req, err := b.request(&s, p.ids)
	if err != nil {
		return nil, err
	}
	req.LogProbs = top
	j := &chatJob{b: b, req: req, reply: p.reply, prompt: p.ids}
	if b.Template.Fallback() {
		j.notes = append(j.notes, "this pack has no chat template; ChatML stands in")
	}
	return j, nil
}

// checkFormat accepts plain text only: a schema that is not enforced would be
// a false promise (ggml-org/llama.cpp#19051).
func checkFormat(raw json.RawMessage) *httpError {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	var f struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return bad("response_format", "response_format must be an object with a type")
	}
	if f.Type != "text" && f.Type != "" {
		return unsupported("response_format", "response_format %q is not supported: answers cannot be constrained", f.Type)
	}
	return nil
}

func (s *Server) chat(w http.ResponseWriter, r *http.Request) {
	b, done, herr := s.begin()
	if herr != nil {
		writeError(w, herr)
		return
	}
	defer done()
	var in wire.ChatRequest
	if err := decode(w, r, &in); err != nil {
		writeError(w, err)
		return
	}
	j, err := b.prepareChat(&in)
	if err != nil {
		writeError(w, err)
		return
	}
	id, created := "chatcmpl-"+randomID(), time.Now().Unix()
	if in.Stream {
		s.streamChat(w, r, &in, j, id, created)
		return
	}

	var m wire.Message
	var lps []wire.TokenLogProb
	o, err := s.run(r.Context(), b, j.req, hooks{step: func(st engine.Step) error {
		j.reply.push(st.Text, &m)
		if in.LogProbs && st.ID >= 0 {
			lps = append(lps, b.tokenLogProb(st))
		}
		return nil
	}})
	if err != nil {
		if r.Context().Err() == nil {
			writeError(w, err)
		}
		return
	}
	j.reply.end(&m)
	m.Role = "assistant"
	out := wire.ChatResponse{
		ID: id, Object: "chat.completion", Created: created, Model: b.Name, SystemFingerprint: s.fingerprint(),
		Choices: []wire.ChatChoice{{Message: m, FinishReason: j.finish(o, len(m.ToolCalls))}},
		Usage:   o.usage, Outcrop: j.extra(o, in.ReturnTokens),
	}
	for i := range out.Choices[0].Message.ToolCalls {
		out.Choices[0].Message.ToolCalls[i].Index = nil
	}
	if in.LogProbs {
		out.Choices[0].LogProbs = &wire.LogProbs{Content: lps}
	}
	writeJSON(w, http.StatusOK, out)
}

// streamChat writes the answer as it comes.
func (s *Server) streamChat(w http.ResponseWriter, r *http.Request, in *wire.ChatRequest, j *chatJob, id string, created int64) {
	b := j.b
	place, full := s.queue.join()
	if full != nil {
		writeError(w, fromEngine(full))
		return
	}
	chunk := wire.ChatChunk{ID: id, Object: "chat.completion.chunk", Created: created, Model: b.Name, SystemFingerprint: s.fingerprint()}
	st := newStream(w, s.o.Keepalive)
	defer st.end()
	empty := ""
	chunk.Choices = []wire.ChunkChoice{{Delta: wire.Delta{Role: "assistant", Content: &empty}}}
	st.send("", chunk)

	send := func(d wire.Delta, lps []wire.TokenLogProb) error {
		c := wire.ChunkChoice{Delta: d}
		if len(lps) > 0 {
			c.LogProbs = &wire.LogProbs{Content: lps}
		}
		chunk.Choices = []wire.ChunkChoice{c}
		return st.send("", chunk)
	}
	var lps []wire.TokenLogProb
	calls := 0
	deltas := func(m *wire.Message) error {
		if m.ReasoningContent != "" {
			if err := send(wire.Delta{ReasoningContent: m.ReasoningContent}, lps); err != nil {
				return err
			}
			lps = nil
		}
		if m.Content != "" {
			text := string(m.Content)
			if err := send(wire.Delta{Content: &text}, lps); err != nil {
				return err
			}
			lps = nil
		}
		for i := range m.ToolCalls {
			n := calls
			calls++
			m.ToolCalls[i].Index = &n
		}
		if len(m.ToolCalls) > 0 {
			if err := send(wire.Delta{ToolCalls: m.ToolCalls}, lps); err != nil {
				return err
			}
			lps = nil
		}
		return nil
	}
	h := hooks{place: place, step: func(step engine.Step) error {
		if in.LogProbs && step.ID >= 0 {
			lps = append(lps, b.tokenLogProb(step))
		}
		var m wire.Message
		j.reply.push(step.Text, &m)
		return deltas(&m)
	}}
	if in.ReturnProgress {
		note := func(e wire.Extra) {
			st.send("", wire.ChatChunk{ID: id, Object: chunk.Object, Created: created, Model: b.Name, Choices: []wire.ChunkChoice{}, Outcrop: &e})
		}
		h.queued = func(n int) { note(wire.Extra{Phase: "queued", QueueAhead: n}) }
		h.progress = func(done, total int) { note(wire.Extra{Phase: "prefill", Done: done, Total: total}) }
	}
	o, err := s.run(r.Context(), b, j.req, h)
	var m wire.Message
	j.reply.end(&m)
	if derr := deltas(&m); derr != nil && err == nil {
		return
	}
	if err != nil {
		// The stream has begun, so the error is its last event.
		chunk.Choices = []wire.ChunkChoice{}
		chunk.Error = &err.e
		chunk.Outcrop = j.extra(o, in.ReturnTokens)
		st.send("", chunk)
		return
	}
	finish := j.finish(o, calls)
	last := wire.ChunkChoice{FinishReason: &finish}
	if len(lps) > 0 {
		last.LogProbs = &wire.LogProbs{Content: lps}
	}
	chunk.Choices = []wire.ChunkChoice{last}
	chunk.Outcrop = j.extra(o, in.ReturnTokens)
	st.send("", chunk)
	if in.StreamOptions != nil && in.StreamOptions.IncludeUsage {
		chunk.Choices, chunk.Usage, chunk.Outcrop = []wire.ChunkChoice{}, &o.usage, nil
		st.send("", chunk)
	}
	st.write([]byte("data: [DONE]\n\n"))
}

// finish is the reason in OpenAI's words.
func (j *chatJob) finish(o outcome, calls int) string {
	if calls > 0 && o.finish == "stop" {
		return "tool_calls"
	}
	return o.finish
}

// extra is Outcrop's own part of the answer.
func (j *chatJob) extra(o outcome, ids bool) *wire.Extra {
	if o.extra == nil {
		return nil
	}
	o.extra.Notes = append(j.notes, o.extra.Notes...)
	if !ids {
		o.extra.IDs = nil
		return o.extra
	}
	for _, id := range j.prompt {
		o.extra.PromptIDs = append(o.extra.PromptIDs, int32(id))
	}
	return o.extra
}

func (s *Server) fingerprint() string {
	if s.o.Version == "" {
		return ""
	}
	return "outcrop-" + s.o.Version
}

func randomID() string {
	var b [12]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}
