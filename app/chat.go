package app

import (
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"outcrop/app/store"
	"outcrop/app/widget"
)

// chatPage is the conversation: list at the left, transcript and composer,
// and a drawer for sampling at the right.
type chatPage struct {
	a          *App
	list       *chatList
	composer   *composer
	drawer     *drawer
	transcript *widget.Transcript
	bottom     *widget.IconButton // goes to the end
	welcome    *fyne.Container
	root       *fyne.Container
	layout     *chatLayout

	conv   store.Conversation // ID 0: not written yet
	tree   *store.Tree
	turns  map[int64]*turn // of the branch shown, by message
	stream *stream         // the answer being written, or nil
	editor *editor         // a turn being edited, or nil
	hover  int64           // message whose actions show
	timer  func()          // of the hover's end
}

func newChat(a *App) page {
	c := &chatPage{a: a, tree: store.NewTree(nil), turns: map[int64]*turn{}}
	c.transcript = widget.NewTranscript()
	c.list = newChatList(c)
	c.composer = newComposer(c)
	c.drawer = newDrawer(c)
	c.welcome = widget.Over()
	c.bottom = widget.NewIconButton("bottom", tr("To the end (End)"), c.transcript.ScrollToBottom)
	c.bottom.Hide()
	c.transcript.OnScrolled = func(at bool) {
		if c.bottom.Visible() == at {
			c.bottom.Hidden = at
			widget.Relayout(c.root)
		}
	}
	c.layout = &chatLayout{c: c, list: true}
	side := widget.NewGround(widget.ColorLine, "", 0)
	c.layout.line = side
	c.root = &fyne.Container{Layout: c.layout, Objects: []fyne.CanvasObject{c.list.root, side, c.transcript, c.welcome, c.composer.root, c.bottom, c.drawer.root}}
	c.drawer.root.Hide()
	c.show()
	return c
}

func (c *chatPage) object() fyne.CanvasObject { return c.root }

func (c *chatPage) title() string {
	if c.conv.Title != "" {
		return c.conv.Title
	}
	return tr("New chat")
}

func (c *chatPage) actions() []fyne.CanvasObject {
	more := widget.NewIconButton("more", tr("More"), nil)
	more.OnTapped = func() { c.a.menu(more, c.menuItems(c.conv)...) }
	return []fyne.CanvasObject{
		widget.NewIconButton("sliders", tr("Sampling and system prompt (Ctrl+D)"), c.toggleDrawer), more,
	}
}

func (c *chatPage) shown(on bool) {
	if on {
		c.focus()
	}
}

func (c *chatPage) focus() {
	if c.a.frame != nil && c.a.frame.sheet == nil {
		c.a.win.Canvas().Focus(c.composer.entry)
	}
}

func (c *chatPage) storeOpened() {
	c.list.reload()
	c.drawer.reload()
	c.packsChanged() // the settings say which pack was used last
}

func (c *chatPage) packsChanged() {
	c.composer.packs()
	c.showWelcome()
}

func (c *chatPage) engineChanged(s EngineState) {
	c.composer.engine(s)
	if c.stream != nil {
		c.stream.engineChanged(s)
	}
}

func (c *chatPage) sampled(p *point) {
	if c.stream == nil && p.engine && p.sample.Engine.ContextSize > 0 {
		c.composer.context(c.contextUsed(), p.sample.Engine.ContextSize)
	}
}

// contextUsed is how much the branch shown took at its last answer.
func (c *chatPage) contextUsed() int {
	path := c.tree.Path(c.conv.Leaf)
	for i := len(path) - 1; i >= 0; i-- {
		if n := path[i].Stats.Context; n > 0 {
			return n
		}
	}
	return 0
}

// key takes what no control wanted.
func (c *chatPage) key(k fyne.KeyName) bool {
	switch k {
	case fyne.KeyEscape:
		switch {
		case c.editor != nil:
			c.endEdit()
		case c.stream != nil:
			c.stop()
		case c.drawer.root.Visible():
			c.toggleDrawer()
		default:
			c.focus()
			return false
		}
		return true
	case fyne.KeyPageUp:
		c.transcript.ScrollBy(-0.9 * c.transcript.Page())
	case fyne.KeyPageDown:
		c.transcript.ScrollBy(0.9 * c.transcript.Page())
	case fyne.KeyHome:
		c.transcript.ScrollBy(-1e9)
	case fyne.KeyEnd:
		c.transcript.ScrollToBottom()
	default:
		return false
	}
	return true
}

func (c *chatPage) toggleDrawer() {
	if c.drawer.root.Visible() {
		c.drawer.root.Hide()
	} else {
		c.drawer.show()
		c.drawer.root.Show()
	}
	widget.Relayout(c.root)
}

func (c *chatPage) toggleList() {
	c.layout.list = !c.layout.list
	widget.Relayout(c.root)
}

