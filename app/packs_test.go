package app

import (
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
	"outcrop/engine/plan"
)

func (r *rig) packsPage() *packsPage {
	r.a.visit("packs")
	r.pump()
	return r.a.page("packs").(*packsPage)
}

func TestPackCardsSayWhatTheyAre(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.packsPage()
	c := p.cards["Qwen3-30B-A3B-Q4_K_M"]
	if got, want := c.facts.Text(), "qwen3moe · 17.3 GiB · 30.5 billion weights, 3.3 billion at work · 128 experts, 8 at a time · about 4.9 bits, very good · context 40K · apache-2.0"; got != want {
		t.Errorf("facts are\n%s\nwant\n%s", got, want)
	}
	if got := c.button.Text; got != "Start on Arc A770" {
		t.Errorf("the button says %q", got)
	}
	if got := c.words.Text(); !strings.Contains(got, "Expect 7 to 12 tok/s") || !strings.Contains(got, "not measured here yet") {
		t.Errorf("the sentence is %q", got)
	}
	if got := len(c.fit.Rows()); got != 3 {
		t.Errorf("the fit picture has %d bars, want VRAM, RAM and disk", got)
	}
	m := p.cards["mystery"]
	if !m.button.Disabled() || m.light.State() != widget.StateAct || !strings.Contains(m.words.Text(), "not known") {
		t.Errorf("a pack of an unknown family: button %v, light %v, %q", m.button.Disabled(), m.light.State(), m.words.Text())
	}
	// The starter runs: its button stops it.
	if got := p.cards["starter"].button.Text; got != "Stop" {
		t.Errorf("the running pack's button says %q", got)
	}
	p.startOrStop("Qwen3-30B-A3B-Q4_K_M")
	r.pump()
	if r.a.engine.Pack != "Qwen3-30B-A3B-Q4_K_M" || r.a.settings.Pack != "Qwen3-30B-A3B-Q4_K_M" {
		t.Errorf("started %q, remembered %q", r.a.engine.Pack, r.a.settings.Pack)
	}
	if got := r.a.chat().composer.pack.Text(); got != "Qwen3-30B-A3B-Q4_K_M" {
		t.Errorf("the chat's chip says %q", got)
	}
}

func TestPackFiltersAndSearch(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.packsPage()
	shown := func() int {
		n := 0
		for _, c := range p.cards {
			for _, o := range p.list.Objects {
				if o == fyne.CanvasObject(c.row) {
					n++
				}
			}
		}
		return n
	}
	for _, c := range []struct {
		filter, query string
		want          int
	}{{"", "", 3}, {"now", "", 2}, {"no", "", 1}, {"change", "", 0}, {"", "qwen", 2}, {"", "QWEN3-30", 1}, {"now", "mystery", 0}} {
		p.filter, p.query = c.filter, strings.ToLower(c.query)
		p.draw()
		if got := shown(); got != c.want {
			t.Errorf("filter %q, search %q: %d packs, want %d", c.filter, c.query, got, c.want)
		}
	}
}

func TestPackDetails(t *testing.T) {
	r := newRig(t, LookDark)
	in := r.packs.infos["starter"]
	in.Metadata = map[string]any{"tokenizer.chat_template": "{{ x }}", "general.name": "Starter", "tokenizer.ggml.tokens": map[string]any{"length": 4096.0, "first": []any{"a"}}}
	r.packs.infos["starter"] = in
	p := r.packsPage()
	e, _ := r.a.packs.named("starter")
	r.a.packs.again(e)
	r.pump()
	p.open("starter")
	if p.detail.root.Hidden {
		t.Fatal("the details do not open")
	}
	settle(r.a.win)
	shot(t, r.a.win, "packs-details")
	p.key(fyne.KeyEscape)
	if !p.detail.root.Hidden || p.chosen != "" {
		t.Error("Esc does not close the details")
	}
}

func TestPackAddDropRemoveUndo(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.packsPage()
	r.a.dropped([]string{"/models/New-Model.gguf", "/models/notes.txt"})
	r.pump()
	if _, ok := r.a.packs.named("New-Model"); !ok {
		t.Fatal("a dropped pack is not on the list")
	}
	if got := strings.Join(r.a.frame.toasts.Texts(), "|"); !strings.Contains(got, "Added New-Model") || !strings.Contains(got, "no GGUF file") {
		t.Errorf("the toasts say %q", got)
	}
	e, _ := r.a.packs.named("New-Model")
	p.open("New-Model")
	r.a.packs.remove(e)
	r.pump()
	if _, ok := r.a.packs.named("New-Model"); ok {
		t.Fatal("a removed pack is still on the list")
	}
	if p.chosen != "" {
		t.Error("the details of a removed pack stay open")
	}
	r.a.frame.toasts.Press()
	r.pump()
	if _, ok := r.a.packs.named("New-Model"); !ok {
		t.Error("undo does not bring the pack back")
	}
	starter, _ := r.a.packs.named("starter")
	r.a.packs.remove(starter)
	r.pump()
	if _, ok := r.a.packs.named("starter"); !ok {
		t.Error("the starter was removed")
	}
}

