package engine

import (
	"context"
	"errors"
	"fmt"

	"outcrop/engine/plan"
	"outcrop/gpu/compute"
)

// place opens the devices that are asked for and puts layers, copies of experts
// and slots where they belong: where the plan says, if there is one.
func (m *Model) place(ctx context.Context, o *Options) (err error) {
	switch m.missesBy = o.Misses; o.Misses {
	case "":
		m.missesBy = missesAuto
	case missesAuto, missesCPU, missesLink:
	default:
		return fmt.Errorf("misses by %q asked, want %s, %s or %s", o.Misses, missesAuto, missesCPU, missesLink)
	}
	if len(o.Devices) == 0 {
		m.own, err = openDevices(o)
		if err != nil && o.Device == "auto" {
			m.noCard, err = err.Error(), nil
		}
		if err != nil {
			return err
		}
		o.Devices = m.own
	}
	if err := m.plan(o); err != nil {
		m.closeDevices()
		return err
	}
	before := make([]int64, len(o.Devices)) // of other models on the same devices
	for i, d := range o.Devices {
		before[i], _ = d.Used()
	}
	if len(o.Devices) > 0 {
		if err = m.fit(o); err == nil {
			m.cards, err = newCards(ctx, m, o)
		}
		if err != nil {
			m.closeDevices()
			if o.Device != "auto" {
				return err
			}
			// Nobody asked for this card: the CPU does what it can.
			m.noCard, m.cards, o.Devices = err.Error(), nil, nil
			if err := m.replan(o); err != nil {
				return err
			}
		}
	}
	if err := m.shelve(ctx); err != nil {
		m.unplace()
		return err
	}
	if err := m.openSlots(o); err != nil {
		m.unplace()
		return err
	}
	m.comparePlan(o, before)
	return nil
}

// unplace gives back what place took, when a load fails.
func (m *Model) unplace() {
	m.endShelves()
	if m.cards != nil {
		m.cards.close()
	}
	m.closeDevices()
}

// planned takes from the plan what the rest of Load begins with.
func (o Options) planned() Options {
	if o.Plan == nil {
		return o
	}
	o.Context, o.KV = o.Plan.Context, o.Plan.KV
	if o.Chunk == 0 && o.Plan.Chunk != defaultChunk {
		o.Chunk = o.Plan.Chunk
	}
	if len(o.Devices) == 0 {
		// Those of the plan and no other; by name, so that one that has gone is
		// an error unless nobody asked for it.
		switch {
		case len(o.Plan.Cards) == 0:
			o.Device = "cpu"
		case o.Device == "" || o.Device == "cpu":
			o.Device = planDevices(o.Plan)
		}
	}
	return o
}

// planDevices names the cards of a plan as Options.Device takes them.
func planDevices(pl *plan.Plan) string {
	s := ""
	for i, c := range pl.Cards {
		if i > 0 {
			s += ","
		}
		s += c.PCI
	}
	return s
}

// plan makes a plan where devices are named and none was given, and sets what
// follows from it.
func (m *Model) plan(o *Options) error {
	asked := o.Placement.Layers != nil || o.Placement.CPUExperts || o.Placement.Split != nil
	if o.Plan == nil && o.Device != "" && len(m.own) > 0 && !asked && !o.Check {
		facts, err := m.pack.PlanFacts()
		if err != nil {
			return err
		}
		w := m.wishes(o)
		w.OnCards = o.Device != "auto"
		pl, err := plan.Make(facts, devicesMachine(o.Devices, m.options.Threads), w)
		if err != nil || !pl.Fits || w.OnCards && len(pl.Cards) == 0 {
			return nil // the devices say what is missing (fit)
		}
		o.Plan = &pl
	}
	if o.Plan == nil {
		return nil
	}
	return m.usePlan(o)
}

// wishes are the options as the planner takes them.
func (m *Model) wishes(o *Options) plan.Wishes {
	w := plan.Wishes{Context: m.context, KV: m.kv.String(), VRAMCaps: o.VRAMLimit, NoDraft: o.Draft == "off"}
	if m.chunkAsked {
		w.Chunk = m.chunk
	}
	if o.SlotBytes > 0 {
		w.Slots = o.SlotBytes
	}
	return w
}

// replan plans for the CPU alone, when the card of a plan is of no use.
func (m *Model) replan(o *Options) error {
	if o.Plan == nil {
		return nil
	}
	facts, err := m.pack.PlanFacts()
	if err != nil {
		return err
	}
	w := m.wishes(o)
	w.NoCard = true
	pl, err := plan.Make(facts, devicesMachine(nil, m.options.Threads), w)
	if err != nil {
		return err
	}
	o.Plan = &pl
	return m.usePlan(o)
}

