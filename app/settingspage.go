package app

import (
	"fmt"
	"runtime"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
	"outcrop/engine/guard"
)

// setting is one row of the Settings page.
type setting struct {
	group, name, words string
	standard           func(*App) string // what holds while nothing is chosen
	control            func(*App) fyne.CanvasObject
	set                func(*Settings) bool // whether the person chose something
	reset              func(*Settings)
}

// settingsPage is one column of settings, grouped and searchable.
type settingsPage struct {
	a      *App
	query  string
	search *widget.Search
	body   *fyne.Container
	scroll *widget.PageScroll
	root   fyne.CanvasObject
}

func newSettings(a *App) page {
	p := &settingsPage{a: a, body: widget.V(8)}
	p.search = widget.NewSearch(tr("Search settings"), func(q string) { p.query = strings.ToLower(strings.TrimSpace(q)); p.draw() })
	p.search.OnShortcut = a.typed
	pad := theme.Size(widget.SizePage)
	p.scroll = widget.NewPageScroll(widget.Inset(4, pad, 28, pad, widget.AtMost(860, widget.V(14, p.search, p.body))))
	p.root = p.scroll
	p.draw()
	return p
}

func (p *settingsPage) object() fyne.CanvasObject { return p.root }

func (p *settingsPage) storeOpened() { p.draw() }

func (p *settingsPage) machineChanged() { p.draw() }

func (p *settingsPage) packsChanged() { p.draw() }

// find shows one setting, by its name.
func (p *settingsPage) find(name string) { p.search.SetText(name) }

func (p *settingsPage) draw() {
	p.body.Objects = nil
	var box *fyne.Container
	group := ""
	for _, s := range settingTable() {
		if p.query != "" && !strings.Contains(strings.ToLower(tr(s.name)+" "+tr(s.words)+" "+tr(s.group)), p.query) {
			continue
		}
		if s.group != group {
			group = s.group
			box = widget.V(0)
			p.body.Add(widget.Inset(14, 0, 2, 0, widget.NewHeading(tr(group))))
			p.body.Add(widget.Over(widget.NewGround("", widget.ColorLine, 8), widget.Inset(2, 12, 2, 12, box)))
		} else {
			box.Add(widget.Rule())
		}
		box.Add(p.row(s))
	}
	if len(p.body.Objects) == 0 {
		p.body.Add(widget.NewNote(tr("No setting is called that.")))
	}
	if p.query == "" {
		p.body.Add(widget.Inset(20, 0, 0, 0, widget.NewNote(tr("Outcrop %s. Settings and conversations are kept in %s.", p.a.deps.Version, p.a.deps.DataDir))))
	}
	p.body.Refresh()
	p.scroll.Refresh()
}

// row is name and words at the left, the control at the right, and under them
// what the default is.
func (p *settingsPage) row(s setting) fyne.CanvasObject {
	left := widget.V(2, widget.NewText(tr(s.name)).Cutting(80))
	if s.words != "" {
		left.Add(widget.NewNote(tr(s.words)))
	}
	note := tr("Default: %s", s.standard(p.a))
	line := widget.H(2, widget.Flex(widget.NewNote(note)))
	if s.set(&p.a.settings) {
		line.Add(widget.NewLink(tr("Back to the default"), func() {
			p.a.change(s.reset)
			p.applied(s)
			p.draw()
		}))
	}
	left.Add(line)
	return widget.Inset(10, 0, 10, 0, widget.H(16, widget.Flex(left), widget.Wide(theme.TextSize()*17, s.control(p.a))))
}

// applied puts a changed setting into force.
func (p *settingsPage) applied(s setting) {
	if s.group == groupLook {
		p.a.restyle()
	}
}

const (
	groupEngine = "Engine"
	groupMemory = "Memory"
	groupLook   = "Appearance"
	groupPacks  = "Packs"
	groupWindow = "Window"
	groupChat   = "Chat"
)

