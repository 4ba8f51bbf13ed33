package engine

import (
	"time"

	"outcrop/gpu/compute"
)

// shared runs a pass whose routed experts the CPU computes. Layer by layer: the
// device runs up to the norm before the experts and chooses them, which the host
// reads; then the device runs the shared expert while the worker pool computes
// the others; the sum is written before the next layer begins.
func (r *run) shared(s *step) error {
	b, p, m := &r.buf, s.p, r.c.m
	dim, t := m.spec.dim, &r.c.times
	rows := 4 * int64(s.T*dim)
	joined := false // y waits for what the CPU computed
	join := func(q *compute.Queue, l *cardLayer) error {
		if !joined {
			return nil
		}
		joined = false
		if l.expert.shared == 0 {
			return q.WriteHost(b.y, 0, b.xHost, 0, rows)
		}
		if err := q.WriteHost(b.host, 0, b.xHost, 0, rows); err != nil {
			return err
		}
		return r.rows.Add(q, b.y, b.host, int64(s.T*dim), 1)
	}
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
		host := l.routedOnHost != nil
		err := turn(func(q *compute.Queue) error {
			if i == 0 {
				if err := r.begin(q, s); err != nil {
					return err
				}
			} else if err := join(q, &r.layers[i-1]); err != nil {
				return err
			}
			if err := r.mixer(q, s, i); err != nil {
				return err
			}
			if !host {
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
			return q.ReadHost(b.xHost, 0, b.xb.X, 0, rows)
		})
		if err != nil {
			return err
		}
		if !host {
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
		joined = true
	}
	return turn(func(q *compute.Queue) error {
		if err := join(q, &r.layers[len(r.layers)-1]); err != nil {
			return err
		}
		return r.end(q, s, false)
	})
}
