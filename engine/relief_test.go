package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"outcrop/engine/guard"
	"outcrop/engine/token"
)

// starterModel loads the embedded pack.
func starterModel(t *testing.T, o Options) *Model {
	t.Helper()
	p, err := OpenPack("../assets/starter/starter.gguf")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Load(t.Context(), p, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(); p.Close() })
	return m
}

// answer generates n greedy tokens; hook sees each.
func answerOf(t *testing.T, m *Model, n int, hook func(i int)) ([]token.ID, Result, error) {
	t.Helper()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var ids []token.ID
	res, err := s.Generate(t.Context(), Request{Prompt: []token.ID{4094, 100, 200, 300}, MaxTokens: n, IgnoreEOG: true}, func(st Step) error {
		if st.ID >= 0 {
			ids = append(ids, st.ID)
		}
		if hook != nil {
			hook(len(ids))
		}
		return nil
	})
	return ids, res, err
}

// Giving pages back in the middle of an answer must not change it.
func TestGiveBackKeepsTheAnswer(t *testing.T) {
	m := starterModel(t, Options{Threads: 1, Draft: "off"})
	want, _, err := answerOf(t, m, 24, nil)
	if err != nil {
		t.Fatal(err)
	}
	var offered int64
	got, _, err := answerOf(t, m, 24, func(i int) {
		offered += m.Relieve(guard.Decision{Step: []guard.Step{guard.Normal, guard.GiveBack, guard.ShrinkRAM}[i%3]})
	})
	m.Relieve(guard.Decision{Step: guard.Normal})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("answer %v, %v; want %v", got, err, want)
	}
	if offered == 0 {
		t.Error("nothing was given back")
	}
}

func TestPauseAndResume(t *testing.T) {
	m := starterModel(t, Options{Threads: 1, Draft: "off"})
	want, _, _ := answerOf(t, m, 12, nil)
	paused := make(chan struct{})
	go func() {
		<-paused
		// Whatever runs now must be waiting; only then is it let go.
		for m.relief.step.Load() != int32(guard.Pause) {
			time.Sleep(time.Millisecond)
		}
		m.Relieve(guard.Decision{Step: guard.Normal})
	}()
	got, res, err := answerOf(t, m, 12, func(i int) {
		if i == 5 {
			m.Relieve(guard.Decision{Step: guard.Pause})
			close(paused)
		}
	})
	if err != nil || res.Reason != "length" || !slices.Equal(got, want) {
		t.Errorf("%v %q %v, want %v", got, res.Reason, err, want)
	}
}

func TestPausedAnswerCanBeCancelled(t *testing.T) {
	m := starterModel(t, Options{Threads: 1, Draft: "off"})
	s, _ := m.NewSession()
	defer s.Close()
	ctx, cancel := context.WithCancel(t.Context())
	res, err := s.Generate(ctx, Request{Prompt: []token.ID{4094, 100}, MaxTokens: 50, IgnoreEOG: true}, func(st Step) error {
		m.Relieve(guard.Decision{Step: guard.Pause})
		time.AfterFunc(time.Millisecond, cancel)
		return nil
	})
	m.Relieve(guard.Decision{Step: guard.Normal})
	if !errors.Is(err, context.Canceled) || res.Reason != "cancelled" {
		t.Errorf("%q %v", res.Reason, err)
	}
}

func TestEndRequestKeepsTheText(t *testing.T) {
	m := starterModel(t, Options{Threads: 1, Draft: "off"})
	got, res, err := answerOf(t, m, 50, func(i int) {
		if i == 7 {
			m.Relieve(guard.Decision{Step: guard.EndRequest})
		}
	})
	if !errors.Is(err, ErrMemory) || res.Reason != "memory" || len(got) != 7 {
		t.Errorf("%d tokens, %q, %v", len(got), res.Reason, err)
	}
	m.Relieve(guard.Decision{Step: guard.Normal})
	if _, _, err := answerOf(t, m, 3, nil); err != nil {
		t.Errorf("after recovery: %v", err)
	}
}

