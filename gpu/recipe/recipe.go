// Package recipe turns a machine's facts into the environment, flags, limits
// and notes that make a program work on its card, each line with why and where
// it was seen.
package recipe

import "outcrop/gpu"

// Confidence says how well a line is supported.
type Confidence string

// How a line is known.
const (
	Measured   Confidence = "measured here"
	Reported   Confidence = "reported"
	FromSource Confidence = "from source"
	Hypothesis Confidence = "hypothesis"
)

// Line is one variable of a recipe.
type Line struct {
	Rule       string     `json:"rule"`
	Var        string     `json:"var"`
	Value      string     `json:"value"`
	Unset      bool       `json:"unset"` // must be removed from the environment, not set to ""
	Why        string     `json:"why"`
	Source     string     `json:"source"` // repo#issue or file
	Confidence Confidence `json:"confidence"`
	Obsolete   string     `json:"obsolete"`           // what will make it unnecessary
	Reported   string     `json:"reported,omitempty"` // the line of the report, where ours differs
	Off        bool       `json:"off,omitempty"`      // switched off by the user: shown, not applied
}

// Flag is one command line option for the target.
type Flag struct {
	Rule       string     `json:"rule"`
	Name       string     `json:"name"`
	Value      string     `json:"value,omitempty"`
	Why        string     `json:"why"`
	Source     string     `json:"source"`
	Confidence Confidence `json:"confidence"`
}

// Limit is a ceiling the plan must obey.
type Limit struct {
	Rule   string `json:"rule"`
	Name   string `json:"name"`  // see the Limit constants
	Value  int64  `json:"value"` // bytes or a count, as the name says
	Why    string `json:"why"`
	Source string `json:"source"`
}

// Note is something to know or do that is no variable.
type Note struct {
	Rule       string     `json:"rule"`
	Text       string     `json:"text"`
	Source     string     `json:"source,omitempty"`
	Confidence Confidence `json:"confidence,omitempty"`
}

// Recipe is what a target needs on a card of this machine.
type Recipe struct {
	Target  string  `json:"target"`
	Card    gpu.PCI `json:"card"` // empty: the CPU
	Title   string  `json:"title"`
	Lines   []Line  `json:"lines"`
	Flags   []Flag  `json:"flags"`
	Limits  []Limit `json:"limits"`
	Notes   []Note  `json:"notes"`
	LeftOut []Line  `json:"left_out"` // lines of the report that we leave out, with why
}

// Options are the wishes of the caller. The zero value picks the card.
type Options struct {
	Card       gpu.PCI         // empty: the best card
	AsReported bool            // the original lines of the reports instead of our findings
	Off        map[string]bool // variables the user switched off
}

// For makes the recipe of target for a machine. It fails on an unknown target,
// a card that is not there, and rules that contradict each other.
func For(m gpu.Machine, target string, o Options) (Recipe, error) {
	return Recipe{Target: target}, nil
}

// Targets are the programs recipes are known for.
func Targets() []string {
	return []string{"outcrop", "strata", "llama.cpp", "llama.cpp-sycl", "llama.cpp-vulkan", "llama.cpp-cuda", "llama.cpp-hip", "pytorch-xpu", "chipstar"}
}

// Formats are the export formats.
func Formats() []string { return []string{"sh", "fish", "ps1", "env", "systemd", "docker", "json"} }

// Export writes the recipe in a format.
func (r Recipe) Export(format string) (string, error) { return "", nil }

// Apply gives environ ("NAME=value" strings) with the recipe applied: set lines
// set, unset lines removed. environ itself is not changed.
func (r Recipe) Apply(environ []string) []string { return environ }
