package widget

import (
	"image"
	"image/color"
	"math"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"
)

// FitPart is one segment of a bar.
type FitPart struct {
	Name  string
	Value float64
	Color fyne.ThemeColorName
	Shade float64 // opacity; 0 means 1
	Hatch bool    // reserve and floor: kept free on purpose
	Tip   string
}

// FitRow is one bar: a layer of memory to its physical total.
type FitRow struct {
	Name  string
	Total float64 // 0: unknown
	Why   string  // why the total is unknown, or why the bar is empty
	Parts []FitPart
	Short float64 // how much is missing; drawn as a caret past the end
	Text  string  // at the right: "9.1 of 15.1 GiB"
}

// Fit is the fit picture: one bar a layer, stacked by use, each to its total.
type Fit struct {
	fynewidget.BaseWidget
	rows   []FitRow
	Thin   bool // bars of 8 px with small words, for lists
	bars   []*fitBar
	names  []*Text
	values []*Text
}

// NewFit makes an empty picture.
func NewFit(thin bool) *Fit {
	f := &Fit{Thin: thin}
	f.ExtendBaseWidget(f)
	return f
}

// Set shows bars.
func (f *Fit) Set(rows []FitRow) {
	f.rows = rows
	for len(f.bars) < len(rows) {
		f.bars = append(f.bars, newFitBar())
		f.names = append(f.names, NewCaption(""))
		f.values = append(f.values, NewCaption("").Mono().Right())
	}
	for i, r := range rows {
		f.names[i].Set(r.Name)
		c := ColorDim
		if r.Short > 0 {
			c = ColorAct
		}
		f.values[i].SetIn(r.Text, c)
		f.bars[i].set(r)
	}
	f.Refresh()
}

// Rows is what the picture shows.
func (f *Fit) Rows() []FitRow { return f.rows }

// CreateRenderer lays name, bar and value out in columns.
func (f *Fit) CreateRenderer() fyne.WidgetRenderer {
	f.ExtendBaseWidget(f)
	return &fitRenderer{f: f}
}

type fitRenderer struct{ f *Fit }

func (r *fitRenderer) rowHeight() float32 {
	if r.f.Thin {
		return themeSize(SizeCaption) + 7
	}
	return themeSize(SizeCaption) + 17
}

func (r *fitRenderer) columns() (name, value float32) {
	for i := range r.f.rows {
		name = max(name, r.f.names[i].MinSize().Width)
		value = max(value, r.f.values[i].MinSize().Width)
	}
	return max(name, themeSize(SizeCaption)*3), value
}

func (r *fitRenderer) Layout(s fyne.Size) {
	name, value := r.columns()
	h := r.rowHeight()
	bar := float32(18)
	if r.f.Thin {
		bar = 8
	}
	for i := range r.f.rows {
		y := float32(i) * h
		m := r.f.names[i].MinSize()
		r.f.names[i].Resize(fyne.NewSize(name, m.Height))
		r.f.names[i].Move(fyne.NewPos(0, y+(h-m.Height)/2))
		r.f.bars[i].Resize(fyne.NewSize(max(20, s.Width-name-value-20), bar))
		r.f.bars[i].Move(fyne.NewPos(name+10, y+(h-bar)/2))
		m = r.f.values[i].MinSize()
		r.f.values[i].Resize(fyne.NewSize(value, m.Height))
		r.f.values[i].Move(fyne.NewPos(s.Width-value, y+(h-m.Height)/2))
	}
}

func (r *fitRenderer) MinSize() fyne.Size {
	name, value := r.columns()
	return fyne.NewSize(name+value+20+80, float32(len(r.f.rows))*r.rowHeight())
}

func (r *fitRenderer) Refresh() {
	r.Layout(r.f.Size())
	for _, o := range r.Objects() {
		o.Refresh()
	}
	canvas.Refresh(r.f)
}

func (r *fitRenderer) Objects() []fyne.CanvasObject {
	var o []fyne.CanvasObject
	for i := range r.f.rows {
		o = append(o, r.f.names[i], r.f.bars[i], r.f.values[i])
	}
	return o
}

func (r *fitRenderer) Destroy() {}

// fitBar draws one bar into a picture: parts side by side, hatching, and a
// caret with a red end where something is missing.
type fitBar struct {
	fynewidget.BaseWidget
	row    FitRow
	raster *canvas.Raster
}

func newFitBar() *fitBar {
	b := &fitBar{}
	b.raster = canvas.NewRaster(b.draw)
	b.ExtendBaseWidget(b)
	return b
}

func (b *fitBar) set(r FitRow) {
	b.row = r
	b.Refresh()
}

func (b *fitBar) CreateRenderer() fyne.WidgetRenderer { return fynewidget.NewSimpleRenderer(b.raster) }

// full is what the whole width stands for.
func (b *fitBar) full() float64 {
	sum := 0.0
	for _, p := range b.row.Parts {
		sum += p.Value
	}
	return math.Max(b.row.Total+math.Max(0, b.row.Short), sum)
}

