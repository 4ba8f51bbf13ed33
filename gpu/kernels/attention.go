package kernels

import "fmt"

// Attention says what an attention module is made for.
type Attention struct {
	Key, Value int  // sizes of a head
	Rows       int  // query rows of a work-group
	Q8         bool // caches of 8 bits, else halves
}

// Attend is attention over the caches.
func Attend(a Attention) Module {
	m := a.module("attend", "common.cl", "heads.cl", "turn.cl", "attend.cl")
	m.Large = a.Key > 256 || a.Value > 256
	return m
}

// AttendUnits is Attend on NVIDIA's matrix units (compute capability 8.0), with
// heads whose sizes UnitsFit takes and at most 16 query rows a work-group.
func AttendUnits(a Attention) Module {
	return a.module("attend_units", "common.cl", "halves.cl", "heads.cl", "decode.cl")
}

// UnitsFit tells whether AttendUnits has room for heads of these sizes in registers.
func UnitsFit(key, value int) bool {
	return key%64 == 0 && key <= 256 && (value == 64 || value == 128 || value == 256)
}

func (a Attention) module(name string, files ...string) Module {
	m := Module{
		Name:    fmt.Sprintf("%s_%d_%d_%d", name, a.Key, a.Value, a.Rows),
		Text:    join(files...),
		Waits:   true,
		Defines: []string{fmt.Sprintf("KD=%d", a.Key), fmt.Sprintf("VD=%d", a.Value), fmt.Sprintf("GH=%d", a.Rows)},
	}
	if a.Q8 {
		m.Name += "_q8"
		m.Defines = append(m.Defines, "KV_Q8=1")
	}
	return m
}