func TestDownloads(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.packsPage()
	r.packs.progress = []catalog.Progress{{Phase: "downloading", Done: 2 << 30, Total: 5 << 30, Rate: 50 * mib}}
	p.loads.find("some/pack")
	r.until("the download", func() bool {
		return len(p.loads.list) == 1 && p.loads.list[0].state == "running" && p.loads.list[0].now.Done == 2<<30
	})
	d := p.loads.list[0]
	if got, want := d.progressWords(), "2.0 of 5.0 GiB, 50.0 MiB/s, 61 s left"; got != want {
		t.Errorf("progress says %q, want %q", got, want)
	}
	settle(r.a.win)
	shot(t, r.a.win, "packs-download")
	d.cancel()
	r.until("the pause", func() bool { return d.state == "paused" })
	r.packs.progress = nil
	d.start()
	r.until("the end", func() bool { return len(p.loads.list) == 0 })
	if _, ok := r.a.packs.named("found"); !ok {
		t.Error("what was fetched is not on the list")
	}

	p.loads.find("many/choices")
	r.until("the choice", func() bool { return len(p.loads.list) == 1 && p.loads.list[0].state == "choose" })
	p.loads.list = nil
	p.loads.find("bad")
	r.until("the failure", func() bool { return len(p.loads.list) == 1 && p.loads.list[0].state == "failed" })
}

func TestUnfinishedDownloadsAreOffered(t *testing.T) {
	r := newRig(t, LookDark)
	r.packs.unfinished = []catalog.Unfinished{{Source: catalog.Source{Name: "half", Origin: "a/half", Files: []catalog.RemoteFile{{Size: 100}}}, Done: 40}}
	p := r.packsPage()
	if len(p.loads.list) != 1 || p.loads.list[0].state != "paused" {
		t.Fatalf("got %+v", p.loads.list)
	}
	p.loads.list[0].discard()
	if len(p.loads.list) != 0 {
		t.Error("a given up download is still shown")
	}
	r.a.frame.toasts.Press()
	if len(p.loads.list) != 1 {
		t.Error("undo does not bring it back")
	}
}

func TestFitWords(t *testing.T) {
	p := &plan.Plan{Fits: false, Short: []plan.Short{{Where: "RAM", Bytes: 3435973837}}, RAM: plan.Use{Total: plan.Known(8*gib, "x"), Segments: []plan.Segment{{Kind: "weights", Bytes: 9 * gib}, {Kind: "floor", Bytes: 2 * gib}, {Kind: "free", Bytes: 5}, {Kind: "odd", Bytes: 1}}},
		Remedies: []plan.Remedy{{Kind: "context", Text: "4096 tokens", Wishes: plan.Wishes{Context: 4096}}}}
	if got, want := fitSentence(p), "It does not fit: RAM is short by 3.2 GiB."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if s, _ := fitState(p); s != widget.StateWatch {
		t.Errorf("a pack that fits with a smaller context has state %v", s)
	}
	rows := fitRows(p)
	if len(rows) != 1 || rows[0].Short == 0 || rows[0].Text != "3.2 GiB short" || len(rows[0].Parts) != 3 || !rows[0].Parts[1].Hatch {
		t.Errorf("got %+v", rows)
	}
	unknown := fitRow("RAM", plan.Use{Total: plan.Amount{Why: "nobody says"}, Segments: []plan.Segment{{Kind: "weights", Bytes: gib}}}, widget.ColorRAM, 0)
	if unknown.Total != 0 || unknown.Text != "1.0 GiB of n/a" || unknown.Why != "nobody says" {
		t.Errorf("unknown total: %+v", unknown)
	}
}

