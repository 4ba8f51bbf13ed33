package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"outcrop/engine/token"
	"outcrop/gpu/compute"
)

// A prompt on several devices is a pipeline: while device 1 runs a piece of it
// through its layers, device 0 has the next piece in hand. Pieces keep their
// order on every device, so caches and recurrent states grow as they do when one
// pass follows the other, and the results are the same to the last bit as with
// equal pieces one by one.
//
// Activations go from device to device through pinned memory that both know
// (devicehop.go). Beside it each device has two pinned buffers for what a piece
// needs else. Layers that are the CPU's come first and run on the goroutine that
// asked, as do drafts.

// stage is one device of a pipeline.
type stage struct {
	r       *run
	rs      *runState
	freeIn  chan *compute.Host // pinned memory to fill
	freeHop chan *hop          // for results; of the last device nil
	freeOut chan *compute.Host // of the last device, where hidden states are wanted
	ready   chan *parcel       // whose inputs are in pinned memory
	done    chan *parcel       // whose results are
}

// parcel is a piece of a prompt on its way.
type parcel struct {
	feed
	ids     []token.ID
	in, out *compute.Host // of the device it is on; out holds hidden states
	over    *hop          // by which it goes on
}

// flow is one prompt in the pipeline.
type flow struct {
	s      *Session
	stages []*stage
	quit   chan struct{} // closed at the first failure
	once   sync.Once
	err    error // before quit is closed
	group  sync.WaitGroup
}

// prefill runs ids after the timeline, a chunk at a time. With outputs == 1 the
// logits of the last one are in s.fresh afterwards. done is called after each
// chunk, from this goroutine.
func (s *Session) prefill(ctx context.Context, ids []token.ID, outputs int, done func()) error {
	if list := s.m.cards.pieces(len(ids), s.st.pos); list != nil {
		return s.flow(ctx, ids, outputs, list, done)
	}
	for len(ids) > 0 {
		n, last := min(s.m.chunk, len(ids)), 0
		if n == len(ids) {
			last = outputs
		}
		if err := s.advance(ctx, ids[:n], last); err != nil {
			return err
		}
		if done != nil {
			done()
		}
		ids = ids[n:]
	}
	return nil
}

// flow is prefill as a pipeline of pieces.
func (s *Session) flow(ctx context.Context, ids []token.ID, outputs int, pieces []int, done func()) error {
	m := s.m
	m.turn.Lock()
	defer m.turn.Unlock()
	if m.pool == nil {
		return errors.New("the model is closed")
	}
	if err := s.st.cards.lost; err != nil {
		return err
	}
	s.p.tentative = false
	s.fresh = s.fresh[:0]
	s.p.logits = grow(&s.p.logits, outputs*m.spec.vocab)
	err := m.guarded(func() error {
		f := &flow{s: s, quit: make(chan struct{})}
		defer f.group.Wait()
		defer f.fail(nil) // whatever ends this function ends the devices' goroutines
		if err := f.start(); err != nil {
			return err
		}
		return f.run(ctx, ids, outputs, pieces, done)
	})
	if err != nil {
		// What went through all devices counts. Rows of caches beyond are
		// written anew by the next pass; recurrent states went too far.
		s.st.pos = len(s.ids)
		s.broken = m.recurrent
	}
	return err
}

// fail ends the pipeline; the first error counts.
func (f *flow) fail(err error) {
	f.once.Do(func() {
		f.err = err
		close(f.quit)
	})
}

// start makes the stages and their goroutines.
func (f *flow) start() error {
	c := f.s.m.cards
	for i, r := range c.runs {
		st := &stage{
			r: r, rs: &f.s.st.cards.runs[i],
			freeIn: make(chan *compute.Host, 2), freeHop: make(chan *hop, hopsEach), freeOut: make(chan *compute.Host, 2),
			ready: make(chan *parcel, 2), done: make(chan *parcel, hopsEach),
		}
		b := &r.buf
		st.freeIn <- b.in
		st.freeIn <- b.in2
		for _, h := range r.hops {
			st.freeHop <- h
		}
		if r.hiding() {
			if b.xHost2 == nil {
				var err error
				if b.xHost2, err = r.dev.Host(int64(len(b.xHost.Bytes()))); err != nil {
					return r.wrap(err)
				}
			}
			st.freeOut <- b.xHost
			st.freeOut <- b.xHost2
		}
		f.stages = append(f.stages, st)
	}
	for i, st := range f.stages {
		f.group.Go(func() { f.work(st) })
		if i > 0 {
			f.group.Go(func() { f.carry(f.stages[i-1], st) })
		}
	}
	return nil
}

// hiding tells whether the hidden states of the run are read back.
func (r *run) hiding() bool { return r.last && len(r.c.m.usedDrafts()) > 0 }

// take waits for something of a channel; none when the pipeline ends.
func take[T any](f *flow, from chan T, waited *atomic.Int64) (x T, ok bool) {
	begin := time.Now()
	select {
	case x = <-from:
		waited.Add(time.Since(begin).Nanoseconds())
		return x, true
	case <-f.quit:
		return x, false
	}
}

