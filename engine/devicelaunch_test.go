package engine

import (
	"context"
	"testing"

	"outcrop/engine/gguf"
	"outcrop/engine/token"
	"outcrop/gpu/compute"
)

// launchesOf counts what one decode step launches, after the first, which
// records it.
func launchesOf(t *testing.T, path string) int {
	t.Helper()
	card := newFakeCard()
	card.nvidia = 90
	m := load(t, path, Options{Threads: 1, Context: 256, Draft: "off", Devices: []*compute.Device{card.open(t)}})
	if why := m.OnCPU(); len(why) > 0 {
		t.Fatalf("not all on the card: %v", why)
	}
	s := session(t, m)
	n := 0
	for range 3 {
		n = card.total()
		if err := s.advance(context.Background(), []token.ID{'x'}, 1); err != nil {
			t.Fatal(err)
		}
		n = card.total() - n
	}
	return n
}

// TestDecodeLaunches: a layer of a dense model takes at most 8 launches in a
// decode step, one more when the values' matrix has another type than those of
// queries and keys. Each costs microseconds, which small models consist of.
func TestDecodeLaunches(t *testing.T) {
	heads := func(w *gguf.Writer) { // of 32 values
		for k, v := range map[string]uint32{"attention.head_count": 2, "attention.head_count_kv": 1, "attention.key_length": 32, "attention.value_length": 32, "rope.dimension_count": 32} {
			w.Set("llama."+k, v)
		}
	}
	for name, x := range map[string]struct {
		spec tinySpec
		most int
	}{
		"one type":     {tinySpec{seed: 3, edit: heads}, 8},
		"other values": {tinySpec{seed: 3, edit: heads, half: "attn_v"}, 9},
	} {
		two, three := x.spec, x.spec
		two.layers, three.layers = 2, 3
		a, b := launchesOf(t, two.write(t)), launchesOf(t, three.write(t))
		t.Logf("%s: %d launches with 2 layers, %d with 3", name, a, b)
		if n := b - a; n > x.most || n < 4 {
			t.Errorf("%s: %d launches a layer, want at most %d", name, n, x.most)
		}
		if rest := a - 2*(b-a); rest < 1 || rest > 4 {
			t.Errorf("%s: %d launches beside the layers, want 1 to 4", name, rest)
		}
	}
}
