package app

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
	"outcrop/gpu/recipe"
)

// texts is everything an object shows, for looking words up.
func texts(o fyne.CanvasObject) string {
	var b strings.Builder
	var walk func(fyne.CanvasObject)
	walk = func(o fyne.CanvasObject) {
		if !o.Visible() {
			return
		}
		switch o := o.(type) {
		case *widget.Text:
			b.WriteString(o.Text() + "\n")
		case *widget.Paragraph:
			b.WriteString(o.Text() + "\n")
		case *widget.Link:
			b.WriteString(o.Text() + "\n")
		case *widget.Chip:
			b.WriteString(o.Text() + "\n")
		case *widget.Code:
			b.WriteString(o.Source() + "\n")
		case *fynewidget.Button:
			b.WriteString(o.Text + "\n")
		case *fyne.Container:
			for _, c := range o.Objects {
				walk(c)
			}
		case *widget.Hover:
			walk(o.Object())
		case *machineDrawing:
			walk(o.host)
			for _, c := range append(o.cards, o.words...) {
				walk(c)
			}
		case *widget.Row:
			walk(o.Content())
		}
	}
	walk(o)
	return b.String()
}

func (r *rig) cardPage() *cardPage {
	r.a.visit("card")
	r.pump()
	return r.a.page("card").(*cardPage)
}

