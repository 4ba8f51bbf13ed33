package app

import (
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
	"outcrop/gpu/recipe"
)

// cardPage shows the computer: what was found, how it is, the recipe for it,
// and whether it computes right.
type cardPage struct {
	a      *App
	card   gpu.PCI // the one looked at; "" is the CPU
	picked bool    // by the person
	target string
	format string
	asIs   bool // the recipe as it was reported
	light  *firstLight
	body   *fyne.Container
	scroll *widget.PageScroll
	root   *fyne.Container
	left   bool // lines that are left out are shown
}

func newCard(a *App) page {
	p := &cardPage{a: a, target: recipe.Outcrop, format: "sh", body: widget.V(20)}
	p.light = newFirstLight(p)
	pad := theme.Size(widget.SizePage)
	p.scroll = widget.NewPageScroll(widget.Inset(4, pad, 28, pad, p.body))
	p.root = widget.Over(p.scroll)
	p.machineChanged()
	return p
}

func (p *cardPage) object() fyne.CanvasObject { return p.root }

func (p *cardPage) actions() []fyne.CanvasObject {
	return []fyne.CanvasObject{
		widget.NewChip("retry", tr("Look again"), false, p.a.detect),
		widget.NewChip("file", tr("Report"), false, p.report),
	}
}

func (p *cardPage) shown(on bool) {
	if on {
		p.draw()
		if !p.a.machine.offered {
			p.a.findOffers()
		}
	}
}

func (p *cardPage) engineChanged(EngineState) { p.draw() }

func (p *cardPage) packsChanged() { p.draw() }

func (p *cardPage) storeOpened() { p.light.reload() }

func (p *cardPage) machineChanged() {
	if !p.picked && p.a.machine.known {
		p.card = ""
		if c := recipe.Best(p.a.machine.machine); c != nil {
			p.card = c.PCI
		}
	}
	p.draw()
}

// report writes the bundle for a bug report and shows it before anything
// happens with it.
func (p *cardPage) report() {
	var text string
	p.a.background(func() (err error) {
		text, err = p.a.deps.Cards.Report()
		return err
	}, func(err error) {
		if err != nil {
			p.a.fail(err)
			return
		}
		code := widget.NewCode("", clip(text, 60_000))
		box := widget.Sized(0, 420, widget.NewPageScroll(code))
		save := fynewidget.NewButton(tr("Save it"), func() {
			p.a.saveFile("outcrop-report.txt", func(path string) error { return writeFile(path, text) })
		})
		save.Importance = fynewidget.HighImportance
		copy := fynewidget.NewButton(tr("Copy it"), func() { p.a.fyne.Clipboard().SetContent(text); p.a.say("Copied the report.") })
		p.a.frame.openSheet(900, widget.V(10, widget.NewHeading(tr("Report for a bug")),
			widget.NewNote(tr("This is all of it. Names of you, your home and your computer were taken out. Nothing is sent.")), box,
			widget.H(8, widget.Space(), copy, save)))
	})
}

func (p *cardPage) draw() {
	m := p.a.machine
	at := p.scroll.Offset
	p.body.Objects = nil
	switch {
	case m.err != nil:
		p.body.Add(notice(widget.StateAct, sentence(m.err), tr("Look again"), p.a.detect))
	case !m.known:
		p.body.Add(widget.H(8, widget.NewLight(widget.StateBusy), widget.NewText(tr("Looking at the machine…")).In(widget.ColorDim)))
	default:
		found := doctor.Check(m.machine, doctor.Options{})
		p.body.Add(p.drawing(found))
		p.runsOn()
		p.conditions(found)
		p.recipe()
		p.body.Add(p.light.view())
	}
	p.body.Refresh()
	p.scroll.Refresh()
	p.scroll.ScrollToOffset(at) // the page was short for a moment
}

// runsOn is the choice where the pack in use runs.
func (p *cardPage) runsOn() {
	e, ok := p.a.packs.current()
	if !ok {
		return
	}
	words := tr("decide for me")
	switch now := p.a.choiceOf(e.Name); now {
	case "", deviceAuto:
	case deviceCPU:
		words = tr("CPU")
	default:
		words = p.a.deviceName(now)
	}
	chip := widget.NewChip("card", words, true, nil)
	chip.Tip = tr("Where this pack runs; remembered for it")
	chip.OnTapped = func() { p.a.menu(chip, p.a.deviceMenu(e)...) }
	p.body.Add(widget.H(8, widget.NewText(tr("%s runs on", middleCut(e.Name, 40))), chip, widget.Flex(widget.NewNote(p.runsNow(e.Name)))))
}

