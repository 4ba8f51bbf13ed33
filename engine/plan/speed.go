package plan

import (
	"fmt"
	"math"
	"time"
)

// Rates used where nothing was measured yet, in bytes a second. They are on the
// careful side and widen the range; Speed.Measured is false when one is used.
const (
	guessDevice  = 150e9
	guessLink    = 6e9
	guessCPU     = 10e9
	guessRandom  = 0.4e9
	guessStream  = 1.0e9
	guessHandOff = 60 * time.Microsecond
	launch       = 6 * time.Microsecond // one kernel launch; about eight a layer
	// batchGain is how many times more weight bytes a second a processor
	// handles when one read serves many prompt tokens. From 11.2 and 148
	// tok/s on a CPU and 218 and 11,574 on a card for the same files
	// (llama.cpp, 1.5B and 8B Q4_K_M), rounded down.
	batchGainCPU  = 6
	batchGainCard = 12
	// skew turns an even share of experts into the share of hits that adaptive
	// placement reaches on text with a theme: 16 % of slots gave between a
	// third and 87 % of hits on an A770 (strata.md 6.1); 0.16^0.35 is 53 %.
	skew = 0.35
	// draftGain is what accepted drafts are worth at best (1.6 to 1.8 times
	// was seen with MTP, strata.md 6.1).
	draftGain = 1.5
)

func (r Rate) or(guess float64, measured *bool) float64 {
	if r.PerSecond > 0 {
		*measured = *measured && r.Measured
		return r.PerSecond
	}
	*measured = false
	return guess
}

// routed lists the layers with experts.
func (p Pack) routed() (out []int) {
	for i, l := range p.Layers {
		if l.Experts > 0 {
			out = append(out, i)
		}
	}
	return out
}

// rateWords says how fast a machine is taken to be, and how that is known.
func (m Machine) rateWords(experts bool) (out []string) {
	say := func(what string, r Rate, guess float64) {
		how := "measured here"
		switch {
		case r.PerSecond <= 0:
			r.PerSecond, how = guess, "a careful guess, not measured"
		case !r.Measured:
			how = "by the data sheet, not measured"
		}
		out = append(out, fmt.Sprintf("%s: %.1f GB/s, %s", what, r.PerSecond/1e9, how))
	}
	say("weights on the CPU", m.CPU, guessCPU)
	if experts {
		say("disk, an expert at a time", m.DiskRandom, guessRandom)
	}
	for _, c := range m.Cards {
		if c.Backend != "" {
			say("memory of "+c.Name, c.Device, guessDevice)
			say("link to "+c.Name, c.HostToDevice, guessLink)
		}
	}
	return out
}

// tally adds up the time of one token by cause.
type tally struct {
	card, cpu, link, disk, hand float64 // seconds
}

func (t tally) total() float64 { return t.card + t.cpu + t.link + t.disk + t.hand }

// speed estimates decode and prefill from bytes and rates: the slow end with
// experts used evenly, the fast end with skewed use and accepted drafts.
func (b *builder) speed() {
	s := &b.pl.Speed
	s.Measured = true
	slow, fast := b.token(1, &s.Measured), b.token(skew, &s.Measured)
	widen := 1.0
	if !s.Measured {
		widen = 1.4
	}
	gain := 1.0
	if b.pl.Draft {
		gain = draftGain
	}
	low, high := 0.75/slow.total(), gain*0.95/fast.total()
	s.DecodeLow, s.DecodeHigh = round(low/widen), round(high*widen)
	s.middle = round(low) + round(high)
	p := b.prompt(&s.Measured)
	s.PrefillLow, s.PrefillHigh = round(0.5/p/widen), round(1.1/p*widen)
	s.Terms = b.terms(slow)
}

func round(x float64) float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return 0
	}
	scale := math.Pow(10, 2-math.Ceil(math.Log10(math.Max(x, 1e-3)))) // two digits
	return math.Round(x*scale) / scale
}

