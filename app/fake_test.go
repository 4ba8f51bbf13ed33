package app

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"outcrop/app/gateway"
	"outcrop/app/store"
	"outcrop/app/widget"
	"outcrop/engine/catalog"
	"outcrop/engine/plan"
	"outcrop/engine/wire"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// fakeEngine answers from a script. Start makes it ready at once unless hold
// is set.
type fakeEngine struct {
	mu      sync.Mutex
	state   EngineState
	watch   map[int]func(EngineState)
	samples map[int]func(wire.Sample)
	next    int
	hold    bool
	specs   []EngineSpec
	asked   []wire.ChatRequest
	// pieces feeds the running answer; closing it ends the answer well.
	pieces chan ChatEvent
	broken error // what Chat returns at the end
}

func newFakeEngine() *fakeEngine {
	return &fakeEngine{watch: map[int]func(EngineState){}, samples: map[int]func(wire.Sample){}, pieces: make(chan ChatEvent, 1000)}
}

func (e *fakeEngine) set(s EngineState) {
	e.mu.Lock()
	e.state = s
	var fs []func(EngineState)
	for _, f := range e.watch {
		fs = append(fs, f)
	}
	e.mu.Unlock()
	for _, f := range fs {
		f(s)
	}
}

func (e *fakeEngine) Start(s EngineSpec) {
	e.mu.Lock()
	e.specs = append(e.specs, s)
	hold := e.hold
	e.mu.Unlock()
	e.set(EngineState{Phase: EngineLoading, Pack: s.Name, Path: s.Path, Words: "reading the file", Done: 1 << 28, Total: 4 << 28})
	if !hold {
		e.ready(s.Name)
	}
}

func (e *fakeEngine) ready(name string) {
	e.set(EngineState{Phase: EngineReady, Pack: name, Device: "CPU", Context: 2048, Threads: 2, PID: 77})
}

func (e *fakeEngine) Stop() { e.set(EngineState{}) }

func (e *fakeEngine) State() EngineState { e.mu.Lock(); defer e.mu.Unlock(); return e.state }

func (e *fakeEngine) Watch(f func(EngineState)) func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	n := e.next
	e.watch[n] = f
	return func() { e.mu.Lock(); delete(e.watch, n); e.mu.Unlock() }
}

func (e *fakeEngine) Samples(f func(wire.Sample)) func() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.next++
	n := e.next
	e.samples[n] = f
	return func() { e.mu.Lock(); delete(e.samples, n); e.mu.Unlock() }
}

func (e *fakeEngine) tell(s wire.Sample) {
	e.mu.Lock()
	var fs []func(wire.Sample)
	for _, f := range e.samples {
		fs = append(fs, f)
	}
	e.mu.Unlock()
	for _, f := range fs {
		f(s)
	}
}

func (e *fakeEngine) Chat(ctx context.Context, r wire.ChatRequest, emit func(ChatEvent)) error {
	e.mu.Lock()
	e.asked = append(e.asked, r)
	pieces := e.pieces
	e.mu.Unlock()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case p, ok := <-pieces:
			if !ok {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.pieces = make(chan ChatEvent, 1000)
				return e.broken
			}
			emit(p)
		}
	}
}

func (e *fakeEngine) Close() {}

func (e *fakeEngine) last() wire.ChatRequest {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked[len(e.asked)-1]
}

// fakePacks is a list of two: the demo and one that is big.
type fakePacks struct {
	measured   int
	mu         sync.Mutex
	list       []catalog.Entry
	plans      map[string]plan.Plan
	infos      map[string]PackInfo
	fail       map[string]error
	progress   []catalog.Progress
	unfinished []catalog.Unfinished
	wished     map[string]plan.Wishes // of the last plan of each pack
}

func (p *fakePacks) Measure(context.Context, catalog.Entry) error {
	p.measured++
	return nil
}

