package plan

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// evenLayers are n layers of mb MiB of weights and kv MiB of cache.
func evenLayers(n int, mb, kv int64) []SplitLayer {
	out := make([]SplitLayer, n)
	for i := range out {
		out[i] = SplitLayer{Bytes: (mb + kv) * mib, Read: (mb + kv/2) * mib, Work: mb * mib}
	}
	return out
}

func splitCard(pci, name string, roomGiB, decodeGBs float64) SplitCard {
	return SplitCard{PCI: pci, Name: name, Room: int64(roomGiB * float64(gib)), Scratch: 512 * mib, Decode: decodeGBs * 1e9, HandOff: 80 * time.Microsecond, Link: 12e9}
}

var (
	arc770 = splitCard("0000:03:00.0", "Arc A770", 14.5, 400)
	arc380 = splitCard("0000:07:00.0", "Arc A380", 5, 150)
	b60    = splitCard("0000:03:00.0", "Arc Pro B60", 22, 420)
	b70    = splitCard("0000:07:00.0", "Arc Pro B70", 30, 560)
	h200   = splitCard("0000:0a:00.0", "H200", 135, 4000)
)

func at(c SplitCard, pci string) SplitCard { c.PCI = pci; return c }

// llama8 is an 8B model in 4 bits, llama70 a 70B one; context 8192.
var (
	llama8  = evenLayers(32, 125, 32)
	llama70 = evenLayers(80, 470, 32)
)

var splits = []struct {
	name   string
	layers []SplitLayer
	cards  []SplitCard
	ask    SplitAsk
}{
	{"8B on two A770", llama8, []SplitCard{arc770, at(arc770, "0000:07:00.0")}, SplitAsk{Output: 410 * mib, Width: 4096}},
	{"8B on an A770 and an A380", llama8, []SplitCard{arc770, arc380}, SplitAsk{Output: 410 * mib, Width: 4096}},
	{"8B on an A380 and an A770", llama8, []SplitCard{arc380, arc770}, SplitAsk{Output: 410 * mib, Width: 4096}},
	{"24B on an A770 and an A380", evenLayers(40, 330, 32), []SplitCard{arc770, arc380}, SplitAsk{Output: 500 * mib, Width: 5120}},
	{"70B on an A770 and an A380", llama70, []SplitCard{arc770, arc380}, SplitAsk{Output: 860 * mib, Width: 8192}},
	{"70B on a B60 and a B70", llama70, []SplitCard{b60, b70}, SplitAsk{Output: 860 * mib, Width: 8192}},
	{"70B on two B70", llama70, []SplitCard{b70, at(b70, "0000:08:00.0")}, SplitAsk{Output: 860 * mib, Width: 8192}},
	{"70B on three B60", llama70, []SplitCard{b60, at(b60, "0000:07:00.0"), at(b60, "0000:0b:00.0")}, SplitAsk{Output: 860 * mib, Width: 8192}},
	{"8B on two H200", llama8, []SplitCard{h200, at(h200, "0000:18:00.0")}, SplitAsk{Output: 410 * mib, Width: 4096}},
	{"8B on two H200 that may use 3 GiB", llama8, []SplitCard{splitCard("0000:0a:00.0", "H200", 3.4, 4000), splitCard("0000:18:00.0", "H200", 3.4, 4000)}, SplitAsk{Output: 410 * mib, Width: 4096}},
	{"8B, rates unknown", llama8, []SplitCard{splitCard("a", "one", 14, 0), splitCard("b", "two", 14, 0)}, SplitAsk{Width: 4096}},
	{"3,1 asked", llama8, []SplitCard{arc770, arc770}, SplitAsk{Width: 4096, Parts: []float64{3, 1}}},
	{"20,12 asked", llama8, []SplitCard{arc770, arc770}, SplitAsk{Width: 4096, Parts: []float64{20, 12}}},
	{"32,0 asked of a small card", llama8, []SplitCard{arc380, arc770}, SplitAsk{Width: 4096, Parts: []float64{32, 0}}},
	{"three parts asked of two cards", llama8, []SplitCard{arc380, arc770}, SplitAsk{Parts: []float64{1, 1, 1}}},
	{"no parts", llama8, []SplitCard{arc380, arc770}, SplitAsk{Parts: []float64{0, 0}}},
	{"no number", llama8, []SplitCard{arc380, arc770}, SplitAsk{Parts: []float64{1, math.NaN()}}},
	{"room for nothing", llama8, []SplitCard{splitCard("a", "one", 0.1, 100)}, SplitAsk{}},
	{"no card", llama8, nil, SplitAsk{}},
	{"no layer", nil, []SplitCard{arc770}, SplitAsk{}},
}

