package plan

import (
	"slices"
	"strings"
	"testing"
)

// smallCard is a card with room for a part of the experts of coder, beside
// plenty of RAM.
func smallCard() Machine {
	c := Card{PCI: "0000:03:00.0", Name: "card", Driver: "nvidia", Backend: "cuda", Total: Known(16*gib, "test"), Free: Known(15*gib, "test"),
		Device: Rate{500e9, true}, HostToDevice: Rate{12e9, true}}
	return Machine{Cards: []Card{c}, RAMTotal: Known(64*gib, "test"), RAMAvailable: Known(58*gib, "test"), CPU: Rate{20e9, true}, Threads: 8, DiskRandom: Rate{2e9, true}, DiskStream: Rate{3e9, true}}
}

func used(u Use, kinds ...string) (n int64) {
	for _, s := range u.Segments {
		if slices.Contains(kinds, s.Kind) {
			n += s.Bytes
		}
	}
	return n
}

// What is asked of slots, limits and the side that computes is kept to, or the
// plan does not fit.
func TestWishesAreKept(t *testing.T) {
	m := smallCard()
	for _, c := range []struct {
		name string
		w    Wishes
		ok   func(p Plan) bool
	}{
		{"slots of 4 GiB", Wishes{Placement: VRAMRAM, Slots: 4 * gib}, func(p Plan) bool {
			n := used(p.Cards[0].Use, "slots")
			return n <= 4*gib && n > 4*gib-50*mib
		}},
		{"no slots", Wishes{Placement: VRAMRAM, Slots: -1}, func(p Plan) bool {
			return used(p.Cards[0].Use, "slots") == 0 && p.Cards[0].Slots == 0 && p.ExpertRAM > 0
		}},
		{"8 GiB of the card", Wishes{Placement: VRAMRAM, VRAMCaps: []int64{8 * gib}}, func(p Plan) bool {
			u := p.Cards[0].Use
			return u.Total.N == 8*gib && used(u, "weights", "state", "kv", "scratch", "slots", "reserve") <= 8*gib && used(u, "slots") > gib
		}},
		{"a limit above what is free", Wishes{Placement: VRAMRAM, VRAMCaps: []int64{80 * gib}}, func(p Plan) bool { return p.Cards[0].Use.Total.N == 16*gib }},
		{"the processor", Wishes{Experts: ExpertsCPU}, func(p Plan) bool { return p.Placement == VRAMRAM || p.Placement == VRAMFile }},
		{"the link", Wishes{Experts: ExpertsCopy}, func(p Plan) bool { return p.Placement == VRAMPinned && len(p.PinnedChunks) > 0 }},
		{"all on the card", Wishes{Experts: ExpertsCard}, func(p Plan) bool { return p.Placement == AllVRAM && !p.Fits }},
		{"12 GiB of RAM", Wishes{RAMCap: 12 * gib}, func(p Plan) bool {
			return p.Placement == VRAMFile && p.RAM.Total.N == 12*gib && p.ExpertRAM < 12*gib
		}},
		{"cards by name", Wishes{Cards: []string{"0000:03:00.0"}, OnCards: true}, func(p Plan) bool { return len(p.Cards) == 1 }},
	} {
		p, err := Make(coder, m, c.w)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if !c.ok(p) {
			t.Errorf("%s:\n%s", c.name, brief(p))
		}
		for _, l := range p.Layers {
			if l.Slots+l.RAM+l.File != 0 && l.Slots+l.RAM+l.File != coder.Layers[0].Experts {
				t.Errorf("%s: a layer has its experts in %+v", c.name, l)
			}
		}
	}
	for name, w := range map[string]Wishes{
		"who":      {Experts: "nobody"},
		"negative": {VRAMCaps: []int64{-1}},
		"both":     {Experts: ExpertsCPU, Placement: AllVRAM},
	} {
		if _, err := Make(coder, m, w); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A placement that was asked for is the plan, and what the others would give is
// still told.
func TestAskedPlacementHasAlternatives(t *testing.T) {
	free, err := Make(coder, smallCard(), Wishes{})
	if err != nil {
		t.Fatal(err)
	}
	asked, err := Make(coder, smallCard(), Wishes{Placement: AllRAM})
	if err != nil {
		t.Fatal(err)
	}
	if asked.Placement != AllRAM || free.Placement == AllRAM || len(asked.Alternatives) != len(free.Alternatives) {
		t.Fatalf("%s with %d alternatives, %s with %d", asked.Placement, len(asked.Alternatives), free.Placement, len(free.Alternatives))
	}
	i := slices.IndexFunc(asked.Alternatives, func(a Alternative) bool { return a.Placement == free.Placement })
	if i < 0 || !asked.Alternatives[i].Fits || !strings.Contains(asked.Alternatives[i].Why, "another one is asked for") {
		t.Errorf("the plan's own choice: %+v", asked.Alternatives)
	}
}

// Where each rate comes from is said.
func TestRatesAreNamed(t *testing.T) {
	m := smallCard()
	m.DiskRandom, m.Cards[0].HostToDevice.Measured = Rate{}, false
	p, err := Make(coder, m, Wishes{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"weights on the CPU: 20.0 GB/s, measured here", "disk, an expert at a time: 0.4 GB/s, a careful guess, not measured",
		"memory of card: 500.0 GB/s, measured here", "link to card: 12.0 GB/s, by the data sheet, not measured"}
	if !slices.Equal(p.Rates, want) {
		t.Errorf("got %q", p.Rates)
	}
}
