package token

import (
	"encoding/json"
	"time"
)

// Message is one message of a conversation.
type Message struct {
	Role       string // system, user, assistant, tool
	Content    string
	Reasoning  string     // what the model thought before its answer
	Name       string     // of a tool, or of a speaker
	ToolCallID string     // which call a tool message answers
	ToolCalls  []ToolCall // of an assistant message
}

// ToolCall is a call of a function that the model asks for.
type ToolCall struct {
	ID, Name  string
	Arguments json.RawMessage // a JSON object
}

// Prompt is what a template makes text of.
type Prompt struct {
	Messages            []Message
	Tools               []json.RawMessage // as in OpenAI's API: {"type":"function","function":{...}}
	AddGenerationPrompt bool              // end with the start of the assistant's turn
	Thinking            *bool             // ask the model to think or not; nil leaves it to the template
	Extra               map[string]any    // further variables of the template, values as of JSON
	Now                 time.Time         // what strftime_now tells; zero is the time of rendering
}
