package token

import (
	"encoding/json"
	"strings"
	"time"
)

// ability is what a template has a place for, found out by rendering small
// conversations and looking for their words.
type ability struct {
	system        bool // system messages
	tools         bool // tools of the request
	calls         bool // calls in assistant messages and the answers of tools
	textArguments bool // arguments of calls are pasted as text, so they must be text
}

// probe finds the abilities of a template. A rendering that fails shows that
// there is no place; its error is not reported.
func (t *Template) probe() ability {
	var a ability
	now := time.Unix(0, 0).UTC()
	has := func(p Prompt, textArguments bool, words ...string) (string, bool) {
		p.Now, p.AddGenerationPrompt = now, true
		text, err := t.render(p, textArguments)
		if err != nil {
			return "", false
		}
		for _, w := range words {
			if !strings.Contains(text, w) {
				return text, false
			}
		}
		return text, true
	}
	user := Message{Role: "user", Content: "probe-user"}
	_, a.system = has(Prompt{Messages: []Message{{Role: "system", Content: "probe-system"}, user}}, false, "probe-system", "probe-user")
	tools := []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"probe_tool","description":"probe","parameters":{"type":"object","properties":{}}}}`)}
	_, a.tools = has(Prompt{Messages: []Message{user}, Tools: tools}, false, "probe_tool")
	// Some templates look at what is asked of them with a call before.
	called := Prompt{Messages: []Message{
		user,
		{Role: "assistant", ToolCalls: []ToolCall{{ID: "probe0id1", Name: "probe_tool", Arguments: json.RawMessage(`{"probe_key":"probe-value"}`)}}},
		{Role: "tool", Content: "probe-answer", Name: "probe_tool", ToolCallID: "probe0id1"},
	}, Tools: tools}
	words := []string{"probe_tool", "probe_key", "probe-value", "probe-answer"}
	text, ok := has(called, false, words...)
	switch {
	case ok && !strings.Contains(text, "{'probe_key'"):
		a.calls = true
	default:
		// A mapping that is printed shows as Python writes it, which no model
		// was trained on: such templates want text.
		_, a.calls = has(called, true, words...)
		a.textArguments = a.calls
	}
	return a
}

// Adapt moves what the template has no place for to where it has one, as
// Render does: a system message into the first message of the user, tools into
// the system message, calls and answers of tools into ordinary messages, in
// the tags that ReplyOptions expects. A template that has a place for all
// gets the conversation as it is.
func (t *Template) Adapt(p Prompt) Prompt {
	plain := true
	for _, m := range p.Messages {
		if m.Role == "system" || m.Role == "tool" || len(m.ToolCalls) > 0 {
			plain = false
		}
	}
	if plain && len(p.Tools) == 0 {
		return p
	}
	a := t.ability()
	p.Messages = append([]Message(nil), p.Messages...)
	if len(p.Tools) > 0 && !a.tools {
		p.Messages = withSystem(p.Messages, toolText(p.Tools))
		p.Tools = nil
	}
	if !a.calls {
		p.Messages = flatCalls(p.Messages)
	}
	if !a.system {
		p.Messages = systemToUser(p.Messages)
	}
	return p
}

// toolText describes tools in words.
func toolText(tools []json.RawMessage) string {
	var b strings.Builder
	b.WriteString("You can call these functions:\n<tools>\n")
	for _, t := range tools {
		b.Write(t)
		b.WriteByte('\n')
	}
	b.WriteString("</tools>\n\nTo call one, answer with a JSON object in these tags:\n<tool_call>\n{\"name\": NAME, \"arguments\": OBJECT}\n</tool_call>")
	return b.String()
}

// withSystem adds text to the system message, which it makes if there is none.
func withSystem(messages []Message, text string) []Message {
	if len(messages) > 0 && messages[0].Role == "system" {
		if messages[0].Content != "" {
			text = messages[0].Content + "\n\n" + text
		}
		messages[0].Content = text
		return messages
	}
	return append([]Message{{Role: "system", Content: text}}, messages...)
}

// flatCalls writes calls into the text of their message, and the answers of
// tools as messages of the user, several in a row as one.
func flatCalls(messages []Message) []Message {
	var out []Message
	tool := false
	for _, m := range messages {
		if len(m.ToolCalls) > 0 {
			var b strings.Builder
			b.WriteString(m.Content)
			for _, c := range m.ToolCalls {
				args := c.Arguments
				if len(args) == 0 {
					args = json.RawMessage("{}")
				}
				if b.Len() > 0 {
					b.WriteByte('\n')
				}
				b.WriteString("<tool_call>\n{\"name\": " + string(quote(c.Name)) + ", \"arguments\": " + string(args) + "}\n</tool_call>")
			}
			m.Content, m.ToolCalls = b.String(), nil
		}
		if m.Role != "tool" {
			out, tool = append(out, m), false
			continue
		}
		text := "<tool_response>\n" + m.Content + "\n</tool_response>"
		if tool {
			out[len(out)-1].Content += "\n" + text
			continue
		}
		out, tool = append(out, Message{Role: "user", Content: text}), true
	}
	return out
}

// systemToUser puts system messages in front of the message of the user that follows.
func systemToUser(messages []Message) []Message {
	var out []Message
	waiting := ""
	for _, m := range messages {
		if m.Role == "system" {
			if waiting != "" {
				waiting += "\n\n"
			}
			waiting += m.Content
			continue
		}
		if waiting != "" && m.Role == "user" {
			m.Content = waiting + "\n\n" + m.Content
			waiting = ""
		}
		out = append(out, m)
	}
	if waiting != "" {
		out = append(out, Message{Role: "user", Content: waiting})
	}
	return out
}
