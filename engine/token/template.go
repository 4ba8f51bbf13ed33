package token

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ardanlabs/jinja"
)

// Template renders conversations as text for the model.
type Template struct {
	t        *jinja.Template
	src      string
	bos, eos string
	fallback bool
}

// chatML is used for packs that have no template of their own.
const chatML = `{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}` +
	`{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}`

// NewTemplate compiles a chat template; bos and eos are the texts of these
// tokens. An empty src gives ChatML, and Fallback says so.
func NewTemplate(src, bos, eos string) (t *Template, err error) {
	t = &Template{src: src, bos: bos, eos: eos}
	if src == "" {
		t.fallback, src = true, chatML
	}
	defer func() {
		if r := recover(); r != nil {
			t, err = nil, fmt.Errorf("compile chat template: %v", r)
		}
	}()
	if t.t, err = jinja.Compile(src); err != nil {
		return nil, fmt.Errorf("compile chat template: %w", err)
	}
	return t, nil
}

// Fallback says whether the pack had no template and ChatML stands in.
func (t *Template) Fallback() bool { return t.fallback }

// Render writes the conversation.
func (t *Template) Render(p Prompt) (text string, err error) {
	defer func() {
		if r := recover(); r != nil {
			text, err = "", fmt.Errorf("render chat template: %v", r)
		}
	}()
	var list []jinja.Value
	for _, m := range p.Messages {
		v := jinja.NewDict()
		d := v.AsDict()
		d.Set("role", jinja.NewString(m.Role))
		d.Set("content", jinja.NewString(m.Content))
		if m.Reasoning != "" {
			d.Set("reasoning_content", jinja.NewString(m.Reasoning))
		}
		if m.Name != "" {
			d.Set("name", jinja.NewString(m.Name))
		}
		if m.ToolCallID != "" {
			d.Set("tool_call_id", jinja.NewString(m.ToolCallID))
		}
		var calls []jinja.Value
		for _, c := range m.ToolCalls {
			args, err := ordered(c.Arguments)
			if err != nil {
				return "", fmt.Errorf("render chat template: arguments of tool call %s: %w", c.Name, err)
			}
			call, fn := jinja.NewDict(), jinja.NewDict()
			fn.AsDict().Set("name", jinja.NewString(c.Name))
			fn.AsDict().Set("arguments", args)
			call.AsDict().Set("id", jinja.NewString(c.ID))
			call.AsDict().Set("type", jinja.NewString("function"))
			call.AsDict().Set("function", fn)
			calls = append(calls, call)
		}
		if calls != nil {
			d.Set("tool_calls", jinja.NewList(calls))
		}
		list = append(list, v)
	}
	vars := map[string]jinja.Value{
		"messages":              jinja.NewList(list),
		"add_generation_prompt": jinja.NewBool(p.AddGenerationPrompt),
		"bos_token":             jinja.NewString(t.bos),
		"eos_token":             jinja.NewString(t.eos),
		"tools":                 jinja.None(),
	}
	if len(p.Tools) > 0 {
		var tools []jinja.Value
		for i, raw := range p.Tools {
			v, err := ordered(raw)
			if err != nil {
				return "", fmt.Errorf("render chat template: tool %d: %w", i+1, err)
			}
			tools = append(tools, v)
		}
		vars["tools"] = jinja.NewList(tools)
	}
	if p.Thinking != nil {
		vars["enable_thinking"] = jinja.NewBool(*p.Thinking)
	}
	for k, v := range p.Extra {
		vars[k] = jinja.FromGoValue(v)
	}
	if text, err = t.t.RenderValues(vars); err != nil {
		return "", fmt.Errorf("render chat template: %w", err)
	}
	return text, nil
}

// ordered reads JSON and keeps the order of keys.
func ordered(raw json.RawMessage) (jinja.Value, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return orderedValue(d)
}

func orderedValue(d *json.Decoder) (jinja.Value, error) {
	tok, err := d.Token()
	if err != nil {
		return jinja.None(), err
	}
	switch v := tok.(type) {
	case nil:
		return jinja.None(), nil
	case bool:
		return jinja.NewBool(v), nil
	case string:
		return jinja.NewString(v), nil
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return jinja.NewInt(n), nil
		}
		f, err := v.Float64()
		return jinja.NewFloat(f), err
	case json.Delim:
		var list []jinja.Value
		dict := jinja.NewDict()
		for d.More() {
			key := ""
			if v == '{' {
				k, err := d.Token()
				if err != nil {
					return dict, err
				}
				key = k.(string)
			}
			item, err := orderedValue(d)
			if err != nil {
				return dict, err
			}
			if v == '{' {
				dict.AsDict().Set(key, item)
			} else {
				list = append(list, item)
			}
		}
		if _, err := d.Token(); err != nil {
			return dict, err
		}
		if v == '[' {
			return jinja.NewList(list), nil
		}
		return dict, nil
	}
	return jinja.None(), fmt.Errorf("unexpected %v", tok)
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
	o.BareJSON = !strings.Contains(t.src, "<tool_call>") && !strings.Contains(t.src, "[TOOL_CALLS]")
	return o
}
