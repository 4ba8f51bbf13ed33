//go:build slow

package engine

import (
	"math"
	"math/rand/v2"
	"testing"
	"testing/fstest"
	"time"

	"outcrop/engine/guard"
	"outcrop/engine/token"
	"outcrop/gpu"
	"outcrop/gpu/compute"
)

// slotPlacements are the ways in which a card shares a layer's experts with
// RAM.
func slotPlacements(devs []*compute.Device, slots int64) map[string]Options {
	o := func(slots int64, pinned bool, misses string) Options {
		return Options{Devices: devs, Threads: 2, Context: 512, Chunk: 32, Draft: "off", ExpertRAM: -1,
			Placement: Placement{CPUExperts: true}, SlotBytes: slots, Pinned: pinned, Misses: misses}
	}
	return map[string]Options{
		"CPU":            o(0, false, ""),
		"slots, CPU":     o(slots, false, ""),
		"link":           o(0, true, missesLink),
		"slots, link":    o(slots, true, missesLink),
		"slots, both":    o(slots, true, missesAuto),
		"slots, no link": o(slots, true, missesCPU),
	}
}

// slotWindows runs tokens in windows of 1 to 8, after a first one of 40, and
// returns the logits of all; hook runs before each window.
func slotWindows(t *testing.T, m *Model, ids []token.ID, hook func()) []float32 {
	t.Helper()
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(8, 8))
	var out []float32
	for at := 0; at < len(ids); {
		n := min(1+rng.IntN(8), len(ids)-at)
		if at == 0 {
			n = min(30, m.chunk)
		}
		if hook != nil {
			hook()
		}
		if err := s.forward(t.Context(), ids[at:at+n], n); err != nil {
			t.Fatal(err)
		}
		out = append(out, s.p.logits...)
		s.took(ids[at:at+n], n)
		at += n
	}
	return out
}

// far is the relative RMS distance of a from b.
func far(a, b []float32) float64 {
	var d, n float64
	for i := range b {
		d += float64(a[i]-b[i]) * float64(a[i]-b[i])
		n += float64(b[i]) * float64(b[i])
	}
	return math.Sqrt(d / n)
}

