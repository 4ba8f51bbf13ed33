package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"outcrop/engine"
	"outcrop/engine/quant"
	"outcrop/engine/serve"
	"outcrop/engine/vitals"
)

// benchResult is what --json prints.
type benchResult struct {
	Pack string `json:"pack"`
	engine.BenchResult
	Depths  []engine.BenchResult `json:"depths,omitempty"` // all of them, where --depth gives several
	LoadMS  float64              `json:"load_ms"`
	Context int                  `json:"context"`
	Bytes   int64                `json:"pack_bytes"`
	Version string               `json:"version"`
	Check   string               `json:"check,omitempty"` // what check mode found
	differs error
	Experts *engine.TierSample `json:"experts,omitempty"` // of all turns together
	Placed  []engine.Placed    `json:"placed,omitempty"`  // what was planned and what was taken
}

func (p *Program) benchCommand() *cobra.Command {
	var o engine.BenchOptions
	var asJSON, loads bool
	var peer, level string
	l := loadFlags{kv: "f16", draft: "off"}
	c := &cobra.Command{
		Use: "bench [PACK]", Short: "Measure how fast a pack reads a prompt and writes an answer",
		Long: "Reads a prompt of random tokens and decodes after it one token at a time, several times, and gives the median.\n" +
			"The share of the memory's bandwidth says how near decoding is to what this machine can do at best.",
		Args: cobra.MaximumNArgs(1), ValidArgsFunction: p.packNames,
		RunE: func(c *cobra.Command, args []string) error {
			if o.Prompt < 1 || o.Generate < 1 || o.Runs < 1 || slices.Min(o.Depths) < 0 {
				return usage(c, "--prompt, --generate and --repeat must be at least 1, --depth at least 0")
			}
			if err := l.check(c); err != nil {
				return err
			}
			undo, err := useKernels(level)
			if err != nil {
				return usage(c, "--kernels: %v", err)
			}
			defer undo()
			arg := ""
			if len(args) == 1 {
				arg = args[0]
			}
			if loads {
				t, err := p.loads(c.Context(), peer, arg, l, o.Runs)
				if err != nil {
					return err
				}
				if asJSON {
					return p.printJSON(t)
				}
				p.printLoads(t)
				return nil
			}
			if peer != "" {
				r, err := p.compare(c.Context(), peer, arg, level, l, o)
				if err != nil {
					return err
				}
				if asJSON {
					return p.printJSON(r)
				}
				p.printComparison(r)
				return nil
			}
			r, err := p.bench(c.Context(), arg, l, o)
			if err != nil {
				return err
			}
			if asJSON {
				return errors.Join(p.printJSON(r), r.differs)
			}
			p.printBench(r)
			p.printHandOvers(r.HandOver)
			p.printStages(r.Stages)
			return r.differs
		},
	}
	l.add(c)
	c.Flags().IntVar(&o.Prompt, "prompt", 512, "tokens of the prompt")
	c.Flags().IntVar(&o.Generate, "generate", 128, "tokens to generate")
	c.Flags().IntSliceVar(&o.Depths, "depth", []int{0}, "tokens in the context before either; several with commas between them")
	c.Flags().IntVar(&o.Runs, "repeat", 3, "times; the median counts")
	c.Flags().StringVar(&level, "kernels", "", "level of the CPU's kernels: "+strings.Join(kernelLevels(), ", ")+" on this processor; the last if not given")
	c.Flags().StringVar(&peer, "compare", "", "run another program on the same file in turn and print ratios: a llama-bench, or a command that takes -p -n -t -r and a file")
	c.Flags().BoolVar(&loads, "load", false, "measure loading to the first token instead: with nothing of the file in the system's cache, and with all of it")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func (p *Program) printBench(r benchResult) {
	mem := "n/a"
	if r.PeakRSSBytes > 0 {
		mem = fmt.Sprintf("%s at most; at the end %s of its own and %s of the file", size(r.PeakRSSBytes), size(r.AnonBytes), size(r.MappedBytes))
	}
	kernels := r.Kernel
	if err := quant.Refused(); err != nil {
		kernels += "; " + err.Error()
	}
	table(p.Out, [][]string{
		{"pack", fmt.Sprintf("%s (%s, %s)", r.Pack, r.Arch, size(r.Bytes))},
		{"prompt", fmt.Sprintf("%d tokens, %.1f tok/s", r.Prompt, r.PrefillTokS)},
		{"answer", fmt.Sprintf("%d tokens, %.1f tok/s, %.2f ms a step", r.Generate, r.DecodeTokS, r.MsPerStep)},
		{"read", fmt.Sprintf("%s a token, %.1f GB/s, %.0f %% of the %.1f GB/s these threads can read", size(r.BytesPerToken), r.GBs, 100*r.Share, r.BandwidthGBs)},
		{"threads", fmt.Sprint(r.Threads)}, {"kernels", kernels}, {"runs on", r.Device}, {"KV", r.KV}, {"memory", mem},
	})
	if t := r.Layers; t != nil {
		table(p.Out, [][]string{{"a layer", fmt.Sprintf("%.3f ms on the card, %.3f ms on the CPU, of the card's %.3f with the CPU waiting", t.CardMs, t.CPUMs, t.WaitMs)}})
	}
	if r.Check != "" {
		table(p.Out, [][]string{{"check", r.Check}})
	}
	if r.Experts != nil {
		table(p.Out, [][]string{{"experts", expertWords(r.Experts)}})
	}
	if len(r.Depths) < 2 && !r.Filled {
		return
	}
	rows := [][]string{{"in context", "prompt", "answer", "a step", "read a token", "speed", "share"}}
	filled := false
	for _, d := range append(r.Depths, r.BenchResult)[:max(len(r.Depths), 1)] {
		filled = filled || d.Filled
		rows = append(rows, []string{fmt.Sprint(d.Depth), fmt.Sprintf("%.1f tok/s", d.PrefillTokS), fmt.Sprintf("%.1f tok/s", d.DecodeTokS),
			fmt.Sprintf("%.2f ms", d.MsPerStep), size(d.BytesPerToken), fmt.Sprintf("%.1f GB/s", d.GBs), fmt.Sprintf("%.0f %%", 100*d.Share)})
	}
	fmt.Fprintln(p.Out)
	table(p.Out, rows)
	if filled {
		fmt.Fprintln(p.Out, "what is in the context was drawn at random, not computed: attention takes as long over it")
	}
}

// expertWords says from where experts were used and by whom.
func expertWords(e *engine.TierSample) string {
	all := float64(e.Slot+e.RAM+e.File) / 100
	s := fmt.Sprintf("%.1f %% in slots, %.1f %% in RAM, %.1f %% in the file", float64(e.Slot)/all, float64(e.RAM)/all, float64(e.File)/all)
	if e.Linked > 0 && e.LinkTime > 0 {
		s += fmt.Sprintf("; %.1f %% over the link at %.1f GB/s", float64(e.Linked)/all, float64(e.LinkBytes)/e.LinkTime.Seconds()/1e9)
	}
	if e.Read > 0 {
		s += fmt.Sprintf("; %s read, waited %.1f s for the file", size(e.Read), e.Waited.Seconds())
	}
	if e.CardWait > 0 {
		s += fmt.Sprintf("; waited %.1f s for the card's experts", e.CardWait.Seconds())
	}
	if e.Promoted > 0 {
		s += fmt.Sprintf("; %d came to slots", e.Promoted)
	}
	return s
}

func (p *Program) bench(ctx context.Context, arg string, l loadFlags, o engine.BenchOptions) (benchResult, error) {
	pack, res, err := p.open(arg)
	if err != nil {
		return benchResult{}, err
	}
	defer pack.Close()
	if l.context == 0 {
		l.context = slices.Max(o.Depths) + o.Prompt + o.Generate + 1
		if trained := pack.Info().Context; trained > 0 {
			l.context = min(l.context, trained)
		}
	}
	began := time.Now()
	opt := l.options()
	opt.Relay = serve.RelayRoom(vitals.Live(), 4<<30) // as the server does where RAM is plenty
	if err := p.place(pack, &l, &opt); err != nil {
		return benchResult{}, err
	}
	m, err := engine.Load(ctx, pack, opt)
	if err != nil {
		return benchResult{}, err
	}
	defer m.Close()
	for _, x := range m.Placed() {
		fmt.Fprintln(p.Err, "outcrop: "+x.String())
	}
	for _, n := range append(m.OnCPU(), m.Slow()...) {
		fmt.Fprintln(p.Err, "outcrop: "+n)
	}
	if d := m.Telemetry().Device; l.parts != nil && d.Layers == 0 {
		fmt.Fprintf(p.Err, "outcrop: --split %s is not used: %s\n", l.split, orWord(d.Why, "no card has layers of this pack"))
	}
	r := benchResult{Pack: res.Name, LoadMS: float64(time.Since(began).Microseconds()) / 1e3, Context: m.Context(), Bytes: pack.Size(), Version: p.Version}
	all, err := engine.Bench(ctx, m, o)
	if err != nil {
		return r, err
	}
	r.BenchResult, r.Placed = all[0], m.Placed()
	if e := m.Telemetry().Experts; e.Slot+e.RAM+e.File > 0 {
		r.Experts = &e
	}
	if len(all) > 1 {
		r.Depths = all
	}
	r.Check, r.differs = checked(m)
	return r, nil
}
