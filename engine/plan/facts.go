// Package plan decides, before anything is loaded, where every part of a model
// will live: VRAM, RAM or the file. Make is pure: it takes facts about a pack
// and a machine and what the user wishes, and returns a Plan with its reasons,
// the placements that lost and why, and what would help when nothing fits.
//
// A Plan never changes the context or the KV type that was asked for. When
// they do not fit, it says so and by how much.
package plan

import (
	"fmt"
	"math"
	"time"
)

// Amount is a number of bytes that may be unknown. Unknown is not zero.
type Amount struct {
	N      int64  `json:"bytes"`
	Known  bool   `json:"known"`
	Source string `json:"source,omitempty"` // who said so, or who was asked
	Why    string `json:"why,omitempty"`    // why it is unknown
}

// Known returns an amount with its source.
func Known(n int64, source string) Amount { return Amount{N: n, Known: true, Source: source} }

// Pack is what planning needs to know of a model.
type Pack struct {
	Name   string
	Layers []Layer // in order; draft blocks last
	// Embed is the token embedding (rows are read one by one, so it stays in
	// the file); Output the output matrix, 0 when it is the embedding itself.
	Embed, Output         int64
	Width, Hidden, Vocab  int // sizes that scratch depends on
	Trained               int // context the model was trained for
	Draft                 bool
	CanDevice, CanExperts bool // kernels exist for this family on a card: whole layers; with experts on the CPU
	Card                  CardFacts
}

// CardFacts are what a model takes on a card beside its layers, as far as the
// engine knows it. Zero values are estimated.
type CardFacts struct {
	// Fixed bytes of working memory, and bytes for each prompt token of a piece:
	// with routed experts on the card, with them elsewhere, and what slots take
	// on top.
	Fixed, Row, RowElsewhere, RowSlots int64
	FixedLink                          int64 // for experts over the link
	DraftElsewhere                     bool  // the draft block is the CPU's
}

// Layer is one block of a model.
type Layer struct {
	Dense    int64 // bytes of everything but the routed experts
	Experts  int   // routed experts, 0 in a dense layer
	Used     int   // experts per token
	Expert   int64 // bytes of one expert, all its matrices
	KV       int   // cached values per token, keys and values together
	Window   int   // tokens a sliding window keeps, 0 for all
	State    int64 // recurrent state per sequence
	Draft    bool
	HotShare []float64 // routing share by expert, hottest first; nil when no profile is known
	OnCard   LayerOnCard
}

// LayerOnCard is what a layer takes on a card where that is not what it takes
// elsewhere: kernels want weights in another order, and caches of whole tiles
// for the whole context. Zero values: the same.
type LayerOnCard struct {
	Dense, Expert int64 // bytes
	F16, Q8       int64 // bytes of cache a token, whatever the window
	State         int64
	NoSlots       bool // its experts cannot be in slots
}

// dense, expert, cache and state are the bytes on a card.
func (l Layer) cardDense() int64 {
	if l.OnCard.Dense > 0 {
		return l.OnCard.Dense
	}
	return l.Dense
}

func (l Layer) cardExpert() int64 {
	if l.OnCard.Expert > 0 {
		return l.OnCard.Expert
	}
	return l.Expert
}

func (l Layer) cardKV(context int, kind string) int64 {
	n := (int64(context) + 63) / 64 * 64 // whole tiles
	switch {
	case kind == "f16" && l.OnCard.F16 > 0:
		return n * l.OnCard.F16
	case kind == "q8" && l.OnCard.Q8 > 0:
		return n * l.OnCard.Q8
	}
	return l.kv(context, kind)
}

func (l Layer) cardState() int64 {
	if l.OnCard.State > 0 {
		return l.OnCard.State
	}
	return l.State
}

