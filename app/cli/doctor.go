package cli

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"

	"github.com/spf13/cobra"

	"outcrop/engine/catalog"
	"outcrop/gpu"
	"outcrop/gpu/doctor"
)

func (p *Program) doctorCommand() *cobra.Command {
	var root, card, target, report string
	var asJSON, strict, light, beside bool
	var engines []string
	c := &cobra.Command{
		Use: "doctor", Short: "Say what was found, what stands in the way, and which package brings what is missing", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			light = light || beside
			if light && root != "" {
				return usage(c, "--light tests the devices of this machine; it does not go with --root")
			}
			if light {
				tell := p.printLight
				if asJSON {
					lines := json.NewEncoder(p.Out)
					tell = func(n doctor.LightLine) { lines.Encode(n) }
				}
				return p.firstLight(c.Context(), card, beside, tell)
			}
			o := doctor.Options{Card: gpu.PCI(card), Target: target}
			if root == "" {
				o.DiskPath = catalog.DataDir()
			}
			for _, e := range engines {
				x, err := doctor.ReadEngine(e)
				if err != nil {
					return err
				}
				o.Engines = append(o.Engines, x)
			}
			dir, done, err := machineDir(root)
			if err != nil {
				return err
			}
			defer done()
			m, fsys, _, err := gpu.Open(dir)
			if err != nil {
				return fmt.Errorf("read the machine at %s: %w", root, err)
			}
			if o.Card != "" && !slices.ContainsFunc(m.Cards, func(c gpu.Card) bool { return c.PCI == o.Card }) {
				return fmt.Errorf("doctor: no card at %s; outcrop cards lists those that were found", card)
			}
			if report != "" {
				return p.writeReport(report, fsys, o)
			}
			cs := doctor.Check(m, o)
			if cs == nil {
				cs = []doctor.Condition{}
			}
			if asJSON {
				if err := p.printJSON(cs); err != nil {
					return err
				}
			} else {
				p.printDoctor(m, cs)
			}
			if strict && doctor.HealthOf(cs, "") == doctor.Bad {
				return errSilent
			}
			return nil
		},
	}
	machineFlags(c, &root, &asJSON)
	c.Flags().StringVar(&card, "card", "", "only the card at this PCI address, and the machine")
	c.Flags().BoolVar(&light, "light", false, "run the known-answer test on every graphics device and the CPU, or on --card alone (a PCI address, a name such as opencl:0, or cpu; several with commas between them), then on all cards side by side; only devices that passed are used by --device=auto; with --json a line for each step")
	c.Flags().BoolVar(&beside, "together", false, "of --light, only the test of several cards side by side")
	c.Flags().StringVar(&target, "target", "", "program whose recipe the environment is compared with (default: outcrop)")
	c.Flags().StringArrayVar(&engines, "engine", nil, "binary of another engine to look at; may be repeated")
	c.Flags().StringVar(&report, "report", "", "write a report for a bug tracker to this file, without names; - is standard output")
	c.Flags().BoolVar(&strict, "check", false, "exit with 1 when something blocks")
	return c
}

func (p *Program) printDoctor(m gpu.Machine, cs []doctor.Condition) {
	c := p.paint(p.Out)
	if len(m.Cards) == 0 {
		fmt.Fprintln(p.Out, "No graphics card was found; models run on the CPU.")
	}
	for _, k := range m.Cards {
		fmt.Fprintf(p.Out, "%s %s: %s, driver %s\n", k.PCI, k.Name, doctor.HealthOf(cs, k.PCI), orWord(k.Driver, "none"))
	}
	if len(cs) == 0 {
		fmt.Fprintln(p.Out, "Nothing stands in the way.")
	}
	for _, x := range cs {
		head := fmt.Sprintf("%s: %s", x.Severity, x.Title)
		switch x.Severity {
		case doctor.Blocks:
			head = c.bad(head)
		case doctor.Warns:
			head = c.accent(head)
		}
		if x.Card != "" {
			head += c.dim("  " + string(x.Card))
		}
		fmt.Fprintln(p.Out, "\n"+head)
		fmt.Fprintln(p.Out, wrap(x.Text, "  ", 100))
		for _, e := range x.Evidence {
			fmt.Fprintln(p.Out, c.dim(wrap("seen: "+e, "  ", 100)))
		}
		if x.Next != "" {
			fmt.Fprintln(p.Out, wrap("next: "+x.Next, "  ", 100))
		}
		if x.Command != "" {
			fmt.Fprintln(p.Out, "    "+x.Command)
		}
	}
}

// writeReport makes a bug report without the names of the person.
func (p *Program) writeReport(name string, root fs.FS, o doctor.Options) error {
	var who doctor.Person
	if u, err := user.Current(); err == nil {
		who.User, who.Home = u.Username, u.HomeDir
	}
	who.Host, _ = os.Hostname()
	b, err := doctor.Report(root, nil, o, who, p.Version)
	if err != nil {
		return err
	}
	if name == "-" {
		_, err = b.WriteTo(p.Out)
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if _, err := b.WriteTo(f); err != nil {
		f.Close()
		return fmt.Errorf("write the report: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	fmt.Fprintf(p.Out, "The report is in %s; read it before you send it.\n", name)
	return nil
}

// machineCommand unpacks the machine file of a report.
func (p *Program) machineCommand() *cobra.Command {
	c := &cobra.Command{Use: "machine", Short: "Work with recorded machines", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(&cobra.Command{
		Use: "unpack FILE DIR", Short: "Unpack a machine file into a folder for --root", Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error { return gpu.UnpackFile(args[0], args[1]) },
	})
	return c
}
