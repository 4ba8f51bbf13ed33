// Package recipe turns a machine's facts into the environment, flags, limits
// and notes that make a program work on its card, each line with why it is
// there, where it was seen and what will make it unnecessary.
//
// All knowledge is in one table of rules. [For] is pure: the same facts give
// the same recipe, and it is tested as a table over recorded machines. Only
// [Recipe.Apply] touches an environment, and only the copy it is given.
package recipe

import (
	"fmt"
	"sort"
	"strings"

	"outcrop/gpu"
)

// Confidence says how well a line is supported.
type Confidence string

// How a line is known.
const (
	Measured   Confidence = "measured here" // by this project's own tests
	Reported   Confidence = "reported"      // by the users or maintainers of the source named
	FromSource Confidence = "from source"   // read in the driver's, runtime's or engine's source or documentation
	Hypothesis Confidence = "hypothesis"    // follows from a source, never run: off until switched on
)

// Line is one variable of a recipe.
type Line struct {
	Rule       string     `json:"rule"`
	Var        string     `json:"var"`
	Value      string     `json:"value"`
	Unset      bool       `json:"unset"` // removed from the environment, not set to "": an empty value makes some runtimes abort
	Off        bool       `json:"off"`   // shown, not applied: a hypothesis, or switched off by the user
	Why        string     `json:"why"`
	Source     string     `json:"source"` // repo#issue or document
	Confidence Confidence `json:"confidence"`
	Obsolete   string     `json:"obsolete"` // what will make it unnecessary
	Reported   string     `json:"reported"` // what the report had, where ours differs; "(not set)" when it had nothing
}

// Flag is one command line option for the target.
type Flag struct {
	Rule       string     `json:"rule"`
	Name       string     `json:"name"`
	Value      string     `json:"value"`
	FillIn     bool       `json:"fill_in"` // the value names a file or number only the user knows
	Why        string     `json:"why"`
	Source     string     `json:"source"`
	Confidence Confidence `json:"confidence"`
}

// Names of limits. Values are bytes unless the name says otherwise.
const (
	AllocMax      = "alloc-max"           // largest single device allocation
	HostAllocMax  = "host-alloc-max"      // largest single pinned host allocation
	AllocShare    = "alloc-share-percent" // largest single device allocation, percent of the card's memory
	VRAMReserve   = "vram-reserve"        // card memory a plan leaves free
	PinnedShare   = "pinned-share-percent"
	CardsPerProc  = "cards-per-process" // count
	CardsPerCtx   = "cards-per-context" // count
	SampleEveryMS = "sensor-interval-ms"
)

// Limit is a ceiling the plan must obey.
type Limit struct {
	Rule       string     `json:"rule"`
	Name       string     `json:"name"`
	Value      int64      `json:"value"`
	Why        string     `json:"why"`
	Source     string     `json:"source"`
	Confidence Confidence `json:"confidence"`
}

// Note is something to know or do that is no variable.
type Note struct {
	Rule       string     `json:"rule"`
	Text       string     `json:"text"`
	Source     string     `json:"source"`
	Confidence Confidence `json:"confidence"`
}

// Script is a program that tests what the recipe claims.
type Script struct {
	Rule string `json:"rule"`
	Name string `json:"name"` // file name
	Text string `json:"text"`
	Why  string `json:"why"`
}

// Recipe is what a target needs on a card of this machine. The JSON of
// "outcrop recipe --json" is this structure; its names stay.
type Recipe struct {
	Target     string   `json:"target"` // the concrete one: llama.cpp becomes one of its back ends
	Card       gpu.PCI  `json:"card"`   // empty: the CPU
	Title      string   `json:"title"`  // one line: target, card, driver
	Key        Key      `json:"key"`    // the facts the rules looked at
	AsReported bool     `json:"as_reported"`
	Lines      []Line   `json:"lines"`
	Flags      []Flag   `json:"flags"`
	Limits     []Limit  `json:"limits"`
	Notes      []Note   `json:"notes"`
	Scripts    []Script `json:"scripts"`
	LeftOut    []Line   `json:"left_out"` // lines of the reports that we leave out, each with why
	Devices    []string `json:"devices"`  // what a container needs of the card: docker run options
}

// Key is what a recipe depends on: another machine with the same key gets the
// same recipe, but for indices and identities of cards.
type Key struct {
	Arch        gpu.Arch `json:"arch"`
	Chip        string   `json:"chip"`
	Driver      string   `json:"driver"`       // kernel driver
	UserVersion string   `json:"user_version"` // user-mode driver of the card's vendor; "" unknown
	Cards       int      `json:"cards"`        // discrete cards of the vendor
	Integrated  int      `json:"integrated"`   // integrated graphics of the vendor
	RAM         int64    `json:"ram"`          // bytes; 0 unknown
	OS          string   `json:"os"`
}

// Options are the wishes of the caller. The zero value picks the card and
// applies what is supported.
type Options struct {
	Card       gpu.PCI         // empty: the best card
	AsReported bool            // the original lines of the reports instead of our findings
	Split      bool            // spread the program over all cards where the target can
	Switch     map[string]bool // by variable: the user's choice of on or off, over the default
}

// Targets are the programs recipes are known for. llama.cpp alone picks the
// back end that fits the card.
func Targets() []string {
	return []string{Outcrop, Strata, LlamaCPP, LlamaSYCL, LlamaVulkan, LlamaCUDA, LlamaHIP, PyTorchXPU, ChipStar}
}

// Targets.
const (
	Outcrop     = "outcrop"
	Strata      = "strata"
	LlamaCPP    = "llama.cpp"
	LlamaSYCL   = "llama.cpp-sycl"
	LlamaVulkan = "llama.cpp-vulkan"
	LlamaCUDA   = "llama.cpp-cuda"
	LlamaHIP    = "llama.cpp-hip"
	PyTorchXPU  = "pytorch-xpu"
	ChipStar    = "chipstar"
)

