package app

import (
	"context"
	"time"

	"outcrop/app/gateway"
	"outcrop/app/store"
	"outcrop/engine/catalog"
	"outcrop/engine/plan"
	"outcrop/engine/wire"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// Deps is what the window asks of the rest of the program. Every field but
// Engine, Packs and Cards may be left out.
type Deps struct {
	Engine Engine
	Packs  Packs
	Cards  Cards
	// OpenStore opens the conversations; it is called after the first frame.
	OpenStore func() (*store.Store, error)
	// Gateway opens the door for other programs; nil hides the Serve page's
	// switch.
	Gateway Gateway
	Version string
	DataDir string
	// UI runs a function on the main thread; nil is fyne.Do. Work runs one in
	// the background; nil is a goroutine. Tests replace both.
	UI   func(func())
	Work func(func())
	// Slow runs what may take a second, such as reading packs, beside Work;
	// nil is another goroutine, or Work where that is given.
	Slow func(func())
	// Every calls a function at intervals until stopped; nil is a ticker.
	Every func(time.Duration, func()) (stop func())
	Now   func() time.Time
}

// Phase is what the engine process does.
type Phase int

// The phases of an engine, in the order of a life.
const (
	EngineOff     Phase = iota
	EngineStart         // the process is being started
	EngineLoading       // it loads the pack
	EngineReady         // it answers
	EngineEnded         // it ended although nobody asked for it
)

// EngineState is everything the window knows of the engine process.
type EngineState struct {
	Phase       Phase
	Pack        string // name of the pack it has or loads
	Path        string
	Words       string // the phase in words
	Done, Total int64  // of loading; Total 0: unknown
	Since       time.Time
	Refused     bool     // of EngineEnded: the pack does not fit; starting again would change nothing
	Text        string   // of EngineEnded: what happened
	Next        string   // of EngineEnded: what helps
	Log         []string // of EngineEnded: its last lines
	Context     int
	Threads     int
	Device      string
	PID         int
}

// EngineSpec says what to start.
type EngineSpec struct {
	Name, Path string
	Threads    int      // 0: the engine's choice
	Context    int      // 0: the plan's choice
	KV         string   // "": the default
	Guard      string   // preset of the floors; "": the default
	Device     string   // "cpu", "auto" (cards that passed first light), PCI addresses or names of drivers with commas; "": the engine's choice
	Placement  string   // one of plan.Placements; "": the plan's choice
	Experts    string   // who computes experts without a slot: "cpu", "copy"; "": by measured rates
	Slots      int      // GiB of experts on each card; 0: what is left
	VRAMLimits []int    // GiB that may be used of each device in turn, the last one counts for the rest; 0: all that is free
	RAMLimit   int      // GiB of RAM that may be used; 0: all but the floor
	Env        []string // the whole environment, with the recipe applied; nil is ours
}

// Engine is the engine process and the way to talk to it. Watch's function is
// called from any goroutine.
type Engine interface {
	// Start begins to start an engine and returns; State tells how it goes. An
	// engine that runs is stopped first.
	Start(EngineSpec)
	Stop()
	State() EngineState
	Watch(func(EngineState)) (stop func())
	// Samples calls f with each telemetry reading while an engine runs.
	Samples(f func(wire.Sample)) (stop func())
	// Chat asks for an answer and calls emit with its pieces until it ends.
	Chat(ctx context.Context, r wire.ChatRequest, emit func(ChatEvent)) error
	// Close stops the engine for good.
	Close()
}

// ChatEvent is a piece of an answer.
type ChatEvent struct {
	Text, Reasoning string
	Phase           string // queued, prefill; "" otherwise
	Ahead           int    // requests before this one
	Done, Total     int    // prompt tokens
	Finish          string // stop, length, context, cancelled
	Timings         *wire.Timings
	Usage           *wire.Usage
	Notes           []string
}

// PackInfo is what `outcrop packs inspect --json` says of a pack; the fields
// have its names.
type PackInfo struct {
	Name         string `json:"name"`
	Path         string `json:"path"`
	Arch         string `json:"arch"`
	Known        bool   `json:"known"`
	Problem      string `json:"problem"`
	SizeLabel    string `json:"size_label"`
	Licence      string `json:"licence"`
	Author       string `json:"author"`
	Description  string `json:"description"`
	Shards       int    `json:"shards"`
	Bytes        int64  `json:"bytes"`
	Tensors      int    `json:"tensors"`
	Params       int64  `json:"params"`
	ActiveParams int64  `json:"active_params"`

	Layers      int `json:"layers"`
	DraftLayers int `json:"draft_layers"`
	Width       int `json:"width"`
	Vocab       int `json:"vocab"`
	Context     int `json:"context"`
	Heads       int `json:"heads"`
	KVHeads     int `json:"kv_heads"`
	Recurrent   int `json:"recurrent_layers"`

	Experts       int `json:"experts"`
	ExpertsUsed   int `json:"experts_used"`
	SharedExperts int `json:"shared_experts"`
	MoELayers     int `json:"moe_layers"`

	Formats []struct {
		Name    string `json:"name"`
		Tensors int    `json:"tensors"`
		Bytes   int64  `json:"bytes"`
	} `json:"formats"`

	Dense        int64            `json:"dense_bytes"`
	Expert       int64            `json:"expert_bytes"`
	OneExpert    int64            `json:"one_expert_bytes"`
	Active       int64            `json:"active_bytes"`
	KVPerToken   map[string]int64 `json:"kv_per_token"`
	StateBytes   int64            `json:"state_bytes"`
	Tokenizer    string           `json:"tokenizer"`
	ChatTemplate bool             `json:"chat_template"`
	Base         string           `json:"base"`
	Quantised    string           `json:"quant"`

	Metadata map[string]any `json:"metadata"`
}

// Packs is the list of packs and what is known of them. All methods may take
// long and are called in the background.
type Packs interface {
	List() ([]catalog.Entry, error)
	Add(path string) ([]catalog.Entry, error)
	Remove(name string) (undo func() error, err error)
	Health(catalog.Entry) catalog.Health
	Inspect(ctx context.Context, e catalog.Entry) (PackInfo, error)
	Plan(ctx context.Context, e catalog.Entry, w plan.Wishes) (plan.Plan, error)
	Known() []catalog.Known
	Find(ctx context.Context, ref string) (catalog.Source, error)
	Download(ctx context.Context, s catalog.Source, progress func(catalog.Progress)) ([]catalog.Entry, error)
	Unfinished() ([]catalog.Unfinished, error)
	Discard(name string) error
}

// Cards is the computer: what it has, how it is, and whether it computes
// right.
type Cards interface {
	Detect() (gpu.Machine, error)
	// Readings tells how the machine is, about once a second, for times when
	// no engine does. f is called from any goroutine.
	Readings(f func(wire.Sample)) (stop func())
	// Offers lists what the drivers offer to compute on and what has passed
	// first light. It may take seconds and is called in the background.
	Offers(ctx context.Context) (doctor.Offers, error)
	// FirstLight runs the known-answer tests on a device, in a process of its own:
	// a card's PCI address, a name of Offers, or "cpu". env is what the engine
	// would run with; nil is ours. It is called in the background and tells each step.
	// A test that was run to its end is no error, whatever it found.
	FirstLight(ctx context.Context, device string, env []string, tell func(doctor.LightLine)) error
	// Report writes a bundle for a bug report, with names removed.
	Report() (string, error)
}

// Gateway is the address where other programs reach the engine.
type Gateway interface {
	// Open listens; a busy port is an error that names the next free one.
	Open(addr, key string) error
	Close() error
	Addr() string // "" while closed
	Requests() []gateway.Request
	Watch(func()) (stop func())
}
