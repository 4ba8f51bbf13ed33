package engine

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"outcrop/engine/gguf"
	"outcrop/engine/plan"
	"outcrop/gpu/compute"
)

// fakeCards opens n cards that are told apart by name, each of a driver of its
// own, so that one can break alone.
func fakeCards(t *testing.T, n int, memory int64) (cards []*fakeCard, devs []*compute.Device) {
	t.Helper()
	for i := range n {
		c := newFakeCard()
		c.Memory, c.MaxAlloc = memory, memory
		infos, err := c.Devices()
		if err != nil {
			t.Fatal(err)
		}
		info := infos[0]
		info.Name, info.PCI = "card "+string(rune('A'+i)), "0000:0"+string(rune('1'+i))+":00.0"
		d, err := compute.Open(c.Fake, info, compute.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		cards, devs = append(cards, c), append(devs, d)
	}
	return cards, devs
}

func tinyPack(t *testing.T, s tinySpec) *Pack {
	t.Helper()
	p, err := OpenPack(s.write(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// longPrompt has five pieces of 16 tokens.
var longPrompt = bytesOf(strings.Repeat("sixteen tokens. ", 5))

// ended waits until no more goroutines run than before.
func ended(t *testing.T, before int) {
	t.Helper()
	for range 100 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	buf := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
}

// TestCardLost: a card that is lost in the middle of a prompt or of an answer
// ends it with an error that names this card; nothing hangs, and the other card
// runs the pack when it is loaded again.
func TestCardLost(t *testing.T) {
	for _, arch := range []string{"llama", "qwen35"} {
		for _, who := range []int{0, 1} {
			for _, when := range []string{"prefill", "decode", "chained"} {
				t.Run(arch+"/"+string(rune('A'+who))+"/"+when, func(t *testing.T) {
					p := tinyPack(t, tinySpec{arch: arch, layers: 4, seed: 3})
					before := runtime.NumGoroutine()
					cards, devs := fakeCards(t, 2, 1<<30)
					m, err := Load(context.Background(), p, Options{Threads: 2, Context: 256, Chunk: 16, Draft: "off", Devices: devs, Placement: Placement{Layers: []int{2, 2}}})
					if err != nil {
						t.Fatal(err)
					}
					m.cards.chain = when == "chained" // whatever cores there are
					s, err := m.NewSession()
					if err != nil {
						t.Fatal(err)
					}
					if err := answerOn(s, longPrompt); err != nil {
						t.Fatalf("before: %v", err)
					}
					// The launches of a prompt, so that the card goes in the middle of one.
					s.Reset()
					n := cards[who].total()
					if _, err := s.sync(context.Background(), longPrompt); err != nil {
						t.Fatal(err)
					}
					if n = cards[who].total() - n; n < 20 {
						t.Fatalf("a prompt takes %d launches only", n)
					}
					prompt, at := longPrompt, 3*n/5
					if when == "prefill" {
						s.Reset()
					} else {
						at = 6 // of the pass of the second token
					}
					cards[who].Break(compute.Fault{LostAfter: at})
					answer := make(chan error, 1)
					go func() { answer <- answerOn(s, prompt) }()
					select {
					case err = <-answer:
					case <-time.After(20 * time.Second):
						t.Fatal("the answer does not end")
					}
					name := "card " + string(rune('A'+who))
					if !errors.Is(err, ErrCardLost) || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "card "+string(rune('B'-who))) {
						t.Errorf("got %v, want an error that names %s", err, name)
					}
					if err := answerOn(s, prompt); !errors.Is(err, ErrCardLost) {
						t.Errorf("asked again: %v", err)
					}
					s.Close()
					if err := m.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
					other := devs[1-who]
					if used, _ := other.Used(); used != 0 {
						t.Errorf("%d bytes stay on the other card", used)
					}
					m, err = Load(context.Background(), p, Options{Threads: 2, Context: 256, Chunk: 16, Draft: "off", Devices: []*compute.Device{other}})
					if err != nil {
						t.Fatalf("again on the other card: %v", err)
					}
					s, err = m.NewSession()
					if err != nil {
						t.Fatal(err)
					}
					if err := answerOn(s, longPrompt); err != nil {
						t.Errorf("again on the other card: %v", err)
					}
					s.Close()
					m.Close()
					for _, d := range devs {
						d.Close()
					}
					ended(t, before)
				})
			}
		}
	}
}

// TestCardsOverlap: the first card begins a piece of a prompt while the second
// one is still at the piece before.
func TestCardsOverlap(t *testing.T) {
	p := tinyPack(t, tinySpec{arch: "llama", layers: 4, seed: 3})
	cards, devs := fakeCards(t, 2, 1<<30)
	m, err := Load(context.Background(), p, Options{Threads: 2, Context: 256, Chunk: 16, Draft: "off", Devices: devs, Placement: Placement{Layers: []int{2, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := session(t, m)
	begin := [2]int{cards[0].total(), cards[1].total()}
	if _, err := s.sync(context.Background(), longPrompt); err != nil {
		t.Fatal(err)
	}
	const pieces = 5
	var each [2]int // launches of a piece
	for i := range each {
		begin[i], each[i] = cards[i].total(), (cards[i].total()-begin[i])/pieces
	}
	if each[0] < 5 || each[1] < 5 {
		t.Fatalf("%v launches a piece", each)
	}
	s.Reset()
	held, late := 0, 0
	other := cards[1].Other
	cards[1].Other = func(x *compute.FakeCall) error {
		// In the middle of a piece: not on before the first card has begun the next.
		n := cards[1].total() - begin[1]
		if k := n / each[1]; n%each[1] == each[1]/2 && k < pieces-1 {
			held++
			for range 2000 {
				if cards[0].total()-begin[0] > (k+1)*each[0] {
					return other(x)
				}
				time.Sleep(time.Millisecond)
			}
			late++
		}
		return other(x)
	}
	if _, err := s.sync(context.Background(), longPrompt); err != nil {
		t.Fatal(err)
	}
	if held != pieces-1 || late > 0 {
		t.Errorf("held %d times, of which %d in vain: the first card waits for the second", held, late)
	}
	if s.st.pos != len(longPrompt) || !slices.Equal(s.ids, longPrompt) {
		t.Errorf("%d tokens, position %d", len(s.ids), s.st.pos)
	}
}

// TestCardsFit: the cut follows limits, parts and rates; a card without room is
// refused with numbers.
func TestCardsFit(t *testing.T) {
	p := tinyPack(t, tinySpec{arch: "llama", dim: 256, layers: 10, seed: 3})
	try := func(memory int64, n int, o Options) ([]int, bool, error) {
		_, devs := fakeCards(t, n, memory)
		o.Threads, o.Context, o.Draft, o.Devices, o.Chunk = 1, 256, "off", devs, 16
		m, err := Load(context.Background(), p, o)
		if err != nil {
			return nil, false, err
		}
		defer m.Close()
		s, err := m.NewSession()
		if err != nil {
			return nil, false, err
		}
		defer s.Close()
		if err := answerOn(s, longPrompt); err != nil {
			return nil, false, err
		}
		for i, d := range devs {
			if used, _ := d.Used(); d.Limited() > 0 && used > d.Limited() {
				t.Errorf("card %d uses %d of %d bytes", i, used, d.Limited())
			}
		}
		var cut []int
		for _, r := range m.cards.runs {
			cut = append(cut, r.hi-r.lo)
		}
		return cut, m.cards.first == 0, nil
	}
	const most = 13 << 20
	slow := []float64{1e6, 1e6} // so that handing over costs nothing beside it
	for _, c := range []struct {
		name  string
		n     int
		o     Options
		want  []int
		all   bool // no layer is left to the CPU
		words string
	}{
		{"two alike", 2, Options{Placement: Placement{Rates: slow}}, []int{5, 5}, true, ""},
		{"a tiny model is not worth two", 2, Options{}, []int{10}, true, ""},
		{"proportions", 2, Options{Placement: Placement{Split: []float64{3, 1}}}, []int{8, 2}, true, ""},
		{"counts", 3, Options{Placement: Placement{Split: []float64{1, 5, 4}}}, []int{1, 5, 4}, true, ""},
		{"a slow one is left out", 2, Options{Placement: Placement{Rates: []float64{400e6, 2e6}}}, []int{10}, true, ""},
		{"one with a limit leaves layers to the CPU", 1, Options{VRAMLimit: []int64{most}}, []int{8}, false, ""},
		{"two with that limit hold all", 2, Options{VRAMLimit: []int64{most}, Placement: Placement{Rates: slow}}, []int{5, 5}, true, ""},
		{"uneven limits", 2, Options{VRAMLimit: []int64{12 << 20, 64 << 20}, Placement: Placement{Rates: []float64{2e6, 1e6}}}, []int{6, 4}, true, ""},
		{"all asked of one with a limit", 1, Options{VRAMLimit: []int64{most}, Placement: Placement{Split: []float64{1}}}, nil, true, "13.0 MiB that it may use"},
		{"room for nothing", 2, Options{VRAMLimit: []int64{1 << 20}}, nil, false, "layers 9 to 9 need"},
		{"parts for other cards", 2, Options{Placement: Placement{Split: []float64{1}}}, nil, true, "1 parts for 2 cards"},
	} {
		cut, all, err := try(1<<30, c.n, c.o)
		if c.words != "" {
			if err == nil || !strings.Contains(err.Error(), c.words) || c.o.VRAMLimit != nil && !errors.Is(err, ErrVRAM) {
				t.Errorf("%s: %v, want %q", c.name, err, c.words)
			}
			continue
		}
		if err != nil || c.want != nil && !slices.Equal(cut, c.want) || all != c.all || len(cut) == 0 {
			t.Errorf("%s: layers %v (all: %v), %v; want %v", c.name, cut, all, err, c.want)
		}
	}
}

// TestCardsChunkPlanned: cards with much memory run longer pieces of prompts than
// others, and the plan counts what those take; pieces of a prompt stay free to be
// shorter.
func TestCardsChunkPlanned(t *testing.T) {
	p := tinyPack(t, tinySpec{arch: "llama", dim: 1024, layers: 4, seed: 3, edit: func(w *gguf.Writer) { w.Set("llama.context_length", uint32(4096)) }})
	facts, err := p.PlanFacts()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ nvidia, asked, want int }{{90, 0, 2048}, {61, 0, 512}, {90, 640, 640}} {
		_, devs := fakeCards(t, 2, 24<<30)
		for i, d := range devs {
			info := d.Info()
			info.Features.Nvidia, info.Driver = c.nvidia, "card" // shared memory is tried as on cards
			wide, err := compute.Open(newFakeCard().Fake, info, compute.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { wide.Close() })
			devs[i] = wide
		}
		pl, err := plan.Make(facts, devicesMachine(devs, 1), plan.Wishes{Context: 4096, Split: []float64{1, 1}, OnCards: true, Chunk: c.asked})
		if err != nil || !pl.Fits || len(pl.Cards) != 2 || pl.Chunk != c.want {
			t.Fatalf("%+v: a plan for two cards in steps of %d: %v, %+v", c, pl.Chunk, err, pl.Short)
		}
		m, err := Load(context.Background(), p, Options{Threads: 1, Draft: "off", Devices: devs, Plan: &pl, Chunk: c.asked})
		if err != nil {
			t.Fatal(err)
		}
		if list := m.cards.pieces(4096, 0); m.chunk != c.want || len(list) < 2 || (list[0] == c.want) != (c.want != 2048) {
			t.Errorf("%+v: steps of %d, pieces %v", c, m.chunk, list)
		}
		for _, x := range m.Placed() {
			if x.Really > x.Planned+x.Planned/10 || x.Planned > x.Really+x.Really/2+planSlack {
				t.Errorf("%+v: %s", c, x)
			}
		}
		m.Close()
	}
}

// TestCardGone: by itself ("auto") a model takes the cards that open; a plan that
// was made when there was one more is made anew. Cards that were named must all
// be there.
func TestCardGone(t *testing.T) {
	f := &compute.Fake{Count: 2}
	infos, err := f.Devices()
	if err != nil {
		t.Fatal(err)
	}
	pick := []DeviceInfo{{infos[0], "fake:0"}, {infos[1], "fake:1"}}
	open := func(i DeviceInfo) (*compute.Device, error) {
		if i.ID == "fake:0" {
			return nil, errors.New("fell off the bus")
		}
		return compute.Open(f, i.Info, compute.Options{})
	}
	own, err := openAll(pick, true, open)
	if err != nil || len(own) != 1 || own[0].Info().Index != 1 {
		t.Fatalf("what opens of two: %v, %v", own, err)
	}
	own[0].Close()
	if own, err := openAll(pick, false, open); err == nil || own != nil || !strings.Contains(err.Error(), "fell off the bus") {
		t.Errorf("two that were named: %v, %v", own, err)
	}
	if own, err := openAll(pick[:1], true, open); err == nil || own != nil {
		t.Errorf("the only one: %v, %v", own, err)
	}
	if n := f.Live(); n != 0 {
		t.Errorf("%d things stay on closed cards", n)
	}

	p := tinyPack(t, tinySpec{arch: "llama", layers: 4, seed: 3})
	_, devs := fakeCards(t, 2, 1<<30)
	facts, err := p.PlanFacts()
	if err != nil {
		t.Fatal(err)
	}
	pl, err := plan.Make(facts, devicesMachine(devs, 1), plan.Wishes{Context: 256, Split: []float64{1, 1}, OnCards: true})
	if err != nil || len(pl.Cards) != 2 {
		t.Fatalf("a plan for two cards: %+v, %v", pl.Cards, err)
	}
	m, err := Load(context.Background(), p, Options{Threads: 1, Context: 256})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	m.own = devs[1:]
	o := Options{Device: "auto", Devices: devs[1:], Plan: &pl}
	if err := m.usePlan(&o); err != nil || o.Plan == &pl || len(o.Plan.Cards) > 1 || slices.Contains(o.Devices, devs[0]) {
		t.Errorf("planned anew: %v, %+v", err, o.Plan.Cards) // for a tiny pack on the CPU, which is quicker
	}
	o = Options{Device: pl.Cards[0].PCI + "," + pl.Cards[1].PCI, Devices: devs[1:], Plan: &pl}
	if err := m.usePlan(&o); err == nil || !strings.Contains(err.Error(), "card A") {
		t.Errorf("a card that was named and is gone: %v", err)
	}
	m.own = nil
}