// For makes the recipe of target for a machine. It fails on an unknown target,
// on a card that is not there, and on rules that contradict each other, which a
// test over all recorded machines keeps from happening.
func For(m gpu.Machine, target string, o Options) (Recipe, error) {
	f, err := factsFor(m, target, o)
	if err != nil {
		return Recipe{}, err
	}
	return build(f, o)
}

// build runs the table over facts.
func build(f Facts, o Options) (Recipe, error) {
	r := Recipe{
		Target: f.Target, Key: f.key(), AsReported: o.AsReported, Title: f.title(),
		Lines: []Line{}, Flags: []Flag{}, Limits: []Limit{}, Notes: []Note{}, Scripts: []Script{}, LeftOut: []Line{}, Devices: f.devices(),
	}
	if f.Card != nil {
		r.Card = f.Card.PCI
	}
	for i := range rules {
		if rules[i].When.match(f) {
			rules[i].add(&r, f, o.AsReported)
		}
	}
	if err := r.check(); err != nil {
		return Recipe{}, err
	}
	for i := range r.Lines {
		if on, ok := o.Switch[r.Lines[i].Var]; ok {
			r.Lines[i].Off = !on
		}
	}
	return r, nil
}

// check finds contradictions: one variable with two meanings, one flag or limit
// with two values. Rules that agree are merged.
func (r *Recipe) check() error {
	vars := map[string]Line{}
	lines := r.Lines[:0]
	for _, l := range r.Lines {
		p, ok := vars[l.Var]
		if !ok {
			vars[l.Var] = l
			lines = append(lines, l)
			continue
		}
		if p.Value != l.Value || p.Unset != l.Unset || p.Off != l.Off {
			return fmt.Errorf("recipe %s: rules %q and %q contradict each other on %s (%s, %s)", r.Target, p.Rule, l.Rule, l.Var, p.say(), l.say())
		}
	}
	r.Lines = lines
	for _, l := range r.LeftOut {
		if p, ok := vars[l.Var]; ok && !p.Off {
			return fmt.Errorf("recipe %s: rule %q leaves out %s, which rule %q sets", r.Target, l.Rule, l.Var, p.Rule)
		}
	}
	flags := map[string]Flag{}
	for _, x := range r.Flags {
		if p, ok := flags[x.Name]; ok {
			return fmt.Errorf("recipe %s: rules %q and %q both give flag %s (%q, %q)", r.Target, p.Rule, x.Rule, x.Name, p.Value, x.Value)
		}
		flags[x.Name] = x
	}
	limits := map[string]Limit{}
	for _, x := range r.Limits {
		if p, ok := limits[x.Name]; ok {
			return fmt.Errorf("recipe %s: rules %q and %q both give limit %s", r.Target, p.Rule, x.Rule, x.Name)
		}
		limits[x.Name] = x
	}
	return nil
}

func (l Line) say() string {
	switch {
	case l.Off:
		return "off"
	case l.Unset:
		return "unset"
	}
	return l.Value
}

// Apply gives environ ("NAME=value" strings) with the recipe applied: set lines
// set, unset lines removed, lines that are off left alone. environ itself is not
// changed.
func (r Recipe) Apply(environ []string) []string {
	drop := map[string]bool{}
	for _, l := range r.Lines {
		if !l.Off {
			drop[l.Var] = true
		}
	}
	out := make([]string, 0, len(environ)+len(r.Lines))
	for _, kv := range environ {
		n, _, _ := strings.Cut(kv, "=")
		if !drop[n] {
			out = append(out, kv)
		}
	}
	for _, l := range r.Lines {
		if !l.Off && !l.Unset {
			out = append(out, l.Var+"="+l.Value)
		}
	}
	return out
}

// Args gives the flags as arguments; those the user must fill in are left out.
func (r Recipe) Args() []string {
	var out []string
	for _, f := range r.Flags {
		if f.FillIn {
			continue
		}
		out = append(out, f.Name)
		if f.Value != "" {
			out = append(out, f.Value)
		}
	}
	return out
}

// Limit gives a limit's value, and whether the recipe has it.
func (r Recipe) Limit(name string) (int64, bool) {
	for _, l := range r.Limits {
		if l.Name == name {
			return l.Value, true
		}
	}
	return 0, false
}

// Change is one difference between an environment and the recipe.
type Change struct {
	Var  string `json:"var"`
	Now  string `json:"now"` // value in the environment; see Set
	Set  bool   `json:"set"` // whether the environment has it
	Want string `json:"want"`
	Kind string `json:"kind"` // add, change, remove, same
}

// Diff compares the lines that are on with an environment, in the recipe's
// order.
func (r Recipe) Diff(env []gpu.EnvVar) []Change {
	now := map[string]string{}
	for _, e := range env {
		now[e.Name] = e.Value
	}
	out := []Change{}
	for _, l := range r.Lines {
		if l.Off {
			continue
		}
		v, ok := now[l.Var]
		c := Change{Var: l.Var, Now: v, Set: ok, Want: l.Value, Kind: "same"}
		switch {
		case l.Unset && ok:
			c.Kind = "remove"
		case l.Unset:
		case !ok:
			c.Kind = "add"
		case v != l.Value:
			c.Kind = "change"
		}
		out = append(out, c)
	}
	return out
}

// sorted gives the lines that are on, unset ones first: a shell that fails in
// the middle has then removed what would have broken things.
func (r Recipe) sorted() []Line {
	var out []Line
	for _, l := range r.Lines {
		if !l.Off {
			out = append(out, l)
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Unset && !out[j].Unset })
	return out
}
