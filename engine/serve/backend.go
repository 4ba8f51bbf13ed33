package serve

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"outcrop/engine"
	"outcrop/engine/gguf"
	"outcrop/engine/plan"
	"outcrop/engine/vitals"
	"outcrop/engine/wire"
)

// Spec says what to load.
type Spec struct {
	Path    string // a GGUF file or a folder
	Name    string // what clients call it; "" is the pack's own name
	Demo    bool   // it is the starter
	Guard   string // preset of the memory guard; "" is daily
	Profile string // file that keeps which experts are used most; "" keeps none
	Force   bool   // load a pack that the plan says does not fit
	Options engine.Options
}

// Load opens and loads a pack and makes the backend of it.
func Load(ctx context.Context, sp Spec) (*Backend, error) {
	p, err := engine.OpenPack(sp.Path)
	if err != nil {
		return nil, err
	}
	b, err := load(ctx, p, sp)
	if err != nil {
		p.Close()
		return nil, err
	}
	return b, nil
}

func load(ctx context.Context, p *engine.Pack, sp Spec) (*Backend, error) {
	o := sp.Options
	// What every request needs is made first, so that a pack without a usable
	// tokenizer or template is an error at load and not at the first question.
	tok, err := p.Tokenizer()
	if err != nil {
		return nil, err
	}
	tpl, err := p.Template()
	if err != nil {
		return nil, err
	}
	notes, err := place(vitals.Live(), p, &o, sp)
	if err != nil {
		return nil, err
	}
	m, err := engine.Load(ctx, p, o)
	if err != nil {
		return nil, err
	}
	sess, err := m.NewSession()
	if err != nil {
		m.Close()
		return nil, err
	}
	notes = append(notes, m.OnCPU()...)
	info := p.Info()
	b := &Backend{
		Name: sp.Name, Tokenizer: tok, Template: tpl, Session: sess, Telemetry: m.Telemetry, Residency: m.Residency, Wanted: o.Device,
		Defaults: defaultsOf(p.File().Meta()), Loaded: time.Now(),
		Info: wire.ModelInfo{
			Arch: p.Arch, Path: p.Path, Bytes: p.Size(), Context: m.Context(), ContextTrain: info.Context,
			Vocab: m.Vocab(), Threads: m.Threads(), Template: "pack", Demo: sp.Demo, Notes: notes,
		},
	}
	if tpl.Fallback() {
		b.Info.Template = "chatml"
	}
	if b.Name == "" {
		b.Name = p.Name
	}
	b.Watch = watcher(m, engine.WatchOptions{Root: vitals.Live(), Config: guardConfig(sp.Guard, vitals.Live()), Profile: sp.Profile})
	b.Close = func() error {
		sess.Close()
		err := m.Close()
		if cerr := p.Close(); err == nil {
			err = cerr
		}
		return err
	}
	return b, nil
}

// place asks the plan where the pack will live and sets what follows from it.
// The notes say what a person should know, such as that the experts stay in the
// file. A pack whose plan would leave less than the floor is refused with the
// numbers and what would help, since the guard could only end its answers
// later; Spec.Force loads it all the same.
func place(root fs.FS, p *engine.Pack, o *engine.Options, sp Spec) (notes []string, err error) {
	facts, err := p.PlanFacts()
	if err != nil {
		return nil, nil // the load says why
	}
	if sp.Profile != "" {
		// Without one, experts count as used alike.
		_ = p.UseProfile(&facts, sp.Profile)
	}
	mem := memoryNow(root)
	m := plan.Machine{Threads: max(o.Threads, 1)}
	if mem.RAMTotal.Known {
		m.RAMTotal = plan.Known(mem.RAMTotal.N, "vitals")
	}
	if mem.RAMAvailable.Known {
		m.RAMAvailable = plan.Known(mem.RAMAvailable.N, "vitals")
	}
	floor := guardConfig(sp.Guard, root).RAMFloor
	w := plan.Wishes{Context: o.Context, KV: o.KV, Chunk: o.Chunk, RAMFloor: floor, NoDraft: o.Draft == "off"}
	if w.Context == 0 {
		w.Context = min(max(facts.Trained, 1), engine.DefaultContext)
	}
	pl, err := plan.Make(facts, m, w)
	if err != nil {
		return nil, nil // impossible wishes: the load names them
	}
	if pl.Placement == plan.AllRAM && pl.Fits && o.Relay == 0 {
		o.Relay = RelayRoom(root, floor)
	}
	if pl.Placement == plan.AllFile {
		o.FileTier = true
		notes = append(notes, "the pack is bigger than the RAM that is free, so experts are read from the file as they are wanted")
		if o.ExpertRAM == 0 {
			o.ExpertRAM = pl.ExpertRAM
		}
	}
	if pl.Fits {
		return notes, nil
	}
	var short, help []string
	for _, s := range pl.Short {
		short = append(short, fmt.Sprintf("%s is short of %d MiB (%s)", s.Where, s.Bytes>>20, s.Why))
	}
	for _, r := range pl.Remedies {
		help = append(help, "would fit: "+r.Text)
	}
	if sp.Force {
		return append(append(notes, short...), help...), nil
	}
	help = append(help, "or load it all the same with --force")
	return nil, fmt.Errorf("%s does not fit: %s; %s", p.Name, strings.Join(short, ", "), strings.Join(help, "; "))
}

// RelayRoom is how much RAM all weights of a pack may take when copies in a
// faster layout are made: what is available, less the floor and room for caches.
func RelayRoom(root fs.FS, floor int64) int64 {
	a := memoryNow(root).RAMAvailable
	if !a.Known {
		return 0
	}
	return max(0, a.N-floor-1<<30)
}

// defaultsOf reads the settings that a pack's makers recommend
// (general.sampling.*, gguf specification); what they leave open gets values
// that suit small and large models alike.
func defaultsOf(m *gguf.Meta) Defaults {
	d := Defaults{Temperature: 0.8, TopP: 0.95, TopK: 40, MinP: 0.05}
	float := func(key string, out *float32) {
		if v, err := m.Float("general.sampling." + key); err == nil && v >= 0 && v < 100 {
			*out = float32(v)
		}
	}
	float("temp", &d.Temperature)
	float("top_p", &d.TopP)
	float("min_p", &d.MinP)
	float("penalty_repeat", &d.Repeat)
	if v, err := m.Int("general.sampling.top_k"); err == nil && v >= 0 && v < 1<<20 {
		d.TopK = int(v)
	}
	return d
}
