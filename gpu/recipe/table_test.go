package recipe_test

import (
	"fmt"
	"strings"
	"testing"

	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// TestTable checks every row of the table for what a reader needs.
func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range recipe.Rules() {
		if r.ID == "" || seen[r.ID] {
			t.Errorf("rule %q has no name of its own", r.ID)
		}
		seen[r.ID] = true
		if r.Why == "" || strings.Contains(r.Why, "\n") || strings.HasSuffix(r.Why, ".") {
			t.Errorf("%s: why must be one sentence without a full stop: %q", r.ID, r.Why)
		}
		if r.Source == "" || r.Obsolete == "" {
			t.Errorf("%s: source and what makes it unnecessary must be said", r.ID)
		}
		switch r.Confidence {
		case recipe.Measured, recipe.Reported, recipe.FromSource, recipe.Hypothesis:
		default:
			t.Errorf("%s: confidence %q", r.ID, r.Confidence)
		}
		if len(r.Do)+len(r.Flags)+len(r.Limits) == 0 && r.Note == "" && r.Script == nil {
			t.Errorf("%s does nothing", r.ID)
		}
		if r.When.String() == "always" && len(r.Do) > 0 {
			t.Errorf("%s sets variables on every machine", r.ID)
		}
		if r.When.If != nil && r.When.Text == "" {
			t.Errorf("%s: a condition in code needs words", r.ID)
		}
		// Never on the driver's name alone.
		if len(r.When.Drivers) > 0 && len(r.When.Archs) == 0 && len(r.When.Devices) == 0 && r.When.Vendor == 0 {
			t.Errorf("%s is keyed on the kernel driver alone", r.ID)
		}
	}
}

// TestEveryRuleHasAMachine runs every target over every machine: a rule that no
// recorded machine triggers is not proved to be needed.
func TestEveryRuleHasAMachine(t *testing.T) {
	hit := map[string]bool{}
	n := 0
	for _, x := range machines(t) {
		for _, target := range recipe.Targets() {
			cards := []gpu.PCI{""}
			for _, c := range x.m.Cards {
				cards = append(cards, c.PCI)
			}
			for _, card := range cards {
				for _, o := range []recipe.Options{{Card: card}, {Card: card, Split: true}, {Card: card, AsReported: true}} {
					r, err := recipe.For(x.m, target, o)
					if err != nil {
						t.Errorf("%s, %s, %+v: %v", x.name, target, o, err)
						continue
					}
					n++
					for _, id := range ids(r) {
						hit[id] = true
					}
				}
			}
		}
	}
	for _, r := range recipe.Rules() {
		if !hit[r.ID] {
			t.Errorf("no machine triggers rule %s (%s)", r.ID, r.When)
		}
	}
	t.Logf("%d rules over %d recipes", len(recipe.Rules()), n)
}

func ids(r recipe.Recipe) []string {
	var out []string
	for _, l := range r.Lines {
		out = append(out, l.Rule)
	}
	for _, l := range r.LeftOut {
		out = append(out, l.Rule)
	}
	for _, f := range r.Flags {
		out = append(out, f.Rule)
	}
	for _, l := range r.Limits {
		out = append(out, l.Rule)
	}
	for _, n := range r.Notes {
		out = append(out, n.Rule)
	}
	for _, s := range r.Scripts {
		out = append(out, s.Rule)
	}
	return out
}

