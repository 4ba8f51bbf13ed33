package app

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"outcrop/app/client"
	"outcrop/app/store"
	"outcrop/app/widget"
	"outcrop/engine/wire"
)

// say types a text and sends it by Enter.
func (r *rig) say(text string) {
	r.t.Helper()
	c := r.a.chat()
	test.Type(c.composer.entry, text)
	r.typeKey(c.composer.entry, fyne.KeyReturn)
	r.pump()
}

// path is the branch shown as role: text.
func (r *rig) path() []string {
	var out []string
	c := r.a.chat()
	for _, m := range c.tree.Path(c.conv.Leaf) {
		out = append(out, m.Role+": "+m.Content)
	}
	return out
}

func (r *rig) want(want ...string) {
	r.t.Helper()
	got := r.path()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		r.t.Errorf("conversation is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestSendStreamAndKeep(t *testing.T) {
	dir := t.TempDir()
	r := newRigIn(t, LookDark, dir)
	c := r.a.chat()
	if c.welcome.Hidden || !c.transcript.Hidden {
		t.Error("an empty chat does not show its suggestions")
	}
	if len(r.engine.specs) != 1 || r.engine.specs[0].Name != "starter" {
		t.Fatalf("the starter was not started with the window: %+v", r.engine.specs)
	}
	r.say("Tell me a story")
	if c.stream == nil {
		t.Fatal("no answer was begun")
	}
	if c.composer.entry.Text != "" {
		t.Error("the field keeps what was sent")
	}
	for _, w := range []string{"Once **upon** ", "a time.\n\n", "```go\nx := 1\n", "```\n\nEnd", "."} {
		r.engine.pieces <- ChatEvent{Text: w}
		r.until("the piece "+w, func() bool { return strings.HasSuffix(c.tree.Message(c.conv.Leaf).Content, w) })
	}
	r.engine.pieces <- ChatEvent{Finish: "stop", Timings: &wire.Timings{DecodeN: 12, DecodeTokS: 38.2, Drafted: 50, Accepted: 37, ContextUsed: 20, ContextSize: 2048}}
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	answer := "Once **upon** a time.\n\n```go\nx := 1\n```\n\nEnd."
	r.want("user: Tell me a story", "assistant: "+answer)
	m := c.tree.Message(c.conv.Leaf)
	if got, want := statsLine(m), "12 tokens · 38.2 tok/s · drafts 74 %"; got != want {
		t.Errorf("figures are %q, want %q", got, want)
	}
	if len(c.turn(m).blocks) != 3 {
		t.Errorf("the answer has %d blocks, want 3", len(c.turn(m).blocks))
	}
	if c.conv.Title != "Tell me a story" || r.a.frame.title.Text() != "Tell me a story" {
		t.Errorf("title is %q, heading %q", c.conv.Title, r.a.frame.title.Text())
	}
	// A second turn sends the whole branch.
	r.say("Shorter")
	r.until("the question", func() bool { return len(r.engine.asked) == 2 })
	req := r.engine.last()
	if len(req.Messages) != 3 || req.Messages[1].Role != "assistant" || string(req.Messages[2].Content) != "Shorter" {
		t.Errorf("the request is %+v", req.Messages)
	}
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	r.a.Close()

	// Another start of the program finds it.
	r2 := newRigIn(t, LookDark, dir)
	if len(r2.a.chat().list.all) != 1 {
		t.Fatalf("%d conversations after a restart", len(r2.a.chat().list.all))
	}
	r2.a.chat().open(r2.a.chat().list.all[0].ID, 0)
	r2.pump()
	if got := r2.path(); len(got) != 4 || got[1] != "assistant: "+answer {
		t.Errorf("after a restart: %q", got)
	}
}

// The end of an answer that comes faster than text is shown is shown too.
func TestLastPieceIsShown(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	shown := func() string {
		h, ok := c.transcript.Object(blockKey(c.conv.Leaf, 0)).(*widget.Hover)
		if !ok {
			return ""
		}
		return h.Object().(*widget.Prose).Source()
	}
	r.say("Why")
	r.engine.pieces <- ChatEvent{Text: "Often the memory"}
	r.until("the first piece", func() bool { return shown() == "Often the memory" })
	s := c.stream
	s.take(ChatEvent{Text: " is the reason."})
	s.done(nil, false) // before the next time that text is shown
	if got := shown(); got != "Often the memory is the reason." {
		t.Errorf("the window shows %q", got)
	}
	close(r.engine.pieces)
}

func TestStopKeepsText(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	r.say("Count")
	r.engine.pieces <- ChatEvent{Text: "one two"}
	r.until("text", func() bool { return c.tree.Message(c.conv.Leaf).Content == "one two" })
	r.typeKey(c.composer.entry, fyne.KeyEscape)
	r.until("the end", func() bool { return c.stream == nil })
	r.want("user: Count", "assistant: one two")
	if m := c.tree.Message(c.conv.Leaf); m.Finish != "cancelled" || m.Error != "" {
		t.Errorf("finish %q, error %q", m.Finish, m.Error)
	}
}

func TestEngineKilledMidAnswer(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	r.say("Count")
	r.engine.pieces <- ChatEvent{Text: "one two "}
	r.until("text", func() bool { return c.tree.Message(c.conv.Leaf).Content != "" })
	r.engine.broken = client.ErrGone
	r.engine.set(EngineState{Phase: EngineEnded, Pack: "starter", Text: "The kernel ended the engine: memory ran out.", Next: "Choose a smaller context."})
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	r.want("user: Count", "assistant: one two ")
	m := c.tree.Message(c.conv.Leaf)
	if m.Finish != "error" || !strings.Contains(m.Error, "memory ran out") || !strings.Contains(m.Error, "text so far is kept") || !strings.Contains(m.Error, "smaller context") {
		t.Errorf("finish %q, error %q", m.Finish, m.Error)
	}
	if _, state, _ := engineWords(r.a.engine); state != widget.StateAct {
		t.Error("the window does not show that the engine ended")
	}
	if r.a.frame.banner.Visible() {
		t.Error("what broke an answer is said twice")
	}
	// One press starts it again and answers.
	r.engine.broken = nil
	c.regenerate(c.conv.Leaf)
	r.until("the new answer", func() bool { return len(r.engine.asked) == 2 })
	if n := len(r.engine.specs); n != 2 {
		t.Errorf("the engine was started %d times, want 2", n)
	}
	r.engine.pieces <- ChatEvent{Text: "one two three"}
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	r.want("user: Count", "assistant: one two three")
	if sib, at := c.tree.Siblings(c.conv.Leaf); len(sib) != 2 || at != 1 {
		t.Errorf("the broken answer is not kept beside the new one: %d, %d", len(sib), at)
	}
}

func TestEngineEndsWhileIdle(t *testing.T) {
	r := newRig(t, LookDark)
	r.engine.set(EngineState{Phase: EngineEnded, Pack: "starter", Text: "The engine was killed.", Next: "Start it again."})
	r.pump()
	if !r.a.frame.banner.Visible() {
		t.Fatal("nothing says that the engine ended")
	}
	shot(t, r.a.win, "banner")
	r.a.startLast()
	r.pump()
	if r.a.frame.banner.Visible() || r.a.engine.Phase != EngineReady {
		t.Error("a new start does not take the news away")
	}
}

func TestEditBranches(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	r.say("first")
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	// Up in the empty field edits the last turn.
	r.typeKey(c.composer.entry, fyne.KeyUp)
	if c.editor == nil {
		t.Fatal("Up does not edit the last turn")
	}
	c.editor.entry.SetText("second")
	r.typeKey(c.editor.entry, fyne.KeyReturn)
	r.pump()
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil && len(r.path()) == 2 })
	if got := r.path(); got[0] != "user: second" {
		t.Errorf("after the edit: %q", got)
	}
	sib, at := c.tree.Siblings(c.tree.Path(c.conv.Leaf)[0].ID)
	if len(sib) != 2 || at != 1 {
		t.Fatalf("the edited turn has %d branches", len(sib))
	}
	c.setLeaf(c.tree.Newest(sib[0].ID))
	if got := r.path(); got[0] != "user: first" {
		t.Errorf("the other branch is %q", got)
	}
	// Esc leaves an edit alone.
	c.editLast()
	r.typeKey(c.editor.entry, fyne.KeyEscape)
	if c.editor != nil {
		t.Error("Esc does not end the edit")
	}
}

