package widget

import (
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"
	fynewidget "fyne.io/fyne/v2/widget"
)

// tap is what every own control shares: it can be tapped, hovered, focused
// and worked with Enter or Space, and it may have a tip.
type tap struct {
	fynewidget.BaseWidget
	OnTapped func()
	Tip      string
	off      bool // disabled
	hovered  bool
	focused  bool
	self     fyne.Widget
	ground   *Ground
	rest     fyne.ThemeColorName // fill when nothing happens
	changed  func()              // after hover or focus changed
}

func (t *tap) init(self fyne.Widget, radius float32) {
	t.self = self
	t.ground = NewGround("", "", radius)
	t.ExtendBaseWidget(self)
}

func (t *tap) paint() {
	fill, line := t.rest, fyne.ThemeColorName("")
	if t.hovered && !t.off {
		fill = "hover"
		if t.rest != "" {
			fill = ColorRaised
		}
	}
	if t.focused {
		line = ColorAccent
	}
	t.ground.Fill, t.ground.Line = fill, line
	t.ground.Refresh()
	if t.changed != nil {
		t.changed()
	}
}

// Tapped runs the action.
func (t *tap) Tapped(*fyne.PointEvent) { t.act() }

func (t *tap) act() {
	hideTip(t.self)
	if t.OnTapped != nil && !t.off {
		t.OnTapped()
	}
}

// Enable and Disable follow Fyne's own names.
func (t *tap) Enable() { t.setOff(false) }

// Disable makes the control do nothing.
func (t *tap) Disable() { t.setOff(true) }

// Disabled says whether it does nothing now.
func (t *tap) Disabled() bool { return t.off }

func (t *tap) setOff(off bool) {
	if t.off != off {
		t.off = off
		t.self.Refresh()
	}
}

// MouseIn begins hovering.
func (t *tap) MouseIn(*desktop.MouseEvent) {
	t.hovered = true
	t.paint()
	showTip(t.self, t.Tip)
}

// MouseMoved does nothing.
func (t *tap) MouseMoved(*desktop.MouseEvent) {}

// MouseOut ends hovering.
func (t *tap) MouseOut() {
	t.hovered = false
	t.paint()
	hideTip(t.self)
}

// Cursor is a hand over what can be pressed.
func (t *tap) Cursor() desktop.Cursor {
	if t.off || t.OnTapped == nil {
		return desktop.DefaultCursor
	}
	return desktop.PointerCursor
}

// FocusGained shows the focus ring and the tip.
func (t *tap) FocusGained() {
	t.focused = true
	t.paint()
	showTip(t.self, t.Tip)
}

// FocusLost takes both away.
func (t *tap) FocusLost() {
	t.focused = false
	t.paint()
	hideTip(t.self)
}

// TypedRune presses on space.
func (t *tap) TypedRune(r rune) {
	if r == ' ' {
		t.act()
	}
}

// TypedKey presses on Enter.
func (t *tap) TypedKey(e *fyne.KeyEvent) {
	if e.Name == fyne.KeyReturn || e.Name == fyne.KeyEnter {
		t.act()
	}
}

// IconButton is a small button of an icon alone; its words are in the tip.
type IconButton struct {
	tap
	// OnHover is told when pointer or focus comes and goes.
	OnHover func(in bool)
	name    string
	color   fyne.ThemeColorName
	on      bool
	icon    *fynewidget.Icon
}

// NewIconButton makes a button from one of our icons.
func NewIconButton(icon, tip string, tapped func()) *IconButton {
	b := &IconButton{name: icon, color: ColorDim, icon: fynewidget.NewIcon(IconIn(icon, ColorDim))}
	b.OnTapped, b.Tip = tapped, tip
	b.changed = func() {
		b.tint()
		if b.OnHover != nil {
			b.OnHover(b.hovered || b.focused)
		}
	}
	b.init(b, 6)
	return b
}

// In sets the colour of the icon and gives the button back, for building.
func (b *IconButton) In(c fyne.ThemeColorName) *IconButton { b.color = c; b.tint(); return b }

// SetIcon changes the icon and the tip.
func (b *IconButton) SetIcon(icon, tip string) {
	if icon != b.name || tip != b.Tip {
		b.name, b.Tip = icon, tip
		b.tint()
	}
}

