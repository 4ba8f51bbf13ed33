package widget

import (
	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"
)

// RailItem is one page of the rail.
type RailItem struct {
	ID, Icon, Label, Tip string
	Bottom               bool // stands at the lower end
}

// Rail is the column of pages: icons with words, icons alone when narrow.
type Rail struct {
	fynewidget.BaseWidget
	OnSelect func(id string)
	items    []RailItem
	buttons  []*railButton
	narrow   bool
	box      *fyne.Container
}

// NewRail makes a rail of items.
func NewRail(items []RailItem) *Rail {
	r := &Rail{items: items}
	l := &railLayout{}
	r.box = &fyne.Container{Layout: l}
	for _, it := range items {
		b := newRailButton(it)
		b.OnTapped = func() {
			if r.OnSelect != nil {
				r.OnSelect(it.ID)
			}
		}
		r.buttons = append(r.buttons, b)
		l.bottom = append(l.bottom, it.Bottom)
		r.box.Objects = append(r.box.Objects, b)
	}
	r.ExtendBaseWidget(r)
	return r
}

// Select marks a page as the one shown.
func (r *Rail) Select(id string) {
	for _, b := range r.buttons {
		b.choose(b.item.ID == id)
	}
}

// Selected is the page marked.
func (r *Rail) Selected() string {
	for _, b := range r.buttons {
		if b.chosen {
			return b.item.ID
		}
	}
	return ""
}

// SetBadge marks a page with a coloured dot, or takes it away with "".
func (r *Rail) SetBadge(id string, c fyne.ThemeColorName, tip string) {
	for _, b := range r.buttons {
		if b.item.ID == id {
			b.mark(c, tip)
		}
	}
}

// SetNarrow shows icons alone.
func (r *Rail) SetNarrow(on bool) {
	if r.narrow == on {
		return
	}
	r.narrow = on
	for _, b := range r.buttons {
		b.shrink(on)
	}
	r.box.Refresh()
	r.Refresh()
}

// Narrow says whether icons stand alone.
func (r *Rail) Narrow() bool { return r.narrow }

// CreateRenderer shows the buttons with a line at the right.
func (r *Rail) CreateRenderer() fyne.WidgetRenderer {
	r.ExtendBaseWidget(r)
	return fynewidget.NewSimpleRenderer(r.box)
}

type railLayout struct{ bottom []bool }

func (l *railLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	y, low := float32(8), s.Height-8
	for i, o := range objs {
		h := o.MinSize().Height
		o.Resize(fyne.NewSize(s.Width-12, h))
		if l.bottom[i] {
			low -= h
			o.Move(fyne.NewPos(6, low))
			continue
		}
		o.Move(fyne.NewPos(6, y))
		y += h + 4
	}
}

func (l *railLayout) MinSize(objs []fyne.CanvasObject) fyne.Size {
	var m fyne.Size
	for _, o := range objs {
		c := o.MinSize()
		m.Width = max(m.Width, c.Width)
		m.Height += c.Height + 4
	}
	return m.AddWidthHeight(12, 16)
}

// railButton is one page: an icon over a word, the chosen one with a bar.
type railButton struct {
	tap
	item   RailItem
	chosen bool
	icon   *fynewidget.Icon
	label  *Text
	bar    *Ground
	badge  *Ground
	box    *fyne.Container
}

func newRailButton(it RailItem) *railButton {
	b := &railButton{item: it, icon: fynewidget.NewIcon(IconIn(it.Icon, ColorDim)), label: NewCaption(it.Label),
		bar: NewGround("", "", 1.5), badge: NewGround("", "", 4)}
	b.label.Align = fyne.TextAlignCenter
	b.Tip = it.Tip
	b.box = &fyne.Container{Layout: &railButtonLayout{b}, Objects: []fyne.CanvasObject{b.bar, b.icon, b.badge, b.label}}
	b.changed = b.tint
	b.init(b, 8)
	return b
}

func (b *railButton) choose(on bool) {
	b.chosen = on
	b.rest = ""
	if on {
		b.rest = ColorRaised
	}
	b.paint()
}

func (b *railButton) tint() {
	c := ColorDim
	if b.chosen || b.hovered {
		c = ColorText
	}
	b.bar.Fill = ""
	if b.chosen {
		b.bar.Fill = ColorAccent
	}
	b.bar.Refresh()
	setIcon(b.icon, IconIn(b.item.Icon, c))
	b.label.SetIn(b.item.Label, c)
}

func (b *railButton) mark(c fyne.ThemeColorName, tip string) {
	b.badge.Fill = c
	b.badge.Refresh()
	b.Tip = b.item.Tip
	if tip != "" {
		b.Tip = b.item.Label + ": " + tip
	}
}

func (b *railButton) shrink(on bool) {
	b.label.Hidden = on
	b.box.Refresh()
	b.Refresh()
}

// AccessibilityLabel is the page's name.
func (b *railButton) AccessibilityLabel() string { return b.item.Label }

// CreateRenderer shows the parts over the ground.
func (b *railButton) CreateRenderer() fyne.WidgetRenderer {
	b.ExtendBaseWidget(b)
	return fynewidget.NewSimpleRenderer(Over(b.ground, b.box))
}

type railButtonLayout struct{ b *railButton }

func (l *railButtonLayout) Layout(_ []fyne.CanvasObject, s fyne.Size) {
	n := themeSize("iconInline") + 4
	y := float32(8)
	if l.b.label.Hidden {
		y = (s.Height - n) / 2
	}
	l.b.icon.Resize(fyne.NewSquareSize(n))
	l.b.icon.Move(fyne.NewPos((s.Width-n)/2, y))
	l.b.badge.Resize(fyne.NewSquareSize(8))
	l.b.badge.Move(fyne.NewPos((s.Width+n)/2-2, y-2))
	l.b.bar.Resize(fyne.NewSize(3, s.Height-20))
	l.b.bar.Move(fyne.NewPos(0, 10))
	m := l.b.label.MinSize()
	l.b.label.Resize(fyne.NewSize(s.Width, m.Height))
	l.b.label.Move(fyne.NewPos(0, y+n+3))
}

func (l *railButtonLayout) MinSize([]fyne.CanvasObject) fyne.Size {
	n := themeSize("iconInline") + 4
	if l.b.label.Hidden {
		return fyne.NewSize(n+18, n+18)
	}
	return fyne.NewSize(max(themeSize(SizeRail)-12, l.b.label.MinSize().Width+8), n+l.b.label.MinSize().Height+19)
}
