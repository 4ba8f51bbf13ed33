package engine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// Request is one answer asked for.
type Request struct {
	Prompt    []token.ID // the whole timeline, from its first token
	MaxTokens int        // 0: until the context is full
	Sampling  Sampling
	Stop      []string // the answer ends before the first of these
	IgnoreEOG bool     // go on after end-of-generation tokens
	LogProbs  int      // give each step's log probability and the n best; -1: only its own
}

// Step is one token of the answer. Text holds whole characters that are surely
// part of the answer; it is empty while a character or a possible stop string
// is incomplete. A last step with ID -1 may carry the rest of the text.
type Step struct {
	ID      token.ID
	Text    string
	LogProb float32     // natural logarithm, before sampling settings; 0 unless asked
	Top     []TokenProb // the best tokens, when asked
}

// Result tells how an answer ended.
//
// Reason is "stop" (an end token or a stop string), "length" (MaxTokens),
// "context" (then the error is ErrContextFull), "cancelled" (then the error is
// that of the context or of emit), "memory" (then it is ErrMemory) or "error".
type Result struct {
	Reason     string
	StopText   string // the stop string that was found
	Prompt     int    // tokens of the prompt
	Reused     int    // of which were there already
	Generated  int
	PromptTime time.Duration
	DecodeTime time.Duration
	Drafted    int // tokens tried ahead
	Accepted   int // of which were right
}

// maxRepeat equal tokens in a row end an answer with ErrRepeating.
const maxRepeat = 64

// Generate answers a request. emit gets every token from the calling
// goroutine; an error from it ends the answer and is returned. The text that
// came before an error stays valid, and the session can be used again.
func (s *Session) Generate(ctx context.Context, r Request, emit func(Step) error) (Result, error) {
	if err := s.enter(); err != nil {
		return Result{Reason: "error"}, err
	}
	defer s.busy.Store(false)
	tok, err := s.m.pack.Tokenizer()
	if err != nil {
		return Result{Reason: "error"}, err
	}
	res := Result{Reason: "error", Prompt: len(r.Prompt)}
	t := &s.m.tele
	defer t.phase.Store(phaseIdle)

	begin := time.Now()
	res.Reused, err = s.sync(ctx, r.Prompt)
	res.PromptTime = time.Since(begin)
	if err != nil {
		if ctx.Err() != nil {
			res.Reason = "cancelled"
		} else if errors.Is(err, ErrContextFull) {
			res.Reason = "context"
		}
		return res, err
	}
	if r.MaxTokens < 0 {
		return res, fmt.Errorf("max tokens is %d, want 0 or more", r.MaxTokens)
	}

	t.phase.Store(phaseDecode)
	g := answer{
		s: s, r: &r, res: &res, emit: emit, tok: tok,
		sampler: newSampler(r.Sampling),
		text:    newStopper(r.Stop),
		stream:  tok.TagStream(), // tags of calls and reasoning show, so that a reply can be taken apart
	}
	begin = time.Now()
	err = g.run(ctx)
	if ferr := g.flush(); err == nil {
		err = ferr
	}
	res.DecodeTime = time.Since(begin)
	if errors.Is(err, ErrMemory) {
		res.Reason = "memory"
	}
	if err != nil && res.Reason == "error" && (ctx.Err() != nil || g.emitErr != nil) {
		res.Reason = "cancelled"
	}
	return res, err
}

// answer is the state of one call of Generate.
type answer struct {
	s       *Session
	r       *Request
	res     *Result
	emit    func(Step) error
	emitErr error
	tok     *token.Tokenizer
	sampler *sampler
	text    *stopper
	stream  *token.Stream
	window  []token.ID // the token that was drawn, then drafts
	history []token.ID
	repeats int
	last    token.ID
}

// run draws and runs tokens until the answer ends. Each turn runs one window:
// the token drawn last and perhaps drafts after it. Drafts are verified by
// drawing at every position in turn: as long as the draw gives the draft, the
// logits after it are the right ones. So the answer is the same as without
// drafts, greedy or not.
func (g *answer) run(ctx context.Context) error {
	s := g.s
	g.history = append(g.history[:0], g.r.Prompt...)
	id, end, err := g.draw(s.fresh)
	for err == nil && !end {
		if s.st.pos >= s.m.context {
			g.res.Reason = "context"
			return fmt.Errorf("%w: it holds %d tokens and the answer is not finished; start a new chat or load the pack with a larger context",
				ErrContextFull, s.m.context)
		}
		id, end, err = g.step(ctx, id)
	}
	return err
}