// choice is a select over fixed values.
func choice(a *App, words []string, at int, f func(int)) fyne.CanvasObject {
	s := fynewidget.NewSelect(words, nil)
	s.SetSelectedIndex(at)
	s.OnChanged = func(string) { f(s.SelectedIndex()) }
	return container.NewThemeOverride(s, filled{a.theme})
}

// redraw draws the page again after a change, so that "back to the default"
// comes and goes.
func redraw(a *App) {
	if p, ok := a.built["settings"].(*settingsPage); ok {
		p.draw()
	}
}

func onOff(a *App, on bool, f func(*Settings, bool)) fyne.CanvasObject {
	c := a.check(on, func(v bool) {
		a.change(func(s *Settings) { f(s, v) })
		redraw(a)
	})
	return widget.H(0, widget.Space(), c)
}

func at[T comparable](list []T, v T) int {
	for i, x := range list {
		if x == v {
			return i
		}
	}
	return 0
}

// planned is what the planner chose for the pack in use, for showing beside a
// setting.
func planned(a *App, f func(d *packDetail) string) string {
	if e, ok := a.packs.current(); ok {
		if d := a.packs.detail(e); d.plan != nil {
			if s := f(d); s != "" {
				return tr("the plan's choice, now %s", s)
			}
		}
	}
	return tr("the plan's choice")
}

