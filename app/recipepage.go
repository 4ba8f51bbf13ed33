package app

import (
	"fmt"
	"os"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// recipeOptions are the wishes in force for a target.
func (p *cardPage) options() recipe.Options {
	return recipe.Options{Card: p.card, AsReported: p.asIs, Switch: p.a.settings.Recipe[p.target]}
}

// recipeEnv is the recipe of our own engine as environment, with the person's
// switches; it is what the engine is started with. It is that of the device it
// is for, as a recipe may hide all cards but one; of the best card when that is no address.
func (a *App) recipeEnv(device string) []string {
	if !a.machine.known {
		return nil
	}
	o := recipe.Options{Switch: a.settings.Recipe[recipe.Outcrop]}
	if c := a.machine.machine.Card(gpu.PCI(device)); c != nil {
		o.Card = c.PCI
	} else if x := a.offer(device); x != nil && a.machine.machine.Card(x.PCI) != nil {
		o.Card = x.PCI
	} else if strings.Contains(device, ",") {
		o.Split = true // several stay visible: the engine makes a context for each
	}
	r, err := recipe.For(a.machine.machine, recipe.Outcrop, o)
	if err != nil {
		return nil
	}
	return r.Apply(os.Environ())
}

// recipe shows the recipe of the card for the target, line by line.
func (p *cardPage) recipe() {
	m := p.a.machine.machine
	r, err := recipe.For(m, p.target, p.options())
	head := widget.H(8, widget.Flex(widget.NewHeading(tr("Recipe"))), p.targetChip(), p.asReportedChip())
	box := widget.V(10, head)
	if err != nil {
		box.Add(notice(widget.StateWatch, sentence(err), "", nil))
		p.body.Add(box)
		return
	}
	box.Add(widget.NewNote(r.Title))
	if len(r.Lines) == 0 {
		box.Add(widget.NewParagraph(tr("No variable is needed here: the program runs as it is.")))
	} else {
		box.Add(p.lines(r))
	}
	if len(r.Flags) > 0 {
		var rows [][]string
		for _, f := range r.Flags {
			rows = append(rows, []string{strings.TrimSpace(f.Name + " " + f.Value), first(f.Why), joinDots(f.Source, string(f.Confidence))})
		}
		box.Add(widget.V(6, widget.NewText(tr("Options on the command line")).Bold(), grid([]string{tr("option"), tr("why"), tr("source")}, rows)))
	}
	if len(r.Limits) > 0 {
		var rows [][]string
		for _, l := range r.Limits {
			v := fmt.Sprint(l.Value)
			if !strings.Contains(l.Name, "percent") && !strings.Contains(l.Name, "-per-") && !strings.HasSuffix(l.Name, "-ms") {
				v = bytes64(l.Value)
			}
			rows = append(rows, []string{l.Name + ": " + v, first(l.Why), joinDots(l.Source, string(l.Confidence))})
		}
		box.Add(widget.V(6, widget.NewText(tr("Limits that every plan obeys")).Bold(), grid([]string{tr("limit"), tr("why"), tr("source")}, rows)))
	}
	for _, n := range r.Notes {
		box.Add(widget.HTop(8, widget.NewLight(widget.StateInfo), widget.Flex(widget.NewNote(first(n.Text)+" ("+joinDots(n.Source, string(n.Confidence))+")").In(widget.ColorText))))
	}
	p.leftOut(box, r)
	box.Add(p.exports(r))
	p.body.Add(box)
}

func (p *cardPage) targetChip() fyne.CanvasObject {
	chip := widget.NewChip("terminal", tr("for %s", p.target), true, nil)
	chip.Tip = tr("The program the recipe is for")
	chip.OnTapped = func() {
		var items []*fyne.MenuItem
		for _, t := range recipe.Targets() {
			it := fyne.NewMenuItem(t, func() { p.target = t; p.draw() })
			it.Checked = t == p.target
			items = append(items, it)
		}
		p.a.menu(chip, items...)
	}
	return chip
}

func (p *cardPage) asReportedChip() fyne.CanvasObject {
	words := tr("our findings")
	if p.asIs {
		words = tr("as reported")
	}
	chip := widget.NewChip("history", words, false, func() { p.asIs = !p.asIs; p.draw() })
	chip.Tip = tr("Change between what we found to be right and the original lines of the reports")
	return chip
}

// lines is the table of variables.
func (p *cardPage) lines(r recipe.Recipe) fyne.CanvasObject {
	env := p.a.machine.machine.Host.Env
	now := map[string]recipe.Change{}
	for _, c := range r.Diff(env) {
		now[c.Var] = c
	}
	box := widget.V(0)
	for i, l := range r.Lines {
		if i > 0 {
			box.Add(widget.Rule())
		}
		box.Add(p.line(l, now[l.Var]))
	}
	return widget.Over(widget.NewGround(widget.ColorSurface, widget.ColorLine, 8), widget.Inset(2, 12, 2, 8, box))
}

// line is one variable: switch, name and value, why, source and confidence,
// and what the environment has now.
func (p *cardPage) line(l recipe.Line, now recipe.Change) fyne.CanvasObject {
	on := p.a.check(!l.Off, func(v bool) { p.switchLine(l.Var, v) })
	value := "= " + l.Value
	if l.Unset {
		value = tr("unset")
	}
	color := widget.ColorText
	if l.Off {
		color = widget.ColorDim
	}
	name := widget.V(2, widget.NewCaption(l.Var).Mono().In(color).Cutting(100), widget.NewCaption(value).Mono().In(widget.ColorRAM).Cutting(100))
	state := ""
	switch now.Kind {
	case "add":
		state = tr("not set now")
	case "change":
		state = tr("now %s", now.Now)
	case "remove":
		state = tr("set now to %s", now.Now)
	case "same":
		state = tr("set already")
		if l.Unset {
			state = tr("not set, as it should be")
		}
	}
	if state != "" {
		name.Add(widget.NewCaption(state).Cutting(100))
	}
	why := widget.V(2, widget.NewNote(first(l.Why)).In(color))
	if l.Obsolete != "" && l.Obsolete != "nothing planned" {
		why.Add(widget.NewNote(tr("Goes away with: %s", l.Obsolete)))
	}
	if l.Reported != "" && l.Reported != l.Value {
		why.Add(widget.NewNote(tr("The report had: %s", l.Reported)))
	}
	source := widget.V(2, widget.NewCaption(l.Source).Cutting(60), confidence(l.Confidence))
	return widget.Inset(8, 0, 8, 0, &fyne.Container{Layout: lineLayout{}, Objects: []fyne.CanvasObject{on, name, why, source}})
}

// confidence is a word with a mark.
func confidence(c recipe.Confidence) fyne.CanvasObject {
	state := widget.StateInfo
	switch c {
	case recipe.Measured:
		state = widget.StateGood
	case recipe.Hypothesis:
		state = widget.StateWatch
	}
	n := theme.CaptionTextSize() + 2
	return widget.H(5, widget.Sized(n, n, fynewidget.NewIcon(widget.IconIn(state.Icon(), state.Color()))), widget.NewCaption(tr(string(c))))
}

// lineLayout is the four columns of the recipe.
type lineLayout struct{}

func (lineLayout) columns(width float32) [4]float32 {
	sw := float32(34)
	src := max(130, width*0.18)
	name := max(170, width*0.32)
	return [4]float32{sw, name, max(120, width-sw-name-src-24), src}
}

func (l lineLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	x := float32(0)
	for i, w := range l.columns(s.Width) {
		h := widget.HeightAt(objs[i], w)
		objs[i].Resize(fyne.NewSize(w, h))
		y := float32(0)
		if i == 0 {
			y = -8 // a check box has room above its box
		}
		objs[i].Move(fyne.NewPos(x, y))
		x += w + 8
	}
}

func (l lineLayout) MinSize(objs []fyne.CanvasObject) fyne.Size {
	h := float32(0)
	for _, o := range objs[1:] {
		h = max(h, o.MinSize().Height)
	}
	return fyne.NewSize(460, h)
}

// switchLine remembers the person's choice for a variable.
func (p *cardPage) switchLine(name string, on bool) {
	p.a.change(func(s *Settings) {
		if s.Recipe == nil {
			s.Recipe = map[string]map[string]bool{}
		}
		m := map[string]bool{}
		for k, v := range s.Recipe[p.target] {
			m[k] = v
		}
		m[name] = on
		s.Recipe[p.target] = m
	})
	p.draw()
	if p.target == recipe.Outcrop && p.a.engine.Phase == EngineReady {
		p.a.frame.toasts.Push(widget.Toast{State: widget.StateInfo, Text: tr("The running engine keeps its environment until it is started again."),
			Button: tr("Start again"), Do: p.a.startLast})
	}
}

// leftOut lists lines of the reports that we do not follow, each with why.
func (p *cardPage) leftOut(box *fyne.Container, r recipe.Recipe) {
	if len(r.LeftOut) == 0 {
		return
	}
	words := tr("Show %d reported lines that are left out", len(r.LeftOut))
	if p.left {
		words = tr("Hide the lines that are left out")
	}
	box.Add(widget.H(0, widget.NewLink(words, func() { p.left = !p.left; p.draw() })))
	if !p.left {
		return
	}
	var rows [][]string
	for _, l := range r.LeftOut {
		rows = append(rows, []string{l.Var + "=" + l.Value, l.Why, joinDots(l.Source, string(l.Confidence))})
	}
	box.Add(grid([]string{tr("line"), tr("why not"), tr("source")}, rows))
}

// exports is the recipe as text in a format, to copy or save.
func (p *cardPage) exports(r recipe.Recipe) fyne.CanvasObject {
	text, err := r.Export(p.format)
	row := widget.H(6, widget.NewCaption(tr("As text")))
	for _, f := range recipe.Formats() {
		chip := widget.NewChip("", f, false, func() { p.format = f; p.draw() })
		if f == p.format {
			chip.SetColor(widget.ColorAccent)
		}
		row.Add(chip)
	}
	row.Add(widget.Space())
	row.Add(widget.NewChip("save", tr("Save"), false, func() {
		p.a.saveFile(exportName(p.target, p.format), func(path string) error { return writeFile(path, text) })
	}))
	if err != nil {
		return widget.V(8, row, widget.NewNote(sentence(err)).In(widget.ColorAct))
	}
	lang := map[string]string{"sh": "sh", "fish": "fish", "ps1": "powershell", "env": "sh", "systemd": "ini", "docker": "sh", "json": "json"}[p.format]
	return widget.V(8, row, widget.NewCode(lang, strings.TrimRight(text, "\n")))
}

func exportName(target, format string) string {
	switch format {
	case "env":
		return target + ".env"
	case "systemd":
		return target + ".conf"
	case "docker":
		return target + "-docker.sh"
	}
	return target + "." + format
}

func writeFile(path, text string) error { return os.WriteFile(path, []byte(text), 0o644) }
