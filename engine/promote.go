package engine

import (
	"cmp"
	"slices"
)

// promotion says which experts are worth a move to a faster tier. It is pure:
// counts and places in, moves out.
type promotion struct {
	// least is how often an expert must have been used lately to get a free
	// place.
	least float32
	// ratio and margin: an expert takes the place of another one only when
	// its count is above ratio times the other's plus margin. Without that,
	// even routing would swap for ever.
	ratio, margin float32
}

// slotPromotion are the rules for slots of a card: a move costs a trip over
// the link. That an expert must be used twice to enter is what adaptive tiers
// elsewhere found (strata.md 6.1).
var slotPromotion = promotion{least: 2, ratio: 1.25, margin: 1}

// move brings an expert of a layer to a place; out is who leaves it, or nobody.
type move struct {
	layer, place int
	in, out      int32
	gain         float32 // how much more often in is used than out
}

// propose appends the moves that pay for one layer: the hottest experts
// without a place against the coldest with one. At most limit of them.
func (p promotion) propose(dst []move, layer int, counts []float32, s *seats, limit int) []move {
	if s.limit == 0 || limit <= 0 {
		return dst
	}
	var wait, have []int32
	for e := range s.of {
		switch e := int32(e); {
		case s.of[e] != nobody:
			have = append(have, e)
		case counts[e] >= p.least && !s.pending(e):
			wait = append(wait, e)
		}
	}
	// Ties go to the lower number, so that the same counts give the same moves.
	slices.SortFunc(wait, func(a, b int32) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	slices.SortFunc(have, func(a, b int32) int { return cmp.Or(cmp.Compare(counts[a], counts[b]), cmp.Compare(a, b)) })
	free, room := 0, s.room()
	for _, e := range wait {
		if limit == 0 {
			break
		}
		switch {
		case room > 0: // the first free ones: those beyond the limit are not there
			for s.who[free] != nobody || s.coming[free] != nobody {
				free++
			}
			dst = append(dst, move{layer, free, e, nobody, counts[e]})
			free++
			room--
		case len(have) > 0 && counts[e] > p.ratio*counts[have[0]]+p.margin:
			dst = append(dst, move{layer, int(s.of[have[0]]), e, have[0], counts[e] - counts[have[0]]})
			have = have[1:]
		default:
			return dst
		}
		limit--
	}
	return dst
}

// best keeps the n moves that gain most.
func best(moves []move, n int) []move {
	slices.SortStableFunc(moves, func(a, b move) int { return cmp.Compare(b.gain, a.gain) })
	return moves[:min(n, len(moves))]
}

// firstPlaces chooses who gets the places of a layer before anything ran: the
// hottest of a profile, or, where it says nothing, experts at even distances,
// since neighbours are often made for the same subject.
func firstPlaces(counts []float32, places int) []int32 {
	n := len(counts)
	places = min(places, n)
	order := make([]int32, n)
	even := make([]int, n) // rank in the even spread
	for i := range n {
		order[i] = int32(i)
	}
	// Steps of about the golden section of n, if they share no factor with it,
	// visit every expert once, and the first k are well spread for every k.
	step := spread(n)
	for i, e := 0, 0; i < n; i, e = i+1, (e+step)%n {
		even[e] = i
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(even[a], even[b]))
	})
	return order[:places]
}

// spread is the step of the even spread over n.
func spread(n int) int {
	for s := max(1, int(float64(n)*0.618)); ; s++ {
		if gcd(s, n) == 1 {
			return s
		}
	}
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
