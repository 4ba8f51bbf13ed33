package app

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/store"
	"outcrop/app/widget"
	"outcrop/engine/wire"
)

// stream is an answer that is being written. What the engine sends is
// gathered off the main thread and shown by one call about every 60 ms,
// however fast it comes.
type stream struct {
	c      *chatPage
	conv   int64
	id     int64 // message that is written
	tree   *store.Tree
	cancel context.CancelFunc
	begun  time.Time
	saved  time.Time
	lag    time.Duration // how long calls wait for the main thread, smoothed
	shown  time.Time     // when text was last shown
	wait   *waiting
	showsW bool // the wait is an item of the transcript

	mu    sync.Mutex // guards what follows
	text  strings.Builder
	think strings.Builder
	event ChatEvent // last phase
	stats store.Stats
	fin   string
	first time.Time // first token of the answer
	thunk time.Time // first token of thinking
	dirty bool
}

// frameTime is how often new text is shown.
const frameTime = 60 * time.Millisecond

// slowThread is the wait for the main thread from which on text is shown every
// second time. With a graphics card it is one or two milliseconds.
const slowThread = 5 * time.Millisecond

// saveTime is how often a growing answer is saved.
const saveTime = 2 * time.Second

// send puts a turn of the user into the conversation and has it answered. It
// says whether the text was taken.
func (c *chatPage) send(text string) bool {
	if c.stream != nil {
		c.a.frame.toasts.Push(widget.Toast{State: widget.StateInfo, Text: tr("One answer at a time. Esc stops this one."),
			Button: tr("Stop it"), Do: c.stop})
		return false
	}
	leaf := int64(0)
	if path := c.tree.Path(c.conv.Leaf); len(path) > 0 {
		leaf = path[len(path)-1].ID
	}
	c.ask(leaf, text)
	return true
}

// ask writes a turn of the user below a message and has it answered.
func (c *chatPage) ask(parent int64, text string) {
	if c.stream != nil {
		return
	}
	if c.a.store == nil {
		c.a.frame.toasts.Push(widget.Toast{State: widget.StateWatch, Text: tr("The conversations are not open yet. Try again in a moment.")})
		return
	}
	conv := c.conv
	fresh := conv.ID == 0
	if fresh {
		conv.Title = titleOf(text)
		conv.Created, conv.Updated = c.a.deps.Now(), c.a.deps.Now()
		conv.Pack = c.a.packName()
	}
	m := store.Message{Parent: parent, Role: "user", Content: text}
	c.a.background(func() (err error) {
		if fresh {
			if conv, err = c.a.store.NewConversation(conv); err != nil {
				return err
			}
		}
		m.Conversation = conv.ID
		m, err = c.a.store.Add(m)
		return err
	}, func(err error) {
		if err != nil {
			c.a.fail(err)
			c.composer.set(text) // nothing that was typed is lost
			return
		}
		if fresh {
			c.conv = conv
			c.a.retitle()
		}
		c.conv.Draft = ""
		c.tree.Put(m)
		c.conv.Leaf = m.ID
		c.list.reload()
		c.show()
		c.transcript.ScrollToBottom()
		c.answer(m.ID)
	})
}

// regenerate writes another answer beside one.
func (c *chatPage) regenerate(id int64) {
	m := c.tree.Message(id)
	if m == nil || c.stream != nil {
		return
	}
	c.answer(m.Parent)
}

// answer has a message of the user answered by the pack that is chosen.
func (c *chatPage) answer(parent int64) {
	if c.stream != nil || c.tree.Message(parent) == nil {
		return
	}
	e, ok := c.a.packs.current()
	if !ok || c.a.deps.Engine == nil {
		c.a.frame.toasts.Push(widget.Toast{State: widget.StateWatch, Text: tr("There is no pack yet."), Button: tr("Get one"), Do: func() { c.a.visit("packs") }})
		return
	}
	m := store.Message{Conversation: c.conv.ID, Parent: parent, Role: "assistant", Pack: e.Name}
	c.a.background(func() (err error) {
		m, err = c.a.store.Add(m)
		return err
	}, func(err error) {
		if err != nil {
			c.a.fail(err)
			return
		}
		c.tree.Put(m)
		c.conv.Leaf = m.ID
		s := &stream{c: c, conv: c.conv.ID, id: m.ID, tree: c.tree, begun: c.a.deps.Now(), saved: c.a.deps.Now()}
		s.wait = newWaiting(c)
		c.stream = s
		c.composer.streaming(true)
		c.show()
		c.transcript.ScrollToBottom()
		s.run(e.Name)
	})
}

