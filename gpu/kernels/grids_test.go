package kernels_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"flag"
	"os"
	"testing"

	"outcrop/engine/quant"
	"outcrop/gpu/kernels"
)

var update = flag.Bool("update", false, "write grids.gz")

// TestGrids reads the vectors of every grid out of engine/quant, by decoding
// blocks that hold one vector number after the other with scale 1 and no signs.
func TestGrids(t *testing.T) {
	type grid struct {
		name    string
		typ     quant.Type
		count   int
		dim     int
		block   func(b []byte, n int) // vector n as the first of a block
		one     float32               // what a component of 1 decodes to
		encoded func(v float32) byte
	}
	plain := func(v float32) byte { return byte(v) }
	half1 := func(b []byte) { binary.LittleEndian.PutUint16(b, 0x3c00) }
	grids := []grid{
		{"iq2_xxs", quant.IQ2_XXS, 256, 8, func(b []byte, n int) { half1(b); b[2] = byte(n) }, 0.125, plain},
		{"iq2_xs", quant.IQ2_XS, 512, 8, func(b []byte, n int) { half1(b); binary.LittleEndian.PutUint16(b[2:], uint16(n)) }, 0.125, plain},
		{"iq2_s", quant.IQ2_S, 1024, 8, func(b []byte, n int) { half1(b); b[2] = byte(n); b[66] = byte(n >> 8) }, 0.125, plain},
		{"iq3_xxs", quant.IQ3_XXS, 256, 4, func(b []byte, n int) { half1(b); b[2] = byte(n) }, 0.25, plain},
		{"iq3_s", quant.IQ3_S, 512, 4, func(b []byte, n int) { half1(b); b[2] = byte(n); b[66] = byte(n >> 8) }, 1, plain},
		// value = component + 1/8; on the device 8*component + 16
		{"iq1", quant.IQ1_S, 2048, 8, func(b []byte, n int) {
			half1(b)
			b[2] = byte(n)
			binary.LittleEndian.PutUint16(b[34:], uint16(n>>8))
		}, 1, func(v float32) byte { return byte(8*(v-0.125) + 16) }},
	}
	var all []byte
	for _, g := range grids {
		f, err := quant.Of(g.typ)
		if err != nil {
			t.Fatal(err)
		}
		var want []byte
		v := make([]float32, f.Block)
		for n := range g.count {
			b := make([]byte, f.Bytes)
			g.block(b, n)
			f.Decode(v, b)
			for _, x := range v[:g.dim] {
				want = append(want, g.encoded(x/g.one))
			}
		}
		all = append(all, want...)
		if *update {
			continue
		}
		got, err := kernels.Grid(g.name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("grid %s differs from engine/quant", g.name)
		}
	}
	if *update {
		var z bytes.Buffer
		w, _ := gzip.NewWriterLevel(&z, gzip.BestCompression)
		w.Write(all)
		w.Close()
		if err := os.WriteFile("grids.gz", z.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTables looks the values of every grid up in what kernels get of it.
func TestTables(t *testing.T) {
	nibble := func(b []byte, entry, i int) byte { return b[4*entry+i/2] >> (4 * (i % 2)) & 15 }
	for _, name := range []string{"iq2_xxs", "iq2_xs", "iq2_s", "iq3_xxs", "iq3_s", "iq1"} {
		grid, err := kernels.Grid(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, nvidia := range []bool{false, true} {
			table, err := kernels.Table(name, nvidia)
			if err != nil {
				t.Fatal(err)
			}
			for n, want := range grid {
				e, i := n/8, n%8
				swapped := i%4*2 + i/4
				var got byte
				switch {
				case name == "iq1":
					got = 2*nibble(table, e, swapped) + 8
					if nvidia && nibble(table, len(grid)/8+e, swapped) != nibble(table, e, swapped)+1 {
						t.Fatalf("%s, vector %d, value %d: not moved up in the second half", name, e, i)
					}
				case nvidia && name[:3] == "iq2":
					got = []byte{8, 25, 43, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}[nibble(table, e, i)]
				default:
					got = table[n]
				}
				if got != want {
					t.Fatalf("%s (NVIDIA %v), vector %d, value %d: %d, want %d", name, nvidia, e, i, got, want)
				}
			}
		}
	}
}

// TestLayouts compares the table with engine/quant: no bytes are lost or added
// on the device, but for TQ1_0.
func TestLayouts(t *testing.T) {
	for _, l := range kernels.Layouts() {
		f, err := quant.Of(quant.Type(l.Type))
		if err != nil {
			t.Fatal(err)
		}
		if f.Name != l.Name || f.Block != l.Block || f.Bytes != l.Bytes {
			t.Errorf("%s: %d values in %d bytes, engine/quant has %s with %d in %d", l.Name, l.Block, l.Bytes, f.Name, f.Block, f.Bytes)
		}
		if l.Name == "TQ1_0" {
			continue // grows on purpose, see unit.cl
		}
		if sum := l.Planes[0] + l.Planes[1] + l.Planes[2]; sum*l.Block != l.Bytes*256 {
			t.Errorf("%s: planes hold %d bytes per 256 values, the file %d", l.Name, sum, l.Bytes*256/l.Block)
		}
	}
}
