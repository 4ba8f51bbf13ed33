package widget

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"
)

// HeightAt gives a canvas object a width and says how high it then wants to
// be. Wrapped text knows its height only after it knows its width.
func HeightAt(o fyne.CanvasObject, width float32) float32 {
	if s := o.Size(); s.Width != width {
		o.Resize(fyne.NewSize(width, max(s.Height, o.MinSize().Height)))
	}
	return o.MinSize().Height
}

// Relayout lays a container out again without redrawing everything in it, as
// Refresh would do down to the last icon.
func Relayout(c *fyne.Container) {
	c.Layout.Layout(c.Objects, c.Size())
	canvas.Refresh(c)
}

// V stacks objects with a gap between them, all at full width. Wrapped text
// is measured at its real width in the same pass.
func V(gap float32, objs ...fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: vbox{gap}, Objects: objs}
}

type vbox struct{ gap float32 }

func (v vbox) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	y := float32(0)
	for _, o := range objs {
		if !o.Visible() {
			continue
		}
		h := HeightAt(o, s.Width)
		o.Resize(fyne.NewSize(s.Width, h))
		o.Move(fyne.NewPos(0, y))
		y += h + v.gap
	}
}

func (v vbox) MinSize(objs []fyne.CanvasObject) fyne.Size {
	var m fyne.Size
	first := true
	for _, o := range objs {
		if !o.Visible() {
			continue
		}
		if !first {
			m.Height += v.gap
		}
		first = false
		c := o.MinSize()
		m.Height += c.Height
		m.Width = max(m.Width, c.Width)
	}
	return m
}

// H puts objects in a row with a gap between them, each at its smallest width
// and centred on the row's height; those wrapped by Flex share what is left.
func H(gap float32, objs ...fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: hbox{gap: gap}, Objects: objs}
}

// HTop is H with everything at the top of the row.
func HTop(gap float32, objs ...fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: hbox{gap: gap, top: true}, Objects: objs}
}

// Flex lets an object take the room that is left in H.
func Flex(o fyne.CanvasObject) fyne.CanvasObject {
	return &fyne.Container{Layout: flex{}, Objects: []fyne.CanvasObject{o}}
}

// Space is an empty object that takes the room left in H.
func Space() fyne.CanvasObject { return &fyne.Container{Layout: flex{}} }

type flex struct{}

func (flex) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	for _, o := range objs {
		o.Resize(s)
		o.Move(fyne.Position{})
	}
}

func (flex) MinSize(objs []fyne.CanvasObject) fyne.Size {
	var m fyne.Size
	for _, o := range objs {
		if o.Visible() {
			m = m.Max(o.MinSize())
		}
	}
	return m
}

type hbox struct {
	gap float32
	top bool
}

func flexible(o fyne.CanvasObject) bool {
	c, ok := o.(*fyne.Container)
	if !ok {
		return false
	}
	_, ok = c.Layout.(flex)
	return ok
}

func (h hbox) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	used, n, shown := float32(0), 0, 0
	for _, o := range objs {
		if !o.Visible() {
			continue
		}
		shown++
		if flexible(o) {
			n++
		} else {
			used += o.MinSize().Width
		}
	}
	left := s.Width - used - h.gap*float32(max(0, shown-1))
	x := float32(0)
	for _, o := range objs {
		if !o.Visible() {
			continue
		}
		w := o.MinSize().Width
		if n > 0 && flexible(o) {
			w = max(0, left/float32(n))
		}
		oh := HeightAt(o, w)
		if flexible(o) && !h.top {
			oh = max(oh, min(s.Height, oh))
		}
		o.Resize(fyne.NewSize(w, oh))
		y := float32(0)
		if !h.top {
			y = (s.Height - oh) / 2
		}
		o.Move(fyne.NewPos(x, y))
		x += w + h.gap
	}
}

func (h hbox) MinSize(objs []fyne.CanvasObject) fyne.Size {
	var m fyne.Size
	first := true
	for _, o := range objs {
		if !o.Visible() {
			continue
		}
		if !first {
			m.Width += h.gap
		}
		first = false
		c := o.MinSize()
		m.Width += c.Width
		m.Height = max(m.Height, c.Height)
	}
	return m
}

// Flow puts objects one after the other and breaks into rows as the width
// demands.
func Flow(gap float32, objs ...fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: &flow{gap: gap, rowGap: gap}, Objects: objs}
}

type flow struct {
	gap, rowGap float32
	width       float32
}

// rows places objects row by row, each in the middle of its row's height, and
// gives the height of all.
func (f *flow) rows(objs []fyne.CanvasObject, width float32, place func(o fyne.CanvasObject, x, y float32, m fyne.Size)) float32 {
	type item struct {
		o fyne.CanvasObject
		x float32
		m fyne.Size
	}
	var line []item
	x, y, row := float32(0), float32(0), float32(0)
	end := func() {
		for _, it := range line {
			if place != nil {
				place(it.o, it.x, y+(row-it.m.Height)/2, it.m)
			}
		}
		line = line[:0]
	}
	for _, o := range objs {
		if !o.Visible() {
			continue
		}
		m := o.MinSize()
		if x > 0 && x+m.Width > width+0.5 {
			end()
			x, y, row = 0, y+row+f.rowGap, 0
		}
		line = append(line, item{o, x, m})
		x += m.Width + f.gap
		row = max(row, m.Height)
	}
	end()
	return y + row
}

func (f *flow) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	f.width = s.Width
	f.rows(objs, s.Width, func(o fyne.CanvasObject, x, y float32, m fyne.Size) {
		o.Resize(m)
		o.Move(fyne.NewPos(x, y))
	})
}

