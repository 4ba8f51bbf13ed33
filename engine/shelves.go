package engine

import (
	"fmt"
	"sync/atomic"
	"time"
)

// shelves is the provider of a model whose experts are held as copies in RAM,
// all or the hottest, and read from the file when they are missing. Missing
// experts are read several at a time while those at hand are computed, and
// what is used more than the coldest copy takes its place.
//
// Everything but the readers runs on the goroutine that holds the model's
// turn, so a copy is never changed while a product reads it, and an expert
// counts as moved only when all its bytes have landed.
type shelves struct {
	m      *Model
	reader *fileReader
	layers []*shelf     // by layer; nil without experts
	full   int64        // bytes of all experts
	most   int64        // bytes of copies wanted at load
	budget atomic.Int64 // of which the guard allows now
	limit  int64        // budget that the shelves have already

	// Buffers for experts that get no copy.
	spares    region
	spareSize int
	free      []int // spare buffers not in use

	slots *slots // nil: no card

	// The open layer.
	ready   []int32  // can be computed
	missing []int32  // not asked for yet
	due     int      // reads under way that the pass waits for
	wave    []int32  // given out last
	lent    []*fetch // spares that hold experts not computed yet
	waiting map[int32]*fetch
	got     []expertBytes // of the pass
	failed  error
	// uncounted: uses of a missing expert by this pass that its count lacks.
	uncounted float32

	ahead   foresight
	orphans int // spares that a forgotten guess is still read to
	landed  []*fetch
	parts   []part
	cursor  int   // layer that gets the next copy in the background
	filling int   // copies on their way there
	broken  error // why copies are not filled any more
	ended   bool
	stop    chan struct{}
	fill    chan struct{} // there may be vacancies
	idle    chan struct{} // the background goroutine has ended
}

// newShelves makes room for budget bytes of copies, -1 for all experts.
func newShelves(m *Model, budget int64) (*shelves, error) {
	s := &shelves{
		m: m, waiting: map[int32]*fetch{}, ahead: foresight{reads: map[int32]*fetch{}, share: 1},
		stop: make(chan struct{}), fill: make(chan struct{}, 1), idle: make(chan struct{}),
	}
	used := 0
	add := func(l *layer) {
		for len(s.layers) <= l.index {
			s.layers = append(s.layers, nil)
		}
		if l.expert.count == 0 {
			return
		}
		k := newShelf(m.pack.file, l)
		s.layers[l.index] = k
		s.full += int64(k.size) * int64(l.expert.count)
		s.spareSize = max(s.spareSize, k.size)
		used = max(used, l.expert.used)
	}
	for i := range m.layers {
		add(&m.layers[i])
	}
	for i := range m.weights.drafts {
		add(&m.weights.drafts[i].layer)
	}
	if used == 0 {
		return nil, fmt.Errorf("hold experts in RAM: the model has none")
	}
	if budget < 0 {
		budget = s.full
	}
	budget = min(budget, s.full)
	for _, k := range s.layers {
		if k == nil {
			continue
		}
		if err := k.places(s.share(k, budget), m.pinsTo(k.l.index)); err != nil {
			s.release()
			return nil, err
		}
	}
	// Two layers' worth of misses: one is computed while the other is read.
	n := max(2*used, readers)
	var err error
	if s.spares, err = newRegion(n * s.spareSize); err != nil {
		s.release()
		return nil, err
	}
	for i := range n {
		s.free = append(s.free, i)
	}
	if s.reader, err = newFileReader(m.pack.file.Shards()); err != nil {
		s.release()
		return nil, err
	}
	s.budget.Store(budget)
	s.most, s.limit = budget, budget
	go s.background()
	return s, nil
}

// share is how many experts of a layer have a copy when budget bytes may be
// used: the same part of every layer.
func (s *shelves) share(k *shelf, budget int64) int {
	n := k.l.expert.count
	return min(n, int(float64(n)*float64(budget)/float64(s.full)+1e-6))
}

func (s *shelves) release() {
	for _, k := range s.layers {
		if k != nil {
			k.mem.free()
			k.card.free()
		}
	}
	s.spares.free()
}

// end frees everything. No pass may run.
func (s *shelves) end() {
	s.ended = true
	close(s.stop)
	<-s.idle
	if s.slots != nil {
		s.slots.settle()
	}
	s.reader.close()
	s.release()
}

func (s *shelves) spare(i int) []byte { return s.spares.mem[i*s.spareSize : (i+1)*s.spareSize] }