// usePlan sets the options that a plan stands for.
func (m *Model) usePlan(o *Options) error {
	pl := o.Plan
	var used []*compute.Device
	for _, c := range pl.Cards {
		d := namedDevice(o.Devices, c.PCI)
		if d == nil && o.Device == "auto" && len(m.own) > 0 {
			o.Plan = nil // a card has gone since: what is there is planned anew
			return m.plan(o)
		}
		if d == nil {
			return fmt.Errorf("the plan puts layers on %s (%s), which is not open", c.Name, c.PCI)
		}
		used = append(used, d)
	}
	o.Devices = used
	layers, routed := make([]int, len(used)), false
	for i, p := range pl.Layers {
		if i < len(m.layers) && p.Card >= 0 {
			layers[p.Card]++
		}
		routed = routed || p.Slots+p.RAM+p.File > 0
	}
	o.FileTier, o.ExpertRAM, o.Pinned = false, 0, false
	switch pl.Placement {
	case plan.VRAMPinned:
		o.Pinned, o.ExpertRAM = true, -1
	case plan.VRAMRAM:
		o.ExpertRAM = -1
	case plan.VRAMFile, plan.AllFile:
		o.FileTier = routed
		switch o.ExpertRAM = pl.ExpertRAM; {
		case pl.ExpertRAM > 0 && pl.ExpertRAM >= m.expertBytes():
			o.ExpertRAM = -1 // and what places take beside the bytes of the file
		case pl.ExpertRAM == 0 && len(used) > 0:
			o.ExpertRAM = 1 // slots want a provider that reads into buffers of its own
		}
	}
	if !routed {
		o.ExpertRAM = 0
	}
	if len(used) > 0 {
		o.Placement.Layers = layers
		o.Placement.CPUExperts = routed && pl.Placement != plan.AllVRAM
	}
	m.options = *o
	return nil
}

// expertBytes is what all routed experts take in the file.
func (m *Model) expertBytes() (n int64) {
	for i := range m.layers {
		l := &m.layers[i]
		n += l.gates.bytes() + l.ups.bytes() + l.downs.bytes()
	}
	return n
}

// Chosen lists the devices of a name as Options.Device takes it, without
// opening them; for "auto" without any card that passed first light, the error
// says so.
func Chosen(name, cache string) ([]DeviceInfo, error) {
	if name == "auto" {
		if m, err := readLights(cache); err != nil || len(m) == 0 {
			return nil, errNotLit // without a look at drivers, which takes time
		}
	}
	list, why := Devices()
	pick, err := pickDevices(name, cache, list)
	if err != nil {
		return nil, errors.Join(append([]error{err}, why...)...)
	}
	if name == "auto" && len(pick) == 0 {
		return nil, errNotLit
	}
	return pick, nil
}

// DeviceName is what plans call a device: its PCI address, or what
// Options.Device calls it.
func DeviceName(i compute.Info) string { return deviceName(i) }

// namedDevice finds a device by what a plan calls it.
func namedDevice(list []*compute.Device, name string) *compute.Device {
	for _, d := range list {
		if i := d.Info(); deviceName(i) == name || fmt.Sprintf("%s:%d", i.Driver, i.Index) == name {
			return d
		}
	}
	return nil
}

// openSlots gives cards that leave routed experts to the CPU slots for the hot
// ones, and a way to fetch others.
func (m *Model) openSlots(o *Options) (err error) {
	c := m.cards
	if c == nil || !c.experts {
		return nil
	}
	count, some := func(int) int { return 0 }, false
	switch {
	case o.Plan != nil:
		count = func(il int) int { return o.Plan.Layers[il].Slots }
		for i := range m.layers {
			some = some || count(i) > 0
		}
	case o.SlotBytes > 0:
		n, err := c.evenSlots(o.SlotBytes)
		if err != nil {
			return err
		}
		count, some = func(int) int { return n }, true
	}
	s, ok := m.experts.(*shelves)
	if !ok {
		if o.SlotBytes > 0 {
			return errors.New("slots for experts go with experts held in RAM; ask for ExpertRAM too")
		}
		return nil
	}
	link := o.Pinned && m.missesBy != missesCPU
	if !some && !link {
		return nil
	}
	if c.slots, err = c.newCardSlots(count, link); err == nil {
		err = s.useSlots(c.slots)
	}
	if err == nil {
		err = s.check() // every expert in exactly one tier
	}
	if err != nil {
		s.slots = nil
	}
	return err
}

// pinsTo is the device that fetches copies of a layer's experts by itself, nil
// for none.
func (m *Model) pinsTo(layer int) *compute.Device {
	if m.cards == nil || !m.options.Pinned || !m.cards.experts {
		return nil
	}
	for _, r := range m.cards.runs {
		if layer >= r.lo && layer < r.hi {
			return r.dev
		}
	}
	return nil
}
