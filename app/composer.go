package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"

	"outcrop/app/widget"
)

// composer is where a turn is written.
type composer struct {
	c        *chatPage
	entry    *widget.Entry
	send     *widget.IconButton
	ring     *widget.Ring
	pack     *widget.Chip
	preset   *widget.Chip
	attached []attachment
	chips    *fyne.Container
	row      *fyne.Container
	root     *fyne.Container
	lines    int
	stopSave func()
}

// attachment is text that goes with a turn but is not shown in the field: a
// field slows down with every thousand characters.
type attachment struct{ name, text string }

// What the field takes itself, and what a file may have.
const (
	pasteLimit = 4000
	fileLimit  = 1 << 20
	mostLines  = 8
)

func newComposer(c *chatPage) *composer {
	o := &composer{c: c, lines: 1, chips: widget.Flow(6)}
	o.entry = c.a.field(tr("Write a message"))
	o.entry.MultiLine = true
	o.entry.Wrapping = fyne.TextWrapWord
	o.entry.Scroll = fyne.ScrollVerticalOnly
	own := o.entry.OnKey
	o.entry.OnKey = func(k fyne.KeyName) bool { return o.key(k) || own(k) }
	o.entry.OnShortcut = o.shortcut
	o.entry.OnChanged = func(string) { o.changed() }

	o.pack = widget.NewChip("packs", "", true, o.choosePack)
	o.pack.Tip = tr("The pack that answers")
	o.preset = widget.NewChip("sliders", tr("Default"), true, o.choosePreset)
	o.preset.Tip = tr("System prompt and sampling")
	o.ring = widget.NewRing(nil)
	o.send = widget.NewIconButton("send", tr("Send (Enter)"), o.submit).In(widget.ColorAccent)
	o.chips.Hide()
	o.ring.Hide()
	o.row = widget.H(6, o.pack, o.preset, widget.Space(), o.ring, o.send)
	field := container.NewThemeOverride(o.entry, bare{c.a.theme})
	box := widget.V(4, o.chips, &fyne.Container{Layout: &entryLayout{o}, Objects: []fyne.CanvasObject{field}}, o.row)
	ground := widget.NewGround(widget.ColorSurface, widget.ColorLine, 10)
	o.entry.OnFocus = func(in bool) {
		ground.Line = widget.ColorLine
		if in {
			ground.Line = widget.ColorAccent
		}
		ground.Refresh()
	}
	o.root = widget.Over(ground, widget.Inset(4, 8, 7, 8, box))
	o.packs()
	o.engine(c.a.engine)
	return o
}

// entryLayout grows the field with its text, to eight lines.
type entryLayout struct{ o *composer }

func (l *entryLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) { objs[0].Resize(s) }

func (l *entryLayout) MinSize([]fyne.CanvasObject) fyne.Size {
	line := fyne.MeasureText("M", theme.TextSize(), fyne.TextStyle{}).Height
	return fyne.NewSize(200, float32(l.o.lines)*line+2*theme.InnerPadding()+2)
}

// count is how many rows the text takes at the field's width.
func (o *composer) count() int {
	width := o.entry.Size().Width - 2*theme.InnerPadding()
	if width <= 40 {
		width = 500
	}
	n := 0
	for line := range strings.SplitSeq(o.entry.Text, "\n") {
		w := fyne.MeasureText(line, theme.TextSize(), fyne.TextStyle{}).Width
		n += 1 + int(w/(width*0.97))
		if n > mostLines {
			break
		}
	}
	return max(1, min(mostLines, n))
}

func (o *composer) changed() {
	if n := o.count(); n != o.lines {
		o.lines = n
		widget.Relayout(o.c.root)
	}
	if o.stopSave != nil {
		o.stopSave()
	}
	t := time.AfterFunc(1500*time.Millisecond, func() { o.c.a.ui(o.c.saveDraft) })
	o.stopSave = func() { t.Stop() }
}

// key takes Enter, Esc and, in an empty field, Up.
func (o *composer) key(k fyne.KeyName) bool {
	switch k {
	case fyne.KeyReturn, fyne.KeyEnter:
		mod := modifiers()
		breaks := mod&fyne.KeyModifierShift != 0
		if o.c.a.settings.NewLine {
			breaks = mod&fyne.KeyModifierControl == 0
		}
		if breaks {
			o.entry.TypedRune('\n')
			return true
		}
		o.submit()
		return true
	case fyne.KeyUp:
		if o.entry.Text == "" && o.c.stream == nil {
			return o.c.editLast()
		}
	case fyne.KeyPageUp, fyne.KeyPageDown:
		return o.c.key(k)
	}
	return false
}

// shortcut catches a paste of much text, and lets the window's keys through.
func (o *composer) shortcut(s fyne.Shortcut) bool {
	if _, ok := s.(*fyne.ShortcutPaste); ok {
		text := o.c.a.fyne.Clipboard().Content()
		if len(text) > pasteLimit {
			o.attach(tr("Pasted text"), text)
			return true
		}
		return false
	}
	return o.c.a.typed(s)
}

