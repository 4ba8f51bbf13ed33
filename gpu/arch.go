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
