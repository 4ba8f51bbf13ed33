package wire

import (
	"encoding/json"
	"time"
)

// Sample is one reading of everything, sent by GET /telemetry once a second
// and at each change of phase. Bytes are bytes, rates are per second.
type Sample struct {
	Time    time.Time `json:"time"`
	Pack    string    `json:"pack"`
	Engine  Engine    `json:"engine"`
	Memory  Memory    `json:"memory"`
	Process Process   `json:"process"`
	CPU     CPU       `json:"cpu"`
	Disk    Reading   `json:"disk_read"` // of all disks, bytes/s
	Cards   []Card    `json:"cards"`
	Guard   Guard     `json:"guard"`
	// Tiers and Residency are nil where the engine has no tiers.
	Tiers     *Tiers     `json:"tiers,omitempty"`
	Residency *Residency `json:"residency,omitempty"`
}

// Guard is what the memory guard does.
type Guard struct {
	Preset string   `json:"preset"` // full, daily, busy or off
	Step   string   `json:"step"`   // what the engine has given up, in words
	Acting bool     `json:"acting"` // the step is more than "normal"
	Words  []string `json:"words"`  // the last changes, with the numbers behind them, newest last
}

// Engine says what the engine does now.
type Engine struct {
	Status       string  `json:"status"` // loading, ok, stopping, failed
	Phase        string  `json:"phase"`  // loading, idle, prefill, decode; or a longer phase in words
	DecodeTokS   float64 `json:"decode_tok_s"`
	PrefillTokS  float64 `json:"prefill_tok_s"`
	MSPerStep    float64 `json:"ms_per_step"`
	PrefillDone  int     `json:"prefill_done"`
	PrefillTotal int     `json:"prefill_total"`
	LoadDone     int64   `json:"load_done,omitempty"`
	LoadTotal    int64   `json:"load_total,omitempty"`
	ContextUsed  int     `json:"context_used"`
	ContextSize  int     `json:"context_size"`
	Tokens       int64   `json:"tokens"` // generated since start
	Drafted      int64   `json:"drafted"`
	Accepted     int64   `json:"accepted"`
	Threads      int     `json:"threads"`
	Kernel       string  `json:"kernel"` // CPU level in use
	Device       string  `json:"device"` // where it runs: "CPU", or a card's name
	// DeviceWhy is why the CPU computes although a card was wanted; empty when a
	// card does or none was wanted. DeviceWanted is what was asked for.
	DeviceWhy    string  `json:"device_why,omitempty"`
	DeviceWanted string  `json:"device_wanted,omitempty"` // cpu, auto, or names with commas
	LayerTimes   *Layers `json:"layer_times,omitempty"`   // nil while no card computes
	// OnCPU says which parts of the layers on cards the CPU computes, and why.
	OnCPU []string `json:"on_cpu,omitempty"`
	// Slow says what runs slower than the cards could run it, and why.
	Slow   []string `json:"slow,omitempty"`
	Check  string   `json:"check,omitempty"` // what check mode has found; empty: it is off
	Queue  int      `json:"queue"`           // requests waiting
	Active int      `json:"active"`          // requests running: 0 or 1
	Use    Use      `json:"use"`
	// BytesPerToken is what of the weights one token reads; ReadBS how fast that
	// is while decoding, bytes/s.
	BytesPerToken int64   `json:"bytes_per_token"`
	ReadBS        float64 `json:"read_b_s"`
}

// Layers are milliseconds of a layer that runs on a card, means since the start:
// the card as the host sees it, the CPU with routed experts, and the part of the
// card's time in which the CPU had nothing to do.
type Layers struct {
	Count  int     `json:"count"` // layers on cards
	CardMS float64 `json:"card_ms"`
	CPUMS  float64 `json:"cpu_ms"`
	WaitMS float64 `json:"wait_ms"`
}

// Use is memory by what it is for.
type Use struct {
	Weights int64 `json:"weights"` // bytes of the file in use, mapped or copied
	KV      int64 `json:"kv"`
	Scratch int64 `json:"scratch"`
	Relaid  int64 `json:"relaid"` // re-laid copies of weights
}

