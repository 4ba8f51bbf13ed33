package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"outcrop/assets"
	"outcrop/engine/token"
)

// golden is the part of the starter's known answers that tests compare.
type golden struct {
	Prompts, Extra []struct {
		Prompt      string     `json:"prompt"`
		PromptIDs   []token.ID `json:"prompt_ids"`
		IDs         []token.ID `json:"ids"`
		Stable      int        `json:"stable_tokens"`
		Answer      string     `json:"answer"`
		AnswerToks  int        `json:"answer_tokens"`
		DraftIDs    []token.ID `json:"mtp_draft_ids"`
		MTPAccepted int        `json:"mtp_accepted"`
	}
}

func readGolden(t testing.TB) golden {
	t.Helper()
	var g golden
	if err := json.Unmarshal(assets.Golden, &g); err != nil {
		t.Fatal(err)
	}
	if len(g.Prompts) == 0 {
		t.Fatal("no prompts among the known answers")
	}
	return g
}

// starter loads the embedded pack.
func starter(t testing.TB, o Options) *Model {
	t.Helper()
	path := filepath.Join(t.TempDir(), assets.StarterName)
	if err := os.WriteFile(path, assets.Starter, 0o600); err != nil {
		t.Fatal(err)
	}
	return load(t, path, o)
}

// generate collects the ids and the text of an answer.
func generate(t testing.TB, s *Session, r Request) ([]token.ID, string, Result) {
	t.Helper()
	var ids []token.ID
	var text string
	res, err := s.Generate(context.Background(), r, func(st Step) error {
		if st.ID >= 0 {
			ids = append(ids, st.ID)
		}
		text += st.Text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return ids, text, res
}

// TestStarterGolden: the embedded pack gives its known answers.
func TestStarterGolden(t *testing.T) {
	g := readGolden(t)
	m := starter(t, Options{Threads: 2, Context: 1024})
	s := session(t, m)
	for _, p := range g.Prompts {
		ids, _, _ := generate(t, s, Request{Prompt: p.PromptIDs, MaxTokens: len(p.IDs), IgnoreEOG: true})
		if n := same(ids, p.IDs); n < len(p.IDs) {
			t.Errorf("%q: ids part after %d of %d: got %v, want %v", p.Prompt, n, len(p.IDs), ids[n:], p.IDs[n:])
		}
		_, text, res := generate(t, s, Request{Prompt: p.PromptIDs, MaxTokens: len(p.IDs)})
		if p.AnswerToks < len(p.IDs) && (text != p.Answer || res.Reason != "stop") {
			t.Errorf("%q: answer %q ended by %s, want %q ended by stop", p.Prompt, text, res.Reason, p.Answer)
		}
	}
	for _, p := range g.Extra {
		ids, _, _ := generate(t, s, Request{Prompt: p.PromptIDs, MaxTokens: max(1, p.Stable), IgnoreEOG: true})
		if n := same(ids, p.IDs); n < p.Stable {
			t.Errorf("%q: ids part after %d, want the first %d equal", p.Prompt, n, p.Stable)
		}
	}
}

// same is how many ids at the front are equal.
func same(a, b []token.ID) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
