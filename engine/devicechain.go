package engine

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// A token on several devices waits for each of them in turn. Gone about simply
// that is two changes of goroutine from one device to the next, and an idle core
// takes tens of microseconds to wake: 80 us lay between two H200s' work for a
// token, of which a copy of 16 KiB is the least part. So the calls for all devices
// are handed out at once. A device's goroutine stands ready at its turn, looks at a
// flag that the one before it sets, and launches within a microsecond.

// baton is the flag between two devices.
type baton struct{ state atomic.Int32 }

const (
	batonWaits = iota
	batonPassed
	batonDropped // the device before has failed
	batonLate    // nobody came
)

// lookAhead is how long before its turn a device begins to look. Until then it
// sleeps: timers are no finer than a millisecond. lookOn is how long after its turn
// it goes on without a pause, and giveUp how long in all: the watchdog must find
// the device that hangs, not the one that waits for it.
const (
	lookAhead = 2500 * time.Microsecond
	lookOn    = 2 * time.Millisecond
	giveUp    = 10 * time.Second // cards.giveUp, which tests shorten
)

// take waits for the device before, of which the turn ends in about expect, and
// tells what came of it.
func (b *baton) take(expect, giveUp time.Duration) int32 {
	begin := time.Now()
	if expect > 2*lookAhead {
		time.Sleep(min(expect-lookAhead, giveUp))
	}
	for i := 1; ; i++ {
		if s := b.state.Load(); s != batonWaits {
			return s
		}
		if i%1024 != 0 {
			continue
		}
		switch d := time.Since(begin); {
		case d > giveUp:
			return batonLate
		case d > expect+lookOn:
			time.Sleep(50 * time.Microsecond) // somebody else may want the core
		}
	}
}

func (b *baton) pass(ok bool) {
	if ok {
		b.state.Store(batonPassed)
	} else {
		b.state.Store(batonDropped)
	}
}

// chains tells whether steps can be handed to all devices at once: each device's
// goroutine keeps a core busy meanwhile, so there must be some, and a processor
// that stands for a card wants them itself.
func (c *cards) chains() bool {
	if !c.flows() || runtime.GOMAXPROCS(0) < 2*len(c.runs) {
		return false
	}
	for _, r := range c.runs {
		if r.dev.Info().CPU {
			return false
		}
	}
	return true
}

// chained is forward for few tokens.
func (c *cards) chained(ctx context.Context, p *pass, f *feed) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	type turn struct {
		s   *step
		seq *compute.Sequence
		b   baton // that it went well
		err error
	}
	turns := make([]turn, len(c.runs))
	for i, r := range c.runs {
		s, err := r.step(p, &p.st.cards.runs[i], f)
		if err == nil {
			err = r.roomFor(s, true)
		}
		if err == nil {
			r.fill(s.in, f)
			s.ready = i > 0
			turns[i].s = s
			turns[i].seq, err = r.sequence(s)
		}
		if err != nil {
			return r.wrap(err)
		}
		if r.hops != nil {
			f.x, f.hop = nil, r.hops[0]
		}
	}
	ended := make(chan struct{}, len(c.runs))
	work := func(i int, expect time.Duration) {
		r, t := c.runs[i], &turns[i]
		ok := false
		defer func() { t.b.pass(ok) }() // whatever happened, nobody waits for it
		t.err = r.dev.Do(func(q *compute.Queue) error {
			if i > 0 {
				if err := r.inputs(q, t.s); err != nil {
					return err
				}
				if err := q.Finish(); err != nil {
					return err
				}
				if turns[i-1].b.take(expect, c.giveUp) != batonPassed {
					return nil
				}
			}
			if err := r.timed(q, t.seq); err != nil {
				return err
			}
			if r.hops != nil {
				r.hops[0].pass(4 * t.s.T * c.m.spec.dim)
			}
			r.turnTime = r.ended.Sub(r.began)
			ok = true
			t.b.pass(true) // before the way back to whoever waits for Do
			return nil
		})
		ok = ok && t.err == nil
	}
	// The last one from here, so that its end wakes nobody else first.
	last := len(c.runs) - 1
	expect := make([]time.Duration, len(c.runs))
	for i, r := range c.runs[:last] {
		expect[i+1] = expect[i] + r.turnTime
	}
	for i := last - 1; i >= 0; i-- { // the first one is begun first: a core takes up what was added last
		go func() { work(i, expect[i]); ended <- struct{}{} }()
	}
	work(last, expect[last])
	for range last {
		<-ended
	}
	for i := range turns {
		// One that gave up dropped the baton: the others behind it did not run.
		if i > 0 && turns[i-1].err == nil && turns[i].err == nil && turns[i-1].b.state.Load() == batonPassed && turns[i].b.state.Load() != batonPassed {
			work(i, 0)
		}
	}
	for i, r := range c.runs {
		if err := turns[i].err; err != nil {
			return r.wrap(err)
		}
		d := r.turnTime.Nanoseconds()
		c.times.device.Add(d)
		c.times.wait.Add(d)
		if i > 0 && f.tokens == 1 {
			r.passed(c.runs[i-1])
		}
	}
	c.runs[len(c.runs)-1].results(p, turns[len(turns)-1].s, true)
	return nil
}

// fewTokens tells whether a step is recorded.
func fewTokens(n int) bool { return n <= ops.MaxColumns }
