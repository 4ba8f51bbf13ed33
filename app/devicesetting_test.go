package app

import (
	"testing"

	"outcrop/gpu"
)

// A card that was chosen and is gone must not keep the engine from starting.
func TestDeviceFollowsTheMachine(t *testing.T) {
	a := &App{}
	for _, c := range []struct {
		chosen string
		cards  []gpu.PCI
		want   string
	}{
		{"", nil, ""},
		{"", []gpu.PCI{"0000:03:00.0"}, "auto"},
		{"cpu", []gpu.PCI{"0000:03:00.0"}, ""},
		{"0000:03:00.0", []gpu.PCI{"0000:03:00.0"}, "0000:03:00.0"},
		{"0000:07:00.0", []gpu.PCI{"0000:03:00.0"}, "auto"},
		{"0000:07:00.0", nil, ""},
	} {
		a.settings.Device = c.chosen
		a.machine.machine.Cards = nil
		for _, p := range c.cards {
			a.machine.machine.Cards = append(a.machine.machine.Cards, gpu.Card{PCI: p})
		}
		if got := a.device(); got != c.want {
			t.Errorf("chosen %q, cards %v: %q, want %q", c.chosen, c.cards, got, c.want)
		}
	}
}
