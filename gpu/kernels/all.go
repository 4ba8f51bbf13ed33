package kernels

// All lists the modules that are built ahead of time for drivers without a
// compiler of OpenCL C: Level Zero (SPIR-V), and CUDA where NVIDIA's OpenCL is
// not installed (PTX); lanes is the size of a wave there. Other head sizes than
// these need OpenCL.
func All(lanes int) []Module {
	list := []Module{Light(), Quantize(), Rows(), Many(), Sample()}
	for _, set := range [][]Layout{floats, layouts} {
		for _, l := range set {
			for _, n := range Columns {
				list = append(list, Mul(l, n, lanes))
			}
			list = append(list, MatMul(l))
			if !l.Float() {
				list = append(list, Repack(l))
			}
		}
	}
	for _, h := range heads {
		if lanes < 16 && h.key > 512 {
			continue // spills on Arc, and no family with such heads runs there yet
		}
		for rows := 1; rows <= AttendRows(h.value, lanes); rows *= 2 {
			for _, q8 := range []bool{false, true} {
				if q8 && (h.key%32 != 0 || h.value%32 != 0) {
					continue
				}
				list = append(list, Attend(Attention{Key: h.key, Value: h.value, Rows: rows, Q8: q8}))
			}
		}
	}
	return append(list, Delta(32), Delta(64), Delta(128), Chunks(32), Chunks(64), Chunks(128))
}

// heads are the sizes of keys and values of a head that modules are built for.
var heads = []struct{ key, value int }{
	{64, 64}, {80, 80}, {96, 96}, {128, 128}, {192, 128}, {256, 256}, {512, 512}, {576, 512},
}

// Units lists the modules for NVIDIA's matrix units, of capability 8.0 and newer, that
// are built ahead of time.
func Units() []Module {
	list := []Module{Halve()}
	for _, set := range [][]Layout{floats, layouts} {
		for _, l := range set {
			if l.Name != "F32" {
				list = append(list, Half(l, FittingTiles(l, HalfTiles)))
			}
			if !l.Float() {
				list = append(list, MMA(l))
			}
		}
	}
	for _, h := range heads {
		if h.key <= 256 {
			list = append(list, Flash(h.key, h.value, false), Flash(h.key, h.value, true))
		}
		for rows := 1; rows <= 16 && UnitsFit(h.key, h.value); rows *= 2 {
			list = append(list, AttendUnits(Attention{Key: h.key, Value: h.value, Rows: rows}))
		}
	}
	return append(list, FineFlash(256, 256, false))
}

// AttendRows is the most query rows that a work-group of Attend takes: a lane
// holds a part of every row's sum in registers.
func AttendRows(value, lanes int) int {
	rows := 1
	for each := (value + lanes - 1) / lanes; rows < 8 && 2*rows*each <= 32; {
		rows *= 2
	}
	return rows
}