// leave ends what must not outlive the page: the answer being written, the
// draft that is not saved.
func (c *chatPage) leave() {
	if c.stream != nil {
		c.stream.end()
	}
	c.saveDraft()
}

// newConversation shows an empty one; it is written with its first turn.
func (c *chatPage) newConversation() {
	c.saveDraft()
	keep := store.Conversation{System: "", Preset: c.a.settings.Preset}
	if p, ok := c.drawer.preset(c.a.settings.Preset); ok {
		keep.System, keep.Sampling = p.System, p.Sampling
	}
	c.use(keep, nil)
	c.focus()
}

// open shows a conversation, and one of its messages if given.
func (c *chatPage) open(id, message int64) {
	if id == c.conv.ID {
		if message != 0 {
			c.reveal(message)
		}
		return
	}
	if c.a.store == nil {
		return
	}
	c.saveDraft()
	var conv store.Conversation
	var list []store.Message
	c.a.background(func() (err error) {
		if conv, err = c.a.store.Conversation(id); err == nil {
			list, err = c.a.store.Messages(id)
		}
		return err
	}, func(err error) {
		if err != nil {
			c.a.fail(err)
			return
		}
		c.use(conv, list)
		if message != 0 {
			c.reveal(message)
		}
		c.focus()
	})
}

// use puts a conversation on the page.
func (c *chatPage) use(conv store.Conversation, list []store.Message) {
	c.endEdit()
	c.conv = conv
	if c.stream == nil || c.stream.conv != conv.ID {
		c.tree = store.NewTree(list)
	} else {
		c.tree = c.stream.tree // the answer goes on in the open conversation
	}
	c.turns = map[int64]*turn{}
	c.composer.set(conv.Draft)
	c.composer.streaming(c.stream != nil && c.stream.conv == conv.ID)
	c.list.mark(conv.ID)
	c.drawer.show()
	c.a.retitle()
	c.show()
	c.transcript.ScrollToBottom()
	size := 0
	if p := c.a.history.last(); p != nil && p.engine {
		size = p.sample.Engine.ContextSize
	}
	c.composer.context(c.contextUsed(), size)
}

// reveal shows the branch of a message and scrolls to it.
func (c *chatPage) reveal(id int64) {
	if c.tree.Message(id) == nil {
		return
	}
	on := false
	for _, m := range c.tree.Path(c.conv.Leaf) {
		on = on || m.ID == id
	}
	if !on {
		c.setLeaf(c.tree.Newest(id))
	}
	for _, it := range c.items() {
		if strings.HasSuffix(it.Key, turnKey(id)) || strings.Contains(it.Key, turnKey(id)+".") {
			c.transcript.ScrollTo(it.Key)
			return
		}
	}
}

func (c *chatPage) setLeaf(id int64) {
	c.conv.Leaf = id
	c.saveConversation()
	c.show()
}

func (c *chatPage) saveConversation() {
	if c.a.store == nil || c.conv.ID == 0 {
		return
	}
	conv := c.conv
	c.a.background(func() error { return c.a.store.SaveConversation(conv) }, c.a.failIf)
}

func (c *chatPage) saveDraft() {
	text := c.composer.entry.Text
	if c.a.store == nil || c.conv.ID == 0 || text == c.conv.Draft {
		return
	}
	c.conv.Draft = text
	id := c.conv.ID
	c.a.background(func() error { return c.a.store.SaveDraft(id, text) }, nil)
}

// show brings the transcript in line with the branch shown.
func (c *chatPage) show() {
	c.transcript.SetItems(c.items())
	c.showWelcome()
}

func (c *chatPage) empty() bool { return c.tree.Len() == 0 }

// showWelcome fills the empty transcript with things this pack can do well.
func (c *chatPage) showWelcome() {
	c.welcome.Hidden = !c.empty()
	c.transcript.Hidden = c.empty()
	if !c.empty() {
		widget.Relayout(c.root)
		return
	}
	e, ok := c.a.packs.current()
	demo := ok && e.Demo
	box := widget.V(10)
	head := widget.NewTitle(tr("What would you like to ask?"))
	box.Add(head)
	for _, s := range starters(demo) {
		box.Add(newStarter(s, func() { c.send(s) }))
	}
	if demo {
		box.Add(widget.Inset(8, 0, 0, 0, widget.Flow(4, widget.NewCaption(tr("A tiny demo: it shows that everything works here, and knows very little.")),
			widget.NewLink(tr("Get a bigger pack"), func() { c.a.visit("packs") }))))
	}
	c.welcome.Objects = []fyne.CanvasObject{&fyne.Container{Layout: welcomeLayout{}, Objects: []fyne.CanvasObject{box}}}
	widget.Relayout(c.welcome)
	widget.Relayout(c.root)
}

