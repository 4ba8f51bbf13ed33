package engine

import (
	"fmt"
	"time"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// shared runs a pass whose routed experts the CPU computes. Layer by layer: the
// device runs up to the norm before the experts and chooses them, which the host
// reads; then the device runs the shared expert while the worker pool computes
// the others; the sum is written before the next layer begins.
func (r *run) shared(s *step) error {
	b, p, m := &r.buf, s.p, r.c.m
	dim, t := m.spec.dim, &r.c.times
	turn := func(fn func(q *compute.Queue) error) error {
		begin := time.Now()
		err := r.dev.Do(fn)
		d := time.Since(begin).Nanoseconds()
		t.device.Add(d)
		t.wait.Add(d)
		return err
	}
	for i := range r.layers {
		l := &r.layers[i]
		seq, err := r.recordedTurn(s, i)
		if err != nil {
			return err
		}
		err = turn(func(q *compute.Queue) error {
			if seq != nil {
				return q.Replay(seq)
			}
			return r.upToExperts(q, s, i)
		})
		if err != nil {
			return err
		}
		if l.routedOnHost == nil {
			continue
		}
		copy(p.xb[:s.T*dim], asFloats(b.xHost.Bytes()))
		if l.expert.shared > 0 {
			err := r.dev.Do(func(q *compute.Queue) error {
				defer q.Leave()
				return r.sharedExpert(q, s, l, false)
			})
			if err != nil {
				return err
			}
		}
		begin := time.Now()
		if !l.router.none() {
			p.mix.take(b.chosen.Bytes(), s.T*l.expert.used)
		}
		m.mixture(p, l.routedOnHost)
		t.cpu.Add(time.Since(begin).Nanoseconds())
		if m.pool.lost.Load() {
			return ErrPackLost
		}
		if p.err != nil {
			return p.failed()
		}
		copy(asFloats(b.xHost.Bytes()), p.y[:s.T*dim])
	}
	return turn(func(q *compute.Queue) error {
		if err := r.joinExperts(q, s, len(r.layers)-1); err != nil {
			return err
		}
		return r.end(q, s, false)
	})
}

// recordedTurn gives the launches of upToExperts for layer i as a sequence: they
// are the same for every token, and a dozen of them take longer to make than to
// run. nil: a prompt, which is not recorded.
func (r *run) recordedTurn(s *step, i int) (*compute.Sequence, error) {
	if s.T > ops.MaxColumns || r.c.check != nil {
		return nil, nil
	}
	if s.s.made != r.buf.made {
		s.s.forget()
		s.s.made = r.buf.made
	}
	k := seqKey{tokens: s.T, context: s.context, tentative: !s.keep, turn: i + 1}
	if i == 0 {
		k.outputs = s.outputs
	}
	if r.c.m.recurrent {
		k.book = s.book
	}
	seq := s.s.seqs[k]
	if seq != nil {
		return seq, nil
	}
	if i == 0 && len(s.s.seqs) >= mostRecorded*len(r.layers) {
		s.s.forget()
	}
	seq, err := r.dev.Record(func(q *compute.Queue) error { return r.upToExperts(q, s, i) })
	if err != nil {
		return nil, fmt.Errorf("record layer %d: %w", r.lo+i, err)
	}
	s.s.seqs[k] = seq
	return seq, nil
}

// upToExperts runs layer i up to where the host has something to do: from the
// sum that it made of the layer before, to the normed state and the choices.
func (r *run) upToExperts(q *compute.Queue, s *step, i int) error {
	b, l := &r.buf, &r.layers[i]
	var err error
	if i == 0 {
		err = r.begin(q, s)
	} else {
		err = r.joinExperts(q, s, i-1)
	}
	if err != nil {
		return err
	}
	if err := r.mixer(q, s, i); err != nil {
		return err
	}
	if l.routedOnHost == nil {
		return r.ffn(q, s, i)
	}
	if err := r.enterFFN(q, s, i); err != nil {
		return err
	}
	if !l.router.none() {
		n := 4 * int64(s.T*l.expert.used)
		if err := r.choose(q, s, l); err != nil {
			return err
		}
		if err := q.ReadHost(b.chosen, 0, b.ids, 0, n); err != nil {
			return err
		}
		if err := q.ReadHost(b.chosen, n, b.weight, 0, n); err != nil {
			return err
		}
	}
	return q.ReadHost(b.xHost, 0, b.xb.X, 0, 4*int64(s.T*r.c.m.spec.dim))
}

// joinExperts brings what the host computed of layer i into y.
func (r *run) joinExperts(q *compute.Queue, s *step, i int) error {
	b, l, rows := &r.buf, &r.layers[i], 4*int64(s.T*r.c.m.spec.dim)
	if l.routedOnHost == nil {
		return nil
	}
	if l.expert.shared == 0 {
		return q.WriteHost(b.y, 0, b.xHost, 0, rows)
	}
	if err := q.WriteHost(b.host, 0, b.xHost, 0, rows); err != nil {
		return err
	}
	return r.rows.Add(q, b.y, b.host, rows/4, 1)
}
