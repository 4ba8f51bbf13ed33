package engine

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"outcrop/engine/gguf"
	"outcrop/engine/guard"
)

// ErrMemory ends an answer because the machine is out of memory. The text that
// came before it stays valid.
var ErrMemory = errors.New("the answer was ended because memory ran out; close other programs, or choose a smaller context or pack")

// relief is what the guard has asked the model to give up. The guard's
// goroutine sets it, the pass looks between two tokens.
type relief struct {
	step atomic.Int32 // guard.Step
	mu   sync.Mutex
	wake chan struct{} // closed and replaced at every change
	said watched       // for telemetry
}

func newRelief() *relief { return &relief{wake: make(chan struct{})} }

// prefetch reports whether experts may be read ahead.
func (r *relief) prefetch() bool { return guard.Step(r.step.Load()) < guard.StopPrefetch }

// wait holds a pass back while the guard wants a pause. It returns ErrMemory
// when the answer must end.
func (r *relief) wait(ctx context.Context) error {
	for {
		r.mu.Lock()
		step, wake := guard.Step(r.step.Load()), r.wake
		r.mu.Unlock()
		switch {
		case step >= guard.EndRequest:
			return ErrMemory
		case step < guard.Pause:
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-wake:
		}
	}
}

// Relieve carries out a decision of the guard. It is called from the guard's
// goroutine, while passes may run; what a pass holds is taken only between two
// tokens. It returns the bytes of file pages that were offered back.
//
// Unloading is up to the owner of the model: it closes it when the step is
// guard.Unload and the answer has ended.
func (m *Model) Relieve(d guard.Decision) (offered int64) {
	r := m.relief
	r.mu.Lock()
	before := guard.Step(r.step.Swap(int32(d.Step)))
	if d.Step != before {
		close(r.wake)
		r.wake = make(chan struct{})
	}
	r.mu.Unlock()
	if d.Step > before && d.Step >= guard.GiveBack {
		offered = m.giveBack(d.Step)
	}
	if d.Step >= guard.ShrinkRAM {
		m.dropRelaid()
	}
	if s, ok := m.experts.(*shelves); ok {
		switch {
		case d.RAM < 0:
			s.shrink(-d.RAM)
		case d.RAM > 0:
			s.grow(d.RAM)
		}
		if s.slots != nil {
			for card, n := range d.Slots {
				s.slots.ask(card, n)
			}
			if len(d.Slots) > 0 {
				s.soon()
			}
		}
	}
	return offered
}

// giveBack offers the file pages of experts that are not in use to the system:
// at GiveBack those that were not used lately, later all of them. Dense
// weights stay: every token needs them, and reading them again would make the
// pressure worse.
func (m *Model) giveBack(step guard.Step) (offered int64) {
	if s, ok := m.experts.(*shelves); ok && s.slots == nil {
		return 0 // no page of an expert is in use
	}
	counts := m.heat.read()
	for i := range m.layers {
		l := &m.layers[i]
		for e := range l.expert.count {
			if step == guard.GiveBack && counts[i][e] >= 0.5 {
				continue
			}
			offered += m.adviseExpert(l, e, gguf.DontNeed)
		}
	}
	return offered
}

// adviseExpert gives advice for the bytes of one expert and returns how many
// there are. Advice is a wish; a system that refuses it changes nothing.
func (m *Model) adviseExpert(l *layer, e int, a gguf.Advice) (n int64) {
	for _, b := range []*bank{&l.gates, &l.ups, &l.downs} {
		if b.none() {
			continue
		}
		if t := m.pack.file.Tensor(b.name); t != nil {
			size := t.Bytes / int64(b.count)
			_ = m.pack.file.Advise(t, int64(e)*size, size, a)
			n += size
		}
	}
	return n
}
