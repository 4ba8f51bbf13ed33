package plan

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Split cuts the layers of a model into runs, one for each card, in the order of
// the cards. What counts is the time of a usual turn: reading a prompt, where the
// cards work at the same time on pieces of it and the slowest one sets the pace,
// and writing an answer, where they work one after the other and every byte is
// read at the rate of the card it lies on. So equal cards get equal parts, a slow
// card beside a fast one gets little, or nothing where the fast one has the room.
// Layers that fit on no card are the first ones, and left to the CPU.
func Split(layers []SplitLayer, cards []SplitCard, a SplitAsk) SplitResult {
	s := &splitter{layers: layers, cards: cards, ask: a.defaults()}
	s.sums()
	r := SplitResult{Layers: make([]int, len(cards))}
	if len(layers) == 0 || len(cards) == 0 {
		r.CPU = len(layers)
		return r
	}
	var ends []int // where each card's layers end; they begin where those of the card before end
	if a.Parts != nil {
		ends, r.Err = s.asked()
		if r.Err != "" {
			return r
		}
	} else {
		r.CPU = s.fewest()
		ends = s.best(r.CPU)
	}
	s.report(&r, ends)
	return r
}

// SplitLayer is what a layer needs of the card that it is on, in bytes.
type SplitLayer struct {
	Bytes int64 // that lie there: weights, cache, state
	Read  int64 // read for every decoded token
	Work  int64 // of weights that every prompt token is multiplied with
}

// SplitCard is what a card gives.
type SplitCard struct {
	PCI, Name string
	Room      int64         // bytes that may be used; negative: no limit known
	Scratch   int64         // bytes of working memory, once it has a layer
	Decode    float64       // bytes a second read for one token; 0: like the others
	Prefill   float64       // bytes of weights a second, times prompt tokens; 0: in proportion to Decode
	HandOff   time.Duration // what it takes to hand one token's activations to the next card
	Link      float64       // bytes a second between the card and pinned host memory, 0: not known
}

// SplitAsk is the rest of the question. Zero values: no output matrix, pieces of
// 512 tokens, a turn of 2048 tokens in and 256 out.
type SplitAsk struct {
	Output int64 // bytes of the output matrix; it is on the card of the last layer
	Width  int   // values of a token's activations
	Chunk  int   // prompt tokens of a piece
	// Parts are the layers of each card where they add up to all layers, else the
	// proportions in which layers are dealt out. Nil: the plan decides.
	Parts          []float64
	Prompt, Answer int
}

// longestPiece: where several cards are at work, prompts are cut into shorter pieces
// than a card takes at once when it is alone.
const longestPiece = 1024

func (a SplitAsk) defaults() SplitAsk {
	def := func(p *int, n int) {
		if *p <= 0 {
			*p = n
		}
	}
	def(&a.Chunk, 512)
	a.Chunk = min(a.Chunk, longestPiece)
	def(&a.Prompt, 2048)
	def(&a.Answer, 256)
	return a
}

// SplitResult says which layers lie where.
type SplitResult struct {
	Layers  []int   // of each card
	CPU     int     // the first layers, that are the CPU's
	Used    []int64 // bytes on each card, working memory included
	Missing []int64 // bytes of each card that it has not
	// Crossing is what goes from card to card.
	Crossing []Crossing
	// Decode and Prompt are seconds of one token, and of the prompt of the ask.
	Decode, Prompt float64
	Err            string // why the parts that were asked for make no sense
}

// Fits tells whether all layers have a card with room for them.
func (r SplitResult) Fits() bool {
	return r.Err == "" && r.CPU == 0 && !slices.ContainsFunc(r.Missing, func(n int64) bool { return n > 0 })
}

// Crossing is a place where activations go from one card to the next.
type Crossing struct {
	After int    `json:"after_layer"`
	From  string `json:"from"` // PCI addresses
	To    string `json:"to"`
	Token int64  `json:"token_bytes"` // for each decoded token
	Chunk int64  `json:"chunk_bytes"` // for each piece of a prompt
	// Path is how they travel. Cards are not asked to reach into each other: one
	// context over two cards is what failed in GSD-12641.
	Path     string  `json:"path"`
	TokenUS  float64 `json:"token_us,omitempty"` // microseconds; 0: not known
	ChunkUS  float64 `json:"chunk_us,omitempty"`
	Measured bool    `json:"measured,omitempty"`
}

