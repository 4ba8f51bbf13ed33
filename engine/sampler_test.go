package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"outcrop/engine/token"
)

func TestGreedy(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		logits []float32
		want   token.ID
	}{
		{[]float32{1, 3, 2}, 1},
		{[]float32{2, 2, 2}, 0},
		{[]float32{-5, -4, -4}, 1},
		{[]float32{nan, 1, 0}, 1},
	} {
		if got := newSampler(Sampling{}).pick(c.logits, nil); got != c.want {
			t.Errorf("%v: picked %d, want %d", c.logits, got, c.want)
		}
	}
}

// frequencies draws n times and returns how often each token came.
func frequencies(o Sampling, logits []float32, history []token.ID, n int) []float64 {
	s := newSampler(o)
	f := make([]float64, len(logits))
	for range n {
		f[s.pick(logits, history)] += 1 / float64(n)
	}
	return f
}

// TestDistribution compares drawn frequencies with the wanted distribution.
func TestDistribution(t *testing.T) {
	logits := []float32{2, 1, 0, -1, 1.5}
	soft := func(keep []int, temp float64) []float64 {
		p := make([]float64, len(logits))
		var sum float64
		for _, i := range keep {
			p[i] = math.Exp(float64(logits[i]) / temp)
			sum += p[i]
		}
		for i := range p {
			p[i] /= sum
		}
		return p
	}
	for _, c := range []struct {
		name string
		o    Sampling
		want []float64
	}{
		{"temperature 1", Sampling{Temperature: 1}, soft([]int{0, 1, 2, 3, 4}, 1)},
		{"temperature 0.5", Sampling{Temperature: 0.5}, soft([]int{0, 1, 2, 3, 4}, 0.5)},
		{"top-k 2", Sampling{Temperature: 1, TopK: 2}, soft([]int{0, 4}, 1)},
		// p: 0.446 0.164 0.060 0.022 0.270 of the sum: 0.446+0.270 reaches 0.7.
		{"top-p 0.7", Sampling{Temperature: 1, TopP: 0.7}, soft([]int{0, 4}, 1)},
		{"top-p 0.75", Sampling{Temperature: 1, TopP: 0.75}, soft([]int{0, 4, 1}, 1)},
		{"min-p 0.5", Sampling{Temperature: 1, MinP: 0.5}, soft([]int{0, 4}, 1)},
		{"all three", Sampling{Temperature: 2, TopK: 4, TopP: 0.9, MinP: 0.3}, soft([]int{0, 1, 4}, 2)},
	} {
		c.o.Seed = 42
		got := frequencies(c.o, logits, nil, 40000)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 0.012 {
				t.Errorf("%s: token %d came with frequency %.3f, want %.3f", c.name, i, got[i], c.want[i])
			}
		}
	}
}

func TestPenaltiesAndBias(t *testing.T) {
	logits := []float32{2, 1.5, -1}
	for _, c := range []struct {
		name    string
		o       Sampling
		history []token.ID
		want    []float32
	}{
		{"nothing", Sampling{Repeat: 1}, []token.ID{0}, []float32{2, 1.5, -1}},
		{"repeat", Sampling{Repeat: 2}, []token.ID{0, 2}, []float32{1, 1.5, -2}},
		{"presence", Sampling{Presence: 0.5}, []token.ID{0, 0, 0}, []float32{1.5, 1.5, -1}},
		{"frequency", Sampling{Frequency: 0.5}, []token.ID{0, 0, 1}, []float32{1, 1, -1}},
		{"only recent", Sampling{Repeat: 2, RepeatLast: 1}, []token.ID{0, 1}, []float32{2, 0.75, -1}},
		{"all", Sampling{Frequency: 1, RepeatLast: -1}, slices.Repeat([]token.ID{1}, 100), []float32{2, 1.5 - 100, -1}},
		{"default of 64", Sampling{Frequency: 1}, slices.Repeat([]token.ID{1}, 100), []float32{2, 1.5 - 64, -1}},
		{"bias", Sampling{Bias: map[token.ID]float32{2: 5, 99: 1, -1: 1}}, nil, []float32{2, 1.5, 4}},
		{"forbidden", Sampling{Bias: map[token.ID]float32{0: float32(math.Inf(-1))}}, nil, []float32{float32(math.Inf(-1)), 1.5, -1}},
	} {
		got := newSampler(c.o).adjust(logits, c.history)
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	if !slices.Equal(logits, []float32{2, 1.5, -1}) {
		t.Error("the caller's logits were changed")
	}
}

func TestSeeds(t *testing.T) {
	logits := make([]float32, 50)
	draw := func(seed uint64) []token.ID {
		s := newSampler(Sampling{Temperature: 1, Seed: seed})
		var ids []token.ID
		for range 20 {
			ids = append(ids, s.pick(logits, nil))
		}
		return ids
	}
	if !slices.Equal(draw(1), draw(1)) {
		t.Error("equal seeds gave different draws")
	}
	if slices.Equal(draw(1), draw(2)) {
		t.Error("different seeds gave equal draws")
	}
}

func TestSelectBest(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		n := 1 + rng.IntN(200)
		c := make([]candidate, n)
		for i := range c {
			c[i] = candidate{id: token.ID(i), l: float32(rng.IntN(20))} // many ties
		}
		want := slices.Clone(c)
		sort.Slice(want, func(i, j int) bool { return better(want[i], want[j]) })
		k := 1 + rng.IntN(n)
		selectBest(c, k)
		sortBest(c[:k])
		if !slices.Equal(c[:k], want[:k]) {
			t.Fatalf("best %d of %d: got %v, want %v", k, n, c[:k], want[:k])
		}
	}
}

