package recipe

import (
	"fmt"
	"sort"
	"strings"

	"outcrop/gpu"
)

// Facts is what rules look at: the machine reduced to one card and one target.
type Facts struct {
	Target     string
	OS         string // linux, windows, wsl
	Card       *gpu.Card
	Arch       gpu.Arch
	Driver     string
	NEO        string // Intel's user-mode driver; "" unknown
	NEOBuild   int    // 0 unknown
	Discrete   int    // cards of the same vendor that could compute
	Integrated int    // integrated graphics of the same vendor, any generation
	Xe2        bool   // a visible Intel device is Xe2 or newer: the whole process changes adapters
	Mixed      bool   // the vendor's discrete cards are of more than one generation
	RAM        int64  // bytes programs may use; 0 unknown
	VRAM       int64  // bytes; 0 unknown
	Link       float64
	Displays   int
	Index      int // place of the card in Level Zero's order; see LevelZeroOrder
	Place      int // place among the vendor's cards by PCI address
	Split      bool
	M          *gpu.Machine
}

// factsFor picks the card and counts what matters around it.
func factsFor(m gpu.Machine, target string, o Options) (Facts, error) {
	known := false
	for _, t := range Targets() {
		known = known || t == target
	}
	if !known {
		return Facts{}, fmt.Errorf("recipe: unknown target %q (known: %s)", target, strings.Join(Targets(), ", "))
	}
	f := Facts{Target: target, OS: m.Host.OS, Split: o.Split, M: &m, RAM: m.Host.RAM().Or(0)}
	if m.Host.Virtual == "wsl" {
		f.OS = "wsl"
	}
	c, err := pickCard(m, o.Card)
	if err != nil {
		return Facts{}, err
	}
	f.Card = c
	if c == nil {
		if target == LlamaCPP {
			f.Target = LlamaVulkan
		}
		return f, nil
	}
	f.Arch, f.Driver, f.VRAM, f.Displays = c.Arch, c.Driver, c.Memory.Total.Or(0), len(c.Displays)
	f.Link = c.Link.GBs().Or(0)
	if c.Vendor == gpu.Intel {
		f.NEO = m.UserMode.NEO.Or("")
		f.NEOBuild = gpu.NEOBuild(f.NEO)
	}
	archs := map[gpu.Arch]bool{}
	for _, x := range m.Cards {
		if x.Vendor != c.Vendor || x.Virtual {
			continue
		}
		if x.Discrete {
			if x.Compute() {
				f.Discrete++
				archs[x.Arch] = true
			}
		} else {
			f.Integrated++
		}
		f.Xe2 = f.Xe2 || x.Arch.Xe2OrNewer()
	}
	f.Mixed = len(archs) > 1
	if f.Discrete < 2 || f.Mixed && c.Vendor == gpu.Intel {
		f.Split = false // nothing to spread over, or cards that must not be mixed
	}
	if f.Target == Strata && f.Arch == gpu.Battlemage && f.Discrete > 1 && !f.Mixed && f.NEOBuild > 0 && f.NEOBuild < neo2544 {
		f.Split = true // a driver that is good with several cards
	}
	f.Index = index(LevelZeroOrder(m), c.PCI)
	f.Place = index(byAddress(m, c.Vendor), c.PCI)
	if target == LlamaCPP {
		f.Target = backend(f)
	}
	return f, nil
}

// pickCard gives the wanted card, or the best one: a discrete one that can
// compute before an integrated one, more memory before less, then the lower
// address. nil means the CPU.
func pickCard(m gpu.Machine, want gpu.PCI) (*gpu.Card, error) {
	if want != "" {
		c := m.Card(gpu.PCI(strings.ToLower(string(want))))
		if c == nil {
			var have []string
			for _, x := range m.Cards {
				have = append(have, string(x.PCI))
			}
			if len(have) == 0 {
				have = []string{"none"}
			}
			return nil, fmt.Errorf("recipe: no card at %s (this machine has: %s)", want, strings.Join(have, ", "))
		}
		return c, nil
	}
	var cs []*gpu.Card
	for i := range m.Cards {
		if !m.Cards[i].Virtual {
			cs = append(cs, &m.Cards[i])
		}
	}
	if len(cs) == 0 {
		return nil, nil
	}
	sort.SliceStable(cs, func(i, j int) bool { return better(cs[i], cs[j]) })
	return cs[0], nil
}

// Best gives the card a recipe is made for when none is asked for, or nil.
func Best(m gpu.Machine) *gpu.Card {
	c, _ := pickCard(m, "")
	return c
}

