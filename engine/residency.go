package engine

import "fmt"

// Tier is where the weights of an expert are used from.
type Tier uint8

// The tiers, the fastest last.
const (
	TierFile Tier = iota // the file: its pages, or a read into a spare buffer
	TierRAM              // a copy in memory of our own
	TierSlot             // a slot of a card
)

func (t Tier) String() string { return [...]string{"file", "RAM", "slot"}[t] }

// nobody marks a free place, and an expert that is in none.
const nobody int32 = -1

// seats is one kind of places for the experts of a layer, copies in RAM or
// slots of a card, and who has which. An expert has one place of a kind at
// most, a place one expert.
type seats struct {
	of    []int32 // by expert: its place, or nobody
	who   []int32 // by place: its expert, or nobody
	limit int     // how many places may be used now
	taken int     // places with an expert
	// coming is by place the expert whose weights are on their way there. It
	// counts as absent until they have landed.
	coming  []int32
	waiting int // places somebody is coming to
}

func newSeats(experts, places int) seats {
	s := seats{of: make([]int32, experts), who: make([]int32, places), coming: make([]int32, places), limit: places}
	fill(s.of, nobody)
	fill(s.who, nobody)
	fill(s.coming, nobody)
	return s
}

func fill(x []int32, v int32) {
	for i := range x {
		x[i] = v
	}
}

// reserve keeps a place for an expert. Whoever was there is out at once,
// because its weights are about to be written over.
func (s *seats) reserve(place int, expert int32) {
	s.leave(place)
	s.coming[place] = expert
	s.waiting++
}

// land makes an expert whose weights are complete usable. It reports false
// when the place was taken back meanwhile.
func (s *seats) land(place int, expert int32) bool {
	if s.coming[place] != expert {
		return false
	}
	s.coming[place] = nobody
	s.waiting--
	if s.of[expert] != nobody {
		return false
	}
	s.who[place], s.of[expert] = expert, int32(place)
	s.taken++
	return true
}

// leave frees a place; its expert is at home in the next tier at once.
func (s *seats) leave(place int) (expert int32) {
	expert = s.who[place]
	if s.coming[place] != nobody {
		s.coming[place] = nobody
		s.waiting--
	}
	if expert != nobody {
		s.who[place], s.of[expert] = nobody, nobody
		s.taken--
	}
	return expert
}

// shift moves an expert to a free place; its weights must have been copied.
func (s *seats) shift(from, to int) {
	e := s.who[from]
	s.who[from], s.who[to], s.of[e] = nobody, e, int32(to)
}

// room is how many more places may be used.
func (s *seats) room() int { return s.limit - s.taken - s.waiting }

// pending reports whether the expert's weights are on their way.
func (s *seats) pending(expert int32) bool {
	for _, e := range s.coming {
		if e == expert {
			return true
		}
	}
	return false
}

// check verifies that both directions agree.
func (s *seats) check() error {
	n := 0
	for p, e := range s.who {
		if e == nobody {
			continue
		}
		n++
		switch {
		case e < 0 || int(e) >= len(s.of):
			return fmt.Errorf("place %d holds expert %d of %d", p, e, len(s.of))
		case s.of[e] != int32(p):
			return fmt.Errorf("expert %d is in place %d and believed to be in %d", e, p, s.of[e])
		case s.coming[p] != nobody:
			return fmt.Errorf("place %d is used by expert %d while expert %d is written there", p, e, s.coming[p])
		}
	}
	for e, p := range s.of {
		if p != nobody && (p < 0 || int(p) >= len(s.who) || s.who[p] != int32(e)) {
			return fmt.Errorf("expert %d is believed to be in place %d, which it is not", e, p)
		}
	}
	coming := 0
	for _, e := range s.coming {
		if e != nobody {
			coming++
		}
	}
	if n != s.taken || coming != s.waiting {
		return fmt.Errorf("%d places are used and %d waited for, %d and %d are counted", n, coming, s.taken, s.waiting)
	}
	if n+coming > s.limit {
		return fmt.Errorf("%d places are used and %d waited for, only %d are allowed", n, coming, s.limit)
	}
	return nil
}

// residency says where every expert of a layer is. Behind each stands the
// file, so an expert is always in exactly one tier: its slot if it has one,
// else its copy, else the file.
type residency struct {
	copies seats
	slots  seats
}

func (r *residency) tier(e int32) Tier {
	switch {
	case r.slots.of != nil && r.slots.of[e] != nobody:
		return TierSlot
	case r.copies.of != nil && r.copies.of[e] != nobody:
		return TierRAM
	}
	return TierFile
}

// check verifies both tables.
func (r *residency) check(layer int) error {
	if err := r.copies.check(); err != nil {
		return fmt.Errorf("experts in RAM of layer %d: %w", layer, err)
	}
	if err := r.slots.check(); err != nil {
		return fmt.Errorf("slots of layer %d: %w", layer, err)
	}
	return nil
}