func newFakePacks() *fakePacks {
	p := &fakePacks{plans: map[string]plan.Plan{}, infos: map[string]PackInfo{}, fail: map[string]error{}}
	p.list = []catalog.Entry{
		{Name: "starter", Path: "/packs/starter.gguf", Arch: "qwen35moe", Title: "Outcrop starter", Demo: true, Files: []catalog.File{{Path: "/packs/starter.gguf", Size: 11710112}}},
		{Name: "Qwen3-30B-A3B-Q4_K_M", Path: "/packs/Qwen3-30B-A3B-Q4_K_M.gguf", Arch: "qwen3moe", Title: "Qwen3 30B A3B", Files: []catalog.File{{Path: "/packs/Qwen3-30B-A3B-Q4_K_M.gguf", Size: 18556689568}}},
		{Name: "mystery", Path: "/packs/mystery.gguf", Arch: "newthing", Note: "family newthing is not known to this version", Files: []catalog.File{{Path: "/packs/mystery.gguf", Size: 4 << 30}}},
	}
	p.infos["starter"] = PackInfo{Name: "starter", Arch: "qwen35moe", Known: true, SizeLabel: "16M", Licence: "MIT", Bytes: 11710112, Tensors: 169,
		Params: 16171424, ActiveParams: 6240000, Layers: 8, DraftLayers: 1, Width: 256, Vocab: 4096, Context: 2048, Heads: 4, KVHeads: 2, Recurrent: 6,
		Experts: 16, ExpertsUsed: 2, SharedExperts: 1, MoELayers: 8, Dense: 5 * mib, Expert: 6 * mib, Active: 3 * mib, ChatTemplate: true, Tokenizer: "gpt2 qwen35",
		KVPerToken: map[string]int64{"f16": 1024}}
	p.infos["Qwen3-30B-A3B-Q4_K_M"] = PackInfo{Name: "Qwen3-30B-A3B-Q4_K_M", Arch: "qwen3moe", Known: true, SizeLabel: "30B-A3B", Licence: "apache-2.0",
		Bytes: 18556689568, Tensors: 579, Params: 30532122624, ActiveParams: 3345000000, Layers: 48, Width: 2048, Vocab: 151936, Context: 40960, Heads: 32, KVHeads: 4,
		Experts: 128, ExpertsUsed: 8, MoELayers: 48, Dense: 1200 * mib, Expert: 16 * gib, OneExpert: 3 * mib, Active: 2 * gib, ChatTemplate: true, Tokenizer: "gpt2 qwen2",
		KVPerToken: map[string]int64{"f16": 98304}}
	p.infos["mystery"] = PackInfo{Name: "mystery", Arch: "newthing", Problem: "family newthing is not known; known are llama, qwen2, qwen3", Bytes: 4 << 30, Params: 7e9}
	seg := func(kind string, n int64, why string) plan.Segment {
		return plan.Segment{Kind: kind, Bytes: n, Why: why}
	}
	p.plans["starter"] = plan.Plan{Pack: "starter", Fits: true, Placement: plan.AllRAM, Words: "everything in RAM, the CPU computes", Context: 2048, KV: "f16",
		RAM:   plan.Use{Total: plan.Known(29*gib, "/proc/meminfo"), Segments: []plan.Segment{seg("weights", 12*mib, "all weights"), seg("others", 6*gib, "other programs"), seg("floor", 4*gib, "kept free"), seg("free", 19*gib, "")}},
		File:  plan.Use{Total: plan.Known(11710112, "file"), Segments: []plan.Segment{seg("weights", 11710112, "the pack")}},
		Speed: plan.Speed{DecodeLow: 400, DecodeHigh: 800, PrefillLow: 3000, PrefillHigh: 6000}}
	p.plans["Qwen3-30B-A3B-Q4_K_M"] = plan.Plan{Pack: "Qwen3-30B-A3B-Q4_K_M", Fits: true, Placement: plan.VRAMFile, Words: "experts in VRAM and in the file, the CPU computes those in the file's pages", Context: 16384, KV: "q8",
		Cards: []plan.CardUse{{PCI: "0000:03:00.0", Name: "Arc A770", Slots: 2100, Reserve: 2 * gib, Use: plan.Use{Total: plan.Known(16225243136, "sysfs"), Segments: []plan.Segment{
			seg("weights", 1200*mib, "the dense part"), seg("kv", 1600*mib, "16K tokens of int8"), seg("scratch", 400*mib, "work space"), seg("slots", 9*gib, "2100 experts of 6144"), seg("others", 700*mib, "desktop"), seg("reserve", 2*gib, "for the desktop"), seg("free", 300*mib, "")}}}},
		RAM:          plan.Use{Total: plan.Known(29*gib, "/proc/meminfo"), Segments: []plan.Segment{seg("cache", 13*gib, "pages of the file"), seg("others", 6*gib, "other programs"), seg("floor", 4*gib, "kept free"), seg("free", 6*gib, "")}},
		File:         plan.Use{Total: plan.Known(18556689568, "file"), Segments: []plan.Segment{seg("weights", 18556689568, "the pack")}},
		Speed:        plan.Speed{DecodeLow: 7, DecodeHigh: 12, PrefillLow: 60, PrefillHigh: 120, Terms: []plan.Term{{Name: "experts from RAM", Ms: 61, Why: "4.2 GB at 68 GB/s"}, {Name: "VRAM", Ms: 22, Why: "1.1 GB at 50 GB/s"}}},
		Reasons:      []string{"29 GiB of RAM cannot hold a copy of the experts beside the desktop: the file's pages are used."},
		Alternatives: []plan.Alternative{{Placement: plan.AllRAM, Fits: true, Why: "slower: no VRAM used", Speed: plan.Speed{DecodeLow: 4, DecodeHigh: 6}}}}
	return p
}

