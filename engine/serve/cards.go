package serve

import (
	"time"

	"outcrop/engine/wire"
	"outcrop/gpu"
)

// CardReader makes Options.Cards of a sampler of the machine's cards. used
// says which card the engine runs on, and why it does not use another.
func CardReader(m gpu.Machine, s *gpu.Sampler, used func(gpu.PCI) (bool, string)) func(time.Time) []wire.Card {
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
				Own:  wire.Unknown("bytes", "", "the engine does not use this card"),
				Busy: floatReading(r.Busy, "percent"), Temp: floatReading(r.Temp, "°C"),
				Power: floatReading(r.Power, "W"), Clock: floatReading(r.Clock, "MHz"),
			}
			c.Used, c.WhyIdle = used(r.PCI)
			out = append(out, c)
		}
		return out
	}
}

func bytesReading(r gpu.Reading[int64]) wire.Reading {
	return wire.Reading{Value: float64(r.Value), Known: r.Known, Unit: "bytes", Source: r.Source, Why: r.Why}
}

func floatReading(r gpu.Reading[float64], unit string) wire.Reading {
	return wire.Reading{Value: r.Value, Known: r.Known, Unit: unit, Source: r.Source, Why: r.Why}
}
