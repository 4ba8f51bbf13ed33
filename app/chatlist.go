package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"

	"outcrop/app/store"
	"outcrop/app/widget"
)

// chatList is the column of conversations.
type chatList struct {
	c      *chatPage
	all    []store.Conversation
	hits   []store.Hit // of the search; nil without one
	query  string
	rows   map[int64]*widget.Row
	order  []int64
	shown  int // how many are shown; more on request
	rename int64
	search *widget.Search
	box    *fyne.Container
	scroll *widget.PageScroll
	root   *fyne.Container
	asked  int
}

// listStep is how many conversations are shown at first, and added by "more".
const listStep = 100

func newChatList(c *chatPage) *chatList {
	l := &chatList{c: c, rows: map[int64]*widget.Row{}, shown: listStep, box: widget.V(1)}
	l.search = widget.NewSearch(tr("Search chats"), l.find)
	l.search.OnShortcut = c.a.typed
	add := widget.NewIconButton("add", tr("New chat (Ctrl+N)"), c.newConversation).In(widget.ColorText)
	l.scroll = widget.NewPageScroll(widget.Inset(0, 10, 12, 8, l.box))
	l.root = container.NewBorder(widget.Inset(0, 10, 8, 10, widget.H(4, widget.Flex(l.search), add)), nil, nil, nil, l.scroll)
	l.draw()
	return l
}

func (l *chatList) reload() {
	if l.c.a.store == nil {
		return
	}
	var list []store.Conversation
	l.c.a.background(func() (err error) {
		list, err = l.c.a.store.Conversations()
		return err
	}, func(err error) {
		if err != nil {
			l.c.a.fail(err)
			return
		}
		l.all = list
		l.draw()
	})
}

// find shows only what the search found.
func (l *chatList) find(q string) {
	l.query = strings.TrimSpace(q)
	l.asked++
	if l.query == "" {
		l.hits = nil
		l.draw()
		return
	}
	if l.c.a.store == nil {
		return
	}
	turn := l.asked
	var hits []store.Hit
	l.c.a.background(func() (err error) {
		hits, err = l.c.a.store.Search(l.query, 60)
		return err
	}, func(err error) {
		if turn != l.asked {
			return
		}
		l.c.a.failIf(err)
		l.hits = hits
		if l.hits == nil {
			l.hits = []store.Hit{}
		}
		l.draw()
	})
}

func (l *chatList) draw() {
	l.box.Objects = nil
	l.rows = map[int64]*widget.Row{}
	l.order = nil
	switch {
	case l.query != "" && l.hits != nil:
		l.drawHits()
	case len(l.all) == 0:
		l.box.Add(widget.Pad(8, widget.NewNote(tr("Chats will stand here. They stay on this computer."))))
	default:
		l.drawAll()
	}
	l.mark(l.c.conv.ID)
	l.box.Refresh()
	l.scroll.Refresh()
}

func (l *chatList) drawAll() {
	group := ""
	for i, c := range l.all {
		if i == l.shown {
			l.box.Add(widget.NewLink(tr("Show more"), func() {
				l.shown += listStep
				l.draw()
			}))
			break
		}
		if g := day(c.Updated, l.c.a.deps.Now()); g != group {
			group = g
			l.box.Add(widget.Inset(10, 8, 2, 8, widget.NewCaption(g)))
		}
		l.box.Add(l.row(c))
	}
}

func (l *chatList) row(c store.Conversation) fyne.CanvasObject {
	if c.ID == l.rename {
		return l.renamer(c)
	}
	title := c.Title
	if title == "" {
		title = tr("New chat")
	}
	more := widget.NewIconButton("more", tr("Rename, export, delete"), nil)
	more.OnTapped = func() { l.c.a.menu(more, l.c.menuItems(c)...) }
	more.Hide()
	line := widget.H(2, widget.Flex(widget.NewText(title).Cutting(40)), more)
	r := widget.NewRow(widget.Inset(3, 4, 3, 10, widget.Sized(0, theme.TextSize()+14, line)), func() { l.c.open(c.ID, 0) })
	r.OnMenu = func(at fyne.Position) { l.c.a.menuAt(at, l.c.menuItems(c)...) }
	r.OnHover = func(in bool) {
		if more.Visible() != in {
			more.Hidden = !in
			line.Refresh()
		}
	}
	r.OnKey = func(k fyne.KeyName) {
		switch k {
		case fyne.KeyDelete:
			l.c.remove(c)
		case fyne.KeyF2:
			l.startRename(c.ID)
		case fyne.KeyUp, fyne.KeyDown:
			l.step(c.ID, k == fyne.KeyDown)
		case fyne.KeyEscape:
			l.c.focus()
		}
	}
	l.rows[c.ID] = r
	l.order = append(l.order, c.ID)
	return r
}

// step moves the focus to the row above or below.
func (l *chatList) step(id int64, down bool) {
	for i, o := range l.order {
		if o != id {
			continue
		}
		j := i - 1
		if down {
			j = i + 1
		}
		if j >= 0 && j < len(l.order) {
			l.c.a.win.Canvas().Focus(l.rows[l.order[j]])
		}
		return
	}
}

