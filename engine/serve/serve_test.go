package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"outcrop/assets"
	"outcrop/engine"
	"outcrop/engine/token"
	"outcrop/engine/wire"
)

// scripted is a session that says what it was told to.
type scripted struct {
	mu      sync.Mutex
	words   []string // one a step
	reason  string
	err     error
	seen    []engine.Request
	phase   string
	hold    chan struct{} // when set, each call waits for it before its first step, or for its context
	entered chan struct{} // when set, gets one value a call
	endless bool
	ended   []error
}

func (s *scripted) Generate(ctx context.Context, r engine.Request, emit func(engine.Step) error) (engine.Result, error) {
	s.mu.Lock()
	s.seen = append(s.seen, r)
	s.phase = "prefill"
	s.mu.Unlock()
	defer func() { s.mu.Lock(); s.phase = "idle"; s.mu.Unlock() }()
	res := engine.Result{Reason: "cancelled", Prompt: len(r.Prompt), Reused: 1, PromptTime: time.Millisecond, DecodeTime: time.Millisecond}
	leave := func(err error) (engine.Result, error) {
		s.mu.Lock()
		s.ended = append(s.ended, err)
		s.mu.Unlock()
		return res, err
	}
	if s.entered != nil {
		s.entered <- struct{}{}
	}
	if s.hold != nil {
		select {
		case <-s.hold:
		case <-ctx.Done():
			return leave(ctx.Err())
		}
	}
	for i := 0; s.endless || i < len(s.words); i++ {
		if err := ctx.Err(); err != nil {
			return leave(err)
		}
		if r.MaxTokens > 0 && i == r.MaxTokens {
			res.Reason = "length"
			return leave(nil)
		}
		st := engine.Step{ID: token.ID(100 + i), Text: s.words[i%len(s.words)], LogProb: -0.5}
		if r.LogProbs > 0 {
			st.Top = []engine.TokenProb{{ID: 100, LogProb: -0.5}, {ID: 101, LogProb: -1.5}}
		}
		if err := emit(st); err != nil {
			return leave(err)
		}
		res.Generated++
	}
	res.Reason = s.reason
	if res.Reason == "" {
		res.Reason = "stop"
	}
	return leave(s.err)
}

func (s *scripted) sample() engine.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.phase
	if p == "" {
		p = "idle"
	}
	return engine.Sample{Phase: p, ContextSize: 64, PrefillDone: 3, PrefillTotal: 7, Weights: 1000, Kernel: "generic", Threads: 2}
}

var pack = sync.OnceValues(func() (*engine.Pack, error) {
	dir, err := os.MkdirTemp("", "outcrop-serve")
	if err != nil {
		return nil, err
	}
	p := filepath.Join(dir, assets.StarterName)
	if err := os.WriteFile(p, assets.Starter, 0o600); err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) // the mapping stays
	return engine.OpenPack(p)
})

// backend is the starter's vocabulary with a scripted session.
func backend(t *testing.T, s *scripted) *Backend {
	t.Helper()
	p, err := pack()
	if err != nil {
		t.Fatal(err)
	}
	tok, err := p.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	tpl, err := p.Template()
	if err != nil {
		t.Fatal(err)
	}
	return &Backend{Name: "test", Tokenizer: tok, Template: tpl, Session: s, Telemetry: s.sample,
		Info: wire.ModelInfo{Arch: "qwen35moe", Context: 64, ContextTrain: 2048}, Defaults: Defaults{Temperature: 0.8, TopP: 0.95, TopK: 40},
		Loaded: time.Unix(1, 0)}
}

func running(t *testing.T, s *scripted, o Options) (*Server, *httptest.Server) {
	t.Helper()
	srv := New(o)
	srv.Ready(backend(t, s))
	return srv, httpTest(t, srv)
}

func httpTest(t *testing.T, srv *Server) *httptest.Server {
	h := httptest.NewServer(srv.Handler())
	t.Cleanup(func() {
		srv.stopOnce.Do(func() { close(srv.stopping) })
		srv.endAnswers()
		h.Close()
	})
	return h
}

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

