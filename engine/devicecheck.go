package engine

import (
	"fmt"
	"math"
	"sync"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// Deviation is where a device and the CPU differ. Error is the RMS of the
// difference over the RMS of what the CPU has.
type Deviation struct {
	Layer int // -1: the logits
	Op    string
	Pos   int // of the first token of the pass
	Error float64
	Limit float64
}

func (d Deviation) String() string {
	where := "logits"
	if d.Layer >= 0 {
		where = fmt.Sprintf("layer %d, %s", d.Layer, d.Op)
	}
	return fmt.Sprintf("%s at position %d: error %.2e, limit %.1e", where, d.Pos, d.Error, d.Limit)
}

// CheckReport is what check mode has seen since load.
type CheckReport struct {
	Compared int        // results of operations and of blocks
	Chosen   int        // tokens whose experts the sides chose otherwise, each in one layer
	Worst    Deviation  // the largest error relative to its limit
	First    *Deviation // the first beyond its limit; nil: none
}

// String is a summary in one line.
func (r CheckReport) String() string {
	if r.Compared == 0 {
		return "nothing compared yet"
	}
	s := fmt.Sprintf("%d compared, none beyond its limit; worst: %s", r.Compared, r.Worst)
	if r.First != nil {
		s = fmt.Sprintf("%d compared, first deviation: %s; worst: %s", r.Compared, r.First, r.Worst)
	}
	if r.Chosen > 0 {
		s += fmt.Sprintf("; %d times experts were chosen otherwise", r.Chosen)
	}
	return s
}

// checkLimit is the error that a block may have: keys and values are halves on
// both sides, sums are in another order, and a value next to a rounding edge of
// the 8-bit activations may fall on the other side.
const checkLimit = 2e-3

// halvesLimit takes its place where matrix units multiply halves: the card then
// rounds activations less than the CPU with its 8 bits, whose 6e-3 (roundedLimit)
// are seen beside the residual stream. An H200 is 3e-3 away from the CPU.
const halvesLimit = 1e-2

// checker holds what was compared.
type checker struct {
	mu   sync.Mutex
	rep  CheckReport
	tell func(Deviation) // of the first deviation; nil: nobody

	coarse bool // keys and values are in 8 bits
	halves bool // the pass is multiplied as halves on matrix units
}

// limit is that of a block or, where own is larger, of one operation.
func (c *checker) limit(own float64) float64 {
	switch {
	case !c.halves:
		return own
	case own >= opLimit:
		return max(own, roundedLimit)
	}
	return max(own, halvesLimit)
}

func (c *checker) compare(d Deviation, got, want []float32) {
	var e2, w2 float64
	for i, w := range want {
		e := float64(got[i]) - float64(w)
		e2 += e * e
		w2 += float64(w) * float64(w)
	}
	d.Error = math.Sqrt(e2 / max(w2, 1e-30))
	first := false
	defer func() { // with the lock given back
		if first && c.tell != nil {
			c.tell(d)
		}
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.rep
	r.Compared++
	bad := !(d.Error <= d.Limit)
	if d.Error/d.Limit > r.Worst.Error/r.Worst.Limit || math.IsNaN(d.Error) || r.Compared == 1 {
		r.Worst = d
	}
	if bad && r.First == nil {
		first, r.First = true, &d
	}
}

// blockLimit is that of a mixer's output with the residual stream.
func (c *checker) blockLimit(l *layer) float64 {
	if c.coarse && l.mixer == attention {
		return coarseLimit
	}
	return c.limit(checkLimit)
}

// chose counts a token whose experts were chosen otherwise.
func (c *checker) chose() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rep.Chosen++
}

// Check tells what check mode has compared; ok is false when it is off.
func (m *Model) Check() (rep CheckReport, ok bool) {
	if m.cards == nil || m.cards.check == nil {
		return rep, false
	}
	c := m.cards.check
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rep, true
}

// checked runs a pass block by block on the device and on the CPU, each block
// of the CPU from the device's input, and compares the results of all
// operations in it (deviceprobe.go), so that an error is named where it arises.
// The CPU keeps caches and states of its own.
func (r *run) checked(s *step) error {
	m, b, p, c := r.c.m, &r.buf, s.p, r.c.check
	dim := m.spec.dim
	rows := 4 * int64(s.T*dim)
	got := make([]float32, s.T*dim)
	c.halves = s.T > ops.MaxColumns && r.set.Halves()
	defer func() { p.probe = nil }()
	take := func() {
		copy(got, asFloats(b.xHost.Bytes()))
		copy(p.x, got)
	}
	if err := r.dev.Do(func(q *compute.Queue) error { return r.begin(q, s) }); err != nil {
		return err
	}
	for i := range r.layers {
		l := r.layers[i].layer
		var mixed, fed []shown
		err := r.dev.Do(func(q *compute.Queue) error {
			s.seen = &mixed
			if err := r.mixer(q, s, i); err != nil {
				return err
			}
			s.seen = &fed
			if err := r.enterFFN(q, s, i); err != nil {
				return err
			}
			return q.ReadHost(b.xHost, 0, b.x, 0, rows)
		})
		if err != nil {
			return err
		}
		name := "attention"
		if l.mixer == deltaNet {
			name = "delta net"
		}
		d := Deviation{Layer: l.index, Pos: p.pos}
		x := c.against(d, name, mixed)
		p.probe = x.probe
		m.enter(p, l, nil, l.attnNorm)
		if l.mixer == deltaNet {
			m.deltaNet(p, l)
		} else {
			m.attend(p, l)
		}
		p.tokens(l, addMixer)
		x.end()
		d.Op, d.Limit = name, c.blockLimit(l)
		c.compare(d, asFloats(b.xHost.Bytes())[:s.T*dim], p.x[:s.T*dim])
		take()

		// The feed-forward, and its sum with the stream in a copy: the stream
		// itself gets it with the next norm.
		err = r.dev.Do(func(q *compute.Queue) error {
			if err := q.Copy(b.host, 0, b.x, 0, rows); err != nil {
				return err
			}
			if err := r.ffnEntered(q, s, i); err != nil {
				return err
			}
			if err := r.norm(q, s, b.y, r.layers[i].postFFN, nil, nil); err != nil {
				return err
			}
			if err := q.ReadHost(b.xHost, 0, b.x, 0, rows); err != nil {
				return err
			}
			return q.Copy(b.x, 0, b.host, 0, rows)
		})
		if err != nil {
			return err
		}
		name = "feed-forward"
		if l.ff == 0 {
			name = "experts"
		}
		x = c.against(d, name, fed)
		p.probe = x.probe
		m.enter(p, l, nil, l.ffnNorm)
		if l.ff > 0 {
			m.dense(p, l)
		} else {
			if m.mixture(p, l); p.err != nil {
				return p.failed()
			}
		}
		p.tokens(l, addFFN)
		p.probe = nil
		for _, t := range s.others(p, l) {
			x.excuse(t, dim)
			copy(p.x[t*dim:(t+1)*dim], asFloats(b.xHost.Bytes())[t*dim:])
			c.chose()
		}
		x.end()
		d.Op, d.Limit = name, c.limit(checkLimit)
		c.compare(d, asFloats(b.xHost.Bytes())[:s.T*dim], p.x[:s.T*dim])
		take()
	}
	if err := r.dev.Do(func(q *compute.Queue) error { return r.end(q, s, false) }); err != nil {
		return err
	}
	if !r.last || s.outputs == 0 {
		return nil
	}
	have := append([]float32(nil), p.logits...)
	grow(&p.norm, s.T*dim)
	p.headNorm = m.outNorm
	p.tokens(nil, normOut)
	m.head(p, &m.output, s.outputs)
	m.finishLogits(have)
	c.compare(Deviation{Layer: -1, Op: "logits", Pos: p.pos, Limit: c.limit(checkLimit)}, have, p.logits)
	copy(p.logits, have)
	return nil
}
