package engine

import (
	"cmp"
	"slices"
	"time"

	"outcrop/gpu/compute/ops"
)

// Experts that are missed on a card and lie in pinned RAM can be computed by
// either side: by the CPU, at the rate at which it multiplies weights, or by
// the card once their weights have come over the link. Which one is faster is
// measured, and mostly it is both: the experts of a layer are dealt out so that
// both sides end at about the same time. Rates stay as they were measured at
// load, so the same choices are dealt out alike.

// Misses says who computes experts in RAM while a card runs their layer.
const (
	missesAuto = "auto" // both, by measured rates; the default
	missesCPU  = "cpu"
	missesLink = "link" // the card, as far as copies are pinned
)

// sides are the rates of the two.
type sides struct {
	cpu  float64 // bytes of expert weights a second, all workers
	link float64 // bytes a second over the link
}

const (
	// cpuRow and cardRow are what a further token of the same expert costs, as
	// a part of the time for its first. The CPU has the weights in its cache; a
	// card shares them in the tiles of a prompt, and reads them again for each
	// of a few tokens.
	cpuRow, cardRow = 1.0 / 6, 1.0 / 16
	// cardRate is how fast a card computes from its own memory, carefully.
	cardRate = 300e9
	// linkSetup is what bringing one expert costs beside its bytes: copies and
	// repacking are some six calls to the driver (92 us for 2.65 MB at 53 GB/s
	// on an H200).
	linkSetup = 40e-6
	// linkStart is what handing a layer to the card costs before its first copy.
	linkStart = 60e-6
)

// deal sorts the experts of a layer to two sides. rows[i] is how many tokens
// chose expert i, size what it takes; hits is how many experts the card has
// already. It appends the places in rows of those that go over the link.
func (s sides) deal(dst []int, rows []int32, size int64, hits int) []int {
	order := make([]int, len(rows))
	for i := range order {
		order[i] = i
	}
	// Experts with many tokens first, and to the card where it can: the CPU's
	// time grows with the tokens, the link's does not.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows[b], rows[a]) })
	n := float64(size)
	card, cpu := linkStart+float64(hits)*n/cardRate, 0.0
	for _, i := range order {
		more, again := float64(rows[i]-1), 1.0
		if rows[i] > ops.MaxColumns {
			again = cardRow
		}
		a := card + linkSetup + n/s.link + (1+more*again)*n/cardRate
		b := cpu + n/s.cpu*(1+more*cpuRow)
		if a <= b {
			dst, card = append(dst, i), a
		} else {
			cpu = b
		}
	}
	return dst
}

// overLink moves experts of the open layer that the card is to fetch and
// compute from those that the CPU would.
func (s *shelves) overLink(p *pass, k *shelf) {
	c := s.slots
	c.over = c.over[:0]
	if k.card == nil || s.m.missesBy == missesCPU {
		return
	}
	start := p.mix.start
	var at []int // in ready
	var rows []int32
	for i, e := range s.ready {
		if k.copies.of[e] == nobody { // in a spare buffer
			continue
		}
		at, rows = append(at, i), append(rows, start[e+1]-start[e])
	}
	var take []int
	if s.m.missesBy == missesLink {
		for i := range rows {
			take = append(take, i)
		}
	} else {
		take = s.m.sides.deal(nil, rows, int64(k.size), len(c.chosen))
	}
	slices.Sort(take)
	gone := make(map[int32]bool, len(take))
	for _, i := range take {
		e := s.ready[at[i]]
		gone[e] = true
		c.over = append(c.over, linked{e, k.weights(int(k.copies.of[e]), e)})
	}
	if len(gone) > 0 {
		s.ready = slices.DeleteFunc(s.ready, func(e int32) bool { return gone[e] })
	}
}

// arrivedOver lets go of the copies that went over the link.
func (s *shelves) arrivedOver(k *shelf) {
	if s.slots == nil {
		return
	}
	for _, w := range s.slots.over {
		k.busy[w.expert] = false
	}
	s.slots.over = s.slots.over[:0]
}

// size is the bytes of an expert's matrices.
func (b expertBytes) size() int64 { return int64(len(b[0]) + len(b[1]) + len(b[2])) }

// measureSides finds the rates of both sides, where both may be asked. The
// workers must run.
func (m *Model) measureSides() {
	s, ok := m.experts.(*shelves)
	if !ok || s.slots == nil || m.missesBy != missesAuto || m.cards == nil {
		return
	}
	for _, k := range s.layers {
		if k == nil || k.card == nil || m.cards.slots == nil {
			continue
		}
		sr := m.cards.slots.runs[m.cards.slots.layers[k.l.index].r]
		if sr == nil || sr.stage == nil {
			continue
		}
		rate, err := linkRate(sr.r.dev, k.card.pages[0].host, sr.stage.gateUp)
		if err != nil {
			rate = 1 // the next pass reports what the device has
		}
		if m.sides.link == 0 || rate < m.sides.link {
			m.sides.link = rate
		}
		if m.sides.cpu == 0 {
			m.sides.cpu = m.expertRate(s)
		}
		if len(m.cards.runs) == 1 {
			break
		}
	}
	if m.sides.link <= 0 || m.sides.cpu <= 0 {
		m.missesBy = missesCPU
	}
}

// expertRate is how many bytes of experts a second the workers multiply with one
// token, from copies in RAM: the best of three turns over a few layers.
func (m *Model) expertRate(s *shelves) (best float64) {
	const most = 512 << 20
	p := &pass{m: m, t: 1, cs: nil}
	dim := m.spec.dim
	x := make([]float32, dim)
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	same := []int32{0}
	for range 3 {
		var bytes int64
		var took time.Duration
		for _, k := range s.layers {
			if k == nil || bytes > most {
				continue
			}
			p.acts(&p.in, x, 1, dim, k.l.gates.f.Float)
			rows := k.l.gates.rows
			dst := make([]float32, 2*k.l.expert.used*rows)
			p.begin()
			n := 0
			for at, e := range k.copies.who {
				if e == nobody || n == 2*k.l.expert.used {
					continue
				}
				w := k.at(k.place(at), e)
				p.slice(&k.l.gates, w[0], int(e), 0, rows, &p.in, same, dst[n*rows:], rows)
				bytes += int64(len(w[0]))
				n++
			}
			begin := time.Now()
			p.run()
			took += time.Since(begin)
		}
		if took > 0 {
			best = max(best, float64(bytes)/took.Seconds())
		}
	}
	return best
}