// request is the branch up to the answer, as the engine wants it.
func (s *stream) request() wire.ChatRequest {
	conv := s.c.conv
	var r wire.ChatRequest
	if conv.System != "" {
		r.Messages = append(r.Messages, wire.Message{Role: "system", Content: wire.Content(conv.System)})
	}
	for _, m := range s.tree.Path(s.id) {
		if m.ID == s.id || m.Role == "assistant" && m.Content == "" {
			continue
		}
		r.Messages = append(r.Messages, wire.Message{Role: m.Role, Content: wire.Content(m.Content)})
	}
	p := conv.Sampling
	r.Temperature, r.TopP, r.TopK, r.MinP = p.Temperature, p.TopP, p.TopK, p.MinP
	r.RepeatPenalty, r.PresencePenalty, r.FrequencyPenalty = p.RepeatPenalty, p.Presence, p.Frequency
	r.MaxTokens, r.Seed, r.Stop = p.MaxTokens, p.Seed, p.Stop
	if p.Thinking != nil {
		r.TemplateArgs = map[string]any{"enable_thinking": *p.Thinking}
	}
	return r
}

// run waits for the engine to have the pack, asks, and shows what comes.
func (s *stream) run(pack string) {
	a := s.c.a
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	r := s.request()
	ask := func() {
		stop := a.deps.Every(frameTime, func() {
			a.ui(s.paced)
			// The frame of what was just shown is painted a little later: that
			// is when the main thread is asked how busy it is.
			time.AfterFunc(frameTime/3, func() {
				asked := time.Now()
				a.ui(func() { s.waited(time.Since(asked)) })
			})
		})
		a.long(func() {
			err := a.deps.Engine.Chat(ctx, r, s.take)
			a.ui(func() {
				stop()
				s.done(err, ctx.Err() != nil)
			})
		})
	}
	if a.engine.Phase == EngineReady && strings.EqualFold(a.engine.Pack, pack) {
		s.wait.say(tr("Waiting for the engine"), 0, 0)
		ask()
		return
	}
	stop := a.waitReady(pack, func(st EngineState) {
		if ctx.Err() != nil {
			return
		}
		if st.Phase == EngineEnded {
			s.done(&endedError{st}, false)
			return
		}
		ask()
	})
	context.AfterFunc(ctx, func() {
		a.ui(func() {
			stop()
			if s.c.stream == s && s.fin == "" && a.engine.Phase != EngineReady {
				s.done(context.Canceled, true)
			}
		})
	})
	busy := (a.engine.Phase == EngineStart || a.engine.Phase == EngineLoading) && strings.EqualFold(a.engine.Pack, pack)
	if !busy {
		if e, ok := a.packs.named(pack); ok {
			a.start(e)
		}
	}
	s.engineChanged(a.engine)
}

// endedError is an engine that ended while it was wanted.
type endedError struct{ s EngineState }

func (e *endedError) Error() string { return e.s.Text }

// take gathers a piece of the answer; it is called off the main thread.
func (s *stream) take(e ChatEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if e.Reasoning != "" && s.thunk.IsZero() {
		s.thunk = now
	}
	if e.Text != "" && s.first.IsZero() {
		s.first = now
		if !s.thunk.IsZero() {
			s.stats.ThinkMS = float64(now.Sub(s.thunk).Milliseconds())
		}
	}
	s.text.WriteString(e.Text)
	s.think.WriteString(e.Reasoning)
	if e.Phase != "" {
		s.event = e
	}
	if e.Finish != "" {
		s.fin = e.Finish
	}
	if t := e.Timings; t != nil {
		s.stats.Tokens, s.stats.Prompt, s.stats.Reused = t.DecodeN, t.PromptN, t.Reused
		s.stats.TokS, s.stats.PromptTokS, s.stats.FirstMS = t.DecodeTokS, t.PromptTokS, t.FirstMS
		s.stats.Drafted, s.stats.Accepted, s.stats.Context = t.Drafted, t.Accepted, t.ContextUsed
	} else if u := e.Usage; u != nil && s.stats.Tokens == 0 {
		s.stats.Tokens, s.stats.Prompt = u.CompletionTokens, u.PromptTokens
		s.stats.Context = u.TotalTokens
	}
	s.dirty = true
}

