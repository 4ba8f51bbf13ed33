package rates

import (
	"path/filepath"
	"testing"
	"time"

	"outcrop/engine/plan"
	"outcrop/gpu"
	"outcrop/gpu/compute"
)

// TestUnequalCards: two cards alike by their data sheets, of which one is three
// times slower, are measured, and the plan gives the slow one fewer layers; what
// was measured once counts after a restart too.
func TestUnequalCards(t *testing.T) {
	w := Work{Machine: testMachine(), Links: map[gpu.PCI]Link{}, effort: quick}
	second := w.Machine.Cards[0]
	second.PCI = "0000:07:00.0"
	w.Machine.Cards = append(w.Machine.Cards, second)
	usable := map[gpu.PCI]Usable{}
	for i, c := range w.Machine.Cards {
		pause := time.Duration(2+4*i) * time.Millisecond
		f := &compute.Fake{Memory: 256 << 20, Other: func(*compute.FakeCall) error { time.Sleep(pause); return nil }}
		d := openFake(t, f)
		l, free, err := Device(d)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := d.Used()
		w.Links[c.PCI], usable[c.PCI] = l, Usable{Backend: "level zero"}
		defer func() {
			if n, _ := d.Used(); n != before {
				t.Errorf("%d bytes stay of products, %d before", n, before)
			}
			free()
		}()
	}
	path := filepath.Join(t.TempDir(), "rates.json")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	facts := Facts{Machine: w.Machine, Usable: usable, Work: w}
	p := plan.Pack{Name: "dense", Width: 4096, Hidden: 14336, Vocab: 128256, CanDevice: true, Output: 400 << 20}
	for range 32 {
		p.Layers = append(p.Layers, plan.Layer{Dense: 400 << 20, KV: 2048}) // a little more than one card holds
	}
	layers := func(s *Store) (n [2]int) {
		pl, err := plan.Make(p, s.Machine(facts), plan.Wishes{OnCards: true})
		if err != nil || !pl.Fits {
			t.Fatalf("%v, %v", err, pl.Short)
		}
		for _, l := range pl.Layers {
			if l.Card >= 0 {
				n[l.Card]++
			}
		}
		return n
	}
	if n := layers(s); n[0] != n[1] {
		t.Errorf("before anything was measured: %v layers", n)
	}
	if _, err := s.Measure(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r := s.Rates().Cards
		if len(r) != 2 || !(r[0].Read > 1.5*r[1].Read) || !(r[0].Multiply > 1.5*r[1].Multiply) || !(r[1].Multiply > 100*r[1].Read) {
			t.Fatalf("measured %+v", r)
		}
		m := s.Machine(facts)
		if c := m.Cards[0]; !c.Device.Measured || c.Device.PerSecond != r[0].Read || !c.Prefill.Measured || c.Prefill.PerSecond != r[0].Multiply {
			t.Errorf("the planner hears of %+v", c)
		}
		if n := layers(s); n[0]+n[1] != 32 || n[0] < n[1]+8 || n[1] == 0 {
			t.Errorf("%v layers on a card and one three times slower", n)
		}
		if s, err = Open(path); err != nil {
			t.Fatal(err)
		}
	}
	// A card whose kernels do not run has a link all the same.
	broken := &compute.Fake{Memory: 256 << 20}
	d := openFake(t, broken)
	l, free, err := Device(d)
	if err != nil {
		t.Fatal(err)
	}
	defer free()
	if c, err := measureCard(t.Context(), l, quick); err != nil || c.HostToDevice <= 0 || c.Read != 0 || c.Multiply != 0 {
		t.Errorf("without kernels: %+v, %v", c, err)
	}
}
