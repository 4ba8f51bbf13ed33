package app

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
)

// frame is what stands around the pages: rail, heading, status line, and the
// layers of toasts and tips.
type frame struct {
	a      *App
	root   *fyne.Container
	rail   *widget.Rail
	status *widget.Status
	toasts *widget.Toasts
	tips   *widget.TipLayer

	title              *widget.Text
	actions            *fyne.Container
	row                *fyne.Container // of the heading
	state              *widget.Chip
	light              *widget.Light
	stack              *fyne.Container
	banner             *fyne.Container // why the engine ended, over every page
	gone               string          // what of it was closed
	idle               *fyne.Container // why no card is used, one line over every page
	idleText, idleGone string          // what it says, and what of it was closed
	sheets             *fyne.Container
	sheet              *sheet // the panel that is open, or nil
}

// narrow is the width below which the rail shows icons alone.
const narrow = 1000

func newFrame(a *App) *frame {
	f := &frame{a: a, status: widget.NewStatus(), toasts: widget.NewToasts(), tips: widget.NewTipLayer()}
	items := make([]widget.RailItem, len(pageTable()))
	for i, p := range pageTable() {
		items[i] = widget.RailItem{ID: p.id, Icon: p.icon, Label: tr(p.name), Tip: tr(p.tip), Bottom: p.bottom}
	}
	f.rail = widget.NewRail(items)
	f.rail.OnSelect = a.visit
	f.status.OnTapped = a.explain

	f.title = widget.NewTitle("").Cutting(80)
	f.actions = widget.H(4)
	f.light = widget.NewLight(widget.StateUnknown)
	f.state = widget.NewChip("", "", true, nil)
	f.state.OnTapped = func() { a.engineMenu(f.state) }
	f.row = widget.H(10, widget.Flex(f.title), f.actions, f.light, f.state)
	head := widget.Inset(12, theme.Size(widget.SizePage), 8, theme.Size(widget.SizePage), f.row)

	f.stack = widget.Over()
	f.sheets = widget.Over()
	f.banner = widget.Over()
	f.banner.Hide()
	f.idle = widget.Over()
	f.idle.Hide()
	line := func() fyne.CanvasObject { return widget.NewGround(widget.ColorLine, "", 0) }
	ground := widget.NewGround(theme.ColorNameBackground, "", 0)
	foot := widget.NewGround(widget.ColorSurface, "", 0)
	side := widget.NewGround(widget.ColorSurface, "", 0)
	f.root = &fyne.Container{
		Layout:  &frameLayout{f: f, head: head, line1: line(), line2: line(), ground: ground, foot: foot, side: side},
		Objects: nil,
	}
	l := f.root.Layout.(*frameLayout)
	f.root.Objects = []fyne.CanvasObject{ground, side, foot, l.line1, l.line2, f.rail, head, f.banner, f.idle, f.stack, f.status, f.sheets, f.toasts, f.tips}
	f.engine(a.engine)
	return f
}

func (f *frame) attach() { f.tips.Attach(f.a.win.Canvas()) }
func (f *frame) detach() { f.tips.Detach(f.a.win.Canvas()) }

// frameLayout puts rail left, status line below, heading and page in the rest.
type frameLayout struct {
	f                                      *frame
	head, line1, line2, ground, foot, side fyne.CanvasObject
}

func (l *frameLayout) Layout(_ []fyne.CanvasObject, s fyne.Size) {
	f := l.f
	f.rail.SetNarrow(s.Width < narrow)
	rw := f.rail.MinSize().Width
	sh := f.status.MinSize().Height
	hh := l.head.MinSize().Height
	put := func(o fyne.CanvasObject, x, y, w, h float32) {
		o.Resize(fyne.NewSize(max(0, w), max(0, h)))
		o.Move(fyne.NewPos(x, y))
	}
	put(l.ground, 0, 0, s.Width, s.Height)
	put(l.side, 0, 0, rw, s.Height-sh-1)
	put(f.rail, 0, 0, rw, s.Height-sh-1)
	put(l.line1, rw, 0, 1, s.Height-sh-1)
	put(l.line2, 0, s.Height-sh-1, s.Width, 1)
	put(l.foot, 0, s.Height-sh, s.Width, sh)
	put(f.status, 0, s.Height-sh, s.Width, sh)
	put(l.head, rw+1, 0, s.Width-rw-1, hh)
	for _, b := range []*fyne.Container{f.banner, f.idle} {
		if b.Visible() {
			pad := theme.Size(widget.SizePage)
			bw := s.Width - rw - 1 - 2*pad
			bh := widget.HeightAt(b, bw)
			put(b, rw+1+pad, hh, bw, bh)
			hh += bh + 10
		}
	}
	put(f.stack, rw+1, hh, s.Width-rw-1, s.Height-sh-1-hh)
	put(f.sheets, 0, 0, s.Width, s.Height)
	put(f.toasts, 0, 0, s.Width, s.Height)
	put(f.tips, 0, 0, s.Width, s.Height)
}

