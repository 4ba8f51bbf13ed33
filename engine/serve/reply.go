package serve

import (
	"outcrop/engine/token"
	"outcrop/engine/wire"
)

// reply takes the text of an answer apart into content, reasoning and tool
// calls as it comes.
type reply struct{ r *token.Reply }

func newReply(o token.ReplyOptions) *reply { return &reply{token.NewReply(o)} }

// push adds what text settles to m.
func (r *reply) push(text string, m *wire.Message) { add(r.r.Push(text), m) }

// end adds the rest.
func (r *reply) end(m *wire.Message) { add(r.r.Flush(), m) }

func add(parts []token.Part, m *wire.Message) {
	for _, p := range parts {
		switch p.Kind {
		case token.Content:
			m.Content += wire.Content(p.Text)
		case token.Reasoning:
			m.ReasoningContent += p.Text
		case token.Call:
			m.ToolCalls = append(m.ToolCalls, wire.ToolCall{
				ID: p.Call.ID, Type: "function",
				Function: wire.FunctionCall{Name: p.Call.Name, Arguments: string(p.Call.Arguments)},
			})
		}
	}
}
