package app

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/store"
	"outcrop/app/widget"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// firstLight runs the known-answer tests of a device in a process of their own
// and lists them line by line as they end.
type firstLight struct {
	p       *cardPage
	other   string // a device that is no card of the page: "cpu", "opencl:0"; "" follows the page
	groups  []*lightGroup
	notes   []string
	err     error
	stopped bool
	running bool
	began   time.Time // of what runs now
	clock   *widget.Text
	ticks   func()
	cancel  context.CancelFunc
	past    []store.Light
	box     *fyne.Container
}

// lightGroup is the test of one device; a card may be there once for each
// driver that offers it.
type lightGroup struct {
	device, name, phase string
	steps               []doctor.StepResult
	result              *doctor.Light
	err                 string
}

func (g *lightGroup) ended() bool { return g.result != nil || g.err != "" }

func newFirstLight(p *cardPage) *firstLight { return &firstLight{p: p, box: widget.V(10)} }

// reload reads the history of first lights.
func (f *firstLight) reload() {
	a := f.p.a
	var list []store.Light
	a.background(func() (err error) {
		list, err = a.store.Lights(8)
		return err
	}, func(err error) {
		a.failIf(err)
		f.past = list
		f.p.draw()
	})
}

func (f *firstLight) view() fyne.CanvasObject {
	f.fill()
	return f.box
}

// target is the device that would be tested, and what it is called.
func (f *firstLight) target() (device, name string) {
	a := f.p.a
	switch {
	case f.other == deviceCPU:
		return deviceCPU, tr("the CPU")
	case f.other != "":
		return f.other, a.deviceName(f.other)
	}
	if c := a.machine.machine.Card(f.p.card); c != nil {
		return string(c.PCI), c.Name
	}
	return deviceCPU, tr("the CPU")
}

// choose opens the list of what can be tested.
func (f *firstLight) choose(at fyne.CanvasObject) {
	a := f.p.a
	var items []*fyne.MenuItem
	now, _ := f.target()
	add := func(device, name string, do func()) {
		it := fyne.NewMenuItem(name, func() { do(); f.p.draw() })
		it.Checked = device == now
		items = append(items, it)
	}
	for i := range a.machine.machine.Cards {
		c := &a.machine.machine.Cards[i]
		add(string(c.PCI), c.Name, func() { f.other, f.p.card, f.p.picked = "", c.PCI, true })
	}
	add(deviceCPU, tr("the CPU"), func() { f.other = deviceCPU })
	for _, o := range a.extraDevices() {
		add(o.ID, a.deviceName(o.ID), func() { f.other = o.ID })
	}
	a.menu(at, items...)
}

func (f *firstLight) fill() {
	f.box.Objects = nil
	device, name := f.target()
	head := widget.H(8, widget.Flex(widget.NewHeading(tr("First light"))))
	if f.running {
		head.Add(fynewidget.NewButton(tr("Stop"), func() { f.stopped = true; f.cancel() }))
	} else {
		chip := widget.NewChip("card", name, true, nil)
		chip.Tip = tr("What is tested")
		chip.OnTapped = func() { f.choose(chip) }
		words := tr("Run first light on %s", name)
		if len(words) > 40 {
			words = tr("Run first light")
		}
		button := fynewidget.NewButton(words, func() { f.run(device, name) })
		button.Importance = fynewidget.HighImportance
		head.Add(chip)
		head.Add(button)
	}
	f.box.Add(head)
	f.box.Add(widget.NewNote(tr("Known questions with known answers, computed on the device and compared: a clean start proves nothing, right numbers do. It runs in a process of its own and takes about a minute.")))
	f.clock = nil
	for i, g := range f.groups {
		f.box.Add(f.group(g, f.running && i == len(f.groups)-1))
	}
	if f.running && (len(f.groups) == 0 || f.groups[len(f.groups)-1].ended()) {
		f.box.Add(f.busy(tr("Starting the test")))
	}
	switch {
	case f.stopped && !f.running:
		f.box.Add(widget.H(8, widget.NewLight(widget.StateInfo), widget.NewText(tr("Stopped. What was not tested does not count as passed.")).In(widget.ColorDim)))
	case f.err != nil:
		f.box.Add(notice(widget.StateAct, sentence(f.err), tr("Run it again"), func() { f.run(device, name) }))
		for _, n := range f.notes {
			f.box.Add(widget.NewNote(n))
		}
	}
	if len(f.past) > 0 && !f.running {
		var rows [][]string
		for _, l := range f.past {
			rows = append(rows, []string{l.Time.Format("2006-01-02 15:04"), joinDots(l.Device, l.Name), orDash(l.Driver), l.Text})
		}
		f.box.Add(widget.V(6, widget.NewText(tr("Earlier")).Bold(), grid([]string{tr("when"), tr("device"), tr("driver"), tr("result")}, rows)))
	}
}