const hi = `"messages":[{"role":"user","content":"Hi"}]`

func TestChat(t *testing.T) {
	s := &scripted{words: []string{"Hel", "lo", "!"}}
	_, h := running(t, s, Options{Version: "1.2"})
	status, body := post(t, h.URL+"/v1/chat/completions", `{`+hi+`,"temperature":0,"seed":7,"stop":"END","max_completion_tokens":9,"return_tokens":true}`)
	var r wire.ChatResponse
	if err := json.Unmarshal([]byte(body), &r); err != nil || status != 200 {
		t.Fatalf("got %d %s, %v", status, body, err)
	}
	c := r.Choices[0]
	if c.Message.Content != "Hello!" || c.Message.Role != "assistant" || c.FinishReason != "stop" || r.Object != "chat.completion" || r.Model != "test" || r.SystemFingerprint != "outcrop-1.2" {
		t.Errorf("got %s", body)
	}
	if r.Usage.CompletionTokens != 3 || r.Usage.PromptTokens == 0 || r.Usage.TotalTokens != r.Usage.PromptTokens+3 || r.Usage.PromptTokensDetails.CachedTokens != 1 {
		t.Errorf("usage: got %+v", r.Usage)
	}
	if len(r.Outcrop.IDs) != 3 || len(r.Outcrop.PromptIDs) != r.Usage.PromptTokens || r.Outcrop.Timings.DecodeTokS == 0 || r.Outcrop.Timings.ContextSize != 64 {
		t.Errorf("extra: got %+v", r.Outcrop)
	}
	if !strings.Contains(body, `"logprobs":null`) || !strings.Contains(body, `"prompt_tokens_details"`) {
		t.Errorf("fields clients look for are missing: %s", body)
	}
	q := s.seen[0]
	if q.Sampling.Temperature != 0 || q.Sampling.Seed != 7 || q.MaxTokens != 9 || q.Stop[0] != "END" || q.Sampling.TopK != 40 {
		t.Errorf("the engine was asked for %+v", q)
	}
	tok := backend(t, s).Tokenizer
	if got := string(tok.Decode(q.Prompt, true)); got != "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n" {
		t.Errorf("prompt %q", got)
	}
}

// events reads a whole stream.
func events(t *testing.T, r io.Reader) (data []string, comments int) {
	t.Helper()
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		switch l := sc.Text(); {
		case strings.HasPrefix(l, "data: "):
			data = append(data, l[6:])
		case strings.HasPrefix(l, ":"):
			comments++
		}
	}
	return data, comments
}