func (b *fitBar) draw(w, h int) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	full := b.full()
	round := float64(h) / 4
	if full <= 0 || w < 2 {
		b.outline(img, w, h, round)
		return img
	}
	edge := func(v float64) int { return int(math.Round(v / full * float64(w))) }
	base := theme.Color(ColorRaised)
	fill := func(x0, x1 int, at func(x, y int) color.Color) {
		for y := range h {
			for x := max(0, x0); x < min(x1, w); x++ {
				if c := at(x, y); c != nil {
					img.Set(x, y, corner(c, x, y, w, h, round))
				}
			}
		}
	}
	total := w
	if b.row.Total > 0 {
		total = edge(b.row.Total)
	}
	fill(0, total, func(int, int) color.Color { return base })
	at := 0.0
	for _, p := range b.row.Parts {
		x0, x1 := edge(at), edge(at+p.Value)
		at += p.Value
		if p.Value > 0 && x1 == x0 {
			x1++
		}
		shade := p.Shade
		if shade == 0 {
			shade = 1
		}
		c := mix(base, theme.Color(p.Color), shade)
		if p.Hatch {
			fill(x0, x1, func(x, y int) color.Color {
				if (x+y)%max(4, h/3) < max(1, h/9) {
					return c
				}
				return base
			})
			continue
		}
		fill(x0, x1, func(x, y int) color.Color {
			if x == x1-1 && x1 < w && x1-x0 > 3 {
				return theme.Color(ColorSurface) // a hairline between parts
			}
			return c
		})
	}
	if b.row.Short > 0 {
		act := theme.Color(ColorAct)
		fill(total, w, func(x, y int) color.Color {
			if (x-y+h)%max(4, h/3) < max(2, h/6) {
				return act
			}
			return nil
		})
		// The caret: a notch at the physical end.
		for y := range h {
			d := int(math.Abs(float64(y)-float64(h)/2) * 0.5)
			for x := total - 1 + d/2; x < total+1+d/2; x++ {
				if x >= 0 && x < w {
					img.Set(x, y, act)
				}
			}
		}
	}
	return img
}

func (b *fitBar) outline(img *image.RGBA, w, h int, round float64) {
	c := theme.Color(ColorLine)
	for y := range h {
		for x := range w {
			if (x == 0 || y == 0 || x == w-1 || y == h-1) && (x/4)%2 == 0 {
				img.Set(x, y, corner(c, x, y, w, h, round))
			}
		}
	}
}

// corner fades a pixel outside the rounded corners.
func corner(c color.Color, x, y, w, h int, r float64) color.Color {
	cx := math.Max(r, math.Min(float64(x)+0.5, float64(w)-r))
	cy := math.Max(r, math.Min(float64(y)+0.5, float64(h)-r))
	d := math.Hypot(float64(x)+0.5-cx, float64(y)+0.5-cy)
	if d <= r-0.5 {
		return c
	}
	return Fade(c, math.Max(0, math.Min(1, r+0.5-d)))
}

// mix lays b over a with an opacity.
func mix(a, b color.Color, t float64) color.Color {
	p, q := color.NRGBAModel.Convert(a).(color.NRGBA), color.NRGBAModel.Convert(b).(color.NRGBA)
	f := func(x, y uint8) uint8 { return uint8(float64(x)*(1-t) + float64(y)*t + 0.5) }
	return color.NRGBA{f(p.R, q.R), f(p.G, q.G), f(p.B, q.B), 0xFF}
}

// part finds what is under a place of the bar, in parts of its width.
func (b *fitBar) part(f float64) *FitPart {
	v := f * b.full()
	for i := range b.row.Parts {
		if v < b.row.Parts[i].Value {
			return &b.row.Parts[i]
		}
		v -= b.row.Parts[i].Value
	}
	return nil
}

// MouseIn explains the part under the pointer.
func (b *fitBar) MouseIn(e *desktop.MouseEvent) { b.MouseMoved(e) }

// MouseMoved follows it.
func (b *fitBar) MouseMoved(e *desktop.MouseEvent) {
	if p := b.part(float64(e.Position.X / max(1, b.Size().Width))); p != nil {
		tip := p.Tip
		if tip == "" {
			tip = p.Name
		}
		ShowTipAt(b, tip, e.Position)
		return
	}
	if b.row.Why != "" {
		ShowTipAt(b, b.row.Name+": "+b.row.Why, e.Position)
		return
	}
	HideTip(b)
}

// MouseOut ends it.
func (b *fitBar) MouseOut() { HideTip(b) }

// Summary is the picture in words, for copying and for those who cannot see
// it.
func (f *Fit) Summary() string {
	var b strings.Builder
	for _, r := range f.rows {
		b.WriteString(r.Name + ": " + r.Text)
		if r.Why != "" {
			b.WriteString(" (" + r.Why + ")")
		}
		for _, p := range r.Parts {
			if p.Tip != "" {
				b.WriteString("; " + p.Tip)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}
