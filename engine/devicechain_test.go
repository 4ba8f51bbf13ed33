package engine

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"outcrop/gpu/compute"
)

// TestChained: the second card launches nothing of a token before the first one
// has ended its part, whether it stands ready or has given up waiting; both run
// each token once.
func TestChained(t *testing.T) {
	for name, patience := range map[string]time.Duration{"ready": time.Minute, "given up": time.Microsecond} {
		p := tinyPack(t, tinySpec{arch: "llama", layers: 4, seed: 3})
		cards, devs := fakeCards(t, 3, 1<<30)
		m, err := Load(context.Background(), p, Options{Threads: 2, Context: 256, Chunk: 16, Draft: "off", Devices: devs, Placement: Placement{Layers: []int{2, 1, 1}}})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		m.cards.chain, m.cards.giveUp = true, patience
		s := session(t, m)
		if err := s.advance(context.Background(), longPrompt[:1], 1); err != nil { // records
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []int
		for i, c := range cards {
			other := c.Other
			c.Other = func(x *compute.FakeCall) error {
				mu.Lock()
				if len(order) == 0 || order[len(order)-1] != i {
					order = append(order, i)
				}
				mu.Unlock()
				if i == 0 {
					time.Sleep(time.Millisecond)
				}
				return other(x)
			}
		}
		const n = 4
		var want []int
		for i := range n {
			if err := s.advance(context.Background(), longPrompt[1+i:2+i], 1); err != nil {
				t.Fatal(err)
			}
			want = append(want, 0, 1, 2)
		}
		if !slices.Equal(order, want) {
			t.Errorf("%s: cards had turns %v, want %v", name, order, want)
		}
		for i, r := range m.cards.runs {
			if r.turnTime <= 0 || i > 0 && r.gaps.Load() < n {
				t.Errorf("%s: card %d: turns of %v, %d gaps", name, i, r.turnTime, r.gaps.Load())
			}
		}
	}
}

// TestBaton: who waits hears what came of the one before, or gives up.
func TestBaton(t *testing.T) {
	for _, ok := range []bool{true, false} {
		var b baton
		go func() { time.Sleep(8 * time.Millisecond); b.pass(ok) }()
		want := int32(batonPassed)
		if !ok {
			want = batonDropped
		}
		if got := b.take(7*time.Millisecond, time.Minute); got != want {
			t.Errorf("%v: got %d", ok, got)
		}
	}
	var b baton
	begin := time.Now()
	if got := b.take(time.Hour, 5*time.Millisecond); got != batonLate || time.Since(begin) > 5*time.Second {
		t.Errorf("nobody came: %d after %v", got, time.Since(begin))
	}
}
