//go:build slow

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"outcrop/engine/guard"
	"outcrop/engine/token"
)

// TestPlacementSpeed measures decode of a pack whose routed experts do not all
// lie on the card, in every way that shares them: OUTCROP_PLACE is the pack,
// OUTCROP_SLOTS the MiB of slots (0: none), OUTCROP_TOKENS how many tokens are
// timed. One load serves all ways: the copies in RAM are pinned, slots are
// given back and taken again as the guard does it.
func TestPlacementSpeed(t *testing.T) {
	path := os.Getenv("OUTCROP_PLACE")
	if path == "" {
		t.Skip("OUTCROP_PLACE names no pack")
	}
	number := func(name string, def int) int {
		if v, err := strconv.Atoi(os.Getenv(name)); err == nil {
			return v
		}
		return def
	}
	slotBytes, n := int64(number("OUTCROP_SLOTS", 0))<<20, number("OUTCROP_TOKENS", 64)
	devs := devices(t, 1)
	p, err := OpenPack(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	begin := time.Now()
	m, err := Load(context.Background(), p, Options{
		Devices: devs, Context: 1024, Draft: "off", ExpertRAM: -1, Pinned: true, Placement: Placement{CPUExperts: true}, SlotBytes: slotBytes,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	fmt.Printf("loaded in %.1f s, %d workers; CPU %.1f GB/s of experts, link %.1f GB/s\n", time.Since(begin).Seconds(), m.Threads(), m.sides.cpu/1e9, m.sides.link/1e9)
	s, err := m.NewSession()
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	rng := rand.New(rand.NewPCG(2, 2))
	tokens := func(n int) {
		for range n {
			if s.st.pos+1 >= m.context {
				s.Reset()
			}
			if err := s.advance(t.Context(), []token.ID{token.ID(rng.IntN(m.spec.vocab))}, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	name := deviceName(devs[0].Info())
	limit := func(bytes int64) {
		if m.cards.slots != nil {
			m.Relieve(guard.Decision{Slots: map[string]int64{name: bytes - m.heldSlots()[name]}})
		}
	}
	way := func(what, misses string, slots int64, warm int) {
		limit(slots)
		m.missesBy = misses
		tokens(warm)
		a, begin := m.Telemetry().Experts, time.Now()
		turns, cpu := m.cards.times.device.Load(), m.cards.times.cpu.Load()
		tokens(n)
		took := time.Since(begin)
		b := m.Telemetry().Experts
		turns, cpu = m.cards.times.device.Load()-turns, m.cards.times.cpu.Load()-cpu
		all := float64(b.Slot + b.RAM + b.File - a.Slot - a.RAM - a.File)
		rate := 0.0
		if b.LinkTime > a.LinkTime {
			rate = float64(b.LinkBytes-a.LinkBytes) / (b.LinkTime - a.LinkTime).Seconds() / 1e9
		}
		ms := func(d time.Duration) float64 { return d.Seconds() * 1e3 / float64(n) }
		fmt.Printf("%-22s %6.1f tok/s (%.2f ms): %3.0f %% in slots, %3.0f %% over the link at %.1f GB/s, %3.0f %% by the CPU; ms a token: waiting for the card's experts %.2f, card turns %.2f, CPU %.2f; %d promoted\n",
			what, float64(n)/took.Seconds(), ms(took), 100*float64(b.Slot-a.Slot)/all, 100*float64(b.Linked-a.Linked)/all, rate,
			100*float64(b.RAM+b.File-a.RAM-a.File-b.Linked+a.Linked)/all, ms(b.CardWait-a.CardWait), ms(time.Duration(turns)), ms(time.Duration(cpu)), b.Promoted-a.Promoted)
	}
	begin = time.Now()
	tokens(1)
	fmt.Printf("first token after %.2f s\n", time.Since(begin).Seconds())
	way("no slots, CPU", missesCPU, 0, 8)
	way("no slots, link", missesLink, 0, 4)
	way("no slots, both", missesAuto, 0, 4)
	if slotBytes > 0 {
		warm := number("OUTCROP_WARM", 200)
		way("half the slots, CPU", missesCPU, slotBytes/2, warm)
		way("all slots, CPU", missesCPU, slotBytes, warm)
		way("all slots, both", missesAuto, slotBytes, 8)
	}
	prompt := make([]token.ID, 512)
	for i := range prompt {
		prompt[i] = token.ID(rng.IntN(m.spec.vocab))
	}
	for _, misses := range []string{missesCPU, missesAuto, missesLink} {
		m.missesBy = misses
		s.Reset()
		begin := time.Now()
		if err := s.advance(t.Context(), prompt, 1); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("prompt of %d, misses by %s: %.0f tok/s\n", len(prompt), misses, float64(len(prompt))/time.Since(begin).Seconds())
	}
}
