package engine

import (
	"context"
	"time"
)

// Filling the copies in the background: after load, and when the guard lets
// them grow again. It yields to reads that a pass waits for.

const (
	// aheadFetches is how many experts may be on their way to free places
	// while passes run, idleFetches while none does.
	aheadFetches = 2
	idleFetches  = 2 * readers
	// fillEvery is how often the background goroutine looks.
	fillEvery = 5 * time.Millisecond
)

// replenish starts reads for vacant places until n are under way, at full
// speed when no pass runs. It reports whether there was anything to do.
func (s *shelves) replenish(n int, full bool) bool {
	if s.limit == 0 || s.broken != nil || !s.m.relief.prefetch() {
		return false
	}
	for tried := 0; s.filling < n && tried < len(s.layers); {
		s.cursor = (s.cursor + 1) % len(s.layers)
		k := s.layers[s.cursor]
		tried++
		if k == nil || k.copies.room() <= 0 {
			continue
		}
		e, at := k.hottest(s.m.heat), k.vacant()
		if e == nobody || at < 0 {
			continue
		}
		f := &fetch{layer: k.l.index, expert: e, spare: int(nobody), background: true, urgent: full}
		s.filling++
		s.ask(k, f, s.reserve(k, at, f))
		tried = 0
	}
	return s.filling > 0
}

// background fills vacant places while no pass runs.
func (s *shelves) background() {
	defer close(s.idle)
	tick := time.NewTicker(fillEvery)
	defer tick.Stop()
	for {
		busy := true
		select {
		case <-s.stop:
			return
		case <-s.fill:
		case <-tick.C:
		}
		if s.m.turn.TryLock() {
			s.collect()
			s.apply()
			busy = s.replenish(idleFetches, true)
			s.m.turn.Unlock()
		}
		if !busy { // nothing to do until somebody says so
			tick.Stop()
			select {
			case <-s.stop:
				return
			case <-s.fill:
				tick.Reset(fillEvery)
			}
		}
	}
}

// fillAll brings as many experts into RAM as may be, and waits for them.
func (s *shelves) fillAll(ctx context.Context, progress func(done, total int64)) error {
	s.m.turn.Lock()
	defer s.m.turn.Unlock()
	for {
		s.collect()
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.broken != nil {
			return s.broken
		}
		if progress != nil {
			progress(s.m.tiers.held.Load(), s.limit)
		}
		if !s.replenish(idleFetches, true) {
			return nil
		}
		select {
		case <-s.reader.signal:
		case <-ctx.Done():
		}
	}
}
