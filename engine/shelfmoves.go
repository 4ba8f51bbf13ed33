package engine

import (
	"context"
	"fmt"
	"time"
)

// How copies of experts come and go: what has been read is taken over, and what
// the guard asks for is done, always between two layers or while nothing runs.

// collect takes over what has been read: an expert that a place was kept for
// is there now, and one that the open layer waits for can be computed.
func (s *shelves) collect() {
	s.landed = s.reader.take(s.landed[:0])
	for _, f := range s.landed {
		k := s.layers[f.layer]
		if f.background {
			s.filling--
			if f.err != nil {
				s.broken = f.err
			}
		}
		wanted := s.waiting[f.expert] == f
		if wanted {
			delete(s.waiting, f.expert)
			s.due--
		}
		var buf []byte
		if f.place >= 0 {
			buf = k.place(f.place)
			k.reading[f.place] = nil
			switch {
			case f.err != nil && k.copies.coming[f.place] == f.expert:
				s.vacate(k, f.place)
			case k.copies.land(f.place, f.expert):
				s.m.tiers.arrived.Add(1)
			case k.copies.who[f.place] == nobody && k.copies.coming[f.place] == nobody:
				k.release(f.place, f.place+1) // given up meanwhile
			}
		} else {
			buf = s.spare(f.spare)
			f.done = true
			switch {
			case f.orphan:
				s.orphans--
				s.free = append(s.free, f.spare)
			case wanted:
				s.lent = append(s.lent, f)
			case f.err != nil: // the layer will ask again and say so
				s.free = append(s.free, f.spare)
				delete(s.ahead.reads, f.expert)
			}
		}
		if !wanted {
			continue
		}
		if f.err != nil {
			if s.failed == nil {
				s.failed = fmt.Errorf("layer %d, expert %d: %w", f.layer, f.expert, f.err)
			}
			k.busy[f.expert] = false
			continue
		}
		s.got[f.expert] = k.at(buf, f.expert)
		s.ready = append(s.ready, f.expert)
	}
}

// apply makes the copies as many as the guard allows.
func (s *shelves) apply() {
	b := s.budget.Load()
	if b == s.limit {
		return
	}
	before, all := s.m.tiers.held.Load(), true
	for _, k := range s.layers {
		if k == nil {
			continue
		}
		n := min(s.share(k, b), len(k.copies.who))
		k.copies.limit = n
		for k.copies.room() < 0 {
			at := k.coldest(s.m.heat)
			for i := 0; at < 0 && i < len(k.copies.coming); i++ {
				if k.copies.coming[i] != nobody {
					at = i
				}
			}
			if at < 0 {
				all = false // a card copies from there; next time
				break
			}
			s.vacate(k, at)
		}
		k.compact(n)
	}
	if all {
		s.limit = b
	}
	if n := before - s.m.tiers.held.Load(); n > 0 {
		s.m.tiers.given.Add(n)
	}
}

// vacate gives a place up; its memory stays until it is released.
func (s *shelves) vacate(k *shelf, at int) {
	k.copies.leave(at)
	s.m.tiers.held.Add(-int64(k.size))
}

// shrink lowers what copies may take to n bytes less than they take now, and
// grow raises it by up to n bytes. The change comes between two layers, or at
// once when nothing runs.
func (s *shelves) shrink(n int64) {
	s.budget.Store(max(0, min(s.m.tiers.held.Load(), s.budget.Load())-n))
	s.soon()
}

func (s *shelves) grow(n int64) {
	s.budget.Store(min(s.most, s.budget.Load()+n))
	s.soon()
}

// soon lets changes take effect when no pass does it.
func (s *shelves) soon() {
	if s.m.turn.TryLock() {
		if !s.ended {
			s.collect()
			s.apply()
			if s.slots != nil {
				// A card that fails here fails in the next pass too, and says so.
				_ = s.slots.adjust()
			}
		}
		s.m.turn.Unlock()
	}
	select {
	case s.fill <- struct{}{}:
	default:
	}
}

// check verifies that every expert is in exactly one tier, and that the bytes
// are counted right. Nothing may run.
func (s *shelves) check() error {
	var held int64
	for i, k := range s.layers {
		if k == nil {
			continue
		}
		if err := k.check(i); err != nil {
			return err
		}
		held += int64(k.copies.taken+k.copies.waiting) * int64(k.size)
		for e, b := range k.busy {
			if b {
				return fmt.Errorf("layer %d: expert %d is still marked as in use", i, e)
			}
		}
	}
	if n := s.m.tiers.held.Load(); n != held {
		return fmt.Errorf("copies of experts take %d bytes, %d are counted", held, n)
	}
	if n := len(s.free) + len(s.lent) + len(s.ahead.reads) + s.orphans; n*s.spareSize != len(s.spares.mem) {
		return fmt.Errorf("%d spare buffers are accounted for, there are %d", n, len(s.spares.mem)/s.spareSize)
	}
	return nil
}

// shelve sets up copies of experts where they are wanted.
func (m *Model) shelve(ctx context.Context) error {
	if m.options.ExpertRAM == 0 {
		return nil
	}
	s, err := newShelves(m, m.options.ExpertRAM)
	if err != nil && m.options.FileTier {
		// Slower, but it runs: the pages of the file need nobody's leave.
		m.say(time.Now(), fmt.Sprintf("experts are used in the file's pages: %v", err))
		return nil
	}
	if err != nil {
		return err
	}
	m.experts = s
	if m.options.FileTier {
		s.soon() // filled while the first prompt is read
		return nil
	}
	if err := s.fillAll(ctx, func(done, total int64) {
		if m.options.Progress != nil {
			m.options.Progress("experts", done, total)
		}
	}); err != nil {
		s.end()
		return err
	}
	return s.check()
}
