package serve

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"outcrop/engine"
	"outcrop/engine/plan"
	"outcrop/engine/rates"
	"outcrop/engine/vitals"
	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// Site is the machine that a plan is made for, with what was measured there.
// `outcrop plan`, the window and a load all see it through MachineFor, so that
// what is shown is what is done.
type Site struct {
	Machine  gpu.Machine
	Readings []gpu.CardReadings
	// Here: it is this machine, whose drivers can be asked. Else cards count as
	// usable when their kernel driver has kernels to offer.
	Here                bool
	Device, KernelCache string // as in engine.Options
	Threads             int    // 0: the physical cores
	Rates               string // file of measured rates; "" has none
	Pack                string // a file of the pack, for the disk's rates

	fsys fs.FS // of the sensors; nil: none
	live bool
}

// sensors read the cards of a site while a model runs there.
type sensors struct {
	read func(now time.Time) []gpu.CardReadings // nil: no cards
	s    *gpu.Sampler
}

func (s Site) sensors() (out sensors) {
	if s.fsys != nil && len(s.Machine.Cards) > 0 {
		out.s = gpu.NewSampler(s.fsys, s.Machine, s.live)
		out.read = out.s.Sample
	}
	return out
}

func (s sensors) close() {
	if s.s != nil {
		s.s.Close()
	}
}

// Here looks at this machine. A device of "" or "cpu" spares the look at cards.
func Here(device, cache string) (s Site, err error) {
	s = Site{Here: true, Device: device, KernelCache: cache}
	if device == "" || device == "cpu" {
		root := vitals.Live()
		s.Machine.Host = gpu.Host{Memory: gpu.ReadMeminfo(root), Cgroup: gpu.ReadCgroup(root)}
		return s, nil
	}
	m, fsys, live, err := gpu.Open("")
	if err != nil {
		return s, fmt.Errorf("look for cards: %w", err)
	}
	sampler := gpu.NewSampler(fsys, m, live)
	defer sampler.Close()
	s.Machine, s.Readings, s.fsys, s.live = m, sampler.Sample(time.Now()), fsys, live
	return s, nil
}

// MachineFor is a site as the planner sees it, and the names of the cards that
// were asked for in their order, nil when any will do.
func MachineFor(s Site) (m plan.Machine, names []string, err error) {
	store, err := rates.Open(s.Rates) // a damaged one holds none and can be used
	if s.Rates != "" && err != nil && store == nil {
		return m, nil, err
	}
	usable := map[gpu.PCI]rates.Usable{}
	var lone []engine.DeviceInfo // which no card that was detected stands for
	switch {
	case !s.Here:
		for _, c := range s.Machine.Cards {
			if b := backends[c.Driver]; b != "" && !c.Virtual {
				usable[c.PCI] = rates.Usable{Backend: b}
			}
		}
	case s.Device != "" && s.Device != "cpu":
		list, err := engine.Chosen(s.Device, s.KernelCache)
		if err != nil && s.Device != "auto" {
			return m, nil, err
		}
		for _, d := range list {
			name := engine.DeviceName(d.Info)
			if !has(s.Machine.Cards, gpu.PCI(name)) {
				lone = append(lone, d)
			} else {
				usable[gpu.PCI(name)] = rates.Usable{Backend: d.Driver, MaxAlloc: d.MaxAlloc, Chunk: engine.CardChunk(d.Info)}
			}
			names = append(names, name)
		}
		why := "no compute driver opened it"
		if err != nil {
			why = err.Error()
		}
		for _, c := range s.Machine.Cards {
			if _, ok := usable[c.PCI]; !ok {
				usable[c.PCI] = rates.Usable{Why: why}
			}
		}
		if s.Device == "auto" {
			names = nil
		}
	default:
		for _, c := range s.Machine.Cards {
			usable[c.PCI] = rates.Usable{Why: "no card is wanted"}
		}
	}
	for pci, u := range usable {
		// Limits that reports of such cards taught.
		if r, err := recipe.For(s.Machine, recipe.Outcrop, recipe.Options{Card: pci}); err == nil {
			if n, ok := r.Limit(recipe.AllocMax); ok {
				u.MaxAlloc = n
			}
			if n, ok := r.Limit(recipe.HostAllocMax); ok {
				u.MaxPinned = n
			}
			usable[pci] = u
		}
	}
	m = store.Machine(rates.Facts{Machine: s.Machine, Now: s.Readings, Usable: usable, Work: s.work()})
	for _, d := range lone {
		c := plan.Card{PCI: engine.DeviceName(d.Info), Name: d.Name, Backend: d.Driver, MaxAlloc: d.MaxAlloc, Chunk: engine.CardChunk(d.Info),
			Total: plan.Known(d.Memory, d.Driver), Free: plan.Amount{Source: d.Driver, Why: "no sensor stands for it"}}
		if d.Memory <= 0 {
			c.Total = plan.Amount{Source: d.Driver, Why: "the driver does not tell"}
		}
		m.Cards = append(m.Cards, c)
	}
	return m, names, nil
}

