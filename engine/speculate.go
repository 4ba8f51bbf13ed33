package engine

import (
	"fmt"
	"time"

	"outcrop/engine/token"
)

// draftMode is how drafts are made.
type draftMode int

const (
	draftAuto   draftMode = iota
	draftOff              // none
	draftMTP              // by the pack's own block
	draftLookup           // by what followed the same tokens before
)

func draftModeOf(name string) (draftMode, error) {
	switch name {
	case "", "auto":
		return draftAuto, nil
	case "off":
		return draftOff, nil
	case "mtp":
		return draftMTP, nil
	case "lookup":
		return draftLookup, nil
	}
	return 0, fmt.Errorf("draft mode %q is not known; known are auto, off, mtp, lookup", name)
}

// drafter proposes tokens that may follow, and learns how many pay.
type drafter struct {
	mode  draftMode
	fixed int // drafts per window; 0: as many as pay (tests fix it)
	// guess makes the drafts when it is set (tests: right and wrong ones).
	guess func(n int) []token.ID
	pace  pace

	// Draft block: pairs (hidden state of token p, token p+1) are its input, and
	// entry p of its cache belongs to pair p.
	block  *draft
	p      *pass     // buffers of its own, so that the trunk's results stay
	wide   int       // values of a hidden state
	hidden []float32 // (wide) of the timeline's last token; empty: not known
	have   int       // entries of the cache that were made from true hidden states
	feed   []float32 // (wide) hidden state for the next draft
}

func (d *drafter) init(s *Session) {
	d.mode = s.m.draftBy
	if d.mode != draftMTP {
		return
	}
	d.block = &s.m.drafts[0]
	d.p = &pass{m: s.m, st: s.st, cs: make([][]float32, len(s.m.ropes))}
	d.wide = s.m.spec.dim * max(1, s.m.spec.streams)
}

func (d *drafter) reset() { d.hidden, d.have = d.hidden[:0], 0 }

// cut forgets what belongs to tokens from n on.
func (d *drafter) cut(n int) {
	d.hidden = d.hidden[:0]
	d.have = min(d.have, max(0, n-1))
}

// propose appends drafts to a window that holds the token drawn last; room is
// how many more can be used at most.
func (d *drafter) propose(s *Session, window, history []token.ID, room int) []token.ID {
	n := d.fixed
	if n == 0 {
		n = d.pace.drafts()
	}
	n = min(n, room, maxWindow-1)
	if n <= 0 {
		return window
	}
	if d.guess != nil {
		return append(window, d.guess(n)...)
	}
	switch d.mode {
	case draftMTP:
		return d.chain(s, window, n)
	case draftLookup:
		return lookup(window, history, n)
	}
	return window
}

// chain asks the draft block for n tokens, one after the other: the first from
// the trunk's hidden state, the others from the block's own.
func (d *drafter) chain(s *Session, window []token.ID, n int) []token.ID {
	if len(d.hidden) == 0 {
		return window
	}
	begin := time.Now()
	m := s.m
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.pool == nil {
		return window
	}
	at := s.st.pos - 1
	from := d.hidden
	for i := range n {
		if m.runDraft(d, at+i, from, window[len(window)-1:]) != nil {
			return window // the trunk will say what is wrong
		}
		if i == 0 {
			d.have = s.st.pos
		}
		window = append(window, argmax(d.p.logits))
		d.feed = append(d.feed[:0], m.hiddenRows(d.p, 0, 1)...)
		from = d.feed
	}
	d.pace.draftCost(n, time.Since(begin))
	return window
}

// see fills the block's cache for tokens that the trunk has just run, which
// are at the end of its timeline, and keeps the last hidden state.
func (d *drafter) see(s *Session, ids []token.ID) {
	s.m.turn.Lock()
	defer s.m.turn.Unlock()
	if s.m.pool != nil {
		d.saw(s, ids)
	}
}

// saw is see with the model's turn held.
func (d *drafter) saw(s *Session, ids []token.ID) {
	m, start := s.m, len(s.ids)
	rows := m.hiddenRows(s.p, 0, len(ids))
	// A page that cannot be read spoils drafts only; the next pass says so.
	_ = m.guarded(func() error {
		if start > 0 && d.have < start {
			if len(d.hidden) > 0 {
				m.keepDraft(d, start-1, d.hidden, ids[:1])
			}
			d.have = start
		}
		if n := len(ids) - 1; n > 0 {
			m.keepDraft(d, start, rows[:n*d.wide], ids[1:])
			d.have = start + n
		}
		return nil
	})
	d.hidden = append(d.hidden[:0], rows[(len(ids)-1)*d.wide:len(ids)*d.wide]...)
}

