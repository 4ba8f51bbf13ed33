package recipe

import (
	"slices"
	"strconv"
	"strings"

	"outcrop/gpu"
)

// rules is the table. Order matters only for reading: rules that meet must
// agree, and a test over every recorded machine and a cross product of facts
// finds those that do not.
var rules = slices.Concat(rulesIntel, rulesStrata, rulesLlama, rulesPyTorch, rulesChipStar, rulesNVIDIA, rulesAMD, rulesCommon)

// Builds of Intel's user-mode driver (the third part of its version) at which
// something began or ended.
const (
	neo2339 = 27427 // 23.39.27427.19: eviction of reused private surfaces, #973
	neo2544 = 36015 // 25.44.36015.5: first with broken contexts over several cards; 25.40.35563.x is the last good
	neo2601 = 36711 // 26.01.36711.4: said to bring DG2 on xe
	neo2618 = 38308 // 26.18.38308.1: DG1 on xe
	neo2631 = 39395 // 26.31.39395.13: last read without the fix of #973
)

// capped are the generations with the 4 GiB limit on one allocation.
var capped = []gpu.Arch{gpu.XeLP, gpu.DG1, gpu.Alchemist, gpu.MeteorLake, gpu.ArrowLakeH}

// native are the Intel generations with double precision in hardware.
var native = []gpu.Arch{gpu.MeteorLake, gpu.ArrowLakeH, gpu.PonteVecc, gpu.Battlemage, gpu.LunarLake, gpu.PantherLake, gpu.NovaLake, gpu.Crescent}

// xe2 are the Intel generations where Unified Runtime uses its second adapter
// and zesInit.
var xe2 = []gpu.Arch{gpu.Battlemage, gpu.LunarLake, gpu.PantherLake, gpu.NovaLake, gpu.Crescent}

func maskIndex(f Facts) string { return strconv.Itoa(f.Index) }

// everyCard lists Level Zero numbers of the discrete cards: "0,1".
func everyCard(f Facts) string {
	n := make([]string, max(f.Discrete, 1))
	for i := range n {
		n[i] = strconv.Itoa(i)
	}
	return "level_zero:" + strings.Join(n, ",")
}

const mib = int64(1) << 20

