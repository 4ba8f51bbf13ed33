package app

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/store"
	"outcrop/app/widget"
)

// sheet is a panel over the pages: the search and the list of keys. It takes
// no answer and goes away by Esc or a press beside it.
type sheet struct {
	fynewidget.BaseWidget
	panel fyne.CanvasObject
	width float32
	close func()
}

func newSheet(width float32, content fyne.CanvasObject, close func()) *sheet {
	s := &sheet{width: width, close: close}
	s.panel = widget.Over(widget.NewGround(widget.ColorSurface, widget.ColorLine, 10), widget.Pad(theme.Size(widget.SizePage), content))
	s.ExtendBaseWidget(s)
	return s
}

// Tapped beside the panel closes the sheet.
func (s *sheet) Tapped(e *fyne.PointEvent) {
	p, z := s.panel.Position(), s.panel.Size()
	if e.Position.X < p.X || e.Position.X > p.X+z.Width || e.Position.Y < p.Y || e.Position.Y > p.Y+z.Height {
		s.close()
	}
}

// Scrolled keeps the page below from moving.
func (s *sheet) Scrolled(*fyne.ScrollEvent) {}

// CreateRenderer centres the panel near the top; the page stays readable.
func (s *sheet) CreateRenderer() fyne.WidgetRenderer {
	return fynewidget.NewSimpleRenderer(&fyne.Container{Layout: sheetLayout{s}, Objects: []fyne.CanvasObject{s.panel}})
}

type sheetLayout struct{ s *sheet }

func (l sheetLayout) Layout(objs []fyne.CanvasObject, z fyne.Size) {
	w := min(l.s.width, z.Width-32)
	h := min(widget.HeightAt(objs[0], w), z.Height-80)
	objs[0].Resize(fyne.NewSize(w, h))
	objs[0].Move(fyne.NewPos((z.Width-w)/2, min(64, (z.Height-h)/2)))
}

func (l sheetLayout) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.Size{} }

// openSheet shows a panel; one is open at a time.
func (f *frame) openSheet(width float32, content fyne.CanvasObject) *sheet {
	f.closeSheet()
	f.sheet = newSheet(width, content, f.closeSheet)
	f.sheets.Objects = []fyne.CanvasObject{f.sheet}
	widget.Relayout(f.sheets)
	return f.sheet
}

func (f *frame) closeSheet() {
	if f.sheet == nil {
		return
	}
	f.sheet = nil
	f.sheets.Objects = nil
	widget.Relayout(f.sheets)
	if p, ok := f.a.built[f.a.current].(focuser); ok {
		p.focus()
	}
}

// closeOverlay closes what lies over the page when k is Esc, and says whether
// there was something.
func (f *frame) closeOverlay(k fyne.KeyName) bool {
	if k == fyne.KeyEscape && f.sheet != nil {
		f.closeSheet()
		return true
	}
	return false
}

// focuser is a page that knows where the focus belongs.
type focuser interface{ focus() }

// help lists the keys.
func (a *App) help() {
	left, right := widget.V(8), widget.V(8)
	list := shortcutTable()
	for i, s := range list {
		row := widget.H(12, widget.Wide(theme.TextSize()*9, widget.NewText(s.keys).Mono().In(widget.ColorDim).Cutting(60)), widget.Flex(widget.NewText(tr(s.words)).Cutting(80)))
		if i < (len(list)+1)/2 {
			left.Add(row)
		} else {
			right.Add(row)
		}
	}
	a.frame.openSheet(860, widget.V(16, widget.NewHeading(tr("Keys")), widget.HTop(24, widget.Flex(left), widget.Flex(right))))
}

// finding is one line of the search.
type finding struct {
	icon, text, detail string
	open               func()
}

// search looks for a text in conversations, packs, pages and settings.
func (a *App) search() {
	field := a.field(tr("Search chats, packs, pages and settings"))
	results := widget.V(2)
	var found []finding
	at := 0
	var rows []*widget.Row
	choose := func(i int) {
		if i >= 0 && i < len(found) {
			open := found[i].open
			a.frame.closeSheet()
			open()
		}
	}
	mark := func(i int) {
		if len(rows) == 0 {
			return
		}
		at = (i + len(rows)) % len(rows)
		for j, r := range rows {
			r.SetSelected(j == at)
		}
	}
	show := func(list []finding) {
		found = list
		rows, results.Objects = nil, nil
		for i, f := range list {
			line := widget.H(10, widget.Sized(18, 18, fynewidget.NewIcon(widget.IconIn(f.icon, widget.ColorDim))),
				widget.Flex(widget.NewText(f.text).Cutting(60)), widget.NewCaption(f.detail).Cutting(260))
			r := widget.NewRow(widget.Inset(7, 8, 7, 8, line), func() { choose(i) })
			rows = append(rows, r)
			results.Add(r)
		}
		if len(list) == 0 && strings.TrimSpace(field.Text) != "" {
			results.Add(widget.Inset(6, 0, 0, 0, widget.NewNote(tr("Nothing found."))))
		}
		mark(0)
		if a.frame.sheet != nil {
			a.frame.sheet.Refresh()
		}
		results.Refresh()
	}
	asked := 0
	field.OnChanged = func(q string) {
		list := a.searchHere(q)
		show(list)
		asked++
		turn := asked
		if a.store == nil || strings.TrimSpace(q) == "" {
			return
		}
		var hits []store.Hit
		a.background(func() (err error) {
			hits, err = a.store.Search(q, 12)
			return err
		}, func(err error) {
			if err != nil || turn != asked {
				return
			}
			for _, h := range hits {
				title := h.Title
				if title == "" {
					title = tr("New chat")
				}
				if h.Message != 0 && h.Snippet == title {
					continue // the first turn, which gave the title
				}
				f := finding{"chat", title, "", func() { a.visit("chat"); a.chat().open(h.Conversation, h.Message) }}
				if h.Message != 0 {
					f.text, f.detail = h.Snippet, title
				}
				list = append(list, f)
			}
			show(list)
		})
	}
	field.OnKey = func(k fyne.KeyName) bool {
		switch k {
		case fyne.KeyDown:
			mark(at + 1)
		case fyne.KeyUp:
			mark(at - 1)
		case fyne.KeyReturn, fyne.KeyEnter:
			choose(at)
		default:
			return false
		}
		return true
	}
	a.adopt(field)
	a.frame.openSheet(680, widget.V(8, field, results))
	a.win.Canvas().Focus(field)
	field.OnChanged("")
}

// searchHere finds pages, packs and settings; with nothing typed, the pages.
func (a *App) searchHere(q string) []finding {
	q = strings.ToLower(strings.TrimSpace(q))
	var list []finding
	for _, p := range pageTable() {
		if q == "" || strings.Contains(strings.ToLower(tr(p.name)), q) {
			list = append(list, finding{p.icon, tr(p.name), tr("page"), func() { a.visit(p.id) }})
		}
	}
	if q == "" {
		return list
	}
	for _, e := range a.packs.entries {
		if strings.Contains(strings.ToLower(e.Name+" "+e.Title+" "+e.Arch), q) {
			list = append(list, finding{"packs", e.Name, tr("pack"), func() { a.visit("packs"); a.page("packs").(*packsPage).open(e.Name) }})
		}
	}
	for _, s := range settingTable() {
		if strings.Contains(strings.ToLower(tr(s.name)+" "+tr(s.words)), q) {
			list = append(list, finding{"settings", tr(s.name), tr("setting"), func() { a.visit("settings"); a.page("settings").(*settingsPage).find(tr(s.name)) }})
		}
	}
	return list
}
