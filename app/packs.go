package app

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
)

// packsPage lists packs with their fit, fetches new ones and shows all that
// is known of one.
type packsPage struct {
	a       *App
	query   string
	filter  string
	chosen  string // name of the pack whose details are open
	cards   map[string]*packCard
	loads   *downloads
	search  *widget.Search
	filters []*widget.Chip
	list    *fyne.Container
	scroll  *widget.PageScroll
	left    *fyne.Container
	detail  *packPanel
	root    *fyne.Container
	link    *linkBox
}

// packFilters are the ways to narrow the list.
var packFilters = []struct{ id, words string }{
	{"", "All"}, {"now", "Fits now"}, {"change", "Fits with changes"}, {"no", "Does not fit"},
}

func newPacks(a *App) page {
	p := &packsPage{a: a, cards: map[string]*packCard{}}
	p.loads = newDownloads(p)
	p.search = widget.NewSearch(tr("Search packs"), func(q string) { p.query = strings.ToLower(strings.TrimSpace(q)); p.draw() })
	p.search.OnShortcut = a.typed
	row := widget.H(6)
	for _, f := range packFilters {
		chip := widget.NewChip("", tr(f.words), false, nil)
		chip.OnTapped = func() { p.filter = f.id; p.marks(); p.draw() }
		p.filters = append(p.filters, chip)
		row.Add(chip)
	}
	p.link = newLinkBox(p)
	p.list = widget.V(10)
	pad := theme.Size(widget.SizePage)
	p.scroll = widget.NewPageScroll(widget.Inset(4, pad, 24, pad, p.list))
	head := widget.Inset(0, pad, 10, pad, widget.V(8, p.link.root, widget.H(8, widget.Flex(p.search), row)))
	p.left = container.NewBorder(head, nil, nil, nil, p.scroll)
	p.detail = newPackPanel(p)
	p.root = &fyne.Container{Layout: &packsLayout{p}, Objects: []fyne.CanvasObject{p.left, p.detail.root}}
	p.detail.root.Hide()
	p.link.root.Hide()
	p.marks()
	p.draw()
	p.loads.resume()
	return p
}

func (p *packsPage) object() fyne.CanvasObject { return p.root }

func (p *packsPage) actions() []fyne.CanvasObject {
	a := p.a
	return []fyne.CanvasObject{
		widget.NewChip("download", tr("Get a pack"), false, p.toggleLink),
		widget.NewChip("file", tr("Add file"), false, a.chooseFile),
		widget.NewChip("folder", tr("Add folder"), false, func() { a.chooseFolder(func(path string) { a.packs.add([]string{path}) }) }),
	}
}

// chooseFile asks for a pack's file.
func (a *App) chooseFile() {
	a.openFile([]string{".gguf"}, func(path string) { a.packs.add([]string{path}) })
}

func (p *packsPage) shown(on bool) {
	if on {
		p.a.packs.reload(nil)
	}
}

func (p *packsPage) key(k fyne.KeyName) bool {
	if k == fyne.KeyEscape && p.chosen != "" {
		p.open("")
		return true
	}
	return false
}

func (p *packsPage) packsChanged() { p.draw() }

func (p *packsPage) engineChanged(EngineState) { p.draw() }

func (p *packsPage) machineChanged() { p.a.packs.allAgain() }

func (p *packsPage) marks() {
	for i, f := range packFilters {
		c := widget.ColorDim
		if f.id == p.filter {
			c = widget.ColorAccent
		}
		p.filters[i].SetColor(c)
	}
}

// toggleLink shows or hides the field for a link.
func (p *packsPage) toggleLink() {
	p.link.root.Hidden = !p.link.root.Hidden
	widget.Relayout(p.left)
	if p.link.root.Visible() {
		p.a.win.Canvas().Focus(p.link.entry)
	}
}

// open shows the details of a pack; "" closes them.
func (p *packsPage) open(name string) {
	p.chosen = name
	e, ok := p.a.packs.named(name)
	p.detail.root.Hidden = !ok
	if ok {
		p.detail.set(e, p.a.packs.detail(e))
		p.detail.scroll.ScrollToTop()
	}
	for n, c := range p.cards {
		c.row.SetSelected(n == name)
	}
	widget.Relayout(p.root)
}

func (p *packsPage) wanted(e catalog.Entry, d *packDetail) bool {
	if p.query != "" && !strings.Contains(strings.ToLower(e.Name+" "+e.Title+" "+e.Arch), p.query) {
		return false
	}
	state, _ := fitState(d.plan)
	switch p.filter {
	case "now":
		return state == widget.StateGood
	case "change":
		return state == widget.StateWatch
	case "no":
		return state == widget.StateAct || d.info != nil && !d.info.Known
	}
	return true
}

func (p *packsPage) draw() {
	l := p.a.packs
	p.list.Objects = nil
	p.loads.draw(p.list)
	if l.err != nil {
		p.list.Add(notice(widget.StateAct, sentence(l.err), tr("Read the list again"), func() { l.reload(nil) }))
	}
	bigger := false
	shown := 0
	for _, e := range l.entries {
		d := l.detail(e)
		bigger = bigger || !e.Demo
		if !p.wanted(e, d) {
			continue
		}
		shown++
		c := p.cards[e.Name]
		if c == nil || c.path != e.Path {
			c = newPackCard(p, e)
			p.cards[e.Name] = c
		}
		c.set(e, d)
		c.row.SetSelected(e.Name == p.chosen)
		p.list.Add(c.row)
	}
	if shown == 0 && l.loaded && (p.query != "" || p.filter != "") {
		p.list.Add(widget.Pad(8, widget.NewNote(tr("No pack in the list is like that."))))
	}
	if p.query == "" && p.filter == "" {
		p.suggestions(bigger)
	}
	if p.chosen != "" {
		if e, ok := l.named(p.chosen); ok {
			p.detail.set(e, l.detail(e))
		} else {
			p.open("")
		}
	}
	p.list.Refresh()
	p.scroll.Refresh()
}