// settingTable is every setting, in the order shown.
func settingTable() []setting {
	kvs := []string{"", "f16", "q8", "q4", "f32"}
	scales := []float32{0.9, 1, 1.1, 1.25, 1.5, 1.75, 2}
	looks := []Look{LookSystem, LookDark, LookLight}
	starts := []string{"", "always", "never"}
	return []setting{
		{groupEngine, "Threads", "how many CPU threads compute", func(a *App) string {
			n := runtime.NumCPU()
			if a.machine.known && a.machine.machine.Host.CPU.Cores > 0 {
				n = min(n, a.machine.machine.Host.CPU.Cores)
			}
			return tr("the physical cores this program may use, here %d", n)
		}, func(a *App) fyne.CanvasObject {
			return intField(a, a.settings.Threads, tr("decide for me"), a.checkThreads, func(s *Settings, n int) { s.Threads = n })
		}, func(s *Settings) bool { return s.Threads != 0 }, func(s *Settings) { s.Threads = 0 }},
		deviceSetting(),
		{groupEngine, "Context", "tokens a conversation may hold; more takes more memory", func(a *App) string {
			return planned(a, func(d *packDetail) string { return tokens(d.plan.Context) })
		}, func(a *App) fyne.CanvasObject {
			return intField(a, a.settings.Context, tr("decide for me"), checkContext, func(s *Settings, n int) { s.Context = n; a.replan() })
		}, func(s *Settings) bool { return s.Context != 0 }, func(s *Settings) { s.Context = 0 }},
		{groupEngine, "KV cache", "how exactly past tokens are kept: q8 takes half the room of f16 at almost no loss", func(a *App) string {
			return planned(a, func(d *packDetail) string { return d.plan.KV })
		}, func(a *App) fyne.CanvasObject {
			return choice(a, []string{tr("decide for me"), "f16", "q8", "q4", "f32"}, at(kvs, a.settings.KV), func(i int) {
				a.change(func(s *Settings) { s.KV = kvs[i] })
				a.replan()
				redraw(a)
			})
		}, func(s *Settings) bool { return s.KV != "" }, func(s *Settings) { s.KV = "" }},
		{groupEngine, "Start by itself", "whether the engine loads a pack when the window opens", func(*App) string {
			return tr("only for the small pack that comes with Outcrop")
		}, func(a *App) fyne.CanvasObject {
			return choice(a, []string{tr("for the starter"), tr("always"), tr("never")}, at(starts, a.settings.Start), func(i int) {
				a.change(func(s *Settings) { s.Start = starts[i] })
				redraw(a)
			})
		}, func(s *Settings) bool { return s.Start != "" }, func(s *Settings) { s.Start = "" }},
		guardSetting(),
		{groupMemory, "VRAM limit", "GiB of each card that may be used, as if it were smaller", func(*App) string { return tr("all that is free, but for a reserve") },
			func(a *App) fyne.CanvasObject {
				return vramField(a)
			}, func(s *Settings) bool { return s.VRAMLimit != 0 || len(s.VRAMLimits) > 0 }, func(s *Settings) { s.VRAMLimit, s.VRAMLimits = 0, nil }},
		{groupMemory, "RAM limit", "GiB of RAM that a pack may use, as if there were no more", func(*App) string { return tr("all but what stays free for others") },
			func(a *App) fyne.CanvasObject {
				return intField(a, a.settings.RAMLimit, tr("no limit"), a.checkRAM, func(s *Settings, n int) { s.RAMLimit = n; a.replan() })
			}, func(s *Settings) bool { return s.RAMLimit != 0 }, func(s *Settings) { s.RAMLimit = 0 }},
		{groupMemory, "Expert slots", "GiB of each card for the experts used most, of a pack whose experts do not all fit there", func(*App) string { return tr("what everything else leaves") },
			func(a *App) fyne.CanvasObject {
				return intField(a, a.settings.Slots, tr("decide for me"), func(n int) error { return a.checkVRAM(n, "") }, func(s *Settings, n int) { s.Slots = n; a.replan() })
			}, func(s *Settings) bool { return s.Slots != 0 }, func(s *Settings) { s.Slots = 0 }},
		{groupMemory, "Missed experts", "who computes experts that have no slot: the processor, or the card once they have come over the link", func(*App) string { return tr("whichever is faster as measured") },
			func(a *App) fyne.CanvasObject {
				who := []string{"", "cpu", "copy"}
				return choice(a, []string{tr("decide for me"), tr("the processor"), tr("the card")}, at(who, a.settings.Experts), func(i int) {
					a.change(func(s *Settings) { s.Experts = who[i] })
					a.replan()
					redraw(a)
				})
			}, func(s *Settings) bool { return s.Experts != "" }, func(s *Settings) { s.Experts = "" }},
		{groupChat, "Enter", "what the Enter key does in the field; the other way is with Shift or Ctrl", func(*App) string { return tr("sends") },
			func(a *App) fyne.CanvasObject {
				i := 0
				if a.settings.NewLine {
					i = 1
				}
				return choice(a, []string{tr("sends"), tr("begins a new line")}, i, func(i int) {
					a.change(func(s *Settings) { s.NewLine = i == 1 })
					redraw(a)
				})
			}, func(s *Settings) bool { return s.NewLine }, func(s *Settings) { s.NewLine = false }},
		{groupChat, "Thinking unfolded", "shows what a model thinks before its answer", func(*App) string { return tr("folded to one line") },
			func(a *App) fyne.CanvasObject {
				return onOff(a, a.settings.Thinking, func(s *Settings, v bool) { s.Thinking = v })
			}, func(s *Settings) bool { return s.Thinking }, func(s *Settings) { s.Thinking = false }},
		{groupLook, "Theme", "", func(*App) string { return tr("as the system is") }, func(a *App) fyne.CanvasObject {
			return choice(a, []string{tr("as the system"), tr("dark"), tr("light")}, at(looks, a.settings.Look), func(i int) {
				a.change(func(s *Settings) { s.Look = looks[i] })
				a.restyle()
				redraw(a)
			})
		}, func(s *Settings) bool { return s.Look != "" && s.Look != LookSystem }, func(s *Settings) { s.Look = LookSystem }},
		{groupLook, "Text size", "text and spacing together", func(*App) string { return "100 %" }, func(a *App) fyne.CanvasObject {
			words := make([]string, len(scales))
			for i, s := range scales {
				words[i] = fmt.Sprintf("%.0f %%", s*100)
			}
			now := a.settings.Scale
			if now == 0 {
				now = 1
			}
			return choice(a, words, at(scales, now), func(i int) {
				a.change(func(s *Settings) { s.Scale = scales[i] })
				a.restyle()
			})
		}, func(s *Settings) bool { return s.Scale != 0 && s.Scale != 1 }, func(s *Settings) { s.Scale = 1 }},
		{groupLook, "Language", "more languages are welcome: one table of texts each", func(*App) string { return tr("English") }, func(a *App) fyne.CanvasObject {
			names := languages()
			words := make([]string, len(names))
			for i, n := range names {
				words[i] = n
				if n == "en" {
					words[i] = "English"
				}
			}
			now := a.settings.Language
			if now == "" {
				now = "en"
			}
			return choice(a, words, at(names, now), func(i int) {
				a.change(func(s *Settings) { s.Language = names[i] })
				a.say("The language changes with the next start.")
			})
		}, func(s *Settings) bool { return s.Language != "" && s.Language != "en" }, func(s *Settings) { s.Language = "" }},
		{groupPacks, "Folder for packs", "where fetched packs are put; packs you add stay where they lie", func(*App) string { return catalog.PacksDir() }, func(a *App) fyne.CanvasObject {
			words := a.settings.Folder
			if words == "" {
				words = tr("Choose a folder")
			}
			return widget.H(0, widget.Space(), widget.NewChip("folder", words, false, func() {
				a.chooseFolder(func(path string) {
					a.change(func(s *Settings) { s.Folder = path })
					redraw(a)
				})
			}))
		}, func(s *Settings) bool { return s.Folder != "" }, func(s *Settings) { s.Folder = "" }},
		{groupPacks, "Site for packs", "where owner/name is looked for", func(*App) string { return catalog.DefaultSite }, func(a *App) fyne.CanvasObject {
			e := a.field(catalog.DefaultSite)
			e.SetText(a.settings.Site)
			e.OnChanged = func(s string) { a.change(func(x *Settings) { x.Site = strings.TrimSpace(s) }) }
			return e
		}, func(s *Settings) bool { return s.Site != "" }, func(s *Settings) { s.Site = "" }},
		{groupWindow, "Tray", "closing the window keeps Outcrop in the tray, with the engine running", func(*App) string { return tr("off: closing ends it") },
			func(a *App) fyne.CanvasObject {
				return onOff(a, a.settings.Tray, func(s *Settings, v bool) { s.Tray = v; a.ui(a.tray) })
			}, func(s *Settings) bool { return s.Tray }, func(s *Settings) { s.Tray = false }},
		{groupWindow, "Quiet", "no notification when a long job ends while the window is hidden", func(*App) string { return tr("notifications are shown") },
			func(a *App) fyne.CanvasObject {
				return onOff(a, a.settings.Quiet, func(s *Settings, v bool) { s.Quiet = v })
			}, func(s *Settings) bool { return s.Quiet }, func(s *Settings) { s.Quiet = false }},
	}
}

