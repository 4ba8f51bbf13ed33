package gpu

// amdChips maps AMD device ids. The gfx target in chip is what ROCm calls the
// generation; where the kernel's kfd topology tells it, that answer wins.
var amdChips = map[uint16]chip{
	0x744c: {"Radeon RX 7900 XT/XTX/GRE", RDNA3, "gfx1100", 960},
	0x7448: {"Radeon Pro W7900", RDNA3, "gfx1100", 864},
	0x745e: {"Radeon Pro W7800", RDNA3, "gfx1100", 576},
	0x747e: {"Radeon RX 7800 XT/7700 XT", RDNA3, "gfx1101", 624},
	0x7480: {"Radeon RX 7600", RDNA3, "gfx1102", 288},
	0x73bf: {"Radeon RX 6800/6900", RDNA2, "gfx1030", 512},
	0x73a5: {"Radeon RX 6950 XT", RDNA2, "gfx1030", 576},
	0x73df: {"Radeon RX 6700/6750 XT", RDNA2, "gfx1031", 384},
	0x73ff: {"Radeon RX 6600", RDNA2, "gfx1032", 224},
	0x743f: {"Radeon RX 6400/6500 XT", RDNA2, "gfx1034", 144},
	0x164e: {"Radeon Graphics (Raphael)", RDNA2, "gfx1036", 0},
	0x1681: {"Radeon 680M (Rembrandt)", RDNA2, "gfx1035", 0},
	0x7550: {"Radeon RX 9070/XT", RDNA4, "gfx1201", 640},
	0x7551: {"Radeon AI Pro R9700", RDNA4, "gfx1201", 640},
	0x7590: {"Radeon RX 9060 XT", RDNA4, "gfx1200", 320},
	0x1586: {"Radeon 8060S (Strix Halo)", RDNA35, "gfx1151", 256},
	0x150e: {"Radeon 890M (Strix)", RDNA35, "gfx1150", 0},
	0x15bf: {"Radeon 780M (Phoenix)", RDNA3, "gfx1103", 0},
	0x1900: {"Radeon 780M (Hawk Point)", RDNA3, "gfx1103", 0},
	0x731f: {"Radeon RX 5700", RDNA1, "gfx1010", 448},
	0x7340: {"Radeon RX 5500", RDNA1, "gfx1012", 224},
	0x66a0: {"Instinct MI50", GCN, "gfx906", 1024},
	0x66a1: {"Instinct MI50/MI60", GCN, "gfx906", 1024},
	0x66af: {"Radeon VII", GCN, "gfx906", 1024},
	0x687f: {"Radeon RX Vega", GCN, "gfx900", 484},
	0x67df: {"Radeon RX 470/480/570/580", GCN, "gfx803", 256},
	0x1638: {"Radeon Graphics (Cezanne)", GCN, "gfx90c", 0},
	0x1636: {"Radeon Graphics (Renoir)", GCN, "gfx90c", 0},
	0x738c: {"Instinct MI100", CDNA, "gfx908", 1229},
	0x740f: {"Instinct MI210", CDNA, "gfx90a", 1638},
	0x7408: {"Instinct MI250X", CDNA, "gfx90a", 3277},
	0x74a1: {"Instinct MI300X", CDNA, "gfx942", 5300},
	0x74a5: {"Instinct MI325X", CDNA, "gfx942", 6000},
}

// nvidiaRanges tell the generation by the id's high byte. Names and memory come
// from NVML; a table of models would be wrong the day it is written.
var nvidiaRanges = []idRange{
	{0x0fc0, 0x0fff, chip{"NVIDIA (Kepler)", Kepler, "cc 3.0", 0}},
	{0x1180, 0x12bf, chip{"NVIDIA (Kepler)", Kepler, "cc 3.x", 0}},
	{0x1340, 0x13ff, chip{"NVIDIA (Maxwell)", Maxwell, "cc 5.0", 0}},
	{0x1400, 0x143f, chip{"NVIDIA (Maxwell)", Maxwell, "cc 5.2", 0}},
	{0x17c0, 0x17ff, chip{"NVIDIA (Maxwell)", Maxwell, "cc 5.2", 0}},
	{0x15f0, 0x15ff, chip{"NVIDIA Tesla P100", Pascal, "cc 6.0", 0}},
	{0x1b00, 0x1d7f, chip{"NVIDIA (Pascal)", Pascal, "cc 6.1", 0}},
	{0x1d80, 0x1dff, chip{"NVIDIA (Volta)", Volta, "cc 7.0", 0}},
	{0x1e00, 0x1fff, chip{"NVIDIA (Turing)", Turing, "cc 7.5", 0}},
	{0x2180, 0x21ff, chip{"NVIDIA GTX 16 (Turing)", Turing, "cc 7.5", 0}},
	{0x2000, 0x20ff, chip{"NVIDIA A100", Ampere, "cc 8.0", 0}},
	{0x2200, 0x25ff, chip{"NVIDIA (Ampere)", Ampere, "cc 8.6", 0}},
	{0x2600, 0x28ff, chip{"NVIDIA (Ada)", Ada, "cc 8.9", 0}},
	{0x2300, 0x23ff, chip{"NVIDIA (Hopper)", Hopper, "cc 9.0", 0}},
	{0x2900, 0x29ff, chip{"NVIDIA B200", Blackwell, "cc 10.0", 0}},
	{0x2e12, 0x2e12, chip{"NVIDIA GB10", Blackwell, "cc 12.1", 0}},
	{0x2b00, 0x2fff, chip{"NVIDIA (Blackwell)", Blackwell, "cc 12.0", 0}},
}

// nvidiaChips names the few models whose bandwidth gives a "what to expect"
// line without asking NVML.
var nvidiaChips = map[uint16]chip{
	0x2684: {"GeForce RTX 4090", Ada, "cc 8.9", 1008},
	0x2204: {"GeForce RTX 3090", Ampere, "cc 8.6", 936},
	0x2b85: {"GeForce RTX 5090", Blackwell, "cc 12.0", 1792},
	0x2803: {"GeForce RTX 4060 Ti", Ada, "cc 8.9", 288},
	0x2805: {"GeForce RTX 4060 Ti 16GB", Ada, "cc 8.9", 288},
	0x2335: {"NVIDIA H200", Hopper, "cc 9.0", 4800},
	0x2330: {"NVIDIA H100", Hopper, "cc 9.0", 3350},
}

// virtualChips are devices with no graphics processor behind them.
var virtualChips = map[uint16]string{
	Virtio: "virtio graphics (virtual machine)",
	VMware: "VMware graphics (virtual machine)",
	QXL:    "QXL graphics (virtual machine)",
	Bochs:  "standard VGA (virtual machine)",
	HyperV: "Hyper-V graphics (virtual machine)",
	ASpeed: "ASPEED (server management)",
	Matrox: "Matrox (server management)",
}
