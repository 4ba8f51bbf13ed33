// Package guard keeps the desktop alive while a model runs: it looks at memory
// once a second and says what the engine must give up before the kernel's
// out-of-memory killer takes something of its own choice.
//
// Decide is a pure function of the last State, one Reading and a Config; it
// never acts. The engine carries out the Decision between two tokens and the
// window shows its words. The guard never kills anything: its last step asks
// the engine to unload.
//
// Two rules come from field reports of other engines (reference: Strata live
// memory notes): release fast and recover slowly, and never grow one tier to
// relieve another.
package guard

import "time"

// Value is a number that may be unknown. Unknown is not zero.
type Value struct {
	N     int64
	Known bool
}

// Of returns a known value.
func Of(n int64) Value { return Value{n, true} }

// Rate is a float that may be unknown: a percentage or a rate per second.
type Rate struct {
	N     float64
	Known bool
}

// RateOf returns a known rate.
func RateOf(n float64) Rate { return Rate{n, true} }

// VRAM is the state of one card's memory, in bytes.
type VRAM struct {
	PCI         string
	Total, Free Value
	// Slots is how many bytes of Total the engine holds as expert slots that
	// it could give back.
	Slots int64
	// Display: the card drives a screen, whose programs want memory at any time.
	Display bool
}

// displayReserve is what a card that drives a screen keeps free beyond the
// floor, as plans reserve it.
const displayReserve = 512 << 20

// floor is what stays free of the card.
func (v VRAM) floor(c Config) int64 {
	if v.Display {
		return c.VRAMFloor + displayReserve
	}
	return c.VRAMFloor
}

// Reading is one look at the machine. Bytes unless said otherwise.
type Reading struct {
	At time.Time
	// RAMTotal and RAMAvailable are the effective values: the machine's own,
	// or those of the strictest cgroup around the engine if that is less.
	// Clean page cache counts as available in both.
	RAMTotal, RAMAvailable Value
	// PSISome and PSIFull are the avg10 of /proc/pressure/memory, in per cent.
	PSISome, PSIFull Rate
	// SwapIn is bytes a second read back from swap by the whole machine.
	SwapIn Rate
	// MajorFaults is the engine's major page faults a second. A model bigger
	// than RAM causes them by design, so they never act on their own.
	MajorFaults Rate
	// GTTGrowth is bytes a second by which the kernel's mirror of VRAM in RAM
	// grows (xe moves over-committed VRAM there without an error).
	GTTGrowth Rate
	VRAM      []VRAM
	// Held is how many bytes of RAM the engine holds as copies of experts that
	// it could give back, Wanted how many it would like to hold.
	Held, Wanted int64
}

// Level is how tight RAM is, in the words of the window.
type Level int

const (
	Unknown Level = iota // no usable reading
	Good
	Watch
	Act
	Critical
)

func (l Level) String() string {
	return [...]string{"unknown", "good", "watch", "act", "critical"}[l]
}

// Step is how much the engine has given up for RAM. Each step includes those
// before it.
type Step int

const (
	Normal       Step = iota
	StopPrefetch      // no read-ahead of experts, no promotions
	GiveBack          // clean mapped pages and cold re-layouts returned
	ShrinkRAM         // the RAM tier of experts gets smaller
	Pause             // no token is computed until RAM recovers
	EndRequest        // the running answer ends; its text is kept
	Unload            // the model leaves memory
)

func (s Step) String() string {
	return [...]string{"normal", "prefetch stopped", "cold pages given back", "RAM tier shrunk", "paused", "answer ended", "model unloaded"}[s]
}

// Config is what the user or a preset wants kept free, in bytes.
type Config struct {
	RAMFloor  int64
	VRAMFloor int64
	// Enabled false makes Decide measure and never ask for anything.
	Enabled bool
}

// Presets, by the name shown in settings. Floors follow the live-memory
// presets of the Strata fork (2/4/8 GiB of RAM, 256/700/1536 MiB of VRAM).
var Presets = []struct {
	Name, Text string
	Config
}{
	{"full", "the model comes first", Config{2 << 30, 256 << 20, true}},
	{"daily", "room for a browser and an editor", Config{4 << 30, 700 << 20, true}},
	{"busy", "room for heavy work beside it", Config{8 << 30, 1536 << 20, true}},
}

// For scales a preset down to small machines: a floor never takes more than a
// quarter of the RAM there is.
func (c Config) For(ramTotal int64) Config {
	if ramTotal > 0 && c.RAMFloor > ramTotal/4 {
		c.RAMFloor = ramTotal / 4
	}
	return c
}

const (
	// stale is the age at which a reading no longer says anything.
	stale = 10 * time.Second
	// calm is how long the level must be good before one step is taken back.
	calm = 20 * time.Second
	// hold is the least time between two upward steps below Critical, so that
	// the effect of a step can be seen before the next.
	hold = 3 * time.Second
	// vramCalm is how long VRAM must be free before slots may grow.
	vramCalm = 30 * time.Second
	// vramGrow bounds the growth of slots per decision, in bytes.
	vramGrow = 256 << 20
	// ramCalm is how long RAM must be good between two pieces that copies of
	// experts may grow by.
	ramCalm = 10 * time.Second
)

// ramGrow is such a piece: what a machine of this size will not miss.
func ramGrow(total int64) int64 { return max(total/32, 64<<20) }

// LevelOf grades one reading. Thresholds sit between those of desktop OOM
// daemons (earlyoom acts at 10 % available; systemd-oomd at 60 % full pressure
// over 30 s) and noise, so that the guard is the first to move.
func LevelOf(r Reading, c Config) Level {
	if !r.RAMTotal.Known || !r.RAMAvailable.Known || r.RAMTotal.N <= 0 {
		return Unknown
	}
	free := float64(r.RAMAvailable.N) / float64(r.RAMTotal.N)
	some, full := r.PSISome.N, r.PSIFull.N // zero when unknown: then only bytes speak
	floor := c.For(r.RAMTotal.N).RAMFloor
	switch {
	case free < 0.04, full > 40 && free < 0.30:
		return Critical
	case free < 0.07, r.RAMAvailable.N < floor/2, full > 20 && free < 0.30, r.SwapIn.N > 20<<20:
		return Act
	case free < 0.15, r.RAMAvailable.N < floor, some > 10, r.GTTGrowth.N > 64<<20:
		return Watch
	}
	return Good
}

// State is what Decide remembers. The zero value is a fresh start.
type State struct {
	Step     Step
	Level    Level
	raisedAt time.Time // last upward step
	goodAt   time.Time // start of the present run of Good readings
	vramAt   map[string]time.Time
	ramAt    time.Time // start of the calm before copies in RAM may grow
}

// Decision is what the engine is to do now.
type Decision struct {
	Level Level
	Step  Step
	// MayGrow: tiers may take more memory. False whenever readings are
	// missing, stale, or anything but good.
	MayGrow bool
	// Slots is, by card, how many bytes of slots to give back (negative) or
	// to add (positive) between tokens. Cards that keep theirs are absent.
	Slots map[string]int64
	// RAM is how many bytes of expert copies to give back (negative) or that
	// may be added (positive).
	RAM int64
	// Words say what changed and why; empty when nothing changed.
	Words []string
}
