package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/engine"
	"outcrop/engine/plan"
	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

func (p *Program) planCommand() *cobra.Command {
	var root, placement string
	var asJSON bool
	var w plan.Wishes
	c := &cobra.Command{
		Use: "plan [PACK]", Short: "Say whether and how a pack fits this machine, before it is loaded",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(_ *cobra.Command, args []string) error {
			arg := ""
			if len(args) == 1 {
				arg = args[0]
			}
			pack, r, err := p.open(arg)
			if err != nil {
				return err
			}
			defer pack.Close()
			facts, err := pack.PlanFacts()
			if err != nil {
				return err
			}
			facts.Name = r.Name
			m, readings, err := machineNow(root)
			if err != nil {
				return err
			}
			if w.Context == 0 && facts.Trained > 0 {
				w.Context = min(facts.Trained, engine.DefaultContext)
			}
			w.Placement = plan.Placement(placement)
			pl, err := plan.Make(facts, planMachine(m, readings), w)
			if err != nil {
				return err
			}
			if asJSON {
				return p.printJSON(pl)
			}
			p.printPlan(pl)
			return nil
		},
	}
	machineFlags(c, &root, &asJSON)
	f := c.Flags()
	f.IntVarP(&w.Context, "context", "c", 0, "tokens a chat can hold; 0: what the pack was trained for, at most 8192")
	f.StringVar(&w.KV, "kv", "", "how keys and values are kept: f32, f16, q8, q4")
	f.StringArrayVar(&w.Cards, "card", nil, "PCI address of a card to use; may be repeated (default: all usable)")
	f.BoolVar(&w.NoCard, "no-card", false, "the CPU alone")
	f.BoolVar(&w.NoDraft, "no-draft", false, "without the draft block")
	f.Int64Var(&w.VRAMReserve, "vram-reserve", 0, "bytes to leave free on each card; 0: the rule's")
	f.Int64Var(&w.RAMFloor, "ram-floor", 0, "bytes of RAM to leave free, at most a quarter of it; 0: the preset's")
	var names []string
	for _, pl := range plan.Placements {
		names = append(names, string(pl))
	}
	f.StringVar(&placement, "placement", "", "force one of "+strings.Join(names, ", "))
	return c
}

// planMachine is a machine as the planner sees it: of each card what it has
// and whether it can be used, and the limits of its recipe.
func planMachine(m gpu.Machine, readings []gpu.CardReadings) plan.Machine {
	// The host counts the limit of a control group, and clean cache in it as free.
	out := plan.Machine{RAMTotal: amount(m.Host.RAM()), RAMAvailable: amount(m.Host.Available()), Threads: max(m.Host.CPU.Cores, 1)}
	for _, k := range m.Cards {
		c := plan.Card{
			PCI: string(k.PCI), Name: k.Name, Driver: k.Driver, Total: amount(k.Memory.Total),
			Display: len(k.Displays) > 0, Integrated: k.Memory.Shared,
			MaxAlloc: k.Caps.AllocMax, MaxPinned: k.Caps.HostAllocMax,
			// The engine fits layers to cards by their free memory when it
			// loads; the plan does not place them yet.
			Unusable: "plans are for the CPU so far; serve uses cards that passed first light",
		}
		c.Free = plan.Amount{Why: "the card gave no reading"}
		for _, r := range readings {
			if r.PCI == k.PCI {
				c.Free = amount(r.VRAM.Free)
			}
		}
		if r, err := recipe.For(m, recipe.Outcrop, recipe.Options{Card: k.PCI}); err == nil {
			if n, ok := r.Limit(recipe.AllocMax); ok {
				c.MaxAlloc = n
			}
			if n, ok := r.Limit(recipe.HostAllocMax); ok {
				c.MaxPinned = n
			}
		}
		if g := k.Memory.GBs; g.Known {
			c.Device = plan.Rate{PerSecond: float64(g.Value) * 1e9}
		}
		if g := k.Link.GBs(); g.Known {
			c.HostToDevice = plan.Rate{PerSecond: g.Value * 1e9}
		}
		out.Cards = append(out.Cards, c)
	}
	return out
}

func amount(r gpu.Reading[int64]) plan.Amount {
	return plan.Amount{N: r.Value, Known: r.Known, Source: r.Source, Why: r.Why}
}

func (p *Program) printPlan(pl plan.Plan) {
	c := p.paint(p.Out)
	head := "fits"
	if !pl.Fits {
		head = c.bad("does not fit")
	}
	fmt.Fprintf(p.Out, "%s: %s. %s\n", c.bold(pl.Pack), head, pl.Words)
	fmt.Fprintf(p.Out, "context %d tokens, KV %s", pl.Context, pl.KV)
	if pl.Speed.DecodeHigh > 0 {
		fmt.Fprintf(p.Out, ", expected %s to %s tok/s", rate(pl.Speed.DecodeLow), rate(pl.Speed.DecodeHigh))
		if !pl.Speed.Measured {
			fmt.Fprint(p.Out, " (rates are assumed, not measured)")
		}
	}
	fmt.Fprintln(p.Out)
	bar := func(name string, u plan.Use) {
		if len(u.Segments) == 0 {
			return
		}
		total := "n/a"
		if u.Total.Known {
			total = size(u.Total.N)
		}
		fmt.Fprintf(p.Out, "\n%s  %s\n", c.bold(name), c.dim(total))
		var rows [][]string
		for _, s := range u.Segments {
			rows = append(rows, []string{"  " + s.Kind, size(s.Bytes), s.Why})
		}
		table(p.Out, rows)
	}
	for _, k := range pl.Cards {
		bar("VRAM of "+k.Name, k.Use)
	}
	bar("RAM", pl.RAM)
	bar("File", pl.File)
	for _, s := range pl.Short {
		fmt.Fprintln(p.Out, "\n"+c.bad(fmt.Sprintf("%s is short of %s: %s", s.Where, size(s.Bytes), s.Why)))
	}
	list := func(name string, items []string) {
		if len(items) > 0 {
			fmt.Fprintln(p.Out, "\n"+c.bold(name))
		}
		for _, s := range items {
			fmt.Fprintln(p.Out, wrap(s, "  ", 100))
		}
	}
	list("Why", pl.Reasons)
	var help []string
	for _, r := range pl.Remedies {
		help = append(help, r.Text)
	}
	list("What would fit", help)
}
