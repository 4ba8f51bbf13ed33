package store

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "ünï #1", "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// talk writes a small conversation with a branch: u1 -> a1, u1 -> a2 -> u2.
func talk(t *testing.T, s *Store) (Conversation, []Message) {
	t.Helper()
	temp := 0.7
	c, err := s.NewConversation(Conversation{Title: "Foxes", System: "Be short.", Pack: "starter", Sampling: Sampling{Temperature: &temp}})
	if err != nil {
		t.Fatal(err)
	}
	add := func(m Message) Message {
		m.Conversation = c.ID
		return mustMessage(t, s, m)
	}
	u1 := add(Message{Role: "user", Content: "Tell me about a fox"})
	a1 := add(Message{Role: "assistant", Parent: u1.ID, Content: "A fox named Button.", Finish: "stop", Stats: Stats{Tokens: 5, TokS: 38.2}})
	a2 := add(Message{Role: "assistant", Parent: u1.ID, Content: "Another fox, “Hopper” — 🦊.", Reasoning: "thinking\nhard", Finish: "length"})
	u2 := add(Message{Role: "user", Parent: a2.ID, Content: "Wölfe?"})
	return c, []Message{u1, a1, a2, u2}
}

func mustMessage(t *testing.T, s *Store, m Message) Message {
	t.Helper()
	m, err := s.Add(m)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestConversationRoundTrip(t *testing.T) {
	s := open(t)
	c, ms := talk(t, s)
	got, err := s.Conversation(c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.Leaf != ms[3].ID || got.Title != "Foxes" || got.System != "Be short." || *got.Sampling.Temperature != 0.7 {
		t.Errorf("got %+v", got)
	}
	list, err := s.Messages(c.ID)
	if err != nil || len(list) != 4 {
		t.Fatalf("got %d messages, %v", len(list), err)
	}
	if list[1].Stats.TokS != 38.2 || list[2].Reasoning != "thinking\nhard" || list[2].Content != ms[2].Content {
		t.Errorf("got %+v", list)
	}
	ms[1].Content, ms[1].Finish, ms[1].Error = "changed", "error", "the engine ended"
	if err := s.Save(ms[1]); err != nil {
		t.Fatal(err)
	}
	list, _ = s.Messages(c.ID)
	if list[1].Content != "changed" || list[1].Error != "the engine ended" {
		t.Errorf("got %+v", list[1])
	}
	if err := s.Save(Message{ID: 999}); !errors.Is(err, ErrNone) {
		t.Errorf("saving a message that is not there: %v", err)
	}
	if _, err := s.Add(Message{Conversation: 999, Role: "user"}); err == nil {
		t.Error("a message of no conversation was added")
	}
}

func TestDeleteIsUndone(t *testing.T) {
	s := open(t)
	c, _ := talk(t, s)
	if err := s.Delete(c.ID); err != nil {
		t.Fatal(err)
	}
	if list, _ := s.Conversations(); len(list) != 0 {
		t.Errorf("deleted conversation is listed: %+v", list)
	}
	if hits, _ := s.Search("fox", 10); len(hits) != 0 {
		t.Errorf("deleted conversation is found: %+v", hits)
	}
	if err := s.Restore(c.ID); err != nil {
		t.Fatal(err)
	}
	list, _ := s.Conversations()
	if len(list) != 1 || list[0].ID != c.ID {
		t.Fatalf("got %+v", list)
	}
	if n, err := s.Purge(time.Now().Add(time.Hour)); n != 0 || err != nil {
		t.Errorf("purge took %d, %v", n, err)
	}
	s.Delete(c.ID)
	if n, err := s.Purge(time.Now().Add(time.Hour)); n != 1 || err != nil {
		t.Errorf("purge took %d, %v", n, err)
	}
	if m, _ := s.Messages(c.ID); len(m) != 0 {
		t.Errorf("messages outlived their conversation: %d", len(m))
	}
}

func TestSearch(t *testing.T) {
	s := open(t)
	c, ms := talk(t, s)
	for _, q := range []struct {
		query string
		hits  int
	}{
		{"fox", 4}, {"FOX", 4}, {"Button", 1}, {"fo", 4}, {"wölfe", 1}, {"🦊", 1}, {"\"", 0},
		{"nothing like it", 0}, {"%", 0}, {"_", 0}, {"", 0}, {"  fox  ", 4}, {"fox named", 1}, {"a OR b", 0},
	} {
		hits, err := s.Search(q.query, 10)
		if err != nil || len(hits) != q.hits {
			t.Errorf("%q: got %d hits %+v, %v, want %d", q.query, len(hits), hits, err, q.hits)
		}
		for _, h := range hits {
			if h.Conversation != c.ID || !strings.EqualFold(h.Snippet[h.From:h.To], strings.TrimSpace(q.query)) {
				t.Errorf("%q: hit %+v marks %q", q.query, h, h.Snippet[h.From:h.To])
			}
		}
	}
	// The index follows changes.
	ms[1].Content = "A badger."
	s.Save(ms[1])
	if hits, _ := s.Search("badger", 10); len(hits) != 1 || hits[0].Message != ms[1].ID {
		t.Errorf("changed text is not found: %+v", hits)
	}
	if hits, _ := s.Search("Button", 10); len(hits) != 0 {
		t.Errorf("old text is still found: %+v", hits)
	}
}

func TestTree(t *testing.T) {
	s := open(t)
	c, ms := talk(t, s)
	list, _ := s.Messages(c.ID)
	tree := NewTree(list)
	ids := func(p []*Message) (out []int64) {
		for _, m := range p {
			out = append(out, m.ID)
		}
		return
	}
	if got, want := ids(tree.Path(ms[3].ID)), []int64{ms[0].ID, ms[2].ID, ms[3].ID}; !reflect.DeepEqual(got, want) {
		t.Errorf("path: got %v, want %v", got, want)
	}
	if got := ids(tree.Path(12345)); len(got) != 3 {
		t.Errorf("path of an unknown leaf: got %v", got)
	}
	sib, at := tree.Siblings(ms[2].ID)
	if len(sib) != 2 || at != 1 {
		t.Errorf("siblings: got %v at %d", ids(sib), at)
	}
	if got := tree.Newest(ms[0].ID); got != ms[3].ID {
		t.Errorf("newest below the first: got %d, want %d", got, ms[3].ID)
	}
	lost := NewTree([]Message{{ID: 5, Parent: 4, Role: "user"}})
	if len(lost.Path(5)) != 1 {
		t.Error("a message without its parent is lost")
	}
	if (&Tree{}).Path(1) != nil {
		t.Error("an empty tree has a path")
	}
}

func TestExportImport(t *testing.T) {
	s := open(t)
	c, ms := talk(t, s)
	var b bytes.Buffer
	if err := s.ExportJSON(&b); err != nil {
		t.Fatal(err)
	}
	other := open(t)
	n, err := other.Import(bytes.NewReader(b.Bytes()))
	if err != nil || n != 1 {
		t.Fatalf("imported %d, %v", n, err)
	}
	list, _ := other.Conversations()
	got, _ := other.Messages(list[0].ID)
	if len(got) != 4 || list[0].Title != c.Title || got[2].Content != ms[2].Content || got[3].Parent != got[2].ID {
		t.Errorf("got %+v", got)
	}
	if !list[0].Created.Equal(c.Created) {
		t.Errorf("created: got %v, want %v", list[0].Created, c.Created)
	}
	path := NewTree(got).Path(list[0].Leaf)
	if len(path) != 3 || path[2].Content != "Wölfe?" {
		t.Errorf("the shown branch changed: %+v", path)
	}

	var md strings.Builder
	if err := s.ExportMarkdown(&md, c.ID); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"# Foxes", "## System", "Be short.", "## You", "Another fox", "> thinking\n> hard", "Wölfe?"} {
		if !strings.Contains(md.String(), want) {
			t.Errorf("markdown lacks %q:\n%s", want, md.String())
		}
	}
	if strings.Contains(md.String(), "Button") {
		t.Error("markdown shows a branch that is not shown")
	}
}

func TestImportRefuses(t *testing.T) {
	s := open(t)
	head := `{"format":"outcrop conversations","version":1,"conversations":`
	for name, in := range map[string]string{
		"not JSON":     "hello",
		"other format": `{"format":"x","version":1}`,
		"newer":        `{"format":"outcrop conversations","version":9}`,
		"bad role":     head + `[{"title":"a","messages":[{"id":1,"role":"robot"}]}]}`,
		"twice":        head + `[{"title":"a","messages":[{"id":1,"role":"user"},{"id":1,"role":"user"}]}]}`,
		"no parent":    head + `[{"title":"a","messages":[{"id":2,"parent":1,"role":"user"}]}]}`,
		"second bad":   head + `[{"title":"good","messages":[]},{"title":"a","messages":[{"id":2,"parent":1,"role":"user"}]}]}`,
	} {
		if n, err := s.Import(strings.NewReader(in)); err == nil || n != 0 {
			t.Errorf("%s: imported %d, %v", name, n, err)
		}
	}
	if list, _ := s.Conversations(); len(list) != 0 {
		t.Errorf("a refused import left %d conversations", len(list))
	}
}

func TestSettings(t *testing.T) {
	s := open(t)
	var v struct{ Threads int }
	if ok, err := s.Setting("engine", &v); ok || err != nil {
		t.Fatalf("got %v, %v", ok, err)
	}
	v.Threads = 4
	if err := s.SetSetting("engine", v); err != nil {
		t.Fatal(err)
	}
	v.Threads = 0
	if ok, err := s.Setting("engine", &v); !ok || err != nil || v.Threads != 4 {
		t.Errorf("got %+v, %v, %v", v, ok, err)
	}
	if err := s.SetSetting("engine", nil); err != nil {
		t.Fatal(err)
	}
	if ok, _ := s.Setting("engine", &v); ok {
		t.Error("a reset setting is still there")
	}
	if err := s.SavePreset(Preset{Name: "Terse", System: "Short."}); err != nil {
		t.Fatal(err)
	}
	if err := s.SavePreset(Preset{}); err == nil {
		t.Error("a preset without a name was saved")
	}
	if p, err := s.Presets(); err != nil || len(p) != 1 || p[0].System != "Short." {
		t.Errorf("presets: %+v, %v", p, err)
	}
	s.AddLight(Light{Device: "CPU", Driver: "go", PCI: "0000:03:00.0", Name: "cuda:0", Passed: 41, Total: 41, Text: "41 of 41"})
	if l, err := s.Lights(5); err != nil || len(l) != 1 || !l[0].OK() || l[0].PCI != "0000:03:00.0" || l[0].Name != "cuda:0" {
		t.Errorf("lights: %+v, %v", l, err)
	}
}

func TestMigrationKeepsAndBacksUp(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{migrations[0], "PRAGMA user_version = 1",
		"INSERT INTO conversation(title, created, updated) VALUES('old one', 1, 1)"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	db.Close()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if list, err := s.Conversations(); err != nil || len(list) != 1 || list[0].Title != "old one" {
		t.Errorf("got %+v, %v", list, err)
	}
	if _, err := os.Stat(path + ".before-v2"); err != nil {
		t.Errorf("no backup: %v", err)
	}
}

func TestNewerAndDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "history.db")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s.db.Exec(fmt.Sprintf("PRAGMA user_version = %d", len(migrations)+1))
	s.Close()
	if _, err := Open(path); !errors.Is(err, ErrNewer) {
		t.Errorf("newer file: %v", err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("not a database "), 500), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); !errors.Is(err, ErrDamaged) {
		t.Fatalf("damaged file: %v", err)
	}
	to, err := SetAside(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(to); err != nil {
		t.Error("the damaged file is gone")
	}
	s, err = Open(path)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
}

// The folder may be older and open to others; the conversations never are.
func TestPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such modes here")
	}
	dir := t.TempDir()
	os.Chmod(dir, 0o755)
	path := filepath.Join(dir, "history.db")
	for _, before := range []os.FileMode{0, 0o644} { // a new file, and one of an older version
		if before != 0 {
			os.Chmod(path, before)
		}
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		talk(t, s)
		for _, ext := range []string{"", "-wal", "-shm"} {
			if st, err := os.Stat(path + ext); err != nil || st.Mode().Perm() != 0o600 {
				t.Errorf("%s of mode %#o: got %v, %v", "history.db"+ext, before, st.Mode(), err)
			}
		}
		s.Close()
	}
}
