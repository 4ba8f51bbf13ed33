package kernels

import "fmt"

// AttendUnits is Attend on NVIDIA's matrix units (compute capability 8.0), with
// heads whose sizes UnitsFit takes and at most 16 query rows a work-group.
func AttendUnits(a Attention) Module {
	m := Module{
		Name:    fmt.Sprintf("attend_units_%d_%d_%d", a.Key, a.Value, a.Rows),
		Text:    join("common.cl", "halves.cl", "heads.cl", "decode.cl"),
		Waits:   true,
		Defines: []string{fmt.Sprintf("KD=%d", a.Key), fmt.Sprintf("VD=%d", a.Value), fmt.Sprintf("GH=%d", a.Rows)},
	}
	if a.Q8 {
		m.Name += "_q8"
		m.Defines = append(m.Defines, "KV_Q8=1")
	}
	return m
}

// UnitsFit tells whether AttendUnits has room for heads of these sizes in registers.
func UnitsFit(key, value int) bool {
	return key%64 == 0 && key <= 256 && (value == 64 || value == 128 || value == 256)
}
