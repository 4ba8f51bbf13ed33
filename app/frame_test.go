package app

import (
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"outcrop/app/widget"
	"outcrop/engine/wire"
	"outcrop/gpu/doctor"
)

func (r *rig) press(k fyne.KeyName, mod fyne.KeyModifier) {
	s := &desktop.CustomShortcut{KeyName: k, Modifier: mod}
	if f, ok := r.a.win.Canvas().Focused().(fyne.Shortcutable); ok {
		f.TypedShortcut(s)
	} else {
		r.a.typed(s)
	}
	r.pump()
}

func TestKeys(t *testing.T) {
	r := newRig(t, LookDark)
	for i, p := range pageTable() {
		r.press(fyne.KeyName('1'+rune(i)), ctrl)
		if r.a.current != p.id || r.a.frame.rail.Selected() != p.id {
			t.Errorf("Ctrl+%d shows %s, the rail %s, want %s", i+1, r.a.current, r.a.frame.rail.Selected(), p.id)
		}
	}
	r.press(fyne.KeyComma, ctrl)
	if r.a.current != "settings" {
		t.Errorf("Ctrl+, shows %s", r.a.current)
	}
	r.press(fyne.KeyN, ctrl)
	if r.a.current != "chat" || r.a.win.Canvas().Focused() != fyne.Focusable(r.a.chat().composer.entry) {
		t.Error("Ctrl+N does not lead to an empty field with the focus")
	}
	// The field has the focus now: keys must get through it.
	r.press(fyne.KeyD, ctrl)
	if r.a.chat().drawer.root.Hidden {
		t.Error("Ctrl+D does not open the drawer")
	}
	r.typeKey(r.a.chat().composer.entry, fyne.KeyEscape)
	if !r.a.chat().drawer.root.Hidden {
		t.Error("Esc does not close the drawer")
	}
	r.press(fyne.KeyB, ctrl)
	if r.a.chat().layout.list {
		t.Error("Ctrl+B does not hide the conversations")
	}
	r.typeKey(r.a.chat().composer.entry, fyne.KeyF1)
	if r.a.frame.sheet == nil {
		t.Error("F1 does not show the keys")
	}
	r.a.key(fyne.KeyEscape)
	if r.a.frame.sheet != nil {
		t.Error("Esc does not close the keys")
	}
	seen := map[string]string{}
	for _, s := range shortcutTable() {
		if other, ok := seen[s.keys]; ok {
			t.Errorf("%s is both %q and %q", s.keys, other, s.words)
		}
		seen[s.keys] = s.words
	}
}

func TestSearchEverything(t *testing.T) {
	r := newRig(t, LookDark)
	r.answerWith("Where do penguins live", "On the ice, mostly.")
	r.press(fyne.KeyK, ctrl)
	field, ok := r.a.win.Canvas().Focused().(*widget.Entry)
	if !ok {
		t.Fatal("Ctrl+K does not focus a field")
	}
	field.SetText("mostly")
	r.pump()
	settle(r.a.win)
	shot(t, r.a.win, "search")
	r.a.visit("monitor")
	r.typeKey(field, fyne.KeyReturn)
	r.pump()
	if r.a.current != "chat" || r.a.frame.sheet != nil {
		t.Errorf("Enter shows %s, sheet %v", r.a.current, r.a.frame.sheet != nil)
	}
	for q, want := range map[string]string{"qwen3": "Qwen3-30B-A3B-Q4_K_M", "kv": "KV cache", "monit": "Monitor", "": "Chat"} {
		found := false
		for _, f := range r.a.searchHere(q) {
			found = found || f.text == want
		}
		if !found {
			t.Errorf("searching %q does not find %q", q, want)
		}
	}
}

