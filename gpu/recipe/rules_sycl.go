package recipe

import (
	"strconv"

	"outcrop/gpu"
)

// allocationTest is the test of GSD-12641 as a program: 2 MiB on each card
// alone, then on each with all cards visible. It needs PyTorch with XPU.
const allocationTest = `#!/usr/bin/env python3
# Allocates 2 MiB on every Intel card, first with only that card visible, then
# with all of them. A card that works alone and fails beside others is the fault
# of intel/compute-runtime#916; choose one card per process then.
import os
import subprocess
import sys

ONE = """
import sys
import torch
d = int(sys.argv[1])
try:
    t = torch.ones(2 * 1024 * 1024 // 4, dtype=torch.float32, device=f"xpu:{d}")
    torch.xpu.synchronize(d)
    print("ok" if float(t.sum()) == t.numel() else "wrong sum")
except Exception as e:
    print("failed:", str(e).splitlines()[0])
"""


def run(selector, device):
    env = dict(os.environ)
    env.pop("ZE_AFFINITY_MASK", None)
    env["ONEAPI_DEVICE_SELECTOR"] = selector
    p = subprocess.run([sys.executable, "-c", ONE, str(device)], env=env, capture_output=True, text=True, timeout=120)
    out = p.stdout.strip().splitlines()
    return out[-1] if out else f"ended with {p.returncode}"


def count():
    env = dict(os.environ)
    env.pop("ZE_AFFINITY_MASK", None)
    env["ONEAPI_DEVICE_SELECTOR"] = "level_zero:gpu"
    p = subprocess.run([sys.executable, "-c", "import torch; print(torch.xpu.device_count())"], env=env, capture_output=True, text=True, timeout=120)
    return int(p.stdout.strip() or 0)


n = count()
print(f"{n} device(s)")
bad = 0
for i in range(n):
    alone = run(f"level_zero:{i}", 0)
    together = run("level_zero:gpu", i)
    print(f"card {i}: alone {alone}; with all visible {together}")
    bad += alone != "ok" or together != "ok"
print(f"{n - bad} of {n} cards pass both ways")
sys.exit(1 if bad or n == 0 else 0)
`

// AllocationTest gives the script that tests a 2 MiB allocation on every card,
// alone and with all cards visible.
func AllocationTest() string { return allocationTest }

func selectIndex(f Facts) string { return "level_zero:" + strconv.Itoa(f.Index) }

var rulesPyTorch = []Rule{
	{
		ID:         "torch-one-card",
		When:       When{Targets: []string{PyTorchXPU}, Vendor: gpu.Intel, MinDiscrete: 2, NEOSuspect: neo2544},
		Do:         []Do{{Var: "ONEAPI_DEVICE_SELECTOR", Of: selectIndex, Why: "the working selector: with one device in the context the 2 MiB allocation that failed succeeds"}, {Var: "ZE_AFFINITY_MASK", Act: unset, Why: "a mask would renumber what the selector counts"}, {Var: "ZE_ENABLE_PCI_ID_DEVICE_ORDER", Act: unset, Why: "it would renumber what the selector counts"}},
		Note:       "switching off the driver's USM pools did not help in the report, but that test proves nothing: the keys are debug keys and were set without NEOReadDebugKeys=1. A clean retest is NEOReadDebugKeys=1 EnableDeviceUsmAllocationPool=0 EnableHostUsmAllocationPool=0 EnableUsmAllocationPoolManager=0, and apart from it UR_L0_USM_RESIDENT=0",
		Script:     &Script{Name: "allocation_test.py", Text: allocationTest},
		Why:        "any allocation fails with UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY while a context holds two cards",
		Source:     "intel/compute-runtime#916 (GSD-12641)",
		Confidence: Reported,
		Obsolete:   "a driver with which the script passes for every card both ways",
	},
	{
		ID:         "torch-many-cards",
		When:       When{Targets: []string{PyTorchXPU}, Vendor: gpu.Intel, MinDiscrete: 2, NEOBelow: neo2544},
		Do:         []Do{{Var: "ONEAPI_DEVICE_SELECTOR", Value: "level_zero:gpu"}},
		Script:     &Script{Name: "allocation_test.py", Text: allocationTest},
		Why:        "this driver is older than the fault of several cards in one context, so all may be visible",
		Source:     "intel/compute-runtime#916 (GSD-12641)",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "torch-beside-igpu",
		When:       When{Targets: []string{PyTorchXPU}, Vendor: gpu.Intel, MinDevices: 2, MaxDiscrete: 1, If: func(f Facts) bool { return f.Arch != gpu.IntelLegacy }, Text: "the card is one that current drivers know"},
		Do:         []Do{{Var: "ONEAPI_DEVICE_SELECTOR", Of: selectIndex}, {Var: "ZE_ENABLE_PCI_ID_DEVICE_ORDER", Act: unset, Why: "it would put integrated graphics first"}},
		Why:        "integrated graphics beside the card must not be in the same context",
		Source:     "ggml-org/llama.cpp#9241, intel/compute-runtime#579",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "torch-sysman",
		When:       When{Targets: []string{PyTorchXPU}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist, gpu.DG1, gpu.MeteorLake, gpu.ArrowLakeH}},
		Do:         []Do{{Var: "UR_L0_ENABLE_SYSMAN_ENV_DEFAULT", Value: "0"}, {Var: "ZES_ENABLE_SYSMAN", Act: unset, Why: "the old way of switching Sysman on makes zesInit fail in the same process"}},
		Why:        "before Xe2 the runtime switches the old Sysman on by itself, and PyTorch's own readings then fail",
		Source:     "pytorch/pytorch#183431, pytorch/pytorch#185198",
		Confidence: Reported,
		Obsolete:   "a runtime that uses zesInit on every generation",
	},
	{
		ID:         "torch-fp64",
		When:       When{Targets: []string{PyTorchXPU}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist}},
		Do:         []Do{{Var: "OverrideDefaultFP64Settings", Value: "1"}, {Var: "IGC_EnableDPEmulation", Value: "1"}, {Var: "NEO_FP64_EMULATION", Value: "1", Act: offer, Why: "the driver's own switch, which may replace the two lines before"}},
		Why:        "operations on double stop with \"required aspect fp64 is not supported\" on Alchemist unless it is emulated",
		Source:     "intel/torch-xpu-ops#1742, intel/intel-extension-for-pytorch#257",
		Confidence: Reported,
		Obsolete:   "programs without double",
	},
	{
		ID:         "torch-lists-windows",
		When:       When{Targets: []string{PyTorchXPU}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist}, OS: []string{"windows"}},
		Do:         []Do{{Var: "UR_L0_USE_IMMEDIATE_COMMANDLISTS", Act: unset}},
		Note:       "silent NaN was seen on an A730M with the SYCL runtime 2026.1.0 and not with 2025.3.2, whatever the driver: note the runtime's version beside every result",
		Why:        "immediate command lists are not supported for this generation on Windows; the default there is right",
		Source:     "pytorch/pytorch#190972, pytorch/pytorch#197520",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
	{
		ID:         "torch-other",
		When:       When{Targets: []string{PyTorchXPU}, If: func(f Facts) bool { return f.vendor() != gpu.Intel }, Text: "not an Intel card"},
		Note:       "PyTorch's XPU build is for Intel cards: take the CUDA or ROCm build for this one",
		Why:        "the lines of this target concern Level Zero",
		Source:     "pytorch/pytorch documentation",
		Confidence: FromSource,
		Obsolete:   "nothing planned",
	},
}

