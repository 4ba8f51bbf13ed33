package kernels

import (
	"fmt"
	"strings"
)

// Shape is how the products with few columns are cut, see mulvec.cl, mulglu.cl
// and muldown.cl.
type Shape struct {
	Waves     int // of a work-group of mulvec
	Vec       Cut // of a wave of mulvec
	Registers int // most of a lane of mulvec on NVIDIA; 0: as it comes
	Given     int // waves of mulvec that a compute unit is given at once; 0: as the set has it
	GLUItems  int // of a work-group of mulglu and mulexperts
	GLU       Cut // of a wave of mulglu, which has rows in pairs
	Experts   Cut // of a wave of mulexperts
	DownWaves int // of a work-group of muldown
	Down      Cut // of a wave of muldown, Units is 1
}

// Cut is what a wave takes at once: rows, units of a row for each lane; and how
// many such steps are on their way.
type Cut struct{ Rows, Units, Depth int }

// MaxTurns is the most row groups that a wave of mulvec takes (TURNS there).
const MaxTurns = 16

// cuts are those of one column on devices with waves of 32, as measured on an H200
// (engine/BENCH.md); others take two rows and two steps.
var cuts = map[string]Cut{
	"F32": {2, 2, 1}, "F16": {4, 1, 2}, "BF16": {4, 1, 2}, "Q8_0": {4, 1, 1},
	"Q4_0": {4, 2, 1}, "Q4_1": {2, 2, 1}, "Q5_0": {4, 1, 1}, "Q5_1": {4, 1, 1},
	"Q4_K": {2, 2, 1}, "Q5_K": {2, 2, 1}, "Q6_K": {4, 1, 1}, "Q2_K": {4, 1, 1}, "Q3_K": {4, 1, 1},
	"TQ1_0": {4, 2, 1}, "TQ2_0": {4, 2, 1}, "Q2_0": {4, 2, 1}, "Q1_0": {4, 2, 1},
	"IQ4_NL": {4, 1, 1}, "IQ4_XS": {2, 1, 2}, "MXFP4": {4, 1, 1}, "NVFP4": {2, 2, 1},
	"IQ3_S": {4, 1, 1}, "IQ3_XXS": {4, 1, 1}, "IQ2_XXS": {4, 1, 2}, "IQ2_XS": {4, 1, 2}, "IQ2_S": {4, 1, 2},
	"IQ1_S": {4, 1, 2}, "IQ1_M": {4, 1, 2},
}

// registers are the most of mulvec with one column on NVIDIA where it is not 72, which
// lets a multiprocessor hold 28 waves and takes nothing from most formats; 0: no limit.
var registers = map[string]int{"F32": 0, "Q4_0": 96, "Q4_1": 0, "Q2_K": 0, "TQ1_0": 80, "TQ2_0": 80, "Q2_0": 80, "Q1_0": 96, "IQ4_XS": 0}

// ShapeOf is the shape of the products of a format with up to `columns` columns,
// on a device with waves of `lanes`: 8 and 16 are Intel's, which has fewer
// registers for a lane.
func ShapeOf(l Layout, columns, lanes int) Shape {
	two := Cut{2, 1, 2}
	s := Shape{Waves: 4, Vec: two, GLUItems: 256, GLU: two, Experts: two, DownWaves: 4, Down: two}
	if lanes >= 32 {
		s.Experts, s.Down = Cut{4, 2, 1}, Cut{4, 1, 2}
		if c, ok := cuts[l.Name]; ok {
			s.Vec = c
		}
		if columns == 1 {
			s.Registers = 72
			if n, ok := registers[l.Name]; ok {
				s.Registers = n
			}
		}
	}
	if columns > 1 { // there is work to hide the fetches
		s.Vec, s.GLU = Cut{2, 1, 1}, Cut{2, 1, 1}
		if lanes >= 32 {
			s.Vec.Rows = 4
		}
	}
	return s
}

// Mul multiplies weights of a format with up to `columns` columns: mulvec and
// mulglu with the count in their name, and for one column mulexperts and muldown.
// A module for each count, as a model that drafts nothing needs one only.
func Mul(l Layout, columns, lanes int) Module {
	return MulShaped(l, columns, ShapeOf(l, columns, lanes))
}

// MulShaped is Mul with a shape of the caller's choice.
func MulShaped(l Layout, columns int, s Shape) Module {
	m := Module{
		Name:  fmt.Sprintf("mul_%s_%d", l.word(), columns),
		Large: columns > 1,
		Text:  join("common.cl", "quantize.cl", "activate.cl") + units() + join("floats.cl", "vec.cl") + times("mulvec.cl", columns) + glu(fmt.Sprint("mulglu_", columns), "GLU", columns),
		Waits: true,
		Defines: []string{fmt.Sprintf("FORMAT=%d", l.Type), "STREAM=1", fmt.Sprintf("WAVES=%d", s.Waves),
			fmt.Sprintf("NR=%d", s.Vec.Rows), fmt.Sprintf("UNITS=%d", s.Vec.Units), fmt.Sprintf("DEPTH=%d", s.Vec.Depth),
			fmt.Sprintf("GLU_ITEMS=%d", s.GLUItems)},
	}
	m.Registers = map[string]int{"mulexperts": 128} // two work-groups at once
	if s.Registers > 0 {
		m.Registers[fmt.Sprint("mulvec_", columns)] = s.Registers
	}
	m.Defines = append(m.Defines, s.GLU.defines("GLU")...)
	if columns == 1 {
		m.Text += glu("mulexperts", "EXPERTS", 1) + join("muldown.cl")
		m.Defines = append(m.Defines, s.Experts.defines("EXPERTS")...)
		m.Defines = append(m.Defines, fmt.Sprintf("DOWN_WAVES=%d", s.DownWaves))
		m.Defines = append(m.Defines, s.Down.defines("DOWN")...)
	}
	return m
}

func (c Cut) defines(prefix string) []string {
	return []string{fmt.Sprintf("%s_ROWS=%d", prefix, c.Rows), fmt.Sprintf("%s_UNITS=%d", prefix, c.Units), fmt.Sprintf("%s_DEPTH=%d", prefix, c.Depth)}
}

// glu is mulglu.cl as a kernel of the given name, cut by the macros with prefix.
func glu(name, prefix string, columns int) string {
	r := strings.NewReplacer("$NAME", name, "$ROWS", prefix+"_ROWS", "$UNITS", prefix+"_UNITS", "$DEPTH", prefix+"_DEPTH", "$NC", fmt.Sprint(columns))
	return "#line 1 \"mulglu.cl\"\n" + r.Replace(file("mulglu.cl"))
}