func (p *fakePacks) List() ([]catalog.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]catalog.Entry{}, p.list...), nil
}

func (p *fakePacks) Add(path string) ([]catalog.Entry, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !strings.HasSuffix(path, ".gguf") {
		return nil, errors.New("add " + path + ": no GGUF file there")
	}
	e := catalog.Entry{Name: strings.TrimSuffix(filepath.Base(path), ".gguf"), Path: path, Arch: "llama", Files: []catalog.File{{Path: path, Size: 1 << 30}}}
	p.list = append(p.list, e)
	return []catalog.Entry{e}, nil
}

func (p *fakePacks) Remove(name string) (func() error, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, e := range p.list {
		if e.Name == name {
			if e.Demo {
				return nil, catalog.ErrStarter
			}
			p.list = append(p.list[:i:i], p.list[i+1:]...)
			return func() error {
				p.mu.Lock()
				defer p.mu.Unlock()
				p.list = append(p.list, e)
				return nil
			}, nil
		}
	}
	return nil, catalog.ErrUnknown
}

func (p *fakePacks) Health(e catalog.Entry) catalog.Health {
	if e.Name == "mystery" {
		return catalog.Health{Status: catalog.Odd, Text: e.Note}
	}
	return catalog.Health{Status: catalog.Good, Text: "as it was when it was added"}
}

func (p *fakePacks) Inspect(_ context.Context, e catalog.Entry) (PackInfo, error) {
	if err := p.fail[e.Name]; err != nil {
		return PackInfo{}, err
	}
	if i, ok := p.infos[e.Name]; ok {
		return i, nil
	}
	return PackInfo{Name: e.Name, Arch: e.Arch, Known: true, Bytes: e.Size(), Params: e.Size() * 2}, nil
}

func (p *fakePacks) Plan(_ context.Context, e catalog.Entry, w plan.Wishes) (plan.Plan, error) {
	p.mu.Lock()
	if p.wished == nil {
		p.wished = map[string]plan.Wishes{}
	}
	p.wished[e.Name] = w
	p.mu.Unlock()
	if pl, ok := p.plans[e.Name]; ok {
		return pl, nil
	}
	return plan.Plan{}, errors.New("plan " + e.Name + ": family is not known")
}

func (p *fakePacks) Known() []catalog.Known { return catalog.KnownPacks }

func (p *fakePacks) Find(_ context.Context, ref string) (catalog.Source, error) {
	if ref == "bad" {
		return catalog.Source{}, errors.New("find bad: neither an address nor owner/name")
	}
	if ref == "many/choices" {
		return catalog.Source{}, &catalog.ChoiceError{Repo: ref, Options: []catalog.Option{{Ref: "many/choices:Q4_K_M", Bytes: 5 << 30, Files: 1}, {Ref: "many/choices:Q8_0", Bytes: 9 << 30, Files: 2}}}
	}
	return catalog.Source{Name: "found", Origin: ref, Files: []catalog.RemoteFile{{Name: "found.gguf", Size: 5 << 30}}}, nil
}

func (p *fakePacks) Download(ctx context.Context, s catalog.Source, progress func(catalog.Progress)) ([]catalog.Entry, error) {
	for _, g := range p.progress {
		progress(g)
	}
	if len(p.progress) > 0 && p.progress[len(p.progress)-1].Phase != "done" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return p.Add("/packs/" + s.Name + ".gguf")
}

func (p *fakePacks) Unfinished() ([]catalog.Unfinished, error) { return p.unfinished, nil }
func (p *fakePacks) Discard(string) error                      { p.unfinished = nil; return nil }