// TestFitCards: a bar for each card, told apart where they have one name.
func TestFitCards(t *testing.T) {
	p := &plan.Plan{Fits: true, Cards: []plan.CardUse{{PCI: "0000:03:00.0", Name: "Arc A770"}, {PCI: "0000:07:00.0", Name: "Arc A770"}, {PCI: "0000:0a:00.0", Name: "Arc A380"}},
		Short: []plan.Short{{Where: "VRAM of 0000:07:00.0", Bytes: gib}}}
	var names []string
	for _, r := range fitRows(p) {
		names = append(names, r.Name)
		if (r.Short > 0) != (r.Name == "Arc A770 07:00") {
			t.Errorf("%s is short of %v", r.Name, r.Short)
		}
	}
	p.Fits = false
	if got, want := fitSentence(p), "It does not fit: VRAM of Arc A770 07:00 is short by 1.0 GiB."; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := strings.Join(names, ", "), "Arc A770 03:00, Arc A770 07:00, Arc A380, RAM"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// The placements that lost are buttons: one that fits can be chosen for the
// pack, the engine loads it again there, and the plan's choice comes back.
func TestChoosePlacement(t *testing.T) {
	for _, look := range []Look{LookDark, LookLight} {
		r := newRig(t, look)
		const name = "Qwen3-30B-A3B-Q4_K_M"
		pl := r.packs.plans[name]
		pl.Alternatives = append(pl.Alternatives, plan.Alternative{Placement: plan.AllVRAM, Why: "8.1 GiB short of VRAM: all weights, KV and state"})
		pl.Rates = []string{"weights on the CPU: 10.0 GB/s, a careful guess, not measured"}
		r.packs.plans[name] = pl
		p := r.packsPage()
		e, _ := r.a.packs.named(name)
		r.a.packs.again(e)
		r.pump()
		p.open(name)
		r.a.start(e)
		r.pump()
		settle(r.a.win)
		shot(t, r.a.win, "packs-placements-"+string(look))
		buttons := func(text string) (out []*fynewidget.Button) {
			for _, o := range test.LaidOutObjects(p.detail.body) {
				if b, ok := o.(*fynewidget.Button); ok && b.Text == text {
					out = append(out, b)
				}
			}
			return out
		}
		use := buttons("Use this")
		if len(use) != 1 { // the other one does not fit
			t.Fatalf("%d placements can be chosen, want 1", len(use))
		}
		before := len(r.engine.specs)
		test.Tap(use[0])
		r.pump()
		if got := r.a.settings.Placements[name]; got != string(plan.AllRAM) {
			t.Errorf("chosen: %q", got)
		}
		if len(r.engine.specs) != before+1 || r.engine.specs[before].Placement != string(plan.AllRAM) {
			t.Errorf("the engine was started with %+v", r.engine.specs[before:])
		}
		if w := r.a.wishes(e); w.Placement != plan.AllRAM {
			t.Errorf("the plan is asked for %+v", w)
		}
		if other := r.a.spec(catalog.Entry{Name: "starter"}); other.Placement != "" {
			t.Errorf("another pack goes to %q too", other.Placement)
		}
		settle(r.a.win)
		back := buttons("Let the plan choose")
		if len(back) != 1 {
			t.Fatalf("%d ways back", len(back))
		}
		test.Tap(back[0])
		r.pump()
		if len(r.a.settings.Placements) != 0 {
			t.Errorf("still chosen: %v", r.a.settings.Placements)
		}
		settle(r.a.win)
		measure := buttons("Measure this machine")
		if len(measure) != 1 {
			t.Fatalf("%d ways to measure", len(measure))
		}
		test.Tap(measure[0])
		r.pump()
		if r.packs.measured != 1 || measure[0].Disabled() || measure[0].Text != "Measure this machine" {
			t.Errorf("measured %d times, the button says %q", r.packs.measured, measure[0].Text)
		}
	}
}

// A limit is for every pack: all plans that are shown are made anew. One that
// does not fit then says by how much, and no rate.
func TestLimitChangesEveryPlan(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.packsPage()
	const big = "Qwen3-30B-A3B-Q4_K_M"
	pl := r.packs.plans[big]
	pl.Fits, pl.Short = false, []plan.Short{{Where: "RAM", Bytes: 3 * gib, Why: "weights"}}
	r.packs.plans[big] = pl
	r.a.change(func(s *Settings) { s.RAMLimit = 1; r.a.replan() })
	r.pump()
	for _, name := range []string{"starter", big} {
		r.packs.mu.Lock()
		w := r.packs.wished[name]
		r.packs.mu.Unlock()
		if w.RAMCap != gib {
			t.Errorf("the plan of %s was asked for with a limit of %d bytes", name, w.RAMCap)
		}
	}
	// Starting it would be refused: the button shows what would fit instead.
	if got := p.cards[big].button.Text; got != "See what would fit" {
		t.Errorf("the button of a pack that does not fit says %q", got)
	}
	before := len(r.engine.specs)
	p.startOrStop(big)
	r.pump()
	if len(r.engine.specs) != before || p.chosen != big {
		t.Errorf("the engine was started, or not what would fit shown: %q", p.chosen)
	}
	r.engine.set(EngineState{Phase: EngineEnded, Refused: true, Pack: big, Text: "It does not fit."})
	r.pump()
	if got := texts(r.a.frame.banner); !strings.Contains(got, "See what would fit") || strings.Contains(got, "Start it again") {
		t.Errorf("over every page stands %q", got)
	}
	r.engine.ready("starter")
	r.pump()
	settle(r.a.win)
	shot(t, r.a.win, "packs-refused")
	got := texts(p.detail.body)
	if !strings.Contains(got, "Why it does not fit") || !strings.Contains(got, "RAM is short by 3.0 GiB") {
		t.Errorf("the details say\n%s", got)
	}
	above, _, _ := strings.Cut(got, "Where it can live")
	if strings.Contains(above, "tok/s") || strings.Contains(above, "Where the time of a token goes") {
		t.Errorf("what does not fit has a rate:\n%s", above)
	}
	// A plan that cannot be made does not leave the one before standing.
	delete(r.packs.plans, big)
	r.a.replan()
	r.pump()
	if d := r.a.packs.details[p.cards[big].path]; d.plan != nil || d.planErr == nil {
		t.Errorf("an old plan stands beside %v", d.planErr)
	}
}

// Plans that began before the settings were read are made again with them.
func TestPlansKnowTheSettings(t *testing.T) {
	r := newRig(t, LookDark)
	r.packsPage()
	r.a.settings.RAMLimit = 0
	s := r.a.settings
	s.RAMLimit, s.Pack = 2, "Qwen3-30B-A3B-Q4_K_M"
	if err := r.a.store.SetSetting(settingsKey, s); err != nil {
		t.Fatal(err)
	}
	r.a.loadSettings()
	r.pump()
	if got := r.a.chat().composer.pack.Text(); got != s.Pack {
		t.Errorf("the chat would ask %q, last used was %q", got, s.Pack)
	}
	if got := texts(r.a.chat().welcome); strings.Contains(got, "tiny demo") {
		t.Errorf("a pack that is no demo is called one: %s", got)
	}
	r.packs.mu.Lock()
	defer r.packs.mu.Unlock()
	if w := r.packs.wished["starter"]; w.RAMCap != 2*gib {
		t.Errorf("after the settings were read the plan was asked for with a limit of %d bytes", w.RAMCap)
	}
}

// Advice must work: each change that makes a pack fit is done by its button, and
// what cannot be done here has none.
func TestRemediesAreDone(t *testing.T) {
	r := newRig(t, LookDark)
	p := r.packsPage()
	const big = "Qwen3-30B-A3B-Q4_K_M"
	e, _ := r.a.packs.named(big)
	for _, c := range []struct {
		r    plan.Remedy
		done func() bool
	}{
		{plan.Remedy{Kind: "context", Wishes: plan.Wishes{Context: 4096}}, func() bool { return r.a.settings.Context == 4096 }},
		{plan.Remedy{Kind: "kv", Wishes: plan.Wishes{KV: "q8"}}, func() bool { return r.a.settings.KV == "q8" }},
		{plan.Remedy{Kind: "map", Wishes: plan.Wishes{Placement: plan.VRAMFile}}, func() bool { return r.a.settings.Placements[big] == string(plan.VRAMFile) }},
		{plan.Remedy{Kind: "cpu", Wishes: plan.Wishes{NoCard: true}}, func() bool { return r.a.choiceOf(big) == deviceCPU }},
		{plan.Remedy{Kind: "cards"}, func() bool { return r.a.choiceOf(big) == deviceAuto }},
	} {
		c.r.Text = "what helps"
		pl := r.packs.plans[big]
		pl.Fits, pl.Short, pl.Remedies = false, []plan.Short{{Where: "RAM", Bytes: gib}}, []plan.Remedy{c.r, {Kind: "pack", Text: "a smaller pack"}}
		r.packs.plans[big] = pl
		r.a.packs.again(e)
		r.pump()
		p.open(big)
		var do []*fynewidget.Button
		for _, o := range test.LaidOutObjects(p.detail.body) {
			if b, ok := o.(*fynewidget.Button); ok && b.Text == "Do this" {
				do = append(do, b)
			}
		}
		if len(do) != 1 {
			t.Fatalf("%s: %d changes can be made, want 1 of 2", c.r.Kind, len(do))
		}
		test.Tap(do[0])
		r.pump()
		if !c.done() {
			t.Errorf("%s: nothing was done: %+v", c.r.Kind, r.a.settings)
		}
	}
}
