package engine

import (
	"fmt"
	"os"
	"time"

	"outcrop/engine/plan"
	"outcrop/gpu"
	"outcrop/gpu/compute"
)

// A plan is a promise: what `outcrop plan` shows is what a load takes. After a
// load both are compared.

// Placed is what one place was planned to hold of a model and what it holds, in
// bytes.
type Placed struct {
	Where           string // "VRAM of ...", "experts in RAM"
	Planned, Really int64
}

// placeSlack is how far a place may be from its plan: a part of it, and what
// pieces of allocations are rounded by.
const (
	placeSlack = 0.05
	placeRound = 64 << 20
)

// Off tells whether the two are further apart than rounding explains.
func (p Placed) Off() bool {
	d := p.Really - p.Planned
	return float64(max(d, -d)) > placeSlack*float64(p.Planned)+placeRound
}

func (p Placed) String() string {
	return fmt.Sprintf("%s: %s planned, %s taken", p.Where, inGB(p.Planned), inGB(p.Really))
}

// Placed compares the plan with what the load took; nil without a plan.
func (m *Model) Placed() []Placed { return m.placed }

// comparePlan fills m.placed, and says what is off. before is what each device
// held already.
func (m *Model) comparePlan(o *Options, before []int64) {
	pl := o.Plan
	if pl == nil {
		return
	}
	for i, c := range pl.Cards {
		var x Placed
		x.Where = "VRAM of " + c.Name
		for _, s := range c.Use.Segments {
			switch s.Kind {
			case "weights", "state", "kv", "scratch", "slots":
				x.Planned += s.Bytes
			}
		}
		d := o.Devices[i]
		x.Really, _ = d.Used()
		x.Really -= before[i]
		for _, r := range m.cards.runs {
			if r.dev == d { // caches come with a session
				for j := range r.layers {
					for _, n := range cardMemoryBytes(m, r.layers[j].layerSpec) {
						x.Really += n
					}
				}
			}
		}
		m.placed = append(m.placed, x)
	}
	if s, ok := m.experts.(*shelves); ok && pl.ExpertRAM > 0 {
		m.placed = append(m.placed, Placed{"experts in RAM", pl.ExpertRAM, s.most})
	}
	for _, x := range m.placed {
		if x.Off() {
			m.say(time.Now(), "not as planned: "+x.String())
		}
	}
}

// devicesMachine is the machine as open devices and the system tell it.
func devicesMachine(list []*compute.Device, threads int) plan.Machine {
	root := os.DirFS("/")
	h := gpu.Host{Memory: gpu.ReadMeminfo(root), Cgroup: gpu.ReadCgroup(root)}
	amount := func(r gpu.Reading[int64]) plan.Amount {
		return plan.Amount{N: r.Value, Known: r.Known, Source: r.Source, Why: r.Why}
	}
	m := plan.Machine{RAMTotal: amount(h.RAM()), RAMAvailable: amount(h.Available()), Threads: max(threads, 1)}
	for _, d := range list {
		i := d.Info()
		c := plan.Card{PCI: deviceName(i), Name: i.Name, Backend: i.Driver, MaxAlloc: i.MaxAlloc, Chunk: CardChunk(i), Total: plan.Known(i.Memory, i.Driver)}
		if free, total, known := d.Memory(); known {
			c.Total, c.Free = plan.Known(total, i.Driver), plan.Known(free, i.Driver)
		} else {
			c.Free = plan.Amount{Source: i.Driver, Why: "the driver does not tell"}
		}
		if i.Memory <= 0 {
			c.Total = plan.Amount{Source: i.Driver, Why: "the driver does not tell"}
		}
		m.Cards = append(m.Cards, c)
	}
	return m
}
