package widget

import (
	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Item is one piece of a transcript: a turn of the user, a block of an
// answer, a line of figures. Key says what it is; Build makes its object when
// it comes near the view, and again when it came back after being dropped.
type Item struct {
	Key   string
	Gap   float32 // room above
	Guess float32 // height before it was ever measured
	Build func() fyne.CanvasObject
}

// Windowed is an object that draws only what can be seen of it.
type Windowed interface{ SetWindow(top, bottom float32) }

// wheeled is an object that hands wheel movement up.
type wheeled interface{ SetWheel(func(*fyne.ScrollEvent)) }

// Transcript shows a long column of items. Only those within one screen of
// the view exist as objects; heights are kept per width. While the reader is
// at the bottom it stays there as text grows; elsewhere nothing moves.
type Transcript struct {
	fynewidget.BaseWidget
	// OnScrolled is told after each move whether the view is at the bottom.
	OnScrolled func(atBottom bool)

	items   []Item
	tops    []float32 // of each item, its gap included
	heights map[string]float32
	live    map[string]fyne.CanvasObject
	width   float32 // of the measure that heights were taken at
	total   float32
	stick   bool
	moving  bool

	scroll *PageScroll
	body   *transcriptBody
}

// PageScroll is a scroller whose wheel steps are as long as a person expects.
type PageScroll struct{ container.Scroll }

// wheelSteps multiplies what Fyne makes of one notch of the wheel, which is
// about one line of text.
const wheelSteps = 2.5

// Scrolled moves by more than Fyne does.
func (s *PageScroll) Scrolled(e *fyne.ScrollEvent) {
	ev := *e
	ev.Scrolled.DY *= wheelSteps
	s.Scroll.Scrolled(&ev)
}

// NewPageScroll scrolls a page up and down.
func NewPageScroll(o fyne.CanvasObject) *PageScroll {
	s := &PageScroll{}
	s.Content, s.Direction = o, container.ScrollVerticalOnly
	s.ExtendBaseWidget(s)
	return s
}

// NewTranscript makes an empty one.
func NewTranscript() *Transcript {
	t := &Transcript{heights: map[string]float32{}, live: map[string]fyne.CanvasObject{}, stick: true}
	t.body = &transcriptBody{t: t}
	t.body.ExtendBaseWidget(t.body)
	t.scroll = &PageScroll{}
	t.scroll.Content, t.scroll.Direction = t.body, container.ScrollVerticalOnly
	t.scroll.ExtendBaseWidget(t.scroll)
	t.scroll.OnScrolled = func(fyne.Position) { t.scrolled() }
	t.ExtendBaseWidget(t)
	return t
}

// CreateRenderer shows the scroller.
func (t *Transcript) CreateRenderer() fyne.WidgetRenderer {
	return fynewidget.NewSimpleRenderer(t.scroll)
}

// SetItems replaces the items. Objects and heights of keys that stay are kept.
func (t *Transcript) SetItems(items []Item) {
	t.items = items
	keep := make(map[string]bool, len(items))
	for _, it := range items {
		keep[it.Key] = true
	}
	for k := range t.live {
		if !keep[k] {
			delete(t.live, k)
		}
	}
	for k := range t.heights {
		if !keep[k] {
			delete(t.heights, k)
		}
	}
	t.arrange()
}

// Object gives the live object of a key, or nil while it is far from view.
func (t *Transcript) Object(key string) fyne.CanvasObject { return t.live[key] }

// Live is how many objects exist now.
func (t *Transcript) Live() int { return len(t.live) }

// Changed measures the item of a key again, after its object was changed.
func (t *Transcript) Changed(keys ...string) {
	for _, k := range keys {
		delete(t.heights, k)
	}
	t.arrange()
}

// Rebuild drops the object of a key, so that Build makes a new one.
func (t *Transcript) Rebuild(keys ...string) {
	for _, k := range keys {
		delete(t.live, k)
		delete(t.heights, k)
	}
	t.arrange()
}

// AtBottom says whether the view is at the end.
func (t *Transcript) AtBottom() bool {
	return t.scroll.Offset.Y+t.scroll.Size().Height >= t.total-24
}

// ScrollToBottom goes to the end and stays there.
func (t *Transcript) ScrollToBottom() {
	t.stick = true
	t.arrange()
}

// ScrollTo brings the item of a key to the top of the view.
func (t *Transcript) ScrollTo(key string) {
	for i, it := range t.items {
		if it.Key == key {
			t.stick = false
			t.move(t.tops[i])
			t.arrange() // measuring on the way may have moved it
			t.move(t.tops[i])
			return
		}
	}
}

// ScrollBy moves the view, for keys.
func (t *Transcript) ScrollBy(dy float32) {
	t.move(t.scroll.Offset.Y + dy)
	t.scrolled()
}

// Page is the height of the view.
func (t *Transcript) Page() float32 { return t.scroll.Size().Height }

func (t *Transcript) move(y float32) {
	t.moving = true
	y = max(0, min(y, t.total-t.scroll.Size().Height))
	t.scroll.Offset.Y = y
	t.scroll.Refresh()
	t.moving = false
}

func (t *Transcript) scrolled() {
	if t.moving {
		return
	}
	t.stick = t.AtBottom()
	t.arrange()
	if t.OnScrolled != nil {
		t.OnScrolled(t.AtBottom())
	}
}

// Resize measures everything anew when the width changes.
func (t *Transcript) Resize(s fyne.Size) {
	t.BaseWidget.Resize(s)
	t.arrange()
}

// measure gives the left edge and width of the column.
func (t *Transcript) measure() (x, w float32) {
	room := t.scroll.Size().Width
	pad := theme.Size(SizePage)
	w = min(theme.Size(SizeMeasure), room-2*pad)
	return (room - w) / 2, max(w, 80)
}

// arrange places what is near the view and measures what is new there. The
// first item in view stays where it is on the screen, unless the reader is at
// the bottom, which stays the bottom.
func (t *Transcript) arrange() {
	view := t.scroll.Size()
	if view.Width <= 0 || view.Height <= 0 {
		return
	}
	x, w := t.measure()
	if w != t.width {
		clear(t.heights)
		t.width = w
	}
	anchor, at := t.anchor()
	// Measuring changes heights, heights change what is in view: a few rounds
	// settle it, because every round measures only items it has not seen.
	for range 6 {
		t.tally()
		off := t.scroll.Offset.Y
		if t.stick {
			off = max(0, t.total-view.Height)
		} else if anchor != "" {
			for i := range t.items {
				if t.items[i].Key == anchor {
					off = t.tops[i] - at
				}
			}
		}
		off = max(0, min(off, t.total-view.Height))
		t.scroll.Offset.Y = off
		if !t.realise(off-view.Height, off+2*view.Height, w) {
			break
		}
	}
	t.place(x, w)
}

// anchor finds the first item in view and its distance from the view's top.
func (t *Transcript) anchor() (string, float32) {
	off := t.scroll.Offset.Y
	for i := range t.items {
		if i < len(t.tops) && t.tops[i]+t.heights[t.items[i].Key] > off {
			return t.items[i].Key, t.tops[i] - off
		}
	}
	return "", 0
}

func (t *Transcript) height(it Item) float32 {
	if h, ok := t.heights[it.Key]; ok {
		return h
	}
	return max(it.Guess, 20)
}

// tally computes the tops from heights known or guessed.
func (t *Transcript) tally() {
	pad := theme.Size(SizePage)
	y := pad
	if cap(t.tops) < len(t.items) {
		t.tops = make([]float32, len(t.items), 2*len(t.items))
	}
	t.tops = t.tops[:len(t.items)]
	for i, it := range t.items {
		y += it.Gap
		t.tops[i] = y
		y += t.height(it)
	}
	t.total = y + pad
}

// realise makes and measures the items between two heights, drops those far
// from them, and says whether a height changed.
func (t *Transcript) realise(from, to, w float32) bool {
	changed := false
	for i, it := range t.items {
		top, bottom := t.tops[i], t.tops[i]+t.height(it)
		if bottom < from || top > to {
			delete(t.live, it.Key)
			continue
		}
		o := t.live[it.Key]
		if o == nil {
			o = it.Build()
			if ww, ok := o.(wheeled); ok {
				ww.SetWheel(t.scroll.Scrolled)
			}
			t.live[it.Key] = o
		}
		if _, ok := t.heights[it.Key]; !ok {
			h := HeightAt(o, w)
			if h != t.height(it) {
				changed = true
			}
			t.heights[it.Key] = h
		}
	}
	return changed
}

func (t *Transcript) place(x, w float32) {
	off, page := t.scroll.Offset.Y, t.scroll.Size().Height
	objs := t.body.objs[:0]
	for i, it := range t.items {
		o := t.live[it.Key]
		if o == nil {
			continue
		}
		o.Resize(fyne.NewSize(w, t.height(it)))
		o.Move(fyne.NewPos(x, t.tops[i]))
		if ww, ok := o.(Windowed); ok {
			ww.SetWindow(off-t.tops[i]-page/2, off+1.5*page-t.tops[i])
		}
		objs = append(objs, o)
	}
	t.body.objs = objs
	t.moving = true
	// The body takes its new height first: the scroller clips its offset by it.
	t.body.Resize(fyne.NewSize(t.scroll.Size().Width, max(t.total, page)))
	t.scroll.Offset.Y = off
	t.scroll.Refresh() // refreshes the body too
	t.moving = false
}

// transcriptBody is what scrolls: as high as all items, holding the live ones.
type transcriptBody struct {
	fynewidget.BaseWidget
	t    *Transcript
	objs []fyne.CanvasObject
}

// CreateRenderer holds the live objects.
func (b *transcriptBody) CreateRenderer() fyne.WidgetRenderer { return &bodyRenderer{b} }

type bodyRenderer struct{ b *transcriptBody }

func (r *bodyRenderer) Layout(fyne.Size)             {}
func (r *bodyRenderer) MinSize() fyne.Size           { return fyne.NewSize(0, r.b.t.total) }
func (r *bodyRenderer) Refresh()                     { canvas.Refresh(r.b) }
func (r *bodyRenderer) Objects() []fyne.CanvasObject { return r.b.objs }
func (r *bodyRenderer) Destroy()                     {}