func TestCardPageSaysWhatWasFound(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.cardPage()
	if p.card != "0000:03:00.0" {
		t.Errorf("the card looked at is %q", p.card)
	}
	got := texts(p.body)
	for _, want := range []string{"AMD Ryzen 7 5800X", "8 cores, 16 threads", "RAM 29.0 GiB", "Arc A770", "VRAM 15.1 GiB, 560 GB/s", "driver xe", "31.5 GB/s", "Health", "Recipe", "Run first light on Arc A770"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	rec, err := recipe.For(testMachine(), recipe.Outcrop, p.options())
	if err != nil || len(rec.Lines) == 0 {
		t.Fatalf("recipe: %d lines, %v", len(rec.Lines), err)
	}
	for _, l := range rec.Lines {
		if !strings.Contains(got, l.Var) {
			t.Errorf("the page does not show %s", l.Var)
		}
	}
}

func TestRecipeSwitchIsKept(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.cardPage()
	rec, _ := recipe.For(testMachine(), recipe.Outcrop, p.options())
	name, was := rec.Lines[0].Var, rec.Lines[0].Off
	p.switchLine(name, was)
	r.pump()
	rec, err := recipe.For(testMachine(), recipe.Outcrop, p.options())
	if err != nil || rec.Lines[0].Off == was {
		t.Errorf("switching %s changes nothing: %v", name, err)
	}
	var kept Settings
	if ok, err := r.a.store.Setting(settingsKey, &kept); !ok || err != nil || kept.Recipe[recipe.Outcrop][name] != was {
		t.Errorf("kept %+v, %v, %v", kept.Recipe, ok, err)
	}
}

func TestEveryTargetAndFormatIsShown(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.cardPage()
	for _, target := range recipe.Targets() {
		p.target = target
		for _, f := range recipe.Formats() {
			p.format = f
			p.draw()
			if got := texts(p.body); !strings.Contains(got, "for "+target) {
				t.Errorf("%s as %s is not shown", target, f)
			}
		}
	}
	p.target, p.format, p.asIs = recipe.Strata, "sh", true
	p.draw()
	if got := texts(p.body); !strings.Contains(got, "as reported") {
		t.Error("the recipe as reported is not shown")
	}
	p.left = true
	p.draw()
	settle(r.a.win)
	p.scroll.ScrollToOffset(fyne.NewPos(0, 500))
	shot(t, r.a.win, "card-strata")
}

func TestNoCardIsNormal(t *testing.T) {
	r := newRig(t, LookLight)
	m := testMachine()
	m.Cards = nil
	r.cards.machine = m
	r.a.detect()
	r.pump()
	p := r.cardPage()
	got := texts(p.body)
	for _, want := range []string{"No graphics card", "The CPU runs the model. That is a normal way to use Outcrop.", "Run first light on the CPU"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestSeveralCards(t *testing.T) {
	r := newRig(t, LookDark)
	m := testMachine()
	second := m.Cards[0]
	second.PCI, second.Link = "0000:07:00.0", gpu.Link{Speed: gpu.Unknown[float64]("sysfs", "no such file")}
	m.Cards = append(m.Cards, second)
	r.cards.machine = m
	r.a.detect()
	r.pump()
	p := r.cardPage()
	if got := texts(p.body); strings.Count(got, "Arc A770\n") < 2 || !strings.Contains(got, "link n/a") {
		t.Errorf("two cards are shown as\n%s", got)
	}
	settle(r.a.win)
	shot(t, r.a.win, "card-two")
}

// step is a line of first light.
func step(device, id string, passed, total int, detail, skipped string) doctor.LightLine {
	return doctor.LightLine{Device: device, Name: "Arc A770", Step: &doctor.StepResult{Step: id, Title: "about " + id, Passed: passed, Total: total, Detail: detail, Skipped: skipped}}
}

func TestFirstLightLineByLine(t *testing.T) {
	r := newRig(t, LookDark)
	r.cards.offers = doctor.Offers{Devices: []doctor.Offer{{ID: "levelzero:0", Name: "Arc A770", PCI: "0000:03:00.0", Passed: true}}}
	r.cards.lines = []doctor.LightLine{
		{Note: "no device: cuda: no driver"},
		{Device: "levelzero:0", Name: "Arc A770", Phase: "opening the device"},
		step("levelzero:0", "patterns", 1, 3, "1 of 3", ""),
		step("levelzero:0", "patterns", 3, 3, "written and read back", ""),
		step("levelzero:0", "golden", 0, 0, "", "no pack is loaded"),
		step("levelzero:0", "repeat", 19, 20, "run 7 differs", ""),
		{Device: "levelzero:0", Name: "Arc A770", Result: &doctor.Light{Device: "Arc A770", PCI: "0000:03:00.0", Driver: "26.09", Passed: 22, Total: 23}},
		{Device: "opencl:0", Name: "Arc A770", Error: "compile the kernels: no compiler"},
	}
	p := r.cardPage()
	p.light.run("0000:03:00.0", "Arc A770")
	r.until("the end of first light", func() bool { return !p.light.running })
	got := texts(p.light.box)
	for _, want := range []string{"3 of 3", "skipped: no pack is loaded", "19 of 20", "22 of 23 on Arc A770", "It does not compute right with 26.09",
		"Arc A770 · opencl:0", "Compile the kernels: no compiler.", "Earlier"} {
		if !strings.Contains(got, want) {
			t.Errorf("first light does not say %q:\n%s", want, got)
		}
	}
	if strings.Count(got, "About patterns") != 1 {
		t.Error("a step that goes on is listed twice")
	}
	l, err := r.a.store.Lights(5)
	if err != nil || len(l) != 2 || l[1].Driver != "26.09" || l[1].PCI != "0000:03:00.0" || l[1].Name != "levelzero:0" || l[0].Total != 0 {
		t.Errorf("history: %+v, %v", l, err)
	}
	if len(r.cards.asked) != 1 || r.cards.asked[0] != "0000:03:00.0" {
		t.Errorf("tested %v", r.cards.asked)
	}
	settle(r.a.win)
	p.scroll.ScrollToBottom()
	shot(t, r.a.win, "card-light")
}

// While a test runs, the page says what runs; Stop ends it, and what was not
// tested does not count.
func TestFirstLightRunsAndStops(t *testing.T) {
	r := newRig(t, LookDark)
	r.cards.hang = true
	r.cards.lines = []doctor.LightLine{{Device: "cuda:0", Name: "H200", Phase: "opening the device"}, step("cuda:0", "patterns", 2, 2, "fine", "")}
	p := r.cardPage()
	p.light.run("0000:03:00.0", "H200")
	r.until("the first step", func() bool { return len(p.light.groups) == 1 && len(p.light.groups[0].steps) == 1 })
	got := texts(p.light.box)
	for _, want := range []string{"About patterns", "Allocation ladder, device memory", "Stop"} {
		if !strings.Contains(got, want) {
			t.Errorf("a running test does not say %q:\n%s", want, got)
		}
	}
	r.now = r.now.Add(7 * time.Second)
	r.tick()
	if got := texts(p.light.box); !strings.Contains(got, "7.0 s") {
		t.Errorf("the seconds do not run:\n%s", got)
	}
	shot(t, r.a.win, "card-light-running")
	p.light.stopped = true
	p.light.cancel()
	r.until("the end", func() bool { return !p.light.running })
	if got := texts(p.light.box); !strings.Contains(got, "Stopped.") || strings.Contains(got, "canceled") {
		t.Errorf("a stopped test says\n%s", got)
	}
	if l, _ := r.a.store.Lights(5); len(l) != 0 {
		t.Errorf("a stopped test was kept: %+v", l)
	}
}

// A driver that takes the test's process along is explained, kept with its
// card, and leaves the window as it was.
func TestFirstLightCrash(t *testing.T) {
	r := newRig(t, LookLight)
	r.cards.lines = []doctor.LightLine{{Device: "cuda:0", Name: "Arc A770", Phase: "opening the device"}, step("cuda:0", "patterns", 2, 2, "fine", "")}
	r.cards.broken = errors.New("the test crashed (SIGSEGV) inside a library of the system")
	p := r.cardPage()
	p.light.run("0000:03:00.0", "Arc A770")
	r.until("the end", func() bool { return !p.light.running && len(p.light.past) == 1 })
	if got := texts(p.light.box); !strings.Contains(got, "The test crashed (SIGSEGV) inside a library of the system.") || !strings.Contains(got, "Run it again") {
		t.Errorf("a crash says\n%s", got)
	}
	l, _ := r.a.store.Lights(5)
	if len(l) != 1 || l[0].OK() || l[0].PCI != "0000:03:00.0" || !strings.Contains(l[0].Text, `During "allocation ladder, device memory"`) {
		t.Errorf("kept %+v", l)
	}
	if got := texts(p.body); !strings.Contains(got, "first light: not passed on") {
		t.Error("the card does not say that it did not pass")
	}
}

// Each pack remembers where it runs; a running one is started again there.
func TestRunOn(t *testing.T) {
	r := newRig(t, LookDark)
	r.cards.offers = doctor.Offers{Devices: []doctor.Offer{{ID: "opencl:0", Name: "PoCL", CPU: true}}}
	r.a.findOffers()
	p := r.cardPage()
	r.pump()
	e, _ := r.a.packs.current()
	var names []string
	for _, it := range r.a.deviceMenu(e) {
		names = append(names, it.Label)
	}
	if got := strings.Join(names, "; "); got != "decide for me; CPU; Arc A770, first light not passed; PoCL by opencl:0" {
		t.Errorf("the choice is %q", got)
	}
	r.a.start(e)
	r.pump()
	r.a.runOn(e, "opencl:0")
	r.pump()
	var on []string
	for _, s := range r.engine.specs {
		on = append(on, s.Device)
	}
	if len(on) != 3 || on[1] != "auto" || on[2] != "opencl:0" {
		t.Errorf("started on %v", on)
	}
	if got := texts(p.body); !strings.Contains(got, "PoCL by opencl:0") {
		t.Error("the page does not show the choice")
	}
	if w := r.packs.wished[e.Name]; len(w.Cards) != 1 || w.Cards[0] != "opencl:0" {
		t.Errorf("planned with %+v", w)
	}
	other := r.packs.list[1]
	if got := r.a.device(other.Name); got != "auto" {
		t.Errorf("another pack runs on %q", got)
	}
	var kept Settings
	if _, err := r.a.store.Setting(settingsKey, &kept); err != nil || kept.Devices[e.Name] != "opencl:0" {
		t.Errorf("kept %+v, %v", kept.Devices, err)
	}
}

// A page that is drawn anew stays where the person scrolled to.
func TestPagesKeepTheirPlace(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.cardPage()
	settle(r.a.win)
	p.scroll.ScrollToBottom()
	at := p.scroll.Offset
	p.light.other = deviceCPU
	p.draw()
	if p.scroll.Offset != at || at.Y < 100 {
		t.Errorf("the Card page went from %v to %v", at, p.scroll.Offset)
	}
	r.a.visit("settings")
	r.pump()
	q := r.a.page("settings").(*settingsPage)
	settle(r.a.win)
	q.scroll.ScrollToBottom()
	at = q.scroll.Offset
	q.draw()
	if q.scroll.Offset != at || at.Y < 100 {
		t.Errorf("the Settings page went from %v to %v", at, q.scroll.Offset)
	}
}

// The recipe that an engine or a test runs with is that of its card: with two
// Intel cards each hides the other.
func TestRecipeFollowsTheDevice(t *testing.T) {
	fsys := t.TempDir()
	if err := gpu.UnpackFile("../gpu/recipe/testdata/machines/gsd-12641-two-a770.txt", fsys); err != nil {
		t.Fatal(err)
	}
	m, _, _, err := gpu.Open(fsys)
	if err != nil || len(m.Cards) != 2 {
		t.Fatalf("%d cards, %v", len(m.Cards), err)
	}
	r := newRig(t, LookDark)
	r.cards.machine = m
	r.a.detect()
	r.pump()
	mask := func(env []string) string {
		for _, v := range env {
			if s, ok := strings.CutPrefix(v, "ZE_AFFINITY_MASK="); ok {
				return s
			}
		}
		return ""
	}
	e, _ := r.a.packs.current()
	seen := map[string]bool{}
	for i := range m.Cards {
		r.a.runOn(e, string(m.Cards[i].PCI))
		r.pump()
		s := r.a.spec(e)
		if s.Device != string(m.Cards[i].PCI) || mask(s.Env) == "" {
			t.Errorf("card %d: on %s with mask %q", i, s.Device, mask(s.Env))
		}
		seen[mask(s.Env)] = true
	}
	if len(seen) != 2 {
		t.Errorf("both cards run with the same mask: %v", seen)
	}
}

// The light of the RAM is about memory: two cards whose driver fails with both do
// not make it warn, a control group's limit does.
func TestLightOfTheRAM(t *testing.T) {
	for machine, want := range map[string]widget.State{"gsd-12641-two-a770": widget.StateGood, "slice-limit": widget.StateWatch} {
		dir := t.TempDir()
		if err := gpu.UnpackFile("../gpu/recipe/testdata/machines/"+machine+".txt", dir); err != nil {
			t.Fatal(err)
		}
		m, err := gpu.Detect(os.DirFS(dir))
		if err != nil {
			t.Fatal(err)
		}
		found := doctor.Check(m, doctor.Options{})
		if got := healthState(ofMemory(found), ""); got != want {
			t.Errorf("%s: %v, want %v", machine, got, want)
		}
		if machine == "gsd-12641-two-a770" && healthState(found, m.Cards[0].PCI) != widget.StateWatch {
			t.Errorf("%s: the cards do not warn", machine)
		}
	}
}
