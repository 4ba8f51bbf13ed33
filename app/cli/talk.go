package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"outcrop/app/client"
	"outcrop/engine/wire"
)

const talkHelp = `  /new             start a new conversation
  /system [TEXT]   set or clear the system prompt; starts a new conversation
  /regen           answer the last message again
  /stats           figures of the last answer and of the engine
  /help            this list
  /quit            leave (so does Ctrl-D)
  A line that ends in \ goes on in the next one. Ctrl-C stops an answer.
`

// talk is the conversation in the terminal.
type talk struct {
	p    *Program
	h    *host
	o    *chatOptions
	c    paint
	msgs []wire.Message
	last *wire.Timings
	in   chan string // lines; closed at the end of input
	stop chan os.Signal
}

// talk runs a conversation until the person leaves.
func (p *Program) talk(ctx context.Context, h *host, o *chatOptions) error {
	t := &talk{p: p, h: h, o: o, c: p.paint(p.Out), in: make(chan string), stop: make(chan os.Signal, 1)}
	signal.Notify(t.stop, os.Interrupt)
	defer signal.Stop(t.stop)
	if err := t.connect(ctx); err != nil {
		return err
	}
	t.greet()
	t.reset()
	go t.read()
	warned := false
	for {
		text, err := t.line(ctx, t.c.accent("› "))
		switch {
		case errors.Is(err, errStop):
			if warned {
				return nil
			}
			warned = true
			fmt.Fprintln(p.Out, t.c.dim("Ctrl-C again or Ctrl-D leaves."))
			continue
		case err != nil:
			fmt.Fprintln(p.Out)
			return nil
		}
		warned = false
		text = strings.TrimSpace(text)
		switch {
		case text == "":
		case strings.HasPrefix(text, "/") && !strings.Contains(strings.Fields(text)[0][1:], "/"):
			if t.command(ctx, text) {
				return nil
			}
		default:
			t.msgs = append(t.msgs, wire.Message{Role: "user", Content: wire.Content(text)})
			t.answer(ctx)
		}
	}
}

// connect starts the engine, with Ctrl-C as the way out.
func (t *talk) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer t.onStop(cancel)()
	_, err := t.h.client(ctx)
	return err
}

// onStop calls f at Ctrl-C until the returned function is called.
func (t *talk) onStop(f func()) func() {
	done := make(chan struct{})
	go func() {
		select {
		case <-t.stop:
			f()
		case <-done:
		}
	}()
	return func() { close(done) }
}

func (t *talk) greet() {
	fmt.Fprintf(t.p.Out, "%s  %s\n", t.c.bold(t.h.name), t.c.dim("/help lists what can be typed"))
	if t.h.demo {
		fmt.Fprintln(t.p.Out, t.c.dim("A tiny demo model that proves the program. A bigger one: outcrop packs get, or outcrop packs add FILE."))
	}
	fmt.Fprintln(t.p.Out)
}

func (t *talk) reset() {
	t.msgs, t.last = nil, nil
	if t.o.system != "" {
		t.msgs = []wire.Message{{Role: "system", Content: wire.Content(t.o.system)}}
	}
}

var errStop = errors.New("stop")

// read turns the input into lines.
func (t *talk) read() {
	defer close(t.in)
	sc := bufio.NewScanner(t.p.In)
	sc.Buffer(nil, 16<<20)
	for sc.Scan() {
		t.in <- sc.Text()
	}
}

