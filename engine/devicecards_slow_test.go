//go:build slow

package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"outcrop/engine/token"
	"outcrop/gpu/compute"
)

// cardCuts are the ways that tests lay n layers on devices.
func cardCuts(n int) map[string][]int {
	return map[string][]int{
		"two":        {n / 2, n - n/2},
		"two uneven": {1, n - 1},
		"three":      {n - 2, 1, 1},
		"CPU first":  {n / 2, n - n/2 - 1}, // a layer stays with the CPU
	}
}

// somePrompt draws n tokens.
func somePrompt(m *Model, n int) []token.ID {
	rng := rand.New(rand.NewPCG(7, uint64(n)))
	ids := make([]token.ID, n)
	for i := range ids {
		ids[i] = token.ID(rng.IntN(m.spec.vocab))
	}
	return ids
}

// TestCardsFlow: prompts of one to five pieces give the same logits to the last
// bit through a pipeline of two and three devices as through one device, and so
// do the answers after them, with windows of drafts and without; prompts go on
// from a common prefix; a prompt that was cancelled leaves nothing behind.
func TestCardsFlow(t *testing.T) {
	devs := devices(t, 3)
	const chunk = 16
	for _, pack := range []string{"llama-ropefreqs", "qwen35-nextn", "qwen3moe"} {
		for _, draft := range []string{"off", "auto"} {
			if draft == "auto" && pack != "qwen35-nextn" {
				continue
			}
			path := fixturePath(pack)
			one := load(t, path, Options{Devices: devs[:1], Threads: 2, Context: 256, Chunk: chunk, Draft: draft})
			type answer struct {
				logits []float32
				ids    []token.ID
			}
			want := map[int]answer{}
			lengths := []int{chunk, chunk + 1, 2 * chunk, 3*chunk - 3, 4*chunk + 9, 5 * chunk}
			for _, n := range lengths {
				s := session(t, one)
				if _, err := s.sync(t.Context(), somePrompt(one, n)); err != nil {
					t.Fatal(err)
				}
				a := answer{logits: slices.Clone(s.fresh)}
				a.ids, _, _ = generate(t, s, Request{Prompt: somePrompt(one, n), MaxTokens: 12, IgnoreEOG: true})
				want[n] = a
				s.Close()
			}
			for name, cut := range cardCuts(len(one.layers)) {
				if pack == "qwen3moe" && name != "three" || draft == "auto" && name == "two" {
					continue // the others have shown it
				}
				t.Run(fmt.Sprintf("%s/%s/%s", pack, draft, name), func(t *testing.T) {
					m := load(t, path, Options{Devices: devs[:len(cut)], Threads: 2, Context: 256, Chunk: chunk, Draft: draft, Placement: Placement{Layers: cut}})
					if list := m.cards.pieces(4*chunk+9, 0); !slices.Equal(list, []int{chunk, chunk, chunk, chunk, 9}) || m.cards.pieces(chunk, 0) != nil {
						t.Fatalf("pieces of %v and %v tokens, want those of %d and none", list, m.cards.pieces(chunk, 0), chunk)
					}
					m.cards.chain = name != "two" // whatever cores there are
					exact := name != "CPU first"  // that layer is computed by another processor
					check := func(s *Session, n int) {
						t.Helper()
						d := 0.0
						for i, v := range want[n].logits {
							d = max(d, float64(max(v-s.fresh[i], s.fresh[i]-v)))
						}
						if exact && d != 0 || d > 2e-2 {
							t.Errorf("%d tokens: logits differ by up to %g", n, d)
						}
					}
					s := session(t, m)
					for _, n := range lengths { // each prompt is another timeline
						if _, err := s.sync(t.Context(), somePrompt(m, n)); err != nil {
							t.Fatal(err)
						}
						check(s, n)
						ids, _, res := generate(t, s, Request{Prompt: somePrompt(m, n), MaxTokens: 12, IgnoreEOG: true})
						if k := same(ids, want[n].ids); exact && k < len(want[n].ids) {
							t.Errorf("%d tokens, then %d drafts of which %d right: ids part after %d", n, res.Drafted, res.Accepted, k)
						}
					}
					// A longer prompt that begins as the last one does.
					long := somePrompt(m, 5*chunk)
					reused, err := s.sync(t.Context(), append(slices.Clone(long), long[:3*chunk]...))
					if err != nil || reused < 4*chunk {
						t.Errorf("a longer prompt: %d tokens reused, %v", reused, err)
					}
					after := slices.Clone(s.fresh)
					s.Reset()
					if _, err := s.sync(t.Context(), append(slices.Clone(long), long[:3*chunk]...)); err != nil {
						t.Fatal(err)
					}
					if exact && !m.recurrent && !slices.Equal(after, s.fresh) {
						t.Error("a prompt that goes on from another gives other logits than in one piece")
					}
					// Cancelled in the middle.
					s.Reset()
					ctx, cancel := context.WithCancel(t.Context())
					m.options.Progress = func(_ string, done, total int64) {
						if done >= 2*chunk {
							cancel()
						}
					}
					_, err = s.sync(ctx, long)
					m.options.Progress = nil
					if !errors.Is(err, context.Canceled) {
						t.Errorf("cancelled: %v", err)
					}
					if len(s.ids) != s.st.pos || s.st.pos < 2*chunk || s.st.pos >= len(long) {
						t.Errorf("cancelled: %d tokens, position %d", len(s.ids), s.st.pos)
					}
					if _, err := s.sync(t.Context(), long); err != nil {
						t.Fatal(err)
					}
					check(s, 5*chunk)
				})
			}
		}
	}
}

