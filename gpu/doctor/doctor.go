// Package doctor looks at a machine's facts and says what stands in the way of
// running a model on its card, with the evidence and one next step each.
package doctor

import "outcrop/gpu"

// Severity orders conditions.
type Severity string

// From "nothing runs" to "good to know".
const (
	Blocks Severity = "blocks" // the card cannot compute
	Warns  Severity = "warns"  // it works badly or may fail
	Info   Severity = "info"
)

// Condition is one thing found.
type Condition struct {
	Code     string   `json:"code"`
	Title    string   `json:"title"`
	Text     string   `json:"text"`
	Severity Severity `json:"severity"`
	Card     gpu.PCI  `json:"card,omitempty"`
	Evidence []string `json:"evidence"`
	Next     string   `json:"next"`              // one step that changes the outcome
	Command  string   `json:"command,omitempty"` // the step as a command, when it is one
	Source   string   `json:"source,omitempty"`
}

// Options are facts that the machine's files do not tell.
type Options struct {
	PlanRAM  int64    // bytes the plan wants in RAM; 0: no plan
	PlanDisk int64    // bytes a download needs
	DiskPath string   // where packs lie
	Engines  []string // external engine binaries to look at
}

// Check gives the conditions of a machine, worst first.
func Check(m gpu.Machine, o Options) []Condition { return nil }
