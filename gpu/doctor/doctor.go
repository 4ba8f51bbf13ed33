// Package doctor looks at a machine's facts and says what stands in the way of
// running a model on its card, with the evidence and one next step each.
//
// Conditions are declared in one table (see conditions.go and its sisters). A
// condition may advise only a step whose effect a test shows: taking the step
// makes the condition go away.
//
// First light, the known-answer test a device must pass before a model runs on
// it, is in light.go.
package doctor

import (
	"sort"

	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// Severity orders conditions.
type Severity string

// From "nothing runs" to "good to know".
const (
	Blocks Severity = "blocks" // the card, or the plan, cannot work
	Warns  Severity = "warns"  // it works badly or may fail
	Info   Severity = "info"
)

// Condition is one thing found. The JSON of "outcrop doctor --json" is a list
// of these; its names and the codes stay.
type Condition struct {
	Code     string   `json:"code"`
	Title    string   `json:"title"` // a few words
	Text     string   `json:"text"`  // what it means
	Severity Severity `json:"severity"`
	Card     gpu.PCI  `json:"card"`     // empty: the machine
	Evidence []string `json:"evidence"` // what was read, and where
	Next     string   `json:"next"`     // one step that changes the outcome
	Command  string   `json:"command"`  // the step as a command, when it is one
	Source   string   `json:"source"`   // where this was seen: repo#issue or document
}

// Options are facts the machine's files do not tell, and wishes.
type Options struct {
	Card       gpu.PCI  // only this card's conditions, and the machine's
	Target     string   // recipe the environment is compared with; "" is outcrop
	PlanRAM    int64    // bytes the plan wants in RAM; 0: no plan
	PlanPinned int64    // bytes of it that must be locked
	PlanDisk   int64    // bytes a download needs
	DiskPath   string   // folder the packs lie in; "" is the root file system
	Engines    []Engine // external engine binaries, as ReadEngine saw them
	Caches     []Cache  // compile caches and the driver they were filled with
}

// Cache is a folder of compiled kernels and the driver version that made them.
type Cache struct {
	Path    string
	Version string // see Stamp
}

// checker is one row of the table of conditions: the fixed parts, and a function
// that finds it on a machine. find is called once, or for each real card when
// perCard is set.
type checker struct {
	code     string
	title    string
	severity Severity
	source   string
	perCard  bool
	find     func(x *exam) *found
}

// found is what a checker saw.
type found struct {
	text     string
	evidence []string
	next     string
	command  string
	severity Severity // over the checker's
}

// exam is what a checker looks at.
type exam struct {
	m *gpu.Machine
	o Options
	c *gpu.Card // the card of a perCard checker
}

// Check gives the conditions of a machine, worst first, then by card.
func Check(m gpu.Machine, o Options) []Condition {
	out := []Condition{}
	add := func(k *checker, x *exam) {
		f := k.find(x)
		if f == nil {
			return
		}
		c := Condition{Code: k.code, Title: k.title, Text: f.text, Severity: k.severity, Evidence: f.evidence, Next: f.next, Command: f.command, Source: k.source}
		if f.severity != "" {
			c.Severity = f.severity
		}
		if x.c != nil {
			c.Card = x.c.PCI
		}
		if c.Evidence == nil {
			c.Evidence = []string{}
		}
		out = append(out, c)
	}
	for i := range checkers {
		k := &checkers[i]
		if !k.perCard {
			add(k, &exam{m: &m, o: o})
			continue
		}
		for j := range m.Cards {
			c := &m.Cards[j]
			if c.Virtual || o.Card != "" && c.PCI != o.Card {
				continue
			}
			add(k, &exam{m: &m, o: o, c: c})
		}
	}
	rank := map[Severity]int{Blocks: 0, Warns: 1, Info: 2}
	sort.SliceStable(out, func(i, j int) bool { return rank[out[i].Severity] < rank[out[j].Severity] })
	return out
}

// Codes lists every condition the doctor knows.
func Codes() []string {
	out := make([]string, len(checkers))
	for i, k := range checkers {
		out[i] = k.code
	}
	return out
}

// Health is a light: one word for a card or the machine.
type Health string

// Health of a card.
const (
	Good Health = "good"
	Care Health = "watch" // works, with warnings
	Bad  Health = "act"   // something blocks it
)

// HealthOf sums the conditions that concern a card ("" is the whole machine).
func HealthOf(cs []Condition, card gpu.PCI) Health {
	h := Good
	for _, c := range cs {
		if card != "" && c.Card != card && c.Card != "" {
			continue
		}
		switch c.Severity {
		case Blocks:
			return Bad
		case Warns:
			h = Care
		}
	}
	return h
}

// target gives the recipe target the environment is compared with.
func (x *exam) target() string {
	if x.o.Target == "" {
		return recipe.Outcrop
	}
	return x.o.Target
}

// env gives a variable of the machine's environment.
func (x *exam) env(name string) (string, bool) {
	for _, e := range x.m.Host.Env {
		if e.Name == name {
			return e.Value, true
		}
	}
	return "", false
}

// count gives the discrete and the integrated graphics of a vendor.
func (x *exam) count(v uint16) (discrete, integrated int) {
	for _, c := range x.m.Cards {
		if c.Vendor != v || c.Virtual {
			continue
		}
		if c.Discrete {
			discrete++
		} else {
			integrated++
		}
	}
	return
}

// has says whether a device of the vendor here could compute with the right
// user-mode parts: those are asked for only then.
func (x *exam) has(v uint16) bool {
	if x.m.Host.OS != "linux" || x.m.Host.Virtual == "flatpak" {
		return false // Windows brings all parts in one package; a sandbox is a condition of its own
	}
	for _, c := range x.m.Cards {
		if c.Vendor == v && !c.Virtual && c.Arch != gpu.IntelLegacy && (c.Compute() || c.Driver == "") {
			return true
		}
	}
	return false
}