// show draws what there is now.
func (f *firstLight) show() {
	f.fill()
	f.box.Refresh()
	f.p.scroll.Refresh()
}

// group shows one device: the steps that ended, the one that runs, and the
// result.
func (f *firstLight) group(g *lightGroup, last bool) fyne.CanvasObject {
	list := widget.V(4, widget.NewText(joinDots(g.name, g.device)).Bold().Cutting(100))
	steps := merged(g.steps)
	for _, s := range steps {
		list.Add(stepLine(s))
	}
	if last && !g.ended() {
		words := first(g.phase)
		if next := stepAfter(steps); len(steps) > 0 && next != "" {
			words = first(next)
		}
		list.Add(f.busy(words))
	}
	switch {
	case g.err != "":
		list.Add(notice(widget.StateAct, sentence(errors.New(g.err)), "", nil))
	case g.result != nil:
		state, words := widget.StateGood, tr("It computes right, with %s.", g.result.Driver)
		if !g.result.OK() {
			state, words = widget.StateAct, tr("It does not compute right with %s, so no model runs on it by itself. An update of the driver may help.", g.result.Driver)
		}
		row := widget.H(10, widget.NewLight(state), widget.Flex(widget.V(2, widget.NewText(g.result.String()).Bold().Cutting(100), widget.NewNote(words))))
		a := f.p.a
		if e, ok := a.packs.current(); ok && g.result.OK() && g.device != deviceCPU && a.engine.Phase == EngineReady && !a.runsOn(g.result.PCI, g.name) {
			row.Add(fynewidget.NewButton(tr("Run %s on it", e.Name), func() { a.runOn(e, cmp.Or(string(g.result.PCI), g.device)) }))
		}
		list.Add(widget.Box(row))
	}
	return list
}

// busy is the line of what runs now, with its seconds.
func (f *firstLight) busy(words string) fyne.CanvasObject {
	f.clock = widget.NewNumber(span(f.p.a.deps.Now().Sub(f.began)))
	return widget.H(8, widget.NewLight(widget.StateBusy), widget.Flex(widget.NewText(words).In(widget.ColorDim).Cutting(100)), f.clock)
}

// stepAfter is the title of the step that follows those that ended.
func stepAfter(steps []doctor.StepResult) string {
	all := doctor.LightSteps()
	if len(steps) == 0 {
		return all[0][1]
	}
	for i, s := range all {
		if s[0] == steps[len(steps)-1].Step && i+1 < len(all) {
			return all[i+1][1]
		}
	}
	return ""
}

// merged keeps the last word of each check: a step is told as it goes on.
func merged(steps []doctor.StepResult) []doctor.StepResult {
	var out []doctor.StepResult
	at := map[string]int{}
	for _, s := range steps {
		if i, ok := at[s.Step]; ok {
			out[i] = s
			continue
		}
		at[s.Step] = len(out)
		out = append(out, s)
	}
	return out
}

func stepLine(s doctor.StepResult) fyne.CanvasObject {
	state, words := widget.StateGood, s.Detail
	switch {
	case s.Skipped != "":
		state, words = widget.StateInfo, tr("skipped: %s", s.Skipped)
	case s.Passed < s.Total:
		state = widget.StateAct
	}
	count := ""
	if s.Total > 0 {
		count = tr("%d of %d", s.Passed, s.Total)
	}
	return widget.H(8, widget.NewLight(state), widget.Wide(400, widget.NewText(first(s.Title)).Cutting(100)), widget.Wide(90, widget.NewCaption(count).Mono()), widget.Flex(widget.NewCaption(words).Cutting(60)))
}

