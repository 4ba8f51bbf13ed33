package serve

import (
	"testing"

	"outcrop/engine"
	"outcrop/engine/wire"
)

func TestUseOfCards(t *testing.T) {
	list := func() []wire.Card {
		return []wire.Card{{PCI: "0000:03:00.0", WhyIdle: "not asked"}, {PCI: "0000:07:00.0", WhyIdle: "not asked"}}
	}
	got := useOf(list(), engine.DeviceSample{PCI: []string{"", "0000:07:00.0"}})
	if got[0].Used || got[0].WhyIdle != "not asked" || !got[1].Used || got[1].WhyIdle != "" {
		t.Errorf("one of two in use: %+v", got)
	}
	got = useOf(list(), engine.DeviceSample{Why: "no card has passed first light"})
	if got[0].Used || got[1].WhyIdle != "no card has passed first light" {
		t.Errorf("none in use: %+v", got)
	}
}