func TestHeatFollowsRouting(t *testing.T) {
	m := starterModel(t, Options{Threads: 1, Draft: "off"})
	if _, _, err := answerOf(t, m, 20, nil); err != nil {
		t.Fatal(err)
	}
	for il, l := range m.Heat() {
		if m.layers == nil || il >= len(m.layers) {
			break
		}
		var sum float32
		for _, v := range l {
			sum += v
		}
		// 4 prompt tokens and 19 decoded ones, two experts each, no decay yet.
		if sum != 46 {
			t.Errorf("layer %d counts %v uses, want 46", il, sum)
		}
	}
}

func TestHeatFades(t *testing.T) {
	m := starterModel(t, Options{Threads: 1})
	m.heat.touch(0, 3, 100)
	m.heat.tick(heatEvery * 4)
	if got := m.Heat()[0][3]; got < 31 || got > 32 {
		t.Errorf("100 uses after four periods: %v, want 31.6", got)
	}
}

func TestProfileRoundTrip(t *testing.T) {
	m := starterModel(t, Options{Threads: 1, Draft: "off"})
	if _, _, err := answerOf(t, m, 8, nil); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "profile.json")
	if err := m.LoadProfile(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if err := m.SaveProfile(path); err != nil {
		t.Fatal(err)
	}
	want := m.Heat()
	m.ResetProfile()
	if m.Heat()[0][0] != 0 || slices.EqualFunc(m.Heat(), want, slices.Equal[[]float32]) {
		t.Error("reset kept counts")
	}
	if err := m.LoadProfile(path); err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(m.Heat(), want, slices.Equal[[]float32]) {
		t.Error("counts changed on the way through the file")
	}
	for name, text := range map[string]string{
		"cut short":    `{"version":1,"pa`,
		"other pack":   `{"version":1,"pack":"other","experts":[]}`,
		"wrong shape":  `{"version":1,"pack":"` + m.pack.profileID() + `","experts":[[1]]}`,
		"negative":     `{"version":1,"pack":"` + m.pack.profileID() + `","experts":[[-1]]}`,
		"other fields": `[]`,
	} {
		os.WriteFile(path, []byte(text), 0o600)
		if err := m.LoadProfile(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
		if !slices.EqualFunc(m.Heat(), want, slices.Equal[[]float32]) {
			t.Errorf("%s: a refused profile changed the counts", name)
		}
	}
}

// The answer does not depend on where the experts are.
func TestFileTierSameAnswer(t *testing.T) {
	want, _, _ := answerOf(t, starterModel(t, Options{Threads: 2}), 16, nil)
	got, _, err := answerOf(t, starterModel(t, Options{Threads: 2, FileTier: true}), 16, nil)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
}

// What was learnt of a pack makes the planner's hits better than even ones.
func TestUseProfile(t *testing.T) {
	m := starterModel(t, Options{Threads: 1, Draft: "off"})
	facts, err := m.pack.PlanFacts()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "profile.json")
	n := facts.Layers[0].Experts
	for e := range n {
		m.heat.touch(0, e, 5) // the first layer has a favourite
	}
	m.heat.touch(0, 2, 5*n)
	m.heat.touch(1, 0, 1) // the second hardly ran
	if err := m.SaveProfile(path); err != nil {
		t.Fatal(err)
	}
	if err := m.pack.UseProfile(&facts, path); err != nil {
		t.Fatal(err)
	}
	hot := facts.Layers[0].HotShare
	if len(hot) != n || hot[0] < 0.5 || hot[1] > 0.5/float64(n-1) || facts.Layers[1].HotShare != nil {
		t.Errorf("shares %v, second layer %v", hot, facts.Layers[1].HotShare)
	}
	other := Pack{Name: "other"}
	if err := other.UseProfile(&facts, path); err == nil {
		t.Error("took the profile of another pack")
	}
}
