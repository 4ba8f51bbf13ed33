package wire

import (
	"bytes"
	"encoding/json"
	"strings"
)

// AnthropicRequest is the body of POST /v1/messages, in the shape of
// Anthropic's Messages reference.
type AnthropicRequest struct {
	Model         string             `json:"model"`
	MaxTokens     int                `json:"max_tokens"`
	System        AnthropicText      `json:"system,omitempty"`
	Messages      []AnthropicMessage `json:"messages"`
	Temperature   *float64           `json:"temperature,omitempty"`
	TopP          *float64           `json:"top_p,omitempty"`
	TopK          *int               `json:"top_k,omitempty"`
	StopSequences []string           `json:"stop_sequences,omitempty"`
	Stream        bool               `json:"stream,omitempty"`
	Tools         []AnthropicTool    `json:"tools,omitempty"`
	ToolChoice    *AnthropicKind     `json:"tool_choice,omitempty"`
	Thinking      *AnthropicKind     `json:"thinking,omitempty"`
}

// AnthropicKind is an object of which only the type matters here.
type AnthropicKind struct {
	Type string `json:"type"`
}

// AnthropicTool describes a tool.
type AnthropicTool struct {
	Type        string          `json:"type,omitempty"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
}

// AnthropicMessage is one turn.
type AnthropicMessage struct {
	Role    string          `json:"role"`
	Content AnthropicBlocks `json:"content"`
}

// AnthropicBlocks is content: a string or a list of blocks.
type AnthropicBlocks []AnthropicBlock

// UnmarshalJSON reads both forms.
func (c *AnthropicBlocks) UnmarshalJSON(b []byte) error {
	if b = bytes.TrimSpace(b); len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*c = AnthropicBlocks{{Type: "text", Text: s}}
		return nil
	}
	return json.Unmarshal(b, (*[]AnthropicBlock)(c))
}

// Text joins the text blocks.
func (c AnthropicBlocks) Text() string {
	var sb strings.Builder
	for _, x := range c {
		sb.WriteString(x.Text)
	}
	return sb.String()
}

// AnthropicText is a string, or a list of text blocks that are joined.
type AnthropicText string

// UnmarshalJSON reads both forms.
func (t *AnthropicText) UnmarshalJSON(b []byte) error {
	var c AnthropicBlocks
	if err := json.Unmarshal(b, &c); err != nil {
		return err
	}
	*t = AnthropicText(c.Text())
	return nil
}

// AnthropicBlock is one block of content, of any type.
type AnthropicBlock struct {
	Type      string          `json:"type"` // text, thinking, tool_use, tool_result
	Text      string          `json:"text,omitempty"`
	Thinking  string          `json:"thinking,omitempty"`
	Signature *string         `json:"signature,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`
	ToolUseID string          `json:"tool_use_id,omitempty"`
	Content   AnthropicBlocks `json:"content,omitempty"`
	IsError   bool            `json:"is_error,omitempty"`
}

// AnthropicResponse is the answer.
type AnthropicResponse struct {
	ID           string           `json:"id"`
	Type         string           `json:"type"` // "message"
	Role         string           `json:"role"`
	Model        string           `json:"model"`
	Content      []AnthropicBlock `json:"content"`
	StopReason   string           `json:"stop_reason,omitempty"` // end_turn, max_tokens, stop_sequence, tool_use
	StopSequence *string          `json:"stop_sequence"`
	Usage        AnthropicUsage   `json:"usage"`
}

// AnthropicUsage counts tokens.
type AnthropicUsage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	CacheRead    int `json:"cache_read_input_tokens"`
}

// AnthropicError is an error answer.
type AnthropicError struct {
	Type  string               `json:"type"` // "error"
	Error AnthropicErrorDetail `json:"error"`
}

// AnthropicErrorDetail is the inside of an error.
type AnthropicErrorDetail struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}
