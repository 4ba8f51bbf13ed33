package app

import (
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

func TestFirstLightLineByLine(t *testing.T) {
	r := newRig(t, LookDark)
	r.cards.steps = []doctor.StepResult{
		{Step: "patterns", Title: "Patterns beyond 4 GiB", Passed: 1, Total: 3, Detail: "1 of 3"},
		{Step: "patterns", Title: "Patterns beyond 4 GiB", Passed: 3, Total: 3, Detail: "written and read back"},
		{Step: "golden", Title: "Golden tokens", Skipped: "no pack is loaded"},
		{Step: "repeat", Title: "Same kernel 20 times", Passed: 19, Total: 20, Detail: "run 7 differs"},
	}
	r.cards.result = doctor.Light{Device: "Arc A770", Driver: "26.09", Passed: 22, Total: 23, Time: time.Now()}
	p := r.cardPage()
	p.light.run("0000:03:00.0", "Arc A770")
	r.until("the end of first light", func() bool { return !p.light.running })
	got := texts(p.light.box)
	for _, want := range []string{"3 of 3", "skipped: no pack is loaded", "19 of 20", "22 of 23 on Arc A770", "Earlier"} {
		if !strings.Contains(got, want) {
			t.Errorf("first light does not say %q:\n%s", want, got)
		}
	}
	if strings.Count(got, "Patterns beyond 4 GiB") != 1 {
		t.Error("a step that goes on is listed twice")
	}
	if l, err := r.a.store.Lights(5); err != nil || len(l) != 1 || l[0].Driver != "26.09" {
		t.Errorf("history: %+v, %v", l, err)
	}
	settle(r.a.win)
	p.scroll.ScrollToBottom()
	shot(t, r.a.win, "card-light")
}
