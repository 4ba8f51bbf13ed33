package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

// cardsResult is what `cards --json` prints: the machine, and its sensors now.
type cardsResult struct {
	gpu.Machine
	Readings []gpu.CardReadings `json:"readings"`
}

func (p *Program) cardsCommand() *cobra.Command {
	var root string
	var asJSON, devices bool
	c := &cobra.Command{
		Use: "cards", Short: "Show the graphics cards that were found, and what they say of themselves", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if devices && root != "" {
				return usage(c, "--devices asks the drivers of this machine; it does not go with --root")
			}
			if devices {
				o := offers()
				if asJSON {
					return p.printJSON(o)
				}
				p.printOffers(o)
				return nil
			}
			m, readings, err := machineNow(root)
			if err != nil {
				return err
			}
			r := cardsResult{m, readings}
			if asJSON {
				if r.Cards == nil {
					r.Cards = []gpu.Card{}
				}
				if r.Readings == nil {
					r.Readings = []gpu.CardReadings{}
				}
				return p.printJSON(r)
			}
			p.printCards(r)
			return nil
		},
	}
	machineFlags(c, &root, &asJSON)
	c.Flags().BoolVar(&devices, "devices", false, "show what the drivers offer to compute on, by the names that --device takes, and what has passed first light")
	return c
}

// printOffers shows the devices of the drivers.
func (p *Program) printOffers(o doctor.Offers) {
	var rows [][]string
	for _, d := range o.Devices {
		state := "first light: not passed with this driver"
		if d.Passed {
			state = "first light: passed"
		}
		name := d.Name
		if d.CPU {
			name += " (the processor itself)"
		}
		rows = append(rows, []string{d.ID, name, string(d.PCI), d.API + ", " + orWord(d.Version, "version n/a"), size(d.Memory), state})
	}
	table(p.Out, rows)
	for _, m := range o.Missing {
		fmt.Fprintln(p.Out, "no device:", strings.ReplaceAll(m, "\n", "; "))
	}
}

// machineFlags are those of every command that reads a machine.
func machineFlags(c *cobra.Command, root *string, asJSON *bool) {
	c.Flags().StringVar(root, "root", "", rootHelp)
	c.Flags().BoolVar(asJSON, "json", false, "print JSON")
}

// shown writes a reading of bytes, or n/a with the reason.
func shown[T any](r gpu.Reading[T], f func(T) string) string {
	if r.Known {
		return f(r.Value)
	}
	return r.String()
}

func number(unit string) func(float64) string {
	return func(v float64) string { return fmt.Sprintf("%.4g %s", v, unit) }
}

func (p *Program) printCards(r cardsResult) {
	c := p.paint(p.Out)
	h := r.Host
	table(p.Out, [][]string{
		{"CPU", fmt.Sprintf("%s, %d cores, %d threads", h.CPU.Name, h.CPU.Cores, h.CPU.Threads)},
		{"RAM", shown(h.Memory.Available, size) + " available of " + shown(h.Memory.Total, size)},
		{"system", fmt.Sprintf("%s %s, %s", h.Distro.Name, h.Kernel, orWord(h.Virtual, "bare metal"))},
	})
	if len(r.Cards) == 0 {
		fmt.Fprintln(p.Out, "\nNo graphics card was found. Models run on the CPU.")
	}
	sensors := map[gpu.PCI]gpu.CardReadings{}
	for _, s := range r.Readings {
		sensors[s.PCI] = s
	}
	for _, k := range r.Cards {
		fmt.Fprintf(p.Out, "\n%s  %s\n", c.bold(k.Name), c.dim(string(k.PCI)))
		rows := [][]string{
			{"  id", fmt.Sprintf("%s, %s, %s", k.ID(), k.VendorName(), orWord(string(k.Arch), "unknown generation"))},
			{"  kernel driver", orWord(k.Driver, "none") + "  " + shown(k.DriverVersion, func(s string) string { return s })},
			{"  memory", shown(k.Memory.Total, size) + ", " + shared(k.Memory.Shared)},
			{"  BAR", shown(k.BAR.Size, size)},
			{"  link", shown(k.Link.GBs(), number("GB/s"))},
			{"  device file", orWord(k.Node.Path, "none") + ", " + access(k.Node)},
		}
		if s, ok := sensors[k.PCI]; ok {
			rows = append(rows,
				[]string{"  VRAM in use", shown(s.VRAM.Used, size) + c.dim("  "+s.VRAM.Used.Source)},
				[]string{"  VRAM free", shown(s.VRAM.Free, size)},
				[]string{"  held by", shown(s.VRAM.Listed, func(int) string { return heldBy(s.VRAM.Procs) })},
				[]string{"  busy", shown(s.Busy, number("%"))},
				[]string{"  temperature", shown(s.Temp, number("°C"))},
				[]string{"  power", shown(s.Power, number("W"))})
		}
		table(p.Out, rows)
	}
	for _, n := range r.Notes {
		fmt.Fprintln(p.Out, "\n"+wrap(n, "", 100))
	}
}

// heldBy names the processes that hold most of a card's memory.
func heldBy(procs []gpu.ProcVRAM) string {
	const most = 4
	var parts []string
	for i, p := range procs {
		if i == most {
			parts = append(parts, fmt.Sprintf("%d more", len(procs)-most))
			break
		}
		n := "n/a"
		if p.Unknown == "" {
			n = size(p.VRAM)
		}
		parts = append(parts, orWord(p.Name, fmt.Sprintf("process %d", p.PID))+" "+n)
	}
	if len(parts) == 0 {
		return "no program that we can see"
	}
	return strings.Join(parts, ", ")
}

func orWord(s, word string) string {
	if s == "" {
		return word
	}
	return s
}

func shared(is bool) string {
	if is {
		return "a share of RAM"
	}
	return "its own"
}

func access(n gpu.Node) string {
	if !n.Access.Known {
		return "access n/a"
	}
	if n.Access.Value {
		return "we may open it"
	}
	if n.Group.Known {
		return "we may not open it: join the group " + n.Group.Value
	}
	return "we may not open it"
}
