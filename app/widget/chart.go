package widget

import (
	"image/color"
	"math"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Series is one line or layer of a chart. Values stand beside the chart's
// times; NaN is unknown and drawn as a gap, never as zero.
type Series struct {
	Name   string
	Color  fyne.ThemeColorName
	Fill   float64 // opacity of the area below
	Stack  bool    // lies on top of the stacked series before it
	Peak   bool    // of several samples in a pixel the biggest counts
	Values []float64
	Why    string // why it is unknown now
	Tip    string // more about its value, while that is known
}

// Band shades a stretch of time: prefill, loading.
type Band struct {
	From, To float64
	Color    fyne.ThemeColorName
}

// Mark is a moment with words: something the guard did.
type Mark struct {
	At   float64
	Text string
}

// Limit is a horizontal line: the card's total, a reserve, a floor.
type Limit struct {
	Value  float64
	Text   string
	Color  fyne.ThemeColorName
	Dashed bool
}

// Levels of the pressure strip. They differ in height as well as in colour.
const (
	LevelUnknown uint8 = iota
	LevelOK
	LevelWatch
	LevelAct
)

// ChartData is everything a chart shows. Times are seconds, ascending.
type ChartData struct {
	Begin, End float64
	Times      []float64
	Series     []Series
	Bands      []Band
	Marks      []Mark
	Limits     []Limit
	Strip      []uint8 // pressure at each time; nil for no strip
	Max        float64 // top of the scale; 0: from the values
	Gap        float64 // seconds of silence that break a line; 0: 3
	Format     func(float64) string
	Empty      string // shown while there are no samples
}

// Chart draws series over time, with a crosshair that several charts share.
type Chart struct {
	fynewidget.BaseWidget
	// OnCross is told where the pointer stands in time, and when it leaves.
	OnCross func(at float64, on bool)

	title   *Text
	legend  *fyne.Container
	entries []*entry
	hidden  map[string]bool
	times   bool // show the time axis
	data    ChartData
	top     float64 // of the scale, as drawn
	cross   float64
	crossOn bool

	plot  *canvas.Raster
	paint *chartPainter
	line  *canvas.Line
	ys    []*Text
	xs    []*Text
	words []*Text // of limits and marks
	empty *Text
	strip *Text
}

// Room around the plot.
const (
	chartLeft   = 58
	chartHead   = 26
	chartStrip  = 16
	chartBottom = 18
)

// NewChart makes a chart; with times it shows the time axis below.
func NewChart(title string, times bool) *Chart {
	c := &Chart{title: NewText(title).Bold(), legend: &fyne.Container{Layout: &flow{gap: 14, rowGap: -4}}, hidden: map[string]bool{}, times: times, top: 1}
	c.paint = &chartPainter{}
	c.plot = canvas.NewRaster(c.paint.draw)
	c.line = canvas.NewLine(color.Transparent)
	c.line.Hide()
	for range 3 {
		c.ys = append(c.ys, NewCaption("").Mono().Right())
	}
	c.empty = NewCaption("")
	c.strip = NewCaption("")
	c.ExtendBaseWidget(c)
	return c
}

// Set shows new data.
func (c *Chart) Set(d ChartData) {
	if d.Gap == 0 {
		d.Gap = 3
	}
	if d.Format == nil {
		d.Format = func(v float64) string { return T("%.1f", v) }
	}
	c.data = d
	c.fill()
	c.Refresh()
}

// Data is what the chart shows.
func (c *Chart) Data() ChartData { return c.data }

// SetCross moves the crosshair, or takes it away.
func (c *Chart) SetCross(at float64, on bool) {
	c.cross, c.crossOn = at, on
	c.values()
	c.Refresh()
}

// fill brings the legend in line with the series.
func (c *Chart) fill() {
	if len(c.entries) != len(c.data.Series) {
		c.entries = nil
		c.legend.Objects = nil
		for _, s := range c.data.Series {
			e := newEntry(s.Name, s.Color)
			e.OnTapped = func() {
				c.hidden[e.name.Text()] = !c.hidden[e.name.Text()]
				c.Refresh()
			}
			c.entries = append(c.entries, e)
			c.legend.Add(e)
		}
	}
	for i, s := range c.data.Series {
		c.entries[i].name.Set(s.Name)
		c.entries[i].color, c.entries[i].box.Opacity = s.Color, 0
		if s.Stack {
			c.entries[i].box.Opacity = s.Fill
		}
	}
	c.values()
}

// values writes the value at the crosshair, else the last one, in the legend.
func (c *Chart) values() {
	d := c.data
	at := len(d.Times) - 1
	if c.crossOn {
		at = Nearest(d.Times, c.cross, math.Max(2, (d.End-d.Begin)/100))
	}
	for i, s := range d.Series {
		text := "—"
		if at >= 0 && at < len(s.Values) && !math.IsNaN(s.Values[at]) {
			text = d.Format(s.Values[at])
		}
		if s.Values == nil {
			text = "" // only a name for a colour
		}
		e := c.entries[i]
		e.value.Set(text)
		e.Tip = ""
		switch {
		case text == "—" && s.Why != "":
			e.Tip = s.Name + ": " + s.Why
		case text != "—":
			e.Tip = s.Tip
		}
		e.dim(c.hidden[s.Name])
	}
}

// plotRect is where the curves are.
func (c *Chart) plotRect(s fyne.Size) (x, y, w, h float32) {
	head := max(chartHead, c.legend.MinSize().Height)
	bottom := float32(4)
	if c.times {
		bottom = chartBottom
	}
	if c.data.Strip != nil {
		bottom += chartStrip
	}
	return chartLeft, head + 4, max(1, s.Width-chartLeft-2), max(1, s.Height-head-4-bottom)
}

// MouseIn shows the crosshair.
func (c *Chart) MouseIn(e *desktop.MouseEvent) { c.MouseMoved(e) }

// MouseMoved moves it.
func (c *Chart) MouseMoved(e *desktop.MouseEvent) {
	x, y, w, h := c.plotRect(c.Size())
	in := e.Position.X >= x && e.Position.X <= x+w && e.Position.Y >= y && e.Position.Y <= y+h+chartStrip
	if c.OnCross != nil {
		c.OnCross(c.data.Begin+float64((e.Position.X-x)/w)*(c.data.End-c.data.Begin), in)
	}
	if !in {
		HideTip(c)
		return
	}
	for _, m := range c.data.Marks {
		mx := x + float32((m.At-c.data.Begin)/(c.data.End-c.data.Begin))*w
		if math.Abs(float64(mx-e.Position.X)) < 6 {
			ShowTipAt(c, m.Text, e.Position)
			return
		}
	}
	HideTip(c)
}

// MouseOut takes it away.
func (c *Chart) MouseOut() {
	HideTip(c)
	if c.OnCross != nil {
		c.OnCross(0, false)
	}
}

// CreateRenderer puts words over the drawn plot, so that text stays crisp.
func (c *Chart) CreateRenderer() fyne.WidgetRenderer { return &chartRenderer{c: c} }

type chartRenderer struct {
	c    *Chart
	objs []fyne.CanvasObject
}

func (r *chartRenderer) MinSize() fyne.Size { return fyne.NewSize(260, 120) }
func (r *chartRenderer) Destroy()           {}

func (r *chartRenderer) Objects() []fyne.CanvasObject { return r.objs }

func (r *chartRenderer) Refresh() {
	r.Layout(r.c.Size())
	canvas.Refresh(r.c)
}

func (r *chartRenderer) Layout(s fyne.Size) {
	c, d := r.c, r.c.data
	tw := c.title.MinSize()
	c.title.Resize(tw)
	c.title.Move(fyne.NewPos(0, (chartHead-tw.Height)/2))
	lw := max(60, s.Width-tw.Width-16)
	c.legend.Resize(fyne.NewSize(lw, HeightAt(c.legend, lw)))
	c.legend.Move(fyne.NewPos(tw.Width+16, 0))
	x, y, w, h := c.plotRect(s)

	c.top = d.Max
	if c.top == 0 {
		c.top = NiceMax(c.biggest())
	}
	c.paint.data, c.paint.top, c.paint.hidden = d, c.top, c.hidden
	c.paint.stripShare = 0
	full := h
	if d.Strip != nil {
		full += chartStrip
		c.paint.stripShare = float64(chartStrip / full)
	}
	c.plot.Resize(fyne.NewSize(w, full))
	c.plot.Move(fyne.NewPos(x, y))

	r.objs = append(r.objs[:0], c.title, c.legend, c.plot)
	for i, v := range []float64{c.top, c.top / 2, 0} {
		t := c.ys[i]
		text := ""
		if d.Format != nil && len(d.Times) > 0 && (d.Max > 0 || c.anyKnown()) {
			text = d.Format(v)
		}
		t.Set(text)
		m := t.MinSize()
		t.Resize(fyne.NewSize(chartLeft-8, m.Height))
		ty := y + float32(1-v/c.top)*h - m.Height/2
		t.Move(fyne.NewPos(0, min(ty, y+h-m.Height+2)))
		r.objs = append(r.objs, t)
	}
	r.timeAxis(x, w, y+full)
	r.limits(x, y, w, h)
	if d.Strip != nil {
		c.strip.Set(T("pressure"))
		m := c.strip.MinSize()
		c.strip.Resize(fyne.NewSize(chartLeft-8, m.Height))
		c.strip.Align = fyne.TextAlignTrailing
		c.strip.Move(fyne.NewPos(0, y+h+chartStrip-m.Height+2))
		r.objs = append(r.objs, c.strip)
	}
	if words := c.emptyWords(); words != "" {
		c.empty.Set(words)
		m := c.empty.MinSize()
		c.empty.Resize(m)
		c.empty.Move(fyne.NewPos(x+(w-m.Width)/2, y+h*0.25-m.Height/2)) // between two lines of the grid
		r.objs = append(r.objs, c.empty)
	}
	c.line.Hidden = true
	if c.crossOn && d.End > d.Begin && c.cross >= d.Begin && c.cross <= d.End {
		cx := x + float32((c.cross-d.Begin)/(d.End-d.Begin))*w
		c.line.StrokeColor = Color(c, ColorDim)
		c.line.StrokeWidth = 1
		c.line.Position1, c.line.Position2 = fyne.NewPos(cx, y), fyne.NewPos(cx, y+full)
		c.line.Hidden = false
		r.objs = append(r.objs, c.line)
	}
}

// anyKnown says whether there is a value to draw.
func (c *Chart) anyKnown() bool {
	for _, s := range c.data.Series {
		for _, v := range s.Values {
			if !math.IsNaN(v) {
				return true
			}
		}
	}
	return false
}

// emptyWords is what stands where there is nothing to draw: that nothing was
// measured yet, or why nothing is known.
func (c *Chart) emptyWords() string {
	if len(c.data.Times) == 0 {
		return c.data.Empty
	}
	if !c.anyKnown() {
		for i := len(c.data.Series) - 1; i >= 0; i-- {
			if w := c.data.Series[i].Why; w != "" {
				return w
			}
		}
	}
	return ""
}

func (r *chartRenderer) timeAxis(x, w, y float32) {
	c, d := r.c, r.c.data
	if !c.times || d.End <= d.Begin {
		return
	}
	span := time.Duration((d.End - d.Begin) * float64(time.Second))
	ticks := Ticks(span, max(2, int(w/90)))
	for len(c.xs) < len(ticks) {
		c.xs = append(c.xs, NewCaption("").Mono())
	}
	for i, a := range ticks {
		t := c.xs[i]
		t.Set(ageText(a))
		m := t.MinSize()
		t.Resize(m)
		tx := x + w - float32(a.Seconds()/span.Seconds())*w - m.Width/2
		t.Move(fyne.NewPos(max(x-m.Width/2, min(tx, x+w-m.Width)), y+2))
		r.objs = append(r.objs, t)
	}
}

func ageText(a time.Duration) string {
	switch {
	case a == 0:
		return T("now")
	case a < time.Minute:
		return T("-%d s", int(a.Seconds()))
	case a%time.Minute != 0:
		return T("-%.1f min", a.Minutes())
	}
	return T("-%d min", int(a.Minutes()))
}

// limits writes the words of limits and, where they have room, of marks.
func (r *chartRenderer) limits(x, y, w, h float32) {
	c, d := r.c, r.c.data
	n := 0
	word := func(s string, col fyne.ThemeColorName) *Text {
		if n == len(c.words) {
			c.words = append(c.words, NewCaption(""))
		}
		t := c.words[n]
		n++
		t.SetIn(s, col)
		t.Resize(t.MinSize())
		r.objs = append(r.objs, t)
		return t
	}
	for _, l := range d.Limits {
		if l.Text == "" || l.Value <= 0 || l.Value > c.top*1.001 {
			continue
		}
		t := word(l.Text, ColorDim)
		ty := y + float32(1-l.Value/c.top)*h
		if ty-t.MinSize().Height < y-2 {
			ty += t.MinSize().Height
		}
		t.Move(fyne.NewPos(x+w-t.MinSize().Width-4, ty-t.MinSize().Height))
	}
	taken := x - 1
	for _, m := range d.Marks {
		if m.At < d.Begin || m.At > d.End {
			continue
		}
		mx := x + float32((m.At-d.Begin)/(d.End-d.Begin))*w
		width := fyne.MeasureText(m.Text, themeSize(SizeCaption), fyne.TextStyle{}).Width
		if mx+4 < taken || mx+6+width > x+w {
			continue // the words come as a tip
		}
		t := word(m.Text, ColorWatch)
		t.Move(fyne.NewPos(mx+5, y+h*0.30))
		taken = mx + 10 + width
	}
}

// biggest is the greatest value or stack of values in view.
func (c *Chart) biggest() float64 {
	d := c.data
	top := 0.0
	for i, t := range d.Times {
		if t < d.Begin || t > d.End {
			continue
		}
		sum := 0.0
		for _, s := range d.Series {
			if c.hidden[s.Name] || i >= len(s.Values) || math.IsNaN(s.Values[i]) {
				continue
			}
			if s.Stack {
				sum += s.Values[i]
			}
			top = math.Max(top, s.Values[i])
		}
		top = math.Max(top, sum)
	}
	for _, l := range d.Limits {
		top = math.Max(top, l.Value)
	}
	return top
}

// entry is one line of a legend: a square of the colour, a name, a value.
// Pressing it hides the series.
type entry struct {
	tap
	color fyne.ThemeColorName
	box   *Ground
	name  *Text
	value *Text
}

func newEntry(name string, color fyne.ThemeColorName) *entry {
	e := &entry{color: color, box: NewGround(color, "", 2), name: NewCaption(name), value: NewCaption("").Mono().In(ColorText)}
	e.init(e, 4)
	return e
}

func (e *entry) dim(off bool) {
	e.box.Fill, e.box.Line = e.color, ""
	if off {
		e.box.Fill, e.box.Line = "", e.color
	}
	e.box.Refresh()
}

// CreateRenderer lays the entry out in a row.
func (e *entry) CreateRenderer() fyne.WidgetRenderer {
	e.ExtendBaseWidget(e)
	return fynewidget.NewSimpleRenderer(Over(e.ground, Inset(4, 4, 4, 4, H(6, Sized(10, 10, e.box), e.name, e.value))))
}
