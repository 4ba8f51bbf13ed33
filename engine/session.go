package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"outcrop/engine/token"
)

// Errors that callers act on.
var (
	// ErrContextFull: the prompt or the answer does not fit into the context.
	ErrContextFull = errors.New("the context is full")
	// ErrPackLost: the pack's file was cut or could not be read any more.
	ErrPackLost = errors.New("the pack's file changed or its disk failed")
	// ErrNotFinite: the logits hold a NaN or an infinity, so that any token would be a lie.
	ErrNotFinite = errors.New("the model computed numbers that are not finite")
	// ErrRepeating: the answer is one token without end.
	ErrRepeating = errors.New("the answer repeats one token without end")
	errBusy      = errors.New("the session is in use")
)

// Session is one timeline of tokens and what the layers keep of it. The caller
// hands over the whole token prefix each time; the session finds out what it
// has of it already. It belongs to one goroutine at a time.
type Session struct {
	m   *Model
	st  *state
	p   *pass
	ids []token.ID // the tokens in st; len(ids) == st.pos

	// What recurrent layers need to go back: copies of their state at some
	// positions, oldest first.
	snaps []snapshot
	// broken: a pass was left half way, so recurrent states are neither before
	// nor after it.
	broken bool

	fresh []float32 // (vocab) logits after the last token; empty when not known

	drafts drafter // proposes tokens that may follow
	busy   atomic.Bool

	scratch int64 // bytes of buffers that telemetry counts
}

// snapshot is a copy of all recurrent state after pos tokens, with what came
// out there, so that the same prompt needs no pass at all.
type snapshot struct {
	pos    int
	s      [][]float32 // per layer: state and convolution history; nil for attention
	logits []float32
	hidden []float32
}

// A session keeps up to maxSnapshots copies, fewer where they are large, but
// never less than minSnapshots: those of the last prompt and one before.
const (
	maxSnapshots  = 6
	minSnapshots  = 3
	snapshotBytes = 128 << 20
)

// snapshotEdge is how far before the end of a prompt a copy is made beside the
// one at its end: the next prompt of a chat often differs in the last few
// tokens, where this one asked for an answer.
const snapshotEdge = 16

// snapshotEvery is how many prompt tokens lie between copies at most.
const snapshotEvery = 2048

// Close gives the memory of the session back.
func (s *Session) Close() error {
	if s.st != nil {
		s.m.tele.kv.Add(-s.st.bytes())
		s.st.cards.free()
		s.m.tele.scratch.Add(-s.scratch)
		s.st, s.p, s.snaps = nil, nil, nil
	}
	return nil
}

// count tells telemetry how large the buffers have become.
func (s *Session) count() {
	n := s.p.bytes()
	if s.drafts.p != nil {
		n += s.drafts.p.bytes()
	}
	for i := range s.snaps {
		n += 4 * int64(cap(s.snaps[i].logits))
		for _, x := range s.snaps[i].s {
			n += 4 * int64(cap(x))
		}
	}
	s.m.tele.scratch.Add(n - s.scratch)
	s.scratch = n
}

// Tokens is how many tokens the session holds.
func (s *Session) Tokens() int { return len(s.ids) }

// Reset forgets the timeline.
func (s *Session) Reset() {
	s.st.reset()
	s.ids, s.snaps, s.fresh, s.broken = s.ids[:0], nil, s.fresh[:0], false
	s.drafts.reset()
}

func (s *Session) enter() error {
	if !s.busy.CompareAndSwap(false, true) {
		return errBusy
	}
	if s.st == nil {
		s.busy.Store(false)
		return errors.New("the session is closed")
	}
	return nil
}

// checkIDs refuses tokens outside of the vocabulary.
func (s *Session) checkIDs(ids []token.ID) error {
	for i, id := range ids {
		if id < 0 || int(id) >= s.m.spec.vocab {
			return fmt.Errorf("token %d is %d, the vocabulary has %d", i, id, s.m.spec.vocab)
		}
	}
	return nil
}