func (o *composer) submit() {
	if o.c.stream != nil && o.c.stream.conv == o.c.conv.ID {
		o.c.stop()
		return
	}
	text := strings.TrimSpace(o.entry.Text)
	if text == "" && len(o.attached) == 0 {
		return
	}
	for _, f := range o.attached {
		fence := "```"
		for strings.Contains(f.text, fence) {
			fence += "`"
		}
		text += fmt.Sprintf("\n\n%s:\n%s\n%s\n%s", f.name, fence, strings.TrimRight(f.text, "\n"), fence)
	}
	if o.c.send(strings.TrimSpace(text)) {
		o.set("")
		o.attached = nil
		o.drawChips()
	}
}

// set replaces what stands in the field.
func (o *composer) set(text string) {
	o.entry.SetText(text)
	o.entry.CursorRow, o.entry.CursorColumn = 0, 0
	if lines := strings.Split(text, "\n"); text != "" {
		o.entry.CursorRow, o.entry.CursorColumn = len(lines)-1, utf8.RuneCountInString(lines[len(lines)-1])
	}
	o.entry.Refresh()
}

// attach puts text beside the field.
func (o *composer) attach(name, text string) {
	o.attached = append(o.attached, attachment{name, text})
	o.drawChips()
}

func (o *composer) drawChips() {
	o.chips.Objects = nil
	for i, f := range o.attached {
		chip := widget.NewChip("attach", fmt.Sprintf("%s, %s", f.name, bytes64(int64(len(f.text)))), false, func() {
			o.attached = append(o.attached[:i:i], o.attached[i+1:]...)
			o.drawChips()
		})
		chip.Tip = tr("Press to take it away")
		o.chips.Add(chip)
	}
	o.chips.Hidden = len(o.attached) == 0
	widget.Relayout(o.c.root)
}

// dropped takes text files; packs are left to the list of packs.
func (c *chatPage) dropped(paths []string) bool {
	var rest []string
	for _, p := range paths {
		if strings.EqualFold(filepath.Ext(p), ".gguf") {
			rest = append(rest, p)
			continue
		}
		info, err := os.Stat(p)
		if err != nil || info.IsDir() {
			rest = append(rest, p)
			continue
		}
		if info.Size() > fileLimit {
			c.a.fail(fmt.Errorf("%s has %s: a text file up to %s can go with a message", filepath.Base(p), bytes64(info.Size()), bytes64(fileLimit)))
			continue
		}
		var text []byte
		c.a.background(func() (err error) {
			if text, err = os.ReadFile(p); err == nil && !utf8.Valid(text) {
				err = fmt.Errorf("%s is not text: this engine reads text only", filepath.Base(p))
			}
			return err
		}, func(err error) {
			if err != nil {
				c.a.fail(err)
				return
			}
			c.composer.attach(filepath.Base(p), string(text))
		})
	}
	if len(rest) > 0 {
		c.a.packs.add(rest)
	}
	return true
}

// streaming turns the send button into a stop button and back.
func (o *composer) streaming(on bool) {
	if on {
		o.send.SetIcon("stop", tr("Stop (Esc)"))
	} else {
		o.send.SetIcon("send", tr("Send (Enter)"))
	}
}

// context shows how much of the context is used.
func (o *composer) context(used, size int) {
	o.ring.Hidden = size == 0
	if size > 0 {
		o.ring.Set(float64(used)/float64(size), tr("%s of %s tokens of context used", tokens(used), tokens(size)))
	}
}

func (o *composer) engine(EngineState) { o.packs() }

// packs writes the pack's name.
func (o *composer) packs() {
	name := tr("Choose a pack")
	if e, ok := o.c.a.packs.current(); ok {
		name = e.Name
	}
	if o.pack.Text() != name {
		o.pack.Set(name)
		widget.Relayout(o.row)
	}
}

func (o *composer) choosePack() {
	var items []*fyne.MenuItem
	now, _ := o.c.a.packs.current()
	for i, e := range o.c.a.packs.entries {
		if i == 14 {
			break
		}
		it := fyne.NewMenuItem(e.Name, func() { o.c.choosePack(e.Name) })
		it.Checked = e.Name == now.Name
		items = append(items, it)
	}
	items = append(items, fyne.NewMenuItemSeparator(), fyne.NewMenuItem(tr("All packs"), func() { o.c.a.visit("packs") }))
	o.c.a.menu(o.pack, items...)
}

// choosePack makes a pack the one that answers. It is loaded with the next
// turn, or at once when an engine runs already.
func (c *chatPage) choosePack(name string) {
	e, ok := c.a.packs.named(name)
	if !ok {
		return
	}
	c.a.change(func(s *Settings) { s.Pack = e.Name })
	c.a.packs.changed()
	if c.stream == nil && c.a.engine.Phase != EngineOff && !strings.EqualFold(c.a.engine.Pack, e.Name) {
		c.a.start(e)
	}
}

func (o *composer) choosePreset() {
	var items []*fyne.MenuItem
	for _, p := range append([]presetItem{{name: "", label: tr("Default")}}, o.c.drawer.presetItems()...) {
		it := fyne.NewMenuItem(p.label, func() { o.c.drawer.usePreset(p.name) })
		it.Checked = p.name == o.c.conv.Preset
		items = append(items, it)
	}
	items = append(items, fyne.NewMenuItemSeparator(), fyne.NewMenuItem(tr("Edit system prompt and sampling"), o.c.toggleDrawer))
	o.c.a.menu(o.preset, items...)
}