var rulesChipStar = []Rule{
	{
		ID:         "chipstar-backend",
		When:       When{Targets: []string{ChipStar}, Vendor: gpu.Intel},
		Do:         []Do{{Var: "HIP_PLATFORM", Value: "spirv", Why: "hipcc guesses AMD or NVIDIA from folders it finds otherwise"}, {Var: "CHIP_BE", Value: "level0", Why: "Level Zero; opencl is the other choice and takes over by itself only when this is unset"}, {Var: "CHIP_DEVICE_TYPE", Value: "gpu"}, {Var: "CHIP_DEVICE", Value: "0", Why: "the number after the mask"}},
		Flags:      [][2]string{{"hipcc", "<program.hip -o program>"}},
		Note:       "known to work: HIP programs of the usual test suites, through Level Zero and OpenCL, and three shim lines in Strata's sources to compile. Not known to work: Strata's HIP kernels on Intel (no Intel path when it was asked, an unvalidated third back end), code that assumes 32 or 64 lanes per wave where the card has sub-groups of 8 to 32, inline assembly, and rocBLAS calls without a oneMKL port. Compare every kernel with a CPU run before trusting a number",
		Why:        "builds a HIP program to SPIR-V and runs it on this card",
		Source:     "CHIP-SPV/chipStar docs/Using.md; Niko1221/Strata#709",
		Confidence: FromSource,
		Obsolete:   "a native Intel path in the program",
	},
	{
		ID:         "chipstar-fp64",
		When:       When{Targets: []string{ChipStar}, Vendor: gpu.Intel, Archs: []gpu.Arch{gpu.Alchemist}},
		Do:         []Do{{Var: "OverrideDefaultFP64Settings", Value: "1"}, {Var: "IGC_EnableDPEmulation", Value: "1"}, {Var: "NEO_FP64_EMULATION", Value: "1", Act: offer, Why: "the driver's own switch, which may replace the two lines before"}},
		Why:        "a kernel with double does not build on Alchemist, and the program then crashes instead of saying so; with emulation it passed on an A380",
		Source:     "CHIP-SPV/chipStar#1234",
		Confidence: Reported,
		Obsolete:   "programs without double",
	},
	{
		ID:         "chipstar-other",
		When:       When{Targets: []string{ChipStar}, If: func(f Facts) bool { return f.vendor() != gpu.Intel }, Text: "not an Intel card"},
		Note:       "this card has a native HIP or CUDA path, which is the better one: chipStar's SPIR-V carries Intel extensions that other drivers refuse",
		Why:        "chipStar's programs did not port to non-Intel devices",
		Source:     "CHIP-SPV/chipStar#713",
		Confidence: Reported,
		Obsolete:   "nothing planned",
	},
}
