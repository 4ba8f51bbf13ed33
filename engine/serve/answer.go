package serve

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"outcrop/engine"
	"outcrop/engine/wire"
)

// hooks are told what happens to a request. Only step is needed. progress may
// be called from another goroutine than step, never at the same time as the
// first step.
type hooks struct {
	place    *ticket // in the queue; nil joins it
	queued   func(ahead int)
	progress func(done, total int)
	step     func(engine.Step) error
}

// outcome is how an answer ended well.
type outcome struct {
	finish  string // stop or length, in OpenAI's words
	extra   *wire.Extra
	usage   wire.Usage
	stopped string // the stop string that was found
}

// run waits for the session and generates. Errors of the engine that leave a
// good answer behind (the context filled up) are outcomes with a note.
func (s *Server) run(ctx context.Context, b *Backend, r engine.Request, h hooks) (outcome, *httpError) {
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.answers, func() { cancel(nil) })()
	queued := h.queued
	if queued == nil {
		queued = func(int) {}
	}
	place := h.place
	if place == nil {
		var err error
		if place, err = s.queue.join(); err != nil {
			return outcome{}, fromEngine(err)
		}
	}
	if err := s.queue.wait(ctx, place, queued); err != nil {
		return outcome{}, fromEngine(err)
	}
	defer s.queue.leave()
	s.mu.Lock()
	s.current = cancel
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.current = nil
		s.mu.Unlock()
	}()
	waited := time.Since(began)
	s.tele.wake()
	defer s.tele.wake()

	var first time.Duration
	started := make(chan struct{})
	var watch sync.WaitGroup
	if h.progress != nil {
		watch.Go(func() { follow(ctx, b, started, h.progress) })
	}
	var once sync.Once
	begun := func() { once.Do(func() { close(started) }) }
	ids := []int32{}
	res, err := b.Session.Generate(ctx, r, func(st engine.Step) error {
		if first == 0 {
			first = time.Since(began)
			begun()
			watch.Wait()
		}
		if st.ID >= 0 {
			ids = append(ids, int32(st.ID))
		}
		return h.step(st)
	})
	begun()
	watch.Wait()

	o := outcome{finish: "stop", stopped: res.StopText}
	o.usage = wire.Usage{
		PromptTokens: res.Prompt, CompletionTokens: res.Generated, TotalTokens: res.Prompt + res.Generated,
		PromptTokensDetails: &wire.PromptDetails{CachedTokens: res.Reused},
	}
	o.extra = &wire.Extra{Finish: res.Reason, StopText: res.StopText, Timings: timings(res, waited, first), IDs: ids}
	o.extra.Timings.ContextUsed, o.extra.Timings.ContextSize = res.Prompt+res.Generated, b.Info.Context
	switch {
	case err == nil && res.Reason == "length":
		o.finish = "length"
	case errors.Is(err, engine.ErrContextFull) && res.Generated > 0:
		o.finish = "length"
		o.extra.Notes = append(o.extra.Notes, err.Error())
	case err != nil:
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		s.log.Info("answer ended", "reason", res.Reason, "tokens", res.Generated, "error", err)
		return o, fromEngine(err)
	}
	s.log.Info("answer", "finish", res.Reason, "prompt", res.Prompt, "reused", res.Reused, "tokens", res.Generated,
		"queue_ms", waited.Milliseconds(), "prompt_ms", res.PromptTime.Milliseconds(), "decode_ms", res.DecodeTime.Milliseconds())
	return o, nil
}

// endAnswer ends the running answer, if there is one, with a reason.
func (s *Server) endAnswer(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil {
		s.current(why)
	}
}

// follow tells how far the prompt is, until the first token.
func follow(ctx context.Context, b *Backend, started <-chan struct{}, tell func(done, total int)) {
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	last := -1
	for {
		select {
		case <-started:
			return
		case <-ctx.Done():
			return
		case <-t.C:
			e := b.Telemetry()
			if e.Phase == "prefill" && e.PrefillDone != last {
				last = e.PrefillDone
				tell(e.PrefillDone, e.PrefillTotal)
			}
		}
	}
}

func timings(r engine.Result, waited, first time.Duration) *wire.Timings {
	t := &wire.Timings{
		PromptN: r.Prompt - r.Reused, Reused: r.Reused, PromptMS: ms(r.PromptTime),
		DecodeN: r.Generated, DecodeMS: ms(r.DecodeTime),
		QueueMS: ms(waited), FirstMS: ms(first), Drafted: r.Drafted, Accepted: r.Accepted,
	}
	if r.PromptTime > 0 {
		t.PromptTokS = float64(t.PromptN) / r.PromptTime.Seconds()
	}
	if r.DecodeTime > 0 {
		t.DecodeTokS = float64(r.Generated) / r.DecodeTime.Seconds()
	}
	// Every step gives one token and the drafts that were right.
	if steps := r.Generated - r.Accepted; steps > 0 {
		t.MSPerStep = t.DecodeMS / float64(steps)
	}
	return t
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// checkModel accepts the pack's name, no name, and names that stand for "the
// one that is loaded".
func checkModel(b *Backend, name string) *httpError {
	switch name {
	case "", b.Name, b.Info.Path, "default", "outcrop":
		return nil
	}
	return fail(http.StatusNotFound, wire.CodeModel, "model", "this engine has %q loaded, not %q", b.Name, name)
}