// TestNoConflicts crosses the facts that rules look at: wherever two rules meet
// they must agree.
func TestNoConflicts(t *testing.T) {
	devices := []struct {
		vendor, device uint16
		drivers        []string
	}{
		{gpu.Intel, 0x56a0, []string{"i915", "xe", ""}}, {gpu.Intel, 0x56a5, []string{"i915", "xe"}}, {gpu.Intel, 0x4905, []string{"i915", "xe"}},
		{gpu.Intel, 0xe20b, []string{"xe", "vfio-pci"}}, {gpu.Intel, 0xe20c, []string{"xe"}}, {gpu.Intel, 0xe211, []string{"xe"}}, {gpu.Intel, 0xe212, []string{"xe"}},
		{gpu.Intel, 0xe222, []string{"xe"}}, {gpu.Intel, 0xe223, []string{"xe"}}, {gpu.Intel, 0x0bda, []string{"i915"}}, {gpu.Intel, 0x7d55, []string{"i915", "xe"}},
		{gpu.Intel, 0x7d51, []string{"i915", "xe"}}, {gpu.Intel, 0x64a0, []string{"xe"}}, {gpu.Intel, 0xb080, []string{"xe"}}, {gpu.Intel, 0x4680, []string{"i915", "xe"}},
		{gpu.Intel, 0x0412, []string{"i915"}}, {gpu.Intel, 0xe7f0, []string{"xe"}},
		{gpu.AMD, 0x744c, []string{"amdgpu", ""}}, {gpu.AMD, 0x73df, []string{"amdgpu"}}, {gpu.AMD, 0x1586, []string{"amdgpu"}}, {gpu.AMD, 0x15bf, []string{"amdgpu"}},
		{gpu.AMD, 0x67df, []string{"amdgpu"}}, {gpu.AMD, 0x731f, []string{"amdgpu"}},
		{gpu.NVIDIA, 0x2684, []string{"nvidia", "nouveau", "vfio-pci"}}, {gpu.NVIDIA, 0x1b38, []string{"nvidia"}},
	}
	neos := []string{"", "23.13.26032.30", "25.40.35563.4", "26.05.37020.3", "26.31.39395.13", "26.35.39758.4", "27.01.45000.1"}
	seconds, widths, rams := []uint16{0, 1, 0xe20b, 0x4680}, []int{0, 4, 16}, []int64{0, 16 << 30, 64 << 30}
	if !thorough {
		neos, seconds, widths, rams = []string{"", "25.40.35563.4", "26.31.39395.13"}, []uint16{0, 1, 0x4680}, []int{4, 16}, []int64{16 << 30, 64 << 30}
	}
	n := 0
	for _, d := range devices {
		for _, driver := range d.drivers {
			for _, second := range seconds {
				if second == 1 {
					second = d.device // two of the same
				}
				for _, neo := range neos {
					if d.vendor != gpu.Intel && neo != "" {
						continue
					}
					for _, ram := range rams {
						for _, width := range widths {
							for _, where := range []string{"linux", "wsl", "windows"} {
								m := synthetic(d.vendor, d.device, driver, second, neo, ram, width, where)
								for _, target := range recipe.Targets() {
									for _, o := range []recipe.Options{{Card: "0000:03:00.0"}, {Card: "0000:03:00.0", Split: true}, {Card: "0000:03:00.0", AsReported: true}} {
										n++
										if _, err := recipe.For(m, target, o); err != nil {
											t.Fatalf("%04x:%04x on %q beside %04x, NEO %q, RAM %d, width %d, %s, %+v: %v", d.vendor, d.device, driver, second, neo, ram>>30, width, where, o, err)
										}
									}
								}
							}
						}
					}
				}
			}
		}
	}
	t.Logf("%d recipes without a contradiction", n)
}

func synthetic(vendor, device uint16, driver string, second uint16, neo string, ram int64, width int, where string) gpu.Machine {
	card := func(p gpu.PCI, device uint16) gpu.Card {
		c := gpu.Card{PCI: p, Vendor: vendor, Device: device, Driver: driver}
		c.Name, c.Arch, c.Chip, _ = gpu.Identify(vendor, device)
		switch c.Arch {
		case gpu.XeLP, gpu.MeteorLake, gpu.ArrowLakeH, gpu.LunarLake, gpu.PantherLake, gpu.IntelLegacy:
		default:
			c.Discrete = c.Chip != "gfx1151" && c.Chip != "gfx1103"
		}
		c.Memory.Shared = !c.Discrete
		c.Caps = gpu.CapsOf(c.Arch, c.Chip)
		c.Memory.Total = gpu.Known(int64(16<<30), "test")
		if width > 0 {
			c.Link = gpu.Link{Speed: gpu.Known(8.0, "test"), Width: gpu.Known(width, "test")}
		}
		if where == "windows" {
			c.Driver = "wddm"
		}
		return c
	}
	m := gpu.Machine{Cards: []gpu.Card{card("0000:03:00.0", device)}}
	if second != 0 {
		m.Cards = append(m.Cards, card("0000:08:00.0", second))
	}
	m.Host.OS = "linux"
	switch where {
	case "windows":
		m.Host.OS = "windows"
	case "wsl":
		m.Host.Virtual = "wsl"
	}
	if ram > 0 {
		m.Host.Memory.Total = gpu.Known(ram, "test")
	}
	if neo != "" {
		m.UserMode.NEO = gpu.Known(neo, "test")
	}
	return m
}