// step runs the window that begins with id and draws what follows.
func (g *answer) step(ctx context.Context, id token.ID) (next token.ID, end bool, err error) {
	s, t := g.s, &g.s.m.tele
	begin := time.Now()
	if err := s.m.relief.wait(ctx); err != nil {
		return 0, true, err
	}
	g.window = append(g.window[:0], id)
	room := s.m.context - s.st.pos - 1
	if g.r.MaxTokens > 0 {
		room = min(room, g.r.MaxTokens-g.res.Generated-1)
	}
	if room > 0 {
		g.window = s.drafts.propose(s, g.window, g.history, room)
	}
	n := len(g.window)
	s.p.tentative, s.p.pick = n > 1, g.picking(n)
	err = s.forward(ctx, g.window, n)
	s.p.pick = nil
	if err != nil {
		return 0, true, err
	}
	ran := time.Since(begin)

	right := 1 // tokens of the window that belong to the answer
	for {
		next, end, err = g.at(right-1, n)
		if err != nil || end || right == n || next != g.window[right] {
			break
		}
		right++
	}
	s.fresh = s.fresh[:0]
	if vocab := s.m.spec.vocab; len(s.p.drawn) == 0 && len(s.p.logits) >= right*vocab {
		s.fresh = append(s.fresh, s.p.logits[(right-1)*vocab:right*vocab]...)
	}
	if n > 1 {
		s.st.accept(s.m, n, right)
		g.res.Drafted += n - 1
		g.res.Accepted += right - 1
		t.drafted.Add(int64(n - 1))
		t.accepted.Add(int64(right - 1))
	}
	s.took(g.window, right)
	s.drafts.pace.learn(n, right, ran)

	setFloat(&t.step, ran.Seconds()*1e3)
	setFloat(&t.decode, float64(right)/time.Since(begin).Seconds())
	return next, end, err
}

// at draws the token after position i of a window of n, or takes it from a
// device.
func (g *answer) at(i, n int) (id token.ID, end bool, err error) {
	s, vocab := g.s, g.s.m.spec.vocab
	if len(s.p.drawn) > 0 {
		if id := s.p.drawn[i]; id >= 0 {
			if g.sampler.Temperature > 0 && g.sampler.TopK != 1 {
				g.sampler.random() // which the device has used
			}
			return g.drew(id, nil)
		}
		if err := s.m.fetchLogits(s.p, n); err != nil {
			return 0, true, err
		}
		s.p.drawn = s.p.drawn[:0]
	}
	row := s.p.logits[i*vocab : (i+1)*vocab]
	if err := finite(row, s.st.pos-n+i); err != nil {
		return 0, true, err
	}
	return g.draw(row)
}

// draw picks the next token from logits and hands it out; end says that the
// answer ends with it.
func (g *answer) draw(logits []float32) (id token.ID, end bool, err error) {
	return g.drew(g.sampler.pick(logits, g.history), logits)
}

// drew hands out the token that was drawn; logits are used for log
// probabilities alone.
func (g *answer) drew(id token.ID, logits []float32) (_ token.ID, end bool, err error) {
	g.history = append(g.history, id)
	g.res.Generated++
	g.s.m.tele.tokens.Add(1)
	if id == g.last && g.res.Generated > 1 {
		g.repeats++
	} else {
		g.last, g.repeats = id, 1
	}
	st := Step{ID: id}
	if g.r.LogProbs != 0 {
		st.LogProb, st.Top = logProbs(logits, id, g.r.LogProbs)
	}
	eog := g.tok.IsEOG(id) && !g.r.IgnoreEOG
	if !eog {
		st.Text = g.stream.Push(id)
	}
	ready, found := g.text.push(st)
	for _, st := range ready {
		if err := g.send(st); err != nil {
			return id, true, err
		}
	}
	switch {
	case found != "":
		g.res.Reason, g.res.StopText = "stop", found
		return id, true, nil
	case eog:
		g.res.Reason = "stop"
		return id, true, nil
	case g.repeats >= maxRepeat:
		return id, true, fmt.Errorf("%w: token %d (%q) came %d times in a row; the pack may be damaged or the settings too narrow",
			ErrRepeating, id, g.tok.Piece(id), g.repeats)
	case g.r.MaxTokens > 0 && g.res.Generated >= g.r.MaxTokens:
		g.res.Reason = "length"
		return id, true, nil
	}
	return id, false, nil
}

func (g *answer) send(st Step) error {
	if g.emit == nil {
		return nil
	}
	if err := g.emit(st); err != nil {
		g.emitErr = err
		return err
	}
	return nil
}

// flush hands out what was held back.
func (g *answer) flush() error {
	if g.emitErr != nil || g.res.StopText != "" {
		return nil
	}
	ready := g.text.rest()
	if rest := g.stream.Flush(); rest != "" {
		ready = append(ready, Step{ID: -1, Text: rest})
	}
	for _, st := range ready {
		if err := g.send(st); err != nil {
			return err
		}
	}
	return nil
}

// finite checks the logits of a position: one bad number anywhere in a model
// makes them all bad, and the best of them would be token 0.
func finite(logits []float32, pos int) error {
	if s := float64(quant.SumSquares(logits)); !math.IsNaN(s) && !math.IsInf(s, 0) {
		return nil
	}
	for i, v := range logits {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			return fmt.Errorf("%w: the logit of token %d after position %d is %v; the pack may be damaged, or a device computes wrongly",
				ErrNotFinite, i, pos, v)
		}
	}
	return nil
}
