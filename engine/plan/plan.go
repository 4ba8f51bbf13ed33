package plan

import "fmt"

// Plan says where everything lives. Bytes and tokens unless said otherwise.
type Plan struct {
	Pack      string    `json:"pack"`
	Fits      bool      `json:"fits"`
	Placement Placement `json:"placement"`
	Words     string    `json:"words"` // the placement as a sentence
	Context   int       `json:"context"`
	KV        string    `json:"kv"`
	Chunk     int       `json:"chunk"`
	Draft     bool      `json:"draft"`
	Cards     []CardUse `json:"cards,omitempty"`
	RAM       Use       `json:"ram"`
	File      Use       `json:"file"`
	Layers    []Place   `json:"layers"`
	// Crossing says in words what goes from card to card, Links in numbers.
	Crossing []string   `json:"crossing,omitempty"`
	Links    []Crossing `json:"links,omitempty"`
	// ExpertRAM is how many bytes of routed experts to hold as copies in RAM:
	// all of them where RAM is their tier, else those used most, as many as
	// there is room for; the guard may take that memory back. 0: none.
	ExpertRAM int64 `json:"expert_ram,omitempty"`
	// PinnedChunks are the sizes of the pinned host allocations.
	PinnedChunks []int64 `json:"pinned_chunks,omitempty"`
	Speed        Speed   `json:"speed"`
	// Rates says how fast the machine is taken to be, and how that is known.
	Rates        []string      `json:"rates,omitempty"`
	Short        []Short       `json:"short,omitempty"`
	Reasons      []string      `json:"reasons"`
	Alternatives []Alternative `json:"alternatives"`
	Remedies     []Remedy      `json:"remedies,omitempty"`
}

// Segment is one stacked part of a bar. Kind is one of weights, experts, kv,
// state, scratch, slots, others, reserve, floor, cache, free.
type Segment struct {
	Kind  string `json:"kind"`
	Bytes int64  `json:"bytes"`
	Why   string `json:"why"`
}

// Use is one tier's bar.
type Use struct {
	Total    Amount    `json:"total"`
	Segments []Segment `json:"segments"`
}

// CardUse is one card's bar.
type CardUse struct {
	PCI     string `json:"pci"`
	Name    string `json:"name"`
	Use     Use    `json:"use"`
	Slots   int    `json:"slots"`
	Reserve int64  `json:"reserve"`
	Free    Amount `json:"free_now"`
}

// Place is where one layer lives. Card is an index into Plan.Cards, -1 for the
// CPU. Slots + RAM + File is the layer's number of experts: every expert has
// exactly one place.
type Place struct {
	Card  int `json:"card"`
	Slots int `json:"slots,omitempty"`
	RAM   int `json:"ram,omitempty"`
	File  int `json:"file,omitempty"`
}

// Speed is an expected range, with the terms that make up the time of a token.
type Speed struct {
	DecodeLow   float64 `json:"decode_low"` // tok/s
	DecodeHigh  float64 `json:"decode_high"`
	PrefillLow  float64 `json:"prefill_low"`
	PrefillHigh float64 `json:"prefill_high"`
	Terms       []Term  `json:"terms"`
	Measured    bool    `json:"measured"` // all rates behind it were measured here

	// The middle of decode's range without what a rate that is not measured adds
	// to either end: plans are compared by it, so that one is not better for being
	// less well known.
	middle float64
}

// Term is a part of the time of one token, at the slow end of the range.
type Term struct {
	Name string  `json:"name"`
	Ms   float64 `json:"ms"`
	Why  string  `json:"why"`
}

// Short is an amount that is missing.
type Short struct {
	Where string `json:"where"` // "VRAM of PCI", "RAM"
	Bytes int64  `json:"bytes"`
	Why   string `json:"why"`
}

// String says it in words. Of what is not there at all, nothing is short.
func (s Short) String() string {
	if s.Bytes == 0 {
		return s.Where + ": " + s.Why
	}
	return fmt.Sprintf("%s is short of %s (%s)", s.Where, size(s.Bytes), s.Why)
}

// Alternative is a placement that lost.
type Alternative struct {
	Placement Placement `json:"placement"`
	Fits      bool      `json:"fits"`
	Why       string    `json:"why"`
	Speed     Speed     `json:"speed"`
}

// Remedy is a change that was tried and makes the pack fit.
type Remedy struct {
	Kind   string `json:"kind"` // context, kv, map, cpu, pack
	Text   string `json:"text"`
	Wishes Wishes `json:"wishes"`
}