// sync makes the timeline equal to prompt and leaves the logits of its last
// token in s.fresh. It returns how many tokens were there already.
func (s *Session) sync(ctx context.Context, prompt []token.ID) (reused int, err error) {
	if len(prompt) == 0 {
		return 0, errors.New("the prompt has no tokens")
	}
	if err := s.checkIDs(prompt); err != nil {
		return 0, fmt.Errorf("prompt: %w", err)
	}
	if len(prompt) > s.m.context {
		return 0, fmt.Errorf("%w: the prompt has %d tokens, the context holds %d; shorten it or load the pack with a larger context",
			ErrContextFull, len(prompt), s.m.context)
	}
	reused = s.rewind(prompt)
	t := &s.m.tele
	t.phase.Store(phasePrefill)
	t.prefillTotal.Store(int64(len(prompt) - reused))
	t.prefillDone.Store(0)
	begin := time.Now()
	edge := 0
	if n := len(prompt) - snapshotEdge; s.m.recurrent && n-reused > 2*snapshotEdge {
		edge = n
	}
	progress := func() {
		done := len(s.ids) - reused
		t.prefillDone.Store(int64(done))
		if sec := time.Since(begin).Seconds(); sec > 0 {
			setFloat(&t.prefill, float64(done)/sec)
		}
		if s.m.options.Progress != nil {
			s.m.options.Progress("prefill", int64(done), int64(len(prompt)-reused))
		}
	}
	for s.st.pos < len(prompt) {
		end := s.stop(edge, len(prompt))
		last := 0
		if end == len(prompt) {
			last = 1
		}
		if err := s.prefill(ctx, prompt[s.st.pos:end], last, progress); err != nil {
			return reused, err
		}
		s.snap()
	}
	s.count()
	return reused, nil
}

// stop is up to where a prompt of n tokens can be run before a copy of the
// recurrent states is due: at edge, where there is one, and every snapshotEvery
// tokens, at the end of a chunk.
func (s *Session) stop(edge, n int) int {
	if s.m.recurrent {
		due := max(s.lastSnap()+snapshotEvery-s.st.pos, 1)
		n = min(n, s.st.pos+(due+s.m.chunk-1)/s.m.chunk*s.m.chunk)
	}
	if s.st.pos < edge {
		n = min(n, edge)
	}
	return n
}

// rewind cuts the timeline back to the longest usable common prefix with
// prompt and returns its length.
func (s *Session) rewind(prompt []token.ID) int {
	n := 0
	for n < len(s.ids) && n < len(prompt) && s.ids[n] == prompt[n] {
		n++
	}
	if n == len(prompt) && n == len(s.ids) && len(s.fresh) > 0 && !s.broken {
		return n // nothing to do at all
	}
	if !s.st.reaches(s.m, max(0, min(n, len(prompt)-2))) {
		s.Reset()
		return 0
	}
	if s.m.recurrent {
		return s.restore(n, len(prompt))
	}
	// One token at least must run to give logits; with drafts one more, since
	// the draft block pairs each hidden state with the token after it.
	n = min(n, len(prompt)-1)
	if n < s.st.pos && n > 0 && s.drafts.block != nil {
		n--
	}
	s.cut(n)
	return n
}

// cut drops all tokens from n on; attention needs no more than that.
func (s *Session) cut(n int) {
	if n < len(s.ids) {
		s.fresh = s.fresh[:0]
		s.drafts.cut(n)
	}
	s.ids = s.ids[:n]
	s.st.pos = n
	s.broken = false
}

// restore brings recurrent state back to the best point that is not after n.
func (s *Session) restore(n, prompt int) int {
	if n == len(s.ids) && n < prompt && !s.broken {
		return n // the prompt goes on where the timeline ends
	}
	for i := len(s.snaps) - 1; i >= 0; i-- {
		c := &s.snaps[i]
		if c.pos > n || c.pos == prompt && len(c.logits) == 0 {
			continue
		}
		s.snaps = s.snaps[:i+1]
		s.cut(c.pos)
		s.st.kept = 0
		for j := range s.st.layers {
			if c.s[j] == nil {
				continue
			}
			mem := &s.st.layers[j]
			copy(mem.s, c.s[j])
			copy(mem.hist, c.s[j][len(mem.s):])
			copy(mem.gram, c.s[j][len(mem.s)+len(mem.hist):])
		}
		if s.st.cards != nil {
			s.st.cards.lost = s.st.cards.push(s.st)
		}
		s.fresh = append(s.fresh[:0], c.logits...)
		s.drafts.hidden = append(s.drafts.hidden[:0], c.hidden...)
		return c.pos
	}
	s.Reset()
	return 0
}

func (s *Session) lastSnap() int {
	if len(s.snaps) == 0 {
		return 0
	}
	return s.snaps[len(s.snaps)-1].pos
}

