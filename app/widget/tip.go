package widget

import (
	"time"

	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"
)

// TipLayer lies over the whole window and shows at most one tip. It takes no
// input. Controls find the layer of their window by themselves.
type TipLayer struct {
	fynewidget.BaseWidget
	text   *Text
	ground *Ground
	box    *fyne.Container
	owner  fyne.CanvasObject
	timer  *time.Timer
}

// tipDelay is how long the pointer rests before a tip comes.
const tipDelay = 500 * time.Millisecond

// layers finds the tip layer of a window. Main thread only.
var layers = map[fyne.Canvas]*TipLayer{}

// NewTipLayer makes a layer; Attach ties it to its window.
func NewTipLayer() *TipLayer {
	l := &TipLayer{text: newText("", ColorText, SizeCaption, fyne.TextStyle{}), ground: NewGround(ColorRaised, ColorLine, 5)}
	l.box = Over(l.ground, Inset(4, 8, 4, 8, l.text))
	l.box.Hide()
	l.ExtendBaseWidget(l)
	return l
}

// Attach makes the layer the one of a window; Detach ends that.
func (l *TipLayer) Attach(c fyne.Canvas) { layers[c] = l }

// Detach forgets the window.
func (l *TipLayer) Detach(c fyne.Canvas) { delete(layers, c) }

// Text is the tip shown now, or "".
func (l *TipLayer) Text() string {
	if !l.box.Visible() {
		return ""
	}
	return l.text.Text()
}

// CreateRenderer places the box by hand: it belongs beside its owner.
func (l *TipLayer) CreateRenderer() fyne.WidgetRenderer {
	return fynewidget.NewSimpleRenderer(&fyne.Container{Layout: free{}, Objects: []fyne.CanvasObject{l.box}})
}

// free leaves its objects where they are.
type free struct{}

func (free) Layout([]fyne.CanvasObject, fyne.Size) {}
func (free) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.Size{} }

func layerOf(o fyne.CanvasObject) *TipLayer {
	if len(layers) == 0 {
		return nil
	}
	return layers[fyne.CurrentApp().Driver().CanvasForObject(o)]
}

func showTip(o fyne.CanvasObject, text string) {
	l := layerOf(o)
	if l == nil || text == "" {
		return
	}
	l.show(o, text, nil, tipDelay)
}

// ShowTipAt shows a tip at once, at a place inside an object; charts and maps
// use it for what is under the pointer.
func ShowTipAt(o fyne.CanvasObject, text string, at fyne.Position) {
	if l := layerOf(o); l != nil {
		l.show(o, text, &at, 0)
	}
}

// HideTip takes the tip of an object away.
func HideTip(o fyne.CanvasObject) { hideTip(o) }

func hideTip(o fyne.CanvasObject) {
	l := layerOf(o)
	if l == nil || l.owner != o {
		return
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	l.owner = nil
	l.box.Hide()
}

func (l *TipLayer) show(o fyne.CanvasObject, text string, at *fyne.Position, delay time.Duration) {
	if l.timer != nil {
		l.timer.Stop()
	}
	l.owner = o
	place := func() {
		if l.owner != o {
			return
		}
		l.text.Set(text)
		m := l.box.MinSize()
		p := fyne.CurrentApp().Driver().AbsolutePositionForObject(o)
		if at != nil {
			p = p.AddXY(at.X+12, at.Y+14)
		} else {
			p = p.AddXY(0, o.Size().Height+4)
		}
		room := l.Size()
		if p.X+m.Width > room.Width-4 {
			p.X = room.Width - 4 - m.Width
		}
		if p.Y+m.Height > room.Height-4 {
			p.Y -= m.Height + 8
			if at == nil {
				p.Y -= o.Size().Height
			} else {
				p.Y -= 14
			}
		}
		l.box.Resize(m)
		l.box.Move(fyne.NewPos(max(4, p.X), max(4, p.Y)))
		l.box.Show()
		l.box.Refresh()
	}
	if delay == 0 {
		place()
		return
	}
	l.timer = time.AfterFunc(delay, func() { fyne.Do(place) })
}
