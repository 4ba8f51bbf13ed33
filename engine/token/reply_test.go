package token

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// tools of the tests: one with typed parameters, one without.
var testTools = []json.RawMessage{
	json.RawMessage(`{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"},"metric":{"type":"boolean"},"opts":{"type":"object"}}}}}`),
	json.RawMessage(`{"type":"function","function":{"name":"now"}}`),
}

// said is a reply in short form: parts of one kind joined, calls as name(arguments).
func said(parts []Part) string {
	var b strings.Builder
	last := PartKind(-1)
	for _, p := range parts {
		switch {
		case p.Kind == Call:
			fmt.Fprintf(&b, "|call %s(%s)", p.Call.Name, p.Call.Arguments)
		case p.Kind == last:
			b.WriteString(p.Text)
		case p.Kind == Reasoning:
			b.WriteString("|think " + p.Text)
		default:
			b.WriteString("|say " + p.Text)
		}
		last = p.Kind
	}
	return b.String()
}

func TestReply(t *testing.T) {
	think := ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>"}
	inside := ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>", Thinking: true}
	tools := ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>", Tools: testTools}
	bare := ReplyOptions{Tools: testTools, BareJSON: true}
	harmony := ReplyOptions{Harmony: true, Tools: testTools}
	for _, c := range []struct {
		name string
		o    ReplyOptions
		text string
		want string
	}{
		{"plain", think, "Hello there.", "|say Hello there."},
		{"empty", think, "", ""},
		{"white space in front stays", think, "\n Hello\n", "|say \n Hello\n"},
		{"reasoning", think, "<think>\nHm, two.\n</think>\n\nTwo.", "|think Hm, two.|say Two."},
		{"empty reasoning", think, "<think>\n\n</think>\n\nTwo.", "|say Two."},
		{"inner breaks stay", think, "<think>a\n\nb</think>c\n\nd", "|think a\n\nb|say c\n\nd"},
		{"prompt opened it", inside, "Hm.\n</think>\nTwo.", "|think Hm.|say Two."},
		{"never closed", think, "<think>a < b and </thin", "|think a < b and </thin"},
		{"never closed, white space at the end", inside, "a \n", "|think a"},
		{"tag in the middle is text", think, "Write <think> first.", "|say Write <think> first."},
		{"half a tag is text", think, "<thin", "|say <thin"},
		{"second close is text", think, "<think>a</think>b</think>c", "|think a|say b</think>c"},
		{"closed again inside", inside, "</think>x", "|say x"},
		{"other tags", ReplyOptions{ThinkOpen: "[THINK]", ThinkClose: "[/THINK]"}, "[THINK]a[b[/THINK]c", "|think a[b|say c"},
		{"no tags", ReplyOptions{}, "<think>a</think>", "|say <think>a</think>"},

		{"hermes", tools, "<tool_call>\n{\"name\": \"weather\", \"arguments\": {\"city\": \"Köln\", \"days\": 2}}\n</tool_call>", `|call weather({"city": "Köln", "days": 2})`},
		{"two", tools, "Let me look.\n\n<tool_call>{\"name\":\"now\",\"arguments\":{}}</tool_call>\n<tool_call>\n{\"name\":\"weather\",\"arguments\":{\"city\":\"a\"}}\n</tool_call>\n",
			`|say Let me look.|call now({})|call weather({"city":"a"})`},
		{"text after", tools, "<tool_call>{\"name\":\"now\"}</tool_call>\nDone. ", `|call now({})|say Done. `},
		{"thinking first", tools, "<think>x</think>\n\n<tool_call>\n{\"name\":\"now\",\"arguments\":{}}\n</tool_call>", `|think x|call now({})`},
		{"call inside thinking is thought", tools, "<think><tool_call>{\"name\":\"now\"}</tool_call></think>ok", `|think <tool_call>{"name":"now"}</tool_call>|say ok`},
		{"closing tag in a string", tools, `<tool_call>{"name":"weather","arguments":{"city":"</tool_call> \" } {"}}</tool_call>`, `|call weather({"city":"</tool_call> \" } {"})`},
		{"no closing tag", tools, `<tool_call>{"name":"now","arguments":{}}`, `|call now({})`},
		{"arguments in a string", tools, `<tool_call>{"name":"weather","arguments":"{\"city\":\"x\"}"}</tool_call>`, `|call weather({"city":"x"})`},
		{"cut off", tools, `ok <tool_call>{"name":"weather","arguments":{"ci`, `|say ok <tool_call>{"name":"weather","arguments":{"ci`},
		{"broken", tools, `<tool_call>{"name":weather}</tool_call>`, `|say <tool_call>{"name":weather}</tool_call>`},
		{"prose about the tag", tools, "Models write <tool_call> around <function=x> calls.", "|say Models write <tool_call> around <function=x> calls."},
		{"without tools it is text", think, `<tool_call>{"name":"now"}</tool_call>`, `|say <tool_call>{"name":"now"}</tool_call>`},

		{"coder", tools, "<tool_call>\n<function=weather>\n<parameter=city>\nNew York\n</parameter>\n<parameter=days>\n3\n</parameter>\n<parameter=metric>\nTrue\n</parameter>\n<parameter=opts>\n{\"a\": [1]}\n</parameter>\n</function>\n</tool_call>",
			`|call weather({"city":"New York","days":3,"metric":true,"opts":{"a": [1]}})`},
		{"coder, a number for a string", tools, "<tool_call>\n<function=weather>\n<parameter=city>\n12\n</parameter>\n</function>\n</tool_call>", `|call weather({"city":"12"})`},
		{"coder, code with tags in it", tools, "<tool_call>\n<function=weather>\n<parameter=city>\nif a < b:\n    <x></parameter> y</function>\n\n</parameter>\n</function>\n</tool_call>",
			`|call weather({"city":"if a < b:\n    <x></parameter> y</function>\n"})`},
		{"coder, no parameters", tools, "<tool_call>\n<function=now>\n</function>\n</tool_call>", `|call now({})`},
		{"coder, bare", tools, "Sure.\n<function=now>\n</function>\n</tool_call>", "|say Sure.|call now({})|say </tool_call>"},
		{"coder, unknown tool", tools, "<function=other><parameter=n>5</parameter><parameter=s>five</parameter></function>", `|call other({"n":5,"s":"five"})`},

		{"glm", tools, "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Bonn</arg_value>\n<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>", `|call weather({"city":"Bonn","days":2})`},
		{"glm, no arguments", tools, "<tool_call>now\n</tool_call>", `|call now({})`},

		{"mistral array", tools, `[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "a]"}}, {"name":"now","arguments":{},"id":"abc"}]`, `|call weather({"city": "a]"})|call now({})`},
		{"mistral name", tools, `[TOOL_CALLS]weather[ARGS]{"city": "x"}[TOOL_CALLS]now[CALL_ID]123456789[ARGS]{}`, `|call weather({"city": "x"})|call now({})`},
		{"mistral, name and braces", tools, `[TOOL_CALLS]now{}`, `|call now({})`},
		{"mistral, broken", tools, `[TOOL_CALLS] what is {"a":1}`, `|say [TOOL_CALLS] what is {"a":1}`},

		{"llama 3", bare, `{"name": "weather", "parameters": {"city": "x"}}`, `|call weather({"city": "x"})`},
		{"llama 3, two", bare, `{"name": "now", "parameters": {}}; {"type":"function","name": "weather", "parameters": {"days": 1}}`, `|call now({})|call weather({"days": 1})`},
		{"llama 3, nested", bare, `{"type": "function", "function": {"name": "now", "parameters": {}}}`, `|call now({})`},
		{"python tag", bare, `<|python_tag|>{"name": "now", "parameters": {}}`, `|call now({})`},
		{"python code", bare, `<|python_tag|>print(1)`, `|say <|python_tag|>print(1)`},
		{"a JSON answer", bare, `{"city": "Bonn"}`, `|say {"city": "Bonn"}`},
		{"a JSON answer with a name", bare, `{"name": "Bonn", "parameters": {}}`, `|say {"name": "Bonn", "parameters": {}}`},
		{"JSON without arguments", bare, `{"name": "now"}`, `|say {"name": "now"}`},
		{"an array", bare, `[1, 2]`, `|say [1, 2]`},
		{"an array of calls", bare, `[{"name":"now","parameters":{}}]`, `|call now({})`},

		{"deepseek v3", tools, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>weather\n```json\n{\"city\":\"x\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
			`|call weather({"city":"x"})|call now({})`},
		{"deepseek v3.1", tools, `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`, `|call now({})`},
		{"harmony", harmony, "<|channel|>analysis<|message|>Hm <b>.<|end|><|start|>assistant<|channel|>final<|message|>Two < three.<|return|>", "|think Hm <b>.|say Two < three."},
		{"harmony, call", harmony, "<|channel|>analysis<|message|>x<|end|><|start|>assistant<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{\"city\":\"a\"}<|call|>", `|think x|call weather({"city":"a"})`},
		{"harmony, recipient first", harmony, " to=functions.now<|channel|>commentary json<|message|>{}", `|call now({})`},
		{"harmony, recipient in the role", harmony, "<|start|>assistant to=functions.now<|channel|>commentary<|message|><|call|>", `|call now({})`},
		{"harmony, preamble", harmony, "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>final<|message|>ok", `|say I look.ok`},
		{"harmony, cut off", harmony, "<|channel|>analysis<|message|>Hm <|en", `|think Hm <|en`},
		{"harmony, cut call", harmony, "<|channel|>commentary to=functions.now<|message|>{\"a\":", `|say {"a":`},
		{"harmony, no end between", harmony, "<|channel|>analysis<|message|>a<|channel|>final<|message|>b", `|think a|say b`},
		{"harmony, plain text", harmony, "Hello <|x", `|say Hello <|x`},
		{"harmony, cut header", harmony, "<|channel|>fin", `|say <|channel|>fin`},
		{"harmony, without tools", ReplyOptions{Harmony: true}, "<|channel|>commentary to=functions.now<|message|>{}", `|say {}`},
		{"granite", tools, `<|tool_call|>[{"name":"now","arguments":{}}]`, `|call now({})`},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := NewReply(c.o)
			parts := append(whole.Push(c.text), whole.Flush()...)
			if got := said(parts); got != c.want {
				t.Errorf("whole:\n got %s\nwant %s", got, c.want)
			}
			// Byte by byte, and in characters, the same comes out, and no tag in pieces.
			for _, size := range []int{1, 2, 3, 7} {
				r := NewReply(c.o)
				var parts []Part
				for i := 0; i < len(c.text); i += size {
					parts = append(parts, r.Push(c.text[i:min(i+size, len(c.text))])...)
				}
				parts = append(parts, r.Flush()...)
				if got := said(parts); got != c.want {
					t.Errorf("in pieces of %d:\n got %s\nwant %s", size, got, c.want)
				}
				for _, p := range parts {
					if p.Kind == Call && len(p.Call.ID) < 3 {
						t.Errorf("id %q", p.Call.ID)
					}
				}
			}
		})
	}
}

// TestReplyStreams makes sure that text is not held longer than it must be.
func TestReplyStreams(t *testing.T) {
	r := NewReply(ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>", Tools: testTools, BareJSON: true})
	steps := []struct{ push, want string }{
		{"<", ""}, {"think>", ""}, {"\n", ""}, {"I", "|think I"}, {" am", "|think  am"}, {" <", ""}, {"b", "|think  <b"}, {".\n\n", "|think ."}, {"</thi", ""}, {"nk>", ""},
		{"\n\n", ""}, {"Yes", "|say Yes"}, {" 1 <", "|say  1"}, {" 2", "|say  < 2"}, {"\n", ""}, {"<tool", ""}, {"s>", "|say \n<tools>"},
		{"{", "|say {"}, {" ", ""}, {"<tool_call>", ""}, {`{"name":"now"}`, ""}, {"\n</tool", ""}, {"_call>", "|call now({})"}, {" x", "|say x"},
	}
	for i, s := range steps {
		if got := said(r.Push(s.push)); got != s.want {
			t.Errorf("step %d, %q: got %q, want %q", i, s.push, got, s.want)
		}
	}
	if got := said(r.Flush()); got != "" || r.Calls() != 1 || r.InReasoning() {
		t.Errorf("at the end %q, %d calls", got, r.Calls())
	}
	// A JSON answer flows as soon as its first key tells it apart.
	r = NewReply(ReplyOptions{Tools: testTools, BareJSON: true})
	if got := said(r.Push(`{"na`)) + said(r.Push(`tion": "`)); got != `|say {"nation": "` {
		t.Errorf("a JSON answer is held: %q", got)
	}
}

func TestParseReply(t *testing.T) {
	o := ReplyOptions{ThinkOpen: "<think>", ThinkClose: "</think>", Tools: testTools, NewID: func() string { return "id" }}
	got := ParseReply("<think>a</think>\nb <tool_call>{\"name\":\"now\"}</tool_call>", o)
	want := Message{Role: "assistant", Reasoning: "a", Content: "b", ToolCalls: []ToolCall{{ID: "id", Name: "now", Arguments: json.RawMessage("{}")}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

// TestReplyIsLinear feeds a long call one character at a time.
func TestReplyIsLinear(t *testing.T) {
	o := ReplyOptions{Tools: testTools}
	for _, text := range []string{
		`<tool_call>{"name":"weather","arguments":{"city":"` + strings.Repeat("x\\n", 1<<17) + `"}}</tool_call>`,
		"<function=weather><parameter=city>" + strings.Repeat("</x ", 1<<17) + "</parameter></function>",
	} {
		r := NewReply(o)
		var parts []Part
		for i := 0; i < len(text); i += 4 {
			parts = append(parts, r.Push(text[i:min(i+4, len(text))])...)
		}
		if parts = append(parts, r.Flush()...); len(parts) != 1 || parts[0].Kind != Call {
			t.Errorf("%d parts", len(parts))
		}
	}
}

func FuzzReply(f *testing.F) {
	f.Add("<think>a</think>b<tool_call>{\"name\":\"now\"}</tool_call>", uint8(3), uint8(0))
	f.Add("<|channel|>analysis<|message|>x<|end|><|start|>assistant to=functions.now<|message|>{}<|call|>", uint8(1), uint8(16))
	f.Add("[TOOL_CALLS]now[ARGS]{}", uint8(1), uint8(1))
	f.Add("<function=x><parameter=y>1</parameter></function>", uint8(2), uint8(2))
	f.Add("<tool_call>n<arg_key>k</arg_key><arg_value>v</arg_value></tool_call>", uint8(5), uint8(7))
	f.Fuzz(func(t *testing.T, text string, size, flags uint8) {
		o := ReplyOptions{BareJSON: flags&2 != 0, Thinking: flags&4 != 0, NewID: func() string { return "id" }}
		if flags&1 != 0 {
			o.ThinkOpen, o.ThinkClose = "<think>", "</think>"
		}
		if flags&8 == 0 {
			o.Tools = testTools
		}
		o.Harmony = flags&16 != 0
		whole := NewReply(o)
		want := said(append(whole.Push(text), whole.Flush()...))
		r := NewReply(o)
		var parts []Part
		step := int(size)%9 + 1
		for i := 0; i < len(text); i += step {
			parts = append(parts, r.Push(text[i:min(i+step, len(text))])...)
		}
		parts = append(parts, r.Flush()...)
		if got := said(parts); got != want {
			t.Errorf("%q in pieces of %d:\n got %q\nwant %q", text, step, got, want)
		}
		for _, p := range parts {
			if p.Kind == Call && !json.Valid(p.Call.Arguments) {
				t.Errorf("arguments %q", p.Call.Arguments)
			}
		}
	})
}
