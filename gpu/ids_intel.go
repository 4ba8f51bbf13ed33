package gpu

// chip is one row of an id table.
type chip struct {
	name string
	arch Arch
	chip string
	gbs  int // nominal memory bandwidth in GB/s; 0: not in the table
}

// intelChips maps PCI device ids of Intel graphics to what they are. Ids,
// names and generations are those of intel/compute-runtime (devices_base.inl),
// bandwidth is bus width times data rate. Memory sizes are not here on purpose:
// the A770 has one id for 8 and 16 GB, so sizes come from the kernel.
var intelChips = map[uint16]chip{
	// Alchemist, desktop and mobile
	0x56a0: {"Arc A770", Alchemist, "DG2-G10", 560},
	0x56a1: {"Arc A750", Alchemist, "DG2-G10", 512},
	0x56a2: {"Arc A580", Alchemist, "DG2-G10", 512},
	0x56af: {"Arc A760A", Alchemist, "DG2-G10", 512},
	0x56be: {"Arc A750E", Alchemist, "DG2-G10", 512},
	0x56bf: {"Arc A580E", Alchemist, "DG2-G10", 512},
	0x56a5: {"Arc A380", Alchemist, "DG2-G11", 186},
	0x56a6: {"Arc A310", Alchemist, "DG2-G11", 124},
	0x56ba: {"Arc A380E", Alchemist, "DG2-G11", 186},
	0x56bb: {"Arc A310E", Alchemist, "DG2-G11", 124},
	0x56bc: {"Arc A370E", Alchemist, "DG2-G11", 112},
	0x56bd: {"Arc A350E", Alchemist, "DG2-G11", 112},
	0x5690: {"Arc A770M", Alchemist, "DG2-G10", 512},
	0x5691: {"Arc A730M", Alchemist, "DG2-G10", 336},
	0x5692: {"Arc A550M", Alchemist, "DG2-G10", 224},
	0x5693: {"Arc A370M", Alchemist, "DG2-G11", 112},
	0x5694: {"Arc A350M", Alchemist, "DG2-G11", 112},
	0x5696: {"Arc A570M", Alchemist, "DG2-G12", 224},
	0x5697: {"Arc A530M", Alchemist, "DG2-G12", 224},
	0x56b0: {"Arc Pro A30M", Alchemist, "DG2-G11", 112},
	0x56b1: {"Arc Pro A40/A50", Alchemist, "DG2-G11", 192},
	0x56b2: {"Arc Pro A60M", Alchemist, "DG2-G12", 224},
	0x56b3: {"Arc Pro A60", Alchemist, "DG2-G12", 384},
	0x56c0: {"Flex 170", Alchemist, "DG2-G10", 512},
	0x56c1: {"Flex 140", Alchemist, "DG2-G11", 186},
	0x56c2: {"Flex 170V", Alchemist, "DG2-G10", 0},
	0x5695: {"Arc (DG2)", Alchemist, "DG2-G11", 0},
	0x56a3: {"Arc (DG2)", Alchemist, "DG2-G12", 0},
	0x56a4: {"Arc (DG2)", Alchemist, "DG2-G12", 0},
	0x4f80: {"Arc (DG2)", Alchemist, "DG2-G10", 0},
	0x4f81: {"Arc (DG2)", Alchemist, "DG2-G10", 0},
	0x4f82: {"Arc (DG2)", Alchemist, "DG2-G10", 0},
	0x4f83: {"Arc (DG2)", Alchemist, "DG2-G10", 0},
	0x4f84: {"Arc (DG2)", Alchemist, "DG2-G10", 0},
	0x4f85: {"Arc (DG2)", Alchemist, "DG2-G12", 0},
	0x4f86: {"Arc (DG2)", Alchemist, "DG2-G12", 0},
	0x4f87: {"Arc (DG2)", Alchemist, "DG2-G11", 0},
	0x4f88: {"Arc (DG2)", Alchemist, "DG2-G11", 0},

	// Battlemage
	0xe20b: {"Arc B580", Battlemage, "BMG-G21", 456},
	0xe209: {"Arc B580", Battlemage, "BMG-G21", 456},
	0xe20c: {"Arc B570", Battlemage, "BMG-G21", 380},
	0xe211: {"Arc Pro B60", Battlemage, "BMG-G21", 456},
	0xe212: {"Arc Pro B50", Battlemage, "BMG-G21", 224},
	0xe202: {"Arc (BMG-G21)", Battlemage, "BMG-G21", 0},
	0xe20d: {"Arc (BMG-G21)", Battlemage, "BMG-G21", 0},
	0xe210: {"Arc (BMG-G21)", Battlemage, "BMG-G21", 0},
	0xe215: {"Arc (BMG-G21)", Battlemage, "BMG-G21", 0},
	0xe216: {"Arc (BMG-G21)", Battlemage, "BMG-G21", 0},
	0xe220: {"Arc (BMG-G31)", Battlemage, "BMG-G31", 0},
	0xe221: {"Arc (BMG-G31)", Battlemage, "BMG-G31", 0}, // Strata's table calls it a second B60; NEO lists it under G31
	0xe222: {"Arc Pro B65", Battlemage, "BMG-G31", 608},
	0xe223: {"Arc Pro B70", Battlemage, "BMG-G31", 608}, // Strata#709 says G21; NEO lists it under G31

	// data centre
	0x0bd4: {"Max 1550VG", PonteVecc, "PVC-VG", 3277},
	0x0bd5: {"Max 1550", PonteVecc, "PVC", 3277},
	0x0bd6: {"Max 1550", PonteVecc, "PVC", 3277},
	0x0bd7: {"Max 1350", PonteVecc, "PVC", 0},
	0x0bd8: {"Max 1350", PonteVecc, "PVC", 0},
	0x0bd9: {"Max 1100", PonteVecc, "PVC", 1229},
	0x0bda: {"Max 1100", PonteVecc, "PVC", 1229},
	0x0bdb: {"Max 1100", PonteVecc, "PVC", 1229},
	0x0b69: {"Max 1450", PonteVecc, "PVC", 3277},
	0x0b6e: {"Max 1100C", PonteVecc, "PVC", 1229},

	0x674c: {"Crescent Island", Crescent, "CRI", 0},
	0x674d: {"Crescent Island", Crescent, "CRI", 0},
	0x674e: {"Crescent Island", Crescent, "CRI", 0},
	0x674f: {"Crescent Island", Crescent, "CRI", 0},
	0x6750: {"Crescent Island", Crescent, "CRI", 0},

	0x4905: {"Iris Xe MAX", DG1, "DG1", 68},
	0x4906: {"Iris Xe Pod", DG1, "DG1", 68},
	0x4907: {"SG-18M", DG1, "DG1", 68},
	0x4908: {"Iris Xe Graphics (DG1)", DG1, "DG1", 68},
	0x4909: {"Iris Xe MAX 100", DG1, "DG1", 68},

	// integrated, Xe-LPG
	0x7d55: {"Arc Graphics (Meteor Lake-H)", MeteorLake, "MTL-H", 0},
	0x7dd5: {"Graphics (Meteor Lake-H)", MeteorLake, "MTL-H", 0},
	0x7d40: {"Graphics (Meteor Lake-U)", MeteorLake, "MTL-U", 0},
	0x7d45: {"Graphics (Meteor Lake-U)", MeteorLake, "MTL-U", 0},
	0x7d67: {"Graphics (Arrow Lake-S)", MeteorLake, "ARL-S", 0},
	0x7d41: {"Graphics (Arrow Lake-U)", MeteorLake, "ARL-U", 0},
	0x7d51: {"Arc 130T/140T (Arrow Lake-H)", ArrowLakeH, "ARL-H", 0},
	0x7dd1: {"Graphics (Arrow Lake-H)", ArrowLakeH, "ARL-H", 0},

	// integrated, Xe2 and Xe3
	0x64a0: {"Arc 130V/140V (Lunar Lake)", LunarLake, "LNL", 136},
	0x6420: {"Graphics (Lunar Lake)", LunarLake, "LNL", 136},
	0x64b0: {"Graphics (Lunar Lake)", LunarLake, "LNL", 136},
	0xb080: {"Arc B390 (Panther Lake)", PantherLake, "PTL", 150},
	0xb082: {"Arc B390 (Panther Lake)", PantherLake, "PTL", 150},
	0xb081: {"Arc B370 (Panther Lake)", PantherLake, "PTL", 150},
	0xb083: {"Arc B370 (Panther Lake)", PantherLake, "PTL", 150},
	0xb084: {"Graphics (Panther Lake)", PantherLake, "PTL-H", 0},
	0xb085: {"Graphics (Panther Lake)", PantherLake, "PTL-H", 0},
	0xb086: {"Graphics (Panther Lake)", PantherLake, "PTL-H", 0},
	0xb087: {"Graphics (Panther Lake)", PantherLake, "PTL-H", 0},
	0xb08f: {"Graphics (Panther Lake)", PantherLake, "PTL-H", 0},
	0xb0a0: {"Graphics (Panther Lake)", PantherLake, "PTL-H", 0},
	0xb0b0: {"Graphics (Panther Lake)", PantherLake, "PTL-H", 0},
	0xb090: {"Graphics (Panther Lake-U)", PantherLake, "PTL-U", 0},
	0xfd80: {"Graphics (Wildcat Lake)", PantherLake, "WCL", 0},
	0xfd81: {"Graphics (Wildcat Lake)", PantherLake, "WCL", 0},
}

