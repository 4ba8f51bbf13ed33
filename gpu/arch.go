package gpu

// Arch is a hardware generation: what recipes are keyed on, together with the
// kernel driver.
type Arch string

// Generations. The name is the one users read, not the compiler's.
const (
	UnknownArch Arch = ""
	IntelLegacy Arch = "intel-legacy" // Gen 7 to Gen 11: not in current NEO
	XeLP        Arch = "xe-lp"        // Tiger, Rocket, Alder, Raptor Lake
	DG1         Arch = "dg1"
	Alchemist   Arch = "alchemist" // DG2, Arc A, Flex
	MeteorLake  Arch = "meteor-lake"
	ArrowLakeH  Arch = "arrow-lake-h"
	PonteVecc   Arch = "ponte-vecchio"
	Battlemage  Arch = "battlemage"
	LunarLake   Arch = "lunar-lake"
	PantherLake Arch = "panther-lake"
	NovaLake    Arch = "nova-lake"
	Crescent    Arch = "crescent-island"
	IntelOther  Arch = "intel-unknown" // an Intel device the table does not know: ask the driver

	GCN      Arch = "gcn"
	CDNA     Arch = "cdna"
	RDNA1    Arch = "rdna1"
	RDNA2    Arch = "rdna2"
	RDNA3    Arch = "rdna3"
	RDNA35   Arch = "rdna3.5"
	RDNA4    Arch = "rdna4"
	AMDOther Arch = "amd-unknown"

	Kepler      Arch = "kepler"
	Maxwell     Arch = "maxwell"
	Pascal      Arch = "pascal"
	Volta       Arch = "volta"
	Turing      Arch = "turing"
	Ampere      Arch = "ampere"
	Ada         Arch = "ada"
	Hopper      Arch = "hopper"
	Blackwell   Arch = "blackwell"
	NVIDIAOther Arch = "nvidia-unknown"

	VirtualArch Arch = "virtual"
)

// Caps is what a generation can do. The zero value promises nothing.
type Caps struct {
	FP64          bool  `json:"fp64"`           // double precision in hardware
	FP64Emulation bool  `json:"fp64_emulation"` // the driver can emulate it when asked
	DP4A          bool  `json:"dp4a"`           // 4 x 8 bit integer dot product
	Matrix        bool  `json:"matrix"`         // matrix units: XMX, WMMA, tensor cores
	SubGroups     []int `json:"sub_groups"`     // sizes a kernel may ask for
	MatrixSub     int   `json:"matrix_sub"`     // sub-group size the matrix units need; 0: no need
	AllocMax      int64 `json:"alloc_max"`      // bytes of one device allocation unless relaxed; 0: no cap known
	HostAllocMax  int64 `json:"host_alloc_max"` // bytes of one pinned host allocation that is known to work; 0: no cap known
	FP8           bool  `json:"fp8"`
}

// gib is 2^30 bytes.
const gib = int64(1) << 30

// alloc4G is the largest single allocation of Intel generations before Xe-HPC:
// 4 GiB less two pages (intel/compute-runtime, measured in AUB mode as
// 4294959104).
const alloc4G = 4*gib - 8192

// Identify tells what a PCI id is. Ids nobody listed give the vendor's unknown
// generation and a name that says so, never an error: a new card must not stop
// the program (intel/AI-Playground#175 is what happens otherwise).
func Identify(vendor, device uint16) (name string, arch Arch, chipName string, gbs int) {
	var c chip
	switch vendor {
	case Intel:
		c = pick(intelChips, intelRanges, device)
		if c.arch == "" {
			c = chip{name: "Intel graphics, id unknown to us", arch: IntelOther}
		}
	case AMD:
		c = amdChips[device]
		if c.arch == "" {
			c = chip{name: "AMD graphics, id unknown to us", arch: AMDOther}
		}
	case NVIDIA:
		c = pick(nvidiaChips, nvidiaRanges, device)
		if c.arch == "" {
			c = chip{name: "NVIDIA graphics, id unknown to us", arch: NVIDIAOther}
		}
	default:
		if n, ok := virtualChips[vendor]; ok {
			return n, VirtualArch, "", 0
		}
		return "graphics of an unknown vendor", UnknownArch, "", 0
	}
	return c.name, c.arch, c.chip, c.gbs
}

// pick looks in the table of single ids, then in the ranges.
func pick(one map[uint16]chip, ranges []idRange, device uint16) chip {
	if c, ok := one[device]; ok {
		return c
	}
	for _, r := range ranges {
		if device >= r.lo && device <= r.hi {
			return r.chip
		}
	}
	return chip{}
}

