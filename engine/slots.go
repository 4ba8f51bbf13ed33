package engine

import "sync/atomic"

// slotStore keeps copies of experts where a card computes on them. Slots are
// per layer. Calls come from the goroutine that holds the model's turn.
type slotStore interface {
	// slots is how many a layer can have.
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

// slotResizer is a slotStore that can give memory back when another program
// wants it, and take it again.
type slotResizer interface {
	slotStore
	// card is the PCI address of the card.
	card() string
	// bytes is what a slot takes.
	bytes(layer int) int64
	// resize makes the memory of a layer large enough for n slots and gives
	// back what is behind them. Slots in use are before n.
	resize(layer, n int) error
	// move copies a slot; it is complete when move returns.
	move(layer, from, to int) error
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
	size  slotResizer  // the same; nil: its slots are fixed
	due   int          // tokens to the next round
	most  int64        // bytes of all slots
	held  atomic.Int64 // bytes of the slots there are now
	asked atomic.Int64 // bytes the guard wants more or less

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
	c := &slots{s: s, store: store, due: roundEvery}
	s.slots = c
	c.size, _ = store.(slotResizer)
	for i, k := range s.layers {
		if k == nil {
			continue
		}
		n := store.slots(i)
		k.slots = newSeats(k.l.expert.count, n)
		if c.size != nil {
			if err := c.size.resize(i, n); err != nil {
				return err
			}
			c.most += int64(n) * c.size.bytes(i)
		}
		counts := make([]float32, k.l.expert.count)
		for e := range counts {
			counts[e] = k.count(s.m.heat, int32(e))
		}
		for at, e := range firstPlaces(counts, n) {
			if err := c.begin(move{layer: i, place: at, in: e, out: nobody}); err != nil {
				return err
			}
		}
	}
	c.held.Store(c.most)
	return c.settle()
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
	if err := c.adjust(); err != nil {
		return err
	}
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

// ask notes that slots are to take n bytes more, or less when it is negative.
// The change comes between two passes.
func (c *slots) ask(n int64) { c.asked.Add(n) }

// card is the address of a card whose slots can change, "" for none.
func (c *slots) card() string {
	if c == nil || c.size == nil {
		return ""
	}
	return c.size.card()
}

// adjust does what was asked: every layer keeps the same part of its slots.
func (c *slots) adjust() error {
	n := c.asked.Swap(0)
	if n == 0 || c.size == nil || c.most == 0 {
		return nil
	}
	if err := c.settle(); err != nil {
		return err
	}
	part := float64(min(max(c.held.Load()+n, 0), c.most)) / float64(c.most)
	var held int64
	for i, k := range c.s.layers {
		if k == nil {
			continue
		}
		limit := int(part*float64(len(k.slots.who)) + 1e-6)
		if err := c.limit(i, limit); err != nil {
			return err
		}
		held += int64(limit) * c.size.bytes(i)
	}
	c.held.Store(held)
	return nil
}

// limit lets a layer use n slots. Experts beyond leave at once, the coldest
// first; those that stay move to the first n, and the memory of the others can
// be used for something else. Nothing may be on its way.
func (c *slots) limit(layer, n int) error {
	k := c.s.layers[layer]
	s := &k.slots
	s.limit = n
	for s.room() < 0 {
		at, least := -1, float32(0)
		for i, e := range s.who {
			if e == nobody {
				continue
			}
			if v := k.count(c.s.m.heat, e); at < 0 || v < least {
				at, least = i, v
			}
		}
		s.leave(at)
		c.s.m.tiers.evicted.Add(1)
	}
	to := 0
	for from := n; from < len(s.who); from++ {
		if s.who[from] == nobody {
			continue
		}
		for s.who[to] != nobody {
			to++
		}
		if err := c.size.move(layer, from, to); err != nil {
			return err
		}
		s.shift(from, to)
	}
	return c.size.resize(layer, n)
}
