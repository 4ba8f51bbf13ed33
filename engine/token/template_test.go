package token

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func readTemplate(t *testing.T, name string) *Template {
	t.Helper()
	src, err := os.ReadFile(filepath.Join("testdata", "chat", name+".jinja"))
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := NewTemplate(string(src), "<BOS>", "<EOS>")
	if err != nil {
		t.Fatal(err)
	}
	return tpl
}

// TestTemplates compares with Python's Jinja: testdata/chat/make.py.
func TestTemplates(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("testdata", "chat", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Template, Scene string
		Want, Raised    *string
		Vars            struct {
			Messages []struct {
				Role, Content string
				Reasoning     string `json:"reasoning_content"`
				Name          string
				ToolCallID    string `json:"tool_call_id"`
				ToolCalls     []struct {
					ID       string
					Function struct {
						Name      string
						Arguments json.RawMessage
					}
				} `json:"tool_calls"`
			}
			Tools    []json.RawMessage
			Thinking *bool
			Generate *bool `json:"add_generation_prompt"`
		}
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	if len(cases) < 60 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		tpl := readTemplate(t, c.Template)
		p := Prompt{Tools: c.Vars.Tools, AddGenerationPrompt: true, Thinking: c.Vars.Thinking, Now: time.Date(2026, 3, 7, 9, 5, 2, 0, time.UTC)}
		if c.Vars.Generate != nil {
			p.AddGenerationPrompt = *c.Vars.Generate
		}
		for _, m := range c.Vars.Messages {
			to := Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, Name: m.Name, ToolCallID: m.ToolCallID}
			for _, call := range m.ToolCalls {
				args := call.Function.Arguments
				var text string
				if json.Unmarshal(args, &text) == nil {
					args = json.RawMessage(text)
				}
				to.ToolCalls = append(to.ToolCalls, ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: args})
			}
			p.Messages = append(p.Messages, to)
		}
		// Templates without a place for tools get them in words, which Python
		// knows nothing of: render as it is there.
		got, err := tpl.render(p, tpl.ability().textArguments)
		switch {
		case c.Raised != nil:
			if !errors.Is(err, ErrRefused) || !strings.HasSuffix(err.Error(), *c.Raised) {
				t.Errorf("%s, %s: %v, want %q", c.Template, c.Scene, err, *c.Raised)
			}
		case err != nil:
			t.Errorf("%s, %s: %v", c.Template, c.Scene, err)
		case got != *c.Want:
			t.Errorf("%s, %s:\n got %q\nwant %q", c.Template, c.Scene, got, *c.Want)
		}
	}
}

