package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"outcrop/engine/guard"
	"outcrop/engine/quant"
	"outcrop/engine/token"
)

// shelvesOf gives a model's shelves.
func shelvesOf(t *testing.T, m *Model) *shelves {
	t.Helper()
	s, ok := m.experts.(*shelves)
	if !ok {
		t.Fatalf("experts come from %T", m.experts)
	}
	return s
}

// settled checks the shelves while nothing runs.
func settled(t *testing.T, m *Model) {
	t.Helper()
	m.turn.Lock()
	defer m.turn.Unlock()
	s := shelvesOf(t, m)
	s.collect()
	s.apply()
	if err := s.check(); err != nil {
		t.Fatal(err)
	}
}

// long is a prompt that touches many experts at once, with prefill in chunks.
func long(n int) []token.ID {
	rng := rand.New(rand.NewPCG(4, 4))
	ids := make([]token.ID, n)
	for i := range ids {
		ids[i] = token.ID(rng.IntN(4000))
	}
	return ids
}

// stepLogits runs a prompt and then tokens one by one, and returns the logits
// after each; hook runs before every token.
func stepLogits(t *testing.T, m *Model, prompt []token.ID, n int, hook func(i int)) []float32 {
	t.Helper()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var out []float32
	for i := 0; len(prompt) > 0; i++ {
		k := min(len(prompt), 1)
		if i == 0 {
			k = len(prompt) - n
		}
		if hook != nil {
			hook(i)
		}
		if err := s.advance(t.Context(), prompt[:k], 1); err != nil {
			t.Fatal(err)
		}
		out = append(out, s.fresh...)
		prompt = prompt[k:]
	}
	return out
}

// Wherever experts are, what they compute is the same, bit for bit.
func TestShelvesSameLogits(t *testing.T) {
	prompt := long(80)
	want := stepLogits(t, starterModel(t, Options{Threads: 2}), prompt, 24, nil)
	full := int64(0)
	for _, c := range []struct {
		name string
		part float64 // of all experts
		o    Options
	}{
		{"all in RAM", 1, Options{Threads: 2}},
		{"all in RAM, one thread", 1, Options{Threads: 1}},
		{"half, filled at load", 0.5, Options{Threads: 2}},
		{"half", 0.5, Options{Threads: 2, FileTier: true}},
		{"a sixth", 0.17, Options{Threads: 1, FileTier: true}},
		{"none", 0, Options{Threads: 2, FileTier: true}},
	} {
		c.o.ExpertRAM = -1
		if full > 0 && c.part < 1 {
			c.o.ExpertRAM = int64(c.part*float64(full)) + 1
		}
		m := starterModel(t, c.o)
		full = shelvesOf(t, m).full
		if got := stepLogits(t, m, prompt, 24, nil); !slices.Equal(got, want) {
			t.Errorf("%s: the logits differ", c.name)
		}
		settled(t, m)
		s := m.Telemetry().Experts
		if c.part == 1 && (s.File != 0 || s.Held != full) {
			t.Errorf("%s: %+v", c.name, s)
		}
		if c.part < 1 && (s.File == 0 || s.Missed == 0 || s.Held > c.o.ExpertRAM) {
			t.Errorf("%s: %+v", c.name, s)
		}
		m.Close()
	}
}

// The guard takes memory and gives it back at any moment of an answer.
func TestShelvesShrinkAndGrow(t *testing.T) {
	prompt := long(64)
	want := stepLogits(t, starterModel(t, Options{Threads: 2}), prompt, 40, nil)
	m := starterModel(t, Options{Threads: 2, ExpertRAM: -1})
	s := shelvesOf(t, m)
	rng := rand.New(rand.NewPCG(2, 2))
	got := stepLogits(t, m, prompt, 40, func(i int) {
		switch rng.IntN(4) {
		case 0:
			s.shrink(rng.Int64N(s.full))
		case 1:
			s.grow(rng.Int64N(s.full))
		}
		settled(t, m)
		if h := m.tiers.held.Load(); h > s.budget.Load() {
			t.Errorf("token %d: %d bytes held, %d allowed", i, h, s.budget.Load())
		}
	})
	if !slices.Equal(got, want) {
		t.Error("the logits differ")
	}
	if m.tiers.given.Load() == 0 {
		t.Error("nothing was given back")
	}
	// What was given back comes again once it may.
	s.grow(s.full)
	deadline := time.Now().Add(10 * time.Second)
	for m.tiers.held.Load() < s.full {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d bytes came back", m.tiers.held.Load(), s.full)
		}
		time.Sleep(time.Millisecond)
	}
	settled(t, m)
}