// TestReported1545 holds the seed: the twelve variables and the flags of
// Niko1221/Strata#1545 as they stand there, and what our recipe changes.
func TestReported1545(t *testing.T) {
	var m gpu.Machine
	for _, x := range machines(t) {
		if x.name == "strata-1545-a770-xe" {
			m = x.m
		}
	}
	seed := map[string]string{
		"OverrideDefaultFP64Settings": "1", "IGC_EnableDPEmulation": "1", "NEOReadDebugKeys": "1", "ONEAPI_DEVICE_SELECTOR": "level_zero:gpu", "ZE_AFFINITY_MASK": "0",
		"SYCL_CACHE_PERSISTENT": "0", "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS": "1", "SYCL_PROGRAM_APPEND_COMPILE_OPTIONS": "-ze-intel-greater-than-4GB-buffer-required",
		"ZES_ENABLE_SYSMAN": "1", "STRATA_WINDOW_SYNC": "1", "STRATA_VERIFY_DEVICE_PLAN": "1", "STRATA_VERIFY_NO_HOST": "0",
	}
	r, err := recipe.For(m, recipe.Strata, recipe.Options{AsReported: true})
	if err != nil {
		t.Fatal(err)
	}
	got := env(r)
	if fmt.Sprint(got) != fmt.Sprint(seed) {
		t.Errorf("as reported: got %v, want %v", got, seed)
	}
	flags := "--mmap-experts --expert-cache auto --no-prefill-borrow --prefill 512 --spec 4 --spec-min-p 0.5 --max-context 65536 --kv int8 --vram-reserve-mib 2048"
	if a := strings.Join(r.Args(), " "); a != flags {
		t.Errorf("flags: got %s, want %s (and --mtp for the user to fill in)", a, flags)
	}

	// Ours: the spelling that exists, the debug switch nothing needs left out,
	// Sysman kept because the finding against it was never run, and each said.
	r, err = recipe.For(m, recipe.Strata, recipe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for k, v := range seed {
		want[k] = v
	}
	delete(want, "NEOReadDebugKeys")
	want["SYCL_PROGRAM_APPEND_COMPILE_OPTIONS"] = "-ze-opt-greater-than-4GB-buffer-required"
	if got := env(r); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ours: got %v, want %v", got, want)
	}
	if len(r.LeftOut) != 1 || r.LeftOut[0].Var != "NEOReadDebugKeys" || r.LeftOut[0].Why == "" {
		t.Errorf("left out: %+v", r.LeftOut)
	}
	for _, l := range r.Lines {
		switch l.Var {
		case "SYCL_PROGRAM_APPEND_COMPILE_OPTIONS":
			if l.Reported != seed[l.Var] {
				t.Errorf("%s does not say what was reported: %q", l.Var, l.Reported)
			}
		case "ZES_ENABLE_SYSMAN":
			if !strings.Contains(l.Why, "kept as reported") {
				t.Errorf("%s does not say that it is kept as reported: %s", l.Var, l.Why)
			}
		case "UR_L0_ENABLE_ZESINIT_DEFAULT", "UR_L0_ENABLE_SYSMAN_ENV_DEFAULT":
			if !l.Off || l.Confidence != recipe.Hypothesis {
				t.Errorf("%s is a hypothesis and must be off: %+v", l.Var, l)
			}
		}
	}
	// The user may switch lines.
	r, err = recipe.For(m, recipe.Strata, recipe.Options{Switch: map[string]bool{"ZES_ENABLE_SYSMAN": false, "UR_L0_ENABLE_ZESINIT_DEFAULT": true}})
	if err != nil {
		t.Fatal(err)
	}
	if e := env(r); e["UR_L0_ENABLE_ZESINIT_DEFAULT"] != "1" || e["ZES_ENABLE_SYSMAN"] != "" {
		t.Errorf("switching lines: %v", e)
	}
}

