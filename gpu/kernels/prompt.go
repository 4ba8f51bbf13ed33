package kernels

import (
	"fmt"
	"strings"
)

// Chunks is the gated delta net over many tokens, with heads of 32, 64 or 128 values.
func Chunks(dim int) Module {
	return Module{
		Name:    fmt.Sprintf("chunks_%d", dim),
		Text:    join("common.cl", "quantize.cl", "delta.cl", "chunk.cl"),
		Waits:   true,
		Defines: []string{fmt.Sprintf("DN=%d", dim)},
	}
}

// TileHalf is the shape of a work-group of Half: waves along rows and columns,
// tiles of 16 x 8 results of a wave, the stages of activations on their way, and
// how many steps of weights are (0: one).
// With Lanes it is Intel's: waves of so many work-items, tiles of Lanes x 8.
type TileHalf struct {
	Name                   string
	WM, WN, MT, NT, Stages int
	Ahead                  int
	Lanes                  int
}

// Rows and Cols are what a work-group makes.
func (t TileHalf) Rows() int {
	if t.Lanes > 0 {
		return t.Lanes * t.MT * t.WM
	}
	return 16 * t.MT * t.WM
}
func (t TileHalf) Cols() int { return 8 * t.NT * t.WN }

// Items are the work-items of a work-group.
func (t TileHalf) Items() int {
	if t.Lanes > 0 {
		return t.Lanes * t.WM * t.WN
	}
	return 32 * t.WM * t.WN
}

// HalfTiles are the kernels of Half for NVIDIA, by falling width.
var HalfTiles = []TileHalf{{Name: "tile_128", WM: 2, WN: 2, MT: 4, NT: 8, Stages: 3}, {Name: "tile_64", WM: 2, WN: 2, MT: 4, NT: 4, Stages: 3}, {Name: "tile_32", WM: 4, WN: 1, MT: 2, NT: 4, Stages: 3}}

// DPASTiles are those for Intel, with subgroups of 8 or 16.
func DPASTiles(lanes int) []TileHalf {
	each := 32 / lanes
	return []TileHalf{
		{Name: "tile_128", WM: 4, WN: 4, MT: each, NT: 4, Stages: 2, Lanes: lanes},
		{Name: "tile_32", WM: 8, WN: 1, MT: 16 / lanes, NT: 4, Stages: 2, Lanes: lanes},
	}
}

// FittingTiles are those of tiles whose tables and tiles fit into 48 KiB of local memory.
func FittingTiles(l Layout, tiles []TileHalf) (fit []TileHalf) {
	table := 0
	for _, g := range gridSizes {
		if g.name == l.Table {
			table = g.bytes
		}
	}
	for _, t := range tiles {
		if 64*(2*t.Rows()+t.Stages*t.Cols())+12*t.Cols()+64+table <= 48<<10 {
			fit = append(fit, t)
		}
	}
	return fit
}

// Half is MatMul on matrix units over halves, for weights that are not F32:
// NVIDIA's of compute capability 8.0 and newer, and Intel's; one kernel for each
// of tiles. Its activations are made by Halve.
func Half(l Layout, tiles []TileHalf) Module {
	m := Module{
		Name:    "half_" + l.word(),
		Text:    join("common.cl", "halves.cl", "quantize.cl") + units() + join("floats.cl"),
		Waits:   true,
		Large:   true,
		Defines: []string{fmt.Sprintf("FORMAT=%d", l.Type)},
	}
	for _, t := range tiles {
		n := func(i int) string { return fmt.Sprint(i) }
		r := strings.NewReplacer("$NAME", t.Name, "$WM", n(t.WM), "$WN", n(t.WN), "$MT", n(t.MT), "$NT", n(t.NT), "$ST", n(t.Stages), "$SW", n(t.Stages-2), "$AH", n(max(1, t.Ahead)))
		m.Text += "#line 1 \"tile.cl\"\n" + r.Replace(file("tile.cl"))
	}
	return m
}

// Halve makes activations of halves.
func Halve() Module {
	return Module{Name: "halve", Waits: true, Text: join("common.cl", "halves.cl", "halve.cl")}
}

// Sample draws the next token.
func Sample() Module {
	return Module{Name: "sample", Waits: true, Text: join("common.cl", "sample.cl")}
}

// Many has what is done to the rows of prompts otherwise than to a few: the end of
// attention, and gates.
func Many() Module {
	return Module{Name: "many", Waits: true, Text: join("common.cl", "quantize.cl", "activate.cl", "together.cl", "joinrows.cl", "glurows.cl")}
}

// FineFlash is Flash for scores that are not scaled down: queries are sums of two
// halves.
func FineFlash(key, value int, cap bool) Module {
	m := Flash(key, value, cap)
	m.Name += "_fine"
	m.Defines = append(m.Defines, "FINE=1")
	return m
}
