package app

import (
	"testing"

	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// A card that was chosen and is gone must not keep the engine from starting.
func TestDeviceFollowsTheMachine(t *testing.T) {
	a := &App{}
	for _, c := range []struct {
		chosen string
		cards  []gpu.PCI
		want   string
	}{
		{"", nil, "cpu"},
		{"", []gpu.PCI{"0000:03:00.0"}, "auto"},
		{"cpu", []gpu.PCI{"0000:03:00.0"}, "cpu"},
		{"auto", []gpu.PCI{"0000:03:00.0"}, "auto"},
		{"opencl:0", nil, "opencl:0"},
		{"opencl:1", nil, "cpu"},
		{"0000:03:00.0", []gpu.PCI{"0000:03:00.0"}, "0000:03:00.0"},
		{"0000:07:00.0", []gpu.PCI{"0000:03:00.0"}, "auto"},
		{"0000:07:00.0", nil, "cpu"},
	} {
		a.machine = machineState{known: true, offered: true, offers: doctor.Offers{Devices: []doctor.Offer{{ID: "opencl:0"}}}}
		a.settings.Devices, a.settings.Device = nil, c.chosen
		for _, p := range c.cards {
			a.machine.machine.Cards = append(a.machine.machine.Cards, gpu.Card{PCI: p})
		}
		if got := a.device("some pack"); got != c.want {
			t.Errorf("chosen %q, cards %v: %q, want %q", c.chosen, c.cards, got, c.want)
		}
		// A pack's own choice goes before the one for all.
		a.settings.Devices, a.settings.Device = map[string]string{"some pack": c.chosen}, "cpu"
		want := c.want
		if c.chosen == "" {
			want = "cpu"
		}
		if got := a.device("some pack"); got != want {
			t.Errorf("chosen %q for the pack, cards %v: %q, want %q", c.chosen, c.cards, got, want)
		}
	}
	// While nothing is known of the machine, the engine is to decide.
	a.machine, a.settings = machineState{}, Settings{}
	if got := a.device("some pack"); got != "auto" {
		t.Errorf("before the machine is known: %q", got)
	}
}