func better(a, b *gpu.Card) bool {
	if a.Compute() != b.Compute() {
		return a.Compute()
	}
	if a.Discrete != b.Discrete {
		return a.Discrete
	}
	return a.Memory.Total.Or(0) > b.Memory.Total.Or(0)
}

// backend picks llama.cpp's back end for a card. Several Intel cards get Vulkan:
// one Level Zero context over two of them is broken in several ways.
func backend(f Facts) string {
	switch f.Card.Vendor {
	case gpu.NVIDIA:
		if f.Driver == "nvidia" || f.Driver == "dxg" {
			return LlamaCUDA
		}
	case gpu.AMD:
		if f.Arch == gpu.GCN && f.Card.Chip != "gfx906" || f.Arch == gpu.RDNA1 || f.Arch == gpu.AMDOther {
			return LlamaVulkan
		}
		return LlamaHIP
	case gpu.Intel:
		switch {
		case f.Arch == gpu.XeLP || f.Arch == gpu.IntelLegacy || f.Arch == gpu.IntelOther:
			return LlamaVulkan
		case f.Split && f.Discrete > 1:
			return LlamaVulkan
		}
		return LlamaSYCL
	}
	return LlamaVulkan
}

// LevelZeroOrder gives Intel's graphics in the order Level Zero numbers them:
// discrete ones first, each group by PCI address. Generations that current
// drivers do not know have no number, and cards bound to no driver that
// computes are not seen. The order holds while ZE_ENABLE_PCI_ID_DEVICE_ORDER is
// not set, which recipes that use a number make sure of (intel/compute-runtime,
// release_variables_base.inl and the device sort).
func LevelZeroOrder(m gpu.Machine) []gpu.PCI {
	var disc, integ []gpu.PCI
	for _, c := range m.Cards {
		if c.Vendor != gpu.Intel || c.Arch == gpu.IntelLegacy || !c.Compute() {
			continue
		}
		if c.Discrete {
			disc = append(disc, c.PCI)
		} else {
			integ = append(integ, c.PCI)
		}
	}
	return append(disc, integ...)
}

// byAddress lists a vendor's discrete cards by PCI address, the order of
// CUDA_DEVICE_ORDER=PCI_BUS_ID and of ROCm.
func byAddress(m gpu.Machine, v uint16) []gpu.PCI {
	var out []gpu.PCI
	for _, c := range m.Cards {
		if c.Vendor == v && !c.Virtual && (v != gpu.Intel || c.Discrete) {
			out = append(out, c.PCI)
		}
	}
	return out
}

func index(list []gpu.PCI, p gpu.PCI) int {
	for i, x := range list {
		if x == p {
			return i
		}
	}
	return 0
}

func (f Facts) vendor() uint16 {
	if f.Card == nil {
		return 0
	}
	return f.Card.Vendor
}

func (f Facts) key() Key {
	k := Key{Arch: f.Arch, Driver: f.Driver, Cards: f.Discrete, Integrated: f.Integrated, RAM: f.RAM, OS: f.OS}
	if f.Card == nil {
		return k
	}
	k.Chip = f.Card.Chip
	switch f.Card.Vendor {
	case gpu.Intel:
		k.UserVersion = f.NEO
	case gpu.NVIDIA:
		k.UserVersion = f.M.UserMode.NVIDIA.Or("")
	case gpu.AMD:
		k.UserVersion = f.M.UserMode.ROCm.Or("")
	}
	return k
}

func (f Facts) title() string {
	if f.Card == nil {
		return f.Target + " on the CPU"
	}
	d := f.Driver
	if d == "" {
		d = "no kernel driver"
	}
	s := fmt.Sprintf("%s on %s (%s, %s)", f.Target, f.Card.Name, f.Card.PCI, d)
	if f.NEO != "" {
		s += ", NEO " + f.NEO
	}
	return s
}

// devices are the docker run options that hand the card into a container. The
// group is given by number: names differ between host and image.
func (f Facts) devices() []string {
	out := []string{}
	if f.Card == nil {
		return out
	}
	c := f.Card
	if c.Vendor == gpu.NVIDIA && c.Driver == "nvidia" {
		if c.UUID.Known {
			return append(out, "--gpus device="+c.UUID.Value)
		}
		return append(out, "--gpus all")
	}
	gids := map[int64]bool{}
	for _, n := range []gpu.Node{c.Node, f.M.KFD} {
		if n.Path == "" || n.GID < 0 || n.Path == "/dev/kfd" && c.Vendor != gpu.AMD {
			continue
		}
		out = append(out, "--device "+n.Path)
		if n.GID > 0 && !gids[n.GID] {
			gids[n.GID] = true
			out = append(out, fmt.Sprintf("--group-add %d", n.GID))
		}
	}
	return out
}
