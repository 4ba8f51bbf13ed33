package engine

import (
	"context"
	"errors"
	"math"
	"sync"
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
// Each device has two pinned buffers for inputs and two for results. What
// device 0 has finished is copied from its result buffer to an input buffer of
// device 1 by the CPU, while both devices compute. Layers that are the CPU's
// come first and run on the goroutine that asked, as do drafts.

// stage is one device of a pipeline.
type stage struct {
	r       *run
	rs      *runState
	freeIn  chan *compute.Host // pinned memory to fill
	freeOut chan *compute.Host // pinned memory for results
	ready   chan *parcel       // whose inputs are in pinned memory
	done    chan *parcel       // whose results are
}

// parcel is a piece of a prompt on its way.
type parcel struct {
	feed
	ids     []token.ID
	in, out *compute.Host // of the device it is on; out holds x
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

// pieceCost is what a piece of a prompt takes beside its tokens, in tokens: weights
// are read once for each piece, and products of few columns leave units idle. An
// H200 reads prompts of a 1.5B model at 31,000, 39,600 and 43,900 tok/s in chunks
// of 512, 1024 and 2048, as if each had 300 tokens more; smaller cards are busy
// with less.
const (
	pieceCost     = 64
	widePieceCost = 300
	leastPiece    = 128
)

// piece is the length of the pieces that a prompt of n tokens flows in; 0: it
// is run by passes of its own, one after the other. A chunk that was asked for
// stays.
func (c *cards) piece(n int) int {
	if c == nil || !c.plain() || c.check != nil {
		return 0
	}
	stages := len(c.runs)
	if c.first > 0 {
		stages++
	}
	if stages < 2 {
		return 0
	}
	k := c.m.chunk
	if c.m.options.Chunk == 0 {
		cost := pieceCost
		if c.m.chunk > defaultChunk {
			cost = widePieceCost
		}
		k = pieceOf(n, stages, cost, k)
	}
	if n <= k {
		return 0
	}
	return k
}

// pieceOf finds the pieces of k tokens, at most most, with which n tokens are
// through so many stages soonest. The first piece fills the pipeline, so it takes
// n/k + stages-1 times that of a piece, which is as k + cost: least where
// k = sqrt(n cost / (stages-1)). The pieces are made even. No tokens, which is
// what a bench at depth 0 fills, need none: most.
func pieceOf(n, stages, cost, most int) int {
	if n < 1 {
		return most
	}
	k := int(math.Sqrt(float64(n) * float64(cost) / float64(stages-1)))
	k = min(max(k, leastPiece), most)
	count := (n + k - 1) / k
	each := (n + count - 1) / count
	return min((each+63)/64*64, most)
}

// prefill runs ids after the timeline, a chunk at a time. With outputs == 1 the
// logits of the last one are in s.fresh afterwards. done is called after each
// chunk, from this goroutine.
func (s *Session) prefill(ctx context.Context, ids []token.ID, outputs int, done func()) error {
	if k := s.m.cards.piece(len(ids)); k > 0 {
		return s.flow(ctx, ids, outputs, k, done)
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

// flow is prefill as a pipeline of pieces of k tokens.
func (s *Session) flow(ctx context.Context, ids []token.ID, outputs, k int, done func()) error {
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
		return f.run(ctx, ids, outputs, k, done)
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
			freeIn: make(chan *compute.Host, 2), freeOut: make(chan *compute.Host, 2),
			ready: make(chan *parcel, 2), done: make(chan *parcel, 2),
		}
		if err := r.double(); err != nil {
			return r.wrap(err)
		}
		b := &r.buf
		st.freeIn <- b.in
		st.freeIn <- b.in2
		st.freeOut <- b.xHost
		st.freeOut <- b.xHost2
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

// double takes the second pair of pinned buffers.
func (r *run) double() (err error) {
	b := &r.buf
	if b.in2 == nil {
		if b.in2, err = r.dev.Host(int64(len(b.in.Bytes()))); err != nil {
			return err
		}
	}
	if b.xHost2 == nil {
		b.xHost2, err = r.dev.Host(int64(len(b.xHost.Bytes())))
	}
	return err
}

// work runs parcels on the device of a stage, in order.
func (f *flow) work(st *stage) {
	r, t := st.r, &st.r.c.times
	for {
		var c *parcel
		select {
		case c = <-st.ready:
		case <-f.quit:
			return
		}
		select {
		case c.out = <-st.freeOut:
		case <-f.quit:
			return
		}
		s, err := r.step(f.s.p, st.rs, &c.feed)
		if err == nil {
			s.in, s.xHost = c.in, c.out
			err = r.roomFor(s, false)
		}
		if err == nil {
			begin := time.Now()
			err = r.dev.Do(func(q *compute.Queue) error { return r.enqueue(q, s, false) })
			d := time.Since(begin).Nanoseconds()
			t.device.Add(d)
			t.wait.Add(d)
		}
		if err != nil {
			f.fail(r.wrap(err))
			return
		}
		st.freeIn <- c.in
		c.in, c.x = nil, asFloats(c.out.Bytes())[:c.tokens*r.c.m.spec.dim]
		st.done <- c
	}
}

// carry hands parcels over from one device to the next.
func (f *flow) carry(from, to *stage) {
	for {
		var c *parcel
		select {
		case c = <-from.done:
		case <-f.quit:
			return
		}
		select {
		case c.in = <-to.freeIn:
		case <-f.quit:
			return
		}
		to.r.fill(c.in, &c.feed)
		from.freeOut <- c.out
		c.out, c.x = nil, nil
		to.ready <- c
	}
}

// run feeds the first device and takes from the last one.
func (f *flow) run(ctx context.Context, ids []token.ID, outputs, k int, done func()) error {
	first, last := f.stages[0], f.stages[len(f.stages)-1]
	var next *parcel
	left := len(ids) // that have not come out
	for left > 0 {
		if next == nil && len(ids) > 0 {
			n, wanted := min(k, len(ids)), 0
			if n == len(ids) {
				wanted = outputs
			}
			var err error
			if next, err = f.prepare(ctx, ids[:n], wanted); err != nil {
				return err
			}
			ids = ids[n:]
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
			first.r.fill(in, &next.feed)
			next.in, next.x = in, nil
			first.ready <- next
			next = nil
		case c := <-last.done:
			if err := f.finish(c); err != nil {
				return err
			}
			left -= c.tokens
			last.freeOut <- c.out
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
