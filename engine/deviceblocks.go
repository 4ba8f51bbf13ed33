package engine

import (
	"fmt"
	"time"

	"outcrop/gpu/compute"
)

// Layers of which a card computes only some parts. The residual stream stays
// with the CPU: it makes the input of each part, and the card's parts get it and
// give their output back through pinned memory, two copies of (tokens, dim) and
// one wait each. So whatever a family does between its parts (several streams,
// embeddings of layers, scales) needs no kernel.

// blockRun is one such pass.
type blockRun struct {
	r     *run
	s     *step
	begun bool // inputs besides the stream are on the card
	err   error
}

// blocks runs the layers of a run, and makes the logits.
func (r *run) blocks(s *step, f *feed) error {
	m, p := r.c.m, s.p
	w := &blockRun{r: r, s: s}
	if n := s.T * m.spec.dim; m.spec.streams == 0 && n > 0 && &p.x[0] != &f.x[0] {
		copy(p.x[:n], f.x)
	}
	for i := range r.layers {
		m.block(p, r.layers[i].layer, w)
		if w.err != nil {
			return w.err
		}
		if m.pool.lost.Load() {
			return ErrPackLost
		}
		if p.err != nil {
			return p.failed()
		}
		if m.trace != nil {
			m.trace(r.lo+i, p.x)
		}
	}
	f.x = p.x[:s.T*m.spec.dim]
	if !r.last {
		return nil
	}
	m.normOutput(p)
	if r.output.none() || s.outputs == 0 {
		m.head(p, &m.output, s.outputs)
		return nil
	}
	return w.head()
}

// mix computes the mixer of a layer: p.y from p.xb.
func (w *blockRun) mix(p *pass, l *layer) {
	r, i := w.r, l.index-w.r.lo
	if r.layers[i].why.mixer != "" {
		w.cpu(func() { r.c.m.mix(p, l) })
		return
	}
	w.card(l, mixerName(l), func(q *compute.Queue) error {
		if l.mixer == deltaNet {
			return r.deltaNet(q, w.s, i)
		}
		return r.attend(q, w.s, i)
	}, r.c.m.mix)
}

// feed computes the feed-forward of a layer: p.y from p.xb.
func (w *blockRun) feed(p *pass, l *layer) {
	r, i, m := w.r, l.index-w.r.lo, w.r.c.m
	c := &r.layers[i]
	switch {
	case w.err != nil:
	case c.why.ffn != "":
		w.cpu(func() { m.feed(p, l) })
	case l.both != nil:
		m.denseAndExperts(p, l, w)
	case c.routedOnHost != nil:
		w.split(p, c)
	default:
		w.card(l, feedName(l), func(q *compute.Queue) error { return r.ffnEntered(q, w.s, i) }, m.feed)
	}
}

// dense computes the dense part of a layer beside its experts.
func (w *blockRun) dense(p *pass, l *layer) {
	r := w.r
	c := &r.layers[l.index-r.lo]
	w.card(l, feedName(l), func(q *compute.Queue) error {
		return r.dense(q, w.s, c, &c.gateUp, &c.gate, &c.up, &c.down, c.wide.ff, 0)
	}, r.c.m.dense)
}

func feedName(l *layer) string {
	if l.ff == 0 {
		return "experts"
	}
	return "feed-forward"
}

func (w *blockRun) cpu(fn func()) {
	if w.err != nil {
		return
	}
	begin := time.Now()
	fn()
	w.r.c.times.cpu.Add(time.Since(begin).Nanoseconds())
}

// input puts p.xb into the card's activations.
func (w *blockRun) input(q *compute.Queue) error {
	r, s, b := w.r, w.s, &w.r.buf
	if !w.begun {
		w.begun = true
		if err := r.inputs(q, s); err != nil {
			return err
		}
	}
	dim := r.c.m.spec.dim
	if err := q.WriteHost(b.xb.X, 0, s.xHost, 0, 4*int64(s.T*dim)); err != nil {
		return err
	}
	return r.quant.Run(q, b.xb, b.xb.X, s.T, dim)
}