func (l *chatList) drawHits() {
	if len(l.hits) == 0 {
		l.box.Add(widget.Pad(8, widget.NewNote(tr("Nothing found for “%s”.", l.query))))
		return
	}
	for _, h := range l.hits {
		title := h.Title
		if title == "" {
			title = tr("New chat")
		}
		line := widget.V(1, widget.NewText(title).Cutting(40))
		if h.Message != 0 {
			line.Add(widget.NewCaption(h.Snippet).Cutting(40))
		}
		l.box.Add(widget.NewRow(widget.Inset(6, 8, 6, 10, line), func() { l.c.open(h.Conversation, h.Message) }))
	}
}

// mark shows which conversation is open.
func (l *chatList) mark(id int64) {
	for i, r := range l.rows {
		r.SetSelected(i == id)
	}
}

func (l *chatList) startRename(id int64) {
	l.rename = id
	l.draw()
}

func (l *chatList) renamer(c store.Conversation) fyne.CanvasObject {
	e := l.c.a.field("")
	e.SetText(c.Title)
	done := false
	end := func(keep bool) {
		if done {
			return
		}
		done = true
		l.rename = 0
		if title := strings.TrimSpace(e.Text); keep && title != "" && title != c.Title {
			l.c.retitle(c, title)
			return
		}
		l.draw()
	}
	e.OnSubmitted = func(string) { end(true) }
	own := e.OnKey
	e.OnKey = func(k fyne.KeyName) bool {
		if k == fyne.KeyEscape {
			end(false)
			l.c.focus()
			return true
		}
		return own(k)
	}
	e.OnFocus = func(in bool) {
		if !in {
			end(true)
		}
	}
	l.c.a.ui(func() { l.c.a.win.Canvas().Focus(e) })
	return e
}

// retitle gives a conversation the title that the person chose.
func (c *chatPage) retitle(conv store.Conversation, title string) {
	conv.Title, conv.Named = title, true
	if c.conv.ID == conv.ID {
		c.conv.Title, c.conv.Named = title, true
		c.a.retitle()
	}
	c.a.background(func() error {
		now, err := c.a.store.Conversation(conv.ID)
		if err != nil {
			return err
		}
		now.Title, now.Named = title, true
		return c.a.store.SaveConversation(now)
	}, func(err error) {
		c.a.failIf(err)
		c.list.reload()
	})
}

// remove deletes a conversation, with ten seconds to think again.
func (c *chatPage) remove(conv store.Conversation) {
	if c.a.store == nil || conv.ID == 0 {
		return
	}
	if c.stream != nil && c.stream.conv == conv.ID {
		c.stop()
	}
	c.a.background(func() error { return c.a.store.Delete(conv.ID) }, func(err error) {
		if err != nil {
			c.a.fail(err)
			return
		}
		if c.conv.ID == conv.ID {
			c.conv = store.Conversation{}
			c.newConversation()
		}
		c.list.reload()
		title := conv.Title
		if title == "" {
			title = tr("New chat")
		}
		c.a.frame.toasts.Undo(tr("Deleted “%s”.", title), func() {
			c.a.background(func() error { return c.a.store.Restore(conv.ID) }, func(err error) {
				c.a.failIf(err)
				c.list.reload()
				c.open(conv.ID, 0)
			})
		}, nil)
	})
}

// menuItems is what can be done with a conversation.
func (c *chatPage) menuItems(conv store.Conversation) []*fyne.MenuItem {
	if conv.ID == 0 {
		return []*fyne.MenuItem{fyne.NewMenuItem(tr("Import conversations…"), c.importFile)}
	}
	return []*fyne.MenuItem{
		fyne.NewMenuItem(tr("Rename"), func() { c.list.startRename(conv.ID) }),
		fyne.NewMenuItem(tr("Export as Markdown…"), func() { c.export(conv, "md") }),
		fyne.NewMenuItem(tr("Export as JSON…"), func() { c.export(conv, "json") }),
		fyne.NewMenuItem(tr("Import conversations…"), c.importFile),
		fyne.NewMenuItemSeparator(),
		fyne.NewMenuItem(tr("Delete"), func() { c.remove(conv) }),
	}
}

// export writes a conversation where the person says.
func (c *chatPage) export(conv store.Conversation, kind string) {
	name := fileName(conv.Title, "conversation") + "." + kind
	c.a.saveFile(name, func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		if kind == "md" {
			err = c.a.store.ExportMarkdown(f, conv.ID)
		} else {
			err = c.a.store.ExportJSON(f, conv.ID)
		}
		if e := f.Close(); err == nil {
			err = e
		}
		return err
	})
}

func (c *chatPage) importFile() {
	c.a.openFile([]string{".json"}, func(path string) {
		n := 0
		c.a.background(func() error {
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			defer f.Close()
			n, err = c.a.store.Import(f)
			return err
		}, func(err error) {
			if err != nil {
				c.a.fail(err)
				return
			}
			c.a.say("Imported %d conversations.", n)
			c.list.reload()
		})
	})
}

// fileName makes a title safe as the name of a file.
func fileName(title, otherwise string) string {
	s := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '-'
		}
		return r
	}, title)
	s = strings.Trim(strings.TrimSpace(s), ".…")
	if s == "" {
		s = otherwise
	}
	if r := []rune(s); len(r) > 60 {
		s = string(r[:60])
	}
	return s
}

// saveFile asks where to write and then writes in the background.
func (a *App) saveFile(name string, write func(path string) error) {
	a.chooseSave(name, func(path string) {
		a.background(func() error { return write(path) }, func(err error) {
			if err != nil {
				a.fail(fmt.Errorf("write %s: %w", filepath.Base(path), err))
				return
			}
			a.say("Wrote %s.", path)
		})
	})
}