// waited takes how long a call stood in the main thread's queue.
func (s *stream) waited(d time.Duration) { s.lag += (d - s.lag) / 8 }

// paced shows new text, half as often where the main thread is busy drawing:
// the toolkit repaints the whole window for any change, and without a graphics
// card that is the CPU's work.
func (s *stream) paced() {
	if s.lag > slowThread && time.Since(s.shown) < 2*frameTime-frameTime/4 {
		return
	}
	s.shown = time.Now()
	s.flush()
}

// flush moves what was gathered into the transcript: at most one call a frame.
func (s *stream) flush() {
	if s.c.stream != s {
		return
	}
	s.mu.Lock()
	if !s.dirty {
		s.mu.Unlock()
		return
	}
	s.dirty = false
	text, think, e, stats := s.text.String(), s.think.String(), s.event, s.stats
	s.mu.Unlock()

	m := s.tree.Message(s.id)
	m.Content, m.Reasoning, m.Stats = text, think, stats
	if text == "" && think == "" {
		s.phase(e)
	}
	s.display(m)
	if now := s.c.a.deps.Now(); now.Sub(s.saved) > saveTime {
		s.saved = now
		s.save(*m, nil)
	}
}

func (s *stream) save(m store.Message, then func(error)) {
	a := s.c.a
	if a.store == nil {
		return
	}
	a.background(func() error { return a.store.Save(m) }, then)
}

// display brings the blocks of the growing answer up to date. Blocks that
// stay are not touched; only the last ones change their text.
func (s *stream) display(m *store.Message) {
	c := s.c
	if c.conv.ID != s.conv {
		return
	}
	t := c.turn(m)
	blocks := widget.Split(m.Content)
	old := t.blocks
	same := len(blocks) == len(old) && s.showsW == s.wait.shown(m) && (m.Reasoning == "") == (t.think == nil)
	t.blocks = blocks
	var changed []string
	for i, b := range blocks {
		if i >= len(old) {
			break
		}
		if b == old[i] {
			continue
		}
		if b.Code != old[i].Code {
			c.transcript.Rebuild(blockKey(m.ID, i))
			continue
		}
		h, ok := c.transcript.Object(blockKey(m.ID, i)).(*widget.Hover)
		if !ok {
			continue
		}
		switch o := h.Object().(type) {
		case *widget.Prose:
			o.Set(b.Text)
		case *widget.Code:
			o.Set(b.Lang, b.Text, b.Open)
		}
		changed = append(changed, blockKey(m.ID, i))
	}
	if t.think != nil && len(m.Reasoning) != t.think.size {
		t.think.size = len(m.Reasoning)
		t.think.update()
		changed = append(changed, thinkKey(m.ID))
	}
	if !same {
		c.show()
	}
	if len(changed) > 0 {
		c.transcript.Changed(changed...)
	}
}

// done ends the stream: the text so far is kept whatever happened.
func (s *stream) done(err error, cancelled bool) {
	c := s.c
	if c.stream != s {
		return
	}
	s.cancel()
	s.mu.Lock()
	m := s.tree.Message(s.id)
	m.Content, m.Reasoning, m.Stats = s.text.String(), s.think.String(), s.stats
	fin := s.fin
	s.mu.Unlock()
	m.Finish = fin
	switch {
	case cancelled:
		m.Finish = "cancelled"
	case err != nil:
		m.Finish = "error"
		m.Error = s.explain(err)
	case fin == "":
		m.Finish = "stop"
	}
	if m.Stats.Tokens == 0 && m.Content != "" && !s.first.IsZero() {
		if d := time.Since(s.first).Seconds(); d > 0.2 {
			m.Stats.TokS = 0 // a foreign server that tells nothing: no guess
		}
	}
	// What came since text was last shown: the blocks that stand there already
	// are not built again.
	s.display(m)
	c.stream = nil
	c.composer.streaming(false)
	if c.conv.ID == s.conv {
		c.turn(m)
		c.show()
		if m.Stats.Context > 0 {
			if p := c.a.history.last(); p != nil && p.engine {
				c.composer.context(m.Stats.Context, p.sample.Engine.ContextSize)
			}
		}
	}
	s.save(*m, func(err error) {
		c.a.failIf(err)
		c.list.reload()
	})
	if took := c.a.deps.Now().Sub(s.begun); took > 15*time.Second && err == nil && !cancelled {
		c.a.notify(tr("The answer is ready"), titleOf(m.Content))
	}
}

