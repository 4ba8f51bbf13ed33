package serve

import (
	"strings"
	"testing"
	"time"

	"outcrop/engine"
	"outcrop/engine/plan"
	"outcrop/engine/wire"
)

func TestUseOfCards(t *testing.T) {
	list := func() []wire.Card {
		return []wire.Card{{PCI: "0000:03:00.0", WhyIdle: "not asked"}, {PCI: "0000:07:00.0", WhyIdle: "not asked"}}
	}
	got := useOf(list(), engine.DeviceSample{Each: []engine.DeviceUse{{Name: "PoCL", Weights: 5}, {PCI: "0000:07:00.0", Layers: 3, Weights: 7, KV: 2, Slots: 4, Scratch: 1}}})
	if len(got) != 3 || got[0].Used || got[0].WhyIdle != "not asked" || !got[1].Used || got[1].WhyIdle != "" {
		t.Fatalf("one of two in use, and one that is no card: %+v", got)
	}
	if u := got[1].Use; u == nil || u.Layers != 3 || u.Slots != 4 || !got[1].Own.Known || got[1].Own.Value != 14 {
		t.Errorf("use of the card: %+v, own %+v", u, got[1].Own)
	}
	if c := got[2]; c.Name != "PoCL" || !c.Used || c.Total.Known || c.Use.Weights != 5 {
		t.Errorf("a device that is no card: %+v", c)
	}
	got = useOf(list(), engine.DeviceSample{Why: "no card has passed first light"})
	if got[0].Used || got[1].WhyIdle != "no card has passed first light" {
		t.Errorf("none in use: %+v", got)
	}
}

func TestTiersOnTheWire(t *testing.T) {
	var w waits
	at := engine.TierSample{File: 9}
	w.add(0, at)
	if got := tiers(at, &w); got != nil {
		t.Errorf("an engine on mapped pages: %+v", got)
	}
	at = engine.TierSample{RAM: 60, Slot: 30, File: 10, Waited: 400 * time.Millisecond, CardWait: 100 * time.Millisecond, Read: 5e8, ReadTime: time.Second, LinkBytes: 4e9, LinkTime: 2 * time.Second}
	w.add(100, at)
	got := tiers(at, &w)
	if got == nil || got.WaitMS != 5 || got.FileMS != 4 || got.DiskBS != 5e8 || got.LinkBS != 2e9 || got.VRAM != 30 {
		t.Errorf("got %+v", got)
	}
	at.Waited += 90 * time.Millisecond
	w.add(100, at) // no token since: the last value stands
	if got := tiers(at, &w); got.FileMS != 4 {
		t.Errorf("without a token: %+v", got)
	}
	w.add(110, at)
	if got := tiers(at, &w); got.FileMS != 9 || got.WaitMS != 9 {
		t.Errorf("ten tokens later: %+v", got)
	}
}

// Why no card computes is told also when the plan, and not the load, left it out.
func TestWhyNoCard(t *testing.T) {
	cache := t.TempDir()
	without, with := &plan.Plan{Reasons: []string{"the card is too small", "RAM is plenty"}}, &plan.Plan{Cards: []plan.CardUse{{PCI: "0000:03:00.0"}}}
	for _, c := range []struct {
		device string
		pl     *plan.Plan
		want   string
	}{
		{"auto", without, "no card has passed first light"},
		{"auto", with, ""}, {"auto", nil, ""}, {"cpu", without, ""}, {"", without, ""},
		{"none:7", without, "is not there"},
	} {
		got := idleReason(c.device, cache, c.pl)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.device, got, c.want)
		}
	}
	b := &Backend{Idle: "planned so"}
	if got := b.whyCPU(engine.DeviceSample{}); got != "planned so" {
		t.Errorf("got %q", got)
	}
	if got := b.whyCPU(engine.DeviceSample{Why: "it broke"}); got != "it broke" {
		t.Errorf("got %q", got)
	}
	if got := b.whyCPU(engine.DeviceSample{Each: []engine.DeviceUse{{Name: "H200"}}}); got != "" {
		t.Errorf("with a card in use: %q", got)
	}
}
