package app

import (
	"slices"
	"strings"
	"testing"

	"outcrop/engine/catalog"
	"outcrop/gpu"
)

// TestCardsTogether: several cards of their own memory can be chosen together;
// the engine is then told so, and its environment hides none of them.
func TestCardsTogether(t *testing.T) {
	r := newRig(t, LookDark)
	m := &r.a.machine
	one := gpu.Card{Vendor: gpu.Intel, Device: 0x56a0, Name: "Arc A770", Arch: gpu.Alchemist, Discrete: true, Driver: "xe"}
	m.machine.Cards, m.known = nil, true
	for _, pci := range []gpu.PCI{"0000:03:00.0", "0000:07:00.0"} {
		c := one
		c.PCI = pci
		m.machine.Cards = append(m.machine.Cards, c)
		ids, _ := r.a.deviceChoices()
		if slices.ContainsFunc(ids, func(id string) bool { return strings.Contains(id, ",") }) != (len(m.machine.Cards) > 1) {
			t.Errorf("with %d cards the choices are %v", len(m.machine.Cards), ids)
		}
	}
	all := "0000:03:00.0,0000:07:00.0"
	ids, names := r.a.deviceChoices()
	if i := slices.Index(ids, all); i < 0 || names[i] != "both cards" {
		t.Fatalf("choices %v, %v", ids, names)
	}
	mask := func(device string) (string, bool) {
		for _, v := range r.a.recipeEnv(device) {
			if rest, ok := strings.CutPrefix(v, "ZE_AFFINITY_MASK="); ok {
				return rest, true
			}
		}
		return "", false
	}
	r.a.settings.Device = all
	s := r.a.spec(catalog.Entry{Name: "a pack"})
	if s.Device != all || slices.ContainsFunc(s.Env, func(v string) bool { return strings.HasPrefix(v, "ZE_AFFINITY_MASK=") }) {
		t.Errorf("the engine is started on %q with %v", s.Device, s.Env)
	}
	if v, ok := mask("0000:07:00.0"); !ok || v != "1" {
		t.Errorf("the second card's mask is %q", v)
	}
	if v, ok := mask("auto"); !ok || v != "0" {
		t.Errorf("the mask is %q where nothing was chosen", v)
	}
	m.machine.Cards = m.machine.Cards[:1]
	if got := r.a.device("a pack"); got != deviceAuto {
		t.Errorf("with one of two cards gone the engine runs on %q", got)
	}
}
