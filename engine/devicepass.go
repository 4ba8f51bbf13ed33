package engine

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"outcrop/engine/quant"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// deviceTimes sums what passes took since load, in nanoseconds. A device's time
// is that of its turns as the host sees them; waiting is the part of it in which
// the CPU had nothing to compute.
type deviceTimes struct {
	device, cpu, wait atomic.Int64
	steps             atomic.Int64
}

// feed is what a pass takes from the host on its way through the devices.
type feed struct {
	pos, tokens int
	outputs     int // of the last tokens the logits are wanted
	kept, book  int // of the timeline, see state
	tentative   bool
	cs          [][]float32 // per rotation: (tokens, dims)
	x           []float32   // (tokens, dim) the residual stream before the next device
	hop         *hop        // by which it comes instead
}

// step is one pass on one run.
type step struct {
	p       *pass
	s       *runState
	T       int
	outputs int
	context int // positions seen, rounded up
	keep    bool
	book    int
	hidden  bool

	in, xHost *compute.Host // the pinned memory that it uses
	hop       *hop          // x comes by it, not with in
	ready     bool          // all other inputs are on the device
	seen      *[]shown      // check mode takes down results of operations
	ids       []int32       // and the experts that were chosen
	pick      *ops.Choice   // how tokens are drawn; nil: logits are wanted
}

// forward runs p.x through the layers of all devices and leaves the logits of
// the last outputs tokens in p.logits; with drafts by the pack's own block, the
// normed hidden states in p.norm.
func (c *cards) forward(ctx context.Context, p *pass, outputs int) error {
	if err := p.st.cards.lost; err != nil {
		return err
	}
	c.times.steps.Add(1)
	p.drawn = p.drawn[:0]
	if outputs > pickRows || !c.canPick() {
		p.pick = nil
	}
	n := outputs * c.m.spec.vocab
	if p.pick != nil {
		n = 0
	}
	p.logits = grow(&p.logits, n)
	f := &feed{
		pos: p.pos, tokens: p.t, outputs: outputs, kept: p.st.kept, book: p.st.book, tentative: p.tentative,
		cs: p.cs, x: p.x[:p.t*c.m.spec.dim],
	}
	if c.chain && fewTokens(f.tokens) {
		return c.chained(ctx, p, f)
	}
	for i, r := range c.runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.forward(p, &p.st.cards.runs[i], f); err != nil {
			return r.wrap(err)
		}
		if i > 0 && f.tokens == 1 {
			r.passed(c.runs[i-1])
		}
	}
	return nil
}

// ErrCardLost is wrapped when a card stopped answering or fell off the bus. The
// other cards can be used by a model that is loaded anew.
var ErrCardLost = errors.New("a graphics card was lost")

// wrap names the device and its layers in an error.
func (r *run) wrap(err error) error {
	if errors.Is(err, compute.ErrLost) || errors.Is(err, compute.ErrHung) {
		return fmt.Errorf("%w: %s, with layers %d to %d: %w; load the pack again without this card, or after it works again",
			ErrCardLost, r.dev.Info(), r.lo, r.hi-1, err)
	}
	return fmt.Errorf("layers %d to %d on %s: %w", r.lo, r.hi-1, r.dev.Info(), err)
}

// forward runs a pass on one device. Afterwards f.x is what goes on.
func (r *run) forward(p *pass, rs *runState, f *feed) error {
	m, b := r.c.m, &r.buf
	s, err := r.step(p, rs, f)
	if err != nil {
		return err
	}
	recorded := fewTokens(s.T) && !r.hosted && !r.split && r.c.check == nil
	if err := r.roomFor(s, recorded); err != nil {
		return err
	}
	r.fill(s.in, f)
	if r.hosted {
		return r.blocks(s, f)
	}
	if r.c.check != nil {
		copy(p.x, f.x) // the CPU's side begins with what the device has
	}
	begin := time.Now()
	switch {
	case r.split:
		err = r.shared(s)
	case r.c.check != nil:
		err = r.checked(s)
	case recorded:
		err = r.replay(s)
	default:
		err = r.dev.Do(func(q *compute.Queue) error { return r.enqueue(q, s, false) })
	}
	if !r.split {
		d := time.Since(begin).Nanoseconds()
		r.c.times.device.Add(d)
		r.c.times.wait.Add(d)
	}
	if err != nil {
		return err
	}
	dim := m.spec.dim
	if r.hops != nil {
		f.x, f.hop = nil, r.hops[0]
		f.hop.pass(4 * s.T * dim)
		return nil
	}
	if !r.last {
		f.x = asFloats(b.xHost.Bytes())[:s.T*dim]
		return nil
	}
	r.results(p, s, recorded)
	return nil
}

