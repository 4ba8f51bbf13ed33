package plan

import "testing"

// TestWideChunk: cards that hold all layers are planned with the step of prompts
// that they are quickest with, and what it takes counts; where it has no room, or
// another one was asked for, the usual or the asked one does.
func TestWideChunk(t *testing.T) {
	p := Pack{Name: "dense", Width: 4096, Hidden: 14336, Vocab: 128256, CanDevice: true, Output: 400 * mib,
		Card: CardFacts{Fixed: 24 * mib, Row: 400 << 10}}
	for range 32 {
		p.Layers = append(p.Layers, Layer{Dense: 130 * mib, KV: 2048})
	}
	m := smallCard()
	m.Cards[0].Chunk = 2048
	second := m.Cards[0]
	second.PCI, second.Chunk = "0000:04:00.0", 1024
	two := m
	two.Cards = []Card{m.Cards[0], second}
	tight := m
	tight.Cards = []Card{m.Cards[0]}
	tight.Cards[0].Free.N = 32*130*mib + 400*mib + 32*32*mib/2 + 24*mib + 1200*400<<10 + 700*mib
	plain := m
	plain.Cards = []Card{m.Cards[0]}
	plain.Cards[0].Chunk = 0
	for _, c := range []struct {
		name string
		m    Machine
		w    Wishes
		want int
	}{
		{"one card", m, Wishes{}, 2048},
		{"asked", m, Wishes{Chunk: 512}, 512},
		{"asked, longer", m, Wishes{Chunk: 4096}, 4096},
		{"two cards, the smaller one counts", two, Wishes{}, 1024},
		{"two cards, the first is used", two, Wishes{Cards: []string{"0000:03:00.0"}}, 2048},
		{"no room for it", tight, Wishes{}, 512},
		{"a card like others", plain, Wishes{}, 512},
		{"no card", m, Wishes{NoCard: true}, 512},
		{"experts elsewhere", m, Wishes{Placement: VRAMRAM}, 512},
	} {
		pl, err := Make(p, c.m, c.w)
		if err != nil || !pl.Fits || pl.Chunk != c.want {
			t.Errorf("%s: steps of %d, fits %v, %v, %v; want %d", c.name, pl.Chunk, pl.Fits, pl.Short, err, c.want)
		}
		if len(pl.Cards) == 0 {
			continue
		}
		if got, want := used(pl.Cards[0].Use, "scratch"), p.Card.Fixed+int64(c.want)*p.Card.Row; got != want {
			t.Errorf("%s: %d bytes of working memory, want %d", c.name, got, want)
		}
	}
}

// TestIdleCard: a card that gets no layer needs no working memory.
func TestIdleCard(t *testing.T) {
	m := smallCard()
	fast := m.Cards[0]
	fast.PCI, fast.Device = "0000:04:00.0", Rate{5000e9, true}
	m.Cards = append(m.Cards, fast)
	p := Pack{Name: "dense", Width: 4096, Hidden: 14336, Vocab: 128256, CanDevice: true}
	for range 32 {
		p.Layers = append(p.Layers, Layer{Dense: 130 * mib, KV: 2048})
	}
	pl, err := Make(p, m, Wishes{OnCards: true})
	if err != nil || !pl.Fits || len(pl.Cards) != 2 {
		t.Fatalf("%v, %v, %d cards", err, pl.Short, len(pl.Cards))
	}
	for i, c := range pl.Cards {
		n := 0
		for _, l := range pl.Layers {
			if l.Card == i {
				n++
			}
		}
		var all int64
		for _, s := range c.Use.Segments {
			all += s.Bytes
		}
		if (n == 32) != (i == 1) || (used(c.Use, "scratch") > 0) != (n > 0) || all != c.Use.Total.N {
			t.Errorf("card %d: %d layers, %d bytes of working memory, %d of %d bytes told", i, n, used(c.Use, "scratch"), all, c.Use.Total.N)
		}
	}
}