// A pass that runs must not keep the guard waiting: the change comes between
// two layers.
func TestShelvesShrinkDuringPass(t *testing.T) {
	m := starterModel(t, Options{Threads: 1, ExpertRAM: -1})
	s := shelvesOf(t, m)
	var held []int64
	m.trace = func(il int, _ []float32) {
		if il == 0 {
			m.Relieve(guard.Decision{Step: guard.ShrinkRAM, RAM: -s.full / 2})
		}
		held = append(held, m.tiers.held.Load())
	}
	stepLogits(t, m, long(8), 1, nil)
	if held[0] != s.full || held[1] > s.full/2 {
		t.Errorf("held after layers 0 and 1: %d and %d of %d", held[0], held[1], s.full)
	}
	m.trace = nil
	settled(t, m)
}

// A file that is cut while the model runs is an error with its name, and the
// shelves stay in order.
func TestShelvesReadError(t *testing.T) {
	b, err := os.ReadFile("../assets/starter/starter.gguf")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "cut.gguf")
	os.WriteFile(path, b, 0o600)
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m, err := Load(context.Background(), p, Options{Threads: 1, FileTier: true, ExpertRAM: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := shelvesOf(t, m)
	for _, f := range s.reader.files { // reads beyond the end from now on
		f.Close()
	}
	sess, _ := m.NewSession()
	defer sess.Close()
	err = sess.advance(t.Context(), long(4), 1)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "expert") {
		t.Errorf("got %v, want an error that names the file and the expert", err)
	}
	settled(t, m)
}

// fakeSlots is a card whose slots are arrays of their own. It copies late, so
// that weights used too early are wrong, and computes on a goroutine.
type fakeSlots struct {
	m     *Model
	n     int
	slot  map[[2]int]expertBytes
	size  map[int]int
	put_  []func()
	ended sync.WaitGroup
	used  int
	acts  quant.Acts
}

func (f *fakeSlots) card(int) string       { return "0000:03:00.0" }
func (f *fakeSlots) slots(layer int) int   { return f.n }
func (f *fakeSlots) bytes(layer int) int64 { return 1 << 20 }

func (f *fakeSlots) resize(layer, n int) error {
	for i := n; i < f.n; i++ {
		delete(f.slot, [2]int{layer, i})
	}
	f.size[layer] = n
	return nil
}

func (f *fakeSlots) move(layer, from, to int) error {
	f.slot[[2]int{layer, to}] = f.slot[[2]int{layer, from}]
	return nil
}

func (f *fakeSlots) put(layer, slot int, at weightsAt) error {
	w := at.expertBytes
	if slot >= f.size[layer] {
		return fmt.Errorf("slot %d of %d", slot, f.size[layer])
	}
	var b expertBytes
	for i := range w {
		b[i] = make([]byte, len(w[i])) // zeros: what is computed with them is wrong
	}
	f.slot[[2]int{layer, slot}] = b
	f.put_ = append(f.put_, func() {
		for i := range w {
			copy(b[i], w[i])
		}
	})
	return nil
}

func (f *fakeSlots) settle() error {
	for _, c := range f.put_ {
		c()
	}
	f.put_ = f.put_[:0]
	return nil
}