// snap copies the recurrent state at the current position. When there are too
// many copies, the one whose neighbours are closest goes; the newest stays.
func (s *Session) snap() {
	if !s.m.recurrent || s.lastSnap() == s.st.pos && len(s.snaps) > 0 {
		return
	}
	s.st.settle(s.m)
	c := snapshot{pos: s.st.pos}
	most := maxSnapshots
	if b := s.st.recurrentBytes(); b > 0 {
		most = int(min(maxSnapshots, max(minSnapshots, snapshotBytes/b)))
	}
	if len(s.snaps) >= most {
		worst, least := 0, int(^uint(0)>>1)
		for i := range s.snaps {
			before, after := 0, s.st.pos
			if i > 0 {
				before = s.snaps[i-1].pos
			}
			if i+1 < len(s.snaps) {
				after = s.snaps[i+1].pos
			}
			if gap := after - before; gap < least {
				worst, least = i, gap
			}
		}
		c.s = s.snaps[worst].s // its memory is used again
		s.snaps = append(s.snaps[:worst], s.snaps[worst+1:]...)
	}
	if c.s == nil {
		c.s = make([][]float32, len(s.st.layers))
	}
	for j := range s.st.layers {
		if mem := &s.st.layers[j]; mem.s != nil || mem.hist != nil || mem.gram != nil {
			c.s[j] = append(append(append(c.s[j][:0], mem.s...), mem.hist...), mem.gram...)
		}
	}
	c.logits = append(c.logits, s.fresh...)
	c.hidden = append(c.hidden, s.drafts.hidden...)
	s.snaps = append(s.snaps, c)
}

// advance runs ids after the timeline. With outputs == 1 the logits of the last
// token are in s.fresh afterwards.
func (s *Session) advance(ctx context.Context, ids []token.ID, outputs int) error {
	if err := s.m.relief.wait(ctx); err != nil {
		return err
	}
	s.p.tentative = false
	if err := s.forward(ctx, ids, outputs); err != nil {
		return err
	}
	s.took(ids, len(ids))
	if outputs > 0 {
		s.fresh = append(s.fresh[:0], s.p.logits[(outputs-1)*s.m.spec.vocab:]...)
		return finite(s.fresh, s.st.pos-1)
	}
	s.fresh = s.fresh[:0]
	return nil
}

// forward is one pass with the workers held.
func (s *Session) forward(ctx context.Context, ids []token.ID, outputs int) error {
	m := s.m
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.pool == nil {
		return errors.New("the model is closed")
	}
	if m.relaid.drop.Load() {
		m.unrelay()
	}
	err := m.guarded(func() error { return m.forward(ctx, s.p, ids, outputs) })
	s.p.enlarge()
	if m.maps.wanted.Load() {
		m.mapResidency()
	}
	if err != nil {
		s.broken = m.recurrent
	}
	return err
}

// guarded runs a pass and turns a page of the pack that cannot be read into an
// error.
func (m *Model) guarded(pass func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			if !isFault(r) {
				panic(r)
			}
			m.pool.lost.Store(true)
		}
		if m.pool.lost.Load() {
			m.pool.lost.Store(false)
			err = fmt.Errorf("%w: %s; open it again", ErrPackLost, m.pack.Path)
		}
	}()
	return pass()
}

// took records that n of ids, which the last pass ran, are now in the timeline,
// and lets the draft block see them.
func (s *Session) took(ids []token.ID, n int) {
	if s.drafts.block != nil {
		s.drafts.see(s, ids[:n])
	}
	s.ids = append(s.ids, ids[:n]...)
	s.m.tele.used.Store(int64(len(s.ids)))
}

// Logits runs ids as a timeline of their own and returns the logits of every
// position, (len(ids), vocab).
func (s *Session) Logits(ctx context.Context, ids []token.ID) ([]float32, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.busy.Store(false)
	if err := s.checkIDs(ids); err != nil {
		return nil, err
	}
	if len(ids) > s.m.context {
		return nil, fmt.Errorf("%w: %d tokens, the context holds %d", ErrContextFull, len(ids), s.m.context)
	}
	s.Reset()
	defer s.m.tele.phase.Store(phaseIdle)
	s.m.tele.phase.Store(phasePrefill)
	out := make([]float32, 0, len(ids)*s.m.spec.vocab)
	// Small chunks: the logits of a chunk are a buffer of their own.
	for len(ids) > 0 {
		n := min(len(ids), s.m.chunk, 128)
		s.p.tentative = false
		if err := s.forward(ctx, ids[:n], n); err != nil {
			return nil, err
		}
		s.took(ids[:n], n)
		out = append(out, s.p.logits[:n*s.m.spec.vocab]...)
		ids = ids[n:]
	}
	s.fresh = s.fresh[:0]
	return out, nil
}
