package widget

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Text is one line of text without padding, in a colour and size of the
// theme. With Cut set it may be given less room than it needs and then ends
// in an ellipsis; its smallest width is then Cut.
type Text struct {
	fynewidget.BaseWidget
	Color fyne.ThemeColorName
	Role  fyne.ThemeSizeName
	Style fyne.TextStyle
	Align fyne.TextAlign
	Cut   float32
	text  string
}

// NewText makes a line of body text.
func NewText(s string) *Text { return newText(s, ColorText, SizeText, fyne.TextStyle{}) }

// NewCaption makes a small dim line.
func NewCaption(s string) *Text { return newText(s, ColorDim, SizeCaption, fyne.TextStyle{}) }

// NewHeading makes the heading of a part of a page.
func NewHeading(s string) *Text {
	return newText(s, ColorText, SizeHeading, fyne.TextStyle{Bold: true})
}

// NewTitle makes the title of a page.
func NewTitle(s string) *Text { return newText(s, ColorText, SizeTitle, fyne.TextStyle{Bold: true}) }

// NewNumber makes body text with digits of one width, for values that change.
func NewNumber(s string) *Text {
	return newText(s, ColorText, SizeText, fyne.TextStyle{Monospace: true})
}

func newText(s string, c fyne.ThemeColorName, size fyne.ThemeSizeName, style fyne.TextStyle) *Text {
	t := &Text{Color: c, Role: size, Style: style, text: s}
	t.ExtendBaseWidget(t)
	return t
}

// In sets the colour and gives the text back, for building.
func (t *Text) In(c fyne.ThemeColorName) *Text { t.Color = c; return t }

// Mono sets the fixed-width font and gives the text back, for building.
func (t *Text) Mono() *Text { t.Style.Monospace = true; return t }

// Bold sets the bold font and gives the text back, for building.
func (t *Text) Bold() *Text { t.Style.Bold = true; return t }

// Cutting lets the text be cut down to a width of w, and gives it back.
func (t *Text) Cutting(w float32) *Text { t.Cut = w; return t }

// Right aligns to the trailing edge and gives the text back.
func (t *Text) Right() *Text { t.Align = fyne.TextAlignTrailing; return t }

// Text is what it says.
func (t *Text) Text() string { return t.text }

// Set changes the text; equal text costs nothing.
func (t *Text) Set(s string) {
	if s == t.text {
		return
	}
	t.text = s
	t.Refresh()
}

// SetIn changes text and colour together.
func (t *Text) SetIn(s string, c fyne.ThemeColorName) {
	if s == t.text && c == t.Color {
		return
	}
	t.text, t.Color = s, c
	t.Refresh()
}

// CreateRenderer draws one canvas text.
func (t *Text) CreateRenderer() fyne.WidgetRenderer {
	r := &textRenderer{t: t, c: canvas.NewText("", color.Black)}
	r.update()
	return r
}

type textRenderer struct {
	t    *Text
	c    *canvas.Text
	size fyne.Size
}

func (r *textRenderer) update() {
	th := r.t.Theme()
	v := fyne.CurrentApp().Settings().ThemeVariant()
	r.c.Color = th.Color(r.t.Color, v)
	r.c.TextSize = th.Size(r.t.Role)
	r.c.TextStyle = r.t.Style
	r.c.Alignment = r.t.Align
	r.fit()
}

