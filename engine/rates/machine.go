package rates

import (
	"outcrop/engine/plan"
	"outcrop/gpu"
)

// Usable says what a card can be used through, or why it cannot be used.
type Usable struct {
	Backend   string // "cuda", "level zero", "opencl"; empty: not at all
	Why       string // then why not
	MaxAlloc  int64  // bytes of one allocation; 0: the card's own limit
	MaxPinned int64  // bytes of one pinned allocation; 0: the card's own limit
	Chunk     int    // prompt tokens per step, see plan.Card
}

// Facts is what a machine is right now, beside what it was measured to be.
type Facts struct {
	Machine gpu.Machine
	Now     []gpu.CardReadings // sensors; free VRAM is taken from here
	Usable  map[gpu.PCI]Usable // cards that are not in it cannot be used
	Work    Work               // what the rates were measured with
}

// Machine gives the planner its machine: memory as it is now, rates as they
// were measured. A rate that was not measured is left open, or taken from the
// card's data sheet and marked as not measured.
func (s *Store) Machine(f Facts) plan.Machine {
	h := f.Machine.Host
	f.Work.Machine = f.Machine
	w := f.Work.defaults()
	out := plan.Machine{RAMTotal: amount(h.RAM()), RAMAvailable: amount(h.Available()), Threads: w.Threads}
	if c := s.cpu(cpuKey(w)); c != nil {
		for _, t := range c.Experts {
			if t.Threads <= w.Threads && t.PerSecond > out.CPU.PerSecond {
				// More threads than memory can feed are no faster, and the
				// engine loses nothing by them.
				out.CPU = plan.Rate{PerSecond: t.PerSecond, Measured: true}
			}
		}
	}
	if w.Pack != "" {
		if key, err := diskKey(w.Pack); err == nil {
			if d := s.disk(key); d != nil {
				out.DiskRandom = plan.Rate{PerSecond: d.Expert, Measured: d.Expert > 0}
				out.DiskStream = plan.Rate{PerSecond: d.Stream, Measured: d.Stream > 0}
			}
		}
	}
	for _, k := range f.Machine.Cards {
		out.Cards = append(out.Cards, s.planCard(k, f))
	}
	return out
}

func (s *Store) planCard(k gpu.Card, f Facts) plan.Card {
	u, listed := f.Usable[k.PCI]
	c := plan.Card{
		PCI: string(k.PCI), Name: k.Name, Driver: k.Driver, Backend: u.Backend, Total: amount(k.Memory.Total), Chunk: u.Chunk,
		Display: len(k.Displays) > 0, Integrated: k.Memory.Shared,
		MaxAlloc: least(k.Caps.AllocMax, u.MaxAlloc), MaxPinned: least(k.Caps.HostAllocMax, u.MaxPinned),
		Free: plan.Amount{Why: "the card gave no reading"},
	}
	if c.Backend == "" {
		switch c.Unusable = u.Why; {
		case c.Unusable != "":
		case k.Virtual:
			c.Unusable = "there is no card behind it"
		case k.Driver == "":
			c.Unusable = "no kernel driver is bound to it"
		case !listed:
			c.Unusable = "no compute driver opened it"
		default:
			c.Unusable = "it cannot be used"
		}
	}
	for _, r := range f.Now {
		if r.PCI == k.PCI {
			c.Free = amount(r.VRAM.Free)
			if r.VRAM.Total.Known {
				c.Total = amount(r.VRAM.Total)
			}
		}
	}
	if g := k.Memory.GBs; g.Known {
		c.Device = plan.Rate{PerSecond: float64(g.Value) * 1e9}
	}
	if m := s.card(cardKey(k)); m != nil {
		c.HostToDevice = plan.Rate{PerSecond: m.HostToDevice, Measured: true}
		c.HandOff = m.HandOff
		if m.Read > 0 && m.Multiply > 0 {
			c.Device = plan.Rate{PerSecond: m.Read, Measured: true}
			c.Prefill = plan.Rate{PerSecond: m.Multiply, Measured: true}
		}
	} else if g := k.Link.GBs(); g.Known {
		c.HostToDevice = plan.Rate{PerSecond: g.Value * 1e9}
	}
	return c
}

// least is the smaller of two limits of which 0 stands for none.
func least(a, b int64) int64 {
	switch {
	case a == 0:
		return b
	case b == 0:
		return a
	}
	return min(a, b)
}

func amount(r gpu.Reading[int64]) plan.Amount {
	return plan.Amount{N: r.Value, Known: r.Known, Source: r.Source, Why: r.Why}
}
