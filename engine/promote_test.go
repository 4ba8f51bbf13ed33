package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestSeats(t *testing.T) {
	s := newSeats(4, 2)
	s.reserve(0, 3)
	if s.of[3] != nobody || !s.pending(3) || s.room() != 1 {
		t.Error("an expert is in its place before its weights have landed")
	}
	if !s.land(0, 3) || s.of[3] != 0 || s.pending(3) {
		t.Error("a landed expert is not in its place")
	}
	s.reserve(0, 1)
	if s.of[3] != nobody {
		t.Error("an expert whose place is written over is still there")
	}
	if s.leave(0); s.land(0, 1) {
		t.Error("landed in a place that was taken back")
	}
	s.reserve(0, 2)
	s.reserve(1, 2)
	if !s.land(0, 2) || s.land(1, 2) {
		t.Error("an expert landed twice")
	}
	if err := s.check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(s *seats){
		"two places": func(s *seats) { s.who[1] = 2; s.taken++ },
		"no place":   func(s *seats) { s.of[0] = 1 },
		"miscount":   func(s *seats) { s.taken = 0 },
		"over limit": func(s *seats) { s.limit = 0 },
		"written":    func(s *seats) { s.coming[0] = 3 },
		"outside":    func(s *seats) { s.who[0] = 9 },
	} {
		c := s
		c.of, c.who, c.coming = slices.Clone(s.of), slices.Clone(s.who), slices.Clone(s.coming)
		spoil(&c)
		if c.check() == nil {
			t.Errorf("%s: not noticed", name)
		}
	}
}

func TestTierIsOne(t *testing.T) {
	r := residency{copies: newSeats(3, 3), slots: newSeats(3, 1)}
	if r.tier(0) != TierFile {
		t.Error(r.tier(0))
	}
	r.copies.reserve(2, 0)
	r.copies.land(2, 0)
	r.slots.reserve(0, 0)
	if r.tier(0) != TierRAM {
		t.Error("an expert on its way to a slot must be used from RAM")
	}
	r.slots.land(0, 0)
	if r.tier(0) != TierSlot {
		t.Error(r.tier(0))
	}
	if r.slots.reserve(0, 1); r.tier(0) != TierRAM || r.tier(1) != TierFile {
		t.Error("an evicted expert is at home at once")
	}
	if err := r.check(0); err != nil {
		t.Error(err)
	}
}

func TestPropose(t *testing.T) {
	s := newSeats(6, 2)
	counts := []float32{0, 5, 1, 9, 5, 7}
	got := slotPromotion.propose(nil, 4, counts, &s, 9)
	if len(got) != 2 || got[0].in != 3 || got[1].in != 5 || got[0].out != nobody || got[0].layer != 4 {
		t.Fatalf("into free places: %+v", got)
	}
	for _, m := range got {
		s.reserve(m.place, m.in)
		s.land(m.place, m.in)
	}
	if got := slotPromotion.propose(nil, 0, counts, &s, 9); len(got) != 0 {
		t.Errorf("nobody is clearly hotter, yet %+v", got)
	}
	counts[5], counts[1] = 3, 6
	got = slotPromotion.propose(nil, 0, counts, &s, 9)
	if len(got) != 1 || got[0].in != 1 || got[0].out != 5 {
		t.Errorf("%+v", got)
	}
	if got := slotPromotion.propose(nil, 0, counts, &s, 0); len(got) != 0 {
		t.Errorf("over the limit: %+v", got)
	}
}

func TestFirstPlaces(t *testing.T) {
	got := firstPlaces(make([]float32, 64), 8)
	slices.Sort(got)
	for i := 1; i < len(got); i++ {
		if d := got[i] - got[i-1]; d < 3 || d > 16 {
			t.Errorf("not spread evenly: %v", got)
		}
	}
	got = firstPlaces([]float32{0, 4, 0, 9, 0, 0, 0, 0}, 4)
	if got[0] != 3 || got[1] != 1 || len(got) != 4 {
		t.Errorf("the hottest of the profile are not first: %v", got)
	}
	for n := 1; n < 300; n++ {
		got := firstPlaces(make([]float32, n), n)
		slices.Sort(got)
		if len(slices.Compact(got)) != n {
			t.Fatalf("%d experts: some are twice or missing", n)
		}
	}
}

// zipf draws k different experts of n with probabilities falling as 1/rank^s,
// the ranks dealt out by perm.
type zipf struct {
	cum  []float64
	perm []int
	rng  *rand.Rand
}

func newZipf(rng *rand.Rand, n int, s float64) *zipf {
	z := &zipf{rng: rng, perm: rng.Perm(n)}
	sum := 0.0
	for i := range n {
		sum += 1 / math.Pow(float64(i+1), s)
		z.cum = append(z.cum, sum)
	}
	return z
}

