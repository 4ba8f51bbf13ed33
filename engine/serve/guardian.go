package serve

import (
	"context"
	"errors"
	"sync"
	"time"

	"outcrop/engine/guard"
	"outcrop/engine/vitals"
	"outcrop/engine/wire"
)

// guardian looks at memory once a second and carries out what the guard
// decides: the engine gives back what it can, pauses, ends its answer, or
// leaves, before the kernel picks a process by its own rules.
type guardian struct {
	preset string
	config guard.Config
	flow   *vitals.Flow
	read   func(now time.Time) guard.Reading // tests replace it
	unload func(words string)

	mu   sync.Mutex
	now  guard.Decision
	last []string // words of the last changes, newest last
}

// errMemory ends an answer because memory is nearly gone.
var errMemory = errors.New("memory is nearly gone")

// keptWords is how many changes a reading of telemetry repeats.
const keptWords = 5

// newGuardian makes the guard of a preset by its name; "" is daily, "off"
// measures and never asks for anything.
func newGuardian(preset string) *guardian {
	if preset == "" {
		preset = "daily"
	}
	g := &guardian{preset: preset, flow: vitals.NewFlow(vitals.Live(), 0)}
	for _, p := range guard.Presets {
		if p.Name == preset {
			g.config = p.Config
		}
	}
	g.read = g.reading
	return g
}

// reading is one look at the machine.
func (g *guardian) reading(now time.Time) guard.Reading {
	r := guardReading(vitals.Memory(vitals.Live()), now)
	swap, major := g.flow.Read(now)
	r.SwapIn, r.MajorFaults = rate(swap), rate(major)
	return r
}

// watch runs until ctx ends.
func (g *guardian) watch(ctx context.Context, s *Server, b *Backend) {
	var state guard.State
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		now := time.Now()
		r := g.read(now)
		var d guard.Decision
		before := state.Step
		state, d = guard.Decide(state, r, now, g.config.For(r.RAMTotal.N))
		g.act(s, b, before, d)
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}

// act carries out one decision.
func (g *guardian) act(s *Server, b *Backend, before guard.Step, d guard.Decision) {
	words := ""
	for _, w := range d.Words {
		words = w
		s.log.Warn("guard", "step", d.Step.String(), "what", w)
	}
	g.mu.Lock()
	g.now = d
	if g.last = append(g.last, d.Words...); len(g.last) > keptWords {
		g.last = g.last[len(g.last)-keptWords:]
	}
	g.mu.Unlock()
	if b.Relieve != nil {
		b.Relieve(d)
	}
	if d.Step == before {
		return
	}
	s.tele.wake()
	if d.Step >= guard.EndRequest && before < guard.EndRequest {
		s.endAnswer(errMemory)
	}
	if d.Step >= guard.Unload && g.unload != nil {
		g.unload(words)
	}
}

// state is the guard's part of telemetry.
func (g *guardian) state() wire.Guard {
	g.mu.Lock()
	defer g.mu.Unlock()
	return wire.Guard{Preset: g.preset, Step: g.now.Step.String(), Acting: g.now.Step > guard.Normal, Words: append([]string{}, g.last...)}
}

// guardReading turns a reading of memory into the guard's: a control group
// with a limit is the smaller machine.
func guardReading(m wire.Memory, now time.Time) guard.Reading {
	r := guard.Reading{
		At: now, RAMTotal: value(m.Total), RAMAvailable: value(m.Available),
		PSISome: rate(m.SomeAvg10), PSIFull: rate(m.FullAvg10),
	}
	if m.Limit.Known && m.Used.Known && (!r.RAMTotal.Known || int64(m.Limit.Value) < r.RAMTotal.N) {
		r.RAMTotal = guard.Of(int64(m.Limit.Value))
		// What the group uses includes clean pages of the model, which the
		// kernel drops before it kills; only what cannot be dropped counts.
		free := int64(m.Limit.Value - m.Used.Value + m.Cache.Value)
		if !r.RAMAvailable.Known || free < r.RAMAvailable.N {
			r.RAMAvailable = guard.Of(min(free, r.RAMTotal.N))
		}
	}
	return r
}

func value(r wire.Reading) guard.Value { return guard.Value{N: int64(r.Value), Known: r.Known} }

func rate(r wire.Reading) guard.Rate { return guard.Rate{N: r.Value, Known: r.Known} }

// MemoryLevel is the guard's word for a reading of memory: good, watch, act,
// critical or unknown.
func MemoryLevel(m wire.Memory) string {
	r := guardReading(m, time.Now())
	return guard.LevelOf(r, guard.Presets[1].Config.For(r.RAMTotal.N)).String()
}
