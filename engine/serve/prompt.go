package serve

import (
	"encoding/json"
	"fmt"
	"net/http"

	"outcrop/engine/token"
	"outcrop/engine/wire"
)

// chatPrompt is a conversation as token ids, with what to look for in the
// reply.
type chatPrompt struct {
	ids   []token.ID
	reply *reply
}

var roles = map[string]string{
	"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool",
}

// chatPrompt checks the messages and renders them by the pack's template.
func (b *Backend) chatPrompt(r *wire.ChatRequest) (chatPrompt, *httpError) {
	var out chatPrompt
	if len(r.Messages) == 0 {
		return out, bad("messages", "messages is empty")
	}
	tools, herr := toolsOf(r)
	if herr != nil {
		return out, herr
	}
	p := token.Prompt{AddGenerationPrompt: true, Tools: tools}
	if r.AddGenerationPrompt != nil {
		p.AddGenerationPrompt = *r.AddGenerationPrompt
	}
	for i, m := range r.Messages {
		role, ok := roles[m.Role]
		if !ok {
			return out, bad(fmt.Sprintf("messages[%d].role", i), "role %q is not one of system, developer, user, assistant, tool", m.Role)
		}
		tm := token.Message{Role: role, Content: string(m.Content), Reasoning: m.ReasoningContent, Name: m.Name, ToolCallID: m.ToolCallID}
		for j, c := range m.ToolCalls {
			args := json.RawMessage(c.Function.Arguments)
			if len(args) == 0 {
				args = json.RawMessage("{}")
			}
			if !json.Valid(args) {
				// A client may send back a call that was cut off: its text is
				// kept as a string, so that the conversation can go on.
				args, _ = json.Marshal(c.Function.Arguments)
			}
			if c.Function.Name == "" {
				return out, bad(fmt.Sprintf("messages[%d].tool_calls[%d]", i, j), "a tool call has no function name")
			}
			tm.ToolCalls = append(tm.ToolCalls, token.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: args})
		}
		p.Messages = append(p.Messages, tm)
	}
	p.Thinking, p.Extra = thinking(r)
	// Text that a person wrote never becomes a control token (EncodeChat).
	ids, text, err := b.Tokenizer.EncodeChat(b.Template, p)
	if err != nil {
		// What a template raises is about the conversation (wrong order of
		// roles, tools it does not know), so it is the client's error.
		return out, fail(http.StatusBadRequest, wire.CodeTemplate, "messages", "%v", err)
	}
	out.ids = ids
	out.reply = newReply(b.Template.ReplyOptions(text, tools))
	return out, nil
}

// thinking takes the wish to think or not out of the ways to say it.
func thinking(r *wire.ChatRequest) (*bool, map[string]any) {
	var want *bool
	extra := map[string]any{}
	for k, v := range r.TemplateArgs {
		if on, ok := v.(bool); ok && (k == "enable_thinking" || k == "thinking") {
			want = &on
			continue
		}
		extra[k] = v
	}
	switch r.ReasoningEffort {
	case "":
	case "none":
		off := false
		want = &off
	default:
		extra["reasoning_effort"] = r.ReasoningEffort
	}
	return want, extra
}

// toolsOf checks tools and tool_choice. A choice that would have to be
// enforced is refused: the model alone decides whether it calls.
func toolsOf(r *wire.ChatRequest) ([]json.RawMessage, *httpError) {
	for i, t := range r.Tools {
		var f struct {
			Type     string `json:"type"`
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		if err := json.Unmarshal(t, &f); err != nil || f.Type != "function" || f.Function.Name == "" {
			return nil, bad(fmt.Sprintf("tools[%d]", i), "a tool must be {\"type\":\"function\",\"function\":{\"name\":...}}")
		}
	}
	if len(r.ToolChoice) == 0 || string(r.ToolChoice) == "null" {
		return r.Tools, nil
	}
	var word string
	if json.Unmarshal(r.ToolChoice, &word) == nil {
		switch word {
		case "auto", "":
			return r.Tools, nil
		case "none":
			return nil, nil
		}
	}
	return nil, unsupported("tool_choice", "tool_choice %s is not supported: use \"auto\" or \"none\", the model decides whether it calls", r.ToolChoice)
}
