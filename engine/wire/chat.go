// Package wire holds the JSON of Outcrop's HTTP interface: what a client
// sends, what the engine answers, and what the telemetry stream carries. It is
// pure data, shared by engine/serve, app/client and the window, and imports
// nothing of ours.
//
// The shapes of /v1 follow the OpenAI API reference (chat completions and
// completions); everything of our own stands under one key, "outcrop", so that
// a foreign client can ignore it and a foreign server can leave it out.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// ChatRequest is the body of POST /v1/chat/completions. Pointers are optional
// settings: nil means "decide for me", which differs from zero (temperature 0
// is greedy).
type ChatRequest struct {
	Model    string    `json:"model,omitempty"`
	Messages []Message `json:"messages"`
	Sampling
	Stream        bool              `json:"stream,omitempty"`
	StreamOptions *StreamOptions    `json:"stream_options,omitempty"`
	Tools         []json.RawMessage `json:"tools,omitempty"`
	ToolChoice    json.RawMessage   `json:"tool_choice,omitempty"`
	LogProbs      bool              `json:"logprobs,omitempty"`
	TopLogProbs   int               `json:"top_logprobs,omitempty"` // 0..20, needs LogProbs
	// MaxCompletionTokens is the newer name of MaxTokens and wins over it.
	MaxCompletionTokens *int            `json:"max_completion_tokens,omitempty"`
	ResponseFormat      json.RawMessage `json:"response_format,omitempty"`
	// TemplateArgs are handed to the pack's chat template as they are;
	// enable_thinking (bool) switches thinking where the template knows it.
	TemplateArgs map[string]any `json:"chat_template_kwargs,omitempty"`
	// ReasoningEffort "none" switches thinking off; other words are handed to
	// the template as reasoning_effort.
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
	// AddGenerationPrompt false leaves the prompt open after the last message,
	// so that an assistant message at the end is continued. nil means true.
	AddGenerationPrompt *bool `json:"add_generation_prompt,omitempty"`
}

// Sampling is the part of a request that chat and plain completions share.
type Sampling struct {
	MaxTokens         *int               `json:"max_tokens,omitempty"` // nil or -1: until the answer or the context ends
	Temperature       *float64           `json:"temperature,omitempty"`
	TopP              *float64           `json:"top_p,omitempty"`
	TopK              *int               `json:"top_k,omitempty"`
	MinP              *float64           `json:"min_p,omitempty"`
	RepeatPenalty     *float64           `json:"repeat_penalty,omitempty"`
	RepeatLastN       *int               `json:"repeat_last_n,omitempty"`
	PresencePenalty   *float64           `json:"presence_penalty,omitempty"`
	FrequencyPenalty  *float64           `json:"frequency_penalty,omitempty"`
	Seed              *int64             `json:"seed,omitempty"`
	Stop              Strings            `json:"stop,omitempty"`
	LogitBias         map[string]float64 `json:"logit_bias,omitempty"` // token id in decimal -> added to its logit
	N                 *int               `json:"n,omitempty"`          // only 1
	IgnoreEOS         bool               `json:"ignore_eos,omitempty"` // goes on after an end token; for measuring
	User              string             `json:"user,omitempty"`
	ReturnTokens      bool               `json:"return_tokens,omitempty"`   // ids under "outcrop"
	ReturnProgress    bool               `json:"return_progress,omitempty"` // chunks about queue and prefill, with empty choices
	RepetitionPenalty *float64           `json:"repetition_penalty,omitempty"`
}

// StreamOptions asks for extras in a stream.
type StreamOptions struct {
	// IncludeUsage adds one chunk with empty choices and the usage before [DONE].
	IncludeUsage bool `json:"include_usage,omitempty"`
}

// Message is one turn of a conversation.
type Message struct {
	Role             string     `json:"role"` // system, developer, user, assistant, tool
	Content          Content    `json:"content"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	Name             string     `json:"name,omitempty"`
	ToolCalls        []ToolCall `json:"tool_calls,omitempty"`
	ToolCallID       string     `json:"tool_call_id,omitempty"`
}

// Content is the text of a message. In JSON it may be a string, null, or a
// list of parts of type "text", which are joined; other parts are an
// *UnsupportedPartError, because dropping a picture silently would be a lie.
type Content string

// UnsupportedPartError names the kind of content part that cannot be used.
type UnsupportedPartError struct{ Type string }

func (e *UnsupportedPartError) Error() string {
	return fmt.Sprintf("content part of type %q is not supported: this engine reads text only", e.Type)
}

// UnmarshalJSON reads a string, null or a list of text parts.
func (c *Content) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	switch {
	case bytes.Equal(b, []byte("null")):
		*c = ""
		return nil
	case len(b) > 0 && b[0] == '[':
		var parts []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if err := json.Unmarshal(b, &parts); err != nil {
			return err
		}
		var sb strings.Builder
		for _, p := range parts {
			switch p.Type {
			case "text", "input_text", "output_text":
				sb.WriteString(p.Text)
			default:
				return &UnsupportedPartError{p.Type}
			}
		}
		*c = Content(sb.String())
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return errors.New("the content of a message must be a string, null or a list of text parts")
	}
	*c = Content(s)
	return nil
}

// Strings is a list that JSON may also give as one string, or null.
type Strings []string

// UnmarshalJSON reads one string, a list of strings, or null.
func (s *Strings) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if len(b) > 0 && b[0] == '"' {
		var one string
		if err := json.Unmarshal(b, &one); err != nil {
			return err
		}
		*s = Strings{one}
		return nil
	}
	if err := json.Unmarshal(b, (*[]string)(s)); err != nil {
		return errors.New("stop must be a string, null or a list of strings")
	}
	return nil
}

// ToolCall is one call that the model asks for. Index is set in stream deltas.
type ToolCall struct {
	Index    *int         `json:"index,omitempty"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"` // "function"
	Function FunctionCall `json:"function"`
}

