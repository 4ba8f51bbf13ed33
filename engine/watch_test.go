package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"outcrop/engine/guard"
)

// machine is a recorded machine with so much RAM, in MiB.
func machine(total, available int) fstest.MapFS {
	return fstest.MapFS{
		"proc/meminfo": &fstest.MapFile{Data: fmt.Appendf(nil, "MemTotal: %d kB\nMemFree: %d kB\nMemAvailable: %d kB\n", total<<10, available<<9, available<<10)},
	}
}

// The guard's whole way: readings become words, copies go, come back, and the
// answer is the same all along.
func TestWatchShrinksAndGrows(t *testing.T) {
	prompt := long(40)
	want := stepLogits(t, starterModel(t, Options{Threads: 1}), prompt, 30, nil)
	m := starterModel(t, Options{Threads: 1, ExpertRAM: -1})
	s := shelvesOf(t, m)
	root := machine(64, 40)
	var changes []guard.Decision
	w := watcher{
		m: m, reader: guard.NewReader(root, 0, 4096),
		o: WatchOptions{Root: root, Config: guard.Config{RAMFloor: 16 << 20, Enabled: true}, OnChange: func(d guard.Decision) { changes = append(changes, d) }},
	}
	now := time.Unix(1000, 0)
	got := stepLogits(t, m, prompt, 30, func(i int) {
		if i == 5 {
			root["proc/meminfo"] = machine(64, 10)["proc/meminfo"]
		}
		for range 2 {
			now = now.Add(time.Second)
			w.look(now)
		}
	})
	if !slices.Equal(got, want) {
		t.Error("the logits differ")
	}
	tele := m.Telemetry()
	if tele.Level != "watch" || tele.Step != guard.ShrinkRAM.String() || tele.Experts.Held != 0 || tele.Experts.Given != s.full {
		t.Errorf("under pressure: level %s, step %s, %+v", tele.Level, tele.Step, tele.Experts)
	}
	if len(tele.Words) < 4 || !strings.Contains(tele.Words[3].Text, "giving back") || !strings.Contains(tele.Words[3].Text, "10 MiB of 64 MiB") {
		t.Errorf("words: %v", tele.Words)
	}
	root["proc/meminfo"] = machine(64, 60)["proc/meminfo"]
	for range 200 {
		now = now.Add(time.Second)
		w.look(now)
	}
	for deadline := time.Now().Add(10 * time.Second); m.Telemetry().Experts.Held < s.full; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("held %d of %d again", m.Telemetry().Experts.Held, s.full)
		}
	}
	if tele := m.Telemetry(); tele.Level != "good" || tele.Step != "normal" {
		t.Errorf("after recovery: level %s, step %s", tele.Level, tele.Step)
	}
	if len(changes) == 0 {
		t.Error("nobody was told")
	}
	settled(t, m)
}

func TestWatchKeepsProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "profile.json")
	os.WriteFile(path, []byte("{"), 0o600)
	m := starterModel(t, Options{Threads: 1})
	stepLogits(t, m, long(4), 1, nil)
	want := m.Heat()
	watch := func(m *Model) {
		ctx, cancel := context.WithCancel(t.Context())
		o := WatchOptions{Root: machine(64, 40), Profile: path, OnReading: func(guard.Reading, guard.Decision) { cancel() }}
		if err := Watch(ctx, m, o); err != nil {
			t.Fatal(err)
		}
	}
	watch(m)
	if w := m.Telemetry().Words; len(w) != 1 || !strings.Contains(w[0].Text, "delete the file") {
		t.Errorf("a damaged profile: %v", w)
	}
	next := starterModel(t, Options{Threads: 1})
	watch(next)
	if !slices.EqualFunc(next.Heat(), want, slices.Equal[[]float32]) {
		t.Error("the next model did not learn from the last")
	}
}

// A look at this machine must cost less than half a percent of a core when it
// is taken once a second.
func TestWatchCost(t *testing.T) {
	if _, err := os.Stat("/proc/meminfo"); err != nil {
		t.Skip("this system has no /proc: ", err)
	}
	m := starterModel(t, Options{Threads: 1, ExpertRAM: -1})
	w := watcher{m: m, reader: guard.NewReader(os.DirFS("/"), 0, os.Getpagesize()), o: WatchOptions{Config: guard.Presets[1].Config}}
	costs := make([]float64, 0, 40)
	for range cap(costs) {
		begin := time.Now()
		w.look(begin)
		costs = append(costs, time.Since(begin).Seconds())
	}
	if c := median(costs); c > 0.005 {
		t.Errorf("a look takes %.2f ms, want at most 5", c*1e3)
	} else {
		t.Logf("a look takes %.2f ms: %.3f %% of a core", c*1e3, c*100)
	}
}