// SetOn shows a switch as on or off.
func (b *IconButton) SetOn(on bool) {
	b.on = on
	b.tint()
}

// Flash shows another icon for a moment, as an answer to a press.
func (b *IconButton) Flash(icon string) {
	was := b.name
	b.icon.SetResource(IconIn(icon, ColorGood))
	time.AfterFunc(1200*time.Millisecond, func() {
		fyne.Do(func() {
			if b.name == was {
				b.tint()
			}
		})
	})
}

func (b *IconButton) tint() {
	c := b.color
	switch {
	case b.off:
		c = "disabled"
	case b.on:
		c = ColorAccent
	case b.hovered && c == ColorDim:
		c = ColorText
	}
	setIcon(b.icon, IconIn(b.name, c))
}

// setIcon changes an icon; the same one costs nothing.
func setIcon(i *fynewidget.Icon, r fyne.Resource) {
	if i.Resource != r {
		i.SetResource(r)
	}
}

// Refresh follows the theme.
func (b *IconButton) Refresh() {
	b.tint()
	b.BaseWidget.Refresh()
}

// AccessibilityLabel is the tip.
func (b *IconButton) AccessibilityLabel() string { return b.Tip }

// CreateRenderer centres the icon.
func (b *IconButton) CreateRenderer() fyne.WidgetRenderer {
	b.ExtendBaseWidget(b)
	return fynewidget.NewSimpleRenderer(Over(b.ground, Pad(5, Sized(themeSize("iconInline"), themeSize("iconInline"), b.icon))))
}

// Chip is a small pill: an icon, words, and a mark that it opens something.
type Chip struct {
	tap
	icon  string
	image *fynewidget.Icon
	text  *Text
	more  *fynewidget.Icon
}

// NewChip makes a chip; icon may be "". Opens shows the mark of a menu.
func NewChip(icon, text string, opens bool, tapped func()) *Chip {
	c := &Chip{icon: icon, text: newText(text, ColorText, SizeCaption, fyne.TextStyle{}).Cutting(180)}
	if icon != "" {
		c.image = fynewidget.NewIcon(IconIn(icon, ColorDim))
	}
	if opens {
		c.more = fynewidget.NewIcon(IconIn("down", ColorDim))
	}
	c.OnTapped = tapped
	c.rest = ColorSurface
	c.init(c, 6)
	c.paint()
	return c
}

// Set changes the words.
func (c *Chip) Set(s string) {
	if c.text.Text() != s {
		c.text.Set(s)
		c.Refresh()
	}
}

// Text is what the chip says.
func (c *Chip) Text() string { return c.text.Text() }

// SetColor changes the colour of the words.
func (c *Chip) SetColor(n fyne.ThemeColorName) { c.text.SetIn(c.text.Text(), n) }

func (c *Chip) paintLine() {
	if !c.focused {
		c.ground.Line = ColorLine
		c.ground.Refresh()
	}
}

// CreateRenderer lays the parts out in a row.
func (c *Chip) CreateRenderer() fyne.WidgetRenderer {
	c.ExtendBaseWidget(c)
	c.changed = c.paintLine
	c.paint()
	row := H(5)
	if c.image != nil {
		row.Add(Sized(15, 15, c.image))
	}
	row.Add(c.text)
	if c.more != nil {
		row.Add(Sized(12, 12, c.more))
	}
	return fynewidget.NewSimpleRenderer(Over(c.ground, Inset(5, 9, 5, 9, row)))
}

// Link is a line of text that can be pressed.
type Link struct {
	tap
	text *Text
}

// NewLink makes one in the accent colour and caption size.
func NewLink(text string, tapped func()) *Link {
	l := &Link{text: newText(text, ColorAccent, SizeCaption, fyne.TextStyle{})}
	l.OnTapped = tapped
	l.init(l, 4)
	return l
}

// Set changes the words.
func (l *Link) Set(s string) { l.text.Set(s) }

// Text is what the link says.
func (l *Link) Text() string { return l.text.Text() }

// Styled changes colour and size and gives the link back, for building.
func (l *Link) Styled(c fyne.ThemeColorName, size fyne.ThemeSizeName) *Link {
	l.text.Color, l.text.Role = c, size
	return l
}

