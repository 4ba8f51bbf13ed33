package kernels

import "fmt"

// Shape is how the products with few columns are cut, see mulvec.cl, mulglu.cl
// and muldown.cl: waves of a work-group, rows that a wave or a work-group takes at
// once, fetches of a wave on their way.
type Shape struct {
	Rows, Waves, Depth            int
	GLUItems, GLURows, GLUDepth   int
	DownRows, DownWaves, DownDeep int
}

// MaxTurns is the most row groups that a wave of mulvec takes (TURNS there).
const MaxTurns = 16

// ShapeOf is the shape of the products of a format with up to `columns` columns,
// on a device with waves of `lanes`: 8 and 16 are Intel's.
func ShapeOf(l Layout, columns, lanes int) Shape {
	s := Shape{Rows: l.Rows, Waves: 4, Depth: 2, GLUItems: 256, GLURows: 2, GLUDepth: 2, DownRows: 2, DownWaves: 4, DownDeep: 2}
	if lanes >= 32 {
		s.DownRows = 4
	}
	if columns > 1 { // there is work to hide the fetches
		s.Depth, s.GLUDepth = 1, 1
		if lanes >= 32 {
			s.Rows = 4
		}
	}
	return s
}

// Mul multiplies weights of a format with up to `columns` columns: mulvec and
// mulglu with the count in their name, and for one column muldown. A module for
// each count, as a model that drafts nothing needs one only.
func Mul(l Layout, columns, lanes int) Module {
	return MulShaped(l, columns, ShapeOf(l, columns, lanes))
}

// MulShaped is Mul with a shape of the caller's choice.
func MulShaped(l Layout, columns int, s Shape) Module {
	m := Module{
		Name:  fmt.Sprintf("mul_%s_%d_%d", l.word(), columns, s.Rows),
		Large: columns > 1,
		Text:  join("common.cl", "quantize.cl", "activate.cl", "formats.cl", "floats.cl") + times("mulvec.cl", columns) + times("mulglu.cl", columns),
		Waits: true,
		Defines: []string{fmt.Sprintf("FORMAT=%d", l.Type), fmt.Sprintf("NR=%d", s.Rows), fmt.Sprintf("WAVES=%d", s.Waves), fmt.Sprintf("DEPTH=%d", s.Depth), "STREAM=1",
			fmt.Sprintf("GLU_ITEMS=%d", s.GLUItems), fmt.Sprintf("GLU_ROWS=%d", s.GLURows), fmt.Sprintf("GLU_DEPTH=%d", s.GLUDepth)},
	}
	if columns == 1 {
		m.Text += join("muldown.cl")
		m.Defines = append(m.Defines, fmt.Sprintf("DOWN_ROWS=%d", s.DownRows), fmt.Sprintf("DOWN_WAVES=%d", s.DownWaves), fmt.Sprintf("DOWN_DEPTH=%d", s.DownDeep))
	}
	return m
}
