package recipe

import (
	"strings"

	"outcrop/gpu"
)

// hasLavapipe says whether Mesa's CPU driver for Vulkan is installed beside a
// real one.
func hasLavapipe(f Facts) bool {
	cpu, real := false, false
	for _, p := range f.M.UserMode.VulkanICDs {
		if strings.Contains(p, "/lvp_icd") {
			cpu = true
		} else {
			real = true
		}
	}
	return cpu && real
}

var rulesLlama = []Rule{
	{
		ID:         "llama-sycl-one",
		When:       When{Targets: []string{LlamaSYCL}, Vendor: gpu.Intel, Split: -1},
		Do:         []Do{{Var: "ONEAPI_DEVICE_SELECTOR", Value: "level_zero:0"}},
		Why:        "one Level Zero device: without it the same card appears again through OpenCL, and the CPU too; after a mask the number is 0 again",
		Source:     "ggml-org/llama.cpp docs/backend/SYCL.md, ggml-org/llama.cpp#22885",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "llama-sycl-split",
		When:       When{Targets: []string{LlamaSYCL}, Vendor: gpu.Intel, MinDiscrete: 2, Split: 1},
		Do:         []Do{{Var: "ONEAPI_DEVICE_SELECTOR", Of: everyCard, Why: "all cards, no integrated graphics; one term with commas is the spelling both parsers take"}, {Var: "GGML_SYCL_DEV2DEV_MEMCPY", Value: "2", Why: "copies between cards go through the host: the card-to-card path corrupted tokens on four Arc cards"}, {Var: "ZE_AFFINITY_MASK", Act: unset, Why: "a mask would hide a card the split needs"}},
		Flags:      [][2]string{{"-sm", "layer"}},
		Note:       "prefer Vulkan for several Intel cards, or one process per card: one Level Zero context over two cards fails on current drivers",
		Why:        "splitting by layer through the host is the most stable way over several cards",
		Source:     "ggml-org/llama.cpp#23797, ggml-org/llama.cpp#27198, docs/backend/SYCL.md",
		Confidence: Reported,
		Obsolete:   "a driver that passes the allocation test over all cards",
	},
	{
		ID:         "llama-b70-adapter",
		When:       When{Targets: []string{LlamaSYCL}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Battlemage}, MinDiscrete: 2, Split: 1},
		Do:         []Do{{Var: "UR_LOADER_USE_LEVEL_ZERO_V2", Value: "0"}},
		Why:        "with several B70 the second Level Zero adapter crashed at start; the first one starts",
		Source:     "ggml-org/llama.cpp#27198",
		Confidence: Reported,
		Obsolete:   "a runtime that starts with the second adapter",
	},
	{
		ID:         "ur-relaxed",
		When:       When{Targets: []string{LlamaSYCL, PyTorchXPU}, Vendor: gpu.Intel, Archs: capped},
		Do:         []Do{{Var: "UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS", Value: "1"}},
		Why:        "lets one device allocation pass 4 GiB and adds the 64-bit build option; the documentation's other spelling of this name is not the one the code reads",
		Source:     "oneapi-src/unified-runtime usm.cpp and program.cpp, ggml-org/llama.cpp#10421",
		Confidence: FromSource,
		Obsolete:   "engines that ask the driver for relaxed limits themselves",
	},
	{
		ID:         "llama-get-mem",
		When:       When{Targets: []string{LlamaSYCL}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist}},
		Do:         []Do{{Var: "GGML_SYCL_GET_MEM_API", Value: "0"}},
		Why:        "asks Level Zero for free memory (build b10717 and later); the SYCL way tells the total on this generation",
		Source:     "ggml-org/llama.cpp#27968",
		Confidence: Reported,
		Obsolete:   "it is the default; the line only undoes an old setting",
	},
	{
		ID:         "llama-pinned-2g",
		When:       When{Targets: []string{LlamaSYCL}, Vendor: gpu.Intel, Archs: capped},
		Do:         []Do{{Var: "GGML_SYCL_HOST_PINNED_MEM_2G", Value: "1"}},
		Why:        "pinned host memory must come in pieces: the relaxed limit is not applied to host allocations, and 4 GiB at once came back null on an A770",
		Source:     "ggml-org/llama.cpp docs/backend/SYCL.md, ggml-org/llama.cpp#25812",
		Confidence: FromSource,
		Obsolete:   "a runtime that relaxes host allocations too",
	},
	{
		ID:         "llama-copy-engine",
		When:       When{Targets: []string{LlamaSYCL}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist}, Drivers: []string{"xe"}},
		Do:         []Do{{Var: "UR_L0_USE_COPY_ENGINE", Value: "0", Why: "the copy engine hangs on this pair while mapped weights stream to the card (12 of 15 runs failed, 0 of 10 with this)"}, {Var: "UR_L0_V2_FORCE_DISABLE_COPY_OFFLOAD", Value: "1", Why: "the same for the second adapter; never set either to an empty value, the adapter aborts on it"}},
		Why:        "keeps the copy engine out of the way",
		Source:     "a llama.cpp fork's docs/backend/SYCL.md; intel/compute-runtime#973, #1010",
		Confidence: Reported,
		Obsolete:   "a kernel or driver without the hang",
	},
	{
		ID:   "llama-sysman-xe",
		When: When{Targets: []string{LlamaSYCL}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist}, Drivers: []string{"xe"}},
		Do: []Do{
			{Var: "ZES_ENABLE_SYSMAN", Act: unset, Why: "the old way of switching Sysman on is for i915 only; the program's own advice to set it does not hold on xe"},
			{Var: "UR_L0_ENABLE_SYSMAN_ENV_DEFAULT", Value: "0", Act: offer, Why: "keeps the runtime from setting it by itself"},
			{Var: "UR_L0_ENABLE_ZESINIT_DEFAULT", Value: "1", Act: offer, Why: "would make the runtime use zesInit, which works on xe; without CAP_PERFMON the answer is still the total"},
		},
		Why:        "on xe only zesInit answers",
		Source:     "intel/compute-runtime programmers-guide/SYSMAN.md, ggml-org/llama.cpp#24996",
		Confidence: FromSource,
		Obsolete:   "a runtime that uses zesInit on every generation",
	},
	{
		ID:         "llama-sysman-i915",
		When:       When{Targets: []string{LlamaSYCL}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist}, Drivers: []string{"i915"}},
		Do:         []Do{{Var: "ZES_ENABLE_SYSMAN", Value: "1"}},
		Why:        "on i915 it makes the program see the card's free memory (with CAP_PERFMON; without it the total)",
		Source:     "ggml-org/llama.cpp docs/backend/SYCL.md",
		Confidence: FromSource,
		Obsolete:   "builds that ask Level Zero",
	},
	{
		ID:         "llama-sysman-xe2",
		When:       When{Targets: []string{LlamaSYCL}, Vendor: gpu.Intel, Archs: xe2, OS: []string{"linux", "wsl", "windows"}},
		Do:         []Do{{Var: "ZES_ENABLE_SYSMAN", Act: unset}},
		Why:        "from Xe2 on the runtime uses zesInit, and both ways in one process give an error at every reading (2013265921)",
		Source:     "ggml-org/llama.cpp#28239; oneapi-src/unified-runtime adapter.cpp",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "llama-sycl-other",
		When:       When{Targets: []string{LlamaSYCL}, If: func(f Facts) bool { return f.vendor() != gpu.Intel }, Text: "not an Intel card"},
		Note:       "the SYCL build is for Intel cards: take the CUDA, HIP or Vulkan build for this one",
		Why:        "the lines of this target concern Level Zero",
		Source:     "ggml-org/llama.cpp docs/backend/SYCL.md",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "vulkan-several",
		When:       When{Targets: []string{LlamaVulkan}, MinDevices: 2},
		Note:       "Vulkan numbers devices in its own order, and the program uses discrete ones only unless there is none: list them with --list-devices and choose with GGML_VK_VISIBLE_DEVICES",
		Why:        "a missing second or integrated device is a rule of the program, not a fault",
		Source:     "ggml-org/llama.cpp#14565, ggml-org/llama.cpp#15793",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "vulkan-split",
		When:       When{Targets: []string{LlamaVulkan}, MinDiscrete: 2, Split: 1},
		Flags:      [][2]string{{"-sm", "layer"}},
		Do:         []Do{{Var: "GGML_VK_VISIBLE_DEVICES", Act: unset}},
		Why:        "several cards work through Vulkan, layer by layer, where one Level Zero context over them does not",
		Source:     "intel/compute-runtime#944, ggml-org/llama.cpp#21747",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "vulkan-arc",
		When:       When{Targets: []string{LlamaVulkan}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist, gpu.Battlemage}},
		Note:       "Gemma 4 came out garbled on Arc through Vulkan while other models were fine: compare one short greedy answer with the CPU's",
		Why:        "a back-end fault seen on B580 and A770",
		Source:     "ggml-org/llama.cpp#24560, ollama/ollama#15328",
		Confidence: Reported,
		Obsolete:   "a build in which the model answers as on the CPU",
	},
	{
		ID:         "vulkan-mtl",
		When:       When{Targets: []string{LlamaVulkan}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.MeteorLake, gpu.ArrowLakeH}},
		Note:       "old user-space graphics gave garbage for some prompts on this integrated graphics; newer Mesa and Intel libraries cured it",
		Why:        "a fault of the distribution's old stack (libigc 1.0.15468)",
		Source:     "ggml-org/llama.cpp#21888",
		Confidence: Reported,
		Obsolete:   "a newer graphics stack",
	},
	{
		ID:         "vulkan-hide-cpu",
		When:       When{Targets: []string{LlamaVulkan}, If: hasLavapipe, Text: "Mesa's CPU driver is installed too"},
		Do:         []Do{{Var: "VK_LOADER_DRIVERS_DISABLE", Value: "*lvp_icd*", Act: offer}},
		Why:        "hides Mesa's CPU device from the list; the program does not use it by itself since June 2025",
		Source:     "Vulkan loader documentation; ggml-org/llama.cpp#14099",
		Confidence: Hypothesis,
		Obsolete:   "builds since June 2025",
	},
	{
		ID:         "vulkan-wsl",
		When:       When{Targets: []string{LlamaVulkan}, OS: []string{"wsl"}},
		Note:       "Vulkan under WSL exists only through Mesa's dzn, which other projects refuse: use the Windows build, or CUDA or Level Zero in the guest",
		Why:        "there is no native Vulkan driver in the guest",
		Source:     "containers/ramalama#2541",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
}
