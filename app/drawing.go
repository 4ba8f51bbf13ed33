package app

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
)

// machineDrawing lays the computer out: host left, cards right, and a line to
// each card with what the link carries.
type machineDrawing struct {
	fynewidget.BaseWidget
	host  fyne.CanvasObject
	cards []fyne.CanvasObject
	lines []*canvas.Line
	words []fyne.CanvasObject
	backs []fyne.CanvasObject // behind the words, so that no line crosses them
}

func newMachineDrawing(host fyne.CanvasObject, cards []fyne.CanvasObject, links []linkLine) fyne.CanvasObject {
	d := &machineDrawing{host: host, cards: cards}
	for _, l := range links {
		line := canvas.NewLine(color.Transparent)
		line.Hidden = l.words == ""
		d.lines = append(d.lines, line)
		c := widget.ColorDim
		if l.state == widget.StateWatch {
			c = widget.ColorWatch
		}
		t := widget.NewCaption(l.words).Mono().In(c)
		t.Align = fyne.TextAlignCenter
		var o fyne.CanvasObject = t
		if l.why != "" {
			o = widget.NewTipped(t, l.why)
		}
		d.words = append(d.words, o)
		back := widget.NewGround(theme.ColorNameBackground, "", 4)
		back.Hidden = l.words == ""
		d.backs = append(d.backs, back)
	}
	d.ExtendBaseWidget(d)
	return d
}

// CreateRenderer places boxes and lines.
func (d *machineDrawing) CreateRenderer() fyne.WidgetRenderer { return &drawingRenderer{d: d} }

type drawingRenderer struct{ d *machineDrawing }

const (
	cardGap = 10
	linkGap = 130 // room for the lines
)

func (r *drawingRenderer) sizes(width float32) (host, card, hostH float32, heights []float32, total float32) {
	host = max(200, (width-linkGap)*0.42)
	card = max(220, width-linkGap-host)
	hostH = widget.HeightAt(r.d.host, host)
	sum := float32(0)
	for _, c := range r.d.cards {
		h := widget.HeightAt(c, card)
		heights = append(heights, h)
		sum += h + cardGap
	}
	return host, card, hostH, heights, max(hostH, sum-cardGap)
}

func (r *drawingRenderer) Layout(s fyne.Size) {
	d := r.d
	host, card, hostH, heights, total := r.sizes(s.Width)
	d.host.Resize(fyne.NewSize(host, hostH))
	d.host.Move(fyne.NewPos(0, (total-hostH)/2))
	sum := float32(-cardGap)
	for _, h := range heights {
		sum += h + cardGap
	}
	y := (total - sum) / 2
	for i, c := range d.cards {
		c.Resize(fyne.NewSize(card, heights[i]))
		c.Move(fyne.NewPos(s.Width-card, y))
		mid := y + heights[i]/2
		from := total / 2
		l := d.lines[i]
		l.StrokeColor, l.StrokeWidth = widget.Color(nil, widget.ColorLine), 2
		l.Position1, l.Position2 = fyne.NewPos(host, from), fyne.NewPos(s.Width-card, mid)
		w := d.words[i]
		m := w.MinSize()
		w.Resize(fyne.NewSize(linkGap-16, m.Height))
		w.Move(fyne.NewPos(host+8, (from+mid)/2-m.Height/2))
		wide := min(m.Width+10, linkGap-16)
		d.backs[i].Resize(fyne.NewSize(wide, m.Height))
		d.backs[i].Move(fyne.NewPos(host+linkGap/2-wide/2, (from+mid)/2-m.Height/2))
		y += heights[i] + cardGap
	}
}

func (r *drawingRenderer) MinSize() fyne.Size {
	w := r.d.Size().Width
	if w <= 0 {
		w = 700
	}
	_, _, _, _, total := r.sizes(w)
	return fyne.NewSize(560, total)
}

func (r *drawingRenderer) Refresh() {
	r.Layout(r.d.Size())
	canvas.Refresh(r.d)
}

func (r *drawingRenderer) Objects() []fyne.CanvasObject {
	out := []fyne.CanvasObject{}
	for i := range r.d.lines {
		out = append(out, r.d.lines[i])
	}
	out = append(out, r.d.backs...)
	out = append(out, r.d.host)
	out = append(out, r.d.cards...)
	return append(out, r.d.words...)
}

func (r *drawingRenderer) Destroy() {}
