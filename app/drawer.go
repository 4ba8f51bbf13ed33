package app

import (
	"fmt"
	"strconv"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/store"
	"outcrop/app/widget"
)

// drawer is the panel of system prompt and sampling of the open conversation.
type drawer struct {
	c       *chatPage
	presets []store.Preset
	system  *widget.Entry
	body    *fyne.Container
	root    *fyne.Container
	filling bool
}

type presetItem struct{ name, label string }

func newDrawer(c *chatPage) *drawer {
	d := &drawer{c: c, body: widget.V(14)}
	scroll := widget.NewPageScroll(widget.Inset(4, theme.Size(widget.SizePage), 16, theme.Size(widget.SizePage), d.body))
	d.root = widget.Over(widget.NewGround(widget.ColorSurface, "", 0), &fyne.Container{Layout: edgeLayout{}, Objects: []fyne.CanvasObject{widget.NewGround(widget.ColorLine, "", 0), scroll}})
	d.show()
	return d
}

// edgeLayout is a line at the left edge and the rest beside it.
type edgeLayout struct{}

func (edgeLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	objs[0].Resize(fyne.NewSize(1, s.Height))
	objs[1].Resize(fyne.NewSize(s.Width-1, s.Height))
	objs[1].Move(fyne.NewPos(1, 0))
}

func (edgeLayout) MinSize(objs []fyne.CanvasObject) fyne.Size { return objs[1].MinSize() }

func (d *drawer) reload() {
	var list []store.Preset
	d.c.a.background(func() (err error) {
		list, err = d.c.a.store.Presets()
		return err
	}, func(err error) {
		d.c.a.failIf(err)
		d.presets = list
		d.show()
	})
}

func (d *drawer) preset(name string) (store.Preset, bool) {
	for _, p := range d.presets {
		if p.Name == name {
			return p, true
		}
	}
	return store.Preset{}, false
}

func (d *drawer) presetItems() []presetItem {
	var out []presetItem
	for _, p := range d.presets {
		out = append(out, presetItem{p.Name, p.Name})
	}
	return out
}

// usePreset puts a preset's system prompt and sampling into the conversation;
// "" is the default of the pack.
func (d *drawer) usePreset(name string) {
	p, _ := d.preset(name)
	d.c.conv.Preset, d.c.conv.System, d.c.conv.Sampling = name, p.System, p.Sampling
	d.c.a.change(func(s *Settings) { s.Preset = name })
	d.c.saveConversation()
	d.show()
}

// number is one sampling setting.
type number struct {
	name, words, standard string
	low, high, step       float64
	get                   func(*store.Sampling) *float64
	set                   func(*store.Sampling, *float64)
}

func intPart(get func(*store.Sampling) **int) (func(*store.Sampling) *float64, func(*store.Sampling, *float64)) {
	return func(s *store.Sampling) *float64 {
			if p := *get(s); p != nil {
				v := float64(*p)
				return &v
			}
			return nil
		}, func(s *store.Sampling, v *float64) {
			if v == nil {
				*get(s) = nil
				return
			}
			n := int(*v)
			*get(s) = &n
		}
}

func floatPart(get func(*store.Sampling) **float64) (func(*store.Sampling) *float64, func(*store.Sampling, *float64)) {
	return func(s *store.Sampling) *float64 { return *get(s) },
		func(s *store.Sampling, v *float64) { *get(s) = v }
}

// numbers is the table of sampling settings, in the order shown. Standards
// are the server's own; see engine/serve.
func numbers() []number {
	temp, setTemp := floatPart(func(s *store.Sampling) **float64 { return &s.Temperature })
	topP, setTopP := floatPart(func(s *store.Sampling) **float64 { return &s.TopP })
	minP, setMinP := floatPart(func(s *store.Sampling) **float64 { return &s.MinP })
	rep, setRep := floatPart(func(s *store.Sampling) **float64 { return &s.RepeatPenalty })
	pres, setPres := floatPart(func(s *store.Sampling) **float64 { return &s.Presence })
	freq, setFreq := floatPart(func(s *store.Sampling) **float64 { return &s.Frequency })
	topK, setTopK := intPart(func(s *store.Sampling) **int { return &s.TopK })
	most, setMost := intPart(func(s *store.Sampling) **int { return &s.MaxTokens })
	return []number{
		{"Temperature", "0 always takes the likeliest word; higher is freer", "the pack's", 0, 2, 0.05, temp, setTemp},
		{"Top-p", "words that make up this share of the likelihood", "the pack's", 0, 1, 0.01, topP, setTopP},
		{"Top-k", "at most this many words to choose from; 0 is all", "the pack's", 0, 200, 1, topK, setTopK},
		{"Min-p", "leaves out words less likely than this part of the best", "the pack's", 0, 0.5, 0.01, minP, setMinP},
		{"Repeat penalty", "above 1 discourages words used lately", "1: none", 1, 1.5, 0.01, rep, setRep},
		{"Presence penalty", "discourages words used at all", "0: none", -2, 2, 0.05, pres, setPres},
		{"Frequency penalty", "discourages words by how often they were used", "0: none", -2, 2, 0.05, freq, setFreq},
		{"Longest answer", "in tokens; empty is until it ends by itself", "no limit", 16, 8192, 16, most, setMost},
	}
}

