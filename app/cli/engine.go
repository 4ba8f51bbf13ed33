package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/engine"
	"outcrop/engine/catalog"
	"outcrop/engine/plan"
)

// This file and those of tokenize, logits, bench and packs inspect are the
// only ones here that work with package engine; everything else talks to a
// child process.

// open resolves a PACK argument and opens it.
func (p *Program) open(arg string) (*engine.Pack, catalog.Resolved, error) {
	r, err := p.packs().Resolve(arg)
	if err != nil {
		return nil, r, err
	}
	pack, err := engine.OpenPack(r.Path)
	return pack, r, err
}

// loadFlags are the flags of commands that load a pack.
type loadFlags struct {
	threads, context, chunk, expertRAM int
	kv, draft, device                  string
	cpuExperts, compare                bool
	cardFlags
	placeFlags
}

func (l *loadFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.IntVarP(&l.threads, "threads", "t", 0, "worker threads; 0: the physical cores this process may use")
	f.IntVarP(&l.context, "context", "c", 0, "tokens a chat can hold; 0: what the pack was trained for, at most 8192")
	f.StringVar(&l.kv, "kv", l.kv, "how keys and values are kept: f16, f32, q8 or q4")
	f.IntVar(&l.chunk, "chunk", 0, "tokens of a prompt computed at once, and of its pieces on several cards; 0: 512, on large cards that hold all layers 2048 and pieces as they are quickest")
	f.IntVar(&l.expertRAM, "expert-ram", 0, "MiB of experts to hold as copies in RAM; 0: none, they are used in the file's pages; -1: all")
	f.StringVar(&l.device, "device", l.device, "graphics devices: cpu (none), auto (every card), PCI addresses, or names such as opencl:0, with commas between them")
	f.BoolVar(&l.cpuExperts, "cpu-experts", false, "with --device: routed experts are computed by the CPU")
	f.BoolVar(&l.compare, "check", false, "with --device: compare every step of a layer with the CPU and name the first that differs; slow")
	l.cardFlags.add(c)
	l.placeFlags.add(c)
	f.StringVar(&l.draft, "draft", l.draft, "how tokens are tried ahead: auto, mtp, lookup or off; changes speed, never the answer")
}

// check finds what no pack can be loaded with; what depends on the pack is the
// engine's to say.
func (l *loadFlags) check(c *cobra.Command) error {
	for name, n := range map[string]int{"threads": l.threads, "context": l.context, "chunk": l.chunk} {
		if n < 0 {
			return usage(c, "--%s is %d, want 0 or more", name, n)
		}
	}
	if l.threads > 4096 { // as engine.Load
		return usage(c, "--threads is %d, want 0 to 4096", l.threads)
	}
	if l.chunk > 1<<16 {
		return usage(c, "--chunk is %d, want 0 to %d", l.chunk, 1<<16)
	}
	for _, x := range []struct {
		flag, value string
		known       []string
	}{{"kv", l.kv, []string{"f16", "f32", "q8", "q4"}}, {"draft", l.draft, []string{"auto", "mtp", "lookup", "off"}}} {
		if x.value != "" && !slices.Contains(x.known, x.value) {
			return usage(c, "--%s %s: want one of %v", x.flag, x.value, x.known)
		}
	}
	if l.expertRAM < -1 {
		return usage(c, "--expert-ram is %d, want MiB, 0 for none or -1 for all", l.expertRAM)
	}
	if d := l.or(l.device); l.compare && (d == "" || d == "cpu") {
		return usage(c, "--check compares a device with the CPU: name one with --device")
	}
	if err := l.placeFlags.check(c); err != nil {
		return err
	}
	if l.cpuExperts && l.wish.Experts == "" {
		l.wish.Experts = plan.ExpertsCPU
	}
	if err := l.cardFlags.check(c); err != nil {
		return err
	}
	return l.cardFlags.fits(c, l.or(l.device))
}

func (l *loadFlags) options() engine.Options {
	o := engine.Options{Threads: l.threads, Context: l.context, KV: l.kv, Chunk: l.chunk, Draft: l.draft, ExpertRAM: int64(l.expertRAM)}
	o.Device, o.Placement.CPUExperts = l.device, l.cpuExperts
	l.apply(&o)
	o.KernelCache, o.Check = kernelCache(), l.compare
	if l.expertRAM > 0 {
		o.ExpertRAM <<= 20
	}
	return o
}

const forceHelp = "load a pack that does not fit by the plan"

// args are the same flags for a child.
func (l *loadFlags) args() (out []string) {
	out = append(l.cardFlags.args(), l.placeFlags.args()...)
	for name, n := range map[string]int{"--threads": l.threads, "--context": l.context, "--chunk": l.chunk, "--expert-ram": l.expertRAM} {
		if n != 0 {
			out = append(out, fmt.Sprintf("%s=%d", name, n))
		}
	}
	if l.kv != "" {
		out = append(out, "--kv="+l.kv)
	}
	if l.draft != "" {
		out = append(out, "--draft="+l.draft)
	}
	if l.device != "" {
		out = append(out, "--device="+l.device)
	}
	if l.cpuExperts {
		out = append(out, "--cpu-experts")
	}
	if l.compare {
		out = append(out, "--check")
	}
	return out
}

// load loads a pack into this process, with a session.
func load(ctx context.Context, pack *engine.Pack, o engine.Options) (*engine.Model, *engine.Session, error) {
	m, err := engine.Load(ctx, pack, o)
	if err != nil {
		return nil, nil, err
	}
	s, err := m.NewSession()
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	return m, s, nil
}

// checked gives check mode's summary, and an error once something differed. The
// summary is empty without check mode.
func checked(m *engine.Model) (string, error) {
	r, ok := m.Check()
	if !ok {
		return "", nil
	}
	if r.First != nil {
		return r.String(), fmt.Errorf("the device differs from the CPU: %s", r.First)
	}
	return r.String(), nil
}

// readInput reads a file, or standard input for "-" and "".
func (p *Program) readInput(name string) ([]byte, error) {
	if name == "" || name == "-" {
		return io.ReadAll(p.In)
	}
	return os.ReadFile(name)
}

func (p *Program) versionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version and what this build can run", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			v := struct {
				Version  string   `json:"version"`
				Revision string   `json:"revision,omitempty"`
				Go       string   `json:"go,omitempty"`
				Families []string `json:"families"`
				Kernel   string   `json:"kernel"`
			}{Version: p.Version, Families: engine.Families(), Kernel: kernelName()}
			if b, ok := debug.ReadBuildInfo(); ok {
				v.Go = b.GoVersion
				for _, s := range b.Settings {
					if s.Key == "vcs.revision" {
						v.Revision = s.Value
					}
				}
			}
			if asJSON {
				return p.printJSON(v)
			}
			fmt.Fprintf(p.Out, "outcrop %s\n", v.Version)
			if v.Revision == "" {
				v.Revision = "n/a: built without it"
			}
			table(p.Out, [][]string{{"go", v.Go}, {"revision", v.Revision}, {"CPU kernels", v.Kernel}, {"families", strings.Join(v.Families, " ")}})
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}