// work runs parcels on the device of a stage, in order.
func (f *flow) work(st *stage) {
	r, t := st.r, &st.r.c.times
	for {
		c, ok := take(f, st.ready, &r.stage.input)
		if !ok {
			return
		}
		switch {
		case !r.last:
			c.over, ok = take(f, st.freeHop, &r.stage.output)
		case r.hiding():
			c.out, ok = take(f, st.freeOut, &r.stage.output)
		}
		if !ok {
			return
		}
		s, err := r.step(f.s.p, st.rs, &c.feed)
		if err == nil {
			s.in, s.xHost = c.in, c.out
			if c.over != nil {
				s.xHost = c.over.from
			}
			err = r.roomFor(s, false)
		}
		if err == nil {
			begin := time.Now()
			err = r.dev.Do(func(q *compute.Queue) error {
				defer func() { r.stage.launch.Add(time.Since(begin).Nanoseconds()) }()
				return r.enqueue(q, s, false)
			})
			d := time.Since(begin).Nanoseconds()
			t.device.Add(d)
			t.wait.Add(d)
			r.stage.took(c.tokens, d)
		}
		if err != nil {
			f.fail(r.wrap(err))
			return
		}
		st.freeIn <- c.in
		c.in = nil
		if c.hop != nil {
			f.before(st).freeHop <- c.hop
			c.hop = nil
		}
		if c.out != nil {
			c.x = asFloats(c.out.Bytes())[:c.tokens*r.c.m.spec.dim]
		}
		select {
		case st.done <- c:
		case <-f.quit:
			return
		}
	}
}

// before is the stage before another one.
func (f *flow) before(st *stage) *stage {
	for i, x := range f.stages {
		if x == st {
			return f.stages[i-1]
		}
	}
	return nil
}

// carry hands parcels over from one device to the next.
func (f *flow) carry(from, to *stage) {
	var idle atomic.Int64
	for {
		c, ok := take(f, from.done, &idle)
		if !ok {
			return
		}
		if c.in, ok = take(f, to.freeIn, &idle); !ok {
			return
		}
		c.x, c.hop, c.over = nil, c.over, nil
		c.hop.pass(4 * c.tokens * f.s.m.spec.dim)
		to.r.fill(c.in, &c.feed)
		to.ready <- c
	}
}

// run feeds the first device and takes from the last one.
func (f *flow) run(ctx context.Context, ids []token.ID, outputs int, pieces []int, done func()) error {
	first, last, t := f.stages[0], f.stages[len(f.stages)-1], &f.s.m.cards.feed
	var next *parcel
	left := len(ids) // that have not come out
	for left > 0 {
		if next == nil && len(ids) > 0 {
			n, wanted := min(pieces[0], len(ids)), 0
			if n == len(ids) {
				wanted = outputs
			}
			begin := time.Now()
			var err error
			if next, err = f.prepare(ctx, ids[:n], wanted); err != nil {
				return err
			}
			ids, pieces = ids[n:], pieces[1:]
			t.took(n, time.Since(begin).Nanoseconds())
		}
		var free chan *compute.Host
		if next != nil {
			free = first.freeIn
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.quit:
			return f.err
		case in := <-free:
			begin := time.Now()
			first.r.fill(in, &next.feed)
			t.busy.Add(time.Since(begin).Nanoseconds())
			next.in, next.x = in, nil
			first.ready <- next
			next = nil
		case c := <-last.done:
			if err := f.finish(c); err != nil {
				return err
			}
			left -= c.tokens
			if c.out != nil {
				last.freeOut <- c.out
			}
			if done != nil {
				done()
			}
		}
	}
	return nil
}

// prepare makes a parcel of ids: their embedding, through the layers of the CPU.
// The timeline grows by them at once.
func (f *flow) prepare(ctx context.Context, ids []token.ID, outputs int) (*parcel, error) {
	s, m, p := f.s, f.s.m, f.s.p
	if err := m.relief.wait(ctx); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if m.relaid.drop.Load() {
		m.unrelay()
	}
	m.enterTrunk(p, ids)
	for il := range m.cards.first {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := m.runLayer(p, il); err != nil {
			return nil, err
		}
	}
	c := &parcel{ids: ids, feed: feed{
		pos: p.pos, tokens: p.t, outputs: outputs, kept: s.st.kept, book: s.st.book,
		x: p.x[:p.t*m.spec.dim],
	}}
	for i := range p.cs { // the next parcel has others
		c.cs = append(c.cs, append([]float32(nil), p.cs[i]...))
	}
	m.cards.times.steps.Add(1)
	p.finish(ids)
	m.heat.tick(p.t)
	return c, m.experts.between(p)
}

// finish takes what came out of the last device.
func (f *flow) finish(c *parcel) error {
	s, m := f.s, f.s.m
	if s.drafts.block != nil {
		copy(grow(&s.p.norm, c.tokens*m.spec.dim), c.x)
		s.drafts.saw(s, c.ids)
	}
	s.ids = append(s.ids, c.ids...)
	m.tele.used.Store(int64(len(s.ids)))
	if m.maps.wanted.Load() {
		m.mapResidency()
	}
	if c.outputs == 0 {
		return nil
	}
	m.finishLogits(s.p.logits)
	s.fresh = append(s.fresh[:0], s.p.logits[(c.outputs-1)*m.spec.vocab:]...)
	return finite(s.fresh, len(s.ids)-1)
}
