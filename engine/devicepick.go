package engine

import (
	"context"
	"encoding/binary"
	"errors"
	"math"

	"outcrop/engine/token"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// Tokens drawn on a device. A large vocabulary has half a megabyte of logits a
// token; where an answer needs the drawn token only, that is what is read back.
// Logits are read for log probabilities, bias and penalties, in check mode, and
// whenever the device gives a row back (not finite, or more candidates than it
// looks at).

// picking says how the tokens of a pass are drawn.
type picking struct {
	choice ops.Choice // temperature 0: the best
	u      []float64  // a random number for each token, when there is a temperature
}

// cardPick are the buffers of a run that makes logits.
type cardPick struct {
	sample                       *ops.Sample
	room                         *ops.SampleRoom
	tmpVal, tmpIdx, val, idx, u_ *compute.Buffer
	out                          *compute.Buffer // (rows) token and log probability
	host                         *compute.Host   // numbers, then results
}

// pickRows is the most rows that are drawn at once.
const pickRows = ops.MaxColumns

// canPick tells whether devices can draw tokens.
func (c *cards) canPick() bool {
	return c != nil && c.check == nil && c.runs[len(c.runs)-1].pick.out != nil
}

// pickRoom takes the buffers for drawing; without them logits are read.
func (r *run) pickRoom() (err error) {
	p, m := &r.pick, r.c.m
	if !r.last || r.output.none() || len(m.spec.suppress) > 0 {
		return nil
	}
	if p.sample, err = r.set.Sample(r.rows); err != nil {
		return err
	}
	if p.room, err = ops.NewSampleRoom(r.work, pickRows, m.spec.vocab); err != nil {
		return err
	}
	scratch := ops.BestScratch(pickRows, m.spec.vocab)
	for _, x := range []struct {
		b *(*compute.Buffer)
		n int64
	}{{&p.tmpVal, scratch}, {&p.tmpIdx, scratch}, {&p.val, 4 * pickRows}, {&p.idx, 4 * pickRows}, {&p.u_, 4 * pickRows}, {&p.out, 8 * pickRows}} {
		if *x.b, err = r.work.Alloc(x.n); err != nil {
			return err
		}
	}
	p.host, err = r.dev.Host(4*pickRows + 8*pickRows)
	return err
}

// fillPick puts the random numbers of a pass into pinned memory.
func (r *run) fillPick(p *picking) {
	to := asFloats(r.pick.host.Bytes())
	for i, u := range p.u {
		to[i] = min(float32(u), math.Nextafter32(1, 0)) // below 1 after rounding too
	}
}

// draw enqueues the drawing of rows tokens from the logits.
func (r *run) draw(q *compute.Queue, c ops.Choice, rows int) error {
	p, n := &r.pick, r.c.m.spec.vocab
	if c.Temperature <= 0 {
		if err := r.rows.Best(q, r.buf.logits, rows, n, p.tmpVal, p.tmpIdx, p.val, p.idx); err != nil {
			return err
		}
		return q.ReadHost(p.host, 4*pickRows, p.idx, 0, 4*int64(rows))
	}
	if err := q.WriteHost(p.u_, 0, p.host, 0, 4*int64(rows)); err != nil {
		return err
	}
	if err := p.sample.Draw(q, r.buf.logits, rows, n, c, p.u_, p.room, p.out); err != nil {
		return err
	}
	return q.ReadHost(p.host, 4*pickRows, p.out, 0, 8*int64(rows))
}

// picked gives the tokens that a pass has drawn, -1 where the host has to.
func (r *run) picked(p *pass, rows int) {
	raw := r.pick.host.Bytes()[4*pickRows:]
	step := 8
	if p.pick.choice.Temperature <= 0 {
		step = 4
	}
	p.drawn = p.drawn[:0]
	for i := range rows {
		p.drawn = append(p.drawn, token.ID(int32(binary.LittleEndian.Uint32(raw[i*step:]))))
	}
}

// fetchLogits reads the logits of the last pass, whose tokens were drawn on the
// device.
func (m *Model) fetchLogits(p *pass, rows int) error {
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.cards == nil || m.pool == nil {
		return errors.New("the model is closed")
	}
	r := m.cards.runs[len(m.cards.runs)-1]
	p.logits = grow(&p.logits, rows*m.spec.vocab)
	err := r.dev.Do(func(q *compute.Queue) error { return q.Read(rawFloats(p.logits), r.buf.logits, 0) })
	if err != nil {
		return r.wrap(err)
	}
	m.finishLogits(p.logits)
	return nil
}

// greedy runs one token and draws the likeliest next one, as an answer does.
func (s *Session) greedy(ctx context.Context, ids []token.ID) error {
	if !s.m.cards.canPick() {
		err := s.advance(ctx, ids, 1)
		argmax(s.fresh)
		return err
	}
	s.p.tentative, s.p.pick = false, &picking{}
	err := s.forward(ctx, ids, len(ids))
	s.p.pick = nil
	if err != nil {
		return err
	}
	s.fresh = s.fresh[:0]
	s.took(ids, len(ids))
	if s.p.drawn[0] >= 0 {
		return nil
	}
	if err := s.m.fetchLogits(s.p, 1); err != nil {
		return err
	}
	return finite(s.p.logits, s.st.pos-1)
}

// picking gives what a device needs to draw the tokens of the next n positions,
// nil where the logits are wanted.
func (g *answer) picking(n int) *picking {
	s, m := g.sampler, g.s.m
	if n > pickRows || g.r.LogProbs != 0 || !m.cards.canPick() || len(s.Bias) > 0 || s.penal() {
		return nil
	}
	if s.Temperature <= 0 || s.TopK == 1 {
		return &picking{}
	}
	if m.spec.logitScale != 0 || m.spec.softcap != 0 {
		return nil // draws look at finished logits
	}
	return &picking{choice: ops.Choice{Temperature: s.Temperature, TopK: s.TopK, TopP: s.TopP, MinP: s.MinP}, u: s.ahead(n)}
}