// show fills the panel from the open conversation.
func (d *drawer) show() {
	c := d.c
	d.filling = true
	defer func() { d.filling = false }()
	d.body.Objects = nil
	close := widget.NewIconButton("close", tr("Close (Esc)"), c.toggleDrawer)
	d.body.Add(widget.Inset(12, 0, 0, 0, widget.H(4, widget.Flex(widget.NewHeading(tr("This chat"))), close)))

	name := tr("Default")
	if c.conv.Preset != "" {
		name = c.conv.Preset
	}
	chip := widget.NewChip("sliders", name, true, func() { c.composer.choosePreset() })
	save := widget.NewIconButton("save", tr("Save as a preset"), d.savePreset)
	row := widget.H(4, widget.Flex(widget.H(0, chip)), save)
	if c.conv.Preset != "" {
		row.Add(widget.NewIconButton("trash", tr("Delete this preset"), d.deletePreset))
	}
	d.body.Add(widget.V(5, widget.NewCaption(tr("Preset")), row))

	d.system = c.a.field(tr("How it should behave. Empty: as the pack was made"))
	d.system.MultiLine = true
	d.system.Wrapping = fyne.TextWrapWord
	d.system.SetText(c.conv.System)
	d.system.OnChanged = func(s string) {
		if !d.filling {
			c.conv.System = s
			d.edited()
		}
	}
	d.body.Add(widget.V(5, widget.NewCaption(tr("System prompt")), widget.Sized(0, theme.TextSize()*8, d.system)))

	for _, n := range numbers() {
		d.body.Add(d.slider(n))
	}
	d.body.Add(d.thinking())
	d.body.Add(d.text(tr("Stop at"), tr("texts that end an answer, one a line"), strings.Join(c.conv.Sampling.Stop, "\n"), func(s string) {
		c.conv.Sampling.Stop = nil
		for line := range strings.SplitSeq(s, "\n") {
			if line != "" {
				c.conv.Sampling.Stop = append(c.conv.Sampling.Stop, line)
			}
		}
	}))
	seed := ""
	if c.conv.Sampling.Seed != nil {
		seed = strconv.FormatInt(*c.conv.Sampling.Seed, 10)
	}
	d.body.Add(d.text(tr("Seed"), tr("a number makes answers repeatable; empty is another each time"), seed, func(s string) {
		c.conv.Sampling.Seed = nil
		if n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64); err == nil {
			c.conv.Sampling.Seed = &n
		}
	}))
	d.composerName()
	d.body.Refresh()
}

// composerName writes the preset's name beside the field.
func (d *drawer) composerName() {
	name := tr("Default")
	switch {
	case d.c.conv.Preset != "":
		name = d.c.conv.Preset
	case d.c.conv.System != "":
		name = tr("Own prompt")
	}
	if d.c.composer != nil {
		d.c.composer.preset.Set(name)
	}
}

func (d *drawer) edited() {
	d.c.saveConversation()
	d.composerName()
}

