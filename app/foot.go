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

// foot is the row under a turn: what can be done with it, which branch it is,
// and the figures of an answer. The buttons show while the pointer is near.
type foot struct {
	fynewidget.BaseWidget
	id      int64
	actions *fyne.Container
	row     *fyne.Container
}

func (c *chatPage) newFoot(t *turn) fyne.CanvasObject {
	f := &foot{id: t.m.ID, actions: widget.H(0)}
	button := func(icon, tip string, do func()) *widget.IconButton {
		b := widget.NewIconButton(icon, tip, do)
		b.OnHover = func(in bool) {
			if in {
				c.holdHover(f.id)
			} else {
				c.letHover()
			}
		}
		f.actions.Add(b)
		return b
	}
	var copied *widget.IconButton
	copied = button("copy", tr("Copy"), func() {
		c.a.fyne.Clipboard().SetContent(t.m.Content)
		copied.Flash("check")
	})
	button("text", tr("Select text"), func() { c.toggleSource(t) })
	own := t.m.Role == "user"
	if own {
		button("edit", tr("Edit and send again"), func() { c.edit(t.m.ID) })
	} else {
		button("retry", tr("Answer again"), func() { c.regenerate(t.m.ID) })
		button("branch", tr("Go on from here in a new chat"), func() { c.branch(t.m.ID) })
	}
	f.row = widget.H(4)
	if own {
		f.row.Add(widget.Space())
	}
	f.row.Add(f.actions)
	if sib, at := c.tree.Siblings(t.m.ID); len(sib) > 1 {
		to := func(i int) func() {
			return func() { c.setLeaf(c.tree.Newest(sib[i].ID)) }
		}
		back, on := widget.NewIconButton("left", tr("The branch before"), nil), widget.NewIconButton("right", tr("The next branch"), nil)
		if at > 0 {
			back.OnTapped = to(at - 1)
		} else {
			back.Disable()
		}
		if at < len(sib)-1 {
			on.OnTapped = to(at + 1)
		} else {
			on.Disable()
		}
		f.row.Add(back)
		f.row.Add(widget.NewCaption(fmt.Sprintf("%d/%d", at+1, len(sib))).Mono())
		f.row.Add(on)
	}
	if !own {
		f.row.Add(widget.NewCaption(statsLine(t.m)))
	}
	t.foot = f
	f.show(c.footShows(f.id))
	f.ExtendBaseWidget(f)
	return c.hovering(f.id, f)
}

// show shows or hides the buttons.
func (f *foot) show(on bool) {
	if f.actions.Hidden == !on {
		return
	}
	f.actions.Hidden = !on
	f.row.Refresh()
}

// CreateRenderer keeps the height of the row whatever it shows.
func (f *foot) CreateRenderer() fyne.WidgetRenderer {
	return fynewidget.NewSimpleRenderer(widget.Sized(0, 30, widget.Inset(0, -5, 0, -5, f.row)))
}

// toggleSource shows a turn's source as text that can be marked, and back.
func (c *chatPage) toggleSource(t *turn) {
	t.plain = !t.plain
	if t.m.Role == "user" {
		c.transcript.Rebuild(turnKey(t.m.ID))
		return
	}
	c.show()
}

// errorBox says why an answer ended early, with one button that helps.
func (c *chatPage) errorBox(t *turn) fyne.CanvasObject {
	text, next, _ := strings.Cut(t.m.Error, "\n")
	box := widget.V(6, widget.NewParagraph(text))
	if next != "" {
		box.Add(widget.NewNote(next))
	}
	row := widget.H(8)
	switch {
	case c.a.engine.Refused:
		b := fynewidget.NewButton(tr("See what would fit"), func() { c.a.whatFits(c.a.engine.Pack) })
		b.Importance = fynewidget.HighImportance
		row.Add(b)
	case c.a.engine.Phase != EngineReady:
		b := fynewidget.NewButton(tr("Start the engine and answer again"), func() { c.regenerate(t.m.ID) })
		b.Importance = fynewidget.HighImportance
		row.Add(b)
	default:
		row.Add(fynewidget.NewButton(tr("Answer again"), func() { c.regenerate(t.m.ID) }))
	}
	box.Add(row)
	return widget.Over(widget.NewGround("", widget.ColorAct, 8), widget.Pad(theme.Size(widget.SizeCard), widget.HTop(10, widget.NewLight(widget.StateAct), widget.Flex(box))))
}

