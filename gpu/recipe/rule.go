package recipe

import (
	"fmt"
	"slices"
	"strings"

	"outcrop/gpu"
)

// Rule is one row of the table: when it applies, what it does, and how that is
// known.
type Rule struct {
	ID         string
	When       When
	Do         []Do
	Flags      [][2]string // name, value; a value in <angle brackets> is for the user to fill in
	Limits     []Cap
	Note       string
	Script     *Script
	Why        string // one sentence
	Source     string
	Confidence Confidence
	Obsolete   string // what will make it unnecessary
}

// Do is one variable a rule sets, unsets, offers or leaves out.
type Do struct {
	Var   string
	Value string
	Of    func(Facts) string // computes the value; over Value
	Act   act
	Why   string // over the rule's

	// What the report had, where it differs. "" means the same, "-" that the
	// report does not have this line.
	Reported string
}

type act int

const (
	set     act = iota
	unset       // remove from the environment
	offer       // a hypothesis: shown, off until the user switches it on
	leftOut     // a line of the report that we do not use
)

// Cap is one limit a rule gives.
type Cap struct {
	Name  string
	Value int64
	Of    func(Facts) int64
}

// When says which facts a rule is for. Empty fields match everything; Text
// explains If.
type When struct {
	Targets     []string
	Vendor      uint16
	Archs       []gpu.Arch
	Devices     []uint16 // PCI device ids
	Drivers     []string // kernel drivers
	OS          []string // linux, windows, wsl; empty: linux and wsl
	CPU         bool     // the machine has no card
	NEOFrom     int      // build of Intel's user-mode driver, from this on; an unknown one does not match
	NEOBelow    int      // before this build; an unknown one does not match
	NEOSuspect  int      // from this build on, or unknown: when in doubt, careful
	MinDiscrete int      // discrete cards of the vendor
	MaxDiscrete int
	MinDevices  int   // graphics of the vendor, integrated ones included
	RAMBelow    int64 // bytes; unknown RAM matches
	RAMFrom     int64 // bytes; unknown RAM does not match
	LinkBelow   float64
	LinkFrom    float64 // GB/s; an unknown link counts as fast
	Split       int     // 1: only when the user spreads over all cards; -1: only when not
	If          func(Facts) bool
	Text        string
}

func (w When) match(f Facts) bool {
	if len(w.Targets) > 0 && !slices.Contains(w.Targets, f.Target) {
		return false
	}
	if w.CPU != (f.Card == nil) {
		return false
	}
	if f.Card == nil {
		return w.If == nil || w.If(f)
	}
	switch {
	case w.Vendor != 0 && w.Vendor != f.Card.Vendor,
		len(w.Archs) > 0 && !slices.Contains(w.Archs, f.Arch),
		len(w.Devices) > 0 && !slices.Contains(w.Devices, f.Card.Device),
		len(w.Drivers) > 0 && !slices.Contains(w.Drivers, f.Driver),
		len(w.OS) > 0 && !slices.Contains(w.OS, f.OS),
		len(w.OS) == 0 && f.OS == "windows",
		w.NEOFrom > 0 && f.NEOBuild < w.NEOFrom,
		w.NEOBelow > 0 && (f.NEOBuild == 0 || f.NEOBuild >= w.NEOBelow),
		w.NEOSuspect > 0 && f.NEOBuild != 0 && f.NEOBuild < w.NEOSuspect,
		f.Discrete < w.MinDiscrete,
		w.MaxDiscrete > 0 && f.Discrete > w.MaxDiscrete,
		f.Discrete+f.Integrated < w.MinDevices,
		w.RAMBelow > 0 && f.RAM >= w.RAMBelow,
		w.RAMFrom > 0 && f.RAM < w.RAMFrom,
		w.LinkBelow > 0 && (f.Link == 0 || f.Link >= w.LinkBelow),
		w.LinkFrom > 0 && f.Link != 0 && f.Link < w.LinkFrom,
		w.Split > 0 && !f.Split,
		w.Split < 0 && f.Split:
		return false
	}
	return w.If == nil || w.If(f)
}

