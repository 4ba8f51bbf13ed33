package token

import (
	"crypto/rand"
	"encoding/json"
	"strings"
)

// Reply takes a model's reply apart while it streams: what the model thinks
// before it answers, the answer, and the calls of tools in it.
//
//	opt := tpl.ReplyOptions(prompt, tools)       // what this model's template leads to expect
//	r := token.NewReply(opt)
//	for each piece of text { for _, part := range r.Push(piece) { ... } }
//	for _, part := range r.Flush() { ... }
//
// Push never returns a part of a tag: text that may be the start of one is
// held until that is settled. Nothing is lost: a call that cannot be read, or
// that the end cuts off, comes out as content. Some tags are control tokens of
// their model ([TOOL_CALLS], <|python_tag|>, [THINK]): Tokenizer.TagStream shows
// them, Stream(false) does not.
type Reply struct {
	o       ReplyOptions
	state   replyState
	held    string // not given out yet: the end of all
	all     *strings.Builder
	openers []string
	form    *callForm // of the call being read
	scan    jsonScan  // how far the call has been looked through
	names   map[string]schema
	body    harmonyBody
	parts   []Part
	calls   int
	spaced  string // white space at the end of content, which a call would swallow
	drop    bool   // white space comes next and is no part of anything: after a tag
	first   bool   // content has not begun: it may be a bare call
}

// ReplyOptions says what to look for in a reply.
type ReplyOptions struct {
	// ThinkOpen and ThinkClose frame the reasoning at the start of a reply;
	// empty for none.
	ThinkOpen, ThinkClose string
	// Thinking says that the reply begins inside the reasoning, because the
	// prompt ends with ThinkOpen.
	Thinking bool
	// Tools are the tools of the request; with none, calls are not looked for.
	Tools []json.RawMessage
	// BareJSON also takes a reply that is a JSON object with a name and
	// parameters for a call, as Llama 3 writes them.
	BareJSON bool
	// Harmony says that the reply is framed as gpt-oss frames it; the fields
	// above that name tags do not count then.
	Harmony bool
	// NewID makes the id of a call; nil makes nine random letters and digits,
	// the one form that every known template accepts.
	NewID func() string
}

// PartKind says what a part of a reply is.
type PartKind int

// The kinds of parts.
const (
	Content   PartKind = iota // of the answer
	Reasoning                 // thinking before the answer
	Call                      // a whole call of a tool
)

// Part is a piece of a reply. Pieces of one kind follow one another.
type Part struct {
	Kind PartKind
	Text string   // of Content and Reasoning
	Call ToolCall // of Call
}

type replyState int

const (
	atStart   replyState = iota // white space, then perhaps ThinkOpen
	inThink                     // until ThinkClose
	inContent                   // until a call begins
	inCall
)

// NewReply starts a reply.
func NewReply(o ReplyOptions) *Reply {
	r := &Reply{o: o, state: inContent, first: true}
	if o.ThinkOpen != "" && o.ThinkClose != "" {
		r.state = atStart
		if o.Thinking {
			r.state, r.drop = inThink, true
		}
	}
	if len(o.Tools) > 0 {
		r.names = schemas(o.Tools)
		for i := range callForms {
			r.openers = append(r.openers, callForms[i].open)
		}
	}
	if r.o.NewID == nil {
		r.o.NewID = randomID
	}
	return r
}

func randomID() string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var b [9]byte
	rand.Read(b[:]) // never fails, says its documentation
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b[:])
}

// ParseReply takes a whole reply apart.
func ParseReply(text string, o ReplyOptions) Message {
	r := NewReply(o)
	m := Message{Role: "assistant"}
	for _, p := range append(r.Push(text), r.Flush()...) {
		switch p.Kind {
		case Content:
			m.Content += p.Text
		case Reasoning:
			m.Reasoning += p.Text
		case Call:
			m.ToolCalls = append(m.ToolCalls, p.Call)
		}
	}
	return m
}

// Calls is the number of calls given out so far.
func (r *Reply) Calls() int { return r.calls }

// InReasoning says whether the model is still thinking.
func (r *Reply) InReasoning() bool {
	if r.o.Harmony {
		return r.body.open && r.body.kind == Reasoning
	}
	return r.state == inThink
}

// Push takes the next piece of text and returns what is settled by it.
func (r *Reply) Push(text string) []Part {
	r.parts = nil
	// Appending to a string would copy a long call once per token. The builder
	// grows by doubling, and held stays its end; now and then what was given
	// out is let go.
	if r.all == nil || r.all.Len() > 4096+2*len(r.held) {
		r.all = new(strings.Builder)
		r.all.WriteString(r.held)
	}
	n := len(r.held) + len(text)
	r.all.WriteString(text)
	r.held = r.all.String()[r.all.Len()-n:]
	for r.step(false) {
	}
	return r.parts
}

// Flush ends the reply and returns the rest.
func (r *Reply) Flush() []Part {
	r.parts = nil
	for r.step(true) {
	}
	return r.parts
}