func (f *fakeSlots) start(p *pass, l *layer, expert, slot []int32, _ []linked) error {
	expert, slot = slices.Clone(expert), slices.Clone(slot)
	f.used += len(expert)
	f.ended.Add(1)
	go func() {
		defer f.ended.Done()
		x, ff, dim := &p.mix, l.expert.ff, f.m.spec.dim
		for i, e := range expert {
			w := f.slot[[2]int{l.index, int(slot[i])}]
			lo, hi := x.start[e], x.start[e+1]
			n := int(hi - lo)
			g, u := make([]float32, n*ff), make([]float32, n*ff)
			up, from := &l.ups, w[1]
			if l.fused {
				up, from = &l.gates, w[0][ff*l.gates.rowBytes:]
			}
			quant.Mul(l.gates.f, g, ff, w[0][:ff*l.gates.rowBytes], ff, &p.in, x.token[lo:hi])
			quant.Mul(up.f, u, ff, from[:ff*up.rowBytes], ff, &p.in, x.token[lo:hi])
			for j := range n {
				l.act.gateMul(g[j*ff:(j+1)*ff], u[j*ff:(j+1)*ff])
			}
			f.acts.Set(g, n, ff)
			f.acts.Quantize(0, n)
			quant.Mul(l.downs.f, x.out[int(lo)*dim:], dim, w[2], dim, &f.acts, nil)
		}
	}()
	return nil
}

func (f *fakeSlots) wait() error { f.ended.Wait(); return nil }

// With slots that change hands at every step, RAM that comes and goes, and
// windows of 1 to 8 tokens, the logits equal those of the model in RAM.
func TestSlotsSameLogits(t *testing.T) {
	prompt := long(120)
	run := func(m *Model, hook func()) []float32 {
		s, err := m.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		rng := rand.New(rand.NewPCG(8, 8))
		var out []float32
		for at := 0; at < len(prompt); {
			n := min(1+rng.IntN(8), len(prompt)-at)
			if hook != nil {
				hook()
			}
			if err := s.forward(t.Context(), prompt[at:at+n], n); err != nil {
				t.Fatal(err)
			}
			out = append(out, s.p.logits...)
			s.took(prompt[at:at+n], n)
			at += n
		}
		return out
	}
	want := run(starterModel(t, Options{Threads: 2}), nil)
	for seed := range uint64(3) {
		m := starterModel(t, Options{Threads: 2, FileTier: seed > 0, ExpertRAM: -1})
		s := shelvesOf(t, m)
		fake := &fakeSlots{m: m, n: 3, slot: map[[2]int]expertBytes{}, size: map[int]int{}}
		if err := s.useSlots(fake); err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(seed, 9))
		got := run(m, func() {
			settled(t, m)
			s.slots.due = 0 // a round after every window
			// Besides, somebody else moves experts at will.
			for range rng.IntN(4) {
				il := rng.IntN(len(m.layers))
				k := s.layers[il]
				e, at := int32(rng.IntN(len(k.even))), rng.IntN(fake.n)
				if at < k.slots.limit && k.slots.of[e] == nobody && !k.slots.pending(e) && k.slots.coming[at] == nobody && (k.slots.room() > 0 || k.slots.who[at] != nobody) {
					if err := s.slots.begin(move{layer: il, place: at, in: e, out: k.slots.who[at]}); err != nil {
						t.Fatal(err)
					}
				}
			}
			switch rng.IntN(5) {
			case 0:
				s.shrink(rng.Int64N(s.full))
			case 1:
				s.grow(rng.Int64N(s.full))
			case 2: // the guard, between two passes
				m.Relieve(guard.Decision{Slots: map[string]int64{fake.card(0): (rng.Int64N(20) - 10) << 20}})
				if h := m.heldSlots()[fake.card(0)]; h < 0 || h > s.slots.cards[fake.card(0)].most {
					t.Errorf("%d bytes of slots", h)
				}
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: the logits differ", seed)
		}
		if c := m.Telemetry().Experts; fake.used == 0 || c.Slot != int64(fake.used) || c.Promoted == 0 || c.Evicted == 0 {
			t.Errorf("seed %d: the card computed %d experts, counted %+v", seed, fake.used, c)
		}
		settled(t, m)
	}
}
