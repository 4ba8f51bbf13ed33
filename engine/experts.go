package engine

import "outcrop/engine/gguf"

// experts gives passes the weights of routed experts, from wherever they are.
// One pass at a time uses it; a layer is opened, asked until nothing is left,
// and closed. Between two calls no worker reads weights, so a provider may
// move experts in any of them.
type experts interface {
	// open is told which experts the tokens of a pass have chosen in a layer
	// (p.mix.start). Reads of those that are not at hand begin, and cards
	// begin with those in their slots.
	open(p *pass, l *layer) error
	// next gives experts that the CPU can compute now, with their weights in
	// p.mix.got. It waits only when there is nothing else to do. Empty: all
	// have been given, and what cards computed is in p.mix.out.
	next(p *pass, l *layer) ([]int32, error)
	// close tells that nothing of the layer is in use any more.
	close(p *pass, l *layer)
	// between is called between two passes.
	between(p *pass) error
}

// expertBytes are the weights of one expert: its gate, up and down matrices.
// Up is nil where gate holds both.
type expertBytes [3][]byte

// mapped are the weights in the file's pages.
func (l *layer) mapped(e int32) expertBytes {
	var b expertBytes
	for i, k := range l.banks() {
		if !k.none() {
			b[i] = k.of(int(e))
		}
	}
	return b
}

// banks are the matrices of a layer's experts in the order of expertBytes.
func (l *layer) banks() [3]*bank { return [3]*bank{&l.gates, &l.ups, &l.downs} }

// pages uses experts where they lie in the mapped file. In a model bigger than
// RAM it asks the system for all that a layer has chosen at once, before the
// first is computed; else every page would be a fault of its own, and the disk
// would see one small request at a time.
type pages struct {
	m    *Model
	wave []int32
}

// freshTokens is how long after its use an expert is taken to be in RAM still,
// so that it is not asked for again: asking costs a system call per matrix.
const freshTokens = 4

func (s *pages) open(p *pass, l *layer) error {
	m, start := s.m, p.mix.start
	ahead := m.options.FileTier && m.relief.prefetch()
	s.wave = s.wave[:0]
	for e := range l.expert.count {
		if start[e] == start[e+1] {
			continue
		}
		if ahead && !m.heat.fresh(l.index, e, freshTokens) {
			m.adviseExpert(l, e, gguf.WillNeed)
		}
		s.wave = append(s.wave, int32(e))
		p.mix.got[e] = l.mapped(int32(e))
	}
	m.tiers.reads[TierFile].Add(int64(len(s.wave)))
	return nil
}

func (s *pages) next(*pass, *layer) ([]int32, error) {
	w := s.wave
	s.wave = w[:0:cap(w)]
	return w, nil
}

func (s *pages) close(*pass, *layer) {}
func (s *pages) between(*pass) error { return nil }