// Card is one usable or unusable graphics card.
type Card struct {
	PCI, Name    string
	Driver       string // kernel driver
	Backend      string // "cuda", "level zero", "opencl"; empty when it cannot be used
	Unusable     string // why it cannot be used, in words
	Total, Free  Amount
	Display      bool          // it drives a screen
	Integrated   bool          // its memory is RAM
	MaxAlloc     int64         // largest single device allocation, 0 unknown
	MaxPinned    int64         // largest single pinned host allocation, 0 unknown
	Device       Rate          // bytes/s read from its own memory
	Prefill      Rate          // bytes/s of weights, times prompt tokens that they are multiplied with
	HostToDevice Rate          // bytes/s over the link from pinned memory
	HandOff      time.Duration // one read-back and one copy, per layer with misses
	Chunk        int           // prompt tokens per step where all layers lie on cards like it, if there is room; 0: the usual
}

// Rate is bytes a second, and whether it was measured on this machine.
type Rate struct {
	PerSecond float64
	Measured  bool
}

// Machine is the computer.
type Machine struct {
	Cards        []Card
	RAMTotal     Amount // less if a cgroup limit is lower
	RAMAvailable Amount
	CPU          Rate // bytes of expert weights a second, all threads
	Threads      int
	DiskRandom   Rate // reads of expert size
	DiskStream   Rate
}

// Wishes is what the user asked for. Zero values leave it to the plan.
type Wishes struct {
	Context     int      // tokens
	KV          string   // "f32", "f16", "q8", "q4"
	Cards       []string // PCI addresses to use, in order; nil for all usable
	NoCard      bool
	Placement   Placement // force one
	RAMFloor    int64     // bytes to leave free; 0 for the preset
	VRAMReserve int64     // bytes to leave free on each card; 0 for the rule
	VRAMCap     int64     // use at most this much of each card, 0 for all
	VRAMCaps    []int64   // the same card by card; the last one counts for all that follow
	RAMCap      int64     // use at most this much RAM in all, 0 for what is free
	Split       []float64 // layers of each card, or their proportions; nil: what is quickest
	Slots       int64     // bytes of expert slots on each card; 0: what is left, negative: none
	Experts     Experts   // who computes routed experts
	OnCards     bool      // placements without a card do not count, where one with a card fits
	Chunk       int       // prompt tokens per step; 0: what the cards are quickest with
	NoDraft     bool

	chunkOpen bool // nobody asked for Chunk
}

// Experts narrows the placements down to those where one side computes routed
// experts that are in no slot.
type Experts string

const (
	ExpertsAuto Experts = ""
	ExpertsCPU  Experts = "cpu"  // the CPU, in RAM or the file
	ExpertsCard Experts = "card" // all are on the card
	ExpertsCopy Experts = "copy" // the card, read over the link
)

// allows tells whether a placement goes with the wish.
func (e Experts) allows(p Placement) bool {
	switch e {
	case ExpertsCPU:
		return p != AllVRAM && p != VRAMPinned
	case ExpertsCard:
		return p == AllVRAM
	case ExpertsCopy:
		return p == VRAMPinned
	}
	return true
}

// cap is the most that may be used of the n-th card in use.
func (w Wishes) cap(n int) int64 {
	if len(w.VRAMCaps) == 0 {
		return w.VRAMCap
	}
	return w.VRAMCaps[min(n, len(w.VRAMCaps)-1)]
}

// Placement names where the experts (or, in a dense model, the layers) live.
type Placement string

const (
	AllVRAM    Placement = "vram"
	VRAMPinned Placement = "vram+pinned"
	VRAMRAM    Placement = "vram+ram"
	VRAMFile   Placement = "vram+file"
	AllRAM     Placement = "ram"
	AllFile    Placement = "file"
)

// Placements lists them in order of preference at equal speed.
var Placements = []Placement{AllVRAM, VRAMPinned, VRAMRAM, VRAMFile, AllRAM, AllFile}

var placementWords = map[Placement]string{
	AllVRAM:    "everything in VRAM",
	VRAMPinned: "experts in VRAM and in pinned RAM, read over the link",
	VRAMRAM:    "experts in VRAM and RAM, the CPU computes those in RAM",
	VRAMFile:   "experts in VRAM and in the file, the CPU computes those in the file's pages",
	AllRAM:     "everything in RAM, the CPU computes",
	AllFile:    "in the file's pages, the CPU computes",
}

func (p Placement) Words() string { return placementWords[p] }

