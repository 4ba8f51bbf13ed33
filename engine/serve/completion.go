package serve

import (
	"net/http"
	"time"

	"outcrop/engine"
	"outcrop/engine/token"
	"outcrop/engine/wire"
)

// complete answers POST /v1/completions: text in, text out, no template.
func (s *Server) complete(w http.ResponseWriter, r *http.Request) {
	b, done, herr := s.begin()
	if herr != nil {
		writeError(w, herr)
		return
	}
	defer done()
	var in wire.CompletionRequest
	if err := decode(w, r, &in); err != nil {
		writeError(w, err)
		return
	}
	req, text, err := b.prepareCompletion(&in)
	if err != nil {
		writeError(w, err)
		return
	}
	out := wire.CompletionResponse{ID: "cmpl-" + randomID(), Object: "text_completion", Created: time.Now().Unix(), Model: b.Name}
	c := &completion{b: b, logs: in.LogProbs != nil}
	if in.Echo {
		c.text = text
		c.offset = len(text)
	}
	extra := func(o outcome) *wire.Extra {
		if !in.ReturnTokens {
			o.extra.IDs = nil
			return o.extra
		}
		for _, id := range req.Prompt {
			o.extra.PromptIDs = append(o.extra.PromptIDs, int32(id))
		}
		return o.extra
	}

	if !in.Stream {
		o, err := s.run(r.Context(), b, req, hooks{step: func(st engine.Step) error { c.add(st); return nil }})
		if err != nil {
			if r.Context().Err() == nil {
				writeError(w, err)
			}
			return
		}
		choice := c.take()
		choice.FinishReason = &o.finish
		out.Choices, out.Usage, out.Outcrop = []wire.CompletionChoice{choice}, &o.usage, extra(o)
		writeJSON(w, http.StatusOK, out)
		return
	}

	place, full := s.queue.join()
	if full != nil {
		writeError(w, fromEngine(full))
		return
	}
	st := newStream(w, s.o.Keepalive)
	defer st.end()
	h := hooks{place: place, step: func(step engine.Step) error {
		c.add(step)
		if c.text == "" {
			return nil
		}
		out.Choices = []wire.CompletionChoice{c.take()}
		return st.send("", out)
	}}
	if in.ReturnProgress {
		note := func(e wire.Extra) {
			n := out
			n.Choices, n.Outcrop = []wire.CompletionChoice{}, &e
			st.send("", n)
		}
		h.queued = func(n int) { note(wire.Extra{Phase: "queued", QueueAhead: n}) }
		h.progress = func(done, total int) { note(wire.Extra{Phase: "prefill", Done: done, Total: total}) }
	}
	o, err := s.run(r.Context(), b, req, h)
	if err != nil {
		out.Choices, out.Error = []wire.CompletionChoice{}, &err.e
		st.send("", out)
		return
	}
	choice := c.take()
	choice.FinishReason = &o.finish
	out.Choices, out.Outcrop = []wire.CompletionChoice{choice}, extra(o)
	st.send("", out)
	if in.StreamOptions != nil && in.StreamOptions.IncludeUsage {
		out.Choices, out.Usage, out.Outcrop = []wire.CompletionChoice{}, &o.usage, nil
		st.send("", out)
	}
	st.write([]byte("data: [DONE]\n\n"))
}

func (b *Backend) prepareCompletion(in *wire.CompletionRequest) (engine.Request, string, *httpError) {
	var none engine.Request
	if err := checkModel(b, in.Model); err != nil {
		return none, "", err
	}
	if in.BestOf != nil && *in.BestOf != 1 {
		return none, "", unsupported("best_of", "best_of is %d: this engine gives one answer a request", *in.BestOf)
	}
	var ids []token.ID
	text := in.Prompt.Text
	if in.Prompt.IDs != nil {
		for i, id := range in.Prompt.IDs {
			if id < 0 || int(id) >= b.Tokenizer.Len() {
				return none, "", bad("prompt", "prompt token %d is %d, the vocabulary has %d", i, id, b.Tokenizer.Len())
			}
			ids = append(ids, token.ID(id))
		}
		text = string(b.Tokenizer.Decode(ids, true))
	} else {
		// A raw prompt is written for the model, so its control tokens count.
		ids = b.Tokenizer.Encode(text, token.Options{Special: true, AddBOS: true})
	}
	if err := b.fits("prompt", ids); err != nil {
		return none, "", err
	}
	req, err := b.request(&in.Sampling, ids)
	if err != nil {
		return none, "", err
	}
	if in.LogProbs != nil {
		if req.LogProbs, err = topAsked(true, *in.LogProbs, "logprobs"); err != nil {
			return none, "", err
		}
	}
	return req, text, nil
}

// completion gathers steps into choices.
type completion struct {
	b      *Backend
	text   string
	logs   bool
	lp     wire.CompletionLogProbs
	offset int
}

func (c *completion) add(st engine.Step) {
	if c.logs && st.ID >= 0 {
		t := c.b.tokenLogProb(st)
		top := map[string]float64{}
		for _, p := range t.Top {
			top[p.Token] = p.LogProb
		}
		c.lp.Tokens = append(c.lp.Tokens, t.Token)
		c.lp.TokenLogProbs = append(c.lp.TokenLogProbs, t.LogProb)
		c.lp.TopLogProbs = append(c.lp.TopLogProbs, top)
		c.lp.TextOffset = append(c.lp.TextOffset, c.offset)
		c.offset += len(t.Token)
	}
	c.text += st.Text
}

// take gives what was gathered since the last time.
func (c *completion) take() wire.CompletionChoice {
	ch := wire.CompletionChoice{Text: c.text}
	c.text = ""
	if c.logs {
		lp := c.lp
		c.lp = wire.CompletionLogProbs{}
		ch.LogProbs = &lp
	}
	return ch
}
