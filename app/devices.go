package app

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"fyne.io/fyne/v2"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// Where an engine runs is a choice for each pack, and one for all packs that
// have none: the CPU, a card, or "decide for me", which is every card that has passed
// first light, else the CPU.

// Names of devices that are no addresses.
const (
	deviceCPU  = "cpu"
	deviceAuto = "auto"
)

// findOffers asks the drivers, in the background, what they offer.
func (a *App) findOffers() {
	if a.deps.Cards == nil {
		return
	}
	var o doctor.Offers
	a.slowly(func() (err error) {
		o, err = a.deps.Cards.Offers(context.Background())
		return err
	}, func(err error) {
		if err != nil {
			return // a driver broke while it was asked; first light says how
		}
		news := a.machine.offered && !slices.Equal(a.machine.offers.Devices, o.Devices)
		a.machine.offers, a.machine.offered = o, true
		a.devicesChanged()
		if p, ok := a.built["packs"].(*packsPage); ok && news {
			p.machineChanged() // what passed first light since may be planned with
		}
		a.frame.idleCard()
	})
}

// devicesChanged draws what shows devices and the choice among them.
func (a *App) devicesChanged() {
	if p, ok := a.built["card"].(*cardPage); ok {
		p.draw()
	}
	redraw(a)
}

// offer is a device by its driver's name; nil when it is not there.
func (a *App) offer(id string) *doctor.Offer {
	for i := range a.machine.offers.Devices {
		if o := &a.machine.offers.Devices[i]; o.ID == id {
			return o
		}
	}
	return nil
}

// passed says whether a card has passed first light with its present driver,
// and whether that is known.
func (a *App) passed(card gpu.PCI) (passed, known bool) {
	for _, o := range a.machine.offers.Devices {
		if card != "" && strings.EqualFold(string(o.PCI), string(card)) {
			passed = passed || o.Passed
		}
	}
	return passed, a.machine.offered
}

// extraDevices are what drivers offer beside the machine's cards, such as
// OpenCL on the processor.
func (a *App) extraDevices() []doctor.Offer {
	var out []doctor.Offer
	for _, o := range a.machine.offers.Devices {
		if a.machine.machine.Card(o.PCI) == nil {
			out = append(out, o)
		}
	}
	return out
}

// deviceName is what a choice is called.
func (a *App) deviceName(id string) string {
	if c := a.machine.machine.Card(gpu.PCI(id)); c != nil {
		return c.Name
	}
	if o := a.offer(id); o != nil {
		return tr("%s by %s", o.Name, o.ID)
	}
	n := strings.Count(id, ",") + 1
	switch {
	case id != "" && id == a.allCards() && n == 2:
		return tr("both cards")
	case id != "" && id == a.allCards():
		return tr("all %d cards", n)
	case n > 1:
		return tr("%d cards", n)
	}
	return id
}

// choiceOf is what the person chose for a pack: "" when nothing.
func (a *App) choiceOf(pack string) string {
	return cmp.Or(a.settings.Devices[pack], a.settings.Device)
}

// device is where the engine is to run a pack: as chosen, as long as that card
// is there, else on the cards that passed first light.
func (a *App) device(pack string) string {
	m := &a.machine
	want := a.choiceOf(pack)
	switch {
	case want == deviceCPU:
		return deviceCPU
	case want == "" || want == deviceAuto:
	case strings.Count(want, ":") == 1 && (!m.offered || a.offer(want) != nil): // a driver's name
		return want
	case !m.known, m.machine.Card(gpu.PCI(want)) != nil, want == a.allCards():
		return want
	}
	if m.known && len(m.machine.Cards) == 0 {
		return deviceCPU
	}
	return deviceAuto
}

// deviceChoices lists what can be chosen, with names.
func (a *App) deviceChoices() (ids, names []string) {
	ids, names = []string{"", deviceCPU}, []string{tr("decide for me"), tr("CPU")}
	for i := range a.machine.machine.Cards {
		c := &a.machine.machine.Cards[i]
		name := c.Name
		if len(a.machine.machine.Cards) > 1 {
			name = tr("%s at %s", c.Name, shortPCI(string(c.PCI)))
		}
		if ok, known := a.passed(c.PCI); known && !ok {
			name = tr("%s, first light not passed", name)
		}
		ids, names = append(ids, string(c.PCI)), append(names, name)
	}
	if all := a.allCards(); all != "" {
		ids, names = append(ids, all), append(names, a.deviceName(all))
	}
	for _, o := range a.extraDevices() {
		ids, names = append(ids, o.ID), append(names, a.deviceName(o.ID))
	}
	return ids, names
}

// allCards names all cards of their own memory, for a pack that is to lie on
// several; "" where there are not two.
func (a *App) allCards() string {
	var list []string
	for _, c := range a.machine.machine.Cards {
		if c.Discrete && !c.Virtual {
			list = append(list, string(c.PCI))
		}
	}
	if len(list) < 2 {
		return ""
	}
	return strings.Join(list, ",")
}

// deviceMenu is the choice for a pack as items of a menu.
func (a *App) deviceMenu(e catalog.Entry) []*fyne.MenuItem {
	ids, names := a.deviceChoices()
	now := a.choiceOf(e.Name)
	if !slices.Contains(ids, now) && now != deviceAuto {
		ids, names = append(ids, now), append(names, tr("%s, not there now", now))
	}
	var items []*fyne.MenuItem
	for i, id := range ids {
		it := fyne.NewMenuItem(names[i], func() { a.runOn(e, id) })
		it.Checked = id == now || id == "" && now == deviceAuto
		items = append(items, it)
	}
	return items
}

