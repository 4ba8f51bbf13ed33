package plan

import (
	"fmt"
	"sort"
	"strings"
)

// Make plans a pack on a machine. The error is for impossible facts or wishes
// (a card that is not there, an unknown KV type); a pack that does not fit is
// a Plan with Fits false, the amounts that are short, and remedies that were
// each tried and do fit.
func Make(p Pack, m Machine, w Wishes) (Plan, error) {
	if err := check(p, m, w); err != nil {
		return Plan{}, err
	}
	w = defaults(p, w)
	if n := w.RAMCap; n > 0 && m.RAMTotal.Known && n < m.RAMTotal.N {
		// As in a group of processes with this limit.
		m.RAMTotal = Known(n, "the limit that was asked for")
		if m.RAMAvailable.N > n {
			m.RAMAvailable.N = n
		}
	}
	best, others := choose(p, m, w)
	for _, o := range others {
		a := Alternative{o.Placement, o.Fits, lost(o, best, w.Placement != ""), o.Speed}
		if !o.Fits {
			a.Speed = Speed{}
		}
		best.Alternatives = append(best.Alternatives, a)
	}
	best.Reasons = append(reasons(p, m, w, best), best.Reasons...)
	best.Rates = m.rateWords(len(p.routed()) > 0)
	if !best.Fits {
		best.Remedies = remedies(p, m, w)
		best.Speed = Speed{} // what cannot run has no rate
	}
	return best, nil
}

// defaults fills in what the user left open. What was asked for stays.
func defaults(p Pack, w Wishes) Wishes {
	if w.Context == 0 {
		w.Context = 8192
		if p.Trained > 0 {
			w.Context = min(w.Context, p.Trained)
		}
	}
	if w.KV == "" {
		w.KV = "f16"
	}
	if w.Chunk == 0 {
		w.Chunk, w.chunkOpen = 512, true
	}
	return w
}

// choose tries every placement and takes the fastest that fits; where nothing
// fits, the one that is least short. Ties go to the order of Placements.
func choose(p Pack, m Machine, w Wishes) (best Plan, others []Plan) {
	var tried []Plan
	for _, place := range Placements {
		if place != w.Placement && (skip(p, place) || !w.Experts.allows(place) && !skip(p, VRAMPinned)) {
			continue
		}
		tried = append(tried, attempt(p, m, w, place))
	}
	sort.SliceStable(tried, func(i, j int) bool {
		a, b := tried[i], tried[j]
		if w.Placement != "" && (a.Placement == w.Placement) != (b.Placement == w.Placement) {
			return a.Placement == w.Placement // as asked, whatever the others would be
		}
		if a.Fits != b.Fits {
			return a.Fits
		}
		if !a.Fits {
			// Running on the CPU from the file is the plan of last resort:
			// what is short there is what stands in the way at all.
			return rank(a) < rank(b)
		}
		if w.OnCards && onCard(a) != onCard(b) {
			return onCard(a)
		}
		return a.Speed.middle > b.Speed.middle*1.02
	})
	return tried[0], tried[1:]
}

func onCard(p Plan) bool { return p.Placement != AllRAM && p.Placement != AllFile }

func rank(p Plan) int64 {
	if p.Placement == AllFile || p.Placement == VRAMFile && len(p.Cards) > 0 {
		return missing(p)
	}
	return 1<<60 + missing(p)
}

func missing(p Plan) (n int64) {
	for _, s := range p.Short {
		n += max(s.Bytes, 1)
	}
	return n
}

// skip leaves out placements that differ from another one in nothing: a dense
// pack has no experts to put elsewhere, so of the mixed placements it has one.
func skip(p Pack, place Placement) bool {
	for _, l := range p.Layers {
		if l.Experts > 0 {
			return false
		}
	}
	return place == VRAMPinned || place == VRAMFile
}

// lost says why an option was not taken.
func lost(o, best Plan, asked bool) string {
	switch {
	case !o.Fits && len(o.Short) > 0 && o.Short[0].Bytes == 0:
		return o.Short[0].Why
	case !o.Fits:
		s := o.Short[0]
		return fmt.Sprintf("%s short of %s: %s", size(s.Bytes), s.Where, s.Why)
	case !best.Fits:
		return fmt.Sprintf("it would fit, but another one is asked for: %s", tokS(o.Speed))
	case o.Speed.middle < best.Speed.middle:
		return fmt.Sprintf("slower: %s against %s", tokS(o.Speed), tokS(best.Speed))
	case asked && o.Speed.middle > best.Speed.middle*1.02:
		return fmt.Sprintf("faster, but another one is asked for: %s against %s", tokS(o.Speed), tokS(best.Speed))
	}
	if o.Placement == AllFile || o.Placement == VRAMFile {
		return "no faster, and only as long as its pages stay in RAM"
	}
	return "no faster, and it holds more memory"
}

func tokS(s Speed) string {
	return fmt.Sprintf("%g to %g tok/s", s.DecodeLow, s.DecodeHigh)
}

func reasons(p Pack, m Machine, w Wishes, best Plan) (out []string) {
	dense, experts := p.totals(best.Draft)
	if experts > 0 {
		out = append(out, fmt.Sprintf("%s of weights that every token needs, %s of experts", size(dense), size(experts)))
	} else {
		out = append(out, fmt.Sprintf("%s of weights, all needed for every token", size(dense)))
	}
	for i, c := range best.Cards {
		n, name := 0, c.Name
		if len(best.Cards) > 1 {
			name += " " + c.PCI
		}
		for _, l := range best.Layers {
			if l.Card == i {
				n++
			}
		}
		if n == 0 {
			out = append(out, fmt.Sprintf("%s gets no layer: a turn is quicker without it", name))
			continue
		}
		if c.Slots > 0 {
			out = append(out, fmt.Sprintf("%s holds %d layers and %d expert slots", name, n, c.Slots))
		} else {
			out = append(out, fmt.Sprintf("%s holds %d of %d layers", name, n, len(best.Layers)))
		}
	}
	if len(best.Cards) == 0 && len(m.Cards) > 0 && best.Fits {
		out = append(out, "running on the CPU because "+whyNoCard(m, w, best))
	}
	return out
}

// whyNoCard is the sentence behind "running on the CPU because".
func whyNoCard(m Machine, w Wishes, best Plan) string {
	if w.NoCard {
		return "no card is wanted"
	}
	if w.Placement == best.Placement {
		return "that was asked for: " + best.Placement.Words()
	}
	for _, c := range m.Cards {
		if c.Backend == "" && c.Unusable != "" {
			return fmt.Sprintf("%s cannot be used: %s", c.Name, c.Unusable)
		}
	}
	for _, c := range m.Cards {
		if c.Integrated {
			return fmt.Sprintf("%s shares the RAM it would relieve", c.Name)
		}
	}
	for _, a := range best.Alternatives {
		if a.Fits && strings.HasPrefix(string(a.Placement), "vram") {
			return fmt.Sprintf("it is faster for this pack (%s against %s)", tokS(best.Speed), tokS(a.Speed))
		}
	}
	return "nothing fits on the card"
}
