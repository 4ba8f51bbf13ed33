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
	Rates   string // file of measured rates; "" has none
	// Wishes are what the plan is to keep to, beside what Options say.
	Wishes  plan.Wishes
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
	site, err := Here(o.Device, o.KernelCache)
	if err != nil {
		if o.Device != "auto" {
			return nil, err
		}
		site = memorySite(vitals.Live(), "")
	}
	site.Threads, site.Rates, site.Pack = o.Threads, sp.Rates, p.File().Shards()[0].Path
	if sp.Rates != "" && p.Size() >= measureFrom {
		// Once for a machine; a plan without it is only less sure of its speeds.
		_ = Measure(ctx, site, false, func(what string) {
			if o.Progress != nil {
				o.Progress("measure", 0, 0)
			}
		})
	}
	notes, err := place(vitals.Live(), site, p, &o, sp)
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
	notes = append(append(notes, m.OnCPU()...), m.Slow()...)
	info := p.Info()
	b := &Backend{
		Name: sp.Name, Tokenizer: tok, Template: tpl, Session: sess, Telemetry: m.Telemetry, Residency: m.Residency, Wanted: o.Device, Idle: idleReason(o.Device, o.KernelCache, o.Plan),
		Defaults: defaultsOf(p.File().Meta()), Loaded: time.Now(),
		Info: wire.ModelInfo{
			Arch: p.Arch, Path: p.Path, Bytes: p.Size(), Context: m.Context(), ContextTrain: info.Context,
			Vocab: m.Vocab(), Threads: m.Threads(), Template: "pack", Demo: sp.Demo, Notes: notes,
		},
	}
	b.Info.Notes = append(b.Info.Notes, placedNotes(m)...)
	if tpl.Fallback() {
		b.Info.Template = "chatml"
	}
	if b.Name == "" {
		b.Name = p.Name
	}
	sensors := site.sensors()
	b.Watch = watcher(m, engine.WatchOptions{Root: vitals.Live(), Config: guardConfig(sp.Guard, vitals.Live()), Profile: sp.Profile,
		Cards: sensors.read, Displays: displays(site.Machine)})
	b.Close = func() error {
		sensors.close()
		sess.Close()
		err := m.Close()
		if cerr := p.Close(); err == nil {
			err = cerr
		}
		return err
	}
	return b, nil
}

// Place has the plan say where a pack lies on this machine, as Load does, and
// sets the options that follow.
func Place(p *engine.Pack, o *engine.Options, sp Spec) (notes []string, err error) {
	site, err := Here(o.Device, o.KernelCache)
	if err != nil {
		return nil, err
	}
	site.Threads, site.Rates, site.Pack = o.Threads, sp.Rates, p.File().Shards()[0].Path
	if sp.Rates != "" && p.Size() >= measureFrom && o.Placement.Split == nil {
		if list, err := site.devices(); err == nil && len(list) > 1 {
			// Layers are dealt out by what each card is measured to do.
			_ = Measure(context.Background(), site, false, nil)
		}
	}
	return place(vitals.Live(), site, p, o, sp)
}

// measureFrom is the size of packs that a machine is measured for before their
// first load: a small one is loaded before that would have ended.
const measureFrom = 2 << 30

// place asks the plan where the pack will live and has the load keep to it.
// The notes say what a person should know, such as that the experts stay in the
// file. A pack whose plan would leave less than the floor is refused with the
// numbers and what would help, since the guard could only end its answers
// later; Spec.Force loads it all the same.
func place(root fs.FS, site Site, p *engine.Pack, o *engine.Options, sp Spec) (notes []string, err error) {
	floor := guardConfig(sp.Guard, root).RAMFloor
	w := sp.Wishes
	w.Context, w.KV, w.Chunk, w.NoDraft = o.Context, o.KV, o.Chunk, o.Draft == "off"
	w.VRAMCaps, w.Split = o.VRAMLimit, o.Placement.Split
	if w.RAMFloor == 0 {
		w.RAMFloor = floor
	}
	// Who says how many bytes of copies there are, or has every step compared,
	// places by hand.
	byHand := o.ExpertRAM != 0 || o.Check
	if byHand {
		site.Device = ""
	}
	pl, _, err := PlanFor(p, site, sp.Profile, w)
	if err != nil {
		if w.Placement != "" || w.Experts != "" || w.Slots != 0 {
			return nil, err
		}
		return nil, nil // impossible wishes: the load names them
	}
	if w.Split != nil && !byHand && (len(pl.Cards) == 0 || !pl.Fits) {
		// Layers were asked of cards by number: the load says by how much a card
		// is too small, rather than that the CPU takes them.
		return planNotes(pl), nil
	}
	if pl.Placement == plan.AllRAM && pl.Fits && o.Relay == 0 {
		o.Relay = RelayRoom(root, w.RAMFloor)
	}
	switch {
	case byHand && pl.Placement == plan.AllFile:
		o.FileTier = true
	case !byHand && pl.Fits:
		o.Plan = &pl
		if o.Misses == "" && w.Experts == plan.ExpertsCopy {
			o.Misses = "link"
		}
	case pl.Placement == plan.AllFile:
		o.FileTier, o.ExpertRAM = true, pl.ExpertRAM
	}
	notes = planNotes(pl)
	if len(pl.Cards) == 0 && site.Device != "" && site.Device != "cpu" && site.Device != "auto" {
		notes = append(notes, "the card that was asked for is not used: "+strings.Join(pl.Reasons, "; "))
	}
	if pl.Fits {
		return notes, nil
	}
	short, help := shortWords(pl)
	if sp.Force {
		return append(append(notes, short...), help...), nil
	}
	help = append(help, "or load it all the same with --force")
	return nil, fmt.Errorf("%s does not fit: %s; %s", p.Name, strings.Join(short, ", "), strings.Join(help, "; "))
}

// idleReason says why a plan uses no card although one was wanted; "" when it
// does, or none was.
func idleReason(device, cache string, pl *plan.Plan) string {
	if device == "" || device == "cpu" || pl == nil || len(pl.Cards) > 0 {
		return ""
	}
	if _, err := engine.Chosen(device, cache); err != nil {
		return err.Error()
	}
	return "the plan does without it: " + strings.Join(pl.Reasons, "; ")
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
