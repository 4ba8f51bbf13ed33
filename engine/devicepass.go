package engine

import (
	"context"
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

// step is one pass on one run.
type step struct {
	p       *pass
	s       *runState
	T       int
	outputs int
	splits  int // of the first attention layer; all of a run are alike
	context int // positions seen, rounded up
	keep    bool
	book    int
	hidden  bool
}

// forward runs p.x through the layers of all devices and leaves the logits of
// the last outputs tokens in p.logits; with drafts by the pack's own block, the
// normed hidden states in p.norm.
func (c *cards) forward(ctx context.Context, p *pass, outputs int) error {
	if err := p.st.cards.lost; err != nil {
		return err
	}
	c.times.steps.Add(1)
	p.logits = grow(&p.logits, outputs*c.m.spec.vocab)
	for i, r := range c.runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := r.forward(p, &p.st.cards.runs[i], outputs); err != nil {
			return fmt.Errorf("layers %d to %d on %s: %w", r.lo, r.hi-1, r.dev.Info(), err)
		}
	}
	return nil
}

func (r *run) forward(p *pass, rs *runState, outputs int) error {
	m, b := r.c.m, &r.buf
	s := &step{p: p, s: rs, T: p.t, outputs: outputs, keep: !p.tentative, book: p.st.book}
	s.hidden = len(m.usedDrafts()) > 0
	s.context = min(max(256, 1<<bits.Len(uint(p.pos+p.t-1))), cardContext(m))
	if p.t > b.rows {
		return fmt.Errorf("%d tokens at once, there is room for %d", p.t, b.rows)
	}
	if !r.last {
		s.outputs, s.hidden = 0, false
	}
	recorded := s.T <= ops.MaxColumns && !r.c.experts && r.c.check == nil
	var parts int64
	for i := range r.layers {
		if a := r.layers[i].attn; a != nil {
			parts = max(parts, a.PartsBytes(s.T, a.Splits(s.context, s.T)))
		}
	}
	if err := r.need(parts, 4*int64(s.outputs)*int64(m.spec.vocab), recorded); err != nil {
		return err
	}
	r.fill(s)
	begin := time.Now()
	var err error
	switch {
	case r.c.check != nil:
		err = r.checked(s)
	case r.c.experts:
		err = r.shared(s)
	case recorded:
		err = r.replay(s)
	default:
		err = r.dev.Do(func(q *compute.Queue) error { return r.enqueue(q, s, false) })
	}
	if !r.c.experts {
		d := time.Since(begin).Nanoseconds()
		r.c.times.device.Add(d)
		r.c.times.wait.Add(d)
	}
	if err != nil {
		return err
	}
	dim := m.spec.dim
	if !r.last {
		copy(p.x[:s.T*dim], asFloats(b.xHost.Bytes()))
		return nil
	}
	if s.hidden {
		copy(grow(&p.norm, s.T*dim), asFloats(b.xHost.Bytes()))
	}
	if recorded && s.outputs > 0 {
		copy(p.logits, asFloats(b.out.Bytes()))
	}
	if r.c.check == nil || s.outputs == 0 { // check mode did it to compare them
		m.finishLogits(p.logits)
	}
	return nil
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
func (r *run) fill(s *step) {
	b, p := &r.buf, s.p
	raw := b.in.Bytes()
	st := asInts(raw[:8])
	st[0], st[1] = int32(p.pos), int32(p.st.kept)
	idx := asInts(raw[256:b.inCSStart()])
	for i := range s.outputs {
		idx[i] = int32(s.T - s.outputs + i)
	}
	for i, x := range r.c.m.ropes {
		copy(asFloats(raw[b.inCS[i]:]), p.cs[i][:s.T*x.spec.dims])
	}
	copy(asFloats(raw[b.inX:]), p.x[:s.T*r.c.m.spec.dim])
}

func (b *runBuffers) inCSStart() int64 {
	if len(b.inCS) > 0 {
		return b.inCS[0]
	}
	return b.inX
}

// replay runs a step that was recorded before, or records it.
func (r *run) replay(s *step) error {
	if s.s.made != r.buf.made {
		s.s.forget()
		s.s.made = r.buf.made
	}
	k := seqKey{tokens: s.T, outputs: s.outputs, context: s.context, tentative: !s.keep}
	if r.c.m.recurrent {
		k.book = s.book
	}
	seq := s.s.seqs[k]
	if seq == nil {
		var err error
		if seq, err = r.dev.Record(func(q *compute.Queue) error { return r.enqueue(q, s, true) }); err != nil {
			return fmt.Errorf("record a step: %w", err)
		}
		s.s.seqs[k] = seq
	}
	return r.dev.Do(func(q *compute.Queue) error { return q.Replay(seq) })
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
	b, m := &r.buf, r.c.m
	if err := q.WriteHost(b.state, 0, b.in, 0, 8); err != nil {
		return err
	}
	if s.outputs > 0 {
		if err := q.WriteHost(b.idx, 0, b.in, 256, 4*int64(s.outputs)); err != nil {
			return err
		}
	}
	for i, x := range m.ropes {
		if n := 4 * int64(s.T*x.spec.dims); n > 0 {
			if err := q.WriteHost(b.cs[i], 0, b.in, b.inCS[i], n); err != nil {
				return err
			}
		}
	}
	return q.WriteHost(b.x, 0, b.in, b.inX, 4*int64(s.T*m.spec.dim))
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
		return q.ReadHost(b.xHost, 0, b.x, 0, rows)
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
			if err := q.ReadHost(b.xHost, 0, b.hid, 0, rows); err != nil {
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
	n := 4 * int64(s.outputs) * int64(m.spec.vocab)
	if recorded {
		return q.ReadHost(b.out, 0, b.logits, 0, n)
	}
	return q.Read(rawFloats(s.p.logits), b.logits, 0)
}