// T52, T59: role first, usage null in all chunks but one more with no choices, then [DONE].
func TestChatStream(t *testing.T) {
	_, h := running(t, &scripted{words: []string{"Hel", "", "lo"}, reason: "length"}, Options{})
	resp, err := http.Post(h.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{`+hi+`,"stream":true,"stream_options":{"include_usage":true}}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if ct := resp.Header.Get("Content-Type"); ct != "text/event-stream" {
		t.Errorf("content type %q", ct)
	}
	data, _ := events(t, resp.Body)
	if len(data) != 6 || data[5] != "[DONE]" {
		t.Fatalf("got %d events: %q", len(data), data)
	}
	text, finish := "", ""
	for i, d := range data[:5] {
		var c wire.ChatChunk
		if err := json.Unmarshal([]byte(d), &c); err != nil {
			t.Fatal(err)
		}
		if i < 4 && !strings.Contains(d, `"usage":null`) {
			t.Errorf("event %d has no usage:null: %s", i, d)
		}
		if i == 0 && !strings.Contains(d, `"delta":{"role":"assistant","content":""}`) {
			t.Errorf("first delta: %s", d)
		}
		if i == 4 {
			if len(c.Choices) != 0 || c.Usage == nil || c.Usage.CompletionTokens != 3 || !strings.Contains(d, `"choices":[]`) {
				t.Errorf("usage event: %s", d)
			}
			continue
		}
		if c.Choices[0].Delta.Content != nil {
			text += *c.Choices[0].Delta.Content
		}
		if f := c.Choices[0].FinishReason; f != nil {
			finish = *f
			if c.Outcrop == nil || c.Outcrop.Finish != "length" || c.Outcrop.Timings == nil {
				t.Errorf("last chunk: %s", d)
			}
		}
	}
	if text != "Hello" || finish != "length" {
		t.Errorf("got %q, %q", text, finish)
	}
}

func TestBadRequests(t *testing.T) {
	s := &scripted{words: []string{"x"}}
	_, h := running(t, s, Options{MaxBody: 64 << 10})
	long := `"messages":[{"role":"user","content":"` + strings.Repeat("word ", 100) + `"}]`
	for _, c := range []struct {
		name, path, body, code, want string
		status                       int
	}{
		{"not JSON", "chat/completions", `{"messages":`, "invalid_json", "not valid JSON", 400},
		{"not an object", "chat/completions", `[]`, "invalid_json", "object", 400},
		{"no messages", "chat/completions", `{"messages":[]}`, "invalid_value", "messages is empty", 400},
		{"role", "chat/completions", `{"messages":[{"role":"wizard","content":"x"}]}`, "invalid_value", "wizard", 400},
		{"type", "chat/completions", `{` + hi + `,"temperature":"hot"}`, "invalid_value", "temperature: got string, want number", 400},
		{"fraction", "chat/completions", `{` + hi + `,"max_tokens":1.5}`, "invalid_value", "max_tokens: got number 1.5, want whole number", 400},
		{"messages", "chat/completions", `{"messages":5}`, "invalid_value", "messages: got number, want list", 400},
		{"message", "chat/completions", `{"messages":[5]}`, "invalid_value", "messages: got number, want object", 400},
		{"content", "chat/completions", `{"messages":[{"role":"user","content":5}]}`, "invalid_json", "a string, null or a list", 400},
		{"stop", "chat/completions", `{` + hi + `,"stop":[5]}`, "invalid_json", "stop must be", 400},
		{"two bodies", "chat/completions", `{` + hi + `} {}`, "invalid_json", "something follows", 400},
		{"temperature", "chat/completions", `{` + hi + `,"temperature":-1}`, "invalid_value", "temperature is -1", 400},
		{"top_p", "chat/completions", `{` + hi + `,"top_p":2}`, "invalid_value", "top_p is 2", 400},
		{"max_tokens", "chat/completions", `{` + hi + `,"max_tokens":0}`, "invalid_value", "max_tokens is 0", 400},
		{"n", "chat/completions", `{` + hi + `,"n":2}`, "unsupported_parameter", "one answer", 400},
		{"picture", "chat/completions", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]}`, "unsupported_parameter", "image_url", 400},
		{"schema", "chat/completions", `{` + hi + `,"response_format":{"type":"json_schema","json_schema":{}}}`, "unsupported_parameter", "cannot be constrained", 400},
		{"grammar", "chat/completions", `{` + hi + `,"grammar":"root ::= x"}`, "unsupported_parameter", "grammar", 400},
		{"forced tool", "chat/completions", `{` + hi + `,"tool_choice":"required"}`, "unsupported_parameter", "tool_choice", 400},
		{"tool", "chat/completions", `{` + hi + `,"tools":[{"type":"function"}]}`, "invalid_value", "tool must be", 400},
		{"bias", "chat/completions", `{` + hi + `,"logit_bias":{"99999999":1}}`, "invalid_value", "token id below", 400},
		{"top_logprobs alone", "chat/completions", `{` + hi + `,"top_logprobs":3}`, "invalid_value", "logprobs", 400},
		{"many logprobs", "chat/completions", `{` + hi + `,"logprobs":true,"top_logprobs":30}`, "invalid_value", "0 to 20", 400},
		{"model", "chat/completions", `{` + hi + `,"model":"gpt-9"}`, "model_not_found", `"test" loaded`, 404},
		{"too long", "chat/completions", `{` + long + `}`, "context_length_exceeded", "holds 64", 400},
		{"too long, stream", "chat/completions", `{` + long + `,"stream":true}`, "context_length_exceeded", "holds 64", 400},
		{"too large", "chat/completions", `{"x":"` + strings.Repeat("a", 70<<10) + `"}`, "request_too_large", "larger than", 413},
		{"two prompts", "completions", `{"prompt":["a","b"]}`, "invalid_json", "one string", 400},
		{"id", "completions", `{"prompt":[1,99999999]}`, "invalid_value", "prompt token 1", 400},
		{"empty", "completions", `{"prompt":""}`, "invalid_value", "no tokens", 400},
		{"suffix", "completions", `{"prompt":"a","suffix":"b"}`, "unsupported_parameter", "suffix", 400},
		{"best_of", "completions", `{"prompt":"a","best_of":3}`, "unsupported_parameter", "best_of", 400},
		{"nowhere", "images", `{}`, "not_found", "/v1/models", 404},
	} {
		status, body := post(t, h.URL+"/v1/"+c.path, c.body)
		var e wire.ErrorBody
		if err := json.Unmarshal([]byte(body), &e); err != nil || e.Error == nil {
			t.Errorf("%s: got %d %s", c.name, status, body)
			continue
		}
		if status != c.status || e.Error.Code != c.code || !strings.Contains(e.Error.Message, c.want) || e.Error.Type == "" {
			t.Errorf("%s: got %d %s", c.name, status, body)
		}
		if c.code == "context_length_exceeded" && (e.Error.PromptTokens < 64 || e.Error.ContextSize != 64 || e.Error.Next == "") {
			t.Errorf("%s: no numbers in %s", c.name, body)
		}
	}
	if len(s.seen) != 0 {
		t.Errorf("%d bad requests reached the engine", len(s.seen))
	}
}

func TestEngineErrors(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{engine.ErrNotFinite, 500, "not_finite"},
		{engine.ErrRepeating, 500, "repeating"},
		{fmt.Errorf("a layer broke"), 500, "engine_error"},
	} {
		s := &scripted{words: []string{"so ", "far"}, reason: "error", err: c.err}
		_, h := running(t, s, Options{})
		status, body := post(t, h.URL+"/v1/chat/completions", `{`+hi+`}`)
		if status != c.status || !strings.Contains(body, `"code":"`+c.code+`"`) {
			t.Errorf("%v: got %d %s", c.err, status, body)
		}
		status, body = post(t, h.URL+"/v1/chat/completions", `{`+hi+`,"stream":true}`)
		if status != 200 || !strings.Contains(body, `"content":"far"`) || !strings.Contains(body, `"code":"`+c.code+`"`) || strings.Contains(body, "[DONE]") {
			t.Errorf("%v: stream: got %d %s", c.err, status, body)
		}
	}
	// A context that fills up is an answer with a reason, not a failure (T64, T65).
	s := &scripted{words: []string{"so ", "far"}, reason: "context", err: fmt.Errorf("%w: 64 tokens", engine.ErrContextFull)}
	_, h := running(t, s, Options{})
	status, body := post(t, h.URL+"/v1/chat/completions", `{`+hi+`}`)
	if status != 200 || !strings.Contains(body, `"finish_reason":"length"`) || !strings.Contains(body, `"finish":"context"`) || !strings.Contains(body, `"notes":["the context is full`) {
		t.Errorf("got %d %s", status, body)
	}
}

func TestSamplingDefaults(t *testing.T) {
	s := &scripted{words: []string{"x"}}
	_, h := running(t, s, Options{})
	for _, body := range []string{
		`{` + hi + `}`,
		`{` + hi + `,"seed":5}`, // T61
		`{` + hi + `,"top_p":0,"top_k":-1,"logit_bias":{"5":-100},"repetition_penalty":1.2,"max_tokens":-1,"stop":null,"response_format":{"type":"text"},"n":1}`,
	} {
		if status, b := post(t, h.URL+"/v1/chat/completions", body); status != 200 {
			t.Fatalf("%s: %d %s", body, status, b)
		}
	}
	a, b, c := s.seen[0].Sampling, s.seen[1].Sampling, s.seen[2].Sampling
	if a.Temperature != 0.8 || a.TopP != 0.95 || a.TopK != 40 {
		t.Errorf("defaults: %+v", a)
	}
	if b.Seed != 5 || b.Temperature != 0.8 {
		t.Errorf("a seed changed the temperature: %+v", b)
	}
	if a.Seed == s.seen[2].Sampling.Seed {
		t.Errorf("no seed twice gave the same one")
	}
	if c.TopP <= 0 || c.TopP > 1e-30 || c.TopK != 0 || c.Repeat != 1.2 || c.Bias[5] > -1e38 || s.seen[2].MaxTokens != 0 {
		t.Errorf("got %+v", c)
	}
}

func TestCompletions(t *testing.T) {
	s := &scripted{words: []string{" mat", "."}}
	_, h := running(t, s, Options{})
	status, body := post(t, h.URL+"/v1/completions", `{"prompt":"The cat sat on the","echo":true,"logprobs":2}`)
	var r wire.CompletionResponse
	if err := json.Unmarshal([]byte(body), &r); err != nil || status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	c := r.Choices[0]
	if c.Text != "The cat sat on the mat." || *c.FinishReason != "stop" || r.Usage.CompletionTokens != 2 || len(c.LogProbs.Tokens) != 2 || len(c.LogProbs.TopLogProbs[0]) != 2 {
		t.Errorf("got %s", body)
	}
	_, body = post(t, h.URL+"/v1/completions", `{"prompt":[1,2,3],"stream":true,"stream_options":{"include_usage":true}}`)
	data, _ := events(t, strings.NewReader(body))
	if len(data) != 5 || !strings.Contains(data[0], `" mat"`) || !strings.Contains(data[2], `"finish_reason":"stop"`) || !strings.Contains(data[3], `"total_tokens":5`) || data[4] != "[DONE]" {
		t.Errorf("got %q", data)
	}
	if len(s.seen[1].Prompt) != 3 {
		t.Errorf("prompt ids: got %v", s.seen[1].Prompt)
	}
}

func TestLogProbs(t *testing.T) {
	_, h := running(t, &scripted{words: []string{"a", "b"}}, Options{})
	_, body := post(t, h.URL+"/v1/chat/completions", `{`+hi+`,"logprobs":true,"top_logprobs":2}`)
	var r wire.ChatResponse
	json.Unmarshal([]byte(body), &r)
	lp := r.Choices[0].LogProbs
	if lp == nil || len(lp.Content) != 2 || lp.Content[0].LogProb != -0.5 || len(lp.Content[0].Top) != 2 || lp.Content[0].ID != 100 || len(lp.Content[0].Bytes) == 0 {
		t.Errorf("got %s", body)
	}
	_, body = post(t, h.URL+"/v1/chat/completions", `{`+hi+`,"logprobs":true,"stream":true}`)
	if n := strings.Count(body, `"logprob":-0.5`); n != 2 {
		t.Errorf("stream: %d log probabilities in %s", n, body)
	}
}

func TestToolsAndThinking(t *testing.T) {
	s := &scripted{words: []string{"Paris", " is", " warm.</thi", "nk>\n\nI look.\n<tool_call>\n{\"name\": \"weather\", \"argu", "ments\": {\"city\": \"Paris\"}}\n</tool_call>"}}
	srv, h := running(t, s, Options{})
	tpl, err := token.NewTemplate("{% if tools %}{% for t in tools %}{{ t | tojson }}{% endfor %}<tool_call>{% endif %}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>\n{% endif %}{# </think> enable_thinking #}", "", "<|im_end|>")
	if err != nil {
		t.Fatal(err)
	}
	srv.backend.Template = tpl
	srv.backend.Info.Context = 2048
	tools := `,"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}}]`
	status, body := post(t, h.URL+"/v1/chat/completions", `{`+hi+tools+`}`)
	var r wire.ChatResponse
	if err := json.Unmarshal([]byte(body), &r); err != nil || status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	m := r.Choices[0].Message
	if m.ReasoningContent != "Paris is warm." || strings.TrimSpace(string(m.Content)) != "I look." || len(m.ToolCalls) != 1 || r.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("got %s", body)
	}
	if c := m.ToolCalls[0]; c.Function.Name != "weather" || !strings.Contains(c.Function.Arguments, "Paris") || c.ID == "" || c.Type != "function" || c.Index != nil {
		t.Errorf("got %s", body)
	}
	_, body = post(t, h.URL+"/v1/chat/completions", `{`+hi+tools+`,"stream":true}`)
	if !strings.Contains(body, `"reasoning_content":"Paris"`) || !strings.Contains(body, `"finish_reason":"tool_calls"`) || !strings.Contains(body, `"tool_calls":[{"index":0,`) {
		t.Errorf("stream: %s", body)
	}
	// Without tools nothing is taken for a call, and tool_choice none means without.
	_, body = post(t, h.URL+"/v1/chat/completions", `{`+hi+tools+`,"tool_choice":"none"}`)
	if !strings.Contains(body, `\u003ctool_call\u003e`) || strings.Contains(body, `"tool_calls":[`) {
		t.Errorf("none: %s", body)
	}
	// The result goes back as a turn.
	status, body = post(t, h.URL+"/v1/chat/completions", `{"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"weather","arguments":"{\"city\": \"Par"}}]},{"role":"tool","tool_call_id":"1","content":"22 C"}]`+tools+`}`)
	if status != 200 {
		t.Errorf("a cut call cannot be sent back: %d %s", status, body)
	}
}