// TestDeviceSlots: with experts that are promoted and evicted at random, slots
// that are resized between any two windows, copies in RAM that come and go, and
// misses on either side, the logits are those of the model in RAM.
func TestDeviceSlots(t *testing.T) {
	devs := devices(t, 1)
	path := moeShape{layers: 3, experts: 24, used: 4, dim: 256, ff: 128}.write(t, t.TempDir())
	rng := rand.New(rand.NewPCG(3, 3))
	ids := make([]token.ID, 110)
	for i := range ids {
		ids[i] = token.ID(rng.IntN(250))
	}
	want := slotWindows(t, load(t, path, Options{Threads: 2, Context: 512, Chunk: 32, Draft: "off"}), ids, nil)
	var greedy []token.ID
	for name, o := range slotPlacements(devs, 900<<10) {
		m := load(t, path, o)
		s := shelvesOf(t, m)
		rng := rand.New(rand.NewPCG(5, uint64(len(name))))
		least, most := int64(1<<62), int64(0)
		got := slotWindows(t, m, ids, func() {
			settled(t, m)
			switch rng.IntN(4) {
			case 0:
				s.shrink(rng.Int64N(s.full))
			case 1:
				s.grow(s.full)
			}
			if s.slots == nil || m.options.SlotBytes == 0 {
				return
			}
			s.slots.due = 0 // a round after every window
			for range rng.IntN(5) {
				il := rng.IntN(len(m.layers))
				k := s.layers[il]
				e, at := int32(rng.IntN(len(k.even))), rng.IntN(len(k.slots.who))
				if at < k.slots.limit && k.slots.of[e] == nobody && !k.slots.pending(e) && k.slots.coming[at] == nobody && (k.slots.room() > 0 || k.slots.who[at] != nobody) {
					if err := s.slots.begin(move{layer: il, place: at, in: e, out: k.slots.who[at]}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if rng.IntN(2) == 0 {
				before := devs[0]
				m.Relieve(guard.Decision{Slots: map[string]int64{deviceName(before.Info()): rng.Int64N(1<<20) - 1<<19}})
				settled(t, m)
				held := m.heldSlots()[deviceName(before.Info())]
				least, most = min(least, held), max(most, held)
				if real := slotMemory(m); real != held {
					t.Errorf("%s: slots take %d bytes of the device, %d are counted", name, real, held)
				}
			}
		})
		d := far(got, want)
		c := m.Telemetry().Experts
		t.Logf("%s: relative RMS %.1e; %d reads in slots, %d in RAM of which %d over the link, %d promoted, %d evicted, slots %d to %d bytes",
			name, d, c.Slot, c.RAM, c.Linked, c.Promoted, c.Evicted, least, most)
		bound := 5e-3 // activations of 8 bits that round to the other side
		if m.cards.runs[0].set.Halves() {
			bound = roundedLimit // matrix units do not round them at all: 1.2e-2 on an H200
		}
		if !(d <= bound) {
			t.Errorf("%s: logits are %.2e from those of the model in RAM", name, d)
		}
		if o.SlotBytes > 0 && (c.Slot == 0 || c.Promoted == 0 || least >= most) {
			t.Errorf("%s: slots were not used: %+v", name, c)
		}
		if o.Misses == missesLink && c.Linked == 0 || o.Misses != missesLink && !o.Pinned && c.Linked > 0 || o.Misses == missesCPU && c.Linked > 0 {
			t.Errorf("%s: %d experts came over the link", name, c.Linked)
		}
		settled(t, m)
		again := likeliest(t, m, ids[:20], 24)
		if greedy == nil {
			greedy = again
		}
		if n := same(again, greedy); n < len(greedy) {
			t.Errorf("%s: greedy ids part after %d of %d", name, n, len(greedy))
		}
	}
}

// slotMemory is what the slots of a model really take.
func slotMemory(m *Model) (n int64) {
	for i := range m.cards.slots.layers {
		k := &m.cards.slots.layers[i]
		for _, b := range []slotBank{k.gateUp, k.down} {
			if b.buf != nil {
				n += b.buf.Len()
			}
		}
	}
	return n
}

// TestGuardShrinksSlots: another program takes VRAM, as the readings say; slots
// go at the next pause between tokens, and come back slowly once it has gone.
func TestGuardShrinksSlots(t *testing.T) {
	devs := devices(t, 1)
	path := moeShape{layers: 2, experts: 16, used: 2, dim: 256, ff: 128}.write(t, t.TempDir())
	o := slotPlacements(devs, 1<<20)["slots, both"]
	m := load(t, path, o)
	name := deviceName(devs[0].Info())
	full := m.heldSlots()[name]
	if full == 0 {
		t.Fatal("no slots")
	}
	const total = 16 << 30
	free := int64(4 << 30)
	root := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 33554432 kB\nMemFree: 20000000 kB\nMemAvailable: 20000000 kB\n")}}
	w := watcher{m: m, o: WatchOptions{
		Root: root, Config: guard.Presets[1].Config,
		Cards: func(now time.Time) []gpu.CardReadings {
			r := gpu.CardReadings{PCI: gpu.PCI(name), Time: now}
			r.VRAM.Total, r.VRAM.Free = gpu.Known(int64(total), "test"), gpu.Known(free, "test")
			return []gpu.CardReadings{r}
		},
	}, reader: guard.NewReader(root, 0, 4096)}
	now := time.Now()
	look := func(d time.Duration) int64 {
		now = now.Add(d)
		w.look(now)
		settled(t, m)
		return m.heldSlots()[name]
	}
	if n := look(0); n != full {
		t.Fatalf("%d bytes of %d with VRAM free", n, full)
	}
	free = guard.Presets[1].VRAMFloor - 256<<10
	if n := look(time.Second); n >= full {
		t.Errorf("another program took VRAM: still %d bytes of slots", n)
	} else if real := slotMemory(m); real != n {
		t.Errorf("%d bytes of slots are counted, the device holds %d", n, real)
	}
	free = 64 << 20
	if n := look(time.Second); n != 0 {
		t.Errorf("hardly any VRAM left: %d bytes of slots", n)
	}
	likeliest(t, m, []token.ID{4, 5, 6}, 8)
	free = 4 << 30
	if n := look(time.Second); n != 0 {
		t.Errorf("grew to %d at once", n)
	}
	for range 40 {
		look(time.Second)
	}
	if n := m.heldSlots()[name]; n != full {
		t.Errorf("%d of %d bytes of slots came back in 40 seconds", n, full)
	}
	likeliest(t, m, []token.ID{4, 5, 6}, 8)
}

// likeliest continues a prompt with the likeliest tokens; the packs of these
// tests have no tokenizer.
func likeliest(t *testing.T, m *Model, ids []token.ID, n int) []token.ID {
	t.Helper()
	s := session(t, m)
	var out []token.ID
	for next := ids; len(out) < n; next = out[len(out)-1:] {
		if err := s.advance(t.Context(), next, 1); err != nil {
			t.Fatal(err)
		}
		out = append(out, token.ID(argmax(s.fresh)))
	}
	return out
}
