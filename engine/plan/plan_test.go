package plan

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden plans")

// brief is a plan as a reviewable text.
func brief(p Plan) string {
	var b strings.Builder
	fmt.Fprintf(&b, "fits %v, %s, context %d, kv %s, %s, prefill %g to %g\n", p.Fits, p.Placement, p.Context, p.KV, tokS(p.Speed), p.Speed.PrefillLow, p.Speed.PrefillHigh)
	use := func(name string, u Use) {
		if len(u.Segments) == 0 {
			return
		}
		fmt.Fprintf(&b, "  %s:", name)
		for _, s := range u.Segments {
			fmt.Fprintf(&b, " %s %s,", s.Kind, size(s.Bytes))
		}
		b.WriteString("\n")
	}
	for _, c := range p.Cards {
		use(c.PCI, c.Use)
	}
	use("ram", p.RAM)
	use("file", p.File)
	for _, s := range p.Short {
		fmt.Fprintf(&b, "  short %s of %s: %s\n", size(s.Bytes), s.Where, s.Why)
	}
	for _, r := range p.Reasons {
		fmt.Fprintf(&b, "  because %s\n", r)
	}
	for _, a := range p.Alternatives {
		fmt.Fprintf(&b, "  not %s: %s\n", a.Placement, a.Why)
	}
	for _, r := range p.Remedies {
		fmt.Fprintf(&b, "  remedy %s\n", r.Text)
	}
	return b.String()
}

// wishesFor gives each pair the context a user of that machine would ask for.
func wishesFor(p Pack) Wishes {
	if p.Name == "coder-a6b" {
		return Wishes{Context: 65536, KV: "q8"}
	}
	return Wishes{}
}

func TestGoldenPlans(t *testing.T) {
	var b strings.Builder
	n := 0
	for _, m := range machines {
		for _, p := range packs {
			pl, err := Make(p, m.m, wishesFor(p))
			if err != nil {
				t.Fatalf("%s on %s: %v", p.Name, m.name, err)
			}
			fmt.Fprintf(&b, "== %s on %s\n%s", p.Name, m.name, brief(pl))
			n++
		}
	}
	const file = "testdata/plans.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n < 25 {
		t.Errorf("%d golden plans, want at least 25", n)
	}
	got, exp := strings.Split(b.String(), "== "), strings.Split(string(want), "== ")
	for i := range got {
		if i >= len(exp) || got[i] != exp[i] {
			old := "nothing"
			if i < len(exp) {
				old = exp[i]
			}
			t.Errorf("plan changed (go test -update after looking):\n%s\nwas\n%s", got[i], old)
		}
	}
}

// The machine and model of issue #1545: mapping the experts kept it alive,
// pinning them killed it, and 2 GiB of VRAM had to stay free.
func TestSeedMachine(t *testing.T) {
	pl, err := Make(coder, machines[0].m, Wishes{Context: 65536, KV: "q8"})
	if err != nil {
		t.Fatal(err)
	}
	_, experts := coder.totals(false)
	if got := float64(experts) / float64(gib); got < 23.3 || got > 23.6 {
		t.Fatalf("the test model has %.2f GiB of experts, want 23.42", got)
	}
	if !pl.Fits || pl.Placement != VRAMFile {
		t.Errorf("placement %s, fits %v: want file pages", pl.Placement, pl.Fits)
	}
	if pl.Context != 65536 || pl.KV != "q8" {
		t.Errorf("changed the wish to %d, %s", pl.Context, pl.KV)
	}
	if pl.Cards[0].Reserve < 2*gib {
		t.Errorf("reserve %s, want at least 2 GiB", size(pl.Cards[0].Reserve))
	}
	if pl.Cards[0].Slots < 1000 {
		t.Errorf("%d slots, want most of the card used for experts", pl.Cards[0].Slots)
	}
	for _, a := range pl.Alternatives {
		if (a.Placement == VRAMPinned || a.Placement == VRAMRAM) && a.Fits {
			t.Errorf("%s is said to fit", a.Placement)
		}
	}
}

// On the same card with enough RAM, pinned copies come in pieces that drivers grant.
func TestPinnedInChunks(t *testing.T) {
	pl, err := Make(coder, machines[1].m, Wishes{Context: 65536, KV: "q8", Placement: VRAMPinned})
	if err != nil {
		t.Fatal(err)
	}
	if len(pl.PinnedChunks) == 0 {
		t.Fatal("no pinned allocation in a plan that pins")
	}
	for _, n := range pl.PinnedChunks {
		if n > 2*gib {
			t.Errorf("a pinned allocation of %s", size(n))
		}
	}
}

