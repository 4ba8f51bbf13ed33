package serve

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"outcrop/engine"
	"outcrop/engine/guard"
	"outcrop/engine/wire"
)

// Memory runs out while an answer is written: the answer ends with its text,
// then the pack leaves; nothing is killed.
func TestGuardEndsTheAnswer(t *testing.T) {
	s := &scripted{words: []string{"tick "}, endless: true}
	unloaded := make(chan string, 9)
	srv := New(Options{Unload: func(words string) { unloaded <- words }})
	b := backend(t, s)
	var onChange func(guard.Decision)
	stopped := false
	b.Watch = func(f func(guard.Decision)) func() error {
		onChange = f
		return func() error { stopped = true; return nil }
	}
	srv.Ready(b)
	h := httpTest(t, srv).URL
	r, done := ask(t, context.Background(), h, "")
	defer done()
	until(t, r, "tick")

	var state guard.State
	now := time.Now()
	for range 12 { // seconds
		now = now.Add(time.Second)
		var d guard.Decision
		state, d = guard.Decide(state, guard.Reading{At: now, RAMTotal: guard.Of(16 << 30), RAMAvailable: guard.Of(100 << 20)}, now, guard.Presets[1].Config)
		onChange(d)
	}
	l := until(t, r, `"error"`)
	if !strings.Contains(l, wire.CodeMemory) || !strings.Contains(l, "its text so far is kept") {
		t.Errorf("the answer ended with %s", l)
	}
	if w := <-unloaded; !strings.Contains(w, "unloaded the model") || len(unloaded) > 0 {
		t.Errorf("unload said %q, and %d times more", w, len(unloaded))
	}
	if srv.Shutdown(context.Background()); !stopped {
		t.Error("the guard outlives its model")
	}
}

func TestGuardWords(t *testing.T) {
	s := New(Options{Guard: "busy"})
	g := s.guardNow(engine.Sample{Step: guard.GiveBack.String(), Words: []engine.Said{{Text: "a"}, {Text: "b"}}})
	if !g.Acting || g.Preset != "busy" || strings.Join(g.Words, "") != "ab" {
		t.Errorf("got %+v", g)
	}
	if g := New(Options{}).guardNow(engine.Sample{}); g.Acting || g.Preset != "daily" || g.Words == nil {
		t.Errorf("got %+v", g)
	}
}

func TestGuardConfig(t *testing.T) {
	root := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 8388608 kB\nMemAvailable: 4194304 kB\n")}}
	if c := guardConfig("", root); !c.Enabled || c.RAMFloor != 2<<30 {
		t.Errorf("daily on 8 GiB: %+v", c)
	}
	if c := guardConfig("off", root); c.Enabled {
		t.Errorf("off acts: %+v", c)
	}
	if l := MemoryLevel(root); l != "good" {
		t.Errorf("half of the RAM free is %q", l)
	}
	if l := MemoryLevel(fstest.MapFS{}); l != "unknown" {
		t.Errorf("nothing known is %q", l)
	}
}
