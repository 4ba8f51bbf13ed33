package serve

import (
	"context"
	"strings"
	"testing"
	"time"

	"outcrop/engine/guard"
	"outcrop/engine/wire"
)

// Memory runs out while an answer is written: the engine is asked to give
// back, then the answer ends with its text, then the pack leaves; nothing is
// killed.
func TestGuardEndsTheAnswer(t *testing.T) {
	s := &scripted{words: []string{"tick "}, endless: true}
	unloaded := make(chan string, 1)
	srv := New(Options{Unload: func(words string) { unloaded <- words }})
	var steps []guard.Step
	b := backend(t, s)
	b.Relieve = func(d guard.Decision) int64 { steps = append(steps, d.Step); return 0 }
	srv.mu.Lock()
	srv.state, srv.backend = "ok", b
	srv.mu.Unlock()
	h := httpTest(t, srv).URL
	r, done := ask(t, context.Background(), h, "")
	defer done()
	until(t, r, "tick")

	g := srv.guardian
	var state guard.State
	now := time.Now()
	for range 12 { // seconds
		now = now.Add(time.Second)
		before := state.Step
		var d guard.Decision
		state, d = guard.Decide(state, guard.Reading{At: now, RAMTotal: guard.Of(16 << 30), RAMAvailable: guard.Of(100 << 20)}, now, g.config)
		g.act(srv, b, before, d)
	}
	l := until(t, r, `"error"`)
	if !strings.Contains(l, wire.CodeMemory) || !strings.Contains(l, "its text so far is kept") {
		t.Errorf("the answer ended with %s", l)
	}
	if w := <-unloaded; !strings.Contains(w, "unloaded the model") {
		t.Errorf("unload said %q", w)
	}
	if steps[0] != guard.StopPrefetch || steps[len(steps)-1] != guard.Unload {
		t.Errorf("steps %v", steps)
	}
	if st := g.state(); !st.Acting || st.Preset != "daily" || len(st.Words) != keptWords {
		t.Errorf("telemetry says %+v", st)
	}
}

func TestGuardReading(t *testing.T) {
	m := wire.Memory{Total: wire.Known(32<<30, "bytes", ""), Available: wire.Known(20<<30, "bytes", "")}
	if r := guardReading(m, time.Now()); r.RAMTotal.N != 32<<30 || r.RAMAvailable.N != 20<<30 || r.PSIFull.Known {
		t.Errorf("got %+v", r)
	}
	m.Limit, m.Used, m.Cache = wire.Known(8<<30, "bytes", ""), wire.Known(7<<30, "bytes", ""), wire.Known(5<<30, "bytes", "")
	if r := guardReading(m, time.Now()); r.RAMTotal.N != 8<<30 || r.RAMAvailable.N != 6<<30 {
		t.Errorf("clean pages of the model count as used: %+v", r)
	}
	if l := MemoryLevel(wire.Memory{}); l != "unknown" {
		t.Errorf("nothing known is %q", l)
	}
	if g := newGuardian("off"); g.config.Enabled {
		t.Error("off acts")
	}
}
