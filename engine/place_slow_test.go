//go:build slow

package engine

import (
	"testing"

	"outcrop/engine/plan"
	"outcrop/engine/token"
)

// TestPlanIsWhatLoadTakes: a plan for a card that may use little, in every
// placement, and what the load then holds there and in RAM.
func TestPlanIsWhatLoadTakes(t *testing.T) {
	devs := devices(t, 1)
	path := moeShape{layers: 6, experts: 32, used: 4, dim: 512, ff: 256}.write(t, t.TempDir())
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	facts, err := p.PlanFacts()
	if err != nil {
		t.Fatal(err)
	}
	want := []token.ID(nil)
	for _, c := range []struct {
		w      plan.Wishes
		slots  bool
		link   bool
		copies bool
	}{
		{plan.Wishes{Placement: plan.AllVRAM}, false, false, false},
		{plan.Wishes{Placement: plan.VRAMPinned, Slots: 15 << 20}, true, true, true},
		{plan.Wishes{Placement: plan.VRAMRAM, Slots: -1}, false, false, true},
		{plan.Wishes{Placement: plan.VRAMRAM, Slots: 10 << 20}, true, false, true},
		{plan.Wishes{Placement: plan.VRAMFile, Slots: 10 << 20}, true, false, true},
		{plan.Wishes{Placement: plan.AllRAM}, false, false, false},
	} {
		c.w.Context, c.w.Chunk, c.w.NoDraft, c.w.VRAMReserve = 512, 64, true, 1<<20
		pl, err := plan.Make(facts, devicesMachine(devs, 2), c.w)
		if err != nil || !pl.Fits {
			t.Fatalf("%+v: %v, %v", c.w, err, pl.Short)
		}
		t.Run(string(pl.Placement), func(t *testing.T) {
			m := load(t, path, Options{Plan: &pl, Devices: devs, Threads: 2, Draft: "off", Misses: missesLink})
			if m.Context() != 512 || m.chunk != 64 {
				t.Errorf("%s: context %d, chunk %d", pl.Placement, m.Context(), m.chunk)
			}
			for _, x := range m.Placed() {
				t.Logf("%s: %s", pl.Placement, x)
				if x.Off() {
					t.Errorf("%s: not as planned: %s", pl.Placement, x)
				}
			}
			if n := len(m.Placed()); n == 0 && pl.Placement != plan.AllRAM {
				t.Errorf("%s: nothing was compared", pl.Placement)
			}
			got := likeliest(t, m, []token.ID{1, 2, 3, 4}, 12)
			if want == nil {
				want = got
			}
			if n := same(got, want); n < len(want) {
				t.Errorf("%s: ids part after %d of %d", pl.Placement, n, len(want))
			}
			e := m.Telemetry().Experts
			if (e.Slot > 0) != c.slots || (e.Linked > 0) != c.link || (e.Held > 0) != c.copies {
				t.Errorf("%s: %+v", pl.Placement, e)
			}
			if c.slots {
				n := int64(0)
				for _, u := range pl.Cards[0].Use.Segments {
					if u.Kind == "slots" {
						n = u.Bytes
					}
				}
				if real := slotMemory(m); real != n {
					t.Errorf("%s: %d bytes of slots planned, %d taken", pl.Placement, n, real)
				}
			}
			if devs[0].Info().CPU && pl.Placement == plan.AllRAM && m.cards != nil {
				t.Error("a plan without cards uses one")
			}
		})
	}
}