// MinSize is the window's smallest size, whatever the pages would like. Pages
// are made for 900 x 600; below that they get cramped and still work, because
// at twice the scale a window of 900 x 600 is bigger than many screens.
func (l *frameLayout) MinSize([]fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(leastWidth*0.8, leastHeight*0.75)
}

// show puts a page into the frame.
func (f *frame) show(e entry, p page) {
	f.rail.Select(e.id)
	f.toasts.SetLow(e.id != "chat")
	f.stack.Objects = []fyne.CanvasObject{p.object()}
	widget.Relayout(f.stack)
	f.actions.Objects = nil
	if w, ok := p.(actor); ok {
		f.actions.Objects = w.actions()
	}
	f.heading(e, p)
}

// heading writes the page's title and lays the row out again.
func (f *frame) heading(e entry, p page) {
	name := tr(e.name)
	if t, ok := p.(titled); ok {
		name = t.title()
	}
	f.title.Set(name)
	f.relayout()
}

// relayout lays heading and frame out again. A container that keeps its size
// does not lay out by itself what changed inside it.
func (f *frame) relayout() {
	widget.Relayout(f.root)
	widget.Relayout(f.row)
	widget.Relayout(f.actions)
}

// retitle writes the title of the page in view again.
func (a *App) retitle() {
	for _, e := range pageTable() {
		if e.id == a.current {
			f := a.frame
			if t, ok := a.built[a.current].(titled); ok {
				f.title.Set(t.title())
			}
		}
	}
}

// engine shows the engine's state at the upper right.
func (f *frame) engine(s EngineState) {
	words, state, color := engineWords(s)
	f.light.Set(state)
	f.state.Set(words)
	f.state.SetColor(color)
	f.ended(s)
	f.relayout()
}

// ended says over every page why the engine ended and what helps, with one
// button that starts it again.
func (f *frame) ended(s EngineState) {
	if s.Phase != EngineEnded {
		f.gone = ""
		f.banner.Hide()
		return
	}
	if c, ok := f.a.built["chat"].(*chatPage); ok && c.stream != nil {
		f.gone = s.Text // the answer that broke off says it where it stands
	}
	if f.gone == s.Text {
		return
	}
	text := widget.V(3, widget.NewParagraph(s.Text))
	if s.Next != "" {
		text.Add(widget.NewNote(s.Next))
	}
	again := fynewidget.NewButton(tr("Start it again"), f.a.startLast)
	if s.Refused {
		again = fynewidget.NewButton(tr("See what would fit"), func() { f.a.whatFits(s.Pack) })
	}
	again.Importance = fynewidget.HighImportance
	row := widget.H(10, widget.NewLight(widget.StateAct), widget.Flex(text))
	if len(s.Log) > 0 {
		row.Add(widget.NewIconButton("terminal", tr("Its last lines"), func() {
			f.openSheet(900, widget.V(10, widget.NewHeading(tr("The engine's last lines")), widget.Sized(0, 300, widget.NewCode("", strings.Join(s.Log, "\n")))))
		}))
	}
	row.Add(again)
	row.Add(widget.NewIconButton("close", tr("Close"), func() {
		f.gone = s.Text
		f.banner.Hide()
		widget.Relayout(f.root)
	}))
	f.banner.Objects = []fyne.CanvasObject{widget.Over(widget.NewGround(widget.ColorSurface, widget.ColorAct, 8), widget.Inset(10, 8, 10, 12, row))}
	f.banner.Show()
	widget.Relayout(f.banner)
}

// leastBytes tells the phases of loading that count bytes from those that count
// modules of kernels or layers, which may take turns: a share of each would go to and
// fro.
const leastBytes = 1 << 20

// loadWords is a phase of loading in words, with what it counts; "" for one that
// is just called loading.
func loadWords(s EngineState) string {
	w := strings.TrimSuffix(s.Words, ".")
	switch {
	case strings.EqualFold(w, "loading"):
		return ""
	case w != "" && s.Total > 0 && s.Total < leastBytes:
		return tr("%s: %d of %d", w, s.Done, s.Total)
	}
	return w
}

// engineWords says the engine's state in a few words.
func engineWords(s EngineState) (string, widget.State, fyne.ThemeColorName) {
	switch s.Phase {
	case EngineStart:
		return tr("Starting"), widget.StateBusy, widget.ColorText
	case EngineLoading:
		if s.Total >= leastBytes {
			return tr("Loading %s, %d %%", s.Pack, s.Done*100/s.Total), widget.StateBusy, widget.ColorText
		}
		if w := loadWords(s); w != "" {
			return w, widget.StateBusy, widget.ColorText
		}
		return tr("Loading %s", s.Pack), widget.StateBusy, widget.ColorText
	case EngineReady:
		on := s.Device
		if on == "" {
			return tr("Ready"), widget.StateGood, widget.ColorText
		}
		return tr("Ready on %s", on), widget.StateGood, widget.ColorText
	case EngineEnded:
		return tr("Engine ended"), widget.StateAct, widget.ColorAct
	}
	return tr("Engine off"), widget.StateUnknown, widget.ColorDim
}
