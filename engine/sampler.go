package engine

import (
	"math"
	"math/rand/v2"
	"slices"

	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// Sampling says how the next token is chosen. The zero value is greedy: the
// highest logit, the lower id on a tie.
//
// Order: bias, penalties, top-k, top-p, min-p, temperature, draw. Top-p and
// min-p look at the distribution before the temperature, as llama.cpp's
// default chain does, so that a high temperature does not widen the choice.
type Sampling struct {
	Temperature float32 // 0: greedy
	TopK        int     // keep the k best; 0: all
	TopP        float32 // keep the best until their sum reaches this; 0 or >= 1: all
	MinP        float32 // drop what is less likely than this times the best; 0: none

	Repeat     float32 // divides positive and multiplies negative logits of recent tokens; 0 or 1: off
	Presence   float32 // subtracted once from recent tokens
	Frequency  float32 // subtracted per occurrence among recent tokens
	RepeatLast int     // how many tokens are recent; 0: 64, negative: all

	Seed uint64               // equal seeds give equal answers
	Bias map[token.ID]float32 // added to logits; -Inf forbids
}

// TokenProb is a token and the logarithm of its probability.
type TokenProb struct {
	ID      token.ID
	LogProb float32
}

// sampler draws tokens from logits. It owns its buffers, so that picking
// allocates nothing after the first call.
type sampler struct {
	Sampling
	rng    *rand.Rand
	logits []float32 // with bias and penalties
	probs  []float32
	cand   []candidate
	counts map[token.ID]int32
	next   []float64 // random numbers that were looked at ahead
}

type candidate struct {
	id token.ID
	l  float32 // logit
	p  float32 // exp(l - best)
}

func newSampler(o Sampling) *sampler {
	return &sampler{
		Sampling: o,
		rng:      rand.New(rand.NewPCG(o.Seed, 0x6f7574_63726f70)),
		counts:   map[token.ID]int32{},
	}
}

// pick returns the next token after history. It consumes randomness only when
// there is a choice to draw, once per call: drafts are checked by picking at
// every position in turn, which leaves the sequence of draws unchanged.
func (s *sampler) pick(logits []float32, history []token.ID) token.ID {
	logits = s.adjust(logits, history)
	first := argmax(logits)
	best := logits[first]
	if s.Temperature <= 0 || s.TopK == 1 || math.IsInf(float64(best), -1) {
		return first
	}
	topK := s.TopK > 0 && s.TopK < len(logits)
	topP := s.TopP > 0 && s.TopP < 1
	if !topK && !topP && s.MinP <= 0 {
		return s.drawAll(logits, best)
	}

	// p = exp(l - best), relative to the best, which has 1.
	s.probs = room(s.probs, len(logits))
	copy(s.probs, logits)
	sum := float64(quant.ExpSum(s.probs, best))
	c := s.narrow(logits, sum, topK, topP)
	sum = 0
	inv := 1 / float64(s.Temperature)
	for i := range c {
		c[i].p = float32(math.Exp(float64(c[i].l-best) * inv))
		sum += float64(c[i].p)
	}
	at := s.random() * sum
	for i := range c {
		at -= float64(c[i].p)
		if at < 0 {
			return c[i].id
		}
	}
	return c[len(c)-1].id
}

// random gives the next random number of an answer.
func (s *sampler) random() float64 {
	if len(s.next) == 0 {
		return s.rng.Float64()
	}
	u := s.next[0]
	s.next = s.next[:copy(s.next, s.next[1:])]
	return u
}

// ahead looks at the next n random numbers; those that are used are taken by
// random.
func (s *sampler) ahead(n int) []float64 {
	for len(s.next) < n {
		s.next = append(s.next, s.rng.Float64())
	}
	return s.next[:n]
}

// penal tells whether recent tokens change logits.
func (s *sampler) penal() bool {
	return s.Repeat != 0 && s.Repeat != 1 || s.Presence != 0 || s.Frequency != 0
}

// drawAll draws from the whole vocabulary.
func (s *sampler) drawAll(logits []float32, best float32) token.ID {
	s.probs = room(s.probs, len(logits))
	copy(s.probs, logits)
	inv := 1 / s.Temperature
	quant.ScaleF32(s.probs, inv)
	at := s.random() * float64(quant.ExpSum(s.probs, best*inv))
	last := token.ID(0)
	for i, p := range s.probs {
		if p == 0 {
			continue
		}
		last = token.ID(i)
		if at -= float64(p); at < 0 {
			break
		}
	}
	return last
}

// narrow keeps, of all tokens, the TopK best, of those the shortest run whose
// share reaches TopP, and of those what MinP leaves. The unlikely tokens of a
// large vocabulary are not looked at when the likely ones are enough.
func (s *sampler) narrow(logits []float32, sum float64, topK, topP bool) []candidate {
	for _, floor := range []float32{1e-3, 1e-6, 0} {
		floor := max(floor, s.MinP)
		c := s.cand[:0]
		var mass float64
		for i, p := range s.probs {
			if p >= floor && p > 0 {
				c = append(c, candidate{token.ID(i), logits[i], p})
				mass += float64(p)
			}
		}
		s.cand = c
		all := floor <= 0 || floor == s.MinP
		if !all && (topK && len(c) < s.TopK || topP && !topK && mass < float64(s.TopP)*sum) {
			continue
		}
		if topK && s.TopK < len(c) {
			selectBest(c, s.TopK)
			c = c[:s.TopK]
		}
		if !topP {
			sortBest(c)
			return c
		}
		if topK { // top-p looks at the distribution among the k best
			sum = 0
			for i := range c {
				sum += float64(c[i].p)
			}
		}
		return shortest(c, float64(s.TopP)*sum)
	}
	return s.cand[:1] // not reached: the last floor takes all
}

// shortest sorts c as far as needed and returns the run of the best whose sum
// reaches want: the best 64 first, then four times as many, and so on.
func shortest(c []candidate, want float64) []candidate {
	for n := 64; ; n *= 4 {
		n = min(n, len(c))
		selectBest(c, n)
		sortBest(c[:n])
		var acc float64
		for i := range n {
			if acc += float64(c[i].p); acc >= want {
				return c[:i+1]
			}
		}
		if n == len(c) {
			return c
		}
	}
}

// adjust applies bias and penalties; it returns logits itself when there is
// nothing to do, a buffer of its own otherwise.
func (s *sampler) adjust(logits []float32, history []token.ID) []float32 {
	penal := s.penal()
	if !penal && len(s.Bias) == 0 {
		return logits
	}
	s.logits = room(s.logits, len(logits))
	copy(s.logits, logits)
	for id, b := range s.Bias {
		if id >= 0 && int(id) < len(logits) {
			s.logits[id] += b
		}
	}
	if !penal {
		return s.logits
	}
	last := s.RepeatLast
	if last == 0 {
		last = 64
	}
	if last > 0 && len(history) > last {
		history = history[len(history)-last:]
	}
	clear(s.counts)
	for _, id := range history {
		s.counts[id]++
	}
	for id, n := range s.counts {
		if id < 0 || int(id) >= len(logits) {
			continue
		}
		l := s.logits[id]
		if s.Repeat > 0 && s.Repeat != 1 {
			if l > 0 {
				l /= s.Repeat
			} else {
				l *= s.Repeat
			}
		}
		s.logits[id] = l - s.Presence - float32(n)*s.Frequency
	}
	return s.logits
}

// argmax returns the index of the highest value, the lowest index on a tie.
// NaN never wins.
func argmax(x []float32) token.ID {
	if top := quant.Max(x); top > float32(math.Inf(-1)) {
		if i := slices.Index(x, top); i >= 0 {
			return token.ID(i)
		}
	}
	best, at := float32(math.Inf(-1)), 0
	for i, v := range x {
		if v > best {
			best, at = v, i
		}
	}
	return token.ID(at)
}

// better orders candidates: higher logit first, lower id on a tie.
func better(a, b candidate) bool { return a.l > b.l || a.l == b.l && a.id < b.id }

// selectBest moves the n best of c to its front, in no order (Hoare's
// selection with the median of three).
func selectBest(c []candidate, n int) {
	lo, hi := 0, len(c)
	for hi-lo > 1 && n > lo && n < hi {
		a, b, d := c[lo], c[(lo+hi)/2], c[hi-1]
		if better(b, a) {
			a, b = b, a
		}
		if better(d, b) {
			b = d
			if better(b, a) {
				b = a
			}
		}
		i, j := lo, hi-1
		for i <= j {
			for better(c[i], b) {
				i++
			}
			for better(b, c[j]) {
				j--
			}
			if i <= j {
				c[i], c[j] = c[j], c[i]
				i++
				j--
			}
		}
		switch {
		case n <= j:
			hi = j + 1
		case n >= i+1:
			lo = i
		default:
			return
		}
	}
}

// sortBest sorts c, best first (heap sort: no allocation, no bad case).
func sortBest(c []candidate) {
	down := func(i, n int) {
		for {
			k := 2*i + 1
			if k >= n {
				return
			}
			if k+1 < n && better(c[k], c[k+1]) {
				k++
			}
			if !better(c[i], c[k]) {
				return
			}
			c[i], c[k] = c[k], c[i]
			i = k
		}
	}
	for i := len(c)/2 - 1; i >= 0; i-- {
		down(i, len(c))
	}
	for n := len(c) - 1; n > 0; n-- {
		c[0], c[n] = c[n], c[0]
		down(0, n)
	}
}

// logProbs fills Step.LogProb and Step.Top from raw logits: the natural
// logarithm of the softmax, before bias, penalties and temperature.
func logProbs(logits []float32, id token.ID, n int) (float32, []TokenProb) {
	best := float64(logits[argmax(logits)])
	var sum float64
	for _, l := range logits {
		sum += math.Exp(float64(l) - best)
	}
	norm := best + math.Log(sum)
	lp := float32(float64(logits[id]) - norm)
	if n <= 0 {
		return lp, nil
	}
	n = min(n, len(logits))
	top := make([]candidate, 0, n+1)
	for i, l := range logits {
		c := candidate{id: token.ID(i), l: l}
		if len(top) == n && !better(c, top[n-1]) {
			continue
		}
		at := len(top)
		for at > 0 && better(c, top[at-1]) {
			at--
		}
		top = append(top, candidate{})
		copy(top[at+1:], top[at:])
		top[at] = c
		top = top[:min(len(top), n)]
	}
	out := make([]TokenProb, len(top))
	for i, c := range top {
		out[i] = TokenProb{c.id, float32(float64(c.l) - norm)}
	}
	return lp, out
}
