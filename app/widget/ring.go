package widget

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Ring shows how much of something is used as part of a circle, with words in
// its tip. Above nine tenths it takes the colour of "watch".
type Ring struct {
	tap
	share      float64
	back, part *canvas.Arc
}

// NewRing makes an empty ring.
func NewRing(tapped func()) *Ring {
	r := &Ring{back: canvas.NewArc(0, 360, 0.72, Color(nil, ColorLine)), part: canvas.NewArc(0, 0, 0.72, Color(nil, ColorAccent))}
	r.OnTapped = tapped
	r.init(r, 14)
	return r
}

// Set shows a share (0..1) and says it in words.
func (r *Ring) Set(share float64, words string) {
	share = max(0, min(1, share))
	if share == r.share && words == r.Tip {
		return
	}
	r.share, r.Tip = share, words
	r.Refresh()
}

// Share is what the ring shows.
func (r *Ring) Share() float64 { return r.share }

func (r *Ring) colours() {
	r.back.FillColor = Color(r, ColorLine)
	c := ColorAccent
	if r.share > 0.9 {
		c = ColorAct
	}
	r.part.FillColor = Color(r, c)
	r.part.EndAngle = float32(360 * r.share)
}

// Refresh follows theme and share.
func (r *Ring) Refresh() {
	r.colours()
	r.back.Refresh()
	r.part.Refresh()
	r.BaseWidget.Refresh()
}

// CreateRenderer draws two arcs.
func (r *Ring) CreateRenderer() fyne.WidgetRenderer {
	r.ExtendBaseWidget(r)
	r.colours()
	return fynewidget.NewSimpleRenderer(Over(r.ground, &fyne.Container{Layout: ringLayout{}, Objects: []fyne.CanvasObject{r.back, r.part}}))
}

type ringLayout struct{}

func (ringLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	d := min(s.Width, s.Height) - 8
	for _, o := range objs {
		o.Resize(fyne.NewSquareSize(d))
		o.Move(fyne.NewPos((s.Width-d)/2, (s.Height-d)/2))
	}
}

func (ringLayout) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSquareSize(28) }
