package app

import (
	"testing"

	"outcrop/app/widget"
	"outcrop/engine/wire"
)

func (r *rig) answerWith(question, answer string) {
	r.t.Helper()
	c := r.a.chat()
	r.say(question)
	r.engine.pieces <- ChatEvent{Reasoning: "The user wants something, so I think about it for a while before I answer."}
	r.engine.pieces <- ChatEvent{Text: answer}
	r.engine.pieces <- ChatEvent{Finish: "stop", Timings: &wire.Timings{DecodeN: 212, DecodeTokS: 38.2, Drafted: 100, Accepted: 74, ContextUsed: 812, ContextSize: 2048}}
	close(r.engine.pieces)
	r.until("the end of the answer", func() bool { return c.stream == nil })
}

// TestPagesBuild builds every page in both looks at the smallest and the
// first size, and leaves pictures for a person to look at.
func TestPagesBuild(t *testing.T) {
	for _, look := range []Look{LookDark, LookLight} {
		r := newRig(t, look)
		shot(t, r.a.win, "chat-empty-"+string(look))
		r.answerWith("Explain briefly what you would change in this function, and why it is slow", sampleAnswer)
		r.answerWith("Thanks", "You are welcome.")
		c := r.a.chat()
		c.transcript.ScrollTo(turnKey(c.tree.Path(c.conv.Leaf)[0].ID))
		settle(r.a.win)
		shot(t, r.a.win, "chat-"+string(look))
		c.transcript.ScrollToBottom()
		c.toggleDrawer()
		settle(r.a.win)
		shot(t, r.a.win, "chat-drawer-"+string(look))
		c.toggleDrawer()
		r.feed(75)
		for _, p := range pageTable() {
			r.a.visit(p.id)
			r.pump()
			settle(r.a.win)
			if r.a.frame.rail.Selected() != p.id {
				t.Errorf("%s: the rail shows %s", p.id, r.a.frame.rail.Selected())
			}
			if p.id != "chat" {
				shot(t, r.a.win, p.id+"-"+string(look))
			}
			if s, ok := map[string]*widget.PageScroll{"card": cardScroll(r.a), "monitor": monitorScroll(r.a)}[p.id]; ok && s != nil {
				s.ScrollToBottom()
				shot(t, r.a.win, p.id+"-below-"+string(look))
			}
		}
	}
}

func cardScroll(a *App) *widget.PageScroll {
	if p, ok := a.built["card"].(*cardPage); ok {
		return p.scroll
	}
	return nil
}

func monitorScroll(a *App) *widget.PageScroll {
	if p, ok := a.built["monitor"].(*monitorPage); ok {
		return p.scroll
	}
	return nil
}