// Memory is the machine's RAM. Available and pressure may be unknown.
type Memory struct {
	Total     Reading `json:"total"`
	Available Reading `json:"available"`
	SwapUsed  Reading `json:"swap_used"`
	// SomeAvg10 and FullAvg10 are the shares of the last 10 s, in percent, in
	// which some or all tasks waited for memory (kernel PSI).
	SomeAvg10 Reading `json:"psi_some_avg10"`
	FullAvg10 Reading `json:"psi_full_avg10"`
	Limit     Reading `json:"cgroup_limit"` // of our control group
	Used      Reading `json:"cgroup_used"`
	Cache     Reading `json:"cgroup_cache"` // of that, clean file pages the kernel can drop
	Level     string  `json:"level"`        // good, watch, act, critical or unknown: the words of engine/guard
}

// Process is the engine process itself.
type Process struct {
	PID    int     `json:"pid"`
	RSS    Reading `json:"rss"`
	Anon   Reading `json:"anon"`   // private memory: heap, KV, scratch
	Mapped Reading `json:"mapped"` // file pages, which the kernel can drop
	Peak   Reading `json:"peak_rss"`
	Major  Reading `json:"major_faults"` // since start
	Swap   Reading `json:"swap"`
}

// CPU is in percent of the whole machine; of the process, in percent of one
// core.
type CPU struct {
	Busy    Reading `json:"busy"`
	Process Reading `json:"process"`
	Cores   int     `json:"cores"`
}

// Card is one graphics card as seen now.
type Card struct {
	PCI     string  `json:"pci"`
	Name    string  `json:"name"`
	Used    bool    `json:"used"` // the engine runs on it
	Total   Reading `json:"vram_total"`
	VRAM    Reading `json:"vram_used"`
	Own     Reading `json:"vram_own"` // by this process, as the driver counts it, else as the engine does
	Busy    Reading `json:"busy"`     // percent
	Temp    Reading `json:"temperature"`
	Power   Reading `json:"power"`
	Clock   Reading `json:"clock"`
	WhyIdle string  `json:"why_idle,omitempty"` // why the engine does not use it
	// Use is what the engine holds on it, by what it is for; nil when it does not use it.
	Use *CardUse `json:"use,omitempty"`
	// Others are the other programs that hold most of its memory, the first one most;
	// nil where nobody tells, and OthersWhy says why then.
	Others    []Holder `json:"others,omitempty"`
	OthersWhy string   `json:"others_why,omitempty"`
}

// Holder is another program with memory on a card.
type Holder struct {
	PID  int     `json:"pid"`
	Name string  `json:"name"` // empty where it may not be read
	VRAM Reading `json:"vram"`
}

// CardUse is an engine's memory on one card, in bytes.
type CardUse struct {
	First   int   `json:"first_layer"`
	Layers  int   `json:"layers"`
	Weights int64 `json:"weights"`
	KV      int64 `json:"kv"`
	Slots   int64 `json:"slots"` // experts that move
	Scratch int64 `json:"scratch"`
}

// Reading is a number that may be unknown. Unknown is null in JSON, never 0,
// and Why says what was asked and what it answered.
type Reading struct {
	Value  float64
	Known  bool
	Unit   string // bytes, percent, °C, W, MHz
	Source string // the file or call that was asked
	Why    string // why it is unknown
}

// Known makes a reading with a value.
func Known(v float64, unit, source string) Reading {
	return Reading{Value: v, Known: true, Unit: unit, Source: source}
}

// Unknown makes a reading without one.
func Unknown(unit, source, why string) Reading {
	return Reading{Unit: unit, Source: source, Why: why}
}

type readingJSON struct {
	Value  *float64 `json:"value"`
	Unit   string   `json:"unit,omitempty"`
	Source string   `json:"source,omitempty"`
	Why    string   `json:"why,omitempty"`
}

// MarshalJSON writes null for an unknown value.
func (r Reading) MarshalJSON() ([]byte, error) {
	j := readingJSON{Unit: r.Unit, Source: r.Source, Why: r.Why}
	if r.Known {
		j.Value = &r.Value
	}
	return json.Marshal(j)
}

// UnmarshalJSON reads null as unknown.
func (r *Reading) UnmarshalJSON(b []byte) error {
	var j readingJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	*r = Reading{Unit: j.Unit, Source: j.Source, Why: j.Why}
	if j.Value != nil {
		r.Value, r.Known = *j.Value, true
	}
	return nil
}