// fit cuts the text to the room there is.
func (r *textRenderer) fit() {
	r.c.Text = r.t.text
	if r.t.Cut <= 0 || r.size.Width <= 0 {
		return
	}
	measure := func(s string) float32 {
		return fyne.MeasureText(s, r.c.TextSize, r.c.TextStyle).Width
	}
	if measure(r.t.text) <= r.size.Width+0.5 {
		return
	}
	runes := []rune(r.t.text)
	lo, hi := 0, len(runes)
	for lo < hi {
		mid := (lo + hi + 1) / 2
		if measure(string(runes[:mid])+"…") <= r.size.Width {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	r.c.Text = string(runes[:lo]) + "…"
}

func (r *textRenderer) Layout(s fyne.Size) {
	if r.size != s {
		r.size = s
		was := r.c.Text
		r.fit()
		if r.c.Text != was {
			r.c.Refresh()
		}
	}
	r.c.Resize(s)
}

func (r *textRenderer) MinSize() fyne.Size {
	m := fyne.MeasureText(r.t.text, r.c.TextSize, r.c.TextStyle)
	if r.t.text == "" {
		m.Height = fyne.MeasureText("x", r.c.TextSize, r.c.TextStyle).Height
	}
	if r.t.Cut > 0 && m.Width > r.t.Cut {
		m.Width = r.t.Cut
	}
	return m
}

func (r *textRenderer) Refresh() {
	r.update()
	r.c.Refresh()
}

func (r *textRenderer) Objects() []fyne.CanvasObject { return []fyne.CanvasObject{r.c} }
func (r *textRenderer) Destroy()                     {}

// Paragraph is wrapped text without padding, in a colour and size of the
// theme. Its height follows from the width it was last given.
type Paragraph struct {
	fynewidget.BaseWidget
	rich *fynewidget.RichText
	seg  *fynewidget.TextSegment
}

// NewParagraph makes wrapped body text.
func NewParagraph(s string) *Paragraph { return newParagraph(s, ColorText, SizeText) }

// NewNote makes wrapped small dim text.
func NewNote(s string) *Paragraph { return newParagraph(s, ColorDim, SizeCaption) }

func newParagraph(s string, c fyne.ThemeColorName, size fyne.ThemeSizeName) *Paragraph {
	p := &Paragraph{seg: &fynewidget.TextSegment{Text: s, Style: fynewidget.RichTextStyle{
		ColorName: c, SizeName: size, Inline: true,
	}}}
	p.rich = fynewidget.NewRichText(p.seg)
	p.rich.Wrapping = fyne.TextWrapWord
	p.ExtendBaseWidget(p)
	return p
}

// In sets the colour and gives the paragraph back, for building.
func (p *Paragraph) In(c fyne.ThemeColorName) *Paragraph { p.seg.Style.ColorName = c; return p }

// Text is what it says.
func (p *Paragraph) Text() string { return p.seg.Text }

// Set changes the text.
func (p *Paragraph) Set(s string) { p.SetIn(s, p.seg.Style.ColorName) }

// SetIn changes text and colour together.
func (p *Paragraph) SetIn(s string, c fyne.ThemeColorName) {
	if s == p.seg.Text && c == p.seg.Style.ColorName {
		return
	}
	p.seg.Text, p.seg.Style.ColorName = s, c
	p.rich.Refresh()
	p.Refresh()
}

// CreateRenderer lays the rich text out without its padding.
func (p *Paragraph) CreateRenderer() fyne.WidgetRenderer {
	return fynewidget.NewSimpleRenderer(Unpad(p.rich))
}

// Unpad wraps a Fyne text widget so that its inner padding takes no room.
func Unpad(o fyne.CanvasObject) *fyne.Container {
	return &fyne.Container{Layout: unpad{}, Objects: []fyne.CanvasObject{o}}
}

type unpad struct{}

func (unpad) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	p := theme.InnerPadding()
	for _, o := range objs {
		o.Resize(fyne.NewSize(s.Width+2*p, s.Height+2*p))
		o.Move(fyne.NewPos(-p, -p))
	}
}

func (unpad) MinSize(objs []fyne.CanvasObject) fyne.Size {
	p := theme.InnerPadding()
	var m fyne.Size
	for _, o := range objs {
		m = m.Max(o.MinSize())
	}
	return fyne.NewSize(max(0, m.Width-2*p), max(0, m.Height-2*p))
}