// CrossPath is the only path there is.
const CrossPath = "pinned host memory"

func (c Crossing) String() string {
	s := fmt.Sprintf("after layer %d, from %s to %s through %s: %s a token, %s a piece of a prompt", c.After, c.From, c.To, c.Path, small(c.Token), small(c.Chunk))
	if c.TokenUS > 0 {
		s += fmt.Sprintf(", about %.0f us and %.0f us", c.TokenUS, c.ChunkUS)
	}
	return s
}

func small(n int64) string {
	if n < 10<<10 {
		return fmt.Sprintf("%d bytes", n)
	}
	return size(n)
}

type splitter struct {
	layers            []SplitLayer
	cards             []SplitCard
	ask               SplitAsk
	bytes, read, work []int64 // sums of the layers before i; the output counts to the last
	decode, prefill   []float64
}

func (s *splitter) sums() {
	n := len(s.layers)
	s.bytes, s.read, s.work = make([]int64, n+1), make([]int64, n+1), make([]int64, n+1)
	for i, l := range s.layers {
		s.bytes[i+1], s.read[i+1], s.work[i+1] = s.bytes[i]+l.Bytes, s.read[i]+l.Read, s.work[i]+l.Work
	}
	if n > 0 { // the logits of one token a prompt: no work worth counting
		s.bytes[n] += s.ask.Output
		s.read[n] += s.ask.Output
	}
	s.decode, s.prefill = make([]float64, len(s.cards)), make([]float64, len(s.cards))
	known, slow := false, math.Inf(1)
	for _, c := range s.cards {
		if c.Decode > 0 {
			known, slow = true, min(slow, c.Decode)
		}
	}
	for i, c := range s.cards {
		s.decode[i] = c.Decode
		if c.Decode <= 0 {
			s.decode[i] = guessDevice
			if known { // an unknown card among known ones: as the slowest
				s.decode[i] = slow
			}
		}
		s.prefill[i] = c.Prefill
		if c.Prefill <= 0 {
			s.prefill[i] = s.decode[i] * batchGainCard
		}
	}
}

// room is what a card has for layers.
func (s *splitter) room(c int) int64 {
	if s.cards[c].Room < 0 {
		return math.MaxInt64
	}
	return s.cards[c].Room - s.cards[c].Scratch
}

// fewest is how many layers the CPU must take at least: filled from the last
// card and the last layer on.
func (s *splitter) fewest() int {
	at := len(s.layers)
	for c := len(s.cards) - 1; c >= 0; c-- {
		end, room := at, s.room(c)
		for at > 0 && s.bytes[end]-s.bytes[at-1] <= room {
			at--
		}
	}
	return at
}

// best cuts the layers from lo on. For each bound on a card's share of a prompt
// it finds the cut that is quickest otherwise.
func (s *splitter) best(lo int) []int {
	n, all := len(s.layers), s.work[len(s.layers)]-s.work[lo]
	var rate, slow float64 = 0, math.Inf(1)
	for _, p := range s.prefill {
		rate, slow = rate+p, min(slow, p)
	}
	least, most := float64(all)/rate, float64(all)/slow
	var ends []int
	quickest := math.Inf(1)
	const steps = 64
	for i := range steps + 1 {
		bound := math.Inf(1)
		if i < steps && least > 0 {
			bound = least * math.Pow(most/least, float64(i)/steps) * (1 + 1e-9)
		}
		got := s.cut(lo, n, bound)
		if got == nil {
			continue
		}
		if t := s.turn(lo, got); t < quickest*(1-1e-9) {
			quickest, ends = t, got
		}
	}
	return ends
}

// cut finds the cut with the least sum of costs in which no card's share of one
// prompt token takes longer than bound. nil: there is none.
func (s *splitter) cut(lo, n int, bound float64) []int {
	inf := math.Inf(1)
	cost := make([]float64, n+1) // of the layers before i on the cards so far
	for i := range cost {
		cost[i] = inf
	}
	cost[lo] = 0
	from := make([][]int, len(s.cards))
	for c := range s.cards {
		next, room := make([]float64, n+1), s.room(c)
		from[c] = make([]int, n+1)
		for end := lo; end <= n; end++ {
			next[end], from[c][end] = cost[end], end // no layer
			for at := end - 1; at >= lo; at-- {
				if s.bytes[end]-s.bytes[at] > room || float64(s.work[end]-s.work[at])/s.prefill[c] > bound {
					break
				}
				if t := cost[at] + s.cost(c, at, end); t < next[end]*(1-1e-12) {
					next[end], from[c][end] = t, at
				}
			}
		}
		cost = next
	}
	if math.IsInf(cost[n], 1) {
		return nil
	}
	ends := make([]int, len(s.cards))
	for c, end := len(s.cards)-1, n; c >= 0; c-- {
		ends[c] = end
		end = from[c][end]
	}
	return ends
}

