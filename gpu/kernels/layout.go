package kernels

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Layout is a format of weights as the device holds it: planes of bytes, see
// unit.cl. Numbers and names are those of ggml and of engine/quant.
type Layout struct {
	Type   uint32 // ggml's number
	Name   string
	Block  int    // values per block in a file
	Bytes  int    // bytes per block in a file
	Planes [3]int // bytes per 256 values
	Table  string // grid that the format looks up, "" for none
}

// floats are the formats that stay as they are in the file.
var floats = []Layout{
	{0, "F32", 1, 4, [3]int{1024, 0, 0}, ""},
	{1, "F16", 1, 2, [3]int{512, 0, 0}, ""},
	{30, "BF16", 1, 2, [3]int{512, 0, 0}, ""},
}

// layouts lists the quantised formats.
var layouts = []Layout{
	{2, "Q4_0", 32, 18, [3]int{128, 16, 0}, ""},
	{3, "Q4_1", 32, 20, [3]int{128, 32, 0}, ""},
	{6, "Q5_0", 32, 22, [3]int{128, 32, 16}, ""},
	{7, "Q5_1", 32, 24, [3]int{128, 32, 32}, ""},
	{8, "Q8_0", 32, 34, [3]int{128, 128, 16}, ""},
	{10, "Q2_K", 256, 84, [3]int{64, 16, 4}, ""},
	{11, "Q3_K", 256, 110, [3]int{64, 32, 14}, ""},
	{12, "Q4_K", 256, 144, [3]int{128, 16, 0}, ""},
	{13, "Q5_K", 256, 176, [3]int{128, 32, 16}, ""},
	{14, "Q6_K", 256, 210, [3]int{128, 64, 18}, ""},
	{16, "IQ2_XXS", 256, 66, [3]int{64, 2, 0}, "iq2_xxs"},
	{17, "IQ2_XS", 256, 74, [3]int{64, 8, 2}, "iq2_xs"},
	{18, "IQ3_XXS", 256, 98, [3]int{64, 32, 2}, "iq3_xxs"},
	{19, "IQ1_S", 256, 50, [3]int{32, 16, 2}, "iq1"},
	{20, "IQ4_NL", 32, 18, [3]int{128, 16, 0}, ""},
	{21, "IQ3_S", 256, 110, [3]int{64, 32, 14}, "iq3_s"},
	{22, "IQ2_S", 256, 82, [3]int{64, 16, 2}, "iq2_s"},
	{23, "IQ4_XS", 256, 136, [3]int{128, 8, 0}, ""},
	{29, "IQ1_M", 256, 56, [3]int{32, 16, 8}, "iq1"},
	{34, "TQ1_0", 256, 54, [3]int{64, 2, 0}, ""}, // base-3 digits become pairs
	{35, "TQ2_0", 256, 66, [3]int{64, 2, 0}, ""},
	{39, "MXFP4", 32, 17, [3]int{128, 8, 0}, ""},
	{40, "NVFP4", 64, 36, [3]int{128, 16, 0}, ""},
	{41, "Q1_0", 128, 18, [3]int{32, 4, 0}, ""},
	{42, "Q2_0", 64, 18, [3]int{64, 8, 0}, ""},
}

// Layouts lists all quantised formats, Floats the others.
func Layouts() []Layout { return layouts }

// Floats lists F32, F16 and BF16.
func Floats() []Layout { return floats }

// LayoutOf finds the layout of a ggml type; false for types that have none.
func LayoutOf(t uint32) (Layout, bool) {
	for _, list := range [][]Layout{floats, layouts} {
		for _, l := range list {
			if l.Type == t {
				return l, true
			}
		}
	}
	return Layout{}, false
}

// Float says that the format's products take float activations.
func (l Layout) Float() bool { return l.Block == 1 }

// Unit is the number of values that kernels handle at once.
func (l Layout) Unit() int {
	if l.Float() {
		return 8
	}
	return 32
}

func (l Layout) word() string { return strings.ToLower(l.Name) }

// Size is the bytes that n values take on the device: those in the file, and
// up to 15 bytes after each plane.
func (l Layout) Size(n int64) int64 {
	var size int64
	for _, p := range l.Planes {
		size += (n*int64(p)/256 + 15) / 16 * 16
	}
	return size
}

// grids.gz holds the vector tables of the i-quants, a byte a value, one after the
// other in the order of gridSizes. The sets are ggml's
// (MIT licence; engine/quant/NOTICE.md); a test compares them with engine/quant
// and writes the file with -update.
//
//go:embed grids.gz
var gridsGZ []byte

var gridSizes = []struct {
	name  string
	bytes int
}{
	{"iq2_xxs", 256 * 8}, {"iq2_xs", 512 * 8}, {"iq2_s", 1024 * 8},
	{"iq3_xxs", 256 * 4}, {"iq3_s", 512 * 4}, {"iq1", 2048 * 8},
}

var gridBytes = sync.OnceValues(func() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(gridsGZ))
	if err != nil {
		return nil, fmt.Errorf("the embedded grids are damaged: %w", err)
	}
	return io.ReadAll(z)
})

// Grid gives the bytes of a grid by its name in Layout.Table.
func Grid(name string) ([]byte, error) {
	all, err := gridBytes()
	if err != nil {
		return nil, err
	}
	for _, g := range gridSizes {
		if len(all) < g.bytes {
			return nil, fmt.Errorf("the embedded grids end before %s", g.name)
		}
		if g.name == name {
			return all[:g.bytes], nil
		}
		all = all[g.bytes:]
	}
	return nil, fmt.Errorf("no grid %q", name)
}

// Table gives a grid by its name in Layout.Table as unpack of grids.cl reads it: a
// byte a value; or a nibble a value where that is looked up (NVIDIA: IQ1 and IQ2;
// elsewhere IQ1).
func Table(name string, nvidia bool) ([]byte, error) {
	b, err := Grid(name)
	switch {
	case err != nil:
		return nil, err
	case name == "iq1":
		// 0, 4, 8, nibble 2b+h being value 4h+b; for NVIDIA (IQ1_M) the same again, moved up
		n := nibbles(b, func(v byte) byte { return v>>1 - 4 }, 1, 2)
		if nvidia {
			n = append(n, nibbles(b, func(v byte) byte { return v>>1 - 3 }, 1, 2)...)
		}
		return n, nil
	case nvidia && strings.HasPrefix(name, "iq2"):
		return nibbles(b, func(v byte) byte { return v / 17 }, 4, 1), nil // 8, 25, 43
	}
	return b, nil
}

// nibbles makes a nibble of each byte: those of eight values make four bytes, value
// 4h+b being nibble h*half + b*step.
func nibbles(b []byte, code func(v byte) byte, half, step int) []byte {
	n := make([]byte, len(b)/2)
	for i, v := range b {
		at := i%8/4*half + i%4*step
		n[i/8*4+at/2] |= code(v) << (4 * (at % 2))
	}
	return n
}
