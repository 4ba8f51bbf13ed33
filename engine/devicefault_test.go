package engine

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"outcrop/engine/token"
	"outcrop/gpu/compute"
)

// fakeCard is a card in memory whose kernels do nothing, so that whole passes
// run for the sake of their calls; only the logits of one token of a tiny model
// are written, which a kernel finds by their size. It counts launches by kernel.
type fakeCard struct {
	*compute.Fake
	mu       sync.Mutex
	launches map[string]int
	value    float32 // what all logits become
	nvidia   int     // compute capability that it claims
}

func newFakeCard() *fakeCard {
	c := &fakeCard{Fake: &compute.Fake{}, launches: map[string]int{}}
	c.Other = func(x *compute.FakeCall) error {
		c.mu.Lock()
		c.launches[x.Name]++
		v := c.value
		c.mu.Unlock()
		for i := range x.Len() {
			if b := x.Bytes(i); len(b) == 4*tinyVocab {
				for j := range asFloats(b) {
					asFloats(b)[j] = v
				}
			}
		}
		return nil
	}
	return c
}

func (c *fakeCard) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.launches {
		n += k
	}
	return n
}

func (c *fakeCard) breaks(f compute.Fault, nan bool) {
	c.Break(f)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.value = 0
	if nan {
		c.value = float32(math.NaN())
	}
}

func (c *fakeCard) open(t *testing.T) *compute.Device {
	t.Helper()
	infos, err := c.Devices()
	if err != nil {
		t.Fatal(err)
	}
	// Matrices are joined where buffers may be cut between their results. Widths of
	// real models are multiples of 64 floats, those of tiny ones are not.
	infos[0].Align = 4
	infos[0].Features.Nvidia = c.nvidia
	d, err := compute.Open(c.Fake, infos[0], compute.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// faultPrompt is longer than what is recorded, so that it is a prompt.
var faultPrompt = bytesOf("a prompt of some tokens")

// answerOn asks for a few tokens; the session may be used again afterwards.
func answerOn(s *Session, prompt []token.ID) error {
	_, err := s.Generate(context.Background(), Request{Prompt: prompt, MaxTokens: 4, IgnoreEOG: true}, nil)
	return err
}

// TestDeviceFaults: what breaks on a card ends in an error that names it, the
// session and the model close, nothing stays on the card, and the same pack
// loads on the CPU.
func TestDeviceFaults(t *testing.T) {
	for _, arch := range []string{"llama", "qwen35"} { // attention alone, and with recurrent states
		path := tinySpec{arch: arch, seed: 3}.write(t)
		t.Run(arch, func(t *testing.T) { deviceFaults(t, path) })
	}
}

func deviceFaults(t *testing.T, path string) {
	for name, x := range map[string]struct {
		load, session, prefill, decode *compute.Fault // what breaks, and when
		want                           error
		words                          string
		nan                            bool // logits are not numbers, when the fault begins
		again                          bool // the session works afterwards
	}{
		"memory at load":          {load: &compute.Fault{AllocOver: 64 << 10}, want: compute.ErrMemory, words: "layers 0 to 1 on fake card 0"},
		"pinned memory at load":   {load: &compute.Fault{PinFails: true}, want: compute.ErrMemory, words: "pin"},
		"kernel does not build":   {load: &compute.Fault{BuildFails: "rows"}, want: compute.ErrBuild, words: "as ordered"},
		"copy at load":            {load: &compute.Fault{CopyFails: 3}, words: "FAKE_COPY"},
		"lost at load":            {load: &compute.Fault{LostCopy: 4}, want: ErrCardLost, words: "fake card 0"},
		"memory for a session":    {session: &compute.Fault{AllocFails: 1}, want: compute.ErrMemory, words: "caches of layers 0 to 1", again: true},
		"memory in prefill":       {prefill: &compute.Fault{AllocFails: 1}, want: compute.ErrMemory, words: "layers 0 to 1 on fake card 0", again: true},
		"copy in prefill":         {prefill: &compute.Fault{CopyFails: 1}, words: "FAKE_COPY", again: true},
		"lost in prefill":         {prefill: &compute.Fault{LostAfter: 5}, want: ErrCardLost, words: "load the pack again without this card"},
		"NaN in prefill":          {prefill: &compute.Fault{}, nan: true, want: ErrNotFinite, words: "a device computes wrongly", again: true},
		"pinned memory in decode": {decode: &compute.Fault{PinFails: true}, want: compute.ErrMemory, words: "pin", again: true},
		"copy in decode":          {decode: &compute.Fault{CopyFails: 2}, words: "FAKE_COPY", again: true},
		"lost in decode":          {decode: &compute.Fault{LostAfter: 3}, want: ErrCardLost, words: "fake card 0"},
		"NaN in decode":           {decode: &compute.Fault{}, nan: true, want: ErrNotFinite, words: "a device computes wrongly", again: true},
	} {
		t.Run(name, func(t *testing.T) {
			card := newFakeCard()
			d := card.open(t)
			before := card.Live()
			check := func(err error) {
				t.Helper()
				if err == nil {
					t.Fatal("no error")
				}
				if x.want != nil && !errors.Is(err, x.want) || !strings.Contains(err.Error(), x.words) {
					t.Errorf("error %q, want one of %v with %q", err, x.want, x.words)
				}
			}
			p, err := OpenPack(path)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			o := Options{Threads: 2, Context: 256, Draft: "off", Devices: []*compute.Device{d}}
			if x.load != nil {
				card.Break(*x.load)
				m, err := Load(context.Background(), p, o)
				if err == nil {
					m.Close()
				}
				check(err)
			} else {
				m, err := Load(context.Background(), p, o)
				if err != nil {
					t.Fatal(err)
				}
				if x.session != nil {
					card.breaks(*x.session, false)
					_, err := m.NewSession()
					check(err)
				}
				s, err := m.NewSession()
				if err != nil {
					t.Fatal(err)
				}
				if x.session != nil {
				} else if x.prefill != nil {
					card.breaks(*x.prefill, x.nan)
					check(answerOn(s, faultPrompt))
				} else {
					if err := s.advance(context.Background(), faultPrompt, 1); err != nil {
						t.Fatal(err)
					}
					card.breaks(*x.decode, x.nan)
					check(s.advance(context.Background(), []token.ID{'x'}, 1))
				}
				card.breaks(compute.Fault{}, false)
				if err := answerOn(s, bytesOf("another prompt")); (err == nil) != x.again {
					t.Errorf("afterwards: %v, want an error: %v", err, !x.again)
				}
				s.Close()
				if err := m.Close(); err != nil {
					t.Errorf("close: %v", err)
				}
			}
			card.Break(compute.Fault{})
			if used, pinned := d.Used(); d.Err() == nil && (used != 0 || pinned > 2*stagingBytes) {
				t.Errorf("%d bytes on the card and %d pinned stayed", used, pinned)
			}
			d.Close()
			if n := card.Live(); n > before {
				t.Errorf("%d things stayed on the closed card, %d before", n, before)
			}
			cpu, err := Load(context.Background(), p, Options{Threads: 2, Context: 256})
			if err != nil {
				t.Fatalf("load on the CPU: %v", err)
			}
			defer cpu.Close()
			if err := answerOn(session(t, cpu), faultPrompt); err != nil {
				t.Errorf("on the CPU: %v", err)
			}
		})
	}
}

// stagingBytes is what a device keeps pinned for itself once it has copied.
const stagingBytes = 4 << 20