var rulesIntel = []Rule{
	{
		ID:         "intel-mask",
		When:       When{Targets: []string{Outcrop, LlamaSYCL, ChipStar}, Vendor: gpu.Intel, MinDevices: 2, Split: -1, If: func(f Facts) bool { return f.Arch != gpu.IntelLegacy }, Text: "the card is one that current drivers know"},
		Do:         []Do{{Var: "ZE_AFFINITY_MASK", Of: maskIndex}, {Var: "ZE_ENABLE_PCI_ID_DEVICE_ORDER", Act: unset, Why: "it would renumber the devices, integrated ones first, and the mask would hide the wrong one"}},
		Why:        "only this card may be visible: contexts over two devices fail to allocate, and an integrated one beside it gives wrong output",
		Source:     "intel/compute-runtime#916, intel/compute-runtime#921, ggml-org/llama.cpp#9241",
		Confidence: Reported,
		Obsolete:   "a driver release whose notes name the multi-device fixes, and a passed allocation test over all cards",
	},
	{
		ID:         "intel-one-context",
		When:       When{Vendor: gpu.Intel, MinDiscrete: 2},
		Limits:     []Cap{{Name: CardsPerCtx, Value: 1}},
		Why:        "a context over two cards refused a 2 MiB allocation with 16 GiB free; each card alone works",
		Source:     "intel/compute-runtime#916",
		Confidence: Reported,
		Obsolete:   "nothing planned: several cards are several single-card devices",
	},
	{
		ID:         "intel-multi-suspect",
		When:       When{Vendor: gpu.Intel, MinDiscrete: 2, NEOSuspect: neo2544},
		Note:       "this user-mode driver is inside the window in which several cards at once fail (25.44.36015.5 and later, no fixed release known; 25.40.35563.x is good), or its version could not be read: one card per process, and test before using more",
		Why:        "allocation, enumeration and large buffers fail with several cards visible",
		Source:     "intel/compute-runtime#916, #921, #944, #957",
		Confidence: Reported,
		Obsolete:   "a release after 26.31.39395.13 that passes the allocation test",
	},
	{
		ID:         "intel-multi-good",
		When:       When{Vendor: gpu.Intel, MinDiscrete: 2, NEOBelow: neo2544},
		Note:       "this user-mode driver is older than the window in which several cards at once fail (it begins at 25.44.36015.5): keep it while you need more than one card in a process",
		Why:        "25.40.35563.x is the last release reported good with several cards",
		Source:     "intel/compute-runtime#916, intel/compute-runtime#921",
		Confidence: Reported,
		Obsolete:   "a newer release that passes the allocation test",
	},
	{
		ID:         "intel-mixed",
		When:       When{Vendor: gpu.Intel, MinDiscrete: 2, If: func(f Facts) bool { return f.Mixed }, Text: "of different generations"},
		Note:       "cards of two generations: do not spread one model over them with SYCL, the device is lost while the prompt is read; run one process per card",
		Why:        "layer split over an A770 and a B580 lost the device, and command graphs belong to one context",
		Source:     "Niko1221/Strata docs/A770_SPEED_SPEC.md",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "intel-alloc-4g",
		When:       When{Vendor: gpu.Intel, Archs: capped},
		Limits:     []Cap{{Name: AllocMax, Of: func(f Facts) int64 { return f.Card.Caps.AllocMax }}, {Name: HostAllocMax, Of: func(f Facts) int64 { return f.Card.Caps.HostAllocMax }}},
		Why:        "one device allocation ends 8 KiB below 4 GiB on this generation, and one pinned host allocation of 4 GiB came back null where 2 GiB worked",
		Source:     "intel/compute-runtime hw_info tables; Niko1221/Strata#1545",
		Confidence: FromSource,
		Obsolete:   "generations from Xe-HPC on address without the cap",
	},
	{
		ID:         "intel-alloc-g31",
		When:       When{Devices: []uint16{0xe222, 0xe223}, Vendor: gpu.Intel},
		Limits:     []Cap{{Name: AllocShare, Value: 60}},
		Why:        "one allocation above about 19 GB fails on B65 and B70 though 30 GB are free",
		Source:     "intel/compute-runtime#984, intel/compute-runtime#998, ggml-org/llama.cpp#28953",
		Confidence: Reported,
		Obsolete:   "a driver that passes first light's allocation ladder",
	},
	{
		ID:         "intel-xe-reserve",
		When:       When{Vendor: gpu.Intel, Drivers: []string{"xe"}, If: func(f Facts) bool { return f.Card.Discrete }, Text: "a card of its own"},
		Limits:     []Cap{{Name: VRAMReserve, Value: 1536 * mib}},
		Why:        "xe does not refuse what is too much: it moves buffers to RAM until the machine stalls or the device is lost",
		Source:     "intel/torch-xpu-ops#3155, Niko1221/Strata docs/INTEL.md",
		Confidence: Reported,
		Obsolete:   "a kernel that refuses over-committed allocations",
	},
	{
		ID:         "intel-i915-reserve",
		When:       When{Vendor: gpu.Intel, Drivers: []string{"i915"}, If: func(f Facts) bool { return f.Card.Discrete }, Text: "a card of its own"},
		Limits:     []Cap{{Name: VRAMReserve, Value: 1024 * mib}},
		Why:        "on i915 a full card throws out the buffers of other processes, and exhaustion is reported as host memory",
		Source:     "Niko1221/Strata docs/INTEL_A770_ISSUES.md",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "intel-sensor-interval",
		When:       When{Vendor: gpu.Intel, Targets: []string{Outcrop}},
		Limits:     []Cap{{Name: SampleEveryMS, Value: 100}},
		Why:        "Sysman's counters are refreshed every 100 ms, faster readings cost time and tell nothing",
		Source:     "intel/compute-runtime programmers-guide/SYSMAN.md",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "intel-sysman-engine",
		When:       When{Vendor: gpu.Intel, Targets: []string{Outcrop}, OS: []string{"linux", "wsl", "windows"}},
		Do:         []Do{{Var: "ZES_ENABLE_SYSMAN", Act: unset}},
		Why:        "sensors are read through zesInit in a helper process, and the old way of switching Sysman on excludes it in the same process",
		Source:     "ggml-org/llama.cpp#28239, intel/compute-runtime programmers-guide/SYSMAN.md",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "intel-local-memory",
		When:       When{Vendor: gpu.Intel, Targets: []string{Outcrop}, Drivers: []string{"xe"}, If: func(f Facts) bool { return f.Card.Discrete }, Text: "a card of its own"},
		Do:         []Do{{Var: "NEO_LOCAL_MEMORY_ALLOCATION_MODE", Value: "1", Act: offer}},
		Why:        "makes the driver fail an allocation instead of placing it in RAM without a word; whether it also stops later eviction was not tried",
		Source:     "intel/compute-runtime release_variables_base.inl",
		Confidence: Hypothesis,
		Obsolete:   "a kernel that refuses over-committed allocations",
	},
	{
		ID:         "intel-dg1-xe",
		When:       When{Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.DG1}, Drivers: []string{"xe"}, NEOBelow: neo2618},
		Do:         []Do{{Var: "NEOReadDebugKeys", Value: "1", Why: "the next line is a debug key, which release drivers read only with this one"}, {Var: "IgnoreProductSpecificIoctlHelper", Value: "1"}},
		Why:        "drivers before 26.18.38308.1 do not look for this card behind xe",
		Source:     "intel/compute-runtime#899",
		Confidence: Reported,
		Obsolete:   "user-mode driver 26.18.38308.1 or newer",
	},
	{
		ID:         "intel-fp64-gen12",
		When:       When{Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.XeLP, gpu.DG1}},
		Do:         []Do{{Var: "OverrideDefaultFP64Settings", Act: unset}, {Var: "IGC_EnableDPEmulation", Act: unset}, {Var: "NEO_FP64_EMULATION", Act: unset}},
		Why:        "emulated double precision is made for DG2 only: on this generation the compiler's loops do not end and the device is lost",
		Source:     "intel/compute-runtime#907",
		Confidence: Reported,
		Obsolete:   "nothing planned: the hardware has no double precision",
	},
	{
		ID:         "intel-fp64-native",
		When:       When{Vendor: gpu.Intel, Archs: native},
		Do:         []Do{{Var: "OverrideDefaultFP64Settings", Act: unset}, {Var: "IGC_EnableDPEmulation", Act: unset}},
		Why:        "this generation has double precision in hardware; the emulation keys of Alchemist recipes change what is compiled and can hide it",
		Source:     "intel/compute-runtime hw_info tables",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "intel-evict-wrong",
		When:       When{Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist}, NEOFrom: neo2339, NEOBelow: neo2631 + 1},
		Note:       "this user-mode driver can return wrong results without an error when the card's memory is nearly full (a reused buffer is evicted); leave room, and trust first light's repeatability test",
		Why:        "a reused private surface was evicted; in every release since 23.39.27427.19 and not fixed in 26.31.39395.13",
		Source:     "intel/compute-runtime#973",
		Confidence: Reported,
		Obsolete:   "a release after 26.31.39395.13",
	},
	{
		ID:         "intel-xe-args",
		When:       When{Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist}, Drivers: []string{"xe"}},
		Note:       "Alchemist is bound to xe only on request: keep xe.force_probe=<id> and i915.force_probe=!<id> (the card's device id) on the kernel command line",
		Why:        "xe does not claim this generation by itself",
		Source:     "Niko1221/Strata#1545",
		Confidence: Reported,
		Obsolete:   "a kernel that binds DG2 to xe by default",
	},
	{
		ID:         "intel-legacy",
		When:       When{Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.IntelLegacy}},
		Note:       "graphics of this generation left Intel's compute driver with 24.35.30872.22 (only the -legacy1 packages have it): the CPU is the better choice",
		Why:        "current drivers do not know Gen 7 to Gen 11",
		Source:     "intel/compute-runtime README",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "intel-xelp",
		When:       When{Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.XeLP}},
		Note:       "this graphics has neither double precision nor matrix units and shares the RAM's bandwidth with the CPU: Vulkan or the CPU is the better choice",
		Why:        "no DPAS and no FP64 on Gen 12 graphics",
		Source:     "intel/compute-runtime hw_info tables",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "intel-unknown",
		When:       When{Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.IntelOther}},
		Note:       "this PCI id is not in our table, so only what holds for every Intel card is here; first light decides what the card can do",
		Why:        "a static table without a fallback stopped other programs on new cards",
		Source:     "intel/AI-Playground#175",
		Confidence: Reported,
		Obsolete:   "an entry in our table",
	},
	{
		ID:         "intel-shared-ram",
		When:       When{Vendor: gpu.Intel, If: func(f Facts) bool { return f.Card.Memory.Shared }, Text: "integrated"},
		Note:       "integrated graphics has no memory of its own: what the model takes there is taken from RAM, and Sysman's size and free for it are MemAvailable and MemFree under other names",
		Why:        "zesMemoryGetState reads /proc/meminfo on integrated devices",
		Source:     "intel/compute-runtime sysman sources",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
}

