package app

import (
	"context"
	"os"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
	"outcrop/engine/wire"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// machineState is what the window knows of the computer.
type machineState struct {
	machine gpu.Machine
	known   bool
	err     error
	offers  doctor.Offers // of the drivers, when offered is set
	offered bool
}

// detect looks at the machine in the background.
func (a *App) detect() {
	if a.deps.Cards == nil {
		return
	}
	var m gpu.Machine
	a.background(func() (err error) {
		m, err = a.deps.Cards.Detect()
		return err
	}, func(err error) {
		a.machine.machine, a.machine.known, a.machine.err = m, err == nil, err
		for _, p := range a.built {
			if w, ok := p.(machineWatcher); ok {
				w.machineChanged()
			}
		}
		a.refreshStatus()
		a.maybeStart()
		if len(m.Cards) > 0 {
			a.findOffers()
		}
	})
}

// machineWatcher is told when the machine was looked at.
type machineWatcher interface{ machineChanged() }

// spec says how to start a pack with the settings in force.
func (a *App) spec(e catalog.Entry) EngineSpec {
	device, limits := a.vramLimits(a.device(e.Name))
	return EngineSpec{Name: e.Name, Path: e.Path, Threads: a.settings.Threads, Context: a.settings.Context,
		KV: a.settings.KV, Guard: a.settings.Guard, Device: device, Env: a.recipeEnv(device),
		Placement: a.settings.Placements[e.Name], Experts: a.settings.Experts, Slots: a.settings.Slots,
		VRAMLimits: limits, RAMLimit: a.settings.RAMLimit}
}

// start starts the engine on a pack and remembers it as the last used.
func (a *App) start(e catalog.Entry) {
	if a.deps.Engine == nil {
		return
	}
	a.change(func(s *Settings) { s.Pack = e.Name })
	a.deps.Engine.Start(a.spec(e))
}

// startLast starts the pack that was last used, else the starter.
func (a *App) startLast() {
	if e, ok := a.packs.current(); ok {
		a.start(e)
	}
}

// maybeStart starts the engine with the window where that is wanted: always,
// or, unless the person said otherwise, for the small pack the program carries.
func (a *App) maybeStart() {
	if a.deps.Engine == nil || !a.settled || !a.packs.loaded || a.engine.Phase != EngineOff || a.begun {
		return
	}
	if a.deps.Cards != nil && !a.machine.known && a.machine.err == nil {
		return // which card there is decides how it is started
	}
	e, ok := a.packs.current()
	if !ok {
		return
	}
	a.begun = true
	if a.settings.Start == "always" || a.settings.Start == "" && e.Demo {
		a.start(e)
	}
}

// engineMenu is what the engine's state at the upper right opens.
func (a *App) engineMenu(at fyne.CanvasObject) {
	var items []*fyne.MenuItem
	name := tr("the starter")
	if e, ok := a.packs.current(); ok {
		name = e.Name
	}
	switch a.engine.Phase {
	case EngineOff, EngineEnded:
		items = append(items, fyne.NewMenuItem(tr("Start %s", name), a.startLast))
	default:
		items = append(items, fyne.NewMenuItem(tr("Stop the engine and free its memory"), func() { a.deps.Engine.Stop() }),
			fyne.NewMenuItem(tr("Start again"), a.startLast))
	}
	if e, ok := a.packs.current(); ok {
		on := fyne.NewMenuItem(tr("Run it on"), nil)
		on.ChildMenu = fyne.NewMenu("", a.deviceMenu(e)...)
		items = append(items, on)
	}
	items = append(items, fyne.NewMenuItemSeparator(),
		fyne.NewMenuItem(tr("Choose another pack"), func() { a.visit("packs") }),
		fyne.NewMenuItem(tr("How it is doing"), func() { a.visit("monitor") }))
	a.menu(at, items...)
}

// menu opens a menu below an object.
func (a *App) menu(at fyne.CanvasObject, items ...*fyne.MenuItem) {
	p := a.fyne.Driver().AbsolutePositionForObject(at)
	a.menuAt(p.AddXY(0, at.Size().Height+4), items...)
}

func (a *App) menuAt(p fyne.Position, items ...*fyne.MenuItem) {
	m := fynewidget.NewPopUpMenu(fyne.NewMenu("", items...), a.win.Canvas())
	room, z := a.win.Canvas().Size(), m.MinSize()
	p.X = max(4, min(p.X, room.Width-z.Width-4))
	if p.Y+z.Height > room.Height-4 {
		p.Y = max(4, p.Y-z.Height-36)
	}
	m.ShowAtPosition(p)
}

// explain opens the page behind a part of the status line.
func (a *App) explain(part string) {
	switch part {
	case "pack":
		a.visit("packs")
	case "device", "card":
		a.visit("card")
	case "context":
		a.visit("chat")
	case "state":
		if a.engine.Phase == EngineOff {
			a.startLast()
			return
		}
		a.visit("monitor")
	default:
		a.visit("monitor")
	}
}

// refreshStatus writes the status line.
func (a *App) refreshStatus() {
	parts := statusParts(a.engine, a.history.last(), a.packName(), a.deps.Now())
	if why, _, _ := a.idleWords(); why != "" {
		parts = append(parts, widget.StatusPart{ID: "card", Text: tr("card not used"), Color: widget.ColorAccent, Tip: why})
	}
	a.frame.status.Set(parts)
	a.frame.idleCard()
}

func (a *App) packName() string {
	if e, ok := a.packs.current(); ok {
		return e.Name
	}
	return ""
}

// statusParts says the product in one line: what runs, where, how fast, how
// much room, how much context.
func statusParts(s EngineState, p *point, chosen string, now time.Time) []widget.StatusPart {
	var parts []widget.StatusPart
	words, state, color := engineWords(s)
	fresh := s.Phase == EngineReady && p != nil && p.engine && now.Sub(p.at) < 10*time.Second
	if s.Phase == EngineReady {
		where := s.Device
		if where == "" {
			where = "CPU"
		}
		parts = append(parts, widget.StatusPart{ID: "pack", Text: tr("%s on %s", middleCut(s.Pack, 36), where), State: state, Color: widget.ColorText,
			Tip: tr("%s on %s. Opens Packs", s.Pack, where)})
	} else {
		if s.Phase == EngineOff && chosen != "" {
			words = tr("%s is not loaded", middleCut(chosen, 36))
		}
		parts = append(parts, widget.StatusPart{ID: "state", Text: words, State: state, Color: color, Tip: s.Text})
	}
	if fresh {
		e := p.sample.Engine
		switch {
		case e.Phase == "prefill" && e.PrefillTotal > 0:
			parts = append(parts, widget.StatusPart{ID: "rate", Mono: true, Color: widget.ColorText,
				Text: tr("reading %d of %d", e.PrefillDone, e.PrefillTotal), Tip: tr("Prompt tokens read. Opens Monitor")})
		case e.DecodeTokS > 0:
			parts = append(parts, widget.StatusPart{ID: "rate", Mono: true, Text: rate(e.DecodeTokS),
				Tip: tr("Tokens a second while answering, %.1f ms each. Opens Monitor", e.MSPerStep)})
		}
	}
	if p != nil {
		parts = append(parts, roomParts(p)...)
	}
	if fresh && p.sample.Engine.ContextSize > 0 {
		e := p.sample.Engine
		parts = append(parts, widget.StatusPart{ID: "context", Mono: true, Text: tokens(e.ContextUsed) + "/" + tokens(e.ContextSize),
			Tip: tr("Tokens of context used. Opens Chat")})
	}
	return parts
}

// middleCut shortens a long name to n characters: packs of one family differ at
// the end, so the middle goes.
func middleCut(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	tail := n / 3
	return string(r[:n-1-tail]) + "…" + string(r[len(r)-tail:])
}

// roomParts says how much VRAM and RAM there is left.
func roomParts(p *point) []widget.StatusPart {
	var parts []widget.StatusPart
	if part := vramPart(&p.sample); part != nil {
		parts = append(parts, *part)
	}
	m := p.sample.Memory
	word, state := levelWords(m.Level)
	text := tr("RAM %s", word)
	tip := tr("Memory pressure is not known: %s", why(m.SomeAvg10))
	if _, left := room(m); left.Known {
		tip = tr("%s of RAM can still be had. Opens Monitor", size(left.Value))
	}
	part := widget.StatusPart{ID: "ram", Text: text, Tip: tip}
	if state == widget.StateWatch || state == widget.StateAct {
		part.State, part.Color = state, state.Color()
	}
	parts = append(parts, part)
	if g := p.sample.Guard; p.engine && g.Acting {
		parts = append(parts, widget.StatusPart{ID: "guard", Text: g.Step, State: widget.StateWatch, Color: widget.ColorWatch,
			Tip: tr("What the guard gave up to keep memory free. Opens Monitor")})
	}
	return parts
}

// vramPart is the VRAM of the cards in use, else of the first one.
func vramPart(s *wire.Sample) *widget.StatusPart {
	used, total, known, n := 0.0, 0.0, true, 0
	var words []string
	for i := range s.Cards {
		c := &s.Cards[i]
		if !c.Total.Known || c != card(s) && !c.Used {
			continue
		}
		n++
		used, total, known = used+c.VRAM.Value, total+c.Total.Value, known && c.VRAM.Known
		words = append(words, tr("%s of %s on %s, %s", reading(c.VRAM), reading(c.Total), c.Name, why(c.VRAM)))
	}
	if n == 0 {
		return nil
	}
	text := tr("VRAM —/%.1f", total/gib)
	if known {
		text = tr("VRAM %.1f/%.1f", used/gib, total/gib)
	}
	return &widget.StatusPart{ID: "vram", Mono: true, Text: text, Tip: tr("GiB of VRAM in use: %s. Opens Monitor", strings.Join(words, "; "))}
}

// levelWords says a pressure level.
func levelWords(level string) (string, widget.State) {
	switch level {
	case "ok", "good":
		return tr("ok"), widget.StateGood
	case "watch":
		return tr("tight"), widget.StateWatch
	case "act":
		return tr("short"), widget.StateAct
	case "critical":
		return tr("nearly out"), widget.StateAct
	}
	return "—", widget.StateUnknown
}

// hasTray says whether the desktop has a place for our icon.
func (a *App) hasTray() bool {
	_, ok := a.fyne.(desktop.App)
	return ok
}

// tray keeps the icon's menu in step with the engine.
func (a *App) tray() {
	d, ok := a.fyne.(desktop.App)
	if !ok || !a.settings.Tray {
		return
	}
	words, _, _ := engineWords(a.engine)
	state := fyne.NewMenuItem(words, nil)
	state.Disabled = true
	items := []*fyne.MenuItem{state, fyne.NewMenuItemSeparator(), fyne.NewMenuItem(tr("Show Outcrop"), a.show)}
	if a.engine.Phase == EngineReady || a.engine.Phase == EngineLoading || a.engine.Phase == EngineStart {
		items = append(items, fyne.NewMenuItem(tr("Stop the engine"), func() { a.deps.Engine.Stop() }))
	} else {
		items = append(items, fyne.NewMenuItem(tr("Start the engine"), a.startLast))
	}
	quit := fyne.NewMenuItem(tr("Quit"), a.quit)
	quit.IsQuit = true
	items = append(items, fyne.NewMenuItemSeparator(), quit)
	d.SetSystemTrayMenu(fyne.NewMenu("Outcrop", items...))
}

// quit ends the program whatever the tray setting says.
func (a *App) quit() {
	a.rememberSize()
	a.Close()
	a.fyne.Quit()
}

// waitReady calls f on the main thread once the engine is ready for a pack,
// or gone; it returns a function that ends the waiting.
func (a *App) waitReady(name string, f func(EngineState)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	end := a.deps.Engine.Watch(func(s EngineState) {
		a.ui(func() {
			if ctx.Err() != nil {
				return
			}
			if s.Phase == EngineReady && strings.EqualFold(s.Pack, name) || s.Phase == EngineEnded {
				cancel()
				f(s)
			}
		})
	})
	return func() { cancel(); end() }
}

// Close ends everything that runs: the engine, the gateway, the store. What
// could still be undone becomes final.
func (a *App) Close() {
	a.once.Do(func() {
		if c, ok := a.built["chat"].(*chatPage); ok {
			c.leave()
		}
		a.frame.toasts.Settle()
		a.closed = true
		for _, stop := range a.stops {
			stop()
		}
		if a.look != nil {
			a.look()
		}
		if a.deps.Gateway != nil {
			a.deps.Gateway.Close()
		}
		if a.deps.Engine != nil {
			a.deps.Engine.Close()
		}
		done := make(chan struct{})
		a.deps.Work(func() {
			if a.store != nil {
				a.store.Close()
			}
			if a.passing != "" {
				os.RemoveAll(a.passing)
			}
			close(done)
		})
		select {
		case <-done:
		case <-time.After(5 * time.Second):
		}
		a.frame.detach()
		close(a.ended)
	})
}

// Ended is closed when the window has given back what it held.
func (a *App) Ended() <-chan struct{} { return a.ended }
