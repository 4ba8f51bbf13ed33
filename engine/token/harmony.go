package token

import (
	"encoding/json"
	"strings"
)

// Harmony is the frame of gpt-oss (github.com/openai/harmony): a reply is a
// row of messages, each with a header that names a channel and perhaps a
// recipient, then <|message|>, text, and an end:
//
//	<|channel|>analysis<|message|>...<|end|>
//	<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{...}<|call|>
//	<|start|>assistant<|channel|>final<|message|>...<|return|>
//
// The prompt ends behind <|start|>assistant.
const (
	harmonyStart   = "<|start|>"
	harmonyChannel = "<|channel|>"
	harmonyMessage = "<|message|>"
)

// harmonyEnds end the text of a message; the last two begin the next header.
var harmonyEnds = []string{"<|end|>", "<|call|>", "<|return|>", harmonyStart, harmonyChannel}

// harmonyBody is what the text of the current message is.
type harmonyBody struct {
	open bool
	kind PartKind
	tool string // name of the tool that a call goes to
	args strings.Builder
}

// harmony does what it can with the held text.
func (r *Reply) harmony(end bool) bool {
	if !r.body.open {
		return r.harmonyHeader(end)
	}
	at, tag := -1, ""
	for _, t := range harmonyEnds {
		if k := strings.Index(r.held, t); k >= 0 && (at < 0 || k < at) {
			at, tag = k, t
		}
	}
	if at >= 0 {
		r.harmonyText(r.held[:at])
		r.held = r.held[at:]
		if tag != harmonyStart && tag != harmonyChannel {
			r.held = r.held[len(tag):]
		}
		r.harmonyClose()
		return true
	}
	keep := len(r.held)
	if !end {
		longest := 0
		for _, t := range harmonyEnds {
			longest = max(longest, startOf(r.held, t))
		}
		keep -= longest
	}
	r.harmonyText(r.held[:keep])
	r.held = r.held[keep:]
	if end {
		r.harmonyClose()
	}
	return false
}

// harmonyHeader reads up to <|message|>. Text without a header is an answer.
func (r *Reply) harmonyHeader(end bool) bool {
	body := strings.TrimLeft(r.held, blanks)
	if body == "" {
		return false
	}
	framed := overlaps(body, harmonyChannel) || overlaps(body, harmonyStart) || overlaps(body, harmonyMessage) || overlaps(body, "to=")
	if framed && len(body) < 4096 {
		head, text, ok := strings.Cut(body, harmonyMessage)
		if !ok && !end {
			return false
		}
		if ok {
			r.harmonyOpen(head)
			r.held = text
			return true
		}
	}
	// The start of what is no header after all must be taken as text, or it
	// would look like one again.
	r.body.open, r.body.kind = true, Content
	for _, t := range []string{harmonyChannel, harmonyStart, harmonyMessage} {
		if strings.HasPrefix(body, t) {
			r.emit(Content, t)
			r.held = body[len(t):]
			break
		}
	}
	return true
}

// harmonyOpen understands a header.
func (r *Reply) harmonyOpen(head string) {
	_, channel, _ := strings.Cut(head, harmonyChannel)
	channel = strings.TrimLeft(channel, blanks)
	if k := strings.IndexAny(channel, blanks+"<"); k >= 0 {
		channel = channel[:k]
	}
	r.body.open, r.body.kind, r.body.tool = true, Content, ""
	r.body.args.Reset()
	if channel == "analysis" {
		r.body.kind = Reasoning
	}
	if _, to, ok := strings.Cut(head, "to="); ok {
		if k := strings.IndexAny(to, blanks+"<"); k >= 0 {
			to = to[:k]
		}
		if to = strings.TrimPrefix(to, "functions."); isName(to) && len(r.o.Tools) > 0 {
			r.body.kind, r.body.tool = Call, to
		}
	}
}

func (r *Reply) harmonyText(s string) {
	if r.body.kind == Call {
		r.body.args.WriteString(s)
		return
	}
	r.emit(r.body.kind, s)
}

// harmonyClose ends the current message.
func (r *Reply) harmonyClose() {
	r.body.open = false
	if r.body.kind != Call {
		return
	}
	args := strings.TrimSpace(r.body.args.String())
	r.body.args.Reset()
	if args == "" {
		args = "{}"
	}
	if args[0] != '{' || !json.Valid([]byte(args)) {
		r.emit(Content, args)
		return
	}
	r.calls++
	r.parts = append(r.parts, Part{Kind: Call, Call: ToolCall{ID: r.o.NewID(), Name: r.body.tool, Arguments: json.RawMessage(args)}})
}
