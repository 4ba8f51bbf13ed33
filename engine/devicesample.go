package engine

import (
	"fmt"
	"strings"
)

// DeviceSample is the part of the devices in a Sample. Bytes are of device
// memory. Times are milliseconds a layer, means since load, of decode and
// prefill together: the device as the host sees it, the CPU with routed experts,
// and the part of the device's time in which the CPU had nothing to do.
type DeviceSample struct {
	Name       string   // names of the devices in use, with commas
	PCI        []string // their addresses; "" where a driver does not tell
	Layers     int      // layers on devices
	CPUExperts bool     // routed experts are with the CPU

	// Why the CPU computes although "auto" was asked for a card; empty when a
	// card does or none was wanted.
	Why string

	Weights, KV, Scratch int64

	DeviceMs, CPUMs, WaitMs float64

	// OnCPU says which parts of those layers the CPU computes, and why; empty: none.
	OnCPU []string

	// Slow says what runs slower than the cards could run it, and why; empty: nothing.
	Slow []string

	Check string // what check mode has found; empty: it is off

	Each []DeviceUse // the devices in use, in the order of their layers
}

// DeviceUse is what one device holds of a model, in bytes.
type DeviceUse struct {
	Name, PCI                   string
	First, Layers               int // its layers
	Weights, KV, Slots, Scratch int64
}

// OnCPU says which parts of the layers on cards the CPU computes because a card
// has no kernels for them, and why.
func (m *Model) OnCPU() []string {
	if m.cards == nil {
		return nil
	}
	return m.cards.onCPU
}

// Slow says what runs slower than the cards in use could run it, and why.
func (m *Model) Slow() (out []string) {
	if m.cards == nil {
		return nil
	}
	for _, r := range m.cards.runs {
		if err := r.set.UnitsProblem(); err != nil {
			why, _, _ := strings.Cut(err.Error(), "\n") // a compiler's words may follow
			out = append(out, fmt.Sprintf("prompts run without the matrix units of %s: %s", r.dev.Info(), why))
		}
	}
	return out
}

// layerTimes are the sums since load; since gives means a layer of steps passes.
func (c *cards) layerTimes() *LayerTimes {
	if c == nil {
		return nil
	}
	ms := func(ns int64) float64 { return float64(ns) / 1e6 / float64(len(c.m.layers)-c.first) }
	return &LayerTimes{ms(c.times.device.Load()), ms(c.times.cpu.Load()), ms(c.times.wait.Load())}
}

func (t *LayerTimes) since(before *LayerTimes, steps int) *LayerTimes {
	if t == nil || steps < 1 {
		return nil
	}
	n := float64(steps)
	return &LayerTimes{(t.CardMs - before.CardMs) / n, (t.CPUMs - before.CPUMs) / n, (t.WaitMs - before.WaitMs) / n}
}

func (m *Model) deviceSample() DeviceSample {
	c := m.cards
	if c == nil {
		return DeviceSample{Why: m.noCard}
	}
	s := DeviceSample{Name: c.names(), Layers: len(m.layers) - c.first, CPUExperts: c.experts, KV: c.kv.Load()}
	s.OnCPU, s.Slow = c.onCPU, m.Slow()
	if rep, ok := m.Check(); ok {
		s.Check = rep.String()
	}
	for _, r := range c.runs {
		s.PCI = append(s.PCI, r.dev.Info().PCI)
		s.Weights += r.weights
		s.Scratch += r.scratch.Load()
		u := DeviceUse{Name: r.dev.Info().Name, PCI: r.dev.Info().PCI, First: r.lo, Layers: r.hi - r.lo,
			Weights: r.weights, KV: r.kv.Load(), Scratch: r.scratch.Load()}
		if c.slots != nil && c.slots.runs[r] != nil {
			u.Slots = c.slots.runs[r].arena.Size()
		}
		s.Each = append(s.Each, u)
	}
	if n := c.times.steps.Load() * int64(s.Layers); n > 0 {
		ms := func(ns int64) float64 { return float64(ns) / 1e6 / float64(n) }
		s.DeviceMs, s.CPUMs, s.WaitMs = ms(c.times.device.Load()), ms(c.times.cpu.Load()), ms(c.times.wait.Load())
	}
	return s
}
