package wire

import (
	"bytes"
	"encoding/json"
	"errors"
)

// CompletionRequest is the body of POST /v1/completions: a prompt without
// chat template. Special tokens in the text are recognised.
type CompletionRequest struct {
	Model  string `json:"model,omitempty"`
	Prompt Prompt `json:"prompt"`
	Sampling
	Stream        bool           `json:"stream,omitempty"`
	StreamOptions *StreamOptions `json:"stream_options,omitempty"`
	LogProbs      *int           `json:"logprobs,omitempty"` // 0..20 alternatives a token
	Echo          bool           `json:"echo,omitempty"`
	Suffix        string         `json:"suffix,omitempty"` // only empty
	BestOf        *int           `json:"best_of,omitempty"`
}

// Prompt is text or token ids. JSON gives a string, a list with one string, a
// list of ids, or a list with one list of ids; several prompts in one request
// are refused.
type Prompt struct {
	Text string
	IDs  []int32 // used when not nil
}

var errPrompt = errors.New("prompt must be one string or one list of token ids")

// UnmarshalJSON reads the four forms.
func (p *Prompt) UnmarshalJSON(b []byte) error {
	b = bytes.TrimSpace(b)
	if json.Unmarshal(b, &p.Text) == nil && len(b) > 0 && b[0] == '"' {
		return nil
	}
	var texts []string
	if json.Unmarshal(b, &texts) == nil && len(texts) == 1 {
		p.Text = texts[0]
		return nil
	}
	var ids []int32
	if json.Unmarshal(b, &ids) == nil && len(ids) > 0 {
		p.IDs = ids
		return nil
	}
	var lists [][]int32
	if json.Unmarshal(b, &lists) == nil && len(lists) == 1 && len(lists[0]) > 0 {
		p.IDs = lists[0]
		return nil
	}
	return errPrompt
}

// MarshalJSON writes ids if there are any, else the text.
func (p Prompt) MarshalJSON() ([]byte, error) {
	if p.IDs != nil {
		return json.Marshal(p.IDs)
	}
	return json.Marshal(p.Text)
}

// CompletionResponse is the answer to a completion, and each event of its
// stream (there with Usage nil but in the last).
type CompletionResponse struct {
	ID      string             `json:"id"`
	Object  string             `json:"object"` // "text_completion"
	Created int64              `json:"created"`
	Model   string             `json:"model"`
	Choices []CompletionChoice `json:"choices"`
	Usage   *Usage             `json:"usage"`
	Outcrop *Extra             `json:"outcrop,omitempty"`
	Error   *Error             `json:"error,omitempty"`
}

// CompletionChoice is the text added.
type CompletionChoice struct {
	Index        int                 `json:"index"`
	Text         string              `json:"text"`
	LogProbs     *CompletionLogProbs `json:"logprobs"`
	FinishReason *string             `json:"finish_reason"`
}

// CompletionLogProbs is the older shape of log probabilities: parallel lists.
type CompletionLogProbs struct {
	Tokens        []string             `json:"tokens"`
	TokenLogProbs []float64            `json:"token_logprobs"`
	TopLogProbs   []map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                `json:"text_offset"`
}
