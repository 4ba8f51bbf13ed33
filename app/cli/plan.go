package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/engine/plan"
	"outcrop/engine/serve"
)

func (p *Program) planCommand() *cobra.Command {
	var root string
	var asJSON, measure bool
	var list []string
	var w plan.Wishes
	l := loadFlags{device: "auto"}
	c := &cobra.Command{
		Use: "plan [PACK]", Short: "Say whether and how a pack fits this machine, before it is loaded",
		Long: "Shows where the parts of a pack will live, how fast it will be and why, and what was not chosen. chat, serve and\n" +
			"bench with the same flags do what is shown. Rates of this machine are measured when a large pack is first loaded,\n" +
			"or with --measure, and again when the driver, the link or the processor changes.",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(c *cobra.Command, args []string) error {
			if err := l.check(c); err != nil {
				return err
			}
			arg := ""
			if len(args) == 1 {
				arg = args[0]
			}
			pack, r, err := p.open(arg)
			if err != nil {
				return err
			}
			defer pack.Close()
			if len(list) > 0 {
				l.cards = strings.Join(list, ",")
			}
			s, err := site(root, l.or(l.device))
			if err != nil {
				return err
			}
			if s.Here { // elsewhere the disk is another one too
				s.Threads, s.Pack, s.Rates = l.threads, pack.File().Shards()[0].Path, ratesFile()
			}
			if measure {
				tell := p.progress()
				err := serve.Measure(c.Context(), s, true, func(what string) { tell("measuring "+what, 0, 0) })
				tell("", 0, 0)
				switch {
				case c.Context().Err() != nil || !s.Here:
					return err
				case err != nil: // the rest was measured, and the plan is of use without
					fmt.Fprintln(p.Err, "outcrop:", err)
				}
			}
			w.Context, w.KV, w.Chunk, w.NoDraft = l.context, l.kv, l.chunk, w.NoDraft || l.draft == "off"
			w.VRAMCaps, w.Split = l.limits, l.parts
			l.wishes(&w)
			if !s.Here {
				w.Cards = l.cardFlags.list()
			}
			pl, _, err := serve.PlanFor(pack, s, profilePath(r), w)
			if err != nil {
				return err
			}
			pl.Pack = r.Name
			if asJSON {
				return p.printJSON(pl)
			}
			p.printPlan(pl)
			p.printRates(pl, s, measure)
			notes, err := pack.OnCPU()
			if err != nil {
				return err
			}
			for _, n := range notes {
				fmt.Fprintln(p.Out, "with a card:", n)
			}
			return nil
		},
	}
	machineFlags(c, &root, &asJSON)
	l.add(c)
	f := c.Flags()
	f.StringArrayVar(&list, "card", nil, "PCI address of a card to use; may be repeated (default: all usable)")
	f.BoolVar(&w.NoCard, "no-card", false, "the CPU alone")
	f.BoolVar(&w.NoDraft, "no-draft", false, "without the draft block")
	f.Int64Var(&w.VRAMReserve, "vram-reserve", 0, "bytes to leave free on each card; 0: the rule's")
	f.Int64Var(&w.RAMFloor, "ram-floor", 0, "bytes of RAM to leave free, at most a quarter of it; 0: the preset's")
	f.BoolVar(&measure, "measure", false, "measure this machine first: the processor, the disk of the pack, the links of the cards")
	return c
}

// site is the machine at root, this one for "", with its cards.
func site(root, device string) (serve.Site, error) {
	if root == "" || root == "/" {
		if device == "" || device == "cpu" {
			device = "auto" // what there is is shown, with why it is not used
		}
		return serve.Here(device, kernelCache())
	}
	m, readings, err := machineNow(root)
	return serve.Site{Machine: m, Readings: readings, Threads: max(m.Host.CPU.Cores, 1), Device: device}, err
}

// printRates says how fast the machine is known to be, and what could be measured
// where that was not just tried.
func (p *Program) printRates(pl plan.Plan, s serve.Site, tried bool) {
	c := p.paint(p.Out)
	fmt.Fprintln(p.Out, "\n"+c.bold("Rates"))
	for _, t := range pl.Rates {
		fmt.Fprintln(p.Out, "  "+t)
	}
	if left := serve.Unmeasured(s); s.Here && !tried && len(left) > 0 {
		fmt.Fprintln(p.Out, "  not measured yet: "+strings.Join(left, ", ")+"; --measure does it now")
	}
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
		name := "VRAM of " + k.Name
		if len(pl.Cards) > 1 {
			name += " " + k.PCI
		}
		bar(name, k.Use)
	}
	bar("RAM", pl.RAM)
	bar("File", pl.File)
	for _, s := range pl.Short {
		fmt.Fprintln(p.Out, "\n"+c.bad(s.String()))
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
	list("Between the cards", pl.Crossing)
	var help []string
	for _, r := range pl.Remedies {
		help = append(help, r.Text)
	}
	list("What would fit", help)
	var others []string
	for _, a := range pl.Alternatives {
		others = append(others, fmt.Sprintf("--placement=%s: %s", a.Placement, a.Why))
	}
	list("Not chosen", others)
}