// line waits for one message: a line, or several that end in a backslash.
func (t *talk) line(ctx context.Context, mark string) (string, error) {
	fmt.Fprint(t.p.Out, mark)
	var b strings.Builder
	for {
		select {
		case <-t.stop:
			fmt.Fprintln(t.p.Out)
			return "", errStop
		case <-ctx.Done():
			return "", ctx.Err()
		case l, ok := <-t.in:
			if !ok {
				return "", io.EOF
			}
			if rest, more := strings.CutSuffix(l, `\`); more {
				b.WriteString(rest + "\n")
				fmt.Fprint(t.p.Out, t.c.dim("… "))
				continue
			}
			b.WriteString(l)
			return b.String(), nil
		}
	}
}

// command does what a /word says; true means leave.
func (t *talk) command(ctx context.Context, text string) bool {
	word, rest, _ := strings.Cut(text, " ")
	out := t.p.Out
	switch word {
	case "/quit", "/exit", "/q", "/bye":
		return true
	case "/help", "/?":
		fmt.Fprint(out, talkHelp)
	case "/new", "/clear":
		t.reset()
		fmt.Fprintln(out, t.c.dim("New conversation."))
	case "/system":
		t.o.system = strings.TrimSpace(rest)
		t.reset()
		if t.o.system == "" {
			fmt.Fprintln(out, t.c.dim("No system prompt; new conversation."))
		} else {
			fmt.Fprintln(out, t.c.dim("System prompt set; new conversation."))
		}
	case "/regen", "/retry":
		i := len(t.msgs) - 1
		for i >= 0 && t.msgs[i].Role != "user" {
			i--
		}
		if i < 0 {
			fmt.Fprintln(out, t.c.dim("There is nothing to answer again."))
			break
		}
		t.msgs = t.msgs[:i+1]
		t.answer(ctx)
	case "/stats":
		t.stats(ctx)
	default:
		fmt.Fprintf(out, "%s is no command; /help lists them.\n", word)
	}
	return false
}

// answer asks the engine about the conversation and prints what comes.
func (t *talk) answer(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer t.onStop(cancel)()
	c, err := t.h.client(ctx) // starts it again if it has ended
	if err != nil {
		t.complain(err)
		return
	}
	s, err := c.Chat(ctx, t.o.chatRequest(t.msgs))
	if err != nil {
		t.complain(t.h.explain(err))
		return
	}
	defer s.Close()
	w := newWriter(t.p, t.o)
	m := wire.Message{Role: "assistant"}
	var end error
	var notes []string
	for {
		e, err := s.Next()
		if err != nil {
			end = err
			break
		}
		w.event(e)
		m.Content += wire.Content(e.Text)
		m.ReasoningContent += e.Reasoning
		if e.Extra != nil && e.Extra.Timings != nil {
			t.last, notes = e.Extra.Timings, e.Extra.Notes
		}
	}
	w.end()
	if m.Content != "" || m.ReasoningContent != "" {
		t.msgs = append(t.msgs, m) // what was said stays, also when it broke off
	}
	switch {
	case end == io.EOF:
		for _, n := range notes {
			fmt.Fprintln(t.p.Out, t.c.dim(n))
		}
		if !t.o.quiet && t.last != nil {
			fmt.Fprintln(t.p.Out, t.c.dim(figures(t.last)))
		}
	case errors.Is(end, context.Canceled):
		fmt.Fprintln(t.p.Out, t.c.dim("Stopped."))
	default:
		t.complain(t.h.explain(end))
	}
	fmt.Fprintln(t.p.Out)
}

// complain says what went wrong; the conversation goes on.
func (t *talk) complain(err error) {
	fmt.Fprintln(t.p.Out, t.c.bad(err.Error()))
	if errors.Is(err, client.ErrGone) || t.h.ended() {
		fmt.Fprintln(t.p.Out, t.c.dim("The conversation is kept; your next message, or /regen, starts the engine again."))
	}
}

// ended says whether the child has ended.
func (h *host) ended() bool {
	if h.eng == nil {
		return false
	}
	select {
	case <-h.eng.Done():
		return true
	default:
		return false
	}
}

func (t *talk) stats(ctx context.Context) {
	if s := figures(t.last); s != "" {
		fmt.Fprintln(t.p.Out, "last answer: "+s)
	}
	c, err := t.h.client(ctx)
	if err != nil {
		t.complain(err)
		return
	}
	m, err := c.Sample(ctx)
	if err != nil {
		t.complain(t.h.explain(err))
		return
	}
	printSample(t.p.Out, m)
}
