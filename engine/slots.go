package engine

// slotStore keeps copies of experts where a card computes on them. Slots are
// per layer. Calls come from the goroutine that holds the model's turn.
type slotStore interface {
	// slots is how many a layer has.
	slots(layer int) int
	// put begins to write an expert's weights into a slot. They stay as they
	// are until settle returns.
	put(layer, slot int, w expertBytes) error
	// settle returns when everything that was put is in place.
	settle() error
	// start begins to compute the rows of p.mix.out of the given experts of a
	// layer: down(act(gate x) * up x) for each of their tokens, as mixture
	// does. slot[i] is where expert[i] is. wait returns when they are there.
	start(p *pass, l *layer, expert, slot []int32) error
	wait() error
}

const (
	// roundEvery tokens, experts may move to slots, at most roundMoves in all
	// layers together: what adaptive tiers elsewhere use (strata.md 3.2).
	roundEvery = 4
	roundMoves = 96
)

// slots moves hot experts into the slots of a card and has it compute them.
//
// A move is made in two rounds. The first one takes the old expert out, so
// that from the next layer on it is used from RAM or file, and begins the
// copy; the next one waits for the copy, which then has long been done, and
// lets the new expert in. So a slot is never read while it is written.
type slots struct {
	s     *shelves
	store slotStore
	due   int // tokens to the next round

	chosen, at []int32 // of the open layer
	running    bool
	moving     []moving
	moves      []move
}

type moving struct {
	move
	pin int // the copy it comes from, or nobody
}

// useSlots gives the shelves a card. No pass may run.
func (s *shelves) useSlots(store slotStore) error {
	s.slots = &slots{s: s, store: store, due: roundEvery}
	for i, k := range s.layers {
		if k == nil {
			continue
		}
		n := store.slots(i)
		k.slots = newSeats(k.l.expert.count, n)
		counts := make([]float32, k.l.expert.count)
		for e := range counts {
			counts[e] = k.count(s.m.heat, int32(e))
		}
		for at, e := range firstPlaces(counts, n) {
			if err := s.slots.begin(move{layer: i, place: at, in: e, out: nobody}); err != nil {
				return err
			}
		}
	}
	return s.slots.settle()
}

// begin takes whoever has the slot out and starts the copy of the new one.
func (c *slots) begin(m move) error {
	k := c.s.layers[m.layer]
	pin, w := nobody, k.l.mapped(m.in)
	if at := k.copies.of[m.in]; at != nobody {
		pin, w = at, k.at(k.place(int(at)), m.in)
		k.pin[at]++
	}
	if m.out != nobody {
		c.s.m.tiers.evicted.Add(1)
	}
	k.slots.reserve(m.place, m.in)
	c.moving = append(c.moving, moving{m, int(pin)})
	return c.store.put(m.layer, m.place, w)
}

// settle waits for copies and lets the experts in.
func (c *slots) settle() error {
	if len(c.moving) == 0 {
		return nil
	}
	err := c.store.settle()
	for _, m := range c.moving {
		k := c.s.layers[m.layer]
		if m.pin >= 0 {
			k.pin[m.pin]--
		}
		if err != nil {
			k.slots.leave(m.place)
		} else if k.slots.land(m.place, m.in) {
			c.s.m.tiers.promoted.Add(1)
		}
	}
	c.moving = c.moving[:0]
	return err
}

// round moves experts when it is time. tokens is how many have run since the
// last call.
func (c *slots) round(tokens int) error {
	if c.due -= tokens; c.due > 0 {
		return nil
	}
	c.due = roundEvery
	if err := c.settle(); err != nil {
		return err
	}
	if !c.s.m.relief.prefetch() {
		return nil
	}
	c.moves = c.moves[:0]
	var counts []float32
	for i, k := range c.s.layers {
		if k == nil {
			continue
		}
		counts = counts[:0]
		for e := range int32(k.l.expert.count) {
			counts = append(counts, k.count(c.s.m.heat, e))
		}
		c.moves = slotPromotion.propose(c.moves, i, counts, &k.slots, roundMoves)
	}
	for _, m := range best(c.moves, roundMoves) {
		if err := c.begin(m); err != nil {
			return err
		}
	}
	return nil
}

// start has the card compute the chosen experts that are in slots.
func (c *slots) start(p *pass, l *layer) error {
	if len(c.chosen) == 0 {
		return nil
	}
	k := c.s.layers[l.index]
	c.at = c.at[:0]
	for _, e := range c.chosen {
		c.at = append(c.at, k.slots.of[e])
	}
	err := c.store.start(p, l, c.chosen, c.at)
	c.running = err == nil
	c.chosen = c.chosen[:0]
	return err
}

// wait returns when the card is done with the layer.
func (c *slots) wait() error {
	if !c.running {
		return nil
	}
	c.running = false
	return c.store.wait()
}

// limit lets a layer use n slots at most; experts beyond leave at once, the
// coldest first. Their memory can be used for something else afterwards.
func (c *slots) limit(layer, n int) {
	k := c.s.layers[layer]
	k.slots.limit = min(n, len(k.slots.who))
	for k.slots.room() < 0 {
		at, least := -1, float32(0)
		for i, e := range k.slots.who {
			if e == nobody {
				continue
			}
			if v := k.count(c.s.m.heat, e); at < 0 || v < least {
				at, least = i, v
			}
		}
		if at < 0 {
			for i, e := range k.slots.coming {
				if e != nobody {
					at = i
				}
			}
		}
		k.slots.leave(at)
		c.s.m.tiers.evicted.Add(1)
	}
}
