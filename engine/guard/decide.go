package guard

import (
	"fmt"
	"time"
)

// Decide takes one reading and says what to do. It is pure: the same state,
// reading and config give the same decision.
//
// Upwards it moves one step a reading at most, and below Critical only after
// the last step had hold to take effect. Watch never goes beyond GiveBack, or
// ShrinkRAM where copies of experts are what keeps RAM below the floor, so a
// merely tight machine keeps answering. Downwards it moves one step after
// calm of good readings. A missing or old reading holds the step and stops
// growth.
func Decide(s State, r Reading, now time.Time, c Config) (State, Decision) {
	level := LevelOf(r, c)
	if now.Sub(r.At) > stale {
		level = Unknown
	}
	before := s.Step
	s.Level = level
	d := Decision{Level: level}

	switch level {
	case Unknown:
		s.goodAt = time.Time{}
	case Good:
		if s.goodAt.IsZero() {
			s.goodAt = now
		}
		if s.Step > Normal && now.Sub(s.goodAt) >= calm {
			s.Step--
			s.goodAt = now // the next step down needs its own calm
		}
	default:
		s.goodAt = time.Time{}
		if s.Step < ceiling(level, r, c) && (level == Critical || s.raisedAt.IsZero() || now.Sub(s.raisedAt) >= hold) {
			s.Step++
			s.raisedAt = now
		}
		// Steps beyond what the level asks for are left once it is lower
		// again: a paused answer resumes when RAM is merely tight.
		if level == Watch && s.Step >= Pause && now.Sub(s.raisedAt) >= calm {
			s.Step = ShrinkRAM
		}
	}
	if !c.Enabled {
		s.Step = Normal
	}
	if s.Step != before {
		d.Words = append(d.Words, words(before, s.Step, r))
	}
	d.Step = s.Step
	d.MayGrow = c.Enabled && level == Good && s.Step == Normal || !c.Enabled && level != Unknown
	s, d.RAM = copies(s, r, now, c, level, d.MayGrow)
	switch {
	case d.RAM < 0:
		d.Words = append(d.Words, fmt.Sprintf("%s of %s RAM available, %s wanted free: giving back %s of experts held in RAM", size(r.RAMAvailable.N), size(r.RAMTotal.N), size(c.For(r.RAMTotal.N).RAMFloor), size(-d.RAM)))
	case d.RAM > 0:
		d.Words = append(d.Words, fmt.Sprintf("%s of %s RAM available: holding up to %s more of experts in RAM again", size(r.RAMAvailable.N), size(r.RAMTotal.N), size(d.RAM)))
	}
	s, d.Slots = vram(s, r, now, c, level)
	for _, v := range r.VRAM {
		if n := d.Slots[v.PCI]; n < 0 {
			d.Words = append(d.Words, fmt.Sprintf("card %s has %s free, below the reserve of %s: giving back %s of expert slots", v.PCI, size(v.Free.N), size(c.VRAMFloor), size(-n)))
		} else if n > 0 {
			d.Words = append(d.Words, fmt.Sprintf("card %s has room again: adding %s of expert slots", v.PCI, size(n)))
		}
	}
	return s, d
}

// ceiling is the furthest step a level may lead to.
func ceiling(l Level, r Reading, c Config) Step {
	switch l {
	case Watch:
		if r.Held > 0 && r.RAMAvailable.N < c.For(r.RAMTotal.N).RAMFloor {
			return ShrinkRAM
		}
		return GiveBack
	case Act:
		return Pause
	case Critical:
		return Unload
	}
	return Normal
}

// copies decides how many bytes of experts in RAM go or may come. From
// ShrinkRAM on, and from Act on without waiting for it, they go at every
// reading until the floor is free again, a quarter of it more so that the next
// reading does not land just below it; where pressure speaks and bytes do not,
// an eighth goes. They come back in pieces, each after its calm.
func copies(s State, r Reading, now time.Time, c Config, l Level, mayGrow bool) (State, int64) {
	if !c.Enabled || l == Unknown {
		s.ramAt = time.Time{}
		return s, 0
	}
	floor := c.For(r.RAMTotal.N).RAMFloor
	if l != Good {
		s.ramAt = time.Time{}
		if r.Held <= 0 || s.Step < ShrinkRAM && l < Act {
			return s, 0
		}
		n := floor + floor/4 - r.RAMAvailable.N
		if l >= Act {
			n = max(n, r.Held/8, min(r.Held, 64<<20))
		}
		return s, -max(0, min(n, r.Held))
	}
	if !mayGrow || r.Held >= r.Wanted {
		s.ramAt = time.Time{}
		return s, 0
	}
	switch {
	case s.ramAt.IsZero():
		s.ramAt = now
	case now.Sub(s.ramAt) >= ramCalm:
		s.ramAt = now
		if room := r.RAMAvailable.N - floor - floor/2; room > 0 {
			return s, min(room, ramGrow(r.RAMTotal.N), r.Wanted-r.Held)
		}
	}
	return s, 0
}

// vram decides about slots. It reacts to each card alone, at once when another
// program takes memory, and grows again in bounded pieces after vramCalm.
// RAM trouble stops growth on every card: what leaves VRAM needs a home there.
func vram(s State, r Reading, now time.Time, c Config, ram Level) (State, map[string]int64) {
	var out map[string]int64
	at := make(map[string]time.Time, len(r.VRAM))
	for _, v := range r.VRAM {
		if !c.Enabled || ram == Unknown || !v.Free.Known || !v.Total.Known {
			continue // unknown freezes: no growth, no shrink
		}
		floor := v.floor(c)
		since, seen := s.vramAt[v.PCI]
		var n int64
		switch {
		case v.Free.N < floor:
			// A quarter of the floor more than asked, so that the next
			// reading does not land just below it again.
			n = -min(v.Slots, floor-v.Free.N+floor/4)
		case ram == Good && v.Free.N > floor+floor/2:
			if !seen {
				at[v.PCI] = now
			} else if now.Sub(since) >= vramCalm {
				n = min(vramGrow, v.Free.N-floor-floor/4)
				at[v.PCI] = now
			} else {
				at[v.PCI] = since
			}
		}
		if n != 0 {
			if out == nil {
				out = map[string]int64{}
			}
			out[v.PCI] = n
		}
	}
	s.vramAt = at
	return s, out
}

// words puts a change of step into one sentence with the numbers behind it.
func words(from, to Step, r Reading) string {
	why := fmt.Sprintf("%s of %s RAM available", size(r.RAMAvailable.N), size(r.RAMTotal.N))
	if r.PSIFull.Known && r.PSIFull.N >= 1 {
		why += fmt.Sprintf(", memory pressure %.0f %%", r.PSIFull.N)
	}
	if r.SwapIn.Known && r.SwapIn.N >= 1<<20 {
		why += fmt.Sprintf(", %s/s read back from swap", size(int64(r.SwapIn.N)))
	}
	if to < from {
		return fmt.Sprintf("memory has recovered (%s): back to %q", why, to)
	}
	return fmt.Sprintf(sentence[to], why)
}

// sentence has one %s for the numbers.
var sentence = map[Step]string{
	StopPrefetch: "memory is tight (%s): stopped reading experts ahead",
	GiveBack:     "memory is tight (%s): gave back clean pages and unused copies of weights",
	ShrinkRAM:    "memory is short (%s): holding fewer experts in RAM",
	Pause:        "memory is short (%s): paused until it recovers",
	EndRequest:   "memory is nearly gone (%s): ended the answer, its text is kept",
	Unload:       "memory is nearly gone (%s): unloaded the model",
}

func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
