package widget

import (
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Code shows a code block: language, wrap and copy above the coloured text.
// Append-only changes redraw only the lines that changed, and only the lines
// in view exist as objects.
type Code struct {
	fynewidget.BaseWidget
	lang   string
	source string
	open   bool
	text   *codeText
	scroll *wheelPass
	name   *Text
	wrap   *IconButton
	copy   *IconButton
	bar    *fyne.Container
	all    *fyne.Container

	coloured time.Time     // when it was last coloured
	cost     time.Duration // what that took
}

// NewCode makes a code block.
func NewCode(lang, source string) *Code {
	c := &Code{lang: lang}
	c.text = newCodeText()
	c.scroll = newWheelPass(Inset(0, 0, 8, 0, c.text)) // room for the bar of the scroll below the last line
	c.name = NewCaption(lang).Mono()
	c.wrap = NewIconButton("wrap", T("Wrap long lines"), func() {
		c.text.setWrap(!c.text.wrap)
		c.wrap.SetOn(c.text.wrap)
		c.Refresh()
	})
	c.copy = NewIconButton("copy", T("Copy code"), func() {
		fyne.CurrentApp().Clipboard().SetContent(c.source)
		c.copy.Flash("check")
	})
	c.bar = Inset(2, 4, 0, 12, H(2, Flex(c.name), c.wrap, c.copy))
	c.all = Over(NewGround(ColorRaised, "", 8), V(0, c.bar, Inset(0, 12, 2, 12, c.scroll)))
	c.ExtendBaseWidget(c)
	c.set(source, false)
	return c
}

// Set changes the code; open means that more is coming.
func (c *Code) Set(lang, source string, open bool) {
	if lang != c.lang {
		c.lang = lang
		c.name.Set(lang)
		c.coloured = time.Time{}
	}
	if source == c.source && open == c.open {
		return
	}
	c.set(source, open)
	c.Refresh()
}

func (c *Code) set(source string, open bool) {
	line := strings.Count(source, "\n") != strings.Count(c.source, "\n")
	c.source, c.open = source, open
	c.text.setLines(source)
	// While text streams in, colouring may take a twentieth of the time and
	// happens at line ends; the end of the block is always coloured.
	if !open || (line && time.Since(c.coloured) > 20*c.cost) {
		begin := time.Now()
		c.text.setColours(highlight(c.lang, source))
		c.coloured = time.Now()
		c.cost = c.coloured.Sub(begin)
	}
}

// Source is the code without its fences.
func (c *Code) Source() string { return c.source }

// SetWindow tells which part of the block can be seen, from its top.
func (c *Code) SetWindow(top, bottom float32) {
	head := c.bar.MinSize().Height
	c.text.setWindow(top-head, bottom-head)
}

// SetWheel hands vertical wheel movement to what scrolls around the block.
func (c *Code) SetWheel(f func(*fyne.ScrollEvent)) { c.scroll.up = f }

// CreateRenderer shows the bar over the text.
func (c *Code) CreateRenderer() fyne.WidgetRenderer { return fynewidget.NewSimpleRenderer(c.all) }

// wheelPass scrolls sideways and hands up what goes up and down, so that the
// wheel over a code block moves the page.
type wheelPass struct {
	container.Scroll
	up func(*fyne.ScrollEvent)
}

func newWheelPass(o fyne.CanvasObject) *wheelPass {
	s := &wheelPass{}
	s.Content = o
	s.Direction = container.ScrollHorizontalOnly
	s.ExtendBaseWidget(s)
	return s
}

// MinSize is as high as the text; Fyne's own is never below 32.
func (s *wheelPass) MinSize() fyne.Size {
	s.ExtendBaseWidget(s)
	return fyne.NewSize(32, s.Content.MinSize().Height)
}

// Scrolled moves sideways only when the event does.
func (s *wheelPass) Scrolled(e *fyne.ScrollEvent) {
	if e.Scrolled.DX == 0 && s.up != nil {
		s.up(e)
		return
	}
	s.Scroll.Scrolled(e)
}

// NewCommand shows a command on one line, with a button that copies it.
func NewCommand(text string) fyne.CanvasObject {
	var b *IconButton
	b = NewIconButton("copy", T("Copy the command"), func() {
		fyne.CurrentApp().Clipboard().SetContent(text)
		b.Flash("check")
	})
	t := NewCaption(text).Mono().In(ColorText).Cutting(60)
	return Over(NewGround(ColorRaised, "", 6), Inset(1, 3, 1, 10, H(6, Flex(t), b)))
}