// runsNow says where the pack runs now, when it does.
func (p *cardPage) runsNow(pack string) string {
	if s := p.a.engine; s.Phase == EngineReady && s.Device != "" && strings.EqualFold(s.Pack, pack) {
		return tr("now on %s", s.Device)
	}
	return tr("It is not running now.")
}

// toLight brings first light to the top, as far as the page goes.
func (p *cardPage) toLight() {
	p.scroll.ScrollToOffset(fyne.NewPos(0, p.light.box.Position().Y-4))
}

// healthState is the light of a card or, with "", of the machine.
func healthState(found []doctor.Condition, card gpu.PCI) widget.State {
	switch doctor.HealthOf(found, card) {
	case doctor.Good:
		return widget.StateGood
	case doctor.Care:
		return widget.StateWatch
	case doctor.Bad:
		return widget.StateAct
	}
	return widget.StateUnknown
}

// ofMemory picks the conditions of RAM and disk: the light of the RAM is not to
// warn of a card's driver.
func ofMemory(found []doctor.Condition) []doctor.Condition {
	var out []doctor.Condition
	for _, c := range found {
		kind, _, _ := strings.Cut(c.Code, "-")
		switch kind {
		case "memlock", "cgroup", "plan", "swap", "disk", "psi":
			out = append(out, c)
		}
	}
	return out
}

// drawing is the machine: CPU and RAM at the left, cards at the right, the
// link between with what it carries.
func (p *cardPage) drawing(found []doctor.Condition) fyne.CanvasObject {
	m := p.a.machine.machine
	h := m.Host
	cpu := box(widget.ColorRAM, widget.StateUnknown, orDash(h.CPU.Name),
		tr("%d cores, %d threads", h.CPU.Cores, h.CPU.Threads), joinDots(h.Distro.Name, h.Kernel, h.Virtual))
	ram := "—"
	if r := h.RAM(); r.Known {
		ram = bytes64(r.Value)
	}
	free := ""
	if v := h.Available(); v.Known {
		free = tr("%s can still be had", bytes64(v.Value))
	}
	cg := ""
	if h.Cgroup.Max.Known {
		cg = tr("limited by the control group to %s", bytes64(h.Cgroup.Max.Value))
	}
	mem := box(widget.ColorRAM, healthState(ofMemory(found), ""), tr("RAM %s", ram), free, cg)
	var cards []fyne.CanvasObject
	var links []linkLine
	for i := range m.Cards {
		c := &m.Cards[i]
		b := p.cardBox(c, found)
		cards = append(cards, b)
		links = append(links, linkOf(c))
	}
	if len(cards) == 0 {
		cards = append(cards, box(widget.ColorLine, widget.StateInfo, tr("No graphics card"), tr("The CPU runs the model. That is a normal way to use Outcrop."), ""))
		links = append(links, linkLine{})
	}
	return newMachineDrawing(widget.V(10, cpu, mem), cards, links)
}

// box is one part of the drawing, with a stripe in its layer's colour.
func box(stripe fyne.ThemeColorName, state widget.State, title string, lines ...string) fyne.CanvasObject {
	text := widget.V(3)
	head := widget.H(8, widget.Flex(widget.NewText(title).Bold().Cutting(80)))
	if state != widget.StateUnknown {
		head.Add(widget.NewLight(state))
	}
	text.Add(head)
	for _, l := range lines {
		if l != "" {
			text.Add(widget.NewCaption(l).Cutting(60))
		}
	}
	return widget.Over(widget.NewGround(widget.ColorSurface, widget.ColorLine, 8),
		widget.Inset(0, 0, 0, 0, &fyne.Container{Layout: stripeLayout{}, Objects: []fyne.CanvasObject{widget.NewGround(stripe, "", 2), widget.Inset(10, 12, 10, 8, text)}}))
}

// stripeLayout is a thin bar at the left of what it marks.
type stripeLayout struct{}

func (stripeLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	objs[0].Resize(fyne.NewSize(4, max(0, s.Height-16)))
	objs[0].Move(fyne.NewPos(8, 8))
	objs[1].Resize(fyne.NewSize(max(0, s.Width-16), s.Height))
	objs[1].Move(fyne.NewPos(16, 0))
}

func (stripeLayout) MinSize(objs []fyne.CanvasObject) fyne.Size {
	return objs[1].MinSize().AddWidthHeight(16, 0)
}

