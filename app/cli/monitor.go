package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"outcrop/app/client"
	"outcrop/engine/launch"
	"outcrop/engine/serve"
	"outcrop/engine/vitals"
	"outcrop/engine/wire"
	"outcrop/gpu"
)

func (p *Program) monitorCommand() *cobra.Command {
	var asJSON, once bool
	var address, key, root string
	c := &cobra.Command{
		Use: "monitor", Short: "Show memory, pressure, cards and the engine's rate, once a second",
		Long: "Follows a running engine (one of this user's, or the one at --address); without one it shows the machine alone.\n" +
			"Unknown is n/a, with the reason in --json. With --json each reading is one line; --once takes one reading.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(c.Context(), os.Interrupt)
			defer cancel()
			if key == "" {
				key = os.Getenv(launch.KeyVariable)
			}
			found := ""
			if root == "" && address == "" {
				found = findEngine(ctx)
			}
			show := func(s wire.Sample) error {
				switch {
				case asJSON:
					return json.NewEncoder(p.Out).Encode(s)
				case once:
					printSample(p.Out, s)
				default:
					fmt.Fprintln(p.Out, sampleLine(s))
				}
				return nil
			}
			if address != "" {
				return followEngine(ctx, client.New(address, key), once, show)
			}
			// An engine that was found by itself may end before its first
			// reading; then there is none, which is no fault.
			if found != "" {
				if err := followEngine(ctx, client.New(found, key), once, show); err == nil || ctx.Err() != nil {
					return nil
				}
			}
			return machineAlone(ctx, root, once, show)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print each reading as one line of JSON")
	c.Flags().BoolVar(&once, "once", false, "take one reading and exit")
	c.Flags().StringVar(&address, "address", "", "engine to follow: unix:PATH, HOST:PORT or an URL")
	c.Flags().StringVar(&key, "key", "", "its API key (default: the variable OUTCROP_KEY)")
	c.Flags().StringVar(&root, "root", "", rootHelp)
	return c
}

// findEngine is the address of a running engine of this user: the app's own,
// or a server at the usual port.
func findEngine(ctx context.Context) string {
	var addrs []string
	for _, s := range launch.Running() {
		addrs = append(addrs, "unix:"+s)
	}
	for _, a := range append(addrs, "http://"+defaultListen) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		c := client.New(a, "")
		h, err := c.Health(ctx)
		cancel()
		c.Close()
		if err == nil && h.PID != 0 {
			return a
		}
	}
	return ""
}

// followEngine shows an engine's readings. A rate needs two of them, so a
// single one is the second.
func followEngine(ctx context.Context, c *client.Client, once bool, show func(wire.Sample) error) error {
	defer c.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	seen := 0
	for u := range c.Telemetry(ctx) {
		if u.Err != nil {
			if once || seen == 0 {
				return u.Err
			}
			fmt.Fprintln(os.Stderr, "outcrop: the engine has gone; waiting for it")
			continue
		}
		seen++
		if once && seen < 2 && !u.Sample.CPU.Busy.Known {
			continue
		}
		if err := show(u.Sample); err != nil || once {
			return err
		}
	}
	return nil
}

// machineAlone shows the machine when no engine runs.
func machineAlone(ctx context.Context, root string, once bool, show func(wire.Sample) error) error {
	dir, done, err := machineDir(root)
	if err != nil {
		return err
	}
	defer done()
	m, fsys, live, err := gpu.Open(dir)
	if err != nil {
		return fmt.Errorf("read the machine at %s: %w", root, err)
	}
	s := gpu.NewSampler(fsys, m, live)
	defer s.Close()
	cards := serve.CardReader(m, s, 0, func(gpu.PCI) (bool, string) { return false, "no engine runs" })
	cpu := vitals.NewCPU(fsys, 0, runtime.NumCPU())
	disk := vitals.NewDisk()
	read := func() wire.Sample {
		now := time.Now()
		mem := vitals.Memory(fsys)
		mem.Level = serve.MemoryLevel(fsys)
		return wire.Sample{Time: now, Engine: wire.Engine{Status: "off", Phase: "no engine runs"}, Memory: mem,
			Process: vitals.Process(fsys, 0), CPU: cpu.Read(now), Cards: cards(now), Disk: diskNow(disk, live, now)}
	}
	if !live {
		// A recorded machine does not move: one reading is all there is.
		return show(read())
	}
	read()
	t := time.NewTicker(time.Second)
	defer t.Stop()
	if once {
		t.Reset(200 * time.Millisecond)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			if err := show(read()); err != nil || once {
				return err
			}
		}
	}
}