// backends are the ways to cards of another machine, by its kernel driver.
var backends = map[string]string{"nvidia": "cuda", "xe": "level zero", "i915": "level zero", "amdgpu": "opencl"}

func has(cards []gpu.Card, pci gpu.PCI) bool {
	for _, c := range cards {
		if c.PCI == pci {
			return true
		}
	}
	return false
}

func (s Site) work() rates.Work {
	return rates.Work{Machine: s.Machine, Threads: s.threads(), Pack: s.Pack}
}

func (s Site) threads() int {
	if s.Threads == 0 && s.Here {
		return engine.DefaultThreads()
	}
	return s.Threads
}

// Unmeasured says what Measure would measure for a site, in words.
func Unmeasured(s Site) []string {
	store, err := rates.Open(s.Rates)
	if err != nil && store == nil || s.Rates == "" {
		return nil
	}
	w := s.work()
	if list, err := s.devices(); err == nil {
		w.Links = map[gpu.PCI]rates.Link{}
		for _, d := range list {
			w.Links[gpu.PCI(engine.DeviceName(d.Info))] = nil
		}
	}
	return store.Missing(w)
}

func (s Site) devices() ([]engine.DeviceInfo, error) {
	if !s.Here || s.Device == "" || s.Device == "cpu" {
		return nil, nil
	}
	return engine.Chosen(s.Device, s.KernelCache)
}

// Measure measures what is not known of a site, or everything, and keeps it.
func Measure(ctx context.Context, s Site, again bool, progress func(what string)) error {
	if !s.Here || s.Rates == "" {
		return errors.New("measure rates: only this machine can be measured")
	}
	store, err := rates.Open(s.Rates)
	if err != nil && store == nil {
		return err
	}
	w := s.work()
	w.Again, w.Progress, w.Links = again, progress, map[gpu.PCI]rates.Link{}
	list, err := s.devices()
	if err != nil && s.Device != "auto" {
		return err
	}
	for _, i := range list {
		d, err := engine.OpenDevice(i, s.KernelCache)
		if err != nil {
			return err
		}
		defer d.Close()
		l, free, err := rates.Device(d)
		if err != nil {
			return err
		}
		defer free()
		w.Links[gpu.PCI(engine.DeviceName(i.Info))] = l
	}
	_, err = store.Measure(ctx, w)
	return err
}

// PlanFor plans a pack for a site.
func PlanFor(p *engine.Pack, s Site, profile string, w plan.Wishes) (plan.Plan, plan.Machine, error) {
	facts, err := p.PlanFacts()
	if err != nil {
		return plan.Plan{}, plan.Machine{}, err
	}
	if facts.Trained > 0 && w.Context > facts.Trained { // as engine.Load
		return plan.Plan{}, plan.Machine{}, fmt.Errorf("plan %s: context %d asked, the model was trained for 1 to %d", p.Name, w.Context, facts.Trained)
	}
	if profile != "" {
		// Without one, experts count as used alike.
		_ = p.UseProfile(&facts, profile)
	}
	m, names, err := MachineFor(s)
	if err != nil {
		return plan.Plan{}, m, err
	}
	if w.Context == 0 {
		w.Context = min(max(facts.Trained, 1), engine.DefaultContext)
	}
	if len(names) > 0 && w.Cards == nil {
		w.Cards, w.OnCards = names, true
	}
	pl, err := plan.Make(facts, m, w)
	return pl, m, err
}

// shortWords says what is missing and what would help.
func shortWords(pl plan.Plan) (short, help []string) {
	for _, s := range pl.Short {
		short = append(short, s.String())
	}
	for _, r := range pl.Remedies {
		help = append(help, "would fit: "+r.Text)
	}
	return short, help
}

// memorySite is a site of which only the RAM is known.
func memorySite(root fs.FS, device string) Site {
	s := Site{Here: true, Device: device}
	s.Machine.Host = gpu.Host{Memory: gpu.ReadMeminfo(root), Cgroup: gpu.ReadCgroup(root)}
	return s
}

// planNotes are what a person should know of a plan that is carried out.
func planNotes(pl plan.Plan) (notes []string) {
	routed := false
	for _, l := range pl.Layers {
		routed = routed || l.File > 0
	}
	if routed && (pl.Placement == plan.AllFile || pl.Placement == plan.VRAMFile) {
		why := "the pack is bigger than the RAM that is free, so "
		for _, a := range pl.Alternatives {
			if a.Placement == plan.AllRAM && a.Fits {
				why = "" // it would fit, and this was wanted or is quicker
			}
		}
		notes = append(notes, why+"experts are read from the file as they are wanted")
	}
	return notes
}

// placedNotes say where a load is not what was planned.
func placedNotes(m *engine.Model) (notes []string) {
	for _, x := range m.Placed() {
		if x.Off() {
			notes = append(notes, "not as planned: "+x.String())
		}
	}
	return notes
}

// displays are the cards that drive a screen.
func displays(m gpu.Machine) map[string]bool {
	out := map[string]bool{}
	for _, c := range m.Cards {
		if len(c.Displays) > 0 {
			out[strings.ToLower(string(c.PCI))] = true
		}
	}
	return out
}
