package cli

import (
	"fmt"
	"strings"

	"outcrop/app/client"
	"outcrop/engine/wire"
)

// writer prints an answer as it comes.
type writer struct {
	p        *Program
	o        *chatOptions
	c        paint
	person   bool // somebody reads the output
	thinking bool // the last thing printed was thinking
	began    bool // something of the answer was printed
	line     bool // the output stands at the start of a line
	tell     func(phase string, done, total int64)
	waited   bool  // the line of progress is shown
	err      error // the first failed write
}

func newWriter(p *Program, o *chatOptions) *writer {
	w := &writer{p: p, o: o, c: p.paint(p.Out), line: true, tell: func(string, int64, int64) {}}
	w.person = isTerminal(p.Out)
	if isTerminal(p.Err) && !o.json {
		w.tell = p.progress()
	}
	return w
}

func (w *writer) event(e client.Event) {
	if x := e.Extra; x != nil && x.Phase != "" {
		w.waited = true
		switch {
		case x.Phase == "queued":
			w.tell(fmt.Sprintf("waiting: %d before this one", x.QueueAhead), 0, 0)
		case x.Total > 0:
			w.tell(fmt.Sprintf("reading the prompt: %d of %d tokens", x.Done, x.Total), 0, 0)
		}
	}
	if e.Reasoning != "" && (w.person || w.o.thinking) {
		w.clear()
		w.thinking = true
		w.put(e.Reasoning, w.c.dim)
	}
	if e.Text != "" {
		w.clear()
		if w.thinking {
			w.thinking = false
			if !w.line {
				w.put("\n\n", nil)
			}
		}
		w.put(e.Text, nil)
	}
	for _, t := range e.ToolCalls {
		w.clear()
		w.put(fmt.Sprintf("\n%s(%s)\n", t.Function.Name, t.Function.Arguments), w.c.accent)
	}
}

func (w *writer) clear() {
	if w.waited {
		w.tell("", 0, 0)
		w.waited = false
	}
}

func (w *writer) put(s string, style func(string) string) {
	if s == "" {
		return
	}
	w.line = strings.HasSuffix(s, "\n")
	w.began = true
	if w.person {
		s = visible(s)
	}
	if style != nil {
		s = style(s)
	}
	if _, err := fmt.Fprint(w.p.Out, s); w.err == nil {
		w.err = err
	}
}

// end closes the last line.
func (w *writer) end() {
	w.clear()
	if w.began && !w.line {
		if _, err := fmt.Fprintln(w.p.Out); w.err == nil {
			w.err = err
		}
		w.line = true
	}
}

// figures is the line under an answer: "212 tokens · 38.2 tok/s · drafts 74 %".
func figures(t *wire.Timings) string {
	if t == nil {
		return ""
	}
	parts := []string{fmt.Sprintf("%d tokens", t.DecodeN), fmt.Sprintf("%.1f tok/s", t.DecodeTokS)}
	if t.MSPerStep > 0 {
		parts = append(parts, fmt.Sprintf("%.1f ms a step", t.MSPerStep))
	}
	if t.Drafted > 0 {
		parts = append(parts, fmt.Sprintf("drafts %.0f %%", 100*float64(t.Accepted)/float64(t.Drafted)))
	}
	if t.PromptN > 0 {
		parts = append(parts, fmt.Sprintf("prompt %d at %.0f tok/s", t.PromptN, t.PromptTokS))
	}
	if t.ContextSize > 0 {
		parts = append(parts, fmt.Sprintf("context %d of %d", t.ContextUsed, t.ContextSize))
	}
	return strings.Join(parts, " · ")
}