func TestWaitsForLoading(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	r.engine.hold = true
	c.choosePack("Qwen3-30B-A3B-Q4_K_M")
	r.pump()
	r.say("hello")
	if len(r.engine.asked) != 0 {
		t.Fatal("asked before the pack was loaded")
	}
	if got := c.stream.wait.words.Text(); got != "reading the file" {
		t.Errorf("the wait says %q", got)
	}
	if !c.stream.wait.bar.Visible() {
		t.Error("a wait with a known end has no bar")
	}
	r.engine.ready("Qwen3-30B-A3B-Q4_K_M")
	r.until("the question", func() bool { return len(r.engine.asked) == 1 })
	r.engine.pieces <- ChatEvent{Phase: "prefill", Done: 100, Total: 400}
	r.until("the phase", func() bool { return strings.Contains(c.stream.wait.words.Text(), "100 of 400") })
	r.engine.pieces <- ChatEvent{Reasoning: "hm"}
	r.engine.pieces <- ChatEvent{Text: "hi"}
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	if m := c.tree.Message(c.conv.Leaf); m.Reasoning != "hm" || m.Content != "hi" {
		t.Errorf("got %+v", m)
	}
}

func TestDeleteConversationAndUndo(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	r.say("keep me")
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	c.remove(c.conv)
	r.pump()
	if len(c.list.all) != 0 || c.conv.ID != 0 {
		t.Fatalf("after deleting: %d listed, open %d", len(c.list.all), c.conv.ID)
	}
	if !r.a.frame.toasts.Press() {
		t.Fatal("no undo is offered")
	}
	r.pump()
	if len(c.list.all) != 1 || len(r.path()) != 2 {
		t.Errorf("after undo: %d listed, %q", len(c.list.all), r.path())
	}
	c.retitle(c.conv, "Renamed")
	r.pump()
	if c.list.all[0].Title != "Renamed" || r.a.frame.title.Text() != "Renamed" {
		t.Errorf("after renaming: %q, heading %q", c.list.all[0].Title, r.a.frame.title.Text())
	}
	c.list.find("keep")
	r.pump()
	if len(c.list.hits) != 1 {
		t.Errorf("search found %+v", c.list.hits)
	}
}