// idRange is a run of device ids of one generation, for families whose single
// models do not matter to a recipe.
type idRange struct {
	lo, hi uint16
	chip
}

// intelRanges are asked after intelChips.
var intelRanges = []idRange{
	{0xd740, 0xd745, chip{"Graphics (Nova Lake)", NovaLake, "NVL-S/U", 0}},
	{0xd74a, 0xd74b, chip{"Graphics (Nova Lake-P)", NovaLake, "NVL-P", 0}},
	{0xd750, 0xd75f, chip{"Graphics (Nova Lake-P)", NovaLake, "NVL-P", 0}},
	{0x9a40, 0x9a7f, chip{"Iris Xe / UHD (Tiger Lake)", XeLP, "TGL", 0}},
	{0x9ac0, 0x9aff, chip{"UHD (Tiger Lake)", XeLP, "TGL", 0}},
	{0x46d0, 0x46d4, chip{"UHD (Alder Lake-N)", XeLP, "ADL-N", 0}},
	{0x4680, 0x469f, chip{"UHD 7xx (Alder Lake-S)", XeLP, "ADL-S", 0}},
	{0x4626, 0x462a, chip{"Iris Xe / UHD (Alder Lake-P)", XeLP, "ADL-P", 0}},
	{0x46a0, 0x46c3, chip{"Iris Xe / UHD (Alder Lake-P)", XeLP, "ADL-P", 0}},
	{0x4c80, 0x4c9f, chip{"UHD 7xx (Rocket Lake)", XeLP, "RKL", 0}},
	{0xa720, 0xa7af, chip{"Iris Xe / UHD (Raptor Lake)", XeLP, "RPL", 0}},
	{0xa780, 0xa78f, chip{"UHD 7xx (Raptor Lake-S)", XeLP, "RPL-S", 0}},
	{0x0102, 0x0176, chip{"HD Graphics (Sandy/Ivy Bridge)", IntelLegacy, "GEN7", 0}},
	{0x0402, 0x042e, chip{"HD Graphics 4x00 (Haswell)", IntelLegacy, "HSW", 0}},
	{0x0a02, 0x0a2e, chip{"HD Graphics (Haswell-U)", IntelLegacy, "HSW", 0}},
	{0x0d02, 0x0d2e, chip{"Iris Pro (Haswell)", IntelLegacy, "HSW", 0}},
	{0x1602, 0x163e, chip{"HD/Iris (Broadwell)", IntelLegacy, "BDW", 0}},
	{0x1902, 0x193d, chip{"HD Graphics 5xx (Skylake)", IntelLegacy, "SKL", 0}},
	{0x5902, 0x593b, chip{"HD/UHD 6xx (Kaby Lake)", IntelLegacy, "KBL", 0}},
	{0x3e90, 0x3eaf, chip{"UHD 6xx (Coffee Lake)", IntelLegacy, "CFL", 0}},
	{0x9b21, 0x9bf6, chip{"UHD 6xx (Comet Lake)", IntelLegacy, "CML", 0}},
	{0x8a50, 0x8a71, chip{"Iris Plus (Ice Lake)", IntelLegacy, "ICL", 0}},
	{0x4e51, 0x4e71, chip{"UHD (Jasper Lake)", IntelLegacy, "JSL", 0}},
	{0x4541, 0x4571, chip{"UHD (Elkhart Lake)", IntelLegacy, "EHL", 0}},
	{0x3184, 0x3185, chip{"UHD 60x (Gemini Lake)", IntelLegacy, "GLK", 0}},
	{0x5a84, 0x5a85, chip{"HD 50x (Apollo Lake)", IntelLegacy, "APL", 0}},
}