// diskNow is unknown for a recorded machine: its files hold no disk counters.
func diskNow(d *vitals.Disk, live bool, now time.Time) wire.Reading {
	if !live {
		return wire.Unknown("bytes/s", "/proc/diskstats", "a recorded machine does not move")
	}
	return d.Read(now)
}

// reading writes a value in its unit, or n/a.
func reading(r wire.Reading) string {
	if !r.Known {
		return "n/a"
	}
	switch r.Unit {
	case "bytes":
		return size(int64(r.Value))
	case "percent":
		return fmt.Sprintf("%.0f %%", r.Value)
	case "":
		return fmt.Sprintf("%.0f", r.Value)
	}
	return fmt.Sprintf("%.0f %s", r.Value, r.Unit)
}

// gbs is a rate in 1e9 bytes a second; 0 is one that was not measured.
func gbs(v float64) string {
	if v <= 0 {
		return "n/a"
	}
	return fmt.Sprintf("%.1f GB/s", v/1e9)
}

// sampleLine is one reading in one line.
func sampleLine(s wire.Sample) string {
	parts := []string{s.Time.Format("15:04:05")}
	e := s.Engine
	switch {
	case e.Phase == "decode":
		parts = append(parts, fmt.Sprintf("decode %.1f tok/s", e.DecodeTokS), fmt.Sprintf("%.1f ms", e.MSPerStep))
	case e.Phase == "prefill":
		parts = append(parts, fmt.Sprintf("prompt %d of %d", e.PrefillDone, e.PrefillTotal), fmt.Sprintf("%.0f tok/s", e.PrefillTokS))
	default:
		parts = append(parts, e.Phase)
	}
	if e.ContextSize > 0 {
		parts = append(parts, fmt.Sprintf("context %d of %d", e.ContextUsed, e.ContextSize))
	}
	if e.Queue > 0 {
		parts = append(parts, fmt.Sprintf("%d waiting", e.Queue))
	}
	parts = append(parts, "RAM "+reading(s.Memory.Available)+" free of "+reading(s.Memory.Total)+" ("+s.Memory.Level+")",
		"pressure "+reading(s.Memory.FullAvg10), "engine "+reading(s.Process.RSS), "CPU "+reading(s.CPU.Busy))
	if t := s.Tiers; t != nil {
		all := float64(max(1, t.VRAM+t.RAM+t.File))
		parts = append(parts, fmt.Sprintf("experts %.0f/%.0f/%.0f %% VRAM/RAM/file", 100*float64(t.VRAM)/all, 100*float64(t.RAM)/all, 100*float64(t.File)/all))
	}
	if s.Guard.Acting {
		parts = append(parts, "guard: "+s.Guard.Step)
	}
	for _, c := range s.Cards {
		parts = append(parts, c.Name+" VRAM "+reading(c.VRAM)+" of "+reading(c.Total)+", busy "+reading(c.Busy))
	}
	return strings.Join(parts, " · ")
}

// holdersWords says who holds a card's memory, as far as its driver tells.
func holdersWords(c *wire.Card) string {
	var parts []string
	if c.Own.Known {
		parts = append(parts, "this engine "+reading(c.Own)+" ("+c.Own.Source+")")
	}
	for _, h := range c.Others {
		parts = append(parts, orWord(h.Name, fmt.Sprintf("process %d", h.PID))+" "+reading(h.VRAM))
	}
	if c.OthersWhy != "" {
		parts = append(parts, "other programs n/a: "+c.OthersWhy)
	}
	if len(parts) == 0 {
		return ""
	}
	return "held by " + strings.Join(parts, ", ")
}

