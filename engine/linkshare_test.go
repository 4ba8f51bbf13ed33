package engine

import (
	"math"
	"testing"
)

// The experts of a layer that are missed on a card go where they are done
// first: with a link about as fast as the processor both sides get some and end
// together, with a slow link the processor gets them, and experts that many
// tokens of a prompt chose go to the card.
func TestDealOfMisses(t *testing.T) {
	one := func(n int, rows int32) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = rows
		}
		return out
	}
	const size = 2654208 // of a 30B-A3B shape in Q4_K
	for _, c := range []struct {
		name     string
		s        sides
		rows     []int32
		hits     int
		min, max int // over the link
	}{
		{"H200 beside 16 cores, one token", sides{45e9, 53e9}, one(8, 1), 0, 2, 4},
		{"the same, most in slots", sides{45e9, 53e9}, one(2, 1), 6, 0, 1},
		{"A770 on a narrow link", sides{20e9, 3e9}, one(8, 1), 0, 0, 1},
		{"a desktop", sides{25e9, 12e9}, one(8, 1), 0, 1, 3},
		{"two cores", sides{5e9, 12e9}, one(8, 1), 0, 5, 7},
		{"a prompt", sides{45e9, 53e9}, one(128, 32), 0, 85, 128},
		{"nothing missed", sides{45e9, 53e9}, nil, 8, 0, 0},
	} {
		got := c.s.deal(nil, c.rows, size, c.hits)
		if len(got) < c.min || len(got) > c.max {
			t.Errorf("%s: %d of %d over the link, want %d to %d", c.name, len(got), len(c.rows), c.min, c.max)
		}
		seen := map[int]bool{}
		for _, i := range got {
			if i < 0 || i >= len(c.rows) || seen[i] {
				t.Errorf("%s: dealt out %v", c.name, got)
			}
			seen[i] = true
		}
		if len(c.rows) == 0 || c.rows[0] > 1 {
			continue
		}
		// No single expert on the other side would end the layer sooner.
		end := func(n int) float64 {
			card := 0.0
			if n > 0 || c.hits > 0 {
				card = linkStart + float64(c.hits)*size/cardRate + float64(n)*(linkSetup+size/c.s.link+size/cardRate)
			}
			return math.Max(card, float64(len(c.rows)-n)*size/c.s.cpu)
		}
		for _, n := range []int{len(got) - 1, len(got) + 1} {
			if n > 0 && n <= len(c.rows) && end(n) < 0.93*end(len(got)) {
				t.Errorf("%s: %d over the link takes %.0f us, %d takes %.0f", c.name, len(got), 1e6*end(len(got)), n, 1e6*end(n))
			}
		}
	}
}
