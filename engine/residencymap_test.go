package engine

import (
	"math"
	"testing"
)

func TestResidencyMap(t *testing.T) {
	for name, c := range map[string]struct {
		o    Options
		want Tier
	}{
		"all fits in RAM":    {Options{}, TierRAM},
		"used from the file": {Options{FileTier: true}, TierFile},
		"held as copies":     {Options{ExpertRAM: -1}, TierRAM},
	} {
		c.o.Threads, c.o.Draft = 1, "off"
		m := starterModel(t, c.o)
		if _, _, err := answerOf(t, m, 12, func(int) { m.Residency() }); err != nil {
			t.Fatal(err)
		}
		r := m.Residency()
		if r == nil || r.Layers != 8 || r.Experts != 16 || len(r.Tier) != 128 {
			t.Fatalf("%s: %+v", name, r)
		}
		for i, tier := range r.Tier {
			if tier != c.want {
				t.Fatalf("%s: expert %d is in tier %v, want %v", name, i, tier, c.want)
			}
		}
		for l := range r.Layers {
			var sum float64
			for e := range r.Experts {
				sum += r.Use[l*r.Experts+e]
			}
			if math.Abs(sum-1) > 1e-6 {
				t.Errorf("%s: shares of layer %d add up to %v", name, l, sum)
			}
		}
	}
}
