package gpu

import (
	"cmp"
	"fmt"
)

// VRAM is the answer to every question about a card's free memory. All parts of
// the program take it from [FreeVRAM] (through a Sampler) and from nowhere else:
// in Niko1221/Strata#1545 two readings of the same number disagreed, and the
// second one advised a setting that could not help.
type VRAM struct {
	Total Reading[int64] `json:"total"`
	Used  Reading[int64] `json:"used"`
	Free  Reading[int64] `json:"free"`
	Plan  Reading[int64] `json:"plan"` // bytes a plan may count on: the free ones when known, else a careful share of the total
	Procs []ProcVRAM     `json:"procs"`
	// Listed is how many processes Procs has and who told, or why they are not told.
	Listed Reading[int] `json:"listed"`
}

// Of gives what a process and those that it started hold in the card's memory, as
// the driver counts it: while kernels are made, copies of the engine hold some.
func (v VRAM) Of(pid int) Reading[int64] {
	if !v.Listed.Known {
		return Unknown[int64](v.Listed.Source, v.Listed.Why)
	}
	out := Unknown[int64](v.Listed.Source, "this process is not among those that use the card")
	for _, p := range v.Procs {
		if p.PID != pid && p.Parent != pid {
			continue
		}
		if p.Unknown != "" {
			return Unknown[int64](v.Listed.Source, p.Unknown)
		}
		out = Known(out.Value+p.VRAM, v.Listed.Source)
	}
	return out
}

// ProcVRAM is one process's share as the kernel tells it.
type ProcVRAM struct {
	PID    int    `json:"pid"`
	Parent int    `json:"parent,omitempty"` // who started it; 0: unknown
	Name   string `json:"name"`
	VRAM   int64  `json:"vram"`  // bytes in VRAM now
	Claim  int64  `json:"claim"` // bytes of every buffer it may use
	GTT    int64  `json:"gtt"`   // bytes of system memory held for it
	// Unknown is why the driver names the process and not its bytes, which are 0 then.
	Unknown string `json:"unknown,omitempty"`
}

// byVRAM orders processes, those that hold most first.
func byVRAM(a, b ProcVRAM) int { return cmp.Or(cmp.Compare(b.VRAM, a.VRAM), cmp.Compare(a.PID, b.PID)) }

// VRAMAnswer is what one source said about a card's memory. Sources are given
// in order of trust: Level Zero Sysman, DRM query, sysfs, NVML, recorded.
type VRAMAnswer struct {
	Source   string
	Total    int64 // bytes; 0: not answered
	Used     int64
	HaveUsed bool // Used was answered
	Blind    bool // the source says 0 used to callers without CAP_PERFMON (xe, i915 and what is built on them)
}

// FreeVRAM decides what is known of a card's memory from all the answers. It
// does not ask anything itself.
//
//   - An answer of a blind source that nothing is used, without the right to know,
//     is no answer.
//   - Values above the total are cut to it (a Windows driver reported a budget
//     above the heap, ggml-org/llama.cpp#29277).
//   - Without an answer, Plan is the usable total less a reserve of 10 % (at least
//     1 GiB) and less what the readable processes claim. It is 0 only when they
//     really claim everything.
func FreeVRAM(c Card, h Host, answers []VRAMAnswer, procs []ProcVRAM) VRAM {
	if procs == nil {
		procs = []ProcVRAM{} // an empty list in JSON
	}
	v := VRAM{Total: c.Memory.Total, Procs: procs}
	if c.Memory.Shared {
		return sharedVRAM(c, h, answers, procs)
	}
	asked := Reading[int64]{}
	for _, a := range answers {
		if a.Total > 0 && (!v.Total.Known || v.Total.Source == nominalSource) {
			v.Total = Known(a.Total, a.Source)
		}
		if v.Used.Known {
			continue
		}
		if !a.HaveUsed {
			asked = First(asked, Unknown[int64](a.Source, "does not tell what is used"))
			continue
		}
		if a.Blind && a.Used <= 0 && !h.Perfmon.Or(false) {
			asked = First(asked, Unknown[int64](a.Source, "says nothing is used, as it does to every caller without CAP_PERFMON"))
			continue
		}
		used, total := max(a.Used, 0), a.Total
		if total <= 0 {
			total = v.Total.Or(0)
		}
		if total > 0 && used > total {
			used = total
		}
		v.Used = Known(used, a.Source)
		if total > 0 {
			v.Free = Known(total-used, a.Source)
		}
	}
	if !v.Used.Known {
		if asked.Source == "" {
			asked = Unknown[int64]("no source", "nothing on this machine answers")
		}
		v.Used, v.Free = asked, asked
	}
	if v.Used.Known && !v.Free.Known {
		v.Free = Unknown[int64](v.Total.Source, "the total is unknown: "+v.Total.Why)
	}
	v.Plan = planVRAM(c, v, procs)
	return v
}

const nominalSource = "table of card models (nominal, not the kernel's answer)"

// planVRAM is the number a plan may use.
func planVRAM(c Card, v VRAM, procs []ProcVRAM) Reading[int64] {
	if v.Free.Known {
		n := v.Free.Value
		// The user-mode driver hands out less than the kernel has.
		if c.Memory.Usable.Known && v.Total.Known && v.Used.Known {
			n = min(n, max(c.Memory.Usable.Value-v.Used.Value, 0))
		}
		return Known(n, v.Free.Source)
	}
	base := c.Memory.Usable
	if !base.Known {
		base = v.Total
	}
	if !base.Known {
		return Unknown[int64](v.Total.Source, "neither total nor free memory is known: "+v.Total.Why)
	}
	var claim int64
	for _, p := range procs {
		claim += max(p.VRAM, p.Claim)
	}
	reserve := max(base.Value/10, gib)
	return Known(max(base.Value-reserve-claim, 0),
		fmt.Sprintf("free memory unknown: %.1f GiB usable less %.1f GiB reserve and %.1f GiB claimed by processes we can see", gibs(base.Value), gibs(reserve), gibs(claim)))
}

// sharedVRAM is graphics without memory of its own: what counts is RAM. AMD's
// carve-out is the exception, it is real and fixed by firmware; system memory on
// top is reached through the GTT.
func sharedVRAM(c Card, h Host, answers []VRAMAnswer, procs []ProcVRAM) VRAM {
	v := VRAM{Total: c.Memory.Total, Procs: procs}
	avail := h.Available()
	var carve int64
	for _, a := range answers {
		if a.HaveUsed && !a.Blind && a.Total > 0 {
			used := min(max(a.Used, 0), a.Total)
			v.Total, v.Used, v.Free = Known(a.Total, a.Source), Known(used, a.Source), Known(a.Total-used, a.Source)
			carve = a.Total - used
			break
		}
	}
	if !v.Used.Known {
		u := Unknown[int64](c.Memory.Total.Source, "integrated graphics shares RAM: see the available RAM")
		v.Used, v.Free = u, u
	}
	if !avail.Known {
		v.Plan = Unknown[int64](avail.Source, avail.Why)
		return v
	}
	share := avail.Value / 2
	if c.Memory.Usable.Known && c.Vendor == Intel {
		share = min(share, c.Memory.Usable.Value)
	}
	v.Plan = Known(carve+share, "half of the available RAM"+map[bool]string{true: " and the free part of the carve-out"}[carve > 0])
	return v
}

func gibs(n int64) float64 { return float64(n) / float64(gib) }