func (r SplitResult) text() string {
	var b strings.Builder
	if r.Err != "" {
		return "  refused: " + r.Err + "\n"
	}
	fmt.Fprintf(&b, "  layers %v, %d with the CPU, fits %v\n", r.Layers, r.CPU, r.Fits())
	for i, n := range r.Used {
		fmt.Fprintf(&b, "  card %d: %s", i, size(n))
		if r.Missing[i] > 0 {
			fmt.Fprintf(&b, ", %s short", size(r.Missing[i]))
		}
		b.WriteString("\n")
	}
	if r.Decode > 0 {
		fmt.Fprintf(&b, "  %.1f tok/s, a prompt of 2048 in %.2f s\n", 1/r.Decode, r.Prompt)
	}
	for _, c := range r.Crossing {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	return b.String()
}

// TestSplitGolden compares with testdata/splits.txt; -update writes it anew.
func TestSplitGolden(t *testing.T) {
	var b strings.Builder
	for _, c := range splits {
		fmt.Fprintf(&b, "%s\n%s\n", c.name, Split(c.layers, c.cards, c.ask).text())
	}
	const file = "testdata/splits.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("splits differ from %s; got\n%s", file, b.String())
	}
}

// TestSplitBest: no cut of two or three cards, tried one by one, is quicker than
// the one found by more than a hundredth.
func TestSplitBest(t *testing.T) {
	for _, c := range splits {
		if c.ask.Parts != nil || len(c.cards) < 2 || len(c.cards) > 3 || len(c.layers) == 0 {
			continue
		}
		r := Split(c.layers, c.cards, c.ask)
		s := &splitter{layers: c.layers, cards: c.cards, ask: c.ask.defaults()}
		s.sums()
		best, n := math.Inf(1), len(c.layers)
		var cut []int
		for a := r.CPU; a <= n; a++ {
			for m := a; m <= n; m++ {
				ends := []int{a, n}
				if len(c.cards) == 3 {
					ends = []int{a, m, n}
				} else if m > a {
					break
				}
				at, fits := r.CPU, true
				for k, end := range ends {
					fits = fits && (end == at || s.bytes[end]-s.bytes[at] <= s.room(k))
					at = end
				}
				if v := s.turn(r.CPU, ends); fits && v < best {
					best, cut = v, ends
				}
			}
		}
		var ends []int
		at := r.CPU
		for _, k := range r.Layers {
			at += k
			ends = append(ends, at)
		}
		if got := s.turn(r.CPU, ends); got > best*1.01 {
			t.Errorf("%s: %v takes %.4g s, %v would take %.4g s", c.name, ends, got, cut, best)
		}
	}
}

// TestSplitLongSteps: cards that take long steps of prompts share a prompt of one
// such step all the same, since it flows through them in pieces.
func TestSplitLongSteps(t *testing.T) {
	layers := evenLayers(32, 240, 8)
	cards := []SplitCard{h200, at(h200, "0000:18:00.0")}
	for i := range cards {
		cards[i].HandOff, cards[i].Prefill = 20*time.Microsecond, 12*cards[i].Decode
	}
	for _, chunk := range []int{512, 1024, 2048, 8192} {
		if r := Split(layers, cards, SplitAsk{Width: 4096, Chunk: chunk}); !slices.Equal(r.Layers, []int{16, 16}) || r.Crossing[0].Chunk > 1024*4*4096 {
			t.Errorf("in steps of %d: %v layers, %+v", chunk, r.Layers, r.Crossing)
		}
	}
}