// TestLargeVocabulary: leaving the unlikely tokens out changes nothing.
func TestLargeVocabulary(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for round := range 40 {
		logits := make([]float32, 5000)
		for i := range logits {
			logits[i] = float32(rng.NormFloat64()) * float32(1+round%8)
		}
		for _, o := range []Sampling{
			{Temperature: 1, TopK: 40}, {Temperature: 0.7, TopP: 0.95}, {Temperature: 1, TopP: 0.999},
			{Temperature: 1.5, TopK: 3000, TopP: 0.9}, {Temperature: 1, MinP: 0.05}, {Temperature: 1, TopP: 0.9, MinP: 0.2},
		} {
			s := newSampler(o)
			s.pick(logits, nil)
			got := map[token.ID]bool{}
			best := logits[argmax(logits)]
			s.probs = room(s.probs, len(logits))
			var sum float64
			for i, l := range logits {
				s.probs[i] = float32(math.Exp(float64(l - best)))
				sum += float64(s.probs[i])
			}
			for _, c := range s.narrow(logits, sum, o.TopK > 0, o.TopP > 0) {
				got[c.id] = true
			}
			want := plainChoice(logits, o)
			if d := len(got) - len(want); d < -1 || d > 1 { // one at the border may fall either way
				t.Errorf("%+v: %d tokens to draw from, want %d", o, len(got), len(want))
			}
			for _, id := range want[:len(want)-1] {
				if !got[id] {
					t.Fatalf("%+v: token %d is missing", o, id)
				}
			}
		}
	}
}

// plainChoice is top-k, top-p and min-p by sorting everything.
func plainChoice(logits []float32, o Sampling) []token.ID {
	ids := make([]token.ID, len(logits))
	for i := range ids {
		ids[i] = token.ID(i)
	}
	sort.Slice(ids, func(i, j int) bool { return logits[ids[i]] > logits[ids[j]] })
	p := func(id token.ID) float64 { return math.Exp(float64(logits[id] - logits[ids[0]])) }
	if o.TopK > 0 {
		ids = ids[:o.TopK]
	}
	if o.TopP > 0 {
		var sum, acc float64
		for _, id := range ids {
			sum += p(id)
		}
		for i, id := range ids {
			if acc += p(id); acc >= float64(o.TopP)*sum {
				ids = ids[:i+1]
				break
			}
		}
	}
	n := 0
	for n < len(ids) && p(ids[n]) >= float64(o.MinP) {
		n++
	}
	return ids[:n]
}

func BenchmarkPick(b *testing.B) {
	rng := rand.New(rand.NewPCG(5, 6))
	logits := make([]float32, 248320)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64()) * 3
	}
	for _, o := range []Sampling{{}, {Temperature: 0.8}, {Temperature: 0.8, TopK: 40, TopP: 0.95}, {Temperature: 0.7, TopP: 0.8}} {
		s := newSampler(o)
		b.Run(fmt.Sprintf("T%v,k%d,p%v", o.Temperature, o.TopK, o.TopP), func(b *testing.B) {
			for b.Loop() {
				s.pick(logits, nil)
			}
		})
	}
}
