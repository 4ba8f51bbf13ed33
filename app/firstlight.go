package app

import (
	"context"
	"errors"

	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/store"
	"outcrop/app/widget"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// firstLight runs the known-answer tests of a device and lists them line by
// line as they end.
type firstLight struct {
	p       *cardPage
	steps   []doctor.StepResult
	result  *doctor.Light
	err     error
	running bool
	device  string
	cancel  context.CancelFunc
	past    []store.Light
	box     *fyne.Container
}

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
		f.fill()
	})
}

func (f *firstLight) view() fyne.CanvasObject {
	f.fill()
	return f.box
}

func (f *firstLight) name() (gpu.PCI, string) {
	if c := f.p.a.machine.machine.Card(f.p.card); c != nil {
		return c.PCI, c.Name
	}
	return "", tr("the CPU")
}

func (f *firstLight) fill() {
	f.box.Objects = nil
	pci, name := f.name()
	button := fynewidget.NewButton(tr("Run first light on %s", name), func() { f.run(pci, name) })
	button.Importance = fynewidget.HighImportance
	if f.running {
		button = fynewidget.NewButton(tr("Stop"), func() { f.cancel() })
	}
	f.box.Add(widget.H(8, widget.Flex(widget.NewHeading(tr("First light"))), button))
	f.box.Add(widget.NewNote(tr("Known questions with known answers, computed on the device and compared: a clean start proves nothing, right numbers do.")))
	list := widget.V(4)
	for _, s := range merged(f.steps) {
		list.Add(stepLine(s))
	}
	if f.running {
		list.Add(widget.H(8, widget.NewLight(widget.StateBusy), widget.NewText(tr("running…")).In(widget.ColorDim)))
	}
	if len(list.Objects) > 0 {
		f.box.Add(list)
	}
	switch {
	case f.err != nil && !errors.Is(f.err, context.Canceled):
		f.box.Add(notice(widget.StateAct, sentence(f.err), tr("Run it again"), func() { f.run(pci, name) }))
	case f.result != nil:
		state := widget.StateGood
		if !f.result.OK() {
			state = widget.StateAct
		}
		f.box.Add(widget.Box(widget.H(10, widget.NewLight(state), widget.Flex(widget.NewText(f.result.String()).Bold().Cutting(100)))))
	}
	if len(f.past) > 0 {
		var rows [][]string
		for _, l := range f.past {
			rows = append(rows, []string{l.Time.Format("2006-01-02 15:04"), l.Device, orDash(l.Driver), l.Text})
		}
		f.box.Add(widget.V(6, widget.NewText(tr("Earlier")).Bold(), grid([]string{tr("when"), tr("device"), tr("driver"), tr("result")}, rows)))
	}
	f.box.Refresh()
	f.p.scroll.Refresh()
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
	return widget.H(8, widget.NewLight(state), widget.Wide(310, widget.NewText(first(s.Title)).Cutting(100)), widget.Wide(90, widget.NewCaption(count).Mono()), widget.Flex(widget.NewCaption(words).Cutting(60)))
}

func (f *firstLight) run(pci gpu.PCI, name string) {
	a := f.p.a
	if f.running {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.running, f.steps, f.result, f.err, f.device = cancel, true, nil, nil, nil, name
	f.fill()
	a.long(func() {
		light, err := a.deps.Cards.FirstLight(ctx, pci, func(s doctor.StepResult) {
			a.ui(func() {
				f.steps = append(f.steps, s)
				f.fill()
			})
		})
		cancel()
		a.ui(func() {
			f.running, f.err = false, err
			if err == nil {
				f.result = &light
				if len(light.Steps) > 0 {
					f.steps = light.Steps
				}
				a.notify(tr("First light ended"), light.String())
				f.keep(light)
			}
			f.fill()
		})
	})
}

func (f *firstLight) keep(l doctor.Light) {
	a := f.p.a
	if a.store == nil {
		return
	}
	a.background(func() error {
		return a.store.AddLight(store.Light{Device: l.Device, Driver: l.Driver, Passed: l.Passed, Total: l.Total, Text: l.String(), Time: a.deps.Now()})
	}, func(err error) {
		a.failIf(err)
		f.reload()
	})
}