// TestAbilities makes sure that what templates have a place for is found out.
func TestAbilities(t *testing.T) {
	for name, want := range map[string]ability{
		"chatml":   {system: true},
		"llama3":   {system: true, tools: true, calls: true},
		"mistral":  {system: true, tools: true, calls: true},
		"gemma":    {},
		"qwen3":    {system: true, tools: true, calls: true},
		"deepseek": {system: true, calls: true, textArguments: true},
	} {
		if got := readTemplate(t, name).ability(); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	fallback, err := NewTemplate("", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fallback.ability(), (ability{system: true, tools: true, calls: true}); got != want {
		t.Errorf("fallback: got %+v, want %+v", got, want)
	}
}

func TestAdapt(t *testing.T) {
	tool := json.RawMessage(`{"type":"function","function":{"name":"now"}}`)
	call := Message{Role: "assistant", Content: "Wait.", ToolCalls: []ToolCall{{Name: "now", Arguments: json.RawMessage(`{"a": 1}`)}, {Name: "now"}}}
	for _, c := range []struct {
		template string
		p        Prompt
		want     string
	}{
		{"gemma", Prompt{Messages: []Message{{Role: "system", Content: "Be kind."}, {Role: "user", Content: "Hi"}}, AddGenerationPrompt: true},
			"<BOS><start_of_turn>user\nBe kind.\n\nHi<end_of_turn>\n<start_of_turn>model\n"},
		{"gemma", Prompt{Messages: []Message{{Role: "system", Content: "Be kind."}}, AddGenerationPrompt: true},
			"<BOS><start_of_turn>user\nBe kind.<end_of_turn>\n<start_of_turn>model\n"},
		{"gemma", Prompt{Messages: []Message{{Role: "user", Content: "Hi"}, call, {Role: "tool", Content: "5"}, {Role: "tool", Content: "6"}}},
			"<BOS><start_of_turn>user\nHi<end_of_turn>\n<start_of_turn>model\nWait.\n<tool_call>\n{\"name\": \"now\", \"arguments\": {\"a\": 1}}\n</tool_call>\n<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call><end_of_turn>\n" +
				"<start_of_turn>user\n<tool_response>\n5\n</tool_response>\n<tool_response>\n6\n</tool_response><end_of_turn>\n"},
		{"gemma", Prompt{Messages: []Message{{Role: "user", Content: "Hi"}}, Tools: []json.RawMessage{tool}},
			"<BOS><start_of_turn>user\nYou can call these functions:\n<tools>\n" + string(tool) + "\n</tools>\n\nTo call one, answer with a JSON object in these tags:\n<tool_call>\n{\"name\": NAME, \"arguments\": OBJECT}\n</tool_call>\n\nHi<end_of_turn>\n"},
		{"chatml", Prompt{Messages: []Message{{Role: "system", Content: "S"}, {Role: "user", Content: "Hi"}}, Tools: []json.RawMessage{tool}},
			"<|im_start|>system\nS\n\nYou can call these functions:\n<tools>\n" + string(tool) + "\n</tools>\n\nTo call one, answer with a JSON object in these tags:\n<tool_call>\n{\"name\": NAME, \"arguments\": OBJECT}\n</tool_call><|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"},
		{"deepseek", Prompt{Messages: []Message{{Role: "user", Content: "Hi"}, {Role: "assistant", ToolCalls: []ToolCall{{Name: "now", Arguments: json.RawMessage(`{"a":1}`)}}}}},
			"<BOS><｜User｜>Hi<｜Assistant｜><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{\"a\":1}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"},
	} {
		before, _ := json.Marshal(c.p.Messages)
		got, err := readTemplate(t, c.template).Render(c.p)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n got %q\nwant %q", c.template, err, got, c.want)
		}
		if after, _ := json.Marshal(c.p.Messages); string(after) != string(before) {
			t.Errorf("%s: the caller's messages changed", c.template)
		}
	}
}

func TestFallback(t *testing.T) {
	tpl, err := NewTemplate(" \n", "", "")
	if err != nil {
		t.Fatal(err)
	}
	if !tpl.Fallback() || readTemplate(t, "chatml").Fallback() {
		t.Error("Fallback is wrong")
	}
	for _, c := range []struct {
		p    Prompt
		want string
	}{
		{Prompt{Messages: []Message{{Role: "system", Content: "S"}, {Role: "user", Content: "Hi"}}, AddGenerationPrompt: true},
			"<|im_start|>system\nS<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"},
		{Prompt{Messages: []Message{{Role: "user", Content: "Hi"}, {Role: "assistant", Content: "Ho"}}}, "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHo<|im_end|>\n"},
		{Prompt{AddGenerationPrompt: true}, "<|im_start|>assistant\n"},
		{Prompt{Messages: []Message{{Role: "user", Content: "Hi"}, {Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage(`{"b":1,"a":2}`)}}}, {Role: "tool", Content: "5"}}},
			"<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": 2}}\n</tool_call><|im_end|>\n<|im_start|>user\n<tool_response>\n5\n</tool_response><|im_end|>\n"},
	} {
		got, err := tpl.Render(c.p)
		if err != nil || got != c.want {
			t.Errorf("%v\n got %q\nwant %q", err, got, c.want)
		}
	}
}

func TestTemplateErrors(t *testing.T) {
	for _, src := range []string{"{#", "{% if %}", "{{ x | nosuch }}", "{{ (", "{% for x in y %}"} {
		if _, err := NewTemplate(src, "", ""); err == nil || !strings.HasPrefix(err.Error(), "read chat template: line 1: ") {
			t.Errorf("%s: %v", src, err)
		}
	}
	for src, want := range map[string]string{
		"\n{{ messages[0].content + 1 }}":                 "render chat template: line 2: + cannot be applied to a str and a int",
		"{{ raise_exception('not like this') }}":          "the chat template refuses the conversation: not like this",
		"{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}": "render chat template: line 1: the template does too much",
	} {
		tpl, err := NewTemplate(src, "", "")
		if err != nil {
			t.Fatal(err)
		}
		_, err = tpl.Render(Prompt{Messages: []Message{{Role: "user", Content: "x"}}})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
	tpl, _ := NewTemplate("{{ tools }}", "", "")
	for _, p := range []Prompt{{Tools: []json.RawMessage{json.RawMessage(`{"a":`)}}, {Messages: []Message{{Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage(`{`)}}}}}} {
		if _, err := tpl.render(p, false); err == nil {
			t.Error("broken JSON is rendered")
		}
	}
}

func TestTemplateReplyOptions(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		template string
		thinking *bool
		want     ReplyOptions
	}{
		{"qwen3", nil, ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>"}},
		{"qwen3", &no, ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>"}},
		{"deepseek", &yes, ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>", Thinking: true, BareJSON: true}},
		{"llama3", nil, ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>", BareJSON: true}},
		{"mistral", nil, ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>"}},
	} {
		tpl := readTemplate(t, c.template)
		text, err := tpl.Render(Prompt{Messages: []Message{{Role: "user", Content: "Hi"}}, AddGenerationPrompt: true, Thinking: c.thinking})
		if err != nil {
			t.Fatal(err)
		}
		got := tpl.ReplyOptions(text, nil)
		if got.ThinkOpen != c.want.ThinkOpen || got.ThinkClose != c.want.ThinkClose || got.Thinking != c.want.Thinking || got.BareJSON != c.want.BareJSON {
			t.Errorf("%s: got %+v, want %+v", c.template, got, c.want)
		}
	}
	if tpl := readTemplate(t, "qwen3"); !tpl.Uses("enable_thinking") || tpl.Uses("reasoning_effort") {
		t.Error("Uses is wrong")
	}
}