// editor is a turn of the user being written anew.
type editor struct {
	id    int64
	entry *widget.Entry
	root  fyne.CanvasObject
}

// edit opens a turn of the user for change; sending it begins a new branch.
func (c *chatPage) edit(id int64) {
	m := c.tree.Message(id)
	if m == nil || m.Role != "user" {
		return
	}
	e := &editor{id: id, entry: c.a.field("")}
	e.entry.MultiLine = true
	e.entry.Wrapping = fyne.TextWrapWord
	e.entry.SetText(m.Content)
	own := e.entry.OnKey
	send := func() {
		text := strings.TrimSpace(e.entry.Text)
		c.endEdit()
		if text != "" {
			c.ask(m.Parent, text)
		}
	}
	e.entry.OnKey = func(k fyne.KeyName) bool {
		switch k {
		case fyne.KeyReturn, fyne.KeyEnter:
			if modifiers()&fyne.KeyModifierShift == 0 {
				send()
				return true
			}
			e.entry.TypedRune('\n')
			return true
		case fyne.KeyEscape:
			c.endEdit()
			c.focus()
			return true
		}
		return own(k)
	}
	ok := fynewidget.NewButton(tr("Send"), send)
	ok.Importance = fynewidget.HighImportance
	lines := float32(min(10, max(2, len(paragraphs(m.Content))+strings.Count(m.Content, "\n")+len(m.Content)/80)))
	e.root = widget.Box(widget.V(8, widget.Sized(0, lines*(theme.TextSize()+7)+18, e.entry),
		widget.H(8, widget.Space(), fynewidget.NewButton(tr("Cancel"), func() { c.endEdit(); c.focus() }), ok)))
	c.editor = e
	c.show()
	c.transcript.ScrollTo(turnKey(id) + ".edit")
	c.a.win.Canvas().Focus(e.entry)
	e.entry.CursorRow = strings.Count(m.Content, "\n")
	e.entry.TypedKey(&fyne.KeyEvent{Name: fyne.KeyEnd})
}

func (c *chatPage) endEdit() {
	if c.editor == nil {
		return
	}
	c.editor = nil
	c.show()
}

// editLast opens the last turn of the user, and says whether there is one.
func (c *chatPage) editLast() bool {
	path := c.tree.Path(c.conv.Leaf)
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].Role == "user" {
			c.edit(path[i].ID)
			return true
		}
	}
	return false
}

// copyLast puts the last answer on the clipboard.
func (c *chatPage) copyLast() {
	path := c.tree.Path(c.conv.Leaf)
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].Role == "assistant" {
			c.a.fyne.Clipboard().SetContent(path[i].Content)
			c.a.say("Copied the last answer.")
			return
		}
	}
}

// regenerateLast answers the last turn again.
func (c *chatPage) regenerateLast() {
	path := c.tree.Path(c.conv.Leaf)
	if len(path) == 0 {
		return
	}
	last := path[len(path)-1]
	if last.Role == "assistant" {
		c.regenerate(last.ID)
		return
	}
	c.answer(last.ID)
}

// branch copies the conversation up to a message into a new one.
func (c *chatPage) branch(id int64) {
	if c.a.store == nil {
		return
	}
	path := c.tree.Path(id)
	conv := c.conv
	conv.ID, conv.Leaf, conv.Draft, conv.Named = 0, 0, "", false
	conv.Title = tr("%s (branch)", titleOf(c.title()))
	conv.Created, conv.Updated = c.a.deps.Now(), c.a.deps.Now()
	messages := make([]store.Message, len(path))
	for i, m := range path {
		messages[i] = *m
	}
	var made store.Conversation
	c.a.background(func() (err error) {
		if made, err = c.a.store.NewConversation(conv); err != nil {
			return err
		}
		parent := int64(0)
		for _, m := range messages {
			m.ID, m.Parent, m.Conversation = 0, parent, made.ID
			if m, err = c.a.store.Add(m); err != nil {
				return err
			}
			parent = m.ID
		}
		return nil
	}, func(err error) {
		if err != nil {
			c.a.fail(err)
			return
		}
		c.list.reload()
		c.open(made.ID, 0)
	})
}