// printSample is one reading in full.
func printSample(w io.Writer, s wire.Sample) {
	e := s.Engine
	rows := [][]string{}
	add := func(k, v string) { rows = append(rows, []string{k, v}) }
	if s.Pack != "" {
		add("pack", s.Pack)
	}
	add("engine", e.Phase)
	if e.ContextSize > 0 {
		switch e.Phase {
		case "decode":
			add("rate", fmt.Sprintf("%.1f tok/s, %.1f ms a step", e.DecodeTokS, e.MSPerStep))
		case "prefill":
			add("prompt", fmt.Sprintf("%d of %d tokens, %.0f tok/s", e.PrefillDone, e.PrefillTotal, e.PrefillTokS))
		}
		add("context", fmt.Sprintf("%d of %d tokens", e.ContextUsed, e.ContextSize))
		add("memory by use", fmt.Sprintf("weights %s, KV %s, scratch %s, re-laid %s", size(e.Use.Weights), size(e.Use.KV), size(e.Use.Scratch), size(e.Use.Relaid)))
		add("runs on", fmt.Sprintf("%s, %d threads, %s kernels", e.Device, e.Threads, e.Kernel))
		if e.DeviceWhy != "" && len(s.Cards) > 0 {
			add("", "the CPU because "+strings.ReplaceAll(e.DeviceWhy, "\n", "; "))
		}
		if t := e.LayerTimes; t != nil {
			words := fmt.Sprintf("%.2f ms on the card", t.CardMS)
			if t.CPUMS > 0 {
				words += fmt.Sprintf(", %.2f ms on the CPU with experts, of the card's time %.2f ms without work for the CPU", t.CPUMS, t.WaitMS)
			}
			add("a layer", words)
		}
		if e.ReadBS > 0 {
			add("weights", fmt.Sprintf("%s a token, read at %.1f GB/s", size(e.BytesPerToken), e.ReadBS/1e9))
		}
		if t := s.Tiers; t != nil {
			all := float64(max(1, t.VRAM+t.RAM+t.File))
			add("experts from", fmt.Sprintf("VRAM %.0f %%, RAM %.0f %%, file %.0f %%", 100*float64(t.VRAM)/all, 100*float64(t.RAM)/all, 100*float64(t.File)/all))
			add("", fmt.Sprintf("a token waits %.1f ms for them; link %s, disk %s", t.WaitMS, gbs(t.LinkBS), gbs(t.DiskBS)))
		}
		if e.Drafted > 0 {
			add("drafts", fmt.Sprintf("%d of %d right", e.Accepted, e.Drafted))
		}
	}
	add("RAM", reading(s.Memory.Available)+" available of "+reading(s.Memory.Total)+" ("+s.Memory.Level+")")
	add("pressure", "some "+reading(s.Memory.SomeAvg10)+", full "+reading(s.Memory.FullAvg10)+" of the last 10 s")
	if s.Memory.Limit.Known {
		add("control group", reading(s.Memory.Used)+" of "+reading(s.Memory.Limit))
	}
	add("this process", reading(s.Process.RSS)+" ("+reading(s.Process.Anon)+" its own, "+reading(s.Process.Mapped)+" mapped)")
	add("CPU", reading(s.CPU.Busy)+" of the machine")
	if s.Guard.Step != "" {
		add("guard", s.Guard.Step+" ("+s.Guard.Preset+")")
	}
	for _, w := range s.Guard.Words {
		add("", w)
	}
	for _, c := range s.Cards {
		add(orWord(c.PCI, "device"), fmt.Sprintf("%s: VRAM %s of %s, busy %s, %s, %s", c.Name, reading(c.VRAM), reading(c.Total), reading(c.Busy), reading(c.Temp), reading(c.Power)))
		if u := c.Use; u != nil {
			words := fmt.Sprintf("layers %d to %d: weights %s, KV %s, work space %s", u.First, u.First+u.Layers-1, size(u.Weights), size(u.KV), size(u.Scratch))
			if u.Slots > 0 {
				words += ", experts in use most " + size(u.Slots)
			}
			add("", words)
		}
		if words := holdersWords(&c); words != "" {
			add("", words)
		}
		if c.WhyIdle != "" {
			add("", c.WhyIdle)
		}
	}
	table(w, rows)
}