func (d *drawer) slider(n number) fyne.CanvasObject {
	c := d.c
	value := widget.NewCaption("").Mono().In(widget.ColorText)
	slide := fynewidget.NewSlider(n.low, n.high)
	slide.Step = n.step
	reset := widget.NewIconButton("retry", tr("Back to the default: %s", tr(n.standard)), nil)
	setting := false
	write := func() {
		v := n.get(&c.conv.Sampling)
		setting = true
		if v == nil {
			value.SetIn(tr(n.standard), widget.ColorDim)
			slide.SetValue(n.low + (n.high-n.low)*restAt(n))
		} else {
			value.SetIn(trim(*v), widget.ColorText)
			slide.SetValue(*v)
		}
		setting = false
		reset.Hidden = v == nil
	}
	head := widget.H(6, widget.Flex(widget.NewCaption(tr(n.name))), value, reset)
	slide.OnChanged = func(v float64) {
		if setting {
			return
		}
		n.set(&c.conv.Sampling, &v)
		value.SetIn(trim(v), widget.ColorText)
		reset.Hidden = false
		head.Refresh()
	}
	slide.OnChangeEnded = func(float64) { d.edited() }
	reset.OnTapped = func() {
		n.set(&c.conv.Sampling, nil)
		write()
		head.Refresh()
		d.edited()
	}
	write()
	return widget.NewTipped(widget.V(0, widget.Sized(0, 28, head), container.NewThemeOverride(slide, railed{c.a.theme})), tr(n.words))
}

// restAt is where the knob stands while the default holds.
func restAt(n number) float64 {
	switch {
	case n.low < 0:
		return 0.5
	case n.name == "Temperature":
		return 0.35
	case n.name == "Top-p":
		return 0.95
	}
	return 0
}

func trim(v float64) string { return strconv.FormatFloat(v, 'g', 5, 64) }

func (d *drawer) thinking() fyne.CanvasObject {
	c := d.c
	choices := []string{tr("As the pack does"), tr("On"), tr("Off")}
	s := fynewidget.NewSelect(choices, nil)
	at := 0
	if t := c.conv.Sampling.Thinking; t != nil {
		at = 2
		if *t {
			at = 1
		}
	}
	s.SetSelectedIndex(at)
	s.OnChanged = func(string) {
		switch s.SelectedIndex() {
		case 0:
			c.conv.Sampling.Thinking = nil
		default:
			on := s.SelectedIndex() == 1
			c.conv.Sampling.Thinking = &on
		}
		d.edited()
	}
	return widget.V(5, widget.NewCaption(tr("Thinking before the answer")), s)
}

func (d *drawer) text(name, hint, value string, set func(string)) fyne.CanvasObject {
	e := d.c.a.field(hint)
	if strings.Contains(hint, tr("one a line")) {
		e.MultiLine = true
	}
	e.SetText(value)
	e.OnChanged = func(s string) {
		if !d.filling {
			set(s)
			d.edited()
		}
	}
	var o fyne.CanvasObject = e
	if e.MultiLine {
		o = widget.Sized(0, theme.TextSize()*4, e)
	}
	return widget.V(5, widget.NewCaption(name), o)
}

// savePreset asks for a name in place and keeps prompt and sampling under it.
func (d *drawer) savePreset() {
	c := d.c
	e := c.a.field(tr("Name of the preset"))
	e.SetText(c.conv.Preset)
	save := func() {
		name := strings.TrimSpace(e.Text)
		if name == "" || c.a.store == nil {
			return
		}
		p := store.Preset{Name: name, System: c.conv.System, Sampling: c.conv.Sampling}
		c.a.background(func() error { return c.a.store.SavePreset(p) }, func(err error) {
			if err != nil {
				c.a.fail(err)
				return
			}
			c.conv.Preset = name
			c.saveConversation()
			d.reload()
		})
	}
	e.OnSubmitted = func(string) { save() }
	ok := fynewidget.NewButton(tr("Save"), save)
	ok.Importance = fynewidget.HighImportance
	row := widget.H(6, widget.Flex(e), ok)
	objs := append([]fyne.CanvasObject{}, d.body.Objects[:2]...)
	d.body.Objects = append(append(objs, row), d.body.Objects[2:]...)
	d.body.Refresh()
	c.a.win.Canvas().Focus(e)
}

func (d *drawer) deletePreset() {
	c := d.c
	p, ok := d.preset(c.conv.Preset)
	if !ok {
		return
	}
	c.a.background(func() error { return c.a.store.DeletePreset(p.Name) }, func(err error) {
		if err != nil {
			c.a.fail(err)
			return
		}
		c.conv.Preset = ""
		c.saveConversation()
		d.reload()
		c.a.frame.toasts.Undo(fmt.Sprintf(tr("Deleted the preset “%s”."), p.Name), func() {
			c.a.background(func() error { return c.a.store.SavePreset(p) }, func(err error) {
				c.a.failIf(err)
				d.reload()
			})
		}, nil)
	})
}