// TestSplitLeavesLittle: the CPU gets no layer that a card had room for.
func TestSplitLeavesLittle(t *testing.T) {
	for _, c := range splits {
		r := Split(c.layers, c.cards, c.ask)
		if r.CPU == 0 || r.Err != "" || len(c.cards) == 0 {
			continue
		}
		var free int64
		for i, k := range c.cards {
			if r.Used[i] > 0 {
				free = max(free, k.Room-r.Used[i])
			} else {
				free = max(free, k.Room-k.Scratch)
			}
		}
		s := r.Layers
		if n := c.layers[0].Bytes; len(c.cards) == 1 && free >= n {
			t.Errorf("%s: %v layers, %s left of %s", c.name, s, size(free), size(n))
		}
		if slices.ContainsFunc(r.Missing, func(n int64) bool { return n > 0 }) {
			t.Errorf("%s: a card is short though the CPU took layers", c.name)
		}
	}
}

// TestMakeSplit: plans carry the cut, what crosses, and a split that was asked for.
func TestMakeSplit(t *testing.T) {
	var m Machine
	for _, x := range machines {
		if x.name == "two-a770-64g" {
			m = x.m
		}
	}
	var p Pack
	for _, x := range packs {
		if x.Name == "llama-8b-q4" {
			p = x
		}
	}
	held := func(pl Plan) (n [2]int) {
		for _, l := range pl.Layers {
			if l.Card >= 0 {
				n[l.Card]++
			}
		}
		return n
	}
	pl, err := Make(p, m, Wishes{})
	if err != nil || !pl.Fits || held(pl) != [2]int{16, 16} {
		t.Fatalf("two alike: %v layers, fits %v, %v", held(pl), pl.Fits, err)
	}
	want := Crossing{After: 15, From: "0000:03:00.0", To: "0000:07:00.0", Token: 4 * 4096, Chunk: 512 * 4 * 4096, Path: CrossPath}
	if len(pl.Links) != 1 || len(pl.Crossing) != 1 {
		t.Fatalf("crossing %+v", pl.Links)
	}
	if got := pl.Links[0]; got.After != want.After || got.From != want.From || got.To != want.To || got.Token != want.Token || got.Chunk != want.Chunk || got.Path != want.Path || got.TokenUS != 80 {
		t.Errorf("crossing %+v, want %+v", got, want)
	}
	if pl, _ = Make(p, m, Wishes{Split: []float64{3, 1}}); held(pl) != [2]int{24, 8} || pl.Links[0].After != 23 {
		t.Errorf("3,1: %v", held(pl))
	}
	turned := Wishes{Split: []float64{3, 1}, Cards: []string{"0000:07:00.0", "0000:03:00.0"}}
	if pl, _ = Make(p, m, turned); held(pl) != [2]int{24, 8} || pl.Cards[0].PCI != "0000:07:00.0" || pl.Links[0].From != "0000:07:00.0" {
		t.Errorf("3,1 the other way round: %v, first %s", held(pl), pl.Cards[0].PCI)
	}
	if pl, _ = Make(p, m, Wishes{Split: []float64{20, 12}}); held(pl) != [2]int{20, 12} {
		t.Errorf("20,12: %v", held(pl))
	}
	pl, _ = Make(p, m, Wishes{Split: []float64{1, 2, 3}, Placement: AllVRAM})
	if pl.Fits || !strings.Contains(fmt.Sprint(pl.Short), "3 parts for 2 cards") {
		t.Errorf("three parts for two cards: fits %v, %v", pl.Fits, pl.Short)
	}
	// A limit that only two cards together hold the pack under.
	one := Wishes{Cards: []string{"0000:03:00.0"}, VRAMCaps: []int64{4 << 30}, Placement: AllVRAM}
	if pl, _ = Make(p, m, one); pl.Fits || len(pl.Short) == 0 || pl.Short[0].Bytes <= 0 {
		t.Errorf("one card of 4 GiB: fits %v, %v", pl.Fits, pl.Short)
	}
	if pl, _ = Make(p, m, Wishes{VRAMCaps: []int64{4 << 30}, Placement: AllVRAM}); !pl.Fits || held(pl)[0] == 0 || held(pl)[1] == 0 {
		t.Errorf("two cards of 4 GiB: %v layers, %v", held(pl), pl.Short)
	}
}