// FunctionCall names a function and its arguments, JSON text inside a string.
type FunctionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// ChatResponse is the answer to a request without stream.
type ChatResponse struct {
	ID                string       `json:"id"`
	Object            string       `json:"object"` // "chat.completion"
	Created           int64        `json:"created"`
	Model             string       `json:"model"`
	SystemFingerprint string       `json:"system_fingerprint,omitempty"`
	Choices           []ChatChoice `json:"choices"`
	Usage             Usage        `json:"usage"`
	Outcrop           *Extra       `json:"outcrop,omitempty"`
}

// ChatChoice is the one answer (n is always 1).
type ChatChoice struct {
	Index        int       `json:"index"`
	Message      Message   `json:"message"`
	LogProbs     *LogProbs `json:"logprobs"`
	FinishReason string    `json:"finish_reason"` // stop, length, tool_calls
}

// ChatChunk is one event of a stream. The first delta carries the role, the
// last choice a finish reason, then usage if it was asked for.
type ChatChunk struct {
	ID                string        `json:"id"`
	Object            string        `json:"object"` // "chat.completion.chunk"
	Created           int64         `json:"created"`
	Model             string        `json:"model"`
	SystemFingerprint string        `json:"system_fingerprint,omitempty"`
	Choices           []ChunkChoice `json:"choices"`
	Usage             *Usage        `json:"usage"`
	Outcrop           *Extra        `json:"outcrop,omitempty"`
	// Error ends a stream that went wrong after it began.
	Error *Error `json:"error,omitempty"`
}

// ChunkChoice holds what a chunk adds.
type ChunkChoice struct {
	Index        int       `json:"index"`
	Delta        Delta     `json:"delta"`
	LogProbs     *LogProbs `json:"logprobs"`
	FinishReason *string   `json:"finish_reason"`
}

// Delta is what one chunk adds to the message.
type Delta struct {
	Role             string     `json:"role,omitempty"`
	Content          *string    `json:"content,omitempty"`
	ReasoningContent string     `json:"reasoning_content,omitempty"`
	ToolCalls        []ToolCall `json:"tool_calls,omitempty"`
}

// LogProbs carries the log probabilities of the tokens of one choice or chunk.
type LogProbs struct {
	Content []TokenLogProb `json:"content"`
}

// TokenLogProb is one emitted token with the most probable alternatives.
type TokenLogProb struct {
	ID      int32          `json:"id"`
	Token   string         `json:"token"`
	LogProb float64        `json:"logprob"`
	Bytes   []int          `json:"bytes"`
	Top     []TokenLogProb `json:"top_logprobs,omitempty"`
}

// Usage counts tokens.
type Usage struct {
	PromptTokens        int            `json:"prompt_tokens"`
	CompletionTokens    int            `json:"completion_tokens"`
	TotalTokens         int            `json:"total_tokens"`
	PromptTokensDetails *PromptDetails `json:"prompt_tokens_details,omitempty"`
}

// PromptDetails says how many prompt tokens were already in the session.
type PromptDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// Extra is Outcrop's own part of an answer: in a stream it rides on the chunk
// with the finish reason, and on queue and progress chunks with empty choices.
type Extra struct {
	IDs        []int32  `json:"ids,omitempty"`        // generated ids, when return_tokens was set
	PromptIDs  []int32  `json:"prompt_ids,omitempty"` // prompt ids, when return_tokens was set
	Finish     string   `json:"finish,omitempty"`     // stop, length, context, cancelled
	StopText   string   `json:"stop_text,omitempty"`  // the stop string that ended it
	Timings    *Timings `json:"timings,omitempty"`
	QueueAhead int      `json:"queue_ahead,omitempty"` // requests before this one
	Phase      string   `json:"phase,omitempty"`       // of a progress chunk: queued, prefill
	Done       int      `json:"done,omitempty"`        // of a prefill progress chunk: prompt tokens done
	Total      int      `json:"total,omitempty"`       // and of how many
	Notes      []string `json:"notes,omitempty"`       // things the client should know, in words
}

// Timings are measured by the engine. Rates are tokens per second.
type Timings struct {
	PromptN     int     `json:"prompt_n"` // tokens computed, without reused ones
	Reused      int     `json:"reused"`
	PromptMS    float64 `json:"prompt_ms"`
	PromptTokS  float64 `json:"prompt_tok_s"`
	DecodeN     int     `json:"decode_n"`
	DecodeMS    float64 `json:"decode_ms"`
	DecodeTokS  float64 `json:"decode_tok_s"`
	MSPerStep   float64 `json:"ms_per_step"`
	QueueMS     float64 `json:"queue_ms"`
	FirstMS     float64 `json:"first_ms"` // request accepted to first token, queue included
	Drafted     int     `json:"drafted"`
	Accepted    int     `json:"accepted"`
	ContextUsed int     `json:"context_used"`
	ContextSize int     `json:"context_size"`
}