func TestNarrowWindowShowsIconsAlone(t *testing.T) {
	r := newRig(t, LookDark)
	for _, c := range []struct {
		width  float32
		narrow bool
	}{{1180, false}, {900, true}, {1000, false}, {999, true}} {
		r.a.win.Resize(fyne.NewSize(c.width, 640))
		if got := r.a.frame.rail.Narrow(); got != c.narrow {
			t.Errorf("at %v the rail is narrow: %v", c.width, got)
		}
	}
	for _, p := range pageTable() {
		r.a.win.Resize(fyne.NewSize(900, 600))
		r.a.visit(p.id)
		r.pump()
		settle(r.a.win)
		shot(t, r.a.win, "small-"+p.id)
		if s := r.a.win.Canvas().Size(); s.Width != 900 || s.Height != 600 {
			t.Errorf("%s makes the window %v", p.id, s)
		}
	}
}

// The controls of a heading stand side by side, right of the title, also
// after they were changed in a frame that keeps its size.
func TestHeadingControlsDoNotOverlap(t *testing.T) {
	r := newRig(t, LookDark)
	for _, id := range []string{"packs", "monitor", "card", "chat", "packs"} {
		r.a.visit(id)
		r.pump()
		end := float32(-1)
		for _, o := range r.a.frame.actions.Objects {
			if o.Position().X < end || o.Size().Width < o.MinSize().Width {
				t.Errorf("%s: a control stands at %v with %v, the one before ends at %v", id, o.Position(), o.Size(), end)
			}
			end = o.Position().X + o.Size().Width
		}
		a, s := r.a.frame.actions, r.a.frame.state
		if a.Position().X+end > s.Position().X || s.Position().X+s.Size().Width > r.a.frame.row.Size().Width+0.5 {
			t.Errorf("%s: controls end at %v, the state stands at %v with %v in %v", id, a.Position().X+end, s.Position(), s.Size(), r.a.frame.row.Size())
		}
	}
}

func TestWindowSizeIsRemembered(t *testing.T) {
	r := newRig(t, LookDark)
	r.a.win.Resize(fyne.NewSize(1333, 777))
	r.a.closing()
	if w, h := r.a.fyne.Preferences().Float(prefWidth), r.a.fyne.Preferences().Float(prefHeight); w != 1333 || h != 777 {
		t.Errorf("remembered %v x %v", w, h)
	}
}

func TestStatusLine(t *testing.T) {
	text := func(parts []widget.StatusPart) string {
		var out []string
		for _, p := range parts {
			out = append(out, p.Text)
		}
		return strings.Join(out, " · ")
	}
	now := time.Now()
	h := newHistory()
	gb := func(v float64) wire.Reading { return wire.Known(v*gib, "bytes", "x") }
	s := wire.Sample{Engine: wire.Engine{Phase: "decode", DecodeTokS: 38.24, ContextUsed: 1843, ContextSize: 65536, Device: "Arc A770"},
		Memory: wire.Memory{Total: gb(29), Available: gb(20), Level: "good"},
		Cards:  []wire.Card{{Name: "Arc A770", Used: true, Total: gb(15.1), VRAM: gb(9.1)}}}
	ready := EngineState{Phase: EngineReady, Pack: "SmolLM2 135M", Device: "Arc A770"}
	if got, want := text(statusParts(ready, h.add(s, true, now), "", now)), "SmolLM2 135M on Arc A770 · 38.2 tok/s · VRAM 9.1/15.1 · RAM ok · 1.8K/64K"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	s.Cards[0].Used, s.Cards[0].WhyIdle = false, "it was not asked for"
	s.Cards[0].VRAM = wire.Unknown("bytes", "xe", "free equals total")
	ready.Device = "CPU"
	parts := statusParts(ready, h.add(s, true, now), "", now)
	if got := text(parts); !strings.Contains(got, "VRAM —/15.1") {
		t.Errorf("unknown VRAM is shown as %q", got)
	}
	// An old reading does not pass for a new one.
	if got := text(statusParts(ready, h.last(), "", now.Add(time.Minute))); strings.Contains(got, "tok/s") {
		t.Errorf("an old rate is shown: %q", got)
	}
	if got := text(statusParts(EngineState{}, nil, "starter", now)); got != "starter is not loaded" {
		t.Errorf("got %q", got)
	}
	s.Memory.Level, s.Guard = "act", wire.Guard{Acting: true, Step: "gave back mapped pages"}
	parts = statusParts(ready, h.add(s, true, now), "", now)
	if got := text(parts); !strings.Contains(got, "RAM short · gave back mapped pages") {
		t.Errorf("got %q", got)
	}
}