// Cutting lets the words be cut down to a width, and gives the link back.
func (l *Link) Cutting(w float32) *Link { l.text.Cut = w; return l }

// CreateRenderer shows the words.
func (l *Link) CreateRenderer() fyne.WidgetRenderer {
	l.ExtendBaseWidget(l)
	return fynewidget.NewSimpleRenderer(Over(l.ground, Inset(3, 5, 3, 5, l.text)))
}

// Row is a whole row that can be pressed, around anything.
type Row struct {
	tap
	content fyne.CanvasObject
	// OnMenu opens what the right button opens; OnKey sees keys that the row
	// does not know.
	OnMenu func(at fyne.Position)
	OnKey  func(fyne.KeyName)
	// OnHover is told when the pointer comes and goes.
	OnHover func(in bool)
}

// NewRow makes a row.
func NewRow(content fyne.CanvasObject, tapped func()) *Row {
	r := &Row{content: content}
	r.OnTapped = tapped
	r.init(r, 6)
	r.changed = func() {
		if r.OnHover != nil {
			r.OnHover(r.hovered || r.focused)
		}
	}
	return r
}

// SetSelected fills the row as the chosen one.
func (r *Row) SetSelected(on bool) {
	r.rest = ""
	if on {
		r.rest = ColorRaised
	}
	r.paint()
}

// TappedSecondary opens the menu.
func (r *Row) TappedSecondary(e *fyne.PointEvent) {
	if r.OnMenu != nil {
		r.OnMenu(e.AbsolutePosition)
	}
}

// TypedKey presses on Enter and hands other keys on.
func (r *Row) TypedKey(e *fyne.KeyEvent) {
	switch e.Name {
	case fyne.KeyReturn, fyne.KeyEnter:
		r.act()
	default:
		if r.OnKey != nil {
			r.OnKey(e.Name)
		}
	}
}

// CreateRenderer shows the content over the row's ground.
func (r *Row) CreateRenderer() fyne.WidgetRenderer {
	r.ExtendBaseWidget(r)
	return fynewidget.NewSimpleRenderer(Over(r.ground, r.content))
}

// Hover tells when the pointer comes over an object and goes.
type Hover struct {
	fynewidget.BaseWidget
	o   fyne.CanvasObject
	f   func(in bool)
	tip string
}

// NewHover watches an object; keys and presses go to it as before.
func NewHover(o fyne.CanvasObject, f func(in bool)) *Hover {
	h := &Hover{o: o, f: f}
	h.ExtendBaseWidget(h)
	return h
}

// Object is what is watched.
func (h *Hover) Object() fyne.CanvasObject { return h.o }

// MouseIn says that the pointer came.
func (h *Hover) MouseIn(*desktop.MouseEvent) { h.f(true) }

// MouseMoved does nothing.
func (h *Hover) MouseMoved(*desktop.MouseEvent) {}

// MouseOut says that it went.
func (h *Hover) MouseOut() { h.f(false) }

// SetWindow hands on what can be seen.
func (h *Hover) SetWindow(top, bottom float32) {
	if w, ok := h.o.(Windowed); ok {
		w.SetWindow(top, bottom)
	}
}

// SetWheel hands on what takes wheel movement.
func (h *Hover) SetWheel(f func(*fyne.ScrollEvent)) {
	if w, ok := h.o.(wheeled); ok {
		w.SetWheel(f)
	}
}

// CreateRenderer shows the object.
func (h *Hover) CreateRenderer() fyne.WidgetRenderer { return fynewidget.NewSimpleRenderer(Over(h.o)) }

// NewTipped gives an object a tip that comes when the pointer rests on it.
func NewTipped(o fyne.CanvasObject, tip string) *Hover {
	h := NewHover(o, nil)
	h.tip = tip
	h.f = func(in bool) {
		if in {
			showTip(h, h.tip)
		} else {
			hideTip(h)
		}
	}
	return h
}

// SetTip changes the tip.
func (h *Hover) SetTip(tip string) { h.tip = tip }

// Tip is what the tip says.
func (h *Hover) Tip() string { return h.tip }

// Content is what the row shows.
func (r *Row) Content() fyne.CanvasObject { return r.content }