// take files one line of the test.
func (f *firstLight) take(n doctor.LightLine) {
	if n.Device == "" || n.Note != "" {
		f.notes = append(f.notes, first(strings.ReplaceAll(n.Note, "\n", "; ")))
		return
	}
	if len(f.groups) == 0 || f.groups[len(f.groups)-1].device != n.Device {
		f.groups = append(f.groups, &lightGroup{device: n.Device, name: n.Name})
	}
	g := f.groups[len(f.groups)-1]
	f.began = f.p.a.deps.Now()
	switch {
	case n.Phase != "":
		g.phase = n.Phase
	case n.Step != nil:
		g.steps = append(g.steps, *n.Step)
	case n.Result != nil:
		g.result = n.Result
		f.keep(store.Light{Device: n.Result.Device, Driver: n.Result.Driver, PCI: string(n.Result.PCI), Name: n.Device,
			Passed: n.Result.Passed, Total: n.Result.Total, Text: n.Result.String()})
	case n.Error != "":
		g.err = n.Error
		f.keep(store.Light{Device: n.Name, Name: n.Device, PCI: f.pciOf(n.Device), Text: n.Error})
	}
}

// pciOf is the address of the card behind a driver's name, "" when none is
// known.
func (f *firstLight) pciOf(device string) string {
	if o := f.p.a.offer(device); o != nil {
		return string(o.PCI)
	}
	return ""
}

func (f *firstLight) run(device, name string) {
	a := f.p.a
	if f.running {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.running, f.stopped, f.groups, f.notes, f.err, f.began = cancel, true, false, nil, nil, nil, a.deps.Now()
	f.ticks = a.deps.Every(time.Second, func() {
		a.ui(func() {
			if f.clock != nil && f.running {
				f.clock.Set(span(a.deps.Now().Sub(f.began)))
			}
		})
	})
	a.stops = append(a.stops, cancel) // the test ends with the window
	env := a.recipeEnv(device)
	f.show()
	f.p.toLight()
	a.long(func() {
		err := a.deps.Cards.FirstLight(ctx, device, env, func(n doctor.LightLine) {
			a.ui(func() {
				if !a.closed {
					f.take(n)
					f.show()
					f.p.toLight() // where the lines come
				}
			})
		})
		cancel()
		a.ui(func() {
			f.ticks()
			if a.closed {
				return
			}
			f.running = false
			if err != nil && !f.stopped {
				f.err = err
				f.broke(device, name, err)
			}
			a.notify(tr("First light ended"), f.summary(name))
			f.p.draw()
			f.p.toLight()
			a.findOffers()
		})
	})
}

// broke files a test that ended before its time, as one that did not pass.
func (f *firstLight) broke(device, name string, err error) {
	l := store.Light{Device: name, Name: device, Text: sentence(err)}
	if f.p.a.machine.machine.Card(gpu.PCI(device)) != nil {
		l.PCI = device
	}
	if n := len(f.groups); n > 0 && !f.groups[n-1].ended() {
		g := f.groups[n-1]
		l.Device, l.Name = g.name, g.device
		if s := merged(g.steps); len(s) > 0 {
			l.Text = tr("During \"%s\": %s", stepAfter(s), l.Text)
		}
	}
	f.keep(l)
}

// summary is the end in a few words.
func (f *firstLight) summary(name string) string {
	var out []string
	for _, g := range f.groups {
		if g.result != nil {
			out = append(out, g.result.String())
		}
	}
	if len(out) == 0 {
		return name
	}
	return strings.Join(out, ", ")
}

func (f *firstLight) keep(l store.Light) {
	a := f.p.a
	if a.store == nil {
		return
	}
	l.Time = a.deps.Now()
	a.background(func() error { return a.store.AddLight(l) }, func(err error) {
		a.failIf(err)
		f.reload()
	})
}

// latest is the last first light of a card; nil when there was none.
func (f *firstLight) latest(card gpu.PCI) *store.Light {
	for i := range f.past {
		if f.past[i].PCI == string(card) {
			return &f.past[i]
		}
	}
	return nil
}

// lightWords says on a card how its last first light ended.
func (f *firstLight) lightWords(card gpu.PCI) string {
	passed, asked := f.p.a.passed(card)
	l := f.latest(card)
	switch {
	case asked && passed && l != nil && l.OK():
		return tr("first light: %d of %d on %s", l.Passed, l.Total, l.Time.Format("2006-01-02"))
	case asked && passed:
		return tr("first light: passed")
	case l != nil && l.OK() && asked:
		return tr("first light: passed on %s, but not with the present driver", l.Time.Format("2006-01-02"))
	case l != nil && !l.OK():
		return tr("first light: not passed on %s", l.Time.Format("2006-01-02"))
	case asked:
		return tr("first light: not run yet")
	}
	return ""
}