// kvBytes is the size of one cached value, scales and offsets included.
var kvBytes = map[string]float64{"f32": 4, "f16": 2, "q8": 1 + 2.0/64, "q4": 0.5 + 4.0/64}

// check refuses facts that no machine or pack can have.
func check(p Pack, m Machine, w Wishes) error {
	const maxChunk = 1 << 16 // as engine.Load
	if len(p.Layers) == 0 {
		return fmt.Errorf("plan %s: the pack has no layers", p.Name)
	}
	for i, l := range p.Layers {
		if l.Dense < 0 || l.Expert < 0 || l.Experts < 0 || l.KV < 0 || l.State < 0 || l.Used < 0 || l.Used > l.Experts {
			return fmt.Errorf("plan %s: layer %d has impossible sizes (%+v)", p.Name, i, l)
		}
		if l.Expert > 0 && int64(l.Experts) > math.MaxInt64/4/l.Expert {
			return fmt.Errorf("plan %s: layer %d: %d experts of %d bytes overflow", p.Name, i, l.Experts, l.Expert)
		}
	}
	if w.Context < 0 || w.Chunk < 0 || w.RAMFloor < 0 || w.VRAMReserve < 0 || w.VRAMCap < 0 || w.RAMCap < 0 {
		return fmt.Errorf("plan %s: context, chunk, floor, reserve and limits cannot be negative", p.Name)
	}
	if w.Chunk > maxChunk {
		return fmt.Errorf("plan %s: a chunk of %d asked, 1 to %d are possible", p.Name, w.Chunk, maxChunk)
	}
	for _, n := range w.VRAMCaps {
		if n < 0 {
			return fmt.Errorf("plan %s: a limit of %d bytes of VRAM cannot be", p.Name, n)
		}
	}
	switch w.Experts {
	case ExpertsAuto, ExpertsCPU, ExpertsCard, ExpertsCopy:
	default:
		return fmt.Errorf("plan %s: experts by %q asked, want cpu, card, copy or nothing", p.Name, w.Experts)
	}
	if w.Placement != "" && !w.Experts.allows(w.Placement) {
		return fmt.Errorf("plan %s: the placement %s does not go with experts by %q", p.Name, w.Placement, w.Experts)
	}
	if w.KV != "" && kvBytes[w.KV] == 0 {
		return fmt.Errorf("plan %s: unknown KV type %q, want f32, f16, q8 or q4", p.Name, w.KV)
	}
	if w.Placement != "" && placementWords[w.Placement] == "" {
		return fmt.Errorf("plan %s: unknown placement %q, want one of %v", p.Name, w.Placement, Placements)
	}
	for _, pci := range w.Cards {
		if findCard(m.Cards, pci) < 0 {
			return fmt.Errorf("plan %s: no card at %s; found %v", p.Name, pci, cardNames(m.Cards))
		}
	}
	return nil
}

func findCard(cs []Card, pci string) int {
	for i, c := range cs {
		if c.PCI == pci {
			return i
		}
	}
	return -1
}

func cardNames(cs []Card) []string {
	var out []string
	for _, c := range cs {
		out = append(out, c.PCI+" "+c.Name)
	}
	return out
}

// kv is the size of one layer's cache at a context.
func (l Layer) kv(context int, kind string) int64 {
	n := context
	if l.Window > 0 && l.Window < n {
		n = l.Window
	}
	return int64(math.Ceil(float64(n) * float64(l.KV) * kvBytes[kind]))
}

func (l Layer) experts() int64 { return int64(l.Experts) * l.Expert }

// totals of a pack, draft blocks included when they are used.
func (p Pack) totals(draft bool) (dense, experts int64) {
	dense = p.Output
	for _, l := range p.Layers {
		if l.Draft && !draft {
			continue
		}
		dense += l.Dense
		experts += l.experts()
	}
	return dense, experts
}

// scratch is the engine's working memory for one chunk of prompt tokens.
func (p Pack) scratch(chunk int) int64 {
	return 4 * (int64(chunk)*int64(8*p.Width+4*p.Hidden) + 8*int64(p.Vocab))
}
