package serve

import (
	"time"

	"outcrop/engine/wire"
	"outcrop/gpu"
)

// CardReader makes Options.Cards of a sampler of the machine's cards. used
// says which card the engine runs on, and why it does not use another. pid is the
// engine's process, 0 when there is none.
func CardReader(m gpu.Machine, s *gpu.Sampler, pid int, used func(gpu.PCI) (bool, string)) func(time.Time) []wire.Card {
	names := map[gpu.PCI]string{}
	for _, c := range m.Cards {
		names[c.PCI] = c.Name
	}
	return func(now time.Time) []wire.Card {
		out := []wire.Card{}
		for _, r := range s.Sample(now) {
			c := wire.Card{
				PCI: string(r.PCI), Name: names[r.PCI],
				Total: bytesReading(r.VRAM.Total), VRAM: bytesReading(r.VRAM.Used),
				Own:  ownVRAM(r.VRAM, pid),
				Busy: floatReading(r.Busy, "percent"), Temp: floatReading(r.Temp, "°C"),
				Power: floatReading(r.Power, "W"), Clock: floatReading(r.Clock, "MHz"),
			}
			c.Others, c.OthersWhy = holders(r.VRAM, pid)
			c.Used, c.WhyIdle = used(r.PCI)
			out = append(out, c)
		}
		return out
	}
}

// ownVRAM is what the driver counts for the engine's process.
func ownVRAM(v gpu.VRAM, pid int) wire.Reading {
	if pid == 0 {
		return wire.Unknown("bytes", "", "no engine runs")
	}
	return bytesReading(v.Of(pid))
}

// mostHolders is how many other programs a reading names.
const mostHolders = 6

// holders are the other programs that hold a card's memory.
func holders(v gpu.VRAM, pid int) ([]wire.Holder, string) {
	if !v.Listed.Known {
		return nil, v.Listed.Source + ": " + v.Listed.Why
	}
	var out []wire.Holder
	for _, p := range v.Procs {
		if p.PID == pid || pid != 0 && p.Parent == pid || p.VRAM == 0 && p.Unknown == "" || len(out) == mostHolders {
			continue
		}
		h := wire.Holder{PID: p.PID, Name: p.Name, VRAM: wire.Known(float64(p.VRAM), "bytes", v.Listed.Source)}
		if p.Unknown != "" {
			h.VRAM = wire.Unknown("bytes", v.Listed.Source, p.Unknown)
		}
		out = append(out, h)
	}
	return out, ""
}

func bytesReading(r gpu.Reading[int64]) wire.Reading {
	return wire.Reading{Value: float64(r.Value), Known: r.Known, Unit: "bytes", Source: r.Source, Why: r.Why}
}

func floatReading(r gpu.Reading[float64], unit string) wire.Reading {
	return wire.Reading{Value: r.Value, Known: r.Known, Unit: unit, Source: r.Source, Why: r.Why}
}