// token is the time of one decoded token. exp bends the share of hits.
func (b *builder) token(exp float64, measured *bool) (t tally) {
	cpu := b.m.CPU.or(guessCPU, measured)
	missing, denseMissing := b.missing(exp)
	for i, l := range b.layers {
		if l.Draft {
			continue
		}
		pl := b.pl.Layers[i]
		base := float64(l.Dense + l.kv(b.pl.Context, b.pl.KV)/2) // half full on average
		used := float64(l.Used) * float64(l.Expert)
		if pl.Card < 0 {
			t.cpu += (base + used) / cpu
			// A rate that nothing hangs on is not a guess behind the answer.
			if absent := denseMissing*float64(l.Dense) + missing*used; absent > 0 && (pl.File > 0 || b.pl.Placement == AllFile) {
				t.disk += absent / b.m.DiskRandom.or(guessRandom, measured)
			}
			continue
		}
		c := b.cards[pl.Card]
		device := c.Device.or(guessDevice, measured)
		hit := hits(l, pl.Slots, exp)
		t.card += (base+used*hit)/device + 8*launch.Seconds()
		if miss := used * (1 - hit); miss > 0 {
			switch {
			case b.pl.Placement == VRAMPinned:
				t.link += miss / c.HostToDevice.or(guessLink, measured)
			case pl.File > 0:
				if missing > 0 {
					t.disk += missing * miss / b.m.DiskRandom.or(guessRandom, measured)
				}
				t.cpu += miss / cpu
				t.hand += c.handOff()
			default:
				t.cpu += miss / cpu
				t.hand += c.handOff()
			}
		}
	}
	for _, x := range b.links {
		t.hand += x.TokenUS / 1e6
	}
	if out, last := float64(b.p.Output), b.pl.Layers[len(b.layers)-1].Card; last >= 0 {
		t.card += out / b.cards[last].Device.or(guessDevice, measured)
	} else {
		t.cpu += max(out, float64(b.p.Embed)*boolTo(b.p.Output == 0)) / cpu
	}
	return t
}

func boolTo(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

func (c Card) handOff() float64 {
	if c.HandOff > 0 {
		return c.HandOff.Seconds()
	}
	return guessHandOff.Seconds()
}

// hits is the share of a layer's expert reads that find a slot.
func hits(l Layer, slots int, exp float64) float64 {
	if l.Experts == 0 || slots >= l.Experts {
		return 1
	}
	even := float64(slots) / float64(l.Experts)
	if len(l.HotShare) < slots {
		return math.Pow(even, exp)
	}
	sum := 0.0
	for _, s := range l.HotShare[:slots] {
		sum += s
	}
	return min(1, max(sum, even))
}

// prompt is the time of one prompt token when a chunk shares each weight read.
func (b *builder) prompt(measured *bool) float64 {
	cpu := b.m.CPU.or(guessCPU, measured)
	chunk := float64(max(b.pl.Chunk, 1))
	absent, _ := b.missing(1)
	stages := make([]float64, 1+len(b.cards)) // the CPU, and each card
	flows := true                             // nobody waits for anybody within a layer
	for i, l := range b.layers {
		if l.Draft {
			continue
		}
		pl := b.pl.Layers[i]
		t := &stages[pl.Card+1]
		active := float64(l.Dense) + float64(l.Used)*float64(l.Expert)
		// A chunk touches nearly every expert once.
		touched := float64(l.Experts-pl.Slots) * float64(l.Expert) * min(1, chunk*float64(l.Used)/float64(max(l.Experts, 1)))
		if pl.Card < 0 {
			*t += active/(cpu*batchGainCPU) + (float64(l.Dense)+touched)/cpu/chunk
		} else {
			c := b.cards[pl.Card]
			flows = flows && pl.Slots == l.Experts
			device := c.Device.or(guessDevice, measured)
			rate := device * batchGainCard
			if c.Prefill.PerSecond > 0 {
				rate = c.Prefill.PerSecond
			}
			*t += active / rate
			if b.pl.Placement == VRAMPinned {
				*t += touched / c.HostToDevice.or(guessLink, measured) / chunk
			} else {
				out := float64(l.Used) * float64(l.Expert) * (1 - hits(l, pl.Slots, 1))
				*t += out/(cpu*batchGainCPU) + touched/cpu/chunk
			}
		}
		if pl.File > 0 && absent > 0 {
			*t += touched * absent / b.m.DiskStream.or(guessStream, measured) / chunk
		}
	}
	return pipeline(stages, flows)
}

// pipeline is the time of a prompt whose pieces go through stages: all of them at
// work at once, each with a piece of its own, where flows; the slowest sets the
// pace, and filling and emptying takes the others' time once. Four pieces for
// each stage are the usual (engine: cards.piece).
func pipeline(stages []float64, flows bool) float64 {
	var sum, slowest, used float64
	for _, t := range stages {
		sum += t
		slowest = max(slowest, t)
		if t > 0 {
			used++
		}
	}
	if used < 2 || !flows {
		return sum
	}
	pieces := 4 * used
	return sum/pieces + slowest*(1-1/pieces)
}

func (b *builder) terms(t tally) (out []Term) {
	add := func(name string, s float64, why string, args ...any) {
		if s > 0 {
			out = append(out, Term{name, math.Round(s*1e5) / 100, fmt.Sprintf(why, args...)})
		}
	}
	add("card", t.card, "weights, experts in slots and cache read from VRAM")
	add("cpu", t.cpu, "weights read by the CPU")
	add("link", t.link, "experts read over the link from pinned RAM")
	absent, _ := b.missing(1)
	add("disk", t.disk, "experts that are not in RAM, read from the file (RAM holds %.0f %% of them)", 100*(1-absent))
	add("hand-off", t.hand, "one waiting for the other: card and CPU once a layer, cards once for each hand-over")
	return out
}