// What must hold for every plan, whatever the machine and the wish.
func TestInvariants(t *testing.T) {
	wishes := []Wishes{{}, {Context: 131072}, {KV: "q8", Context: 32768}, {NoCard: true}, {NoDraft: true}, {VRAMCap: 8 * gib}, {RAMFloor: 12 * gib}}
	for _, p := range Placements {
		wishes = append(wishes, Wishes{Placement: p})
	}
	for _, m := range machines {
		for _, p := range packs {
			for _, w := range wishes {
				pl, err := Make(p, m.m, w)
				if err != nil {
					if w.Placement != "" {
						continue
					}
					t.Fatal(err)
				}
				checkPlan(t, m.name, p, w, pl)
			}
		}
	}
}

func checkPlan(t *testing.T, machine string, p Pack, w Wishes, pl Plan) {
	t.Helper()
	id := fmt.Sprintf("%s on %s with %+v", p.Name, machine, w)
	if w.Context > 0 && pl.Context != w.Context || w.KV != "" && pl.KV != w.KV {
		t.Errorf("%s: the wish was changed to %d, %s", id, pl.Context, pl.KV)
	}
	for i, l := range pl.Layers {
		if n := l.Slots + l.RAM + l.File; n != p.Layers[i].Experts && pl.Fits {
			t.Errorf("%s: layer %d has %d experts placed, want %d", id, i, n, p.Layers[i].Experts)
		}
		if l.Card >= len(pl.Cards) {
			t.Errorf("%s: layer %d on card %d of %d", id, i, l.Card, len(pl.Cards))
		}
	}
	if !pl.Fits {
		if len(pl.Short) == 0 {
			t.Errorf("%s: does not fit and does not say what is short", id)
		}
		return
	}
	for _, c := range pl.Cards {
		var sum int64
		for _, s := range c.Use.Segments {
			if s.Bytes < 0 {
				t.Errorf("%s: %s of %d bytes", id, s.Kind, s.Bytes)
			}
			sum += s.Bytes
		}
		if sum > c.Use.Total.N {
			t.Errorf("%s: %s holds %s of %s", id, c.PCI, size(sum), size(c.Use.Total.N))
		}
	}
	var ram int64
	for _, s := range pl.RAM.Segments {
		ram += s.Bytes
	}
	if pl.RAM.Total.Known && ram > pl.RAM.Total.N {
		t.Errorf("%s: RAM holds %s of %s", id, size(ram), size(pl.RAM.Total.N))
	}
	if !(pl.Speed.DecodeLow > 0) || pl.Speed.DecodeHigh < pl.Speed.DecodeLow {
		t.Errorf("%s: speed %+v", id, pl.Speed)
	}
}

// Advice must work: every remedy, asked for, fits.
func TestRemediesWork(t *testing.T) {
	n := 0
	for _, m := range machines {
		for _, p := range packs {
			for _, w := range []Wishes{{Context: 131072, KV: "f32"}, {Placement: AllVRAM}, {Context: 1 << 20, KV: "f16"}} {
				pl, err := Make(p, m.m, w)
				if err != nil {
					t.Fatal(err)
				}
				if pl.Fits {
					continue
				}
				// What cannot run has no rate, and nothing is compared with it.
				if pl.Speed.DecodeHigh != 0 || len(pl.Speed.Terms) > 0 {
					t.Errorf("%s on %s does not fit and is given %s", p.Name, m.name, tokS(pl.Speed))
				}
				for _, a := range pl.Alternatives {
					if !a.Fits && a.Speed.DecodeHigh != 0 || a.Fits && !strings.Contains(a.Why, "would fit") {
						t.Errorf("%s on %s, %s: %q, %s", p.Name, m.name, a.Placement, a.Why, tokS(a.Speed))
					}
				}
				for _, r := range pl.Remedies {
					if r.Kind == "pack" {
						continue
					}
					again, err := Make(p, m.m, r.Wishes)
					if err != nil || !again.Fits {
						t.Errorf("%s on %s: %q does not help (%v)", p.Name, m.name, r.Text, err)
					}
					n++
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d remedies were tried", n)
	}
}

func TestRefusesImpossible(t *testing.T) {
	m := machines[0].m
	for _, c := range []struct {
		name string
		p    Pack
		w    Wishes
		want string
	}{
		{"no layers", Pack{Name: "x"}, Wishes{}, "no layers"},
		{"more used than there are", Pack{Layers: []Layer{{Experts: 2, Used: 3}}}, Wishes{}, "impossible sizes"},
		{"overflow", Pack{Layers: []Layer{{Experts: 1 << 40, Used: 1, Expert: 1 << 40}}}, Wishes{}, "overflow"},
		{"KV type", coder, Wishes{KV: "q3"}, `unknown KV type "q3"`},
		{"card", coder, Wishes{Cards: []string{"0000:99:00.0"}}, "no card at 0000:99:00.0; found [0000:03:00.0 Arc A770]"},
		{"placement", coder, Wishes{Placement: "cloud"}, "unknown placement"},
		{"negative", coder, Wishes{Context: -1}, "negative"},
	} {
		if _, err := Make(c.p, m, c.w); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}
