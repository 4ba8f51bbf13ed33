package widget

import (
	"time"

	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Toast is news that needs no answer: a sentence, and one button that helps
// or takes something back.
type Toast struct {
	State  State
	Text   string
	Button string
	Do     func() // of the button; the toast goes away after it
	Gone   func() // when it goes away without the button
	For    time.Duration
}

// Toasts is the layer that holds toasts, at the right of the window.
type Toasts struct {
	fynewidget.BaseWidget
	shown []*toastCard
	box   *fyne.Container
	// After starts a timer; tests replace it.
	After func(time.Duration, func()) (stop func())
}

// How long toasts stay, and how many at once.
const (
	ToastTime = 6 * time.Second
	UndoTime  = 10 * time.Second
	toastMost = 4
)

// NewToasts makes an empty layer.
func NewToasts() *Toasts {
	t := &Toasts{After: func(d time.Duration, f func()) func() {
		timer := time.AfterFunc(d, func() { fyne.Do(f) })
		return func() { timer.Stop() }
	}}
	t.box = &fyne.Container{Layout: &toastLayout{}}
	t.ExtendBaseWidget(t)
	return t
}

// Push adds a toast. News that stands there already is not said twice: the new
// one takes its place.
func (t *Toasts) Push(n Toast) {
	for _, c := range t.shown {
		if n.Gone == nil && c.toast.Gone == nil && c.toast.Text == n.Text {
			t.remove(c, false)
			break
		}
	}
	if n.For == 0 {
		n.For = ToastTime
	}
	c := newToastCard(n)
	c.close = func(used bool) { t.remove(c, used) }
	c.stop = t.After(n.For, func() { t.remove(c, false) })
	t.shown = append(t.shown, c)
	if len(t.shown) > toastMost {
		t.remove(t.shown[0], false)
	}
	t.layout()
}

// Undo says what was done and offers to take it back for ten seconds; after
// that, or when the window closes, final is called.
func (t *Toasts) Undo(text string, undo, final func()) {
	t.Push(Toast{State: StateInfo, Text: text, Button: T("Undo"), Do: undo, Gone: final, For: UndoTime})
}

// Settle ends all toasts as if their time were over.
func (t *Toasts) Settle() {
	for len(t.shown) > 0 {
		t.remove(t.shown[0], false)
	}
}

// Texts is what the toasts say, for tests.
func (t *Toasts) Texts() []string {
	var s []string
	for _, c := range t.shown {
		s = append(s, c.toast.Text)
	}
	return s
}

// Press presses the button of the last toast, and says whether there was one.
func (t *Toasts) Press() bool {
	for i := len(t.shown) - 1; i >= 0; i-- {
		if c := t.shown[i]; c.toast.Do != nil {
			t.remove(c, true)
			return true
		}
	}
	return false
}

func (t *Toasts) remove(c *toastCard, used bool) {
	for i, s := range t.shown {
		if s != c {
			continue
		}
		t.shown = append(t.shown[:i:i], t.shown[i+1:]...)
		c.stop()
		t.layout()
		if used && c.toast.Do != nil {
			c.toast.Do()
		}
		if !used && c.toast.Gone != nil {
			c.toast.Gone()
		}
		return
	}
}

func (t *Toasts) layout() {
	t.box.Objects = t.box.Objects[:0]
	for _, c := range t.shown {
		t.box.Objects = append(t.box.Objects, c)
	}
	t.box.Refresh()
}

// CreateRenderer shows the cards.
func (t *Toasts) CreateRenderer() fyne.WidgetRenderer {
	t.ExtendBaseWidget(t)
	return fynewidget.NewSimpleRenderer(t.box)
}

// SetLow puts the cards to the lower right, where they hide least, or with false
// below the heading: where a message is written and sent, the lower right is taken.
func (t *Toasts) SetLow(on bool) {
	l := t.box.Layout.(*toastLayout)
	if l.low != on {
		l.low = on
		t.box.Refresh()
	}
}

// toastLayout stacks cards downwards from below the heading at the right, the
// newest first, or upwards from above the status line.
type toastLayout struct{ low bool }

func (l *toastLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	y := float32(60)
	if l.low {
		y = s.Height - 44
	}
	for i := len(objs) - 1; i >= 0; i-- {
		o := objs[i]
		w := min(420, s.Width-32)
		h := HeightAt(o, w)
		o.Resize(fyne.NewSize(w, h))
		if l.low {
			y -= h
			o.Move(fyne.NewPos(s.Width-w-16, y))
			y -= 8
			continue
		}
		o.Move(fyne.NewPos(s.Width-w-16, y))
		y += h + 8
	}
}

func (*toastLayout) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.Size{} }

type toastCard struct {
	fynewidget.BaseWidget
	toast Toast
	close func(used bool)
	stop  func()
}

func newToastCard(n Toast) *toastCard {
	c := &toastCard{toast: n}
	c.ExtendBaseWidget(c)
	return c
}

// Tapped keeps presses from what lies under the card.
func (c *toastCard) Tapped(*fyne.PointEvent) {}

// CreateRenderer shows mark, sentence and button.
func (c *toastCard) CreateRenderer() fyne.WidgetRenderer {
	c.ExtendBaseWidget(c)
	row := H(10, NewLight(c.toast.State), Flex(NewParagraph(c.toast.Text)))
	if c.toast.Button != "" {
		b := fynewidget.NewButton(c.toast.Button, func() { c.close(true) })
		b.Importance = fynewidget.HighImportance
		row.Add(b)
	}
	row.Add(NewIconButton("close", T("Close"), func() { c.close(false) }))
	return fynewidget.NewSimpleRenderer(Over(NewGround(ColorRaised, ColorLine, 8), Inset(10, 8, 10, 12, row)))
}