// results gives a pass what the last device has made.
func (r *run) results(p *pass, s *step, recorded bool) {
	m, b := r.c.m, &r.buf
	if n := s.T * m.spec.dim; s.hidden {
		copy(grow(&p.norm, n), asFloats(b.xHost.Bytes()))
	}
	if s.pick != nil {
		r.picked(p, s.outputs)
		return
	}
	if recorded && s.outputs > 0 {
		copy(p.logits, asFloats(b.out.Bytes()))
	}
	if r.c.check == nil || s.outputs == 0 { // check mode did it to compare them
		m.finishLogits(p.logits)
	}
}

// step makes a step of what is fed to a run.
func (r *run) step(p *pass, rs *runState, f *feed) (*step, error) {
	m, b := r.c.m, &r.buf
	s := &step{p: p, s: rs, T: f.tokens, outputs: f.outputs, keep: !f.tentative, book: f.book, in: b.in, xHost: b.xHost, hop: f.hop}
	if r.hops != nil {
		s.xHost = r.hops[0].from
	}
	s.hidden = len(m.usedDrafts()) > 0
	s.context = min(max(256, 1<<bits.Len(uint(f.pos+f.tokens-1))), cardContext(m))
	if s.T > b.rows {
		return nil, fmt.Errorf("%d tokens at once, there is room for %d", s.T, b.rows)
	}
	if !r.last {
		s.outputs, s.hidden = 0, false
	} else if p.pick != nil && s.outputs > 0 {
		s.pick = &p.pick.choice
		r.fillPick(p.pick)
	}
	return s, nil
}

// roomFor makes room for what depends on the step.
func (r *run) roomFor(s *step, recorded bool) error {
	var parts int64
	for i := range r.layers {
		if a := r.layers[i].attn; a != nil {
			parts = max(parts, a.PartsBytes(s.T, a.Splits(s.context, s.T)))
		}
	}
	return r.need(parts, 4*int64(s.outputs)*int64(r.c.m.spec.vocab), recorded && s.pick == nil)
}

// finishLogits does to logits what head does after the product.
func (m *Model) finishLogits(logits []float32) {
	if s := m.spec.logitScale; s != 0 {
		quant.ScaleF32(logits, s)
	}
	if c := m.spec.softcap; c != 0 {
		softcap(logits, c)
	}
	for t := 0; t < len(logits); t += m.spec.vocab {
		for _, id := range m.spec.suppress {
			logits[t+int(id)] = never
		}
	}
}

// fill puts what a pass needs from the host into pinned memory.
func (r *run) fill(in *compute.Host, f *feed) {
	b := &r.buf
	raw := in.Bytes()
	st := asInts(raw[:8])
	st[0], st[1] = int32(f.pos), int32(f.kept)
	if r.last {
		idx := asInts(raw[256:b.inCSStart()])
		for i := range f.outputs {
			idx[i] = int32(f.tokens - f.outputs + i)
		}
	}
	for i, x := range r.c.m.ropes {
		copy(asFloats(raw[b.inCS[i]:]), f.cs[i][:f.tokens*x.spec.dims])
	}
	if f.hop == nil {
		copyWide(raw[b.inX:], rawFloats(f.x))
	}
}

func (b *runBuffers) inCSStart() int64 {
	if len(b.inCS) > 0 {
		return b.inCS[0]
	}
	return b.inX
}

// mostRecorded bounds the recorded steps that a session keeps.
const mostRecorded = 64

// replay runs a step that was recorded before, or records it.
func (r *run) replay(s *step) error {
	seq, err := r.sequence(s)
	if err != nil {
		return err
	}
	return r.dev.Do(func(q *compute.Queue) error { return r.timed(q, seq) })
}

