package wire

import "fmt"

// Error is the inside of an error answer, in the shape OpenAI's clients read:
// {"error": {...}}.
type Error struct {
	Message string `json:"message"`
	Type    string `json:"type"` // invalid_request_error, authentication_error, not_found_error, server_error
	Param   string `json:"param,omitempty"`
	Code    string `json:"code,omitempty"` // see the Code constants
	// Next is one step that helps, in words.
	Next string `json:"next,omitempty"`
	// Numbers behind the message, for context_length_exceeded.
	PromptTokens int `json:"prompt_tokens,omitempty"`
	ContextSize  int `json:"context_size,omitempty"`
}

// Codes that a client may act on.
const (
	CodeContext     = "context_length_exceeded"
	CodeModel       = "model_not_found"
	CodeKey         = "invalid_api_key"
	CodeUnsupported = "unsupported_parameter"
	CodeValue       = "invalid_value"
	CodeJSON        = "invalid_json"
	CodeTooLarge    = "request_too_large"
	CodeTemplate    = "template_error"
	CodeNotFinite   = "not_finite"
	CodeRepeating   = "repeating"
	CodeCardLost    = "card_lost"
	CodeStopping    = "shutting_down"
	CodeLoading     = "loading"
	CodeMemory      = "insufficient_memory"
	CodeQueueFull   = "queue_full"
)

func (e *Error) Error() string {
	if e.Next != "" {
		return fmt.Sprintf("%s; %s", e.Message, e.Next)
	}
	return e.Message
}

// ErrorBody is a whole error answer.
type ErrorBody struct {
	Error *Error `json:"error"`
}
