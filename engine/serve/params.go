package serve

import (
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"

	"outcrop/engine"
	"outcrop/engine/token"
	"outcrop/engine/wire"
)

// maxStops and maxStopLen bound stop strings: each is looked for at every
// token.
const (
	maxStops   = 32
	maxStopLen = 1000
	maxTop     = 20 // alternatives with log probabilities
)

// request makes an engine request of the sampling part of a body. prompt has
// been checked against the context before.
func (b *Backend) request(p *wire.Sampling, prompt []token.ID) (engine.Request, *httpError) {
	r := engine.Request{Prompt: prompt, IgnoreEOG: p.IgnoreEOS}
	if p.N != nil && *p.N != 1 {
		return r, unsupported("n", "n is %d: this engine gives one answer a request", *p.N)
	}
	if p.MaxTokens != nil {
		switch n := *p.MaxTokens; {
		case n == -1: // until the context is full
		case n < 1:
			return r, bad("max_tokens", "max_tokens is %d, want at least 1, or -1 for no limit", n)
		default:
			r.MaxTokens = n
		}
	}
	s := engine.Sampling{
		Temperature: b.Defaults.Temperature, TopP: b.Defaults.TopP, MinP: b.Defaults.MinP,
		TopK: b.Defaults.TopK, Repeat: b.Defaults.Repeat,
	}
	repeat := p.RepeatPenalty
	if repeat == nil {
		repeat = p.RepetitionPenalty // the name other servers use
	}
	for _, f := range []struct {
		name     string
		in       *float64
		out      *float32
		min, max float64
	}{
		{"temperature", p.Temperature, &s.Temperature, 0, 100},
		{"top_p", p.TopP, &s.TopP, 0, 1},
		{"min_p", p.MinP, &s.MinP, 0, 1},
		{"repeat_penalty", repeat, &s.Repeat, 0.01, 100},
		{"presence_penalty", p.PresencePenalty, &s.Presence, -2, 2},
		{"frequency_penalty", p.FrequencyPenalty, &s.Frequency, -2, 2},
	} {
		if f.in == nil {
			continue
		}
		if v := *f.in; v < f.min || v > f.max || v != v {
			return r, bad(f.name, "%s is %v, want %v to %v", f.name, v, f.min, f.max)
		}
		*f.out = float32(*f.in)
	}
	if p.TopP != nil && *p.TopP == 0 {
		s.TopP = math.SmallestNonzeroFloat32 // for the engine 0 is "off", for clients "only the best"
	}
	if p.TopK != nil {
		if *p.TopK < -1 {
			return r, bad("top_k", "top_k is %d, want 0 or more", *p.TopK)
		}
		s.TopK = max(*p.TopK, 0)
	}
	if p.RepeatLastN != nil {
		s.RepeatLast = *p.RepeatLastN
		if s.RepeatLast == 0 {
			s.Repeat, s.Presence, s.Frequency = 0, 0, 0 // looking at none of the last tokens
		}
	}
	// A seed is only a seed: it leaves the temperature alone (ollama PR 5045).
	if p.Seed != nil && *p.Seed != -1 {
		s.Seed = uint64(*p.Seed)
	} else {
		s.Seed = rand.Uint64()
	}
	if len(p.LogitBias) > 0 {
		s.Bias = make(map[token.ID]float32, len(p.LogitBias))
		for k, v := range p.LogitBias {
			id, err := strconv.ParseInt(k, 10, 32)
			if err != nil || id < 0 || int(id) >= b.Tokenizer.Len() {
				return r, bad("logit_bias", "logit_bias key %q is not a token id below %d", k, b.Tokenizer.Len())
			}
			if v != v || v > 100 {
				return r, bad("logit_bias", "logit_bias of %s is %v, want -100 to 100", k, v)
			}
			s.Bias[token.ID(id)] = float32(v)
			if v <= -100 { // OpenAI's reference: -100 bans the token
				s.Bias[token.ID(id)] = float32(math.Inf(-1))
			}
		}
	}
	if len(p.Stop) > maxStops {
		return r, bad("stop", "%d stop strings, at most %d", len(p.Stop), maxStops)
	}
	for _, t := range p.Stop {
		if len(t) > maxStopLen {
			return r, bad("stop", "a stop string of %d bytes, at most %d", len(t), maxStopLen)
		}
		if t != "" {
			r.Stop = append(r.Stop, t)
		}
	}
	r.Sampling = s
	return r, nil
}

// fits refuses a prompt that leaves no room for an answer, with the numbers.
func (b *Backend) fits(param string, prompt []token.ID) *httpError {
	if len(prompt) == 0 {
		return bad(param, "the prompt has no tokens")
	}
	if n := b.Info.Context; len(prompt) >= n {
		h := fail(http.StatusBadRequest, wire.CodeContext, param,
			"the prompt has %d tokens and the context of this engine holds %d, so there is no room for an answer", len(prompt), n)
		h.e.PromptTokens, h.e.ContextSize = len(prompt), n
		h.e.Next = "shorten the prompt, start a new chat, or start the engine with a larger --context"
		if b.Info.ContextTrain > 0 && n >= b.Info.ContextTrain {
			h.e.Next = "shorten the prompt or start a new chat; this pack was trained for no larger context"
		}
		return h
	}
	return nil
}