// sequence is a step that was recorded before, or records it.
func (r *run) sequence(s *step) (*compute.Sequence, error) {
	if s.s.made != r.buf.made {
		s.s.forget()
		s.s.made = r.buf.made
	}
	k := seqKey{tokens: s.T, outputs: s.outputs, context: s.context, tentative: !s.keep, pick: s.pick != nil, ready: s.ready}
	if s.pick != nil {
		k.choice = *s.pick
	}
	if r.c.m.recurrent {
		k.book = s.book
	}
	seq := s.s.seqs[k]
	if seq == nil {
		if len(s.s.seqs) >= mostRecorded { // other settings, other windows
			s.s.forget()
		}
		var err error
		if seq, err = r.dev.Record(func(q *compute.Queue) error { return r.enqueue(q, s, true) }); err != nil {
			return nil, fmt.Errorf("record a step: %w", err)
		}
		s.s.seqs[k] = seq
	}
	return seq, nil
}

// enqueue is a whole pass. Logits go to pinned memory when it is recorded, else
// to the pass.
func (r *run) enqueue(q *compute.Queue, s *step, recorded bool) error {
	if err := r.begin(q, s); err != nil {
		return err
	}
	for i := range r.layers {
		if err := r.mixer(q, s, i); err != nil {
			return err
		}
		if err := r.ffn(q, s, i); err != nil {
			return err
		}
	}
	return r.end(q, s, recorded)
}

// begin writes the inputs.
func (r *run) begin(q *compute.Queue, s *step) error {
	if !s.ready {
		if err := r.inputs(q, s); err != nil {
			return err
		}
	}
	from, at := s.in, r.buf.inX
	if s.hop != nil {
		from, at = s.hop.to, 0
	}
	return q.WriteHost(r.buf.x, 0, from, at, 4*int64(s.T*r.c.m.spec.dim))
}

// inputs writes what a pass needs besides the residual stream.
func (r *run) inputs(q *compute.Queue, s *step) error {
	b, m := &r.buf, r.c.m
	if err := q.WriteHost(b.state, 0, s.in, 0, 8); err != nil {
		return err
	}
	if s.outputs > 0 {
		if err := q.WriteHost(b.idx, 0, s.in, 256, 4*int64(s.outputs)); err != nil {
			return err
		}
	}
	for i, x := range m.ropes {
		if n := 4 * int64(s.T*x.spec.dims); n > 0 {
			if err := q.WriteHost(b.cs[i], 0, s.in, b.inCS[i], n); err != nil {
				return err
			}
		}
	}
	return nil
}

// end adds the last output and makes the logits, or hands the stream over.
func (r *run) end(q *compute.Queue, s *step, recorded bool) error {
	b, m := &r.buf, r.c.m
	dim, post := m.spec.dim, r.layers[len(r.layers)-1].postFFN
	rows := 4 * int64(s.T*dim)
	if !r.last {
		if err := r.norm(q, s, b.y, post, nil, nil); err != nil {
			return err
		}
		return q.ReadHost(s.xHost, 0, b.x, 0, rows)
	}
	head := formFor(b.xb, &r.output)
	if s.outputs == s.T && !s.hidden {
		if err := r.norm(q, s, b.y, post, r.outNorm, head); err != nil {
			return err
		}
	} else {
		var to *ops.Acts
		if s.hidden {
			to = &ops.Acts{Cols: dim, Rows: s.T, X: b.hid}
		}
		if err := r.norm(q, s, b.y, post, r.outNorm, to); err != nil {
			return err
		}
		if s.hidden {
			if err := q.ReadHost(s.xHost, 0, b.hid, 0, rows); err != nil {
				return err
			}
		}
		if s.outputs == 0 {
			return nil
		}
		if err := r.rows.Gather(q, b.y, b.x, b.idx, s.outputs, dim); err != nil {
			return err
		}
		if err := r.rows.Norm(q, s.outputs, ops.Norm{X: b.y, N: dim, W: r.outNorm, Eps: m.spec.eps, To: head}); err != nil {
			return err
		}
	}
	if err := r.output.run(q, head, s.outputs, b.logits, m.spec.vocab, 0); err != nil {
		return err
	}
	if s.pick != nil {
		return r.draw(q, *s.pick, s.outputs)
	}
	n := 4 * int64(s.outputs) * int64(m.spec.vocab)
	if recorded {
		return q.ReadHost(b.out, 0, b.logits, 0, n)
	}
	return q.Read(rawFloats(s.p.logits), b.logits, 0)
}