// One line over every page says why a card that is there does not compute, with
// the one thing that helps; none where a card does or the person chose the CPU.
func TestWhyTheCPU(t *testing.T) {
	r := newRig(t, LookDark)
	e, _ := r.a.packs.current()
	tell := func(edit func(*wire.Sample)) string {
		s := wire.Sample{Time: r.now, Engine: wire.Engine{Phase: "idle", Device: "CPU", DeviceWanted: "auto"},
			Cards: []wire.Card{{PCI: "0000:03:00.0", Name: "Arc A770", WhyIdle: "nobody asked"}}}
		edit(&s)
		r.engine.tell(s)
		r.pump()
		r.now = r.now.Add(time.Second)
		if !r.a.frame.idle.Visible() {
			return ""
		}
		return texts(r.a.frame.idle)
	}
	unlit := func(s *wire.Sample) {
		s.Engine.DeviceWhy = "no card has passed first light with its present driver; run: outcrop doctor --light"
	}
	got := tell(unlit)
	if want := "Running on the CPU: no card has passed first light with its present driver.\nRun first light\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if parts := texts(r.a.frame.root); !strings.Contains(parts, "Running on the CPU") {
		t.Error("the line is not in the window")
	}
	settle(r.a.win)
	shot(t, r.a.win, "idle-card")
	r.cards.offers = doctor.Offers{Devices: []doctor.Offer{{ID: "opencl:0", PCI: "0000:03:00.0", Passed: true}}}
	r.a.findOffers()
	r.pump()
	if got := tell(unlit); !strings.Contains(got, "Start again") {
		t.Errorf("with a card that passed since: %q", got)
	}
	// Starting again would change nothing where the plan, or the driver, said no.
	for why, want := range map[string]string{
		"the plan does without it: 11 MiB of weights; running on the CPU because it is faster for this pack (400 to 800 tok/s against 90 to 120 tok/s); more": "Running on the CPU: it is faster for this pack (400 to 800 tok/s against 90 to 120 tok/s).\nLook at the plan\n",
		"open Arc A770: permission denied\njoin the group render": "Running on the CPU: open Arc A770: permission denied; join the group render.\nLook at the card\n",
	} {
		if got := tell(func(s *wire.Sample) { s.Engine.DeviceWhy = why }); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if got := tell(func(s *wire.Sample) { s.Cards[0].Used = true }); got != "" {
		t.Errorf("with a card in use: %q", got)
	}
	if got := tell(func(s *wire.Sample) {}); !strings.Contains(got, "nobody asked") {
		t.Errorf("without a reason of the engine: %q", got)
	}
	// A card that computes and could be quicker is told calmly, with what helps.
	slow := "prompts run without the matrix units of NVIDIA H200 (cuda 0000:03:00.0): load half_q4_k on it: build failed"
	used := func(edit func(*wire.Engine)) string {
		return tell(func(s *wire.Sample) { s.Cards[0].Used = true; edit(&s.Engine) })
	}
	if got, want := used(func(e *wire.Engine) { e.Slow = []string{slow, "another"}; e.OnCPU = []string{"convolutions"} }),
		"Slower than this card can be: "+slow+", and 1 more.\nRun first light\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	settle(r.a.win)
	shot(t, r.a.win, "slow-card")
	if got, want := used(func(e *wire.Engine) { e.OnCPU = []string{"the embedding, 3 GiB,\nwhich no card has room for"} }),
		"A part of it stays with the CPU: the embedding, 3 GiB, which no card has room for.\nLook at the speed\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := strings.Join(slowness(r.a.history.last(), nil), "\n"); !strings.Contains(got, "The embedding, 3 GiB, which no card has room for.") {
		t.Errorf("Monitor does not say it: %s", got)
	}
	r.a.runOn(e, deviceCPU)
	r.pump()
	if got := tell(unlit); got != "" {
		t.Errorf("with the CPU chosen: %q", got)
	}
}