// explain turns an error into what happened and, on a line of its own, what
// helps.
func (s *stream) explain(err error) string {
	st := s.c.a.engine
	var ended *endedError
	if errors.As(err, &ended) {
		st = ended.s
	}
	if st.Phase == EngineEnded && st.Text != "" {
		if s.text.Len() > 0 {
			return st.Text + " " + tr("The text so far is kept.") + "\n" + st.Next
		}
		return st.Text + "\n" + st.Next
	}
	var w *wire.Error
	if errors.As(err, &w) {
		return sentence(errors.New(w.Message)) + "\n" + capital(w.Next)
	}
	return sentence(err)
}

func capital(s string) string {
	if s == "" {
		return ""
	}
	return sentence(errors.New(s))
}

// end stops without waiting for the engine: the window is closing.
func (s *stream) end() { s.cancel(); s.done(nil, true) }

// stop ends the answer; what was written stays.
func (c *chatPage) stop() {
	if s := c.stream; s != nil {
		s.cancel()
		if c.a.engine.Phase != EngineReady {
			s.done(context.Canceled, true)
		}
	}
}

// engineChanged shows the engine's phase while an answer waits for it.
func (s *stream) engineChanged(st EngineState) {
	m := s.tree.Message(s.id)
	if m == nil || m.Content != "" {
		return
	}
	words := st.Words
	switch st.Phase {
	case EngineStart:
		words = tr("Starting the engine")
	case EngineLoading:
		if words = loadWords(st); words == "" {
			words = tr("Loading %s", st.Pack)
		}
	case EngineReady:
		words = tr("Waiting for the engine")
	case EngineEnded, EngineOff:
		return
	}
	s.wait.say(words, st.Done, st.Total)
}

// phase shows what happens to the request before its first token.
func (s *stream) phase(e ChatEvent) {
	switch e.Phase {
	case "queued":
		s.wait.say(tr("Waiting for %d requests before this one", e.Ahead), 0, 0)
	case "prefill":
		s.wait.say(tr("Reading the prompt, %s of %s tokens", tokens(e.Done), tokens(e.Total)), int64(e.Done), int64(e.Total))
	}
}

// waitItem is the line that stands where the answer will come.
func (s *stream) waitItem() (widget.Item, bool) {
	m := s.tree.Message(s.id)
	s.showsW = m != nil && s.wait.shown(m)
	if !s.showsW {
		return widget.Item{}, false
	}
	return widget.Item{Key: waitKey, Gap: 14, Guess: 40, Build: func() fyne.CanvasObject { return s.wait }}, true
}

// waiting is a phase in words, with a bar and a way out where it takes long.
type waiting struct {
	fynewidget.BaseWidget
	c     *chatPage
	words *widget.Text
	bar   *widget.Bar
	row   *fyne.Container
}

func newWaiting(c *chatPage) *waiting {
	w := &waiting{c: c, words: widget.NewText("").In(widget.ColorDim).Cutting(100), bar: widget.NewBar()}
	w.bar.Hide()
	w.row = widget.H(10, widget.NewLight(widget.StateBusy), widget.Flex(w.words), widget.Wide(theme.TextSize()*12, w.bar))
	w.ExtendBaseWidget(w)
	return w
}

func (w *waiting) shown(m *store.Message) bool { return m.Content == "" && m.Reasoning == "" }

func (w *waiting) say(words string, done, total int64) {
	w.words.Set(words)
	show := total > 0
	if show {
		w.bar.SetValue(float64(done) / float64(total))
	}
	if w.bar.Visible() != show {
		w.bar.Hidden = !show
		w.row.Refresh()
	}
}

// CreateRenderer shows the row.
func (w *waiting) CreateRenderer() fyne.WidgetRenderer { return fynewidget.NewSimpleRenderer(w.row) }