// fakeCards is a machine that was recorded.
type fakeCards struct {
	machine gpu.Machine
	offers  doctor.Offers
	lines   []doctor.LightLine // of first light
	broken  error              // how it ends
	hang    bool               // it ends when it is stopped
	asked   []string           // the devices it was asked for
}

func (c *fakeCards) Detect() (gpu.Machine, error) { return c.machine, nil }

func (c *fakeCards) Readings(f func(wire.Sample)) func() {
	f(wire.Sample{Time: time.Now(), Memory: wire.Memory{Total: wire.Known(29*gib, "bytes", "/proc/meminfo"), Available: wire.Known(21*gib, "bytes", "/proc/meminfo"), Level: "good"}})
	return func() {}
}

func (c *fakeCards) Offers(context.Context) (doctor.Offers, error) { return c.offers, nil }

func (c *fakeCards) FirstLight(ctx context.Context, device string, _ []string, tell func(doctor.LightLine)) error {
	c.asked = append(c.asked, device)
	for _, l := range c.lines {
		tell(l)
	}
	if c.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.broken
}

func (c *fakeCards) Report() (string, error) { return "a report", nil }

// rig is a window over fakes whose background work and main thread are
// stepped by the test.
type rig struct {
	t      *testing.T
	a      *App
	engine *fakeEngine
	packs  *fakePacks
	cards  *fakeCards
	queue  chan func()
	ticks  map[int]func()
	n      int
	mu     sync.Mutex
	now    time.Time
}

func newRig(t *testing.T, look Look) *rig { return newRigIn(t, look, t.TempDir()) }

func newRigIn(t *testing.T, look Look, dir string) *rig {
	t.Helper()
	f := test.NewTempApp(t)
	f.Preferences().SetString(prefLook, string(look))
	r := &rig{t: t, engine: newFakeEngine(), packs: newFakePacks(), cards: &fakeCards{machine: testMachine()},
		queue: make(chan func(), 10000), ticks: map[int]func(){}, now: time.Now()}
	r.a = New(f, Deps{
		Engine: r.engine, Packs: r.packs, Cards: r.cards, DataDir: "the data folder", Version: "test",
		Gateway:   &gateway.Gateway{Target: func() (string, string) { return "", "" }},
		OpenStore: func() (*store.Store, error) { return store.Open(HistoryPath(dir)) },
		UI:        func(f func()) { r.queue <- f },
		Work:      func(f func()) { f() },
		Every: func(_ time.Duration, f func()) func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.n++
			n := r.n
			r.ticks[n] = f
			return func() { r.mu.Lock(); delete(r.ticks, n); r.mu.Unlock() }
		},
		Now: func() time.Time { return r.now },
	})
	t.Cleanup(r.a.Close)
	r.a.Begin()
	r.pump()
	return r
}

// pump runs what waits for the main thread.
func (r *rig) pump() {
	for {
		select {
		case f := <-r.queue:
			f()
		default:
			return
		}
	}
}

// tick lets time pass for everything that repeats.
func (r *rig) tick() {
	r.mu.Lock()
	var fs []func()
	for _, f := range r.ticks {
		fs = append(fs, f)
	}
	r.mu.Unlock()
	for _, f := range fs {
		f()
	}
	r.pump()
}

// until pumps until a condition holds; it fails after five seconds.
func (r *rig) until(what string, ok func() bool) {
	r.t.Helper()
	end := time.After(5 * time.Second)
	for {
		r.pump()
		if ok() {
			return
		}
		select {
		case f := <-r.queue:
			f()
		case <-end:
			r.t.Fatalf("waited in vain: %s", what)
		case <-time.After(2 * time.Millisecond):
			r.tick()
		}
	}
}

func (r *rig) typeKey(o fyne.Focusable, k fyne.KeyName) { o.TypedKey(&fyne.KeyEvent{Name: k}) }