// open begins with a layer. See experts.
func (s *shelves) open(p *pass, l *layer) error {
	s.collect()
	s.apply()
	k, start, c := s.layers[l.index], p.mix.start, &s.m.tiers
	s.ready, s.missing, s.due, s.failed, s.got = s.ready[:0], s.missing[:0], 0, nil, p.mix.got
	for e := range int32(l.expert.count) {
		if start[e] == start[e+1] {
			continue
		}
		t := k.tier(e)
		c.reads[t].Add(1)
		switch t {
		case TierSlot:
			s.slots.chosen = append(s.slots.chosen, e)
			continue
		case TierRAM:
			p.mix.got[e] = k.at(k.place(int(k.copies.of[e])), e)
			s.ready = append(s.ready, e)
		default:
			s.missing = append(s.missing, e)
		}
		k.busy[e] = true
	}
	// Some may be on their way already, as a guess or for their own sake.
	n := 0
	for _, e := range s.missing {
		if f := s.foreseen(k, e); f != nil {
			if f.done { // a guess that has landed in a spare
				p.mix.got[e] = k.at(s.spare(f.spare), e)
				s.ready, s.lent = append(s.ready, e), append(s.lent, f)
				continue
			}
			s.reader.hurry(f)
			s.waiting[e] = f
			s.due++
			continue
		}
		s.missing[n] = e
		n++
	}
	s.missing = s.missing[:n]
	s.learn(k)
	if s.slots != nil {
		s.overLink(p, k)
		if err := s.slots.start(p, l); err != nil {
			return err
		}
	}
	s.uncounted = 1
	s.issue(k)
	s.uncounted = 0
	s.foresee(p, l)
	return nil
}

// coming is the read that brings an expert to its place, if there is one.
func (k *shelf) coming(e int32) *fetch {
	for i, c := range k.copies.coming {
		if c == e {
			return k.reading[i]
		}
	}
	return nil
}

// issue asks for missing experts as long as there is somewhere to put them.
func (s *shelves) issue(k *shelf) {
	for len(s.missing) > 0 {
		e := s.missing[0]
		f := &fetch{layer: k.l.index, expert: e, place: int(nobody), spare: int(nobody), urgent: true}
		var buf []byte
		if at := s.admit(k, e, s.uncounted); at >= 0 {
			buf = s.reserve(k, at, f)
		} else if n := len(s.free); n > 0 {
			f.spare = s.free[n-1]
			s.free = s.free[:n-1]
			buf = s.spare(f.spare)
		} else {
			return // once the experts at hand are computed there will be room
		}
		s.missing = s.missing[1:]
		s.waiting[e] = f
		s.due++
		s.ask(k, f, buf)
		for _, p := range s.parts {
			s.m.tiers.missed.Add(int64(p.need))
		}
	}
}

// admit finds a place for a missing expert: a vacant one, or that of a copy
// that is used no more than it. uncounted uses of it are not in its count yet.
func (s *shelves) admit(k *shelf, e int32, uncounted float32) int {
	if at := k.vacant(); at >= 0 {
		return at
	}
	if k.copies.room() < 0 {
		return int(nobody)
	}
	at := k.coldest(s.m.heat)
	if at >= 0 && k.count(s.m.heat, k.copies.who[at]) <= k.count(s.m.heat, e)+uncounted {
		s.m.tiers.evicted.Add(1)
		return at
	}
	return int(nobody)
}

// reserve keeps a place for a fetch and returns its memory.
func (s *shelves) reserve(k *shelf, at int, f *fetch) []byte {
	if k.copies.who[at] == nobody {
		s.m.tiers.held.Add(int64(k.size))
	}
	k.copies.reserve(at, f.expert)
	k.reading[at] = f
	f.place = at
	return k.place(at)
}

func (s *shelves) ask(k *shelf, f *fetch, buf []byte) {
	s.parts = k.wants(s.parts[:0], f, buf, s.reader.direct)
	s.reader.ask(f, s.parts)
}

// next gives what can be computed. See experts.
func (s *shelves) next(_ *pass, l *layer) ([]int32, error) {
	k := s.layers[l.index]
	s.done(k)
	for {
		s.collect()
		if s.failed == nil {
			s.issue(k)
			if len(s.ready) > 0 {
				s.wave, s.ready = append(s.wave[:0], s.ready...), s.ready[:0]
				return s.wave, nil
			}
		}
		if s.due == 0 {
			break // after a failure too, nothing may be under way any more
		}
		begin := time.Now()
		<-s.reader.signal
		s.m.tiers.waited.Add(time.Since(begin).Nanoseconds())
	}
	if s.slots != nil {
		if err := s.slots.wait(); err != nil && s.failed == nil {
			s.failed = err
		}
		s.arrivedOver(k)
	}
	return nil, s.failed
}

// done takes back what the last wave used.
func (s *shelves) done(k *shelf) {
	for _, e := range s.wave {
		k.busy[e] = false
	}
	s.wave = s.wave[:0]
	n := 0
	for _, f := range s.lent {
		if f.layer == k.l.index && k.busy[f.expert] {
			s.lent[n] = f
			n++
			continue
		}
		s.free = append(s.free, f.spare)
	}
	s.lent = s.lent[:n]
}

// close ends with a layer. See experts.
func (s *shelves) close(_ *pass, l *layer) {
	s.done(s.layers[l.index])
	s.arrivedOver(s.layers[l.index])
	s.replenish(aheadFetches, false)
}

// between moves experts to slots. See experts.
func (s *shelves) between(p *pass) error {
	if s.slots == nil {
		return nil
	}
	return s.slots.round(p.t)
}
