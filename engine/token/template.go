package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"outcrop/engine/token/jinja"
)

// Template renders conversations as text for the model. It is safe for use by
// several goroutines.
type Template struct {
	t        *jinja.Template
	src      string
	bos, eos string
	fallback bool
	ability  func() ability // found out on first use
}

// chatML stands in for the template of packs that have none. It is the frame
// that more models know than any other (OpenAI's ChatML, from 2023 on), with
// tools as Hermes and Qwen write them.
const chatML = `
{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages and messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- 'You can call these functions:\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' + tool | tojson }}
    {%- endfor %}
    {{- '\n</tools>\n\nTo call one, answer with a JSON object in these tags:\n<tool_call>\n{"name": NAME, "arguments": OBJECT}\n</tool_call><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'tool' %}
        {{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}
    {%- elif not (tools and loop.first and message.role == 'system') %}
        {{- '<|im_start|>' + message.role + '\n' + message.content }}
        {%- for call in message.tool_calls %}
            {{- '\n<tool_call>\n' + {'name': call.function.name, 'arguments': call.function.arguments} | tojson + '\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}`

// NewTemplate reads a chat template (tokenizer.chat_template); bos and eos are
// the texts of these tokens. An empty src gives ChatML, and Fallback says so.
func NewTemplate(src, bos, eos string) (*Template, error) {
	t := &Template{src: src, bos: bos, eos: eos}
	if strings.TrimSpace(src) == "" {
		t.fallback, t.src = true, chatML
	}
	var err error
	if t.t, err = jinja.Parse(t.src); err != nil {
		return nil, fmt.Errorf("read chat template: %w", err)
	}
	t.ability = sync.OnceValue(t.probe)
	return t, nil
}

// Fallback says whether the pack had no template and ChatML stands in.
func (t *Template) Fallback() bool { return t.fallback }

// Source is the text of the template.
func (t *Template) Source() string { return t.src }

// Uses says whether the template mentions a variable, such as
// "enable_thinking": a switch that it does not look at has no effect.
func (t *Template) Uses(name string) bool { return strings.Contains(t.src, name) }

// ErrRefused is wrapped by Render's error when the template itself refuses the
// conversation, for example because roles do not alternate. The error's text
// is the template's.
var ErrRefused = errors.New("the chat template refuses the conversation")

// Render writes the conversation as the model is used to read it. The end of
// the text is where the model goes on if AddGenerationPrompt is set.
//
// What the template has no place for is put where it has one: see Adapt.
func (t *Template) Render(p Prompt) (string, error) {
	return t.render(t.Adapt(p), t.ability().textArguments)
}

// render writes a conversation as it is.
func (t *Template) render(p Prompt, argumentsAsText bool) (string, error) {
	vars := map[string]any{
		"add_generation_prompt": p.AddGenerationPrompt,
		"bos_token":             t.bos,
		"eos_token":             t.eos,
		"tools":                 nil,
	}
	messages, err := messageValues(p.Messages, argumentsAsText)
	if err != nil {
		return "", fmt.Errorf("render chat template: %w", err)
	}
	vars["messages"] = messages
	if len(p.Tools) > 0 {
		tools := make([]any, len(p.Tools))
		for i, raw := range p.Tools {
			if tools[i], err = jinja.FromJSON(raw); err != nil {
				return "", fmt.Errorf("render chat template: tool %d: %w", i+1, err)
			}
		}
		vars["tools"] = tools
	}
	if p.Thinking != nil {
		// The same wish under the names that different families gave it.
		vars["enable_thinking"], vars["thinking"] = *p.Thinking, *p.Thinking
	}
	for k, v := range p.Extra {
		vars[k] = v
	}
	now := p.Now
	if now.IsZero() {
		now = time.Now()
	}
	text, err := t.t.Render(vars, now)
	var e *jinja.Error
	switch {
	case errors.As(err, &e) && e.Raised:
		return "", fmt.Errorf("%w: %s", ErrRefused, e.Message)
	case err != nil:
		return "", fmt.Errorf("render chat template: %w", err)
	}
	return text, nil
}

// messageValues makes the variable messages. Keys come in the order of
// OpenAI's API, and only those that are set, as templates ask whether they are
// defined.
func messageValues(messages []Message, argumentsAsText bool) ([]any, error) {
	list := make([]any, len(messages))
	for i, m := range messages {
		d := jinja.NewDict()
		d.Set("role", m.Role)
		d.Set("content", m.Content)
		if m.Reasoning != "" {
			d.Set("reasoning_content", m.Reasoning)
			d.Set("thinking", m.Reasoning)
		}
		if m.Name != "" {
			d.Set("name", m.Name)
		}
		if m.ToolCallID != "" {
			d.Set("tool_call_id", m.ToolCallID)
		}
		if len(m.ToolCalls) > 0 {
			calls := make([]any, len(m.ToolCalls))
			for k, c := range m.ToolCalls {
				raw := c.Arguments
				if len(raw) == 0 {
					raw = json.RawMessage("{}")
				}
				args, err := jinja.FromJSON(raw)
				if err != nil {
					return nil, fmt.Errorf("message %d: arguments of the call of %s: %w", i+1, c.Name, err)
				}
				if _, object := args.(*jinja.Dict); object && argumentsAsText {
					args = string(raw)
				}
				fn, call := jinja.NewDict(), jinja.NewDict()
				fn.Set("name", c.Name)
				fn.Set("arguments", args)
				if c.ID != "" {
					call.Set("id", c.ID)
				}
				call.Set("type", "function")
				call.Set("function", fn)
				calls[k] = call
			}
			d.Set("tool_calls", calls)
		}
		list[i] = d
	}
	return list, nil
}

// thinkTags are the pairs of tags that models frame their reasoning with.
var thinkTags = [][2]string{
	{"<think>", "</think>"}, {"[THINK]", "[/THINK]"}, {"<seed:think>", "</seed:think>"}, {"<|START_THINKING|>", "<|END_THINKING|>"},
	{"◁think▷", "◁/think▷"}, {"<thought>", "</thought>"}, {"<reasoning>", "</reasoning>"},
}

// ReplyOptions says what to look for in the reply to a prompt that this
// template rendered. tools are those of the request.
func (t *Template) ReplyOptions(prompt string, tools []json.RawMessage) ReplyOptions {
	o := ReplyOptions{ThinkOpen: thinkTags[0][0], ThinkClose: thinkTags[0][1], Tools: tools}
	for _, pair := range thinkTags {
		if strings.Contains(t.src, pair[0]) || strings.Contains(t.src, pair[1]) {
			o.ThinkOpen, o.ThinkClose = pair[0], pair[1]
			break
		}
	}
	o.Thinking = strings.HasSuffix(strings.TrimRight(prompt, blanks), o.ThinkOpen)
	o.Harmony = strings.Contains(t.src, harmonyChannel) && strings.Contains(t.src, harmonyMessage)
	o.BareJSON = !strings.Contains(t.src, "<tool_call>") && !strings.Contains(t.src, "[TOOL_CALLS]")
	return o
}