func (p *cardPage) cardBox(c *gpu.Card, found []doctor.Condition) fyne.CanvasObject {
	vram := tr("VRAM n/a")
	if c.Memory.Total.Known {
		vram = tr("VRAM %s", bytes64(c.Memory.Total.Value))
	}
	if c.Memory.Shared {
		vram = tr("shares RAM")
	}
	if c.Memory.GBs.Known && c.Memory.GBs.Value > 0 {
		vram += tr(", %d GB/s", c.Memory.GBs.Value)
	}
	driver := tr("no driver is bound")
	if c.Driver != "" {
		driver = tr("driver %s", c.Driver)
		if c.DriverVersion.Known {
			driver += " " + c.DriverVersion.Value
		}
	}
	stripe := widget.ColorVRAM
	if !c.Compute() {
		stripe = widget.ColorLine
	}
	b := box(stripe, healthState(found, c.PCI), orDash(c.Name), joinDots(c.VendorName(), c.Chip, string(c.Arch)), joinDots(vram, capsWords(c.Caps)), joinDots(driver, string(c.PCI)), p.light.lightWords(c.PCI))
	r := widget.NewRow(b, func() {
		p.card, p.picked, p.light.other = c.PCI, true, ""
		p.draw()
	})
	r.SetSelected(c.PCI == p.card)
	r.Tip = tr("Show the recipe of this card")
	return r
}

// first gives a title its capital.
func first(s string) string { return strings.TrimSuffix(capital(s), ".") }

// capsWords says what a card's generation can do.
func capsWords(c gpu.Caps) string {
	var parts []string
	if c.Matrix {
		parts = append(parts, tr("matrix units"))
	}
	if c.DP4A {
		parts = append(parts, tr("8-bit dot products"))
	}
	return strings.Join(parts, ", ")
}

func orDash(s string) string {
	if s == "" {
		return "—"
	}
	return s
}

func joinDots(parts ...string) string {
	var out []string
	for _, p := range parts {
		if p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, " · ")
}

// linkLine is what the line to a card says.
type linkLine struct {
	words string
	why   string
	state widget.State
}

func linkOf(c *gpu.Card) linkLine {
	if !c.Discrete {
		return linkLine{words: tr("on the same chip")}
	}
	l := c.Link
	gbs := l.GBs()
	if !gbs.Known {
		return linkLine{words: tr("link n/a"), why: gbs.Why}
	}
	out := linkLine{words: tr("%.1f GB/s", gbs.Value)}
	if l.Width.Known && l.Speed.Known {
		out.why = tr("%.0f GT/s, %d lanes, read at %s", l.Speed.Value, l.Width.Value, orDash(string(l.At)))
	}
	if l.MaxWidth.Known && l.Width.Known && l.Width.Value < l.MaxWidth.Value || l.MaxSpeed.Known && l.Speed.Known && l.Speed.Value < l.MaxSpeed.Value {
		out.state = widget.StateWatch
		out.why += ". " + tr("Slower than the slot and the card could do, or saving power now.")
	}
	return out
}

// conditions lists what the doctor found for the machine and the card.
func (p *cardPage) conditions(found []doctor.Condition) {
	box := widget.V(8)
	n := 0
	for _, c := range found {
		if c.Card != "" && p.card != "" && c.Card != p.card {
			continue
		}
		n++
		box.Add(p.condition(c))
	}
	if n == 0 {
		box.Add(widget.H(8, widget.NewLight(widget.StateGood), widget.NewText(tr("Nothing stands in the way."))))
	}
	p.body.Add(widget.V(8, widget.NewHeading(tr("Health")), box))
}

func (p *cardPage) condition(c doctor.Condition) fyne.CanvasObject {
	state := widget.StateInfo
	switch c.Severity {
	case doctor.Blocks:
		state = widget.StateAct
	case doctor.Warns:
		state = widget.StateWatch
	}
	text := widget.V(3, widget.NewText(first(c.Title)).Bold().Cutting(200), widget.NewNote(capital(c.Text)))
	if c.Next != "" {
		text.Add(widget.NewNote(capital(c.Next)).In(widget.ColorText))
	}
	if c.Command != "" {
		text.Add(widget.NewCommand(c.Command))
	}
	tip := strings.Join(c.Evidence, "; ")
	if c.Source != "" {
		tip = joinDots(tip, c.Source)
	}
	return widget.NewTipped(widget.HTop(10, widget.NewLight(state), widget.Flex(text)), tip)
}
