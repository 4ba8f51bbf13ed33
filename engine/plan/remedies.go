package plan

import "fmt"

// remedies tries changes one by one, smallest first, and returns those that
// make the pack fit. Nothing is advised that was not tried.
func remedies(p Pack, m Machine, w Wishes) (out []Remedy) {
	try := func(kind, text string, w Wishes) bool {
		best, _ := choose(p, m, w)
		if w.chunkOpen {
			w.Chunk, w.chunkOpen = 0, false // open again for whoever takes it up
		}
		if best.Fits {
			out = append(out, Remedy{kind, text + ": " + best.Placement.Words() + ", " + tokS(best.Speed), w})
		}
		return best.Fits
	}
	if w.KV != "q8" && w.KV != "q4" {
		c := w
		c.KV = "q8"
		try("kv", fmt.Sprintf("8-bit KV instead of %s", w.KV), c)
	}
	for n := w.Context / 2; n >= 1024; n /= 2 {
		c := w
		c.Context = n
		if try("context", fmt.Sprintf("a context of %d instead of %d", n, w.Context), c) {
			break
		}
	}
	if w.Placement != "" {
		c := w
		c.Placement = ""
		if best, _ := choose(p, m, c); best.Fits {
			c.Placement = best.Placement
			try("map", "another placement than "+string(w.Placement), c)
		}
	}
	if !w.NoCard && len(m.Cards) > 0 {
		c := w
		c.NoCard, c.Placement, c.Cards = true, "", nil
		try("cpu", "the CPU alone", c)
	}
	if w.Cards != nil {
		c := w
		c.Cards = nil
		try("cards", "all cards instead of the chosen ones", c)
	}
	if len(out) == 0 {
		if n := largest(p, m, w); n > 0 {
			out = append(out, Remedy{"pack", fmt.Sprintf("a pack of this shape with at most %s of weights", size(n)), w})
		}
	}
	return out
}

// largest is how big the same model could be, by a smaller quantisation, and
// fit. Found by trying; 0 when even a hundredth does not.
func largest(p Pack, m Machine, w Wishes) int64 {
	dense, experts := p.totals(p.Draft && !w.NoDraft)
	for pct := int64(95); pct >= 5; pct -= 5 {
		q := p
		q.Layers = make([]Layer, len(p.Layers))
		for i, l := range p.Layers {
			l.Dense, l.Expert = l.Dense*pct/100, l.Expert*pct/100
			q.Layers[i] = l
		}
		q.Output, q.Embed = p.Output*pct/100, p.Embed*pct/100
		if best, _ := choose(q, m, w); best.Fits {
			return (dense + experts) * pct / 100
		}
	}
	return 0
}