// String says the condition in words, for the table of rules.
func (w When) String() string {
	var p []string
	add := func(format string, a ...any) { p = append(p, fmt.Sprintf(format, a...)) }
	if len(w.Targets) > 0 {
		add("%s", strings.Join(w.Targets, "/"))
	}
	if w.CPU {
		add("no card")
	}
	if w.Vendor != 0 {
		add("%s", gpu.VendorName(w.Vendor))
	}
	if len(w.Archs) > 0 {
		var as []string
		for _, a := range w.Archs {
			as = append(as, string(a))
		}
		add("%s", strings.Join(as, "/"))
	}
	if len(w.Devices) > 0 {
		var ds []string
		for _, d := range w.Devices {
			ds = append(ds, fmt.Sprintf("%04x", d))
		}
		add("id %s", strings.Join(ds, "/"))
	}
	if len(w.Drivers) > 0 {
		add("on %s", strings.Join(w.Drivers, "/"))
	}
	if len(w.OS) > 0 {
		add("on %s", strings.Join(w.OS, "/"))
	}
	if w.NEOFrom > 0 {
		add("NEO build from %d", w.NEOFrom)
	}
	if w.NEOBelow > 0 {
		add("NEO build below %d", w.NEOBelow)
	}
	if w.NEOSuspect > 0 {
		add("NEO build from %d or unknown", w.NEOSuspect)
	}
	if w.MinDiscrete > 0 {
		add("%d or more cards", w.MinDiscrete)
	}
	if w.MaxDiscrete > 0 {
		add("at most %d card", w.MaxDiscrete)
	}
	if w.MinDevices > 0 {
		add("%d or more graphics devices", w.MinDevices)
	}
	if w.RAMBelow > 0 {
		add("RAM below %d GiB", w.RAMBelow>>30)
	}
	if w.RAMFrom > 0 {
		add("RAM from %d GiB", w.RAMFrom>>30)
	}
	if w.LinkBelow > 0 {
		add("link below %g GB/s", w.LinkBelow)
	}
	if w.LinkFrom > 0 {
		add("link from %g GB/s", w.LinkFrom)
	}
	if w.Split > 0 {
		add("spread over all cards")
	}
	if w.Split < 0 {
		add("one card at a time")
	}
	if w.Text != "" {
		add("%s", w.Text)
	}
	if len(p) == 0 {
		return "always"
	}
	return strings.Join(p, ", ")
}

// add puts what a matching rule does into the recipe.
func (x *Rule) add(r *Recipe, f Facts, asReported bool) {
	for _, d := range x.Do {
		l := Line{Rule: x.ID, Var: d.Var, Value: d.Value, Why: d.Why, Source: x.Source, Confidence: x.Confidence, Obsolete: x.Obsolete}
		if l.Why == "" {
			l.Why = x.Why
		}
		if d.Of != nil {
			l.Value = d.Of(f)
		}
		if asReported {
			switch {
			case d.Reported == "-" || d.Act == offer:
				continue
			case d.Reported != "":
				l.Value = d.Reported
			}
			l.Unset = d.Act == unset && d.Reported == ""
			r.Lines = append(r.Lines, l)
			continue
		}
		switch {
		case d.Reported == "-":
			l.Reported = "(not set)"
		case d.Reported != l.Value || d.Act == leftOut:
			l.Reported = d.Reported
		}
		switch d.Act {
		case unset:
			l.Unset, l.Value = true, ""
		case offer:
			l.Off, l.Confidence = true, Hypothesis
		case leftOut:
			r.LeftOut = append(r.LeftOut, l)
			continue
		}
		r.Lines = append(r.Lines, l)
	}
	for _, fl := range x.Flags {
		r.Flags = append(r.Flags, Flag{Rule: x.ID, Name: fl[0], Value: fl[1], FillIn: strings.HasPrefix(fl[1], "<"), Why: x.Why, Source: x.Source, Confidence: x.Confidence})
	}
	for _, c := range x.Limits {
		v := c.Value
		if c.Of != nil {
			v = c.Of(f)
		}
		if v > 0 {
			r.Limits = append(r.Limits, Limit{Rule: x.ID, Name: c.Name, Value: v, Why: x.Why, Source: x.Source, Confidence: x.Confidence})
		}
	}
	if x.Note != "" {
		r.Notes = append(r.Notes, Note{Rule: x.ID, Text: x.Note, Source: x.Source, Confidence: x.Confidence})
	}
	if x.Script != nil {
		s := *x.Script
		s.Rule, s.Why = x.ID, x.Why
		r.Scripts = append(r.Scripts, s)
	}
}

// Rules gives the table, for showing and testing it.
func Rules() []Rule { return slices.Clone(rules) }