func TestTemplateError(t *testing.T) {
	srv, h := running(t, &scripted{words: []string{"x"}}, Options{})
	tpl, err := token.NewTemplate("{{ raise_exception('roles must alternate') }}", "", "")
	if err != nil {
		t.Fatal(err)
	}
	srv.backend.Template = tpl
	status, body := post(t, h.URL+"/v1/chat/completions", `{`+hi+`}`) // T40
	if status != 400 || !strings.Contains(body, "template_error") || !strings.Contains(body, "roles must alternate") {
		t.Errorf("got %d %s", status, body)
	}
}

func TestModelsHealthTokens(t *testing.T) {
	srv, h := running(t, &scripted{}, Options{})
	get := func(path string) (int, string) {
		resp, err := http.Get(h.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b)
	}
	for path, want := range map[string]string{
		"/v1/models":        `"id":"test","object":"model"`,
		"/v1/models/test":   `"context":64`,
		"/v1/models/other":  "model_not_found",
		"/health":           `"status":"ok"`,
		"/telemetry?once=1": `"weights":1000`,
		"/nothing":          "not_found",
	} {
		if _, body := get(path); !strings.Contains(body, want) {
			t.Errorf("%s: got %s", path, body)
		}
	}
	_, body := post(t, h.URL+"/tokenize", `{"content":"Hello <|im_end|>","with_pieces":true}`)
	var tk wire.TokenizeResponse
	json.Unmarshal([]byte(body), &tk)
	if len(tk.Tokens) < 3 || len(tk.Pieces) != len(tk.Tokens) {
		t.Errorf("got %s", body)
	}
	_, body = post(t, h.URL+"/tokenize", `{"content":"<|im_end|>","parse_special":true}`)
	if !strings.Contains(body, "[4095]") {
		t.Errorf("special: got %s", body)
	}
	b, _ := json.Marshal(wire.DetokenizeRequest{Tokens: tk.Tokens})
	if _, body := post(t, h.URL+"/detokenize", string(b)); !strings.Contains(body, `Hello \u003c|im_end|\u003e`) {
		t.Errorf("got %s", body)
	}
	if status, _ := post(t, h.URL+"/detokenize", `{"tokens":[-1]}`); status != 400 {
		t.Errorf("a bad id: %d", status)
	}

	// What was read is all there is to read, once it is ready.
	part := New(Options{})
	part.Loading("reading weights", 90, 100)
	part.Ready(srv.backend)
	ph := httpTest(t, part)
	if resp, err := http.Get(ph.URL + "/health"); err != nil {
		t.Error(err)
	} else {
		b, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(b), `"done":100,"total":100`) {
			t.Errorf("ready: %s", b)
		}
	}

	// While it loads, and when that failed.
	loading := New(Options{})
	lh := httptest.NewServer(loading.Handler())
	defer lh.Close()
	h.URL = lh.URL
	loading.Loading("reading weights", 1, 2)
	if status, body := get("/health"); status != 503 || !strings.Contains(body, `"phase":"reading weights","done":1,"total":2`) {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := post(t, lh.URL+"/v1/chat/completions", `{`+hi+`}`); status != 503 || !strings.Contains(body, `"code":"loading"`) {
		t.Errorf("got %d %s", status, body)
	}
	loading.Failed(fmt.Errorf("no such layer"))
	if status, body := get("/health"); status != 503 || !strings.Contains(body, "no such layer") {
		t.Errorf("got %d %s", status, body)
	}
	loading.Ready(srv.backend)
	if status, _ := get("/health"); status != 503 {
		t.Error("a failed engine became ready")
	}
}

