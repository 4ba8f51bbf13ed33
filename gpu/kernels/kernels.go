// Package kernels holds the GPU programs of Outcrop: OpenCL C 1.2 with feature
// macros, one op family a file. Every driver runs this text, or something that
// was generated from it (gen).
//
// What a kernel computes and takes is written above it; package
// gpu/compute/ops has the Go side: argument order and launch geometry.
package kernels

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.cl
var files embed.FS

// Module is one translation unit.
type Module struct {
	Name    string   // "mulvec_q4_k"
	Text    string   // OpenCL C
	Defines []string // "FORMAT=12", in order
	// Waits says that every kernel begins with BEGIN or WAIT of common.cl, so that
	// it may be launched before the one before it has ended.
	Waits bool
	// Large says that the kernels want twice the registers on Intel, at half the
	// threads; without, they spill.
	Large bool
	// Registers is the most that kernels may take of a lane on NVIDIA, where more of them
	// at once are worth more than what a kernel could do with the rest.
	Registers map[string]int
}

// file gives the text of a file of this folder.
func file(name string) string {
	b, err := files.ReadFile(name)
	if err != nil {
		panic("kernels: no file " + name) // names are constants of this package
	}
	return string(b)
}

// join puts files one after the other, each under its name for compilers'
// messages.
func join(names ...string) string {
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "#line 1 \"%s\"\n%s\n", n, file(n))
	}
	return b.String()
}

// units is how weights of all quantised formats lie and are unpacked; the macro
// FORMAT, ggml's number, picks one.
func units() string {
	return join("unit.cl", "plain.cl", "kquants.cl", "levels.cl", "grids.cl", "dot.cl")
}

// times repeats a file with $NC replaced by each of counts.
func times(name string, counts ...int) string {
	var b strings.Builder
	for _, n := range counts {
		fmt.Fprintf(&b, "#line 1 \"%s\"\n%s\n", name, strings.ReplaceAll(file(name), "$NC", fmt.Sprint(n)))
	}
	return b.String()
}

// Light has the kernels whose answer is known: patterns, launches, bandwidth.
func Light() Module { return Module{Name: "light", Waits: true, Text: join("common.cl", "light.cl")} }

// Quantize makes 8-bit activations.
func Quantize() Module {
	return Module{Name: "quantize", Waits: true, Text: join("common.cl", "quantize.cl")}
}

// Repack moves blocks of a format into planes.
func Repack(l Layout) Module {
	return Module{
		Name:    "repack_" + l.word(),
		Text:    join("common.cl") + units() + join("repack.cl"),
		Waits:   true,
		Defines: []string{fmt.Sprintf("FORMAT=%d", l.Type)},
	}
}

// Rows has the norms and the other things done to rows, and the end of a step.
func Rows() Module {
	return Module{Name: "rows", Waits: true, Text: join("common.cl", "quantize.cl", "activate.cl", "norm.cl", "rows.cl", "join.cl", "route.cl", "pick.cl")}
}

// Flash is attention of many tokens on NVIDIA's matrix units, over caches of
// halves with heads of at most 256 values, multiples of 16; cap: scores have one.
func Flash(key, value int, cap bool) Module {
	m := Module{
		Name:    fmt.Sprintf("flash_%d_%d", key, value),
		Text:    join("common.cl", "halves.cl", "flash.cl"),
		Waits:   true,
		Defines: []string{fmt.Sprintf("KD=%d", key), fmt.Sprintf("VD=%d", value)},
	}
	if cap {
		m.Name += "_cap"
		m.Defines = append(m.Defines, "CAP=1")
	}
	return m
}

// Delta is the gated delta net with heads of dim values, and convolutions.
func Delta(dim int) Module {
	return Module{
		Name:    fmt.Sprintf("delta_%d", dim),
		Text:    join("common.cl", "quantize.cl", "delta.cl"),
		Waits:   true,
		Defines: []string{fmt.Sprintf("DN=%d", dim)},
	}
}

// MatMul multiplies weights of a format with many columns: matmul, and for
// floats of few rows matmul_few.
func MatMul(l Layout) Module {
	m := Module{
		Name:    "matmul_" + l.word(),
		Large:   true,
		Text:    join("common.cl", "quantize.cl") + units() + join("floats.cl", "matmul.cl"),
		Waits:   true,
		Defines: []string{fmt.Sprintf("FORMAT=%d", l.Type)},
	}
	if l.Float() {
		m.Text += join("matfew.cl")
	}
	return m
}

// Tile is the shape of a work-group of MMA: waves along rows and columns, and
// tiles of 16 x 8 results of a wave.
type Tile struct {
	Name           string
	WM, WN, MT, NT int
}

// Rows and Cols are what a work-group makes.
func (t Tile) Rows() int { return 16 * t.MT * t.WM }
func (t Tile) Cols() int { return 8 * t.NT * t.WN }

// Tiles are the kernels of MMA: for many columns, and for the few that an expert
// has.
var Tiles = []Tile{{"mma_wide", 2, 4, 4, 4}, {"mma_narrow", 4, 2, 2, 2}}

// MMA is MatMul on NVIDIA's matrix units, for quantised formats and compute
// capability 8.0 and newer: one kernel for each of Tiles.
func MMA(l Layout) Module {
	m := Module{
		Name:    "mma_" + l.word(),
		Text:    join("common.cl", "quantize.cl") + units(),
		Waits:   true,
		Defines: []string{fmt.Sprintf("FORMAT=%d", l.Type)},
	}
	for _, t := range Tiles {
		n := func(i int) string { return fmt.Sprint(i) }
		r := strings.NewReplacer("$NAME", t.Name, "$WM", n(t.WM), "$WN", n(t.WN), "$MT", n(t.MT), "$NT", n(t.NT))
		m.Text += "#line 1 \"mma.cl\"\n" + r.Replace(file("mma.cl"))
	}
	return m
}

// Columns are the column counts that there are Mul modules for.
var Columns = []int{1, 2, 4, 8}
