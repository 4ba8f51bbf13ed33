package app

import (
	"fmt"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/store"
	"outcrop/app/widget"
)

// turn is one message of the branch shown, as items of the transcript: a
// bubble, or the blocks of an answer, each an item of its own so that a long
// answer is windowed too.
type turn struct {
	m      *store.Message
	blocks []widget.Block
	think  *thinking
	foot   *foot
	plain  bool // shown as selectable source
	open   bool // thinking unfolded
}

func turnKey(id int64) string { return fmt.Sprintf("m%d", id) }

func blockKey(id int64, i int) string { return fmt.Sprintf("m%d.%d", id, i) }

func thinkKey(id int64) string { return fmt.Sprintf("m%d.think", id) }

func footKey(id int64) string { return fmt.Sprintf("m%d.foot", id) }

const waitKey = "wait"

func (c *chatPage) turn(m *store.Message) *turn {
	t := c.turns[m.ID]
	if t == nil {
		t = &turn{m: m, open: c.a.settings.Thinking}
		c.turns[m.ID] = t
	}
	t.m = m
	return t
}

// items lists what the branch shown looks like.
func (c *chatPage) items() []widget.Item {
	var items []widget.Item
	for _, m := range c.tree.Path(c.conv.Leaf) {
		t := c.turn(m)
		if m.Role == "user" {
			items = append(items, c.userItems(t)...)
		} else {
			items = append(items, c.answerItems(t)...)
		}
	}
	if c.stream != nil && c.stream.conv == c.conv.ID {
		if it, ok := c.stream.waitItem(); ok {
			items = append(items, it)
		}
	}
	return items
}

func (c *chatPage) userItems(t *turn) []widget.Item {
	id := t.m.ID
	if c.editor != nil && c.editor.id == id {
		return []widget.Item{{Key: turnKey(id) + ".edit", Gap: 18, Guess: 120, Build: func() fyne.CanvasObject { return c.editor.root }}}
	}
	return []widget.Item{
		{Key: turnKey(id), Gap: 18, Guess: guess(t.m.Content, 60) + 20, Build: func() fyne.CanvasObject {
			return c.hovering(id, c.bubble(t))
		}},
		{Key: footKey(id), Guess: 28, Build: func() fyne.CanvasObject { return c.newFoot(t) }},
	}
}

// bubble is a turn of the user, at the right edge of the measure.
func (c *chatPage) bubble(t *turn) fyne.CanvasObject {
	var content fyne.CanvasObject
	if t.plain {
		content = selectable(t.m.Content)
	} else {
		box := widget.V(0)
		for _, part := range paragraphs(t.m.Content) {
			box.Add(widget.NewParagraph(part))
		}
		content = box
	}
	return &fyne.Container{Layout: bubbleLayout{natural(t.m.Content)},
		Objects: []fyne.CanvasObject{widget.Over(widget.NewGround(widget.ColorSurface, widget.ColorLine, 8), widget.Inset(8, 12, 8, 12, content))}}
}

// paragraphs cuts text so that no wrapped piece is long: the cost of wrapping
// grows faster than length.
func paragraphs(text string) []string {
	var out []string
	var b strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		if b.Len() > 0 && b.Len()+len(line) > 1200 {
			out = append(out, strings.TrimSuffix(b.String(), "\n"))
			b.Reset()
		}
		for len(line) > 1200 {
			at := strings.LastIndex(line[:1200], " ")
			if at < 600 {
				at = 1200
				for at > 0 && line[at]&0xC0 == 0x80 {
					at--
				}
			}
			out = append(out, b.String()+line[:at])
			b.Reset()
			line = strings.TrimPrefix(line[at:], " ")
		}
		b.WriteString(line + "\n")
	}
	return append(out, strings.TrimSuffix(b.String(), "\n"))
}

// natural is the width that a text takes unwrapped.
func natural(text string) float32 {
	w := float32(0)
	for i, line := range strings.Split(text, "\n") {
		if i > 200 || len(line) > 400 {
			return 1e6
		}
		w = max(w, fyne.MeasureText(line, theme.TextSize(), fyne.TextStyle{}).Width)
	}
	return w
}

// bubbleLayout makes the bubble as wide as its text, to 85 % of the measure.
type bubbleLayout struct{ natural float32 }

func (l bubbleLayout) width(room float32) float32 {
	return min(l.natural+28, room*0.85)
}

func (l bubbleLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	w := l.width(s.Width)
	h := widget.HeightAt(objs[0], w)
	objs[0].Resize(fyne.NewSize(w, h))
	objs[0].Move(fyne.NewPos(s.Width-w, 0))
}

func (l bubbleLayout) MinSize(objs []fyne.CanvasObject) fyne.Size {
	return fyne.NewSize(60, objs[0].MinSize().Height)
}

// guess is how high a text will be before it is measured.
func guess(text string, perLine int) float32 {
	lines := 1 + strings.Count(text, "\n") + len(text)/perLine
	return float32(lines) * (theme.TextSize() + 8)
}

