package quant

import (
	"math"
	"testing"
)

// FuzzRow reads any bytes as a row of any type: nothing may panic, and the plain
// product must be that of the decoded values wherever those are finite.
func FuzzRow(f *testing.F) {
	for i := range formats {
		row := make([]byte, formats[i].RowBytes(256))
		for k := range row {
			row[k] = byte(k*7 + i)
		}
		f.Add(uint32(formats[i].Type), row, int8(i))
	}
	f.Fuzz(func(t *testing.T, typ uint32, row []byte, seed int8) {
		format, err := Of(Type(typ))
		if err != nil {
			return
		}
		unit := max(format.Block, 32)
		n := min(len(row)/format.RowBytes(unit), 64) * unit
		row = row[:format.RowBytes(n)]
		values := decodeAll(format, row)
		if format.Dot == nil || n == 0 {
			return
		}
		x := make([]float32, n)
		for i := range x {
			x[i] = float32((i*int(seed))%127) - 50
		}
		a := plainActs(t, x, 1, n)
		got := float64(format.Dot(row, a, 0))
		want, abs := exactProduct(format, values, a, 0)
		if abs < 1e30 && !(math.Abs(got-want) <= 1e-5*abs+1e-38) {
			t.Errorf("%s: %g, want %g", format.Name, got, want)
		}
	})
}
