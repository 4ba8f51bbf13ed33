package app

import (
	"math"

	"outcrop/engine/wire"
)

// slowness turns measured terms into sentences that say what the speed is made
// of, the heaviest first. before is the reading before p, or nil.
func slowness(p, before *point) []string {
	if p == nil || !p.engine {
		return nil
	}
	e, s := p.sample.Engine, &p.sample
	var out []string
	if s.Guard.Acting {
		out = append(out, tr("The guard holds back to keep memory free: %s.", s.Guard.Step))
	}
	if s.Memory.FullAvg10.Known && s.Memory.FullAvg10.Value >= 5 {
		out = append(out, tr("All programs waited for memory %.0f %% of the last 10 seconds: RAM is short.", s.Memory.FullAvg10.Value))
	}
	if n := newFaults(p, before); n > 50 {
		out = append(out, tr("The engine waited for the disk %.0f times in the last second, for pages of the pack that are not in RAM.", n))
	}
	if s.Process.Swap.Known && s.Process.Swap.Value > 64*mib {
		out = append(out, tr("%s of the engine is swapped out.", size(s.Process.Swap.Value)))
	}
	out = append(out, tokenWords(e)...)
	out = append(out, layerWords(e)...)
	for _, w := range e.Slow {
		out = append(out, tr("Slower than this card can be: %s", capital(oneLine(w))))
	}
	for _, w := range e.OnCPU {
		out = append(out, tr("A part of it stays with the CPU: %s", capital(oneLine(w))))
	}
	out = append(out, tierWords(s.Tiers)...)
	if n := othersBusy(&s.CPU); n >= 0.2 {
		out = append(out, tr("Other programs keep %.0f %% of the CPU busy.", n*100))
	}
	if e.Drafted > 0 {
		out = append(out, tr("%.0f %% of the drafted tokens were right, which saves as many steps.", pct(e.Accepted, e.Drafted)))
	}
	if e.Queue > 0 {
		out = append(out, tr("%d more requests wait for this one.", e.Queue))
	}
	for i := range s.Cards {
		if c := &s.Cards[i]; !c.Used && c.WhyIdle != "" {
			out = append(out, tr("%s is not used: %s.", cardLabel(s.Cards, i), c.WhyIdle))
		}
	}
	return out
}

// tokenWords is what one token takes.
func tokenWords(e wire.Engine) []string {
	switch {
	case e.Phase == "decode" && e.MSPerStep > 0 && e.ReadBS > 0:
		return []string{tr("A step takes %.1f ms on %s with %d threads and reads %s of weights, %s.", e.MSPerStep, orDash(e.Device), e.Threads, bytes64(e.BytesPerToken), gbs(e.ReadBS))}
	case e.Phase == "decode" && e.MSPerStep > 0:
		return []string{tr("A step takes %.1f ms on %s with %d threads.", e.MSPerStep, orDash(e.Device), e.Threads)}
	case e.Phase == "prefill" && e.PrefillTokS > 0:
		return []string{tr("The prompt is read at %.0f tokens a second, %d of %d so far.", e.PrefillTokS, e.PrefillDone, e.PrefillTotal)}
	}
	return nil
}

// layerWords is how a layer's time is divided between card and CPU.
func layerWords(e wire.Engine) []string {
	t := e.LayerTimes
	if t == nil || t.CardMS <= 0 {
		return nil
	}
	if t.CPUMS <= 0 {
		return []string{tr("A layer takes %.2f ms on the card.", t.CardMS)}
	}
	out := []string{tr("A layer takes %.2f ms on the card and %.2f ms on the CPU, which computes experts.", t.CardMS, t.CPUMS)}
	if t.CPUMS > 1.3*t.CardMS {
		out = append(out, tr("The CPU's part is the longer one: more experts in VRAM would help."))
	}
	if t.WaitMS > 0 {
		out = append(out, tr("In %.2f ms of the card's time the CPU has nothing to do.", t.WaitMS))
	}
	return out
}

// tierWords is where experts were found, and what missing ones cost.
func tierWords(t *wire.Tiers) []string {
	if t == nil {
		return nil
	}
	var out []string
	if all := t.VRAM + t.RAM + t.File; all > 0 {
		out = append(out, tr("Of the experts used, %.0f %% were in VRAM, %.0f %% in RAM and %.0f %% in the file.", pct(t.VRAM, all), pct(t.RAM, all), pct(t.File, all)))
	}
	switch {
	case t.FileMS > 0 && t.DiskBS > 0:
		out = append(out, tr("A token waits %.1f ms for experts from the file, which the disk gives at %s.", t.FileMS, gbs(t.DiskBS)))
	case t.WaitMS > 0:
		out = append(out, tr("A token waits %.1f ms for experts that are not in VRAM.", t.WaitMS))
	}
	if t.Linked > 0 && t.LinkBS > 0 {
		out = append(out, tr("Experts come to the card over the link at %s.", gbs(t.LinkBS)))
	}
	if t.Guessed > 0 {
		out = append(out, tr("%.0f %% of the experts that were read ahead were the right ones.", pct(t.Right, t.Guessed)))
	}
	if t.Given > 0 {
		out = append(out, tr("%s of experts were given back to RAM because it was short.", bytes64(t.Given)))
	}
	return out
}

// gbs writes a rate of bytes as the makers of memory and disks do.
func gbs(v float64) string {
	if v < 1e9 {
		return tr("%.0f MB/s", v/1e6)
	}
	return tr("%.1f GB/s", v/1e9)
}

// newFaults is how many pages the engine fetched from disk between two
// readings, a second; 0 when that is not known.
func newFaults(p, before *point) float64 {
	if before == nil || !before.engine || p.sample.Process.PID != before.sample.Process.PID {
		return 0
	}
	n, s := p.values[colMajor]-before.values[colMajor], p.at.Sub(before.at).Seconds()
	if math.IsNaN(n) || s <= 0.05 || s > 10 {
		return 0
	}
	return n / s
}

// othersBusy is the part of the CPU that programs beside the engine keep busy,
// 0 to 1; 0 when that is not known.
func othersBusy(c *wire.CPU) float64 {
	if !c.Busy.Known || !c.Process.Known || c.Cores <= 0 {
		return 0
	}
	return max(0, c.Busy.Value-c.Process.Value/float64(c.Cores)) / 100
}

func pct(part, all int64) float64 { return 100 * float64(part) / float64(all) }