var rulesCommon = []Rule{
	{
		ID:         "pinned-share",
		When:       When{If: func(f Facts) bool { return f.RAM > 0 }, Text: "RAM is known"},
		Limits:     []Cap{{Name: PinnedShare, Value: 75}},
		Why:        "memory that cannot be dropped must leave room for the rest: 23.4 GiB pinned of 29 GB ended in the kernel's out-of-memory killer after 338 000 major faults",
		Source:     "Niko1221/Strata#1545",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "pinned-share-cpu",
		When:       When{CPU: true, Targets: []string{Outcrop}},
		Limits:     []Cap{{Name: PinnedShare, Value: 75}},
		Note:       "no card: the CPU runs the model, mapped from its file, and no variable is needed",
		Why:        "memory that cannot be dropped must leave room for the rest",
		Source:     "Niko1221/Strata#1545",
		Confidence: Reported,
		Obsolete:   "a card",
	},
	{
		ID:         "no-card",
		When:       When{CPU: true, If: func(f Facts) bool { return f.Target != Outcrop }, Text: "the target needs a card"},
		Note:       "no card was found, and this program has nothing to set for the CPU",
		Why:        "all lines of this target concern a card",
		Source:     "this table",
		Confidence: Measured,
		Obsolete:   "a card",
	},
	{
		ID:         "no-driver",
		When:       When{If: func(f Facts) bool { return f.Driver == "" || f.Driver == "vfio-pci" || f.Driver == "nouveau" }, Text: "bound to no driver that computes"},
		Note:       "the card is bound to no kernel driver that computes: the lines here hold once it is (see the doctor)",
		Why:        "without a compute driver no variable helps",
		Source:     "this table",
		Confidence: Measured,
		Obsolete:   "the right driver",
	},
	{
		ID:         "wddm-reserve",
		When:       When{OS: []string{"windows"}, If: func(f Facts) bool { return f.Card.Discrete }, Text: "a card of its own"},
		Limits:     []Cap{{Name: VRAMReserve, Of: func(f Facts) int64 { return f.VRAM / 6 }}},
		Why:        "Windows does not refuse what is too much, it pages it: a sixth left free turned a prompt of 426 s into 9.7",
		Source:     "Niko1221/Strata#1549, docs/EXPERT_CACHE_HEADROOM.md",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "wsl",
		When:       When{OS: []string{"wsl"}},
		Note:       "under WSL the card belongs to Windows: its sensors and free memory cannot be read here, and Intel cards need the Linux user-mode driver beside the Windows one",
		Why:        "there is no sysfs, hwmon or fdinfo for the card in the guest",
		Source:     "intel/compute-runtime WSL.md, pytorch/pytorch#194576",
		Confidence: FromSource,
		Obsolete:   "running on Linux itself",
	},
}