func (f *flow) MinSize(objs []fyne.CanvasObject) fyne.Size {
	w := float32(0)
	for _, o := range objs {
		if o.Visible() {
			w = max(w, o.MinSize().Width)
		}
	}
	return fyne.NewSize(w, f.rows(objs, max(f.width, w), nil))
}

// Pad surrounds an object with room.
func Pad(n float32, o fyne.CanvasObject) *fyne.Container { return Inset(n, n, n, n, o) }

// Inset surrounds an object with room, given per side.
func Inset(top, right, bottom, left float32, o fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: inset{top, right, bottom, left}, Objects: []fyne.CanvasObject{o}}
}

type inset struct{ top, right, bottom, left float32 }

func (p inset) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	for _, o := range objs {
		o.Resize(fyne.NewSize(max(0, s.Width-p.left-p.right), max(0, s.Height-p.top-p.bottom)))
		o.Move(fyne.NewPos(p.left, p.top))
	}
}

func (p inset) MinSize(objs []fyne.CanvasObject) fyne.Size {
	var m fyne.Size
	for _, o := range objs {
		if o.Visible() {
			m = m.Max(o.MinSize())
		}
	}
	return m.AddWidthHeight(p.left+p.right, p.top+p.bottom)
}

// AtMost gives an object no more than a width; it stays at the left.
func AtMost(width float32, o fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: atMost{width: width}, Objects: []fyne.CanvasObject{o}}
}

// Middle gives an object no more than a width and centres it.
func Middle(width float32, o fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: atMost{width: width, middle: true}, Objects: []fyne.CanvasObject{o}}
}

// Wide gives an object at least and at most a width.
func Wide(width float32, o fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: atMost{width: width, least: width}, Objects: []fyne.CanvasObject{o}}
}

type atMost struct {
	width, least float32
	middle       bool
}

func (a atMost) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	for _, o := range objs {
		w := min(a.width, s.Width)
		o.Resize(fyne.NewSize(w, s.Height))
		x := float32(0)
		if a.middle {
			x = (s.Width - w) / 2
		}
		o.Move(fyne.NewPos(x, 0))
	}
}

func (a atMost) MinSize(objs []fyne.CanvasObject) fyne.Size {
	var m fyne.Size
	for _, o := range objs {
		if o.Visible() {
			m = m.Max(o.MinSize())
		}
	}
	m.Width = max(min(m.Width, a.width), a.least)
	return m
}

// Sized gives an object a smallest size.
func Sized(w, h float32, o fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: sized{fyne.NewSize(w, h)}, Objects: []fyne.CanvasObject{o}}
}

type sized struct{ s fyne.Size }

func (z sized) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	for _, o := range objs {
		o.Resize(s)
		o.Move(fyne.Position{})
	}
}

func (z sized) MinSize(objs []fyne.CanvasObject) fyne.Size {
	m := z.s
	for _, o := range objs {
		if o.Visible() {
			m = m.Max(o.MinSize())
		}
	}
	return m
}

// Ground is a filled rectangle in colours of the theme.
type Ground struct {
	fynewidget.BaseWidget
	Fill, Line fyne.ThemeColorName // "" for none
	Radius     float32
	Opacity    float64 // of the fill; 0 means 1
}

// NewGround makes a rectangle.
func NewGround(fill, line fyne.ThemeColorName, radius float32) *Ground {
	g := &Ground{Fill: fill, Line: line, Radius: radius}
	g.ExtendBaseWidget(g)
	return g
}

// CreateRenderer draws one rectangle.
func (g *Ground) CreateRenderer() fyne.WidgetRenderer {
	r := &groundRenderer{g: g, rect: canvas.NewRectangle(color.Transparent)}
	r.update()
	return r
}

type groundRenderer struct {
	g    *Ground
	rect *canvas.Rectangle
}

func (r *groundRenderer) update() {
	r.rect.FillColor, r.rect.StrokeColor, r.rect.StrokeWidth = color.Transparent, nil, 0
	if r.g.Fill != "" {
		r.rect.FillColor = Color(r.g, r.g.Fill)
		if r.g.Opacity > 0 {
			r.rect.FillColor = Fade(r.rect.FillColor, r.g.Opacity)
		}
	}
	if r.g.Line != "" {
		r.rect.StrokeColor, r.rect.StrokeWidth = Color(r.g, r.g.Line), 1
	}
	r.rect.CornerRadius = r.g.Radius
}

func (r *groundRenderer) Layout(s fyne.Size)           { r.rect.Resize(s) }
func (r *groundRenderer) MinSize() fyne.Size           { return fyne.Size{} }
func (r *groundRenderer) Refresh()                     { r.update(); r.rect.Refresh() }
func (r *groundRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.rect} }
func (r *groundRenderer) Destroy()                     {}

// Rule is a 1 px line across.
func Rule() fyne.CanvasObject { return Sized(0, 1, NewGround(ColorLine, "", 0)) }

// VRule is a 1 px line down.
func VRule() fyne.CanvasObject { return Sized(1, 0, NewGround(ColorLine, "", 0)) }

// Box is a card: surface, thin border, room inside.
func Box(o fyne.CanvasObject) *fyne.Container {
	return Over(NewGround(ColorSurface, ColorLine, 8), Pad(theme.Size(SizeCard), o))
}

// Over lays objects over each other at full size.
func Over(objs ...fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: over{}, Objects: objs}
}

// over is flex under another name, so that H does not take a stack of objects
// for one that wants the room left.
type over struct{ flex }