// cost is what adds up of layers at..end on card c, in seconds of a turn: the
// tokens of the answer, and the share of the prompt that no other card hides.
func (s *splitter) cost(c, at, end int) float64 {
	t := float64(s.ask.Answer) * float64(s.read[end]-s.read[at]) / s.decode[c]
	if at > 0 {
		t += float64(s.ask.Answer) * s.handOff(c)
	}
	return t + s.prompt(c, at, end)/s.pieces()
}

func (s *splitter) prompt(c, at, end int) float64 {
	return float64(s.ask.Prompt) * float64(s.work[end]-s.work[at]) / s.prefill[c]
}

func (s *splitter) pieces() float64 {
	return math.Ceil(float64(s.ask.Prompt) / float64(s.ask.Chunk))
}

func (s *splitter) handOff(c int) float64 { return Card{HandOff: s.cards[c].HandOff}.handOff() }

// times are the seconds of one token and of the prompt.
func (s *splitter) times(lo int, ends []int) (token, prompt float64) {
	at, slowest, first := lo, 0.0, true
	for c, end := range ends {
		if end == at {
			continue
		}
		token += float64(s.read[end]-s.read[at]) / s.decode[c]
		if !first {
			token += s.handOff(c)
		}
		p := s.prompt(c, at, end)
		prompt += p / s.pieces()
		slowest = max(slowest, p)
		at, first = end, false
	}
	return token, prompt + slowest*(1-1/s.pieces())
}

func (s *splitter) turn(lo int, ends []int) float64 {
	token, prompt := s.times(lo, ends)
	return token*float64(s.ask.Answer) + prompt
}

// asked turns the parts that were asked for into ends. Where they add up to less
// than all layers as whole numbers could, they are proportions.
func (s *splitter) asked() (ends []int, why string) {
	n, parts := len(s.layers), s.ask.Parts
	if len(parts) != len(s.cards) {
		return nil, fmt.Sprintf("%d parts for %d cards", len(parts), len(s.cards))
	}
	total := 0.0
	for _, p := range parts {
		if !(p >= 0) || math.IsInf(p, 0) {
			return nil, fmt.Sprintf("a part of %v", p)
		}
		total += p
	}
	if total == 0 {
		return nil, "parts that are all 0"
	}
	done, at := 0.0, 0
	for _, p := range parts {
		done += p
		at = int(math.Round(done / total * float64(n)))
		ends = append(ends, at)
	}
	return ends, ""
}

// report fills in what a cut means.
func (s *splitter) report(r *SplitResult, ends []int) {
	r.Used, r.Missing = make([]int64, len(s.cards)), make([]int64, len(s.cards))
	at, before := r.CPU, -1
	for c, end := range ends {
		r.Layers[c] = end - at
		if end == at {
			continue
		}
		k := s.cards[c]
		r.Used[c] = s.bytes[end] - s.bytes[at] + k.Scratch
		if k.Room >= 0 {
			r.Missing[c] = max(r.Used[c]-k.Room, 0)
		}
		if before >= 0 {
			r.Crossing = append(r.Crossing, s.cross(at-1, before, c))
		}
		at, before = end, c
	}
	r.Decode, r.Prompt = s.times(r.CPU, ends)
}

func (s *splitter) cross(after, from, to int) Crossing {
	row := 4 * int64(s.ask.Width)
	x := Crossing{
		After: after, From: s.cards[from].PCI, To: s.cards[to].PCI, Path: CrossPath,
		Token: row, Chunk: row * int64(s.ask.Chunk), TokenUS: math.Round(s.handOff(to) * 1e6), Measured: s.cards[to].HandOff > 0,
	}
	if a, b := s.cards[from].Link, s.cards[to].Link; a > 0 && b > 0 {
		// Down to memory that both cards know, and up. Where drivers know none, cores
		// copy it beside, as fast as a link or faster.
		x.ChunkUS = math.Round(x.TokenUS + 1e6*float64(x.Chunk)*(1/a+1/b))
	}
	return x
}