// The real engine behind the interface: known answers of the starter.
func TestStarterGolden(t *testing.T) {
	var golden struct {
		Prompts []struct {
			Messages     []wire.Message `json:"messages"`
			PromptIDs    []int32        `json:"prompt_ids"`
			IDs          []int32        `json:"ids"`
			AnswerTokens int            `json:"answer_tokens"`
		} `json:"prompts"`
	}
	if err := json.Unmarshal(assets.Golden, &golden); err != nil || len(golden.Prompts) == 0 {
		t.Fatal(err)
	}
	p := filepath.Join(t.TempDir(), assets.StarterName)
	if err := os.WriteFile(p, assets.Starter, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Load(context.Background(), Spec{Path: p, Name: "starter", Demo: true, Options: engine.Options{Threads: 1}})
	if err != nil {
		t.Fatal(err)
	}
	srv := New(Options{})
	srv.Ready(b)
	h := httptest.NewServer(srv.Handler())
	defer func() {
		h.Close()
		if err := srv.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	for _, g := range golden.Prompts[:3] {
		msgs, _ := json.Marshal(g.Messages)
		n := min(g.AnswerTokens, len(g.IDs), 24)
		_, body := post(t, h.URL+"/v1/chat/completions", fmt.Sprintf(`{"messages":%s,"temperature":0,"max_tokens":%d,"return_tokens":true}`, msgs, n))
		var r wire.ChatResponse
		if err := json.Unmarshal([]byte(body), &r); err != nil || r.Outcrop == nil {
			t.Fatalf("got %s", body)
		}
		if fmt.Sprint(r.Outcrop.PromptIDs) != fmt.Sprint(g.PromptIDs) {
			t.Errorf("prompt: got %v, want %v", r.Outcrop.PromptIDs, g.PromptIDs)
		}
		if fmt.Sprint(r.Outcrop.IDs) != fmt.Sprint(g.IDs[:n]) {
			t.Errorf("ids: got %v, want %v", r.Outcrop.IDs, g.IDs[:n])
		}
	}
	if !bytes.Contains([]byte(b.Info.Arch), []byte("qwen35moe")) || b.Info.Context != 2048 {
		t.Errorf("got %+v", b.Info)
	}
}
