//go:build slow

package engine

import (
	"strings"
	"testing"

	"outcrop/engine/token"
)

// TestDevicePick: tokens drawn on the device are those that the host draws from
// the logits, for every kind of setting, with drafts and without.
func TestDevicePick(t *testing.T) {
	devs := devices(t, 1)
	for _, f := range someFixtures(t, "qwen35-nextn", "deepseek2") {
		for _, by := range []string{"off", "lookup"} {
			if by == "lookup" && strings.Contains(f.dir, "deepseek") {
				continue // one with drafts is enough
			}
			m := load(t, f.model(), Options{Devices: devs, Threads: 2, Context: 256, Draft: by})
			s := session(t, m)
			if !m.cards.canPick() {
				t.Fatal("the device draws nothing")
			}
			prompt := append(append([]token.ID{}, f.prompt[:20]...), f.prompt[:20]...)
			for name, x := range map[string]Sampling{
				"greedy":      {},
				"one of one":  {Temperature: 1, TopK: 1, Seed: 5},
				"all":         {Temperature: 0.9, Seed: 6},
				"top k":       {Temperature: 0.8, TopK: 20, Seed: 7},
				"top p":       {Temperature: 1.2, TopP: 0.9, Seed: 8},
				"min p":       {Temperature: 0.7, MinP: 0.05, Seed: 9},
				"all filters": {Temperature: 0.8, TopK: 40, TopP: 0.95, MinP: 0.02, Seed: 10},
			} {
				r := Request{Prompt: prompt, MaxTokens: 40, IgnoreEOG: true, Sampling: x}
				on, _, res := generate(t, s, r)
				if len(s.p.drawn) == 0 {
					t.Errorf("%s, drafts %s: the last token was drawn by the host", name, by)
				}
				r.LogProbs = -1 // wants logits
				want, _, _ := generate(t, s, r)
				if n := same(on, want); n < len(want) {
					t.Errorf("%s, drafts %s: ids part after %d of %d", name, by, n, len(want))
				}
				if by == "lookup" && name == "greedy" {
					t.Logf("%d of %d drafts right", res.Accepted, res.Drafted)
				}
			}
		}
	}
}