// step does what it can with the held text, and says whether there may be more to do.
func (r *Reply) step(end bool) bool {
	if r.o.Harmony {
		return r.harmony(end)
	}
	switch r.state {
	case atStart:
		return r.start(end)
	case inThink:
		return r.think(end)
	case inContent:
		return r.content(end)
	}
	return r.readCall(end)
}

func (r *Reply) start(end bool) bool {
	body := strings.TrimLeft(r.held, blanks)
	switch {
	case strings.HasPrefix(body, r.o.ThinkOpen):
		r.held = body[len(r.o.ThinkOpen):]
		r.state, r.drop = inThink, true
		return true
	case !end && strings.HasPrefix(r.o.ThinkOpen, body):
		return false
	}
	// White space in front belongs to an answer without reasoning.
	r.state = inContent
	return true
}

// blanks are the characters that tags may be surrounded by.
const blanks = " \t\r\n"

// skip drops white space that follows a tag.
func (r *Reply) skip() {
	if r.drop {
		r.held = strings.TrimLeft(r.held, r.between())
		r.drop = r.held == ""
	}
}

// between lists what may stand between tags, and between calls in JSON.
func (r *Reply) between() string {
	if r.calls > 0 && r.first {
		return blanks + ";,"
	}
	return blanks
}

func (r *Reply) think(end bool) bool {
	r.skip()
	if at := strings.Index(r.held, r.o.ThinkClose); at >= 0 {
		r.emit(Reasoning, strings.TrimRight(r.held[:at], blanks))
		r.held = r.held[at+len(r.o.ThinkClose):]
		r.state, r.drop = inContent, true
		return true
	}
	keep := len(r.held)
	if !end {
		keep -= startOf(r.held, r.o.ThinkClose)
	}
	// White space before the closing tag is no part of the thought.
	out := strings.TrimRight(r.held[:keep], blanks)
	r.emit(Reasoning, out)
	r.held = r.held[len(out):]
	if end {
		r.held = ""
	}
	return false
}

func (r *Reply) content(end bool) bool {
	r.skip()
	if r.held == "" && !end {
		return false
	}
	if r.first && len(r.o.Tools) > 0 && r.o.BareJSON {
		body := strings.TrimLeft(r.held, blanks)
		if body == "" && !end {
			return false
		}
		if body != "" && (body[0] == '{' || body[0] == '[') {
			r.first = false
			r.begin(&bareCall, body)
			return true
		}
	}
	r.first = false
	at, form := -1, -1
	for i, open := range r.openers {
		if k := strings.Index(r.held, open); k >= 0 && (at < 0 || k < at) {
			at, form = k, i
		}
	}
	if at >= 0 {
		r.text(r.held[:at])
		r.begin(&callForms[form], r.held[at:])
		return true
	}
	keep := len(r.held)
	if !end {
		longest := 0
		for _, open := range r.openers {
			longest = max(longest, startOf(r.held, open))
		}
		keep -= longest
	}
	r.text(r.held[:keep])
	r.held = r.held[keep:]
	if end {
		r.emit(Content, r.spaced)
		r.spaced = ""
	}
	return false
}

// begin starts to read a call from text that begins with its tag.
func (r *Reply) begin(f *callForm, text string) {
	r.state, r.form, r.held, r.scan = inCall, f, text, jsonScan{}
}

// readCall reads on in the call that held begins with.
func (r *Reply) readCall(end bool) bool {
	calls, used := r.form.read(r, r.held[len(r.form.open):], end)
	if used == unread && !end {
		return false
	}
	r.state = inContent
	if used < 0 {
		// It is no call after all: its tag is text, and what follows is looked
		// at anew.
		n := len(r.form.open)
		if n == 0 {
			n = 1
		}
		r.text(r.held[:n])
		r.held = r.held[n:]
		return true
	}
	r.spaced, r.drop = "", true
	r.held = r.held[len(r.form.open)+used:]
	for _, c := range calls {
		if c.ID == "" {
			c.ID = r.o.NewID()
		}
		r.calls++
		r.parts = append(r.parts, Part{Kind: Call, Call: c})
	}
	return true
}

// text gives content out, but keeps white space at its end back while a call may follow.
func (r *Reply) text(s string) {
	s = r.spaced + s
	r.spaced = ""
	if len(r.openers) > 0 {
		body := strings.TrimRight(s, blanks)
		s, r.spaced = body, s[len(body):]
	}
	r.emit(Content, s)
}

func (r *Reply) emit(kind PartKind, text string) {
	if text == "" {
		return
	}
	if n := len(r.parts); n > 0 && r.parts[n-1].Kind == kind {
		r.parts[n-1].Text += text
		return
	}
	r.parts = append(r.parts, Part{Kind: kind, Text: text})
}

// startOf measures the longest end of s that is a proper start of tag.
func startOf(s, tag string) int {
	for n := min(len(s), len(tag)-1); n > 0; n-- {
		if strings.HasPrefix(tag, s[len(s)-n:]) {
			return n
		}
	}
	return 0
}