// guardSetting is how much memory is left to other programs.
func guardSetting() setting {
	return setting{groupMemory, "Leave free", "the guard gives memory back before less than this is left", func(a *App) string {
		for _, p := range guard.Presets {
			if p.Name == "daily" {
				return tr("%s: %s of RAM and %s of VRAM", p.Text, bytes64(p.RAMFloor), bytes64(p.VRAMFloor))
			}
		}
		return ""
	}, func(a *App) fyne.CanvasObject {
		var words []string
		now := 0
		for i, p := range guard.Presets {
			words = append(words, tr("%s (%s, %s)", p.Name, bytes64(p.RAMFloor), bytes64(p.VRAMFloor)))
			if p.Name == a.settings.Guard || a.settings.Guard == "" && p.Name == "daily" {
				now = i
			}
		}
		return choice(a, words, now, func(i int) {
			a.change(func(s *Settings) { s.Guard = guard.Presets[i].Name })
			a.replan()
			redraw(a)
		})
	}, func(s *Settings) bool { return s.Guard != "" && s.Guard != "daily" }, func(s *Settings) { s.Guard = "" }}
}

// replan has the plans made anew, and says that a running engine keeps the old
// one.
func (a *App) replan() {
	a.packs.allAgain()
	if a.engine.Phase == EngineReady {
		a.frame.toasts.Push(widget.Toast{State: widget.StateInfo, Text: tr("The running engine keeps its settings until it is started again."), Button: tr("Start again"), Do: a.startLast})
	}
}
