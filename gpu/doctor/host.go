package doctor

import (
	"fmt"
	"strings"

	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// memoryChecks concern RAM, swap, disks and what can be read of the card's
// memory.
var memoryChecks = []checker{
	{
		code: "vram-unreadable", title: "free card memory cannot be read", severity: Info, source: "kernel xe_drm.h and i915_drm.h, Niko1221/Strata#1545, ggml-org/llama.cpp#27968", perCard: true,
		find: func(x *exam) *found {
			if x.c.Vendor != gpu.Intel || !x.c.Discrete || x.c.Driver != "xe" && x.c.Driver != "i915" || x.m.Host.Perfmon.Or(false) || x.m.Host.Helper.Or(false) {
				return nil
			}
			return &found{
				text:     "The kernel tells what other programs use of this card only to a process with CAP_PERFMON; to all others it says that nothing is used. Outcrop then counts on a careful share of the total, and shows n/a instead of a wrong number.",
				evidence: []string{"CAP_PERFMON: not held (" + x.m.Host.Perfmon.Source + ")"},
				next:     "give the right to a copy of this program that only reads sensors; it must lie beside it",
				command:  `sudo install "$(command -v outcrop)" "$(dirname "$(command -v outcrop)")/outcrop-probe" && sudo setcap cap_perfmon+ep "$(dirname "$(command -v outcrop)")/outcrop-probe"`,
			}
		},
	},
	{
		code: "memlock-low", title: "little memory may be locked", severity: Info, source: "Niko1221/Strata#1545, abetlen/llama-cpp-python#254",
		find: func(x *exam) *found {
			l := x.m.Host.Memlock
			need := x.o.PlanPinned
			if !l.Known || l.Value < 0 || need == 0 && l.Value >= 64<<20 || need > 0 && l.Value >= need {
				return nil
			}
			f := &found{
				text:     "Experts kept in RAM cannot be locked there, so the kernel may move them to disk under pressure. Memory that a card's driver pins is not counted against this limit.",
				evidence: []string{fmt.Sprintf("limit: %d KiB (%s)", l.Value>>10, l.Source)},
				next:     "raise the limit for your user, then log in again",
				command:  `printf '%s - memlock unlimited\n' "$USER" | sudo tee /etc/security/limits.d/90-memlock.conf`,
			}
			if need > 0 {
				f.severity = Warns
				f.evidence = append(f.evidence, "the plan wants to lock "+gib(need))
			}
			return f
		},
	},
	{
		code: "cgroup-limit", title: "a memory limit lies below the plan", severity: Warns, source: "kernel cgroup-v2 documentation",
		find: func(x *exam) *found {
			c, t := x.m.Host.Cgroup.Max, x.m.Host.Memory.Total
			if !c.Known || !t.Known || c.Value >= t.Value {
				return nil
			}
			need := x.o.PlanRAM
			if need == 0 && c.Value >= t.Value/2 || need > 0 && need <= c.Value {
				return nil
			}
			f := &found{
				text:     "This program may use less RAM than the machine has: a plan made for all of it would be killed.",
				evidence: []string{"limit: " + gib(c.Value) + " (" + c.Source + ")", "RAM: " + gib(t.Value)},
				next:     "raise the limit of the container or service, or choose a smaller pack",
			}
			if need > 0 {
				f.severity = Blocks
				f.evidence = append(f.evidence, "the plan wants "+gib(need))
			}
			return f
		},
	},
	{
		code: "plan-ram", title: "the plan does not fit in RAM", severity: Blocks, source: "Niko1221/Strata#1545",
		find: func(x *exam) *found {
			a := x.m.Host.Available()
			if x.o.PlanRAM == 0 || !a.Known || x.o.PlanRAM <= a.Value {
				return nil
			}
			return &found{
				text:     "The plan wants more RAM than is available: the kernel would end the engine, or something else.",
				evidence: []string{"plan: " + gib(x.o.PlanRAM), "available: " + gib(a.Value) + " (" + a.Source + ")"},
				next:     "map the experts from the file instead of copying them, take a smaller context, or close programs",
			}
		},
	},
	{
		code: "swap-zram", title: "swap lies in RAM", severity: Info, source: "kernel zram documentation",
		find: func(x *exam) *found {
			if len(x.m.Host.Swaps) == 0 {
				return nil
			}
			for _, s := range x.m.Host.Swaps {
				if !s.Zram {
					return nil
				}
			}
			return &found{
				text:     "All swap here is zram, which takes RAM to hold it: free swap is no extra room for a model, and weights do not compress.",
				evidence: []string{x.m.Host.Swaps[0].Path},
				next:     "count on RAM alone, or add a swap file on a fast disk",
				command:  "sudo fallocate -l 8G /swapfile && sudo chmod 600 /swapfile && sudo mkswap /swapfile && sudo swapon /swapfile",
			}
		},
	},
	{
		code: "swap-none", title: "no swap", severity: Info, source: "kernel memory management documentation",
		find: func(x *exam) *found {
			st := x.m.Host.Memory.SwapTotal
			if len(x.m.Host.Swaps) > 0 || !st.Known || st.Value > 0 || x.m.Host.Virtual == "container" {
				return nil
			}
			return &found{
				text:     "Without swap the kernel has nowhere to put idle memory: when RAM runs out, programs are ended at once.",
				evidence: []string{"SwapTotal: 0"},
				next:     "add a swap file on a fast disk",
				command:  "sudo fallocate -l 8G /swapfile && sudo chmod 600 /swapfile && sudo mkswap /swapfile && sudo swapon /swapfile",
			}
		},
	},
	{
		code: "disk-turns", title: "packs lie on a disk that turns", severity: Warns, source: "Niko1221/Strata docs (#605)",
		find: func(x *exam) *found {
			d := x.disk()
			// Virtual disks say "rotational" whatever is behind them.
			if d == nil || !d.Rotational.Or(false) || strings.HasPrefix(d.Name, "vd") || strings.HasPrefix(d.Name, "xvd") || x.m.Host.Virtual == "vm" {
				return nil
			}
			return &found{
				text:     "Experts read from a turning disk arrive a hundred times slower than from an SSD: a model that does not fit in RAM will look as if it had stopped.",
				evidence: []string{d.Name + " at " + d.Mount + " (" + d.Rotational.Source + ")"},
				next:     "move the packs to an SSD, or choose packs that fit in RAM",
			}
		},
	},
	{
		code: "disk-full", title: "disk is nearly full", severity: Warns, source: "this program",
		find: func(x *exam) *found {
			d := x.disk()
			if d == nil || !d.Free.Known {
				return nil
			}
			need := x.o.PlanDisk
			if need == 0 && d.Free.Value >= 10<<30 || need > 0 && d.Free.Value >= need+1<<30 {
				return nil
			}
			f := &found{text: "There is little room for packs and for swap.", evidence: []string{gib(d.Free.Value) + " free at " + d.Mount}, next: "make room, or choose another folder for packs"}
			if need > 0 {
				f.severity = Blocks
				f.evidence = append(f.evidence, "needed: "+gib(need))
			}
			return f
		},
	},
	{
		code: "psi-off", title: "memory pressure cannot be read", severity: Info, source: "kernel PSI documentation",
		find: func(x *exam) *found {
			if x.m.Host.OS != "linux" || x.m.Host.Pressure.Known || x.m.Host.Pressure.Source == "" {
				return nil
			}
			return &found{
				text:     "The guard sees pressure only through page faults and swap, a little later than it could.",
				evidence: []string{x.m.Host.Pressure.Source + ": " + x.m.Host.Pressure.Why},
				next:     "add psi=1 to the kernel command line and boot again",
			}
		},
	},
}

// disk gives the file system the packs lie on: the longest mount above the
// folder.
func (x *exam) disk() *gpu.Disk {
	p := x.o.DiskPath
	if p == "" {
		p = "/"
	}
	var best *gpu.Disk
	for i := range x.m.Host.Disks {
		d := &x.m.Host.Disks[i]
		if d.Mount == "/" || p == d.Mount || strings.HasPrefix(p, strings.TrimSuffix(d.Mount, "/")+"/") {
			if best == nil || len(d.Mount) > len(best.Mount) {
				best = d
			}
		}
	}
	return best
}

// neoDebugKeys are variables the driver reads only with NEOReadDebugKeys=1.
var neoDebugKeys = []string{
	"EnableDeviceUsmAllocationPool", "EnableHostUsmAllocationPool", "EnableUsmAllocationPoolManager", "EnableUsmPoolLazyInit", "AllowUnrestrictedSize",
	"ClDeviceGlobalMemSizeAvailablePercent", "FilterBdfPath", "FilterDeviceId", "PrintDebugMessages", "PrintXeLogs", "DirectSubmissionOverrideBlitterSupport", "IgnoreProductSpecificIoctlHelper",
}

// envChecks concern the environment the program was started in.
var envChecks = []checker{
	{
		code: "env-conflict", title: "the environment contradicts the recipe", severity: Warns, source: "recipe",
		find: func(x *exam) *found {
			r, err := recipe.For(*x.m, x.target(), recipe.Options{Card: x.o.Card})
			if err != nil {
				return nil
			}
			f := &found{text: "Variables set here change what the driver does, against what this card needs."}
			for _, c := range r.Diff(x.m.Host.Env) {
				switch {
				case c.Kind == "remove":
					f.evidence = append(f.evidence, c.Var+"="+c.Now+": should not be set")
				case c.Kind == "change":
					f.evidence = append(f.evidence, c.Var+"="+c.Now+": should be "+c.Want)
				}
			}
			if f.evidence == nil {
				return nil
			}
			f.next = "start the program under the recipe, or remove these lines from your shell's start files"
			f.command = "outcrop run --for " + x.target() + " -- PROGRAM"
			return f
		},
	},
	{
		code: "env-empty", title: "a variable is set but empty", severity: Warns, source: "a llama.cpp fork's docs/backend/SYCL.md",
		find: func(x *exam) *found {
			f := &found{text: "Some runtimes abort on an empty value, and some take \"set\" for \"on\": such a variable must be removed, not emptied.", next: "remove the variable"}
			for _, e := range x.m.Host.Env {
				if e.Value == "" && (strings.HasPrefix(e.Name, "UR_") || strings.HasPrefix(e.Name, "STRATA_") || strings.HasPrefix(e.Name, "ZE_") || strings.HasPrefix(e.Name, "ONEAPI_") || strings.HasPrefix(e.Name, "SYCL_")) {
					f.evidence = append(f.evidence, e.Name+" is empty")
					if f.command == "" {
						f.command = "unset " + e.Name
					}
				}
			}
			if f.evidence == nil {
				return nil
			}
			return f
		},
	},
	{
		code: "env-inert", title: "a debug key is set but not read", severity: Info, source: "intel/compute-runtime release_variables_base.inl, intel/compute-runtime#916",
		find: func(x *exam) *found {
			if v, ok := x.env("NEOReadDebugKeys"); ok && v == "1" {
				return nil
			}
			f := &found{text: "Release drivers read debug keys only with NEOReadDebugKeys=1, so this setting does nothing, and a test made with it proves nothing.", next: "set NEOReadDebugKeys=1 beside it, or remove it", command: "export NEOReadDebugKeys=1"}
			for _, k := range neoDebugKeys {
				if v, ok := x.env(k); ok {
					f.evidence = append(f.evidence, k+"="+v+" without NEOReadDebugKeys=1")
				}
			}
			if f.evidence == nil {
				return nil
			}
			return f
		},
	},
	{
		code: "env-hides-card", title: "a variable hides the card", severity: Blocks, source: "CUDA, ROCm and Level Zero documentation", perCard: true,
		find: func(x *exam) *found {
			var names []string
			switch x.c.Vendor {
			case gpu.NVIDIA:
				names = []string{"CUDA_VISIBLE_DEVICES"}
			case gpu.AMD:
				names = []string{"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"}
			case gpu.Intel:
				names = []string{"ZE_AFFINITY_MASK"}
			}
			for _, n := range names {
				v, ok := x.env(n)
				if !ok || !hides(v, x.devices()) {
					continue
				}
				return &found{text: "With this value no driver of the vendor shows any card.", evidence: []string{fmt.Sprintf("%s=%q, and there are %d device(s)", n, v, x.devices())}, next: "remove the variable", command: "unset " + n}
			}
			return nil
		},
	},
}

// devices counts what a vendor's driver could show.
func (x *exam) devices() int {
	d, i := x.count(x.c.Vendor)
	return d + i
}

// hides says whether a list of device numbers names none that exist.
func hides(v string, n int) bool {
	v = strings.TrimSpace(v)
	if v == "" || v == "-1" || strings.EqualFold(v, "NoDevFiles") {
		return true
	}
	for _, p := range strings.Split(v, ",") {
		p, _, _ = strings.Cut(strings.TrimSpace(p), ".")
		k := 0
		if _, err := fmt.Sscanf(p, "%d", &k); err != nil || k >= 0 && k < n {
			return false // a UUID, or a number that exists
		}
	}
	return true
}
