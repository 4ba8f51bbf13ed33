package widget

import (
	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Bar is a thin line that fills as work goes on.
type Bar struct {
	fynewidget.BaseWidget
	share      float64
	back, part *Ground
}

// barHeight is how thick the line is.
const barHeight = 6

// NewBar makes an empty one.
func NewBar() *Bar {
	b := &Bar{back: NewGround(ColorLine, "", barHeight/2), part: NewGround(ColorAccent, "", barHeight/2)}
	b.ExtendBaseWidget(b)
	return b
}

// SetValue fills it to a share (0..1).
func (b *Bar) SetValue(share float64) {
	share = max(0, min(1, share))
	if share != b.share {
		b.share = share
		b.Refresh()
	}
}

// Value is how far it is filled.
func (b *Bar) Value() float64 { return b.share }

// CreateRenderer draws a line over a line.
func (b *Bar) CreateRenderer() fyne.WidgetRenderer {
	b.ExtendBaseWidget(b)
	return &barRenderer{b}
}

type barRenderer struct{ b *Bar }

func (r *barRenderer) Layout(s fyne.Size) {
	y := (s.Height - barHeight) / 2
	r.b.back.Resize(fyne.NewSize(s.Width, barHeight))
	r.b.back.Move(fyne.NewPos(0, y))
	w := float32(r.b.share) * s.Width
	if w > 0 {
		w = max(w, barHeight)
	}
	r.b.part.Resize(fyne.NewSize(w, barHeight))
	r.b.part.Move(fyne.NewPos(0, y))
}

func (r *barRenderer) MinSize() fyne.Size { return fyne.NewSize(40, barHeight) }

func (r *barRenderer) Refresh() {
	r.Layout(r.b.Size())
	r.b.back.Refresh()
	r.b.part.Refresh()
}

func (r *barRenderer) Objects() []fyne.CanvasObject {
	return []fyne.CanvasObject{r.b.back, r.b.part}
}

func (r *barRenderer) Destroy() {}
