package token

import (
	"fmt"
	"strings"
)

// Template renders conversations as text for the model.
type Template struct {
	fallback bool
}

// NewTemplate compiles a chat template; bos and eos are the texts of these
// tokens. An empty src gives ChatML, and Fallback says so.
func NewTemplate(src, bos, eos string) (*Template, error) {
	if src == "" {
		return &Template{fallback: true}, nil
	}
	return nil, fmt.Errorf("templates are not read yet")
}

// Fallback says whether the pack had no template and ChatML stands in.
func (t *Template) Fallback() bool { return t.fallback }

// Render writes the conversation.
func (t *Template) Render(p Prompt) (string, error) {
	var b strings.Builder
	for _, m := range p.Messages {
		fmt.Fprintf(&b, "<|im_start|>%s\n%s<|im_end|>\n", m.Role, m.Content)
	}
	if p.AddGenerationPrompt {
		b.WriteString("<|im_start|>assistant\n")
	}
	return b.String(), nil
}
