package doctor

import (
	"fmt"
	"strings"

	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// userModeChecks concern the libraries above the kernel driver.
var userModeChecks = []checker{
	{
		code: "opencl-loader", title: "OpenCL loader is missing", severity: Blocks, source: "reference: ocl-icd",
		find: func(x *exam) *found {
			if x.m.UserMode.OpenCL.Found || !(x.has(gpu.Intel) || x.has(gpu.AMD)) {
				return nil
			}
			next, cmd := x.install(openclLoader)
			return &found{text: "No program can reach any OpenCL driver without the loader.", evidence: []string{"libOpenCL.so.1: not found"}, next: next, command: cmd}
		},
	},
	{
		code: "intel-icd", title: "Intel's OpenCL driver is missing", severity: Warns, source: "intel/AI-Playground#534",
		find: func(x *exam) *found {
			have, _ := x.m.UserMode.HasICD(gpu.Intel)
			if have || !x.has(gpu.Intel) {
				return nil
			}
			next, cmd := x.install(intelOpenCL)
			f := &found{text: "The card does not appear in OpenCL; programs that use Vulkan find it all the same.", evidence: []string{"/etc/OpenCL/vendors: no Intel entry"}, next: next, command: cmd}
			if !x.m.UserMode.ZeIntel.Found {
				f.severity = Blocks
				f.text = "Neither OpenCL nor Level Zero has a driver for the card: it cannot compute, though programs that use Vulkan find it."
				f.evidence = append(f.evidence, "libze_intel_gpu.so.1: not found")
			}
			return f
		},
	},
	{
		code: "icd-broken", title: "an OpenCL entry names a library that is not there", severity: Warns, source: "reference: ocl-icd",
		find: func(x *exam) *found {
			for _, i := range x.m.UserMode.ICDs {
				if !i.Found {
					return &found{
						text:     "A driver was removed or moved but its entry stayed; loaders skip it, and its device is gone.",
						evidence: []string{i.File + " names " + i.Library + ": not found"},
						next:     "install the driver again or remove the entry",
						command:  "sudo rm " + i.File,
					}
				}
			}
			return nil
		},
	},
	{
		code: "ze-loader", title: "Level Zero loader is missing", severity: Warns, source: "ggml-org/llama.cpp#28515",
		find: func(x *exam) *found {
			if x.m.UserMode.LevelZero.Found || !x.has(gpu.Intel) {
				return nil
			}
			next, cmd := x.install(zeLoader)
			return &found{text: "Level Zero is the better way to an Intel card, and the only one to its sensors.", evidence: []string{"libze_loader.so.1: not found"}, next: next, command: cmd}
		},
	},
	{
		code: "ze-driver", title: "Intel's Level Zero driver is missing", severity: Warns, source: "intel/AI-Playground#534",
		find: func(x *exam) *found {
			if x.m.UserMode.ZeIntel.Found || !x.m.UserMode.LevelZero.Found || !x.has(gpu.Intel) {
				return nil
			}
			next, cmd := x.install(zeDriver)
			return &found{text: "The loader is here but finds no driver for the card.", evidence: []string{"libze_intel_gpu.so.1: not found"}, next: next, command: cmd}
		},
	},
	{
		code: "neo-old", title: "user-mode driver is too old for the card", severity: Blocks, source: "intel/compute-runtime#899, Ubuntu package index", perCard: true,
		find: func(x *exam) *found {
			if x.c.Vendor != gpu.Intel || !x.c.Compute() {
				return nil
			}
			v := x.m.UserMode.NEO
			b := gpu.NEOBuild(v.Or(""))
			if b == 0 {
				return nil
			}
			ev := []string{"NEO " + v.Value + " (" + v.Source + ")", "kernel driver " + x.c.Driver}
			switch {
			case x.c.Arch == gpu.DG1 && x.c.Driver == "xe" && b < 38308:
				f := &found{text: "This user-mode driver looks for the card behind xe only with two debug keys, which the recipe sets.", evidence: ev, next: "update the user-mode driver to 26.18.38308.1 or newer", severity: Warns}
				return f
			case firstBuild[x.c.Arch] > b:
				next, cmd := x.install(zeDriver)
				return &found{text: "This user-mode driver is older than the card and does not know it.", evidence: ev, next: "update the user-mode driver: " + next, command: cmd}
			}
			return nil
		},
	},
	{
		code: "neo-dg2-xe", title: "Alchemist on xe with a driver that may not find it", severity: Warns, source: "intel/compute-runtime#905, intel/compute-runtime#916, Niko1221/Strata#1545", perCard: true,
		find: func(x *exam) *found {
			b := gpu.NEOBuild(x.m.UserMode.NEO.Or(""))
			if x.c.Arch != gpu.Alchemist || x.c.Driver != "xe" || b >= 37435 || !x.m.UserMode.ZeIntel.Found && b == 0 {
				return nil
			}
			return &found{
				text:     "Builds of this driver up to 26.05.37020.3 were seen to find no device when Alchemist is bound to xe; some distributions' builds find it. 26.09.37435.1 and 26.35.39758 do.",
				evidence: []string{"NEO " + x.m.UserMode.NEO.String(), "kernel driver xe"},
				next:     "update the user-mode driver to 26.09.37435.1 or newer, or bind the card to i915",
			}
		},
	},
	{
		code: "neo-legacy", title: "graphics too old for the current driver", severity: Info, source: "intel/compute-runtime#579, intel/compute-runtime README", perCard: true,
		find: func(x *exam) *found {
			if x.c.Arch != gpu.IntelLegacy || x.masked() {
				return nil
			}
			d, _ := x.count(gpu.Intel)
			if d == 0 {
				return nil
			}
			return &found{
				text:     "Current drivers do not know this old integrated graphics, and beside a newer card it has disturbed the search for devices.",
				evidence: []string{x.c.Name + " (" + x.c.ID() + ") beside a discrete Intel card"},
				next:     "run under the recipe, whose mask leaves only the card visible",
				command:  "outcrop recipe --for " + x.target(),
			}
		},
	},
	{
		code: "neo-igc-pair", title: "driver and compiler that fail together", severity: Warns, source: "intel/compute-runtime#963",
		find: func(x *exam) *found {
			if !x.has(gpu.Intel) || gpu.NEOBuild(x.m.UserMode.NEO.Or("")) != 37833 || !strings.HasPrefix(x.m.UserMode.IGC.Or(""), "2.32.7") {
				return nil
			}
			return &found{
				text:     "With this pair oneDNN could not create its primitives on an A770.",
				evidence: []string{"NEO " + x.m.UserMode.NEO.Value, "IGC " + x.m.UserMode.IGC.Value},
				next:     "update driver and compiler together to 26.27.39122.11 or newer",
			}
		},
	},
	{
		code: "multi-card-neo", title: "several Intel cards on a driver that fails with them", severity: Warns, source: "intel/compute-runtime#916 (GSD-12641), intel/compute-runtime#921",
		find: func(x *exam) *found {
			d, _ := x.count(gpu.Intel)
			b := gpu.NEOBuild(x.m.UserMode.NEO.Or(""))
			if d < 2 || b > 0 && b < 36015 || x.masked() {
				return nil
			}
			v := x.m.UserMode.NEO.String()
			return &found{
				text:     "While a program sees both cards, even a 2 MiB allocation can fail with \"out of device memory\"; each card alone works.",
				evidence: []string{fmt.Sprintf("%d discrete Intel cards", d), "NEO " + v + " (bad from 25.44.36015.5 on, no fixed release known; 25.40.35563.x is good)"},
				next:     "run under the recipe, which shows the program one card",
				command:  "outcrop recipe --for " + x.target(),
			}
		},
	},
	{
		code: "igpu-chosen", title: "integrated graphics would be used beside or instead of the card", severity: Warns, source: "ggml-org/llama.cpp#9241, intel/AI-Playground#249, Niko1221/Strata bench 2026-10-08 (B65)",
		find: func(x *exam) *found {
			for _, v := range []uint16{gpu.Intel, gpu.AMD} {
				d, i := x.count(v)
				if d == 0 || i == 0 || v == gpu.Intel && x.masked() || v == gpu.AMD && x.maskedAMD() {
					continue
				}
				old := true
				for _, c := range x.m.Cards {
					if c.Vendor == v && !c.Discrete && !c.Virtual && c.Arch != gpu.IntelLegacy {
						old = false
					}
				}
				if old {
					continue
				}
				return &found{
					text:     "A program that takes every device, or the first one, gets the integrated graphics too: wrong output and wrong settings have come of it.",
					evidence: []string{fmt.Sprintf("%s: %d card(s) and %d integrated", gpu.VendorName(v), d, i), "no mask in the environment"},
					next:     "run under the recipe, whose mask leaves only the card visible",
					command:  "outcrop recipe --for " + x.maskTarget(v),
				}
			}
			return nil
		},
	},
	{
		code: "amd-icd", title: "no OpenCL driver for the AMD card", severity: Blocks, source: "ROCm and Mesa documentation",
		find: func(x *exam) *found {
			have, _ := x.m.UserMode.HasICD(gpu.AMD)
			if have || !x.has(gpu.AMD) {
				return nil
			}
			next, cmd := x.install(amdOpenCL)
			return &found{text: "The card does not appear in OpenCL.", evidence: []string{"/etc/OpenCL/vendors: no AMD entry"}, next: next, command: cmd}
		},
	},
	{
		code: "rocm-dropped", title: "ROCm no longer serves this card", severity: Blocks, source: "ROCm/clr#269", perCard: true,
		find: func(x *exam) *found {
			v := x.m.UserMode.ROCm
			if x.c.Arch != gpu.GCN || x.c.Chip == "gfx906" || !v.Known || gpu.CompareVersions(v.Value, "7") < 0 || x.m.Host.OS != "linux" {
				return nil
			}
			for _, i := range x.m.UserMode.ICDs {
				if i.Found && strings.Contains(strings.ToLower(i.Library), "rusticl") {
					return nil
				}
			}
			return &found{text: "ROCm 7 rejects cards of this generation, so its OpenCL shows no device.", evidence: []string{x.c.Chip, "ROCm " + v.Value}, next: "install Mesa's OpenCL driver beside it (or use Vulkan)", command: map[string]string{"debian": "sudo apt-get install mesa-opencl-icd", "fedora": "sudo dnf install mesa-libOpenCL", "arch": "sudo pacman -S opencl-mesa", "suse": "sudo zypper install Mesa-libRusticlOpenCL"}[family(x.m.Host.Distro)]}
		},
	},
	{
		code: "nvidia-libs", title: "NVIDIA's libraries are missing", severity: Blocks, source: "NVIDIA driver README",
		find: func(x *exam) *found {
			if !x.has(gpu.NVIDIA) || x.m.UserMode.CUDA.Found {
				return nil
			}
			for _, c := range x.m.Cards {
				if c.Vendor == gpu.NVIDIA && (c.Driver == "nvidia" || c.Driver == "dxg") {
					next, cmd := x.install(nvidiaLib)
					return &found{text: "The kernel driver is there but libcuda.so.1 is not: no program can use the card.", evidence: []string{"libcuda.so.1: not found"}, next: next, command: cmd}
				}
			}
			return nil
		},
	},
	{
		code: "vulkan-driver", title: "no Vulkan driver for the card", severity: Info, source: "ggml-org/llama.cpp#14099",
		find: func(x *exam) *found {
			if !x.m.UserMode.Vulkan.Found {
				return nil
			}
			for _, v := range []uint16{gpu.Intel, gpu.AMD} {
				if x.has(v) && !x.m.UserMode.HasVulkan(v) {
					next, cmd := x.install(vulkanIntel)
					ev := []string{"Vulkan drivers: none for " + gpu.VendorName(v)}
					ev = append(ev, x.m.UserMode.VulkanICDs...)
					return &found{text: "Programs that use Vulkan run on Mesa's CPU device, or not at all.", evidence: ev, next: next, command: cmd}
				}
			}
			return nil
		},
	},
	{
		code: "engine-level-zero", title: "engine was built without Level Zero", severity: Blocks, source: "Niko1221/Strata#1545, ggml-org/llama.cpp#28515",
		find: func(x *exam) *found {
			for _, e := range x.o.Engines {
				if e.SYCL && !e.LevelZero {
					return &found{
						text:     "This engine uses SYCL but neither imports zeMemAllocHost nor links the Level Zero loader: the headers were missing when it was built. Strata then waits for flags that never arrive and every token is 0; llama.cpp stops when it asks for memory.",
						evidence: []string{e.Path + ": needs " + strings.Join(e.Needed, ", "), "no import of zeMemAllocHost"},
						next:     "install the Level Zero headers and build the engine again",
						command:  x.headers(),
					}
				}
			}
			return nil
		},
	},
	{
		code: "cache-stale", title: "compiled kernels are of another driver", severity: Warns, source: "intel/compute-runtime COMPILER_CACHE.md, intel/llvm EnvironmentVariables.md",
		find: func(x *exam) *found {
			now := Stamp(*x.m)
			for _, c := range x.o.Caches {
				if c.Version != "" && c.Version != now {
					return &found{
						text:     "Compiled kernels made with another driver can fail or crash; variables are not part of a cache's key, so a stale entry survives a change.",
						evidence: []string{c.Path + " was filled with " + c.Version, "now: " + now},
						next:     "delete the folder; the next start compiles again, once",
						command:  "rm -r " + shellWord(c.Path),
					}
				}
			}
			return nil
		},
	},
}

// firstBuild is the oldest user-mode driver build that can know a generation.
// Ubuntu 24.04's 23.43 (27642) does not know Battlemage.
var firstBuild = map[gpu.Arch]int{gpu.Alchemist: 23937, gpu.MeteorLake: 27191, gpu.LunarLake: 30049, gpu.Battlemage: 30872, gpu.PantherLake: 34666}

// masked says whether the environment already narrows Intel's devices to one.
func (x *exam) masked() bool {
	if v, ok := x.env("ZE_AFFINITY_MASK"); ok && v != "" && !strings.Contains(v, ",") {
		return true
	}
	v, ok := x.env("ONEAPI_DEVICE_SELECTOR")
	if !ok {
		return false
	}
	_, dev, ok := strings.Cut(v, ":")
	return ok && len(dev) == 1 && dev[0] >= '0' && dev[0] <= '9'
}

func (x *exam) maskedAMD() bool {
	for _, n := range []string{"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"} {
		if v, ok := x.env(n); ok && v != "" && !strings.Contains(v, ",") {
			return true
		}
	}
	return false
}

// maskTarget is the target whose recipe has the mask for a vendor.
func (x *exam) maskTarget(v uint16) string {
	if v == gpu.AMD && x.target() == recipe.Outcrop {
		return recipe.LlamaHIP
	}
	return x.target()
}

// headers names the package with the Level Zero headers.
func (x *exam) headers() string {
	switch family(x.m.Host.Distro) {
	case "debian":
		return "sudo apt-get install libze-dev"
	case "fedora":
		return "sudo dnf install oneapi-level-zero-devel"
	case "arch":
		return "sudo pacman -S level-zero-headers"
	case "suse":
		return "sudo zypper install level-zero-devel"
	}
	return ""
}

// Stamp names the user-mode drivers that compile kernels: what a cache of
// compiled kernels depends on.
func Stamp(m gpu.Machine) string {
	var p []string
	for _, v := range []struct {
		name string
		r    gpu.Reading[string]
	}{{"neo", m.UserMode.NEO}, {"igc", m.UserMode.IGC}, {"rocm", m.UserMode.ROCm}, {"nvidia", m.UserMode.NVIDIA}, {"mesa", m.UserMode.Mesa}} {
		if v.r.Known {
			p = append(p, v.name+" "+v.r.Value)
		}
	}
	if len(p) == 0 {
		return "no driver known"
	}
	return strings.Join(p, ", ")
}

// shellWord quotes a word for a shell when it needs it.
func shellWord(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !(r == '/' || r == '.' || r == '-' || r == '_' || r == '~' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
