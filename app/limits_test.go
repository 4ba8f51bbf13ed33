package app

import (
	"slices"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// twoCards gives a rig's machine two cards of a maker, both past first light.
func twoCards(r *rig, vendor uint16, name string) {
	m := &r.a.machine
	m.machine.Cards, m.known, m.offered = nil, true, true
	for _, pci := range []gpu.PCI{"0000:03:00.0", "0000:07:00.0"} {
		m.machine.Cards = append(m.machine.Cards, gpu.Card{PCI: pci, Vendor: vendor, Name: name, Discrete: true, Driver: "xe",
			Memory: gpu.Memory{Total: gpu.Known[int64](16*gib, "sysfs")}})
		m.offers.Devices = append(m.offers.Devices, doctor.Offer{PCI: pci, Passed: true})
		m.offers.Devices[len(m.offers.Devices)-1].ID = "cuda:" + string('0'+rune(len(m.machine.Cards)-1))
	}
}

// TestLimitsOfSeveralCards: each card has a limit of its own, which reaches the
// engine at the place of its card.
func TestLimitsOfSeveralCards(t *testing.T) {
	r := newRig(t, LookDark)
	twoCards(r, gpu.NVIDIA, "RTX 3090")
	both := "0000:03:00.0,0000:07:00.0"
	for _, c := range []struct {
		device string
		all    int
		each   map[string]int
		want   string
		limits []int
	}{
		{"auto", 0, nil, "auto", nil},
		{"auto", 8, nil, "auto", []int{8}},
		{"cpu", 8, nil, "cpu", nil},
		{"auto", 8, map[string]int{"0000:07:00.0": 4}, both, []int{8, 4}},
		{"auto", 0, map[string]int{"0000:07:00.0": 4}, both, []int{0, 4}},
		{"auto", 0, map[string]int{"0000:07:00.0": 0}, both, nil},
		{"0000:07:00.0", 8, map[string]int{"0000:07:00.0": 4}, "0000:07:00.0", []int{4}},
		{"0000:07:00.0,0000:03:00.0", 8, map[string]int{"0000:07:00.0": 4}, "0000:07:00.0,0000:03:00.0", []int{4, 8}},
		{"cuda:1", 8, map[string]int{"0000:07:00.0": 4}, "cuda:1", []int{4}},
	} {
		r.a.settings = Settings{VRAMLimit: c.all, VRAMLimits: c.each}
		device, limits := r.a.vramLimits(c.device)
		if device != c.want && limits != nil || !slices.Equal(limits, c.limits) {
			t.Errorf("%+v: %q %v", c, device, limits)
		}
	}
	r.a.settings = Settings{VRAMLimits: map[string]int{"0000:07:00.0": 4}}
	e := catalog.Entry{Name: "a pack"}
	if w := r.a.wishes(e); !slices.Equal(w.VRAMCaps, []int64{0, 4 * gib}) || strings.Join(w.Cards, ";") != both {
		t.Errorf("the plan is asked for %+v", w)
	}
	if s := r.a.spec(e); !slices.Contains(s.args(), "--vram-limit=none,4294967296") || s.Device != both {
		t.Errorf("the engine is started with %v", s.args())
	}
	// Of two Intel cards the recipe shows one, which keeps its own limit.
	r.a.machine.offers.Devices = nil
	twoCards(r, gpu.Intel, "Arc A770")
	r.a.settings.VRAMLimits["0000:03:00.0"] = 6
	if device, limits := r.a.vramLimits("auto"); device != "auto" || !slices.Equal(limits, []int{6}) {
		t.Errorf("two Intel cards: %q %v", device, limits)
	}
}

// TestSettingsRefuseSenselessNumbers: a number that makes no sense is not taken,
// and the field says what was given, what makes sense and what to do.
func TestSettingsRefuseSenselessNumbers(t *testing.T) {
	r := newRig(t, LookDark)
	r.a.visit("settings")
	p := r.a.page("settings").(*settingsPage)
	for _, c := range []struct{ name, typed, want string }{
		{"Context", "3", "3 tokens hold no conversation. The least that makes sense is 256."},
		{"Context", "99999999", "The most that is taken is 16777216."},
		{"Threads", "500", "This machine runs 16 threads at a time"},
		{"VRAM limit", "64", "Arc A770 has 15.1 GiB, so a limit of 64 GiB changes nothing."},
		{"GiB of RAM", "400", "This machine has 29.0 GiB, so a limit of 400 GiB changes nothing. Give less, or leave the field empty."},
		{"GiB of RAM", "1.5", "\"1.5\" is no whole number."},
		{"GiB of RAM", "-2", "is no whole number."},
		{"Expert slots", "99", "Arc A770 has 15.1 GiB"},
		{"VRAM limit", "15", ""},
		{"GiB of RAM", "29", ""},
		{"Context", "256", ""},
	} {
		p.find(c.name)
		before := r.a.settings
		e := findEntry(p.body)
		if e == nil {
			t.Fatalf("%s has no field", c.name)
		}
		e.SetText(c.typed)
		e.OnSubmitted(c.typed)
		got := texts(p.body)
		switch {
		case c.want != "" && !strings.Contains(got, c.want):
			t.Errorf("%s, %q typed: %q is not said:\n%s", c.name, c.typed, c.want, got)
		case c.want != "" && (r.a.settings.Context != before.Context || r.a.settings.RAMLimit != before.RAMLimit || r.a.settings.VRAMLimit != before.VRAMLimit || r.a.settings.Slots != before.Slots || r.a.settings.Threads != before.Threads):
			t.Errorf("%s: %q was taken", c.name, c.typed)
		}
		if c.name == "VRAM limit" && c.want != "" {
			settle(r.a.win)
			shot(t, r.a.win, "settings-refused")
		}
	}
	if got := r.a.frame.toasts.Texts(); len(got) != 1 {
		t.Errorf("news that is the same is said %d times: %q", len(got), got)
	}
	if s := r.a.settings; s.VRAMLimit != 15 || s.RAMLimit != 29 || s.Context != 256 {
		t.Errorf("what makes sense was not taken: %+v", s)
	}
	twoCards(r, gpu.NVIDIA, "RTX 3090")
	p.find("VRAM limit")
	if got := texts(p.body); !strings.Contains(got, "RTX 3090 at 03:00") || !strings.Contains(got, "RTX 3090 at 07:00") {
		t.Errorf("two cards have no row each: %s", got)
	}
	settle(r.a.win)
	shot(t, r.a.win, "settings-two-cards")
}

// findEntry is the first field below an object.
func findEntry(o fyne.CanvasObject) *widget.Entry {
	switch o := o.(type) {
	case *widget.Entry:
		return o
	case *fyne.Container:
		for _, c := range o.Objects {
			if e := findEntry(c); e != nil {
				return e
			}
		}
	case fyne.Widget:
		for _, c := range test.WidgetRenderer(o).Objects() {
			if e := findEntry(c); e != nil {
				return e
			}
		}
	}
	return nil
}