func TestSamplingGoesAlong(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	temp, on := 0.3, false
	c.conv.System = "Be brief."
	c.conv.Sampling = store.Sampling{Temperature: &temp, Thinking: &on, Stop: []string{"END"}}
	r.say("x")
	r.until("the question", func() bool { return len(r.engine.asked) == 1 })
	q := r.engine.last()
	if *q.Temperature != 0.3 || q.TemplateArgs["enable_thinking"] != false || q.Messages[0].Role != "system" || q.Stop[0] != "END" {
		t.Errorf("the request is %+v", q)
	}
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	list, err := r.a.store.Conversations()
	if err != nil || list[0].System != "Be brief." || *list[0].Sampling.Temperature != 0.3 {
		t.Errorf("kept %+v, %v", list, err)
	}
}

func TestPasteOfMuchTextIsAttached(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	long := strings.Repeat("many words ", 1000)
	r.a.fyne.Clipboard().SetContent(long)
	c.composer.entry.TypedShortcut(&fyne.ShortcutPaste{Clipboard: r.a.fyne.Clipboard()})
	if c.composer.entry.Text != "" || len(c.composer.attached) != 1 {
		t.Fatalf("field has %d bytes, %d attached", len(c.composer.entry.Text), len(c.composer.attached))
	}
	r.say("sum it up")
	r.until("the question", func() bool { return len(r.engine.asked) == 1 })
	q := r.engine.last()
	if text := string(q.Messages[0].Content); !strings.HasPrefix(text, "sum it up\n\nPasted text:\n```\nmany words") {
		t.Errorf("sent %q", text[:60])
	}
	if len(c.composer.attached) != 0 {
		t.Error("what was sent is still attached")
	}
}

