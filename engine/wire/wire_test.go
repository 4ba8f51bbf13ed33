package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestContentForms(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`"hi"`, "hi"},
		{`null`, ""},
		{`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "ab"},
		{`[]`, ""},
	} {
		var got Content
		if err := json.Unmarshal([]byte(c.in), &got); err != nil || string(got) != c.want {
			t.Errorf("%s: got %q, %v, want %q", c.in, got, err, c.want)
		}
	}
	var c Content
	err := json.Unmarshal([]byte(`[{"type":"image_url","image_url":{"url":"x"}}]`), &c)
	var part *UnsupportedPartError
	if !errors.As(err, &part) || part.Type != "image_url" {
		t.Errorf("picture: got %v", err)
	}
	if err := json.Unmarshal([]byte(`7`), &c); err == nil {
		t.Error("a number was taken as content")
	}
}

func TestStopForms(t *testing.T) {
	for in, want := range map[string]int{`{"stop":"x"}`: 1, `{"stop":["x","y"]}`: 2, `{"stop":null}`: 0, `{}`: 0} {
		var r ChatRequest
		if err := json.Unmarshal([]byte(in), &r); err != nil || len(r.Stop) != want {
			t.Errorf("%s: got %v, %v", in, r.Stop, err)
		}
	}
}

func TestPromptForms(t *testing.T) {
	for _, in := range []string{`"a"`, `["a"]`} {
		var p Prompt
		if err := json.Unmarshal([]byte(in), &p); err != nil || p.Text != "a" || p.IDs != nil {
			t.Errorf("%s: got %+v, %v", in, p, err)
		}
	}
	for _, in := range []string{`[1,2]`, `[[1,2]]`} {
		var p Prompt
		if err := json.Unmarshal([]byte(in), &p); err != nil || len(p.IDs) != 2 {
			t.Errorf("%s: got %+v, %v", in, p, err)
		}
	}
	for _, in := range []string{`["a","b"]`, `[[1],[2]]`, `{}`, `7`, `[]`} {
		var p Prompt
		if err := json.Unmarshal([]byte(in), &p); err == nil {
			t.Errorf("%s: accepted as %+v", in, p)
		}
	}
}

// Issue #1545: a driver that reports nothing is not a card with 0 bytes free.
func TestUnknownIsNull(t *testing.T) {
	b, err := json.Marshal(Unknown("bytes", "sysman", "the driver has no such counter"))
	if err != nil || !strings.Contains(string(b), `"value":null`) {
		t.Fatalf("got %s, %v", b, err)
	}
	var r Reading
	if err := json.Unmarshal(b, &r); err != nil || r.Known || r.Why == "" {
		t.Fatalf("got %+v, %v", r, err)
	}
	b, _ = json.Marshal(Known(0, "percent", "x"))
	if err := json.Unmarshal(b, &r); err != nil || !r.Known || r.Value != 0 {
		t.Fatalf("a known zero became %+v", r)
	}
}

func TestSamplingIsFlat(t *testing.T) {
	zero := 0.0
	b, err := json.Marshal(ChatRequest{Sampling: Sampling{Temperature: &zero}})
	if err != nil || !strings.Contains(string(b), `"temperature":0`) || strings.Contains(string(b), "Sampling") {
		t.Fatalf("got %s, %v", b, err)
	}
}
