package quant

import (
	"math/rand/v2"
	"testing"
)

// FuzzMul multiplies any bytes as weights, scales of infinity and NaN among them,
// with the kernels of every level, and compares with the definition of the
// product, bit by bit. Levels that this processor lacks are covered by running
// it elsewhere.
func FuzzMul(f *testing.F) {
	for i := range formats {
		if formats[i].Dot == nil {
			continue
		}
		for seed := range uint64(3) {
			b := make([]byte, formats[i].Bytes*(1+int(seed)*4))
			for k := range b {
				b[k] = byte(k*29 + i + k/7)
			}
			f.Add(uint32(formats[i].Type), b, seed)
		}
	}
	f.Fuzz(func(t *testing.T, typ uint32, b []byte, seed uint64) {
		format, err := Of(Type(typ))
		if err != nil || format.Dot == nil || len(b) < format.Bytes {
			return
		}
		rng := rand.New(rand.NewPCG(seed, 7))
		n := min(len(b)/format.Bytes, 40) * format.Block
		size := format.RowBytes(n)
		rows := 1 + rng.IntN(20)
		data := make([]byte, rows*size)
		for i := range data {
			data[i] = b[(i+i/size*13)%len(b)]
		}
		count := []int{1, 2, 7, 13}[rng.IntN(4)]
		for _, k := range levels {
			if !k.records {
				continue
			}
			undo, err := Use(k.level)
			if err != nil {
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(seed, 8))
			x := specials(rng, count*n)
			checkMul(t, rng, format, data, rows, count, n, x)
			if g := format.Faster(n); g != nil {
				woven := make([]byte, rows*g.RowBytes(n))
				Relay(woven, g, format, data)
				checkMul(t, rng, g, woven, rows, count, n, x)
			}
			undo()
		}
	})
}