func env(r recipe.Recipe) map[string]string {
	out := map[string]string{}
	for _, kv := range r.Apply(nil) {
		k, v, _ := strings.Cut(kv, "=")
		out[k] = v
	}
	return out
}

// TestApply shows that unset lines are removed and not blanked, and that an
// environment is not changed in place.
func TestApply(t *testing.T) {
	r := recipe.Recipe{Lines: []recipe.Line{{Var: "A", Value: "1"}, {Var: "B", Unset: true}, {Var: "C", Value: "x", Off: true}, {Var: "D", Value: ""}}}
	in := []string{"B=2", "A=old", "PATH=/bin", "C=mine", "ODD"}
	got := r.Apply(in)
	if want := "[PATH=/bin C=mine ODD A=1 D=]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if in[0] != "B=2" || in[1] != "A=old" {
		t.Errorf("the environment was changed in place: %v", in)
	}
	d := r.Diff([]gpu.EnvVar{{Name: "B", Value: "2"}, {Name: "A", Value: "old"}})
	if want := "[{A old true 1 change} {B 2 true  remove} {D  false  add}]"; fmt.Sprint(d) != want {
		t.Errorf("diff: got %v, want %s", d, want)
	}
}

// TestErrors: unknown targets and cards are refused by name.
func TestErrors(t *testing.T) {
	m := synthetic(gpu.Intel, 0x56a0, "xe", 0, "", 0, 0, "linux")
	if _, err := recipe.For(m, "vllm", recipe.Options{}); err == nil || !strings.Contains(err.Error(), `"vllm"`) || !strings.Contains(err.Error(), "strata") {
		t.Errorf("unknown target: %v", err)
	}
	if _, err := recipe.For(m, "outcrop", recipe.Options{Card: "0000:99:00.0"}); err == nil || !strings.Contains(err.Error(), "0000:03:00.0") {
		t.Errorf("unknown card: %v", err)
	}
	if r, err := recipe.For(gpu.Machine{}, "outcrop", recipe.Options{}); err != nil || r.Card != "" || len(r.Lines) != 0 || len(r.Notes) == 0 {
		t.Errorf("a machine without a card: %+v, %v", r, err)
	}
	// Capital letters in an address are the same address.
	if _, err := recipe.For(m, "outcrop", recipe.Options{Card: gpu.PCI(strings.ToUpper("0000:03:00.0"))}); err != nil {
		t.Error(err)
	}
}

// TestOrder is GSD-12641's trap T85: the integrated device is first on the bus
// and last for Level Zero, and old generations are not counted.
func TestOrder(t *testing.T) {
	m := gpu.Machine{}
	add := func(p gpu.PCI, dev uint16, discrete bool, driver string) {
		c := gpu.Card{PCI: p, Vendor: gpu.Intel, Device: dev, Driver: driver, Discrete: discrete}
		_, c.Arch, c.Chip, _ = gpu.Identify(gpu.Intel, dev)
		m.Cards = append(m.Cards, c)
	}
	add("0000:00:02.0", 0x4680, false, "i915")
	add("0000:03:00.0", 0x0412, false, "i915")
	add("0000:08:00.0", 0x56a0, true, "vfio-pci")
	add("0000:0d:00.0", 0x56a0, true, "xe")
	add("0000:11:00.0", 0xe20b, true, "xe")
	if got := fmt.Sprint(recipe.LevelZeroOrder(m)); got != "[0000:0d:00.0 0000:11:00.0 0000:00:02.0]" {
		t.Error(got)
	}
}