// lookup appends up to n tokens that followed the latest earlier occurrence of
// the last tokens: the longest of four to two tokens that is found.
func lookup(window, history []token.ID, n int) []token.ID {
	end := len(history)
	for size := 4; size >= 2; size-- {
		if end <= size {
			continue
		}
		tail := history[end-size:]
		for i := end - size - 1; i >= 0; i-- {
			if history[i+size-1] != tail[size-1] || !equalIDs(history[i:i+size], tail) {
				continue
			}
			return append(window, history[i+size:min(i+size+n, end)]...)
		}
	}
	return window
}

func equalIDs(a, b []token.ID) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// pace measures what windows cost and how often drafts are right, and from
// that chooses how many drafts to make. It changes speed only.
type pace struct {
	step  [maxWindow + 1]float64 // seconds of a window of n tokens; 0: not measured
	draft float64                // seconds to make one draft
	right float64                // chance that a draft is right, given that those before it are
	known bool
	turns int
}

// most is how many drafts are tried at most when the length is chosen here.
const mostDrafts = 7

// probeEvery is how many windows pass between tries of another length.
const probeEvery = 24

// drafts chooses the number with the best expected tokens per second.
func (c *pace) drafts() int {
	c.turns++
	if c.step[1] == 0 {
		return 0 // measure a plain step first
	}
	if !c.known {
		c.right = 0.7
	}
	best, rate := 0, 0.0
	for n := 0; n <= mostDrafts; n++ {
		if r := c.expected(n); r > rate*1.001 {
			best, rate = n, r
		}
	}
	if c.turns%probeEvery == 0 {
		// Now and then the neighbour: what was measured long ago may be wrong.
		switch {
		case best == 0:
			best = 1
		case c.turns/probeEvery%2 == 0:
			best--
		default:
			best = min(best+1, mostDrafts)
		}
	}
	return best
}

// expected is tokens per second with n drafts: 1 + a + a^2 + ... tokens for a
// window of n+1 and n drafts.
func (c *pace) expected(n int) float64 {
	tokens, chance := 1.0, 1.0
	for range n {
		chance *= c.right
		tokens += chance
	}
	return tokens / (c.window(n+1) + float64(n)*c.draft)
}

// window is the measured or guessed time of a pass over n tokens. Between
// measured sizes it goes straight; beyond them a token more costs what the
// last known one did, or a quarter of a step while nothing is known.
func (c *pace) window(n int) float64 {
	if c.step[n] > 0 {
		return c.step[n]
	}
	lo := n - 1
	for c.step[lo] == 0 {
		lo--
	}
	hi := n + 1
	for hi <= maxWindow && c.step[hi] == 0 {
		hi++
	}
	if hi <= maxWindow {
		return c.step[lo] + (c.step[hi]-c.step[lo])*float64(n-lo)/float64(hi-lo)
	}
	slope := c.step[1] / 4
	if lo > 1 {
		slope = (c.step[lo] - c.step[1]) / float64(lo-1)
	}
	return c.step[lo] + slope*float64(n-lo)
}

// learn records a window of n tokens of which right were used.
func (c *pace) learn(n, right int, took time.Duration) {
	smooth(&c.step[n], took.Seconds(), 0.2)
	if n == 1 {
		return
	}
	// Of the drafts that were reached, right-1 were right and at most one wrong.
	if !c.known {
		c.known, c.right = true, 0.7
	}
	for i := 1; i < n; i++ {
		if i < right {
			c.right += 0.05 * (1 - c.right)
			continue
		}
		c.right -= 0.05 * c.right
		break
	}
}

func (c *pace) draftCost(n int, took time.Duration) {
	smooth(&c.draft, took.Seconds()/float64(n), 0.2)
}

// smooth moves an average towards a value; the first value is the average.
func smooth(avg *float64, v, by float64) {
	if *avg == 0 {
		*avg = v
		return
	}
	*avg += by * (v - *avg)
}