// TestCardsUneven: pieces of several lengths give the same logits to the last bit
// on two and three devices as one after the other on one, with memory that both
// of two devices know and with a copy between them.
func TestCardsUneven(t *testing.T) {
	devs := devices(t, 3)
	lists := [][]int{{8, 20, 32, 12}, {32, 1, 9, 9}}
	for _, pack := range []string{"llama-ropefreqs", "qwen35-nextn"} {
		path := fixturePath(pack)
		o := Options{Devices: devs[:1], Threads: 2, Context: 256, Chunk: 32, Draft: "off"}
		one := load(t, path, o)
		n := len(one.layers)
		for name, cut := range map[string][]int{"two": {n / 2, n - n/2}, "three": {n - 2, 1, 1}, "two, copied": {1, n - 1}} {
			if pack == "qwen35-nextn" && name != "two" {
				continue
			}
			o.Devices, o.Placement = devs[:len(cut)], Placement{Layers: cut}
			m := load(t, path, o)
			if name == "two, copied" {
				for _, h := range m.cards.runs[0].hops {
					own, err := m.cards.runs[0].dev.Host(int64(len(h.from.Bytes())))
					if err != nil {
						t.Fatal(err)
					}
					h.from.Free()
					h.from, h.one = own, false
				}
			} else if !m.cards.runs[0].hops[0].one {
				t.Fatal("devices of one driver do not share memory")
			}
			for _, list := range lists {
				total := 0
				for _, k := range list {
					total += k
				}
				ids, s := somePrompt(one, total), session(t, one)
				at := 0
				for i, k := range list {
					if err := s.advance(t.Context(), ids[at:at+k], i/(len(list)-1)); err != nil {
						t.Fatal(err)
					}
					at += k
				}
				want := slices.Clone(s.fresh)
				s.Close()
				m.cards.cutBy = func(int) []int { return slices.Clone(list) }
				before := m.cards.stageTimes()
				s = session(t, m)
				if err := s.prefill(t.Context(), ids, 1, nil); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(s.fresh, want) {
					t.Errorf("%s, %s, pieces %v: logits differ", pack, name, list)
				}
				for i, x := range stagesSince(m.cards.stageTimes(), before) {
					if x.Pieces != int64(len(list)) || x.Tokens != int64(total) || x.Busy <= 0 || x.Launch > x.Busy || i > 0 && x.Launch <= 0 {
						t.Errorf("%s, %s, pieces %v: %+v", pack, name, list, x)
					}
				}
				s.Close()
			}
		}
	}
}

// TestCardsStarter: the known answers of the starter on two devices, its draft
// block included.
func TestCardsStarter(t *testing.T) {
	devs := devices(t, 2)
	g := readGolden(t)
	n := 0
	for _, split := range [][]int{{3, 5}} {
		m := starter(t, Options{Threads: 2, Context: 512, Chunk: 8, Devices: devs, Placement: Placement{Layers: split}})
		s := session(t, m)
		for _, p := range g.Prompts[:3] {
			ids, _, _ := generate(t, s, Request{Prompt: p.PromptIDs, MaxTokens: len(p.IDs), IgnoreEOG: true})
			if k := same(ids, p.IDs); k < len(p.IDs) {
				t.Errorf("%v, %q: ids part after %d of %d", split, p.Prompt, k, len(p.IDs))
			}
			if m.cards.pieces(len(p.PromptIDs), 0) != nil {
				n++
			}
		}
	}
	if n == 0 {
		t.Error("no prompt was cut into pieces")
	}
}

// TestCardLostGolden: the first of two cards is lost in the middle of a prompt,
// and again in the middle of an answer; the other one, with the pack loaded
// anew, gives the known answer.
func TestCardLostGolden(t *testing.T) {
	plain := devices(t, 1)[0]
	var drv compute.Driver
	for _, d := range compute.Drivers() {
		if d.Name() == plain.Info().Driver {
			drv = d
		}
	}
	p := readGolden(t).Prompts[0]
	for _, when := range []string{"prefill", "decode"} {
		t.Run(when, func(t *testing.T) {
			lossy := &compute.Lossy{Driver: drv}
			first, err := compute.Open(lossy, plain.Info(), compute.Options{Plain: plain.Info().CPU})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { first.Close() })
			o := Options{Threads: 2, Context: 512, Chunk: 8, Draft: "off", Devices: []*compute.Device{first, plain}, Placement: Placement{Layers: []int{4, 4}}}
			m := starter(t, o)
			s := session(t, m)
			if when == "prefill" {
				lossy.LoseAfter(60) // of some hundred
			}
			n := 0
			_, err = s.Generate(t.Context(), Request{Prompt: p.PromptIDs, MaxTokens: len(p.IDs), IgnoreEOG: true}, func(st Step) error {
				if n++; n == 3 && when == "decode" {
					lossy.LoseAfter(2)
				}
				return nil
			})
			if !errors.Is(err, ErrCardLost) || when == "prefill" && n > 0 || when == "decode" && n < 3 {
				t.Fatalf("after %d tokens: %v, want a lost card", n, err)
			}
			s.Close()
			m.Close()
			o.Devices, o.Placement = []*compute.Device{plain}, Placement{}
			s = session(t, starter(t, o))
			ids, _, _ := generate(t, s, Request{Prompt: p.PromptIDs, MaxTokens: len(p.IDs), IgnoreEOG: true})
			if k := same(ids, p.IDs); k < len(p.IDs) {
				t.Errorf("on the other card: ids part after %d of %d", k, len(p.IDs))
			}
		})
	}
}
