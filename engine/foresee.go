package engine

import (
	"math"

	"outcrop/engine/quant"
)

// Looking ahead: while the disk brings a layer's missing experts and workers
// compute those at hand, the next layer's router is asked what it would choose
// for the hidden state as it is now. The residual stream changes little from
// layer to layer, so most guesses are right (Eliseev and Mazur, arXiv
// 2312.17238, section 3.2), and the disk has work between two layers. A wrong
// guess costs a read that nobody waited for.

const (
	// foreseeTokens is the most tokens of a pass that are looked ahead for: a
	// prompt chooses nearly all experts of a layer anyway.
	foreseeTokens = 4
	// foreseeLeast is the share of right guesses below which guessing rests,
	// foreseeProbe how many layers it then skips before it is tried again.
	foreseeLeast = 0.3
	foreseeProbe = 200
)

// foresight is what looking ahead needs and remembers.
type foresight struct {
	layer  int              // whose experts were guessed
	reads  map[int32]*fetch // guesses that were read to spares, by expert
	ids    []int32          // (T, used) guessed choices
	list   []int32          // different ones that are not at hand
	norm   []float32        // (T, dim)
	logits []float32        // (T, experts)
	score  []float32        // (experts)
	acts   quant.Acts

	share float64 // of guesses that were right, lately
	rest  int     // layers to skip
}

// foresee begins to read what the layer after l will probably want.
func (s *shelves) foresee(p *pass, l *layer) {
	m, f := s.m, &s.ahead
	if l.index+1 >= len(m.layers) || p.t > foreseeTokens || m.spec.streams > 0 || l.ffnNorm == nil || !m.relief.prefetch() {
		return
	}
	next := &m.layers[l.index+1]
	k := s.layers[next.index]
	if k == nil || k.copies.limit >= next.expert.count {
		return
	}
	if f.rest > 0 {
		f.rest--
		return
	}
	s.letGo()
	s.guess(p, l, next)
	f.layer = next.index
	for _, e := range f.ids {
		if k.tier(e) == TierFile && k.coming(e) == nil && f.reads[e] == nil && !contains32(f.list, e) {
			f.list = append(f.list, e)
		}
	}
	for _, e := range f.ids {
		k.busy[e] = true // no copy gives way to one that is guessed with it
	}
	asked := f.list[:0]
	for _, e := range f.list {
		r := &fetch{layer: next.index, expert: e, place: int(nobody), spare: int(nobody), guess: true}
		var buf []byte
		if at := s.admit(k, e, 1); at >= 0 {
			buf = s.reserve(k, at, r)
		} else if n := len(s.free); n > len(s.spares.mem)/s.spareSize/2 {
			r.spare = s.free[n-1]
			s.free = s.free[:n-1]
			f.reads[e] = r
			buf = s.spare(r.spare)
		} else {
			continue
		}
		asked = append(asked, e)
		s.ask(k, r, buf)
	}
	f.list = asked
	m.tiers.guessed.Add(int64(len(asked)))
	for _, e := range f.ids {
		k.busy[e] = false
	}
}

// guess fills f.ids with the choices of layer l for the residual stream as it is
// in layer now: the highest logits, which every gating function ranks the same way.
func (s *shelves) guess(p *pass, now, l *layer) {
	m, f, e := s.m, &s.ahead, &l.expert
	T, dim := p.t, m.spec.dim
	growInts(&f.ids, T*e.used)
	if m.foretell != nil {
		for t := range T {
			m.foretell(l.index, t, f.ids[t*e.used:(t+1)*e.used])
		}
		return
	}
	grow(&f.norm, T*dim)
	grow(&f.logits, T*e.count)
	grow(&f.score, e.count)
	// The normed state is there with this layer's weights on it; the stream
	// itself may be on a card.
	for t := range T {
		y, x := f.norm[t*dim:(t+1)*dim], p.xb[t*dim:(t+1)*dim]
		for i := range y {
			y[i] = 0
			if w := now.ffnNorm[i]; w != 0 {
				y[i] = x[i] / w * l.ffnNorm[i]
			}
		}
	}
	p.acts(&f.acts, f.norm, T, dim, l.router.f.Float)
	p.begin()
	p.want(f.logits, e.count, &l.router, &f.acts)
	p.run()
	for t := range T {
		copy(f.score, f.logits[t*e.count:(t+1)*e.count])
		if l.pickBias != nil {
			// The bias is meant for probabilities; it ranks as well when both
			// are on the scale of a sigmoid.
			for i, v := range f.score {
				f.score[i] = sigmoid(v) + l.pickBias[i]
			}
		}
		for i := range e.used {
			best := argmax(f.score)
			f.ids[t*e.used+i] = int32(best)
			f.score[best] = float32(math.Inf(-1))
		}
	}
}

// foreseen takes over the guesses for a layer that is opened: e was chosen,
// and its read, if one was begun, is returned.
func (s *shelves) foreseen(k *shelf, e int32) *fetch {
	if f := &s.ahead; f.layer == k.l.index {
		if r := f.reads[e]; r != nil {
			delete(f.reads, e)
			return r
		}
	}
	return k.coming(e)
}

// learn counts right guesses of an opened layer and lets go of the others.
func (s *shelves) learn(k *shelf) {
	f := &s.ahead
	if f.layer != k.l.index || len(f.list) == 0 {
		return
	}
	right := 0
	for _, e := range f.list {
		if k.busy[e] {
			right++
		}
	}
	s.m.tiers.right.Add(int64(right))
	f.share += 0.02 * (float64(right)/float64(len(f.list)) - f.share)
	if f.share < foreseeLeast {
		f.rest = foreseeProbe
		f.share += 0.02
	}
	s.letGo()
}

// letGo forgets guesses that were wrong, or that no pass came for.
func (s *shelves) letGo() {
	f := &s.ahead
	for e, r := range f.reads {
		delete(f.reads, e)
		if r.done {
			s.free = append(s.free, r.spare)
		} else {
			r.orphan = true
			s.orphans++
		}
	}
	f.list = f.list[:0]
}

func contains32(x []int32, v int32) bool {
	for _, e := range x {
		if e == v {
			return true
		}
	}
	return false
}
