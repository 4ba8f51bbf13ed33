package cli

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/engine"
	"outcrop/engine/catalog"
	"outcrop/engine/plan"
	"outcrop/engine/serve"
)

// placeFlags say where the parts of a pack are to lie. What they leave open,
// the plan decides.
type placeFlags struct {
	slots, experts, placement, ram string

	wish plan.Wishes
}

func (k *placeFlags) add(c *cobra.Command) {
	f := c.Flags()
	var names []string
	for _, pl := range plan.Placements {
		names = append(names, string(pl))
	}
	f.StringVar(&k.placement, "placement", "", "where experts live, one of "+strings.Join(names, ", ")+"; default: what is quickest and fits")
	f.StringVar(&k.experts, "experts", "auto", "who computes routed experts that have no slot: cpu, card (all of them lie there), copy (the card, they come over the link), or auto")
	f.StringVar(&k.slots, "slots", "auto", "VRAM of each card for the experts used most, such as 8GB; auto: what is left, 0: none")
	f.StringVar(&k.ram, "ram-limit", "", "most RAM to use, such as 16GiB; default: what is free but for the floor")
}

func (k *placeFlags) check(c *cobra.Command) error {
	k.wish = plan.Wishes{}
	if k.placement != "" && !slices.Contains(plan.Placements, plan.Placement(k.placement)) {
		return usage(c, "--placement %s: want one of %v", k.placement, plan.Placements)
	}
	k.wish.Placement = plan.Placement(k.placement)
	switch k.experts {
	case "", "auto":
	case "cpu", "card", "copy":
		k.wish.Experts = plan.Experts(k.experts)
	default:
		return usage(c, "--experts %s: want cpu, card, copy or auto", k.experts)
	}
	switch k.slots {
	case "", "auto":
	case "0", "none":
		k.wish.Slots = -1
	default:
		n, err := parseSize(k.slots)
		if err != nil {
			return usage(c, "--slots %s: %w", k.slots, err)
		}
		if err := atLeast(c, "--slots", k.slots, n, leastSlots, "one expert of a small pack takes as much (0: no slots)"); err != nil {
			return err
		}
		k.wish.Slots = n
	}
	if k.ram != "" {
		n, err := parseSize(k.ram)
		if err != nil {
			return usage(c, "--ram-limit %s: %w", k.ram, err)
		}
		if err := atLeast(c, "--ram-limit", k.ram, n, leastRAM, "the engine takes as much without a pack"); err != nil {
			return err
		}
		k.wish.RAMCap = n
	}
	return nil
}

// asked tells whether any of them was given.
func (k *placeFlags) asked() bool {
	return k.placement != "" || k.experts != "" && k.experts != "auto" || k.slots != "" && k.slots != "auto" || k.ram != ""
}

// args are the same flags for a child.
func (k *placeFlags) args() (out []string) {
	for name, v := range map[string]string{"--placement": k.placement, "--experts": k.experts, "--slots": k.slots, "--ram-limit": k.ram} {
		if v != "" && v != "auto" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// wishes adds them to w.
func (k *placeFlags) wishes(w *plan.Wishes) {
	w.Placement, w.Experts, w.Slots, w.RAMCap = k.wish.Placement, k.wish.Experts, k.wish.Slots, k.wish.RAMCap
}

// place has the plan say where a pack lies, as the server does, where flags ask
// for that or for devices; what does not fit is tried all the same.
func (p *Program) place(pack *engine.Pack, l *loadFlags, o *engine.Options) error {
	return l.place(pack, o, func(note string) { fmt.Fprintln(p.Err, "outcrop: "+note) })
}

func (l *loadFlags) place(pack *engine.Pack, o *engine.Options, tell func(note string)) error {
	if !l.asked() && (o.Device == "" || o.Device == "cpu") {
		return nil
	}
	notes, err := serve.Place(pack, o, serve.Spec{Force: true, Guard: "full", Wishes: l.wish, Rates: ratesFile()})
	if err != nil {
		return err
	}
	for _, n := range notes {
		tell(n)
	}
	return nil
}

// ratesFile is where the rates of this machine are kept.
func ratesFile() string { return filepath.Join(catalog.DataDir(), "rates.json") }