// A wait says what it is for.
func TestLoadingInWords(t *testing.T) {
	for _, c := range []struct {
		s    EngineState
		want string
	}{
		{EngineState{Phase: EngineLoading, Pack: "p", Words: "Reading weights.", Done: 1 << 30, Total: 4 << 30}, "Loading p, 25 %"},
		{EngineState{Phase: EngineLoading, Pack: "p", Words: "Compiling kernels for the card, once.", Done: 3, Total: 21}, "Compiling kernels for the card, once: 3 of 21"},
		{EngineState{Phase: EngineLoading, Pack: "p", Words: "Loading.", Done: 1, Total: 4}, "Loading p"},
		{EngineState{Phase: EngineLoading, Pack: "p", Words: "Compiling kernels for the card, once."}, "Compiling kernels for the card, once"},
		{EngineState{Phase: EngineLoading, Pack: "p"}, "Loading p"},
		{EngineState{Phase: EngineLoading, Pack: "p", Words: "Loading."}, "Loading p"},
	} {
		if got, _, _ := engineWords(c.s); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestLookAndSize(t *testing.T) {
	r := newRig(t, LookDark)
	r.answerWith("hello", "A *small* answer.")
	r.a.change(func(s *Settings) { s.Scale = 1.5 })
	r.a.restyle()
	r.pump()
	settle(r.a.win)
	if r.a.theme.Scale != 1.5 || r.a.current != "chat" {
		t.Fatalf("scale %v, page %s", r.a.theme.Scale, r.a.current)
	}
	shot(t, r.a.win, "chat-large")
	c := r.a.chat()
	if len(c.list.all) != 1 || len(r.path()) != 2 {
		t.Errorf("after a change of the text size: %d conversations, open is %q", len(c.list.all), r.path())
	}
	if got := r.a.frame.state.Text(); got != "Ready on CPU" {
		t.Errorf("the new frame shows the engine as %q", got)
	}
	r.a.change(func(s *Settings) { s.Look = LookLight })
	r.a.restyle()
	if got := r.a.theme.Color("background", 0); got != light.background {
		t.Errorf("background is %v", got)
	}
}

func TestTipsComeAndGo(t *testing.T) {
	r := newRig(t, LookDark)
	r.a.visit("monitor")
	r.feed(10)
	settle(r.a.win)
	p := r.a.page("monitor").(*monitorPage)
	widget.ShowTipAt(p.rate, "a tip", fyne.NewPos(10, 10))
	if got := r.a.frame.tips.Text(); got != "a tip" {
		t.Errorf("the tip is %q", got)
	}
	widget.HideTip(p.rate)
	if got := r.a.frame.tips.Text(); got != "" {
		t.Errorf("the tip stays: %q", got)
	}
}

func TestToasts(t *testing.T) {
	r := newRig(t, LookDark)
	ended, undone := 0, 0
	var fire []func()
	r.a.frame.toasts.After = func(_ time.Duration, f func()) func() {
		fire = append(fire, f)
		return func() {}
	}
	for range 6 {
		r.a.frame.toasts.Undo("gone", func() { undone++ }, func() { ended++ })
	}
	if n := len(r.a.frame.toasts.Texts()); n != 4 || ended != 2 {
		t.Errorf("%d toasts, %d made final; want 4 and 2", n, ended)
	}
	r.a.frame.toasts.Press()
	if undone != 1 || ended != 2 {
		t.Errorf("undone %d, final %d", undone, ended)
	}
	fire[2]()
	if ended != 3 {
		t.Errorf("time does not make it final: %d", ended)
	}
	fire[2]() // twice is once
	r.a.frame.toasts.Settle()
	if ended != 5 || undone != 1 || len(r.a.frame.toasts.Texts()) != 0 {
		t.Errorf("after settling: undone %d, final %d", undone, ended)
	}
}