// runOn remembers where a pack is to run, and starts the engine again when it
// runs that pack now.
func (a *App) runOn(e catalog.Entry, device string) {
	a.change(func(s *Settings) {
		// A map of its own: the one before may be on its way to the store.
		m := maps.Clone(s.Devices)
		if m == nil {
			m = map[string]string{}
		}
		m[e.Name] = cmp.Or(device, deviceAuto)
		s.Devices = m
	})
	if a.engine.Phase != EngineOff && a.engine.Phase != EngineEnded && strings.EqualFold(a.engine.Pack, e.Name) {
		a.start(e)
	}
	a.packs.again(e)
	a.devicesChanged()
}

// runsOn says whether the running engine computes on a card.
func (a *App) runsOn(card gpu.PCI, name string) bool {
	p := a.history.last()
	if p == nil || !p.engine {
		return false
	}
	for _, c := range p.sample.Cards {
		if c.Used && (card != "" && c.PCI == string(card) || card == "" && c.Name == name) {
			return true
		}
	}
	return false
}

// idleWords says why the engine runs on the CPU although there is a card, and
// the one thing that helps. It is empty when a card computes, when there is
// none, and when the person chose the CPU.
func (a *App) idleWords() (text, button string, do func()) {
	p := a.history.last()
	if a.engine.Phase != EngineReady || p == nil || !p.engine || !a.hasCard(p) {
		return "", "", nil
	}
	e := &p.sample.Engine
	why := e.DeviceWhy
	for _, c := range p.sample.Cards {
		if c.Used {
			return "", "", nil
		}
		why = cmp.Or(why, c.WhyIdle)
	}
	if e.DeviceWanted == deviceCPU || a.choiceOf(a.engine.Pack) == deviceCPU {
		return "", "", nil
	}
	why, _, _ = strings.Cut(cmp.Or(why, tr("it was not asked for a card")), "; run: ")
	_, planned, byPlan := strings.Cut(why, "running on the CPU because ")
	lit := slices.ContainsFunc(a.machine.offers.Devices, func(o doctor.Offer) bool { return o.Passed && !o.CPU })
	switch {
	case byPlan:
		why, _, _ = strings.Cut(planned, "; ")
		button, do = tr("Look at the plan"), func() { a.visit("packs"); a.page("packs").(*packsPage).open(a.engine.Pack) }
	case strings.Contains(why, "first light") && lit:
		button, do = tr("Start again"), a.startLast // one has passed since
	case strings.Contains(why, "first light"):
		button, do = tr("Run first light"), func() { a.visit("card"); a.page("card").(*cardPage).toLight() }
	default:
		button, do = tr("Look at the card"), func() { a.visit("card") }
	}
	return tr("Running on the CPU: %s.", strings.TrimSuffix(strings.ReplaceAll(why, "\n", "; "), ".")), button, do
}

// hasCard says whether there is a card that could compute.
func (a *App) hasCard(p *point) bool {
	for i := range a.machine.machine.Cards {
		if a.machine.machine.Cards[i].Compute() {
			return true
		}
	}
	return !a.machine.known && len(p.sample.Cards) > 0
}

// slowWords says what of a card's work runs slower than it could, or with the
// CPU, and the one thing that helps; empty when nothing does.
func (a *App) slowWords() (text, button string, do func()) {
	p := a.history.last()
	if a.engine.Phase != EngineReady || p == nil || !p.engine {
		return "", "", nil
	}
	e := &p.sample.Engine
	more := func(list []string) string {
		s := strings.TrimSuffix(oneLine(list[0]), ".")
		if n := len(list) - 1; n > 0 {
			return tr("%s, and %d more.", s, n)
		}
		return s + "."
	}
	monitor := func() { a.visit("monitor") }
	switch {
	case len(e.Slow) > 0:
		return tr("Slower than this card can be: %s", more(e.Slow)), tr("Run first light"), func() { a.visit("card"); a.page("card").(*cardPage).toLight() }
	case len(e.OnCPU) > 0:
		return tr("A part of it stays with the CPU: %s", more(e.OnCPU)), tr("Look at the speed"), monitor
	}
	return "", "", nil
}

// oneLine is a message in one line.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// idleCard shows or hides the line that says why no card is used, or else what
// of a card's work is slower than it could be.
func (f *frame) idleCard() {
	text, button, do := f.a.idleWords()
	state, color := widget.StateWatch, widget.ColorAccent
	if text == "" {
		text, button, do = f.a.slowWords()
		state, color = widget.StateInfo, widget.ColorText
	}
	if text == "" || text == f.idleGone {
		if f.idle.Visible() {
			f.idle.Hide()
			widget.Relayout(f.root)
		}
		f.idleText = ""
		return
	}
	if text+button == f.idleText {
		return
	}
	f.idleText = text + button
	words := widget.NewTipped(widget.NewText(text).In(color).Cutting(120), text)
	row := widget.H(10, widget.NewLight(state), widget.Flex(words),
		widget.NewLink(button, do), widget.NewIconButton("close", tr("Close"), func() { f.idleGone = text; f.idleCard() }))
	f.idle.Objects = []fyne.CanvasObject{widget.Over(widget.NewGround(widget.ColorSurface, widget.ColorLine, 8), widget.Inset(2, 6, 2, 12, row))}
	f.idle.Show()
	widget.Relayout(f.idle)
	widget.Relayout(f.root)
}