// card computes a part on the card. In check mode the CPU computes it too, and
// the results are compared.
func (w *blockRun) card(l *layer, name string, run func(q *compute.Queue) error, cpu func(p *pass, l *layer)) {
	if w.err != nil {
		return
	}
	r, s, p, t := w.r, w.s, w.s.p, &w.r.c.times
	n := s.T * r.c.m.spec.dim
	copy(asFloats(s.xHost.Bytes()), p.xb[:n])
	var seen []shown
	if r.c.check != nil {
		s.seen, s.ids = &seen, nil
	}
	begin := time.Now()
	w.err = r.dev.Do(func(q *compute.Queue) error {
		if err := w.input(q); err != nil {
			return err
		}
		if err := run(q); err != nil {
			return err
		}
		return q.ReadHost(s.xHost, 0, r.buf.y, 0, 4*int64(n))
	})
	d := time.Since(begin).Nanoseconds()
	t.device.Add(d)
	t.wait.Add(d)
	if w.err != nil {
		w.err = fmt.Errorf("layer %d, %s: %w", l.index, name, w.err)
		return
	}
	if c := r.c.check; c != nil {
		d := Deviation{Layer: l.index, Pos: p.pos}
		x := c.against(d, name, seen)
		p.probe = x.probe
		cpu(p, l)
		p.probe = nil
		if dim := r.c.m.spec.dim; name == feedName(l) {
			for _, t := range s.others(p, l) {
				x.excuse(t, dim)
				copy(p.y[t*dim:(t+1)*dim], asFloats(s.xHost.Bytes())[t*dim:])
				c.chose()
			}
		}
		x.end()
		d.Op, d.Limit = name, max(opLimit, c.blockLimit(l))
		c.compare(d, asFloats(s.xHost.Bytes())[:n], p.y[:n])
	}
	copy(p.y[:n], asFloats(s.xHost.Bytes()))
}

// split computes routed experts on the CPU while the card has the shared one.
func (w *blockRun) split(p *pass, c *cardLayer) {
	if w.err != nil {
		return
	}
	r, s := w.r, w.s
	n := s.T * r.c.m.spec.dim
	shared := c.expert.shared > 0
	copy(asFloats(s.xHost.Bytes()), p.xb[:n])
	if shared || r.c.slots != nil {
		w.err = r.dev.Do(func(q *compute.Queue) error {
			defer q.Leave()
			if err := w.input(q); err != nil || !shared {
				return err
			}
			if err := r.sharedExpert(q, s, c, false); err != nil {
				return err
			}
			return q.ReadHost(s.xHost, 0, r.buf.y, 0, 4*int64(n))
		})
	}
	w.cpu(func() { r.c.m.mixture(p, c.routedOnHost) })
	if w.err != nil || !shared {
		return
	}
	begin := time.Now()
	w.err = r.dev.Do(func(*compute.Queue) error { return nil })
	d := time.Since(begin).Nanoseconds()
	r.c.times.device.Add(d)
	r.c.times.wait.Add(d)
	y := asFloats(s.xHost.Bytes())
	for i := range p.y[:n] {
		p.y[i] += y[i]
	}
}

// head makes the logits of the last tokens from p.norm on the card.
func (w *blockRun) head() error {
	r, s, p, b := w.r, w.s, w.s.p, &w.r.buf
	m, dim := r.c.m, r.c.m.spec.dim
	n := s.outputs * dim
	copy(asFloats(s.xHost.Bytes()), p.norm[(s.T-s.outputs)*dim:s.T*dim])
	err := r.dev.Do(func(q *compute.Queue) error {
		if err := q.WriteHost(b.xb.X, 0, s.xHost, 0, 4*int64(n)); err != nil {
			return err
		}
		if err := r.quant.Run(q, b.xb, b.xb.X, s.outputs, dim); err != nil {
			return err
		}
		if err := r.output.run(q, formFor(b.xb, &r.output), s.outputs, b.logits, m.spec.vocab, 0); err != nil {
			return err
		}
		if s.pick != nil {
			return r.draw(q, *s.pick, s.outputs)
		}
		return q.Read(rawFloats(p.logits), b.logits, 0)
	})
	if err != nil {
		return fmt.Errorf("logits: %w", err)
	}
	if s.pick != nil {
		r.picked(p, s.outputs)
		return nil
	}
	m.finishLogits(p.logits)
	if c := r.c.check; c != nil {
		have := append([]float32(nil), p.logits...)
		m.head(p, &m.output, s.outputs)
		c.compare(Deviation{Layer: -1, Op: "logits", Pos: p.pos, Limit: checkLimit}, have, p.logits)
		copy(p.logits, have)
	}
	return nil
}