// feed tells n seconds of an engine on the card: loading, reading a prompt,
// answering, and RAM that gets tight.
func (r *rig) feed(n int) {
	for i := range n {
		f := float64(i) / float64(n)
		s := wire.Sample{Time: r.now, Pack: "starter", Engine: wire.Engine{Status: "ok", Phase: "decode", DecodeTokS: 34 + 5*math.Sin(float64(i)/7), MSPerStep: 28, ContextUsed: 1800 + 12*i, ContextSize: 65536,
			Tokens: int64(30 * i), Drafted: 100, Accepted: 74, Threads: 8, Device: "Arc A770", Use: wire.Use{Weights: 6 * gib, KV: gib, Scratch: 400 * mib}}}
		if i%30 < 4 {
			s.Engine.Phase, s.Engine.PrefillDone, s.Engine.PrefillTotal = "prefill", 400*(i%30), 1600
		}
		b := func(v float64) wire.Reading { return wire.Known(v, "bytes", "/proc/meminfo") }
		s.Memory = wire.Memory{Total: b(29 * gib), Available: b((20 - 14*f) * gib), SwapUsed: b(0), SomeAvg10: wire.Known(20*f*f, "percent", "/proc/pressure/memory"),
			FullAvg10: wire.Known(8*f*f, "percent", "/proc/pressure/memory"), Level: "good"}
		if f > 0.6 {
			s.Memory.Level = "watch"
		}
		if f > 0.85 {
			s.Memory.Level = "act"
			s.Guard = wire.Guard{Preset: "daily", Step: "gives back mapped pages", Acting: true, Words: []string{"Gave back 1.2 GiB of mapped pages: 4.4 GiB of RAM were left"}}
		}
		s.Process = wire.Process{PID: 77, Anon: b(1.5 * gib), Mapped: b((3 + 6*f) * gib), RSS: b(5 * gib), Major: wire.Known(1234, "", "/proc/77/stat")}
		s.CPU = wire.CPU{Busy: wire.Known(61, "percent", "/proc/stat"), Process: wire.Known(740, "percent", "/proc/77/stat"), Cores: 8}
		s.Cards = []wire.Card{{PCI: "0000:03:00.0", Name: "Arc A770", Used: true, Total: b(15.1 * gib), VRAM: b((7.4 + 1.6*f) * gib), Own: b((6.9 + 1.4*f) * gib),
			Use:  &wire.CardUse{Layers: 48, Weights: 1200 * mib, KV: 1600 * mib, Slots: int64((3.4 + 1.4*f) * gib), Scratch: 400 * mib},
			Busy: wire.Known(93, "percent", "fdinfo"), Temp: wire.Known(67, "°C", "hwmon"), Power: wire.Unknown("W", "hwmon", "the driver has no such file"), Clock: wire.Known(2400, "MHz", "sysfs")}}
		s.Tiers = &wire.Tiers{VRAM: 8200, RAM: 1300, File: 500, WaitMS: 6.1}
		r.residency(&s)
		r.engine.tell(s)
		r.pump()
		r.now = r.now.Add(time.Second)
	}
}

func (r *rig) residency(s *wire.Sample) {
	res := &wire.Residency{Layers: 24, Experts: 64}
	for l := range res.Layers {
		for e := range res.Experts {
			use := 1 / float64(1+(e*37+l*11)%64) / 5
			tier := widget.TierFile
			switch {
			case use > 0.02:
				tier = widget.TierVRAM
			case use > 0.006:
				tier = widget.TierRAM
			}
			res.Tier = append(res.Tier, tier)
			res.Use = append(res.Use, use)
		}
	}
	s.Residency = res
}

// testMachine is a computer with an Arc A770 on xe.
func testMachine() gpu.Machine {
	return gpu.Machine{
		Cards: []gpu.Card{{PCI: "0000:03:00.0", Vendor: gpu.Intel, Device: 0x56a0, Name: "Arc A770", Arch: "dg2", Chip: "DG2-G10", Discrete: true, Driver: "xe",
			Memory: gpu.Memory{Total: gpu.Known[int64](16225243136, "sysfs"), GBs: gpu.Known(560, "table")},
			BAR:    gpu.BAR{Size: gpu.Known[int64](16*gib, "sysfs"), Resizable: gpu.Known(true, "sysfs")},
			Link:   gpu.Link{Speed: gpu.Known(16.0, "bridge"), Width: gpu.Known(16, "bridge")},
			Node:   gpu.Node{Path: "/dev/dri/renderD128", Access: gpu.Known(true, "open")}}},
		Host: gpu.Host{OS: "linux", Kernel: "6.12.9", CPU: gpu.CPU{Name: "AMD Ryzen 7 5800X", Cores: 8, Threads: 16},
			Memory: gpu.Meminfo{Total: gpu.Known[int64](29*gib, "/proc/meminfo"), Available: gpu.Known[int64](21*gib, "/proc/meminfo")},
			Distro: gpu.Distro{ID: "fedora", Name: "Fedora Linux 41"}},
	}
}