func TestDraftIsKept(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	r.say("one")
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	id := c.conv.ID
	test.Type(c.composer.entry, "not sent")
	c.newConversation()
	r.pump()
	if c.composer.entry.Text != "" {
		t.Error("a new chat shows the draft of another")
	}
	c.open(id, 0)
	r.pump()
	if c.composer.entry.Text != "not sent" {
		t.Errorf("the draft is %q", c.composer.entry.Text)
	}
}

// Where drawing is slow, text comes half as often and none of it is lost.
func TestSlowDrawingIsPaced(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	r.say("Count")
	s := c.stream
	shown := func() string { return c.tree.Message(s.id).Content }
	put := func(text string) { s.take(ChatEvent{Text: text}) }
	put("one ")
	s.paced()
	put("two ")
	s.paced()
	if shown() != "one two " {
		t.Errorf("a quick display shows %q", shown())
	}
	for range 40 {
		s.waited(50 * slowThread)
	}
	s.shown = time.Now()
	put("three ")
	s.paced()
	if shown() != "one two " {
		t.Errorf("a slow display is not spared: %q", shown())
	}
	s.shown = time.Now().Add(-2 * frameTime)
	s.paced()
	if shown() != "one two three " {
		t.Errorf("a slow display shows %q", shown())
	}
	put("four")
	close(r.engine.pieces)
	r.until("the end", func() bool { return c.stream == nil })
	r.want("user: Count", "assistant: one two three four")
}

func TestFullDiskInWords(t *testing.T) {
	if got := plainly(errors.New("begin conversation: database or disk is full (13)")); !strings.HasPrefix(got, "The disk that holds the conversations is full.") {
		t.Errorf("got %q", got)
	}
	if got := plainly(errors.New("save: attempt to write a readonly database (8)")); !strings.Contains(got, "read-only") {
		t.Errorf("got %q", got)
	}
	if got := plainly(fmt.Errorf("look up a/b: %w", &net.DNSError{Name: "models.example", Err: "no such host"})); got != "models.example cannot be found. See whether this computer is online, then try again." {
		t.Errorf("without a network: %q", got)
	}
	if got := plainly(errors.New("another")); got != "Another." {
		t.Errorf("got %q", got)
	}
}

// In a narrow window the drawer takes the place of the list, so that a message can
// be written and sent.
func TestDrawerInANarrowWindow(t *testing.T) {
	r := newRig(t, LookDark)
	c := r.a.chat()
	for _, w := range []struct {
		width float32
		list  bool
	}{{1180, true}, {800, false}} {
		r.a.win.Resize(fyne.NewSize(w.width, 600))
		c.toggleDrawer()
		settle(r.a.win)
		shot(t, r.a.win, "drawer-narrow")
		if c.list.root.Visible() != w.list {
			t.Errorf("%v wide, with the drawer: the list is shown: %v", w.width, !w.list)
		}
		if least := c.composer.row.MinSize().Width; c.composer.root.Size().Width < least {
			t.Errorf("%v wide: the message field has %v, its row needs %v", w.width, c.composer.root.Size().Width, least)
		}
		c.toggleDrawer()
		settle(r.a.win)
		if !c.list.root.Visible() {
			t.Errorf("%v wide: without the drawer the list is gone", w.width)
		}
	}
}