// newStarter is one suggestion of the empty transcript.
func newStarter(text string, tapped func()) fyne.CanvasObject {
	return widget.NewRow(widget.Over(widget.NewGround("", widget.ColorLine, 6),
		widget.Inset(11, 12, 11, 14, widget.NewText(text).Cutting(120))), tapped)
}

// starters are three things that a pack can do well. The demo model knows
// stories, small talk and a few facts about running models.
func starters(demo bool) []string {
	if demo {
		return []string{tr("Tell me a story about a fox"), tr("Why is my model so slow on my laptop?"), tr("What is a mixture of experts?")}
	}
	return []string{tr("Explain how a mixture of experts saves memory traffic"),
		tr("Write a Go function that reads a file line by line"), tr("Plan a quiet weekend with one museum and one long walk")}
}

type welcomeLayout struct{}

func (welcomeLayout) Layout(objs []fyne.CanvasObject, s fyne.Size) {
	w := min(theme.Size(widget.SizeMeasure)*0.72, s.Width-64)
	h := widget.HeightAt(objs[0], w)
	objs[0].Resize(fyne.NewSize(w, h))
	objs[0].Move(fyne.NewPos((s.Width-w)/2, max(16, (s.Height-h)*0.45)))
}

func (welcomeLayout) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.Size{} }

// leastMeasure is the width, in text sizes, below which a message and its buttons
// no longer have room.
const leastMeasure = 26

// chatLayout is list, line, transcript over composer, drawer.
type chatLayout struct {
	c    *chatPage
	line fyne.CanvasObject
	list bool // the list is wanted
}

func (l *chatLayout) Layout(_ []fyne.CanvasObject, s fyne.Size) {
	c := l.c
	text := theme.TextSize()
	left, right := float32(0), float32(0)
	if c.drawer.root.Visible() {
		right = min(text*21, s.Width*0.38)
	}
	list := l.list
	if wide := min(text*18, s.Width*0.3); list {
		// Beside the drawer there is no room for both in a narrow window.
		list = right == 0 || s.Width-wide-right >= text*leastMeasure
		left = wide
	}
	c.list.root.Hidden = !list
	l.line.Hide()
	if !list {
		left = 0
	} else {
		c.list.root.Resize(fyne.NewSize(left, s.Height))
		c.list.root.Move(fyne.NewPos(0, 0))
		l.line.Show()
		l.line.Resize(fyne.NewSize(1, s.Height))
		l.line.Move(fyne.NewPos(left, 0))
		left++
	}
	if c.drawer.root.Visible() {
		c.drawer.root.Resize(fyne.NewSize(right, s.Height))
		c.drawer.root.Move(fyne.NewPos(s.Width-right, 0))
	}
	room := s.Width - left - right
	pad := theme.Size(widget.SizePage)
	w := min(theme.Size(widget.SizeMeasure)+24, room-2*pad)
	h := widget.HeightAt(c.composer.root, w)
	top := max(0, s.Height-h-pad)
	c.composer.root.Resize(fyne.NewSize(w, h))
	c.composer.root.Move(fyne.NewPos(left+(room-w)/2, top))
	for _, o := range []fyne.CanvasObject{c.transcript, c.welcome} {
		o.Resize(fyne.NewSize(room, max(0, top-8)))
		o.Move(fyne.NewPos(left, 0))
	}
	m := c.bottom.MinSize()
	c.bottom.Resize(m)
	c.bottom.Move(fyne.NewPos(left+room-m.Width-pad, top-m.Height-12))
}

func (l *chatLayout) MinSize([]fyne.CanvasObject) fyne.Size { return fyne.NewSize(500, 300) }

// holdHover keeps a turn's actions in view; letHover lets them go shortly
// after, so that the pointer can cross from the text to a button.
func (c *chatPage) holdHover(id int64) {
	if c.timer != nil {
		c.timer()
		c.timer = nil
	}
	if c.hover != id {
		was := c.hover
		c.hover = id
		c.actionsOf(was)
		c.actionsOf(id)
	}
}

func (c *chatPage) letHover() {
	if c.timer != nil {
		c.timer()
	}
	t := time.AfterFunc(250*time.Millisecond, func() {
		c.a.ui(func() {
			was := c.hover
			c.hover = 0
			c.actionsOf(was)
		})
	})
	c.timer = func() { t.Stop() }
}

func (c *chatPage) actionsOf(id int64) {
	if t := c.turns[id]; t != nil && t.foot != nil {
		t.foot.show(c.footShows(id))
	}
}

// footShows says whether a turn's actions are in view: the last answer's
// always, so that they can be reached without a pointer.
func (c *chatPage) footShows(id int64) bool {
	if id == c.hover {
		return true
	}
	path := c.tree.Path(c.conv.Leaf)
	return len(path) > 0 && path[len(path)-1].ID == id && path[len(path)-1].Role == "assistant"
}
