package recipe

import (
	"strconv"
	"strings"

	"outcrop/gpu"
)

func cudaChoice(f Facts) string {
	if f.Card.UUID.Known {
		return f.Card.UUID.Value
	}
	return strconv.Itoa(f.Place)
}

var rulesNVIDIA = []Rule{
	{
		ID:         "cuda-order",
		When:       When{Targets: []string{Outcrop, LlamaCUDA}, Vendor: gpu.NVIDIA, MinDiscrete: 2, OS: []string{"linux", "wsl", "windows"}},
		Do:         []Do{{Var: "CUDA_DEVICE_ORDER", Value: "PCI_BUS_ID"}},
		Why:        "numbers cards by PCI address as every other tool does; the default order is fastest first",
		Source:     "CUDA C++ Programming Guide, environment variables",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "cuda-select",
		When:       When{Targets: []string{LlamaCUDA}, Vendor: gpu.NVIDIA, MinDiscrete: 2, Split: -1, OS: []string{"linux", "wsl", "windows"}},
		Do:         []Do{{Var: "CUDA_VISIBLE_DEVICES", Of: cudaChoice}},
		Why:        "only this card; by its UUID where the driver tells it, because numbers move",
		Source:     "ollama/ollama docs/gpu.mdx",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "cuda-reserve",
		When:       When{Vendor: gpu.NVIDIA, Drivers: []string{"nvidia"}},
		Limits:     []Cap{{Name: VRAMReserve, Of: func(f Facts) int64 { return int64(700+800*min(f.Displays, 1)) * mib }}},
		Why:        "what a CUDA context and the desktop take after the plan was made",
		Source:     "Niko1221/Strata docs/DETAILS.md",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "cuda-old",
		When:       When{Vendor: gpu.NVIDIA, Archs: []gpu.Arch{gpu.Kepler, gpu.Maxwell, gpu.Pascal}, Targets: []string{Outcrop, LlamaCUDA}},
		Note:       "old generation: programs built with CUDA 13 no longer have code for it (compute capability 5.0 to 6.2 needs CUDA 12.9 or older and driver 570 or older branches that still know it)",
		Why:        "CUDA 13 dropped generations before Turing",
		Source:     "ollama/ollama docs/gpu.mdx, Niko1221/Strata docs/OLDER_GPUS.md",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "nouveau",
		When:       When{Vendor: gpu.NVIDIA, Drivers: []string{"nouveau"}},
		Note:       "nouveau has no compute path worth using: install NVIDIA's driver, or run on the CPU",
		Why:        "nouveau tells neither used memory nor offers CUDA or OpenCL",
		Source:     "this table",
		Confidence: FromSource,
		Obsolete:   "NVIDIA's driver",
	},
	{
		ID:         "cuda-other",
		When:       When{Targets: []string{LlamaCUDA}, If: func(f Facts) bool { return f.vendor() != gpu.NVIDIA }, Text: "not an NVIDIA card"},
		Note:       "the CUDA build is for NVIDIA cards",
		Why:        "the lines of this target concern CUDA",
		Source:     "this table",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
}

func gfx(f Facts, prefix ...string) bool {
	for _, p := range prefix {
		if f.Card != nil && f.Card.Chip == p {
			return true
		}
	}
	return false
}

func rocrChoice(f Facts) string {
	if f.Card.UUID.Known {
		return f.Card.UUID.Value
	}
	return strconv.Itoa(f.Place)
}

// onlyRusticl says whether Mesa's OpenCL is the only one for AMD here.
func onlyRusticl(f Facts) bool {
	rusticl := false
	for _, i := range f.M.UserMode.ICDs {
		l := strings.ToLower(i.Library)
		if strings.Contains(l, "amdocl") && i.Found {
			return false
		}
		rusticl = rusticl || strings.Contains(l, "rusticl")
	}
	return rusticl
}

var rulesAMD = []Rule{
	{
		ID:         "hip-override-103",
		When:       When{Targets: []string{LlamaHIP}, Vendor: gpu.AMD, If: func(f Facts) bool { return gfx(f, "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036") }, Text: "gfx1031 to gfx1036"},
		Do:         []Do{{Var: "HSA_OVERRIDE_GFX_VERSION", Value: "10.3.0"}},
		Why:        "ROCm has no code for this chip, but the one for gfx1030 runs on it",
		Source:     "ollama/ollama docs/gpu.mdx",
		Confidence: FromSource,
		Obsolete:   "a ROCm with this chip in its list",
	},
	{
		ID:         "hip-override-1103",
		When:       When{Targets: []string{LlamaHIP}, Vendor: gpu.AMD, If: func(f Facts) bool { return gfx(f, "gfx1103") }, Text: "gfx1103"},
		Do:         []Do{{Var: "HSA_OVERRIDE_GFX_VERSION", Value: "11.0.0"}},
		Why:        "ROCm has no code for this chip, but the one for gfx1100 runs on it",
		Source:     "ollama/ollama docs/gpu.mdx",
		Confidence: FromSource,
		Obsolete:   "a ROCm with this chip in its list",
	},
	{
		ID:         "hip-select",
		When:       When{Targets: []string{LlamaHIP}, Vendor: gpu.AMD, MinDevices: 2, Split: -1},
		Do:         []Do{{Var: "ROCR_VISIBLE_DEVICES", Of: rocrChoice}, {Var: "HIP_VISIBLE_DEVICES", Act: unset, Why: "it counts what is left after the line before, and two filters hide the card"}, {Var: "GPU_DEVICE_ORDINAL", Act: unset, Why: "a third filter over the same devices"}},
		Why:        "only this card: integrated graphics beside it is often device 0; by UUID where the kernel tells it",
		Source:     "ROCm documentation, GPU isolation; ollama/ollama docs/gpu.mdx",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "hip-windows-igpu",
		When:       When{Targets: []string{LlamaHIP}, Vendor: gpu.AMD, MinDevices: 2, OS: []string{"windows"}, If: func(f Facts) bool { return f.Integrated > 0 }, Text: "integrated graphics beside it"},
		Note:       "on Windows HIP takes integrated graphics first, and choosing by variable did not help in the report: switch the integrated one off in the firmware setup, as AMD advises",
		Why:        "neither ROCR_VISIBLE_DEVICES nor HIP_VISIBLE_DEVICES made the card be used",
		Source:     "ollama/ollama#12754, ROCm/legacy-rocm-build#5448",
		Confidence: Reported,
		Obsolete:   "a HIP that takes the larger card first",
	},
	{
		ID:         "hip-clear-cuda",
		When:       When{Targets: []string{LlamaHIP}, Vendor: gpu.AMD},
		Do:         []Do{{Var: "CUDA_VISIBLE_DEVICES", Act: unset}},
		Why:        "HIP reads it too, so a choice made for an NVIDIA card hides this one",
		Source:     "ROCm documentation, GPU isolation",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "amd-mixed",
		When:       When{Targets: []string{LlamaHIP}, Vendor: gpu.AMD, MinDiscrete: 2, If: func(f Facts) bool { return f.Mixed }, Text: "of different generations"},
		Note:       "cards of two generations: an override for one would be wrong for the other; with more than one visible use HSA_OVERRIDE_GFX_VERSION_<number> for each",
		Why:        "a wrong override crashes or computes wrong numbers",
		Source:     "ollama/ollama docs/gpu.mdx",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "amd-reserve",
		When:       When{Vendor: gpu.AMD, Drivers: []string{"amdgpu"}, If: func(f Facts) bool { return f.Card.Discrete }, Text: "a card of its own"},
		Limits:     []Cap{{Name: VRAMReserve, Of: func(f Facts) int64 { return int64(1024+2048*min(f.Displays, 1)) * mib }}},
		Why:        "a card that also draws the desktop was filled until the desktop was killed; 3 GB free kept it alive",
		Source:     "Niko1221/Strata docs/AMD_HIP.md (#560, #516)",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "amd-apu",
		When:       When{Vendor: gpu.AMD, If: func(f Facts) bool { return !f.Card.Discrete }, Text: "integrated"},
		Note:       "HIP tells system RAM as this graphics' memory: the carve-out and the GTT in sysfs are the numbers that count",
		Why:        "hipMemGetInfo returns the wrong pool on integrated graphics",
		Source:     "ollama/ollama#17277, ollama/ollama#16462",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "amd-rusticl",
		When:       When{Targets: []string{Outcrop}, Vendor: gpu.AMD, If: onlyRusticl, Text: "Mesa's OpenCL is the only one"},
		Do:         []Do{{Var: "RUSTICL_ENABLE", Value: "radeonsi"}},
		Why:        "Mesa's OpenCL shows no device until its driver is named",
		Source:     "Mesa documentation, environment variables",
		Confidence: FromSource,
		Obsolete:   "ROCm's OpenCL, or a Mesa that enables it by itself",
	},
	{
		ID:         "hip-unsupported",
		When:       When{Targets: []string{LlamaHIP}, Vendor: gpu.AMD, If: func(f Facts) bool { return backend(f) == LlamaVulkan }, Text: "a generation ROCm does not serve"},
		Note:       "ROCm has no code for this generation: take the Vulkan build",
		Why:        "no override is known to work for it",
		Source:     "ollama/ollama docs/gpu.mdx",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "hip-other",
		When:       When{Targets: []string{LlamaHIP}, If: func(f Facts) bool { return f.vendor() != gpu.AMD }, Text: "not an AMD card"},
		Note:       "the HIP build is for AMD cards",
		Why:        "the lines of this target concern ROCm",
		Source:     "this table",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
}