func (z *zipf) draw(k int) []int {
	var out []int
	for len(out) < k {
		i, _ := slices.BinarySearch(z.cum, z.rng.Float64()*z.cum[len(z.cum)-1])
		if e := z.perm[min(i, len(z.perm)-1)]; !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	return out
}

// simulation runs skewed routing against slots that follow it.
type simulation struct {
	layers, experts, used, slots, window int
	swaps                                int // per round
	every                                int // tokens
	s                                    float64
}

// run gives the share of expert reads that found a slot, and the best any
// fixed placement could reach, in the tokens before and after mid, and how
// many moves there were.
func (c simulation) run(seed uint64, tokens, mid int) (early, late, bestEarly, bestLate float64, moves int) {
	rng := rand.New(rand.NewPCG(seed, 11))
	specs := make([]layer, c.layers)
	draw := make([]*zipf, c.layers)
	tables := make([]residency, c.layers)
	for i := range specs {
		specs[i].layerSpec = &layerSpec{}
		specs[i].expert.count = c.experts
		draw[i] = newZipf(rng, c.experts, c.s)
		tables[i].slots = newSeats(c.experts, c.slots)
		for p, e := range firstPlaces(make([]float32, c.experts), c.slots) {
			tables[i].slots.reserve(p, e)
			tables[i].slots.land(p, e)
		}
	}
	h := newHeat(specs, nil)
	uses := [2][][]float64{}
	for half := range uses {
		uses[half] = make([][]float64, c.layers)
		for i := range uses[half] {
			uses[half][i] = make([]float64, c.experts)
		}
	}
	var hits, reads [2]float64
	due := c.every
	for now := 0; now < tokens; now += c.window {
		half := 0
		if now >= mid {
			half = 1
		}
		for il := range tables {
			n := make([]int, c.experts)
			for range c.window {
				for _, e := range draw[il].draw(c.used) {
					n[e]++
				}
			}
			for e, k := range n {
				if k == 0 {
					continue
				}
				h.touch(il, e, k)
				reads[half]++
				uses[half][il][e]++
				if tables[il].tier(int32(e)) == TierSlot {
					hits[half]++
				}
			}
		}
		h.tick(c.window)
		if due -= c.window; due <= 0 {
			due = c.every
			counts := h.read()
			var list []move
			for il := range tables {
				list = slotPromotion.propose(list, il, counts[il], &tables[il].slots, c.swaps)
			}
			for _, m := range best(list, c.swaps) {
				s := &tables[m.layer].slots
				s.reserve(m.place, m.in)
				if !s.land(m.place, m.in) {
					panic("a proposed move did not land")
				}
				moves++
			}
		}
	}
	var top [2]float64
	for half := range uses {
		for _, u := range uses[half] {
			slices.Sort(u)
			for _, v := range u[len(u)-c.slots:] {
				top[half] += v
			}
		}
	}
	return hits[0] / reads[0], hits[1] / reads[1], top[0] / reads[0], top[1] / reads[1], moves
}

// Slots that start without a profile must find skewed routing within 200
// tokens. The bar is the best fixed placement in hindsight, which knows the
// very tokens it is measured on.
func TestPromotionFollowsSkew(t *testing.T) {
	for _, c := range []simulation{
		{layers: 12, experts: 128, used: 8, slots: 16, window: 1, swaps: 24, every: 4, s: 1.0},
		{layers: 12, experts: 128, used: 8, slots: 32, window: 1, swaps: 24, every: 4, s: 1.0},
		{layers: 12, experts: 128, used: 8, slots: 32, window: 4, swaps: 24, every: 4, s: 1.2},
		{layers: 12, experts: 256, used: 8, slots: 40, window: 8, swaps: 24, every: 4, s: 1.0},
		{layers: 12, experts: 256, used: 10, slots: 40, window: 2, swaps: 24, every: 4, s: 1.2},
		{layers: 12, experts: 64, used: 6, slots: 20, window: 1, swaps: 24, every: 4, s: 0.8},
	} {
		early, late, bestEarly, bestLate, moves := c.run(5, 400, 200)
		t.Logf("%d of %d slots, Zipf %.1f, windows of %d: %.1f %% hits in 200 tokens (best fixed %.1f %%), then %.1f %% (%.1f %%), %d moves",
			c.slots, c.experts, c.s, c.window, 100*early, 100*bestEarly, 100*late, 100*bestLate, moves)
		if late < 0.85*bestLate {
			t.Errorf("%+v: %.3f of reads hit after 200 tokens, the best fixed placement reaches %.3f", c, late, bestLate)
		}
		// Where one token is run at a time, even the tokens it learnt from count.
		if c.window == 1 && early < 0.85*bestEarly {
			t.Errorf("%+v: %.3f of reads hit within 200 tokens, the best fixed placement reaches %.3f", c, early, bestEarly)
		}
	}
}

// Even routing has nothing to learn: moves must die down.
func TestPromotionRestsOnEvenRouting(t *testing.T) {
	c := simulation{layers: 8, experts: 128, used: 8, slots: 32, window: 1, swaps: 24, every: 4, s: 0}
	_, late, _, _, moves := c.run(3, 800, 400)
	if late < 0.2 || late > 0.3 {
		t.Errorf("%.3f of reads hit with a quarter of the experts in slots", late)
	}
	// 800 tokens read 51,200 experts; a cache that takes every miss moves 38,400.
	if moves > 4000 {
		t.Errorf("%d moves in 800 tokens of even routing", moves)
	}
	t.Logf("%d moves", moves)
}
