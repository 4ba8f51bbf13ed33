package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"outcrop/engine"
	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// cardFlags say which cards a pack runs on, how its layers are dealt out and how
// much of each card may be used. They mean the same to all commands.
type cardFlags struct {
	cards, split, vram string

	parts  []float64
	limits []int64
}

func (k *cardFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&k.cards, "cards", "", "graphics cards to use, in the order of their layers: PCI addresses, or names such as cuda:0 and opencl:1, with commas between them")
	f.StringVar(&k.split, "split", "", "with several cards: layers of each (20,28), or the proportions in which they are dealt out (3,1); default: what is quickest")
	f.StringVar(&k.vram, "vram-limit", "", "most VRAM to use of each card, such as 8GB or 12GiB; with commas for several cards (none: no limit for that one), the last one counts for the others")
}

func (k *cardFlags) check(c *cobra.Command) (err error) {
	if k.parts, err = parseSplit(k.split); err != nil {
		return usage(c, "--split %s: %w", k.split, err)
	}
	if k.limits, err = parseSizes(k.vram); err != nil {
		return usage(c, "--vram-limit %s: %w", k.vram, err)
	}
	for _, n := range k.limits {
		if n > 0 {
			if err := atLeast(c, "--vram-limit", k.vram, n, leastVRAM, "the smallest pack's first layer needs as much"); err != nil {
				return err
			}
		}
	}
	if n := strings.Count(k.cards, ",") + 1; k.cards != "" && len(k.limits) > n {
		return usage(c, "--vram-limit %s is for %d cards, --cards names %d", k.vram, len(k.limits), n)
	}
	if n := strings.Count(k.cards, ",") + 1; k.cards != "" && k.parts != nil && len(k.parts) != n {
		return usage(c, "--split %s is for %d cards, --cards names %d", k.split, len(k.parts), n)
	}
	return nil
}

// fits finds flags that are for other cards than a device names.
func (k *cardFlags) fits(c *cobra.Command, device string) error {
	for _, x := range []struct{ flag, value string }{{"--split", k.split}, {"--vram-limit", k.vram}} {
		if x.value != "" && (device == "" || device == "cpu") {
			return usage(c, "%s %s is for graphics cards, and none is named: add --cards, such as --cards cuda:0,cuda:1 (outcrop cards --devices lists them), or --device auto", x.flag, x.value)
		}
	}
	if device == "" || device == "cpu" || device == "auto" {
		return nil
	}
	names := strings.Split(device, ",")
	for _, n := range names {
		if n == "" || n == "cpu" || n == "auto" {
			return usage(c, "cards %s: %q is not one card; outcrop cards --devices lists the names", device, n)
		}
	}
	if k.parts != nil && len(k.parts) != len(names) {
		return usage(c, "--split %s is for %d cards, and %d are named: %s", k.split, len(k.parts), len(names), device)
	}
	return nil
}

// or is what the flags make of --device.
func (k *cardFlags) or(device string) string {
	if k.cards != "" {
		return k.cards
	}
	return device
}

func (k *cardFlags) apply(o *engine.Options) {
	o.Device = k.or(o.Device)
	o.Placement.Split, o.VRAMLimit = k.parts, k.limits
}

// args are the same flags for a child.
func (k *cardFlags) args() (out []string) {
	for name, v := range map[string]string{"--cards": k.cards, "--split": k.split, "--vram-limit": k.vram} {
		if v != "" {
			out = append(out, name+"="+v)
		}
	}
	return out
}

// list is the cards one by one; nil when none are named.
func (k *cardFlags) list() []string {
	if k.cards == "" {
		return nil
	}
	return strings.Split(k.cards, ",")
}

// namedCards are the options of a recipe for the cards that --device or --cards
// names. On Intel a recipe hides all cards but one, since one context over two
// fails (GSD-12641); we make a context for each, so several that are named stay
// visible, and so do the numbers of names such as opencl:1.
func namedCards(m gpu.Machine, device string) recipe.Options {
	switch device {
	case "", "cpu", "auto":
		return recipe.Options{}
	}
	for _, c := range m.Cards {
		if strings.EqualFold(string(c.PCI), device) {
			return recipe.Options{Card: c.PCI}
		}
	}
	return recipe.Options{Split: true}
}

// parseSplit reads "3,1".
func parseSplit(s string) ([]float64, error) {
	if s == "" {
		return nil, nil
	}
	var out []float64
	sum := 0.0
	for _, p := range strings.Split(s, ",") {
		v, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || !(v >= 0) || v > 1e6 {
			return nil, fmt.Errorf("%q is not a number of layers or a proportion", p)
		}
		out, sum = append(out, v), sum+v
	}
	if sum == 0 {
		return nil, fmt.Errorf("no card gets a layer")
	}
	return out, nil
}

// units of sizes: as drive makers count, and as memory is counted.
var units = []struct {
	name string
	n    float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12},
	{"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {"t", 1 << 40}, {"b", 1}, {"", 1},
}

// The least limits that make sense. Below them nothing could be loaded, so they
// are a unit that was forgotten.
const (
	leastVRAM  = 1 << 20
	leastRAM   = 32 << 20
	leastSlots = 1 << 20
)

// atLeast refuses a limit that no pack can be loaded under.
func atLeast(c *cobra.Command, flag, text string, n, least int64, why string) error {
	if n >= least {
		return nil
	}
	return usage(c, "%s %s is %s, and the least that makes sense is %s: %s; give a unit, such as 4GiB, or leave the flag out", flag, text, bytesOf(n), size(least), why)
}

// bytesOf is a size that may be a few bytes.
func bytesOf(n int64) string {
	switch {
	case n == 1:
		return "1 byte"
	case n < 1<<20:
		return fmt.Sprintf("%d bytes", n)
	}
	return size(n)
}

// parseSizes reads "8GB,12GiB"; "none" is 0, no limit.
func parseSizes(s string) ([]int64, error) {
	if s == "" {
		return nil, nil
	}
	var out []int64
	for _, p := range strings.Split(s, ",") {
		var n int64
		if strings.TrimSpace(p) != "none" {
			var err error
			if n, err = parseSize(p); err != nil {
				return nil, err
			}
		}
		out = append(out, n)
	}
	return out, nil
}

func parseSize(s string) (int64, error) {
	t := strings.ToLower(strings.TrimSpace(s))
	for _, u := range units {
		num, ok := strings.CutSuffix(t, u.name)
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
		if v *= u.n; err == nil && v >= 1 && v < math.MaxInt64/2 {
			return int64(v), nil
		}
		break
	}
	return 0, fmt.Errorf("%q is not a size; want a number with GB, GiB, MB or MiB", s)
}