// CapsOf gives what a generation can do. chipName separates the members of a
// generation that differ (MTL-H has no matrix units, ARL-H has).
func CapsOf(arch Arch, chipName string) Caps {
	small := []int{8, 16, 32}
	large := []int{16, 32}
	switch arch {
	case XeLP:
		return Caps{DP4A: true, SubGroups: small, AllocMax: alloc4G, HostAllocMax: 2 * gib}
	case DG1:
		return Caps{DP4A: true, SubGroups: small, AllocMax: alloc4G, HostAllocMax: 2 * gib}
	case Alchemist:
		// No FP64 units; XMX only at sub-group size 8 (IGC fails at 16). One
		// pinned allocation of 4 GiB returned null on an A770, 2 GiB worked
		// (Niko1221/Strata#1545).
		return Caps{FP64Emulation: true, DP4A: true, Matrix: true, MatrixSub: 8, SubGroups: small, AllocMax: alloc4G, HostAllocMax: 2 * gib}
	case MeteorLake:
		return Caps{FP64: true, DP4A: true, SubGroups: small, AllocMax: alloc4G, HostAllocMax: 2 * gib}
	case ArrowLakeH:
		return Caps{FP64: true, DP4A: true, Matrix: true, MatrixSub: 8, SubGroups: small, AllocMax: alloc4G, HostAllocMax: 2 * gib}
	case PonteVecc:
		return Caps{FP64: true, DP4A: true, Matrix: chipName != "PVC-VG", MatrixSub: 16, SubGroups: large}
	case Battlemage, LunarLake, PantherLake, NovaLake:
		return Caps{FP64: true, DP4A: true, Matrix: true, MatrixSub: 16, SubGroups: large}
	case Crescent:
		return Caps{FP64: true, DP4A: true, Matrix: true, MatrixSub: 16, SubGroups: large, FP8: true}
	case IntelLegacy:
		return Caps{SubGroups: small, AllocMax: alloc4G, HostAllocMax: 2 * gib}
	case IntelOther:
		// Only what every Intel generation has: ask the driver for the rest.
		return Caps{AllocMax: alloc4G, HostAllocMax: 2 * gib}
	case GCN:
		return Caps{FP64: true, DP4A: chipName == "gfx906", SubGroups: []int{64}}
	case CDNA:
		return Caps{FP64: true, DP4A: true, Matrix: true, SubGroups: []int{64}, FP8: chipName == "gfx942"}
	case RDNA1:
		return Caps{FP64: true, DP4A: chipName == "gfx1012", SubGroups: []int{32, 64}}
	case RDNA2:
		return Caps{FP64: true, DP4A: true, SubGroups: []int{32, 64}}
	case RDNA3, RDNA35:
		return Caps{FP64: true, DP4A: true, Matrix: true, MatrixSub: 32, SubGroups: []int{32, 64}}
	case RDNA4:
		return Caps{FP64: true, DP4A: true, Matrix: true, MatrixSub: 32, SubGroups: []int{32, 64}, FP8: true}
	case Kepler, Maxwell:
		return Caps{FP64: true, SubGroups: []int{32}}
	case Pascal:
		return Caps{FP64: true, DP4A: chipName != "cc 6.0", SubGroups: []int{32}}
	case Volta, Turing, Ampere:
		return Caps{FP64: true, DP4A: true, Matrix: true, MatrixSub: 32, SubGroups: []int{32}}
	case Ada, Hopper, Blackwell:
		return Caps{FP64: true, DP4A: true, Matrix: true, MatrixSub: 32, SubGroups: []int{32}, FP8: true}
	}
	return Caps{}
}

// Xe2OrNewer says whether an Intel generation is at or above the graphics IP
// version 20.1, where Unified Runtime switches to its second Level Zero adapter
// and to zesInit (oneapi-src/unified-runtime adapter.cpp).
func (a Arch) Xe2OrNewer() bool {
	switch a {
	case Battlemage, LunarLake, PantherLake, NovaLake, Crescent:
		return true
	}
	return false
}

// Capped says whether one allocation is limited to 4 GiB unless relaxed:
// everything Intel before Xe-HPC.
func (a Arch) Capped() bool {
	switch a {
	case XeLP, DG1, Alchemist, MeteorLake, ArrowLakeH:
		return true
	}
	return false
}