func (c *chatPage) answerItems(t *turn) []widget.Item {
	id := t.m.ID
	var items []widget.Item
	gap := float32(6)
	if t.m.Reasoning != "" {
		items = append(items, widget.Item{Key: thinkKey(id), Gap: gap, Guess: 26, Build: func() fyne.CanvasObject {
			t.think = newThinking(c, t)
			return c.hovering(id, t.think)
		}})
		gap = 8
	}
	if t.plain {
		items = append(items, widget.Item{Key: turnKey(id) + ".plain", Gap: gap, Guess: guess(t.m.Content, 90), Build: func() fyne.CanvasObject {
			return c.hovering(id, selectable(t.m.Content))
		}})
	} else {
		t.blocks = widget.Split(t.m.Content)
		for i, b := range t.blocks {
			g := float32(12)
			switch {
			case i == 0:
				g = gap
			case b.Joined:
				g = 0
			}
			items = append(items, widget.Item{Key: blockKey(id, i), Gap: g, Guess: guess(b.Text, 95), Build: func() fyne.CanvasObject {
				return c.hovering(id, blockObject(t, i))
			}})
		}
	}
	live := c.stream != nil && c.stream.id == id
	if !live {
		items = append(items, widget.Item{Key: footKey(id), Gap: 2, Guess: 28, Build: func() fyne.CanvasObject { return c.newFoot(t) }})
		if t.m.Error != "" {
			items = append(items, widget.Item{Key: turnKey(id) + ".error", Gap: 6, Guess: 60, Build: func() fyne.CanvasObject { return c.errorBox(t) }})
		}
	}
	return items
}

func blockObject(t *turn, i int) fyne.CanvasObject {
	b := t.blocks[i]
	if b.Code {
		return widget.NewCode(b.Lang, b.Text)
	}
	return widget.NewProse(b.Text)
}

// selectable is the source of a turn as text that can be marked and copied.
func selectable(text string) fyne.CanvasObject {
	box := widget.V(0)
	for _, p := range paragraphs(text) {
		l := fynewidget.NewLabel(p)
		l.Wrapping = fyne.TextWrapWord
		l.Selectable = true
		box.Add(widget.Unpad(l))
	}
	return box
}

// hovering shows a turn's actions while the pointer is over a part of it.
func (c *chatPage) hovering(id int64, o fyne.CanvasObject) fyne.CanvasObject {
	return widget.NewHover(o, func(in bool) {
		if in {
			c.holdHover(id)
		} else {
			c.letHover()
		}
	})
}

// thinking is what a model thought before its answer, folded to one line.
type thinking struct {
	fynewidget.BaseWidget
	c    *chatPage
	t    *turn
	head *widget.Link
	body *fyne.Container
	fold *fyne.Container
	box  *fyne.Container
	size int // bytes of reasoning drawn
}

func newThinking(c *chatPage, t *turn) *thinking {
	k := &thinking{c: c, t: t, body: widget.V(6)}
	k.fold = widget.Inset(0, 0, 4, 12, k.body)
	k.head = widget.NewLink("", k.toggle).Styled(widget.ColorDim, widget.SizeCaption)
	k.box = widget.V(6, widget.Inset(0, 0, 0, -5, widget.H(4, k.head)), k.fold)
	k.ExtendBaseWidget(k)
	k.update()
	return k
}

func (k *thinking) toggle() {
	k.t.open = !k.t.open
	k.update()
	k.c.transcript.Changed(thinkKey(k.t.m.ID))
}

// update writes the line, and the text where it is unfolded.
func (k *thinking) update() {
	words := tr("Thinking…")
	if ms := k.t.m.Stats.ThinkMS; ms > 0 {
		words = tr("Thought for %s", seconds1(ms))
	} else if k.t.m.Finish != "" {
		words = tr("Thought")
	}
	mark := "▸ "
	if k.t.open {
		mark = "▾ "
	}
	k.head.Set(mark + words)
	k.body.Objects = nil
	if k.t.open {
		for _, p := range paragraphs(strings.TrimSpace(k.t.m.Reasoning)) {
			k.body.Add(widget.NewParagraph(p).In(widget.ColorDim))
		}
	}
	k.fold.Hidden = !k.t.open
	k.body.Refresh()
	k.box.Refresh()
}

// CreateRenderer shows line and text.
func (k *thinking) CreateRenderer() fyne.WidgetRenderer {
	return fynewidget.NewSimpleRenderer(k.box)
}

func seconds1(ms float64) string {
	if ms < 10_000 {
		return tr("%.1f s", ms/1000)
	}
	return tr("%.0f s", ms/1000)
}

// statsLine is the dim line under an answer.
func statsLine(m *store.Message) string {
	var parts []string
	s := m.Stats
	if s.Tokens > 0 {
		parts = append(parts, tr("%d tokens", s.Tokens))
	}
	if s.TokS > 0 {
		parts = append(parts, rate(s.TokS))
	}
	if s.Drafted > 0 {
		parts = append(parts, tr("drafts %d %%", s.Accepted*100/s.Drafted))
	}
	switch m.Finish {
	case "cancelled":
		parts = append(parts, tr("stopped"))
	case "length":
		parts = append(parts, tr("cut at the limit of tokens"))
	case "context":
		parts = append(parts, tr("the context is full"))
	case "":
		parts = append(parts, tr("interrupted"))
	}
	return strings.Join(parts, " · ")
}
