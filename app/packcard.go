package app

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
)

// packCard is one pack of the list.
type packCard struct {
	p      *packsPage
	path   string
	row    *widget.Row
	name   *widget.Text
	badge  *widget.Text
	facts  *widget.Text
	fit    *widget.Fit
	words  *widget.Paragraph
	light  *widget.Light
	button *fynewidget.Button
	box    *fyne.Container
}

func newPackCard(p *packsPage, e catalog.Entry) *packCard {
	c := &packCard{p: p, path: e.Path, name: widget.NewText("").Bold().Cutting(60), badge: widget.NewCaption("").In(widget.ColorAccent),
		facts: widget.NewCaption("").Cutting(80), fit: widget.NewFit(true), words: widget.NewNote(""), light: widget.NewLight(widget.StateUnknown)}
	c.button = fynewidget.NewButton("", func() { p.startOrStop(e.Name) })
	head := widget.H(8, c.light, widget.Flex(widget.V(2, widget.H(8, widget.Flex(c.name), c.badge), c.facts)), c.button)
	c.box = widget.V(8, head, c.fit, c.words)
	c.row = widget.NewRow(widget.Over(widget.NewGround("", widget.ColorLine, 8), widget.Pad(theme.Size(widget.SizeCard), c.box)), func() { p.open(e.Name) })
	c.row.OnMenu = func(at fyne.Position) { p.a.menuAt(at, p.menuItems(e.Name)...) }
	c.row.OnKey = func(k fyne.KeyName) {
		if k == fyne.KeyDelete {
			if e, ok := p.a.packs.named(e.Name); ok {
				p.a.packs.remove(e)
			}
		}
	}
	return c
}

func (c *packCard) set(e catalog.Entry, d *packDetail) {
	c.name.Set(e.Name)
	c.badge.Set("")
	if e.Demo {
		c.badge.Set(tr("demo"))
	}
	c.facts.Set(packFacts(e, d.info))
	state, _ := fitState(d.plan)
	text, color := "", widget.ColorDim
	c.fit.Hidden = d.plan == nil
	switch {
	case d.health.Status == catalog.Gone:
		state, text, color = widget.StateAct, capital(d.health.Text), widget.ColorAct
	case d.info != nil && !d.info.Known:
		state, text, color = widget.StateAct, capital(d.info.Problem), widget.ColorAct
	case d.infoErr != nil:
		state, text, color = widget.StateAct, sentence(d.infoErr), widget.ColorAct
	case d.plan != nil:
		c.fit.Set(fitRows(d.plan))
		text = fitSentence(d.plan)
		if !d.plan.Fits {
			color = widget.ColorAct
		}
	case d.planErr != nil:
		text = sentence(d.planErr)
	default:
		text = tr("Reading the file's header…")
	}
	c.light.Set(state)
	c.words.SetIn(text, color)
	c.words.Hidden = text == ""
	words, on := startWords(c.p.a, e, d)
	c.button.SetText(words)
	if on {
		c.button.Enable()
	} else {
		c.button.Disable()
	}
	c.box.Refresh()
	c.row.Refresh()
}

// packFacts is the line of facts under a name.
func packFacts(e catalog.Entry, in *PackInfo) string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if in == nil {
		add(e.Arch)
		add(bytes64(e.Size()))
		return strings.Join(parts, " · ")
	}
	add(in.Arch)
	add(bytes64(max(in.Bytes, e.Size())))
	if in.Params > 0 {
		if in.ActiveParams > 0 && in.ActiveParams < in.Params*9/10 {
			add(tr("%s weights, %s at work", count(in.Params), count(in.ActiveParams)))
		} else {
			add(tr("%s weights", count(in.Params)))
		}
	}
	if in.Experts > 0 {
		add(tr("%d experts, %d at a time", in.Experts, in.ExpertsUsed))
	}
	add(bits(in.Params, in.Bytes))
	if in.Context > 0 {
		add(tr("context %s", tokens(in.Context)))
	}
	add(in.Licence)
	return strings.Join(parts, " · ")
}

// startWords says what the button of a pack does.
func startWords(a *App, e catalog.Entry, d *packDetail) (string, bool) {
	if strings.EqualFold(a.engine.Pack, e.Name) {
		switch a.engine.Phase {
		case EngineReady:
			return tr("Stop"), true
		case EngineLoading, EngineStart:
			return tr("Cancel"), true
		}
	}
	if d.health.Status == catalog.Gone || d.info != nil && !d.info.Known || d.infoErr != nil {
		return tr("Cannot start"), false
	}
	if d.plan != nil && !d.plan.Fits {
		return tr("See what would fit"), true
	}
	where := tr("the CPU")
	if d.plan != nil && len(d.plan.Cards) > 0 {
		where = d.plan.Cards[0].Name
		if n := len(d.plan.Cards); n > 1 {
			where = tr("%d cards", n)
		}
	}
	return tr("Start on %s", where), true
}

// startOrStop does what the button of a pack says.
func (p *packsPage) startOrStop(name string) {
	a := p.a
	if strings.EqualFold(a.engine.Pack, name) && (a.engine.Phase == EngineReady || a.engine.Phase == EngineLoading || a.engine.Phase == EngineStart) {
		a.deps.Engine.Stop()
		return
	}
	e, ok := a.packs.named(name)
	if !ok {
		return
	}
	if d := a.packs.detail(e); d.plan != nil && !d.plan.Fits {
		a.whatFits(name) // starting it would be refused
		return
	}
	a.start(e)
}

// whatFits plans a pack anew, as memory may have been freed since, and shows what
// would make it fit.
func (a *App) whatFits(name string) {
	a.visit("packs")
	if e, ok := a.packs.named(name); ok {
		a.packs.again(e)
		a.page("packs").(*packsPage).open(e.Name)
	}
}

func (p *packsPage) menuItems(name string) []*fyne.MenuItem {
	e, ok := p.a.packs.named(name)
	if !ok {
		return nil
	}
	words, on := startWords(p.a, e, p.a.packs.detail(e))
	start := fyne.NewMenuItem(words, func() { p.startOrStop(name) })
	start.Disabled = !on
	items := []*fyne.MenuItem{start, fyne.NewMenuItem(tr("Details"), func() { p.open(name) }),
		fyne.NewMenuItem(tr("Copy the path"), func() { p.a.fyne.Clipboard().SetContent(e.Path) })}
	if !e.Demo {
		items = append(items, fyne.NewMenuItemSeparator(), fyne.NewMenuItem(tr("Take off the list"), func() { p.a.packs.remove(e) }))
	}
	return items
}
