package engine

import (
	"fmt"
	"sync/atomic"
	"time"
)

// slotStore keeps copies of experts where a card computes on them. Slots are
// per layer. Calls come from the goroutine that holds the model's turn.
type slotStore interface {
	// slots is how many a layer can have.
	slots(layer int) int
	// put begins to write an expert's weights into a slot. They stay as they
	// are until settle returns.
	put(layer, slot int, w weightsAt) error
	// settle returns when everything that was put is in place.
	settle() error
	// start begins to compute the rows of p.mix.out of the given experts of a
	// layer: down(act(gate x) * up x) for each of their tokens, as mixture
	// does. slot[i] is where expert[i] is; those of over have none, and their
	// weights go over the link first. wait returns when the rows are there.
	start(p *pass, l *layer, expert, slot []int32, over []linked) error
	wait() error
}

// weightsAt are the weights of an expert, and where the card can fetch them by
// itself, if it can.
type weightsAt struct {
	expertBytes
	pin pinnedAt
}

// linked is an expert whose copy in pinned memory goes over the link.
type linked struct {
	expert int32
	weightsAt
}

// slotResizer is a slotStore that can give memory back when another program
// wants it, and take it again.
type slotResizer interface {
	slotStore
	// card names the card of a layer: its PCI address, or what Options.Device
	// calls it. Empty: the layer has no slots.
	card(layer int) string
	// bytes is what a slot takes.
	bytes(layer int) int64
	// resize makes the memory of a layer large enough for n slots and gives
	// back what is behind them. Slots in use are before n. One that fails
	// changes nothing.
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
	size  slotResizer           // the same; nil: its slots are fixed
	due   int                   // tokens to the next round
	cards map[string]*cardShare // by card; nil: slots are fixed

	chosen, at []int32  // of the open layer
	over       []linked // of the open layer: come over the link
	began      time.Time
	running    bool
	moving     []moving
	moves      []move
}

// cardShare are the slots on one card.
type cardShare struct {
	most  int64        // bytes of all slots
	held  atomic.Int64 // bytes of the slots there are now
	asked atomic.Int64 // bytes the guard wants more or less
}

type moving struct {
	move
	pin int // the copy it comes from, or nobody
}

// useSlots gives the shelves a card. No pass may run.
func (s *shelves) useSlots(store slotStore) error {
	c := &slots{s: s, store: store, due: roundEvery}
	s.slots = c
	if c.size, _ = store.(slotResizer); c.size != nil {
		c.cards = map[string]*cardShare{}
	}
	for i, k := range s.layers {
		if k == nil {
			continue
		}
		n := store.slots(i)
		k.slots = newSeats(k.l.expert.count, n)
		if n == 0 {
			continue
		}
		if c.size != nil {
			want := n
			for err := c.size.resize(i, n); err != nil; err = c.size.resize(i, n) {
				if n /= 2; n == 0 { // the card is full: this layer goes without
					s.m.say(time.Now(), fmt.Sprintf("layer %d: no slots: %v", i, err))
					break
				}
			}
			if n < want {
				k.slots = newSeats(k.l.expert.count, n)
			}
			if n == 0 {
				continue
			}
			share := c.cards[c.size.card(i)]
			if share == nil {
				share = &cardShare{}
				c.cards[c.size.card(i)] = share
			}
			share.most += int64(n) * c.size.bytes(i)
			share.held.Store(share.most)
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
		if err := c.settle(); err != nil { // layer by layer: copies stay few
			return err
		}
	}
	return nil
}

// begin takes whoever has the slot out and starts the copy of the new one.
func (c *slots) begin(m move) error {
	k := c.s.layers[m.layer]
	pin, w := nobody, weightsAt{expertBytes: k.l.mapped(m.in)}
	if at := k.copies.of[m.in]; at != nobody {
		pin, w = at, k.weights(int(at), m.in)
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

// start has the card compute the chosen experts that are in slots, and those
// that come over the link.
func (c *slots) start(p *pass, l *layer) error {
	if len(c.chosen)+len(c.over) == 0 {
		return nil
	}
	k := c.s.layers[l.index]
	c.at = c.at[:0]
	for _, e := range c.chosen {
		c.at = append(c.at, k.slots.of[e])
	}
	c.began = time.Now()
	err := c.store.start(p, l, c.chosen, c.at, c.over)
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
	t, begin := &c.s.m.tiers, time.Now()
	err := c.store.wait()
	t.cardWait.Add(time.Since(begin).Nanoseconds())
	if len(c.over) > 0 {
		n := int64(0)
		for _, w := range c.over {
			n += w.size()
		}
		t.linked.Add(int64(len(c.over)))
		t.linkBytes.Add(n)
		t.linkTime.Add(time.Since(c.began).Nanoseconds())
	}
	return err
}

// ask notes that slots on a card are to take n bytes more, or less when it is
// negative. The change comes between two passes.
func (c *slots) ask(card string, n int64) {
	if share := c.cards[card]; share != nil {
		share.asked.Add(n)
	}
}

// held is how many bytes the slots of each card take; nil where they cannot
// change.
func (c *slots) held() map[string]int64 {
	if c == nil || len(c.cards) == 0 {
		return nil
	}
	out := map[string]int64{}
	for name, share := range c.cards {
		out[name] = share.held.Load()
	}
	return out
}

// adjust does what was asked: every layer of a card keeps the same part of its
// slots.
func (c *slots) adjust() error {
	for name, share := range c.cards {
		n := share.asked.Swap(0)
		if n == 0 || share.most == 0 {
			continue
		}
		if err := c.settle(); err != nil {
			return err
		}
		part := float64(min(max(share.held.Load()+n, 0), share.most)) / float64(share.most)
		var held int64
		for i, k := range c.s.layers {
			if k == nil || len(k.slots.who) == 0 || c.size.card(i) != name {
				continue
			}
			limit := int(part*float64(len(k.slots.who)) + 1e-6)
			before := k.slots.limit
			if err := c.limit(i, limit); err != nil {
				if limit < before {
					return fmt.Errorf("give slots of layer %d back: %w", i, err)
				}
				// Somebody else has the memory: those there were go on.
				k.slots.limit, limit = before, before
			}
			held += int64(limit) * c.size.bytes(i)
		}
		share.held.Store(held)
	}
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