// suggestions lists packs that can be fetched; it is the way on from an
// almost empty list.
func (p *packsPage) suggestions(have bool) {
	title := tr("A bigger pack")
	text := tr("The starter proves that everything works; these can do more. Nothing is fetched until you say so.")
	if have {
		title, text = tr("More packs"), tr("Packs that run here. Nothing is fetched until you say so.")
	}
	box := widget.V(2)
	n := 0
	for _, k := range p.a.deps.Packs.Known() {
		if p.has(k) {
			continue
		}
		n++
		about := capital(k.About)
		state, fits := p.roomFor(k.Bytes)
		line := widget.H(10,
			widget.Flex(widget.V(1, widget.NewText(k.Name).Bold().Cutting(60), widget.NewCaption(about).Cutting(80))),
			widget.NewTipped(widget.NewLight(state), fits), widget.Wide(78, widget.NewCaption(size(float64(k.Bytes))).Mono().Right()),
			widget.NewCaption(k.Licence),
			widget.NewChip("download", tr("Get"), false, func() { p.loads.find(k.Ref) }))
		box.Add(widget.Inset(6, 0, 6, 0, line))
		box.Add(widget.Rule())
	}
	if n > 0 {
		p.list.Add(widget.Inset(10, 0, 0, 0, widget.V(4, widget.NewHeading(title), widget.NewNote(text), box)))
	}
}

func (p *packsPage) has(k catalog.Known) bool {
	for _, e := range p.a.packs.entries {
		if e.Origin == k.Ref || strings.Contains(strings.ToLower(strings.ReplaceAll(e.Name+" "+e.Title, "-", " ")), strings.ToLower(k.Name)) {
			return true
		}
	}
	return false
}

// roomFor guesses from its size alone whether a pack will fit.
func (p *packsPage) roomFor(bytes int64) (widget.State, string) {
	m := p.a.machine
	if !m.known {
		return widget.StateUnknown, tr("the machine has not been looked at yet")
	}
	ram := m.machine.Host.Available()
	if !ram.Known {
		return widget.StateUnknown, tr("how much RAM is free is not known")
	}
	vram := int64(0)
	for _, c := range m.machine.Cards {
		if c.Discrete && c.Memory.Total.Known {
			vram += c.Memory.Total.Value
		}
	}
	switch need := bytes + bytes/10; {
	case need <= vram*8/10:
		return widget.StateGood, tr("by its size it fits into VRAM")
	case need <= ram.Value:
		return widget.StateGood, tr("by its size it fits into RAM")
	case need <= ram.Value+vram*8/10:
		return widget.StateGood, tr("by its size it fits into VRAM and RAM together")
	case need <= 3*(ram.Value+vram):
		return widget.StateWatch, tr("bigger than memory: parts will be read from the file")
	}
	return widget.StateAct, tr("far bigger than memory")
}

// notice is a sentence with one button that helps, where the work was.
func notice(state widget.State, text, button string, do func()) fyne.CanvasObject {
	row := widget.H(10, widget.NewLight(state), widget.Flex(widget.NewParagraph(text)))
	if button != "" {
		row.Add(fynewidget.NewButton(button, do))
	}
	return widget.Box(row)
}

// packsLayout puts details beside the list where there is room, else over it.
type packsLayout struct{ p *packsPage }

func (l *packsLayout) Layout(_ []fyne.CanvasObject, s fyne.Size) {
	p := l.p
	p.left.Hidden = false
	w := s.Width
	if p.detail.root.Visible() {
		side := min(max(s.Width*0.46, theme.TextSize()*30), s.Width)
		if s.Width-side < theme.TextSize()*24 {
			p.left.Hidden = true
			side = s.Width
		}
		p.detail.root.Resize(fyne.NewSize(side, s.Height))
		p.detail.root.Move(fyne.NewPos(s.Width-side, 0))
		w -= side
	}
	p.left.Resize(fyne.NewSize(w, s.Height))
	p.left.Move(fyne.Position{})
}

func (l *packsLayout) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(400, 300) }

// linkBox is the field for an address or owner/name.
type linkBox struct {
	entry *widget.Entry
	root  *fyne.Container
}

func newLinkBox(p *packsPage) *linkBox {
	b := &linkBox{entry: p.a.field(tr("Address of a GGUF file, or owner/name, or owner/name:Q4_K_M"))}
	get := func() {
		if ref := strings.TrimSpace(b.entry.Text); ref != "" {
			p.loads.find(ref)
			b.entry.SetText("")
		}
	}
	b.entry.OnSubmitted = func(string) { get() }
	ok := fynewidget.NewButton(tr("Look it up"), get)
	ok.Importance = fynewidget.HighImportance
	b.root = widget.H(8, widget.Flex(b.entry), ok)
	return b
}
