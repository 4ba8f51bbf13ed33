package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// halfAt is where the halves of a block lie, so that random blocks can be kept
// finite.
var halfAt = map[Type][]int{
	Q4_0: {0}, Q4_1: {0, 2}, Q5_0: {0}, Q5_1: {0, 2}, Q8_0: {0}, Q2_K: {80, 82}, Q3_K: {108}, Q4_K: {0, 2},
	Q5_K: {0, 2}, Q6_K: {208}, IQ2_XXS: {0}, IQ2_XS: {0}, IQ3_XXS: {0}, IQ1_S: {0}, IQ4_NL: {0}, IQ3_S: {0},
	IQ2_S: {0}, IQ4_XS: {0}, IQ1_M: {54}, TQ1_0: {52}, TQ2_0: {64}, MXFP4: nil, NVFP4: nil, Q1_0: {0}, Q2_0: {0},
}

// randomRows is rows of n values of random bits with finite scales.
func randomRows(rng *rand.Rand, f *Format, rows, n int) []byte {
	b := make([]byte, rows*f.RowBytes(n))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	for i := 0; i < len(b); i += f.Bytes {
		for _, at := range halfAt[f.Type] {
			b[i+at+1] &^= 0x40
		}
	}
	return b
}

func randomFloats(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// sameBits compares results; all NaN are alike.
func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// eachLevel runs a test at every level with records.
func eachLevel(t *testing.T, test func(t *testing.T, k *kernels)) {
	for _, k := range levels {
		if !k.records {
			continue
		}
		t.Run(k.level.String(), func(t *testing.T) {
			undo, err := Use(k.level)
			if err != nil {
				t.Fatal(err)
			}
			defer undo()
			test(t, k)
		})
	}
}

// inRoom copies b to the middle of a larger slice, off bytes past an even
// place, and returns a check that the room around it was not written.
func inRoom(b []byte, off int) (in []byte, check func() error) {
	const room = 128
	all := make([]byte, room+off+len(b)+room)
	for i := range all {
		all[i] = 0xA5
	}
	in = all[room+off : room+off+len(b) : room+off+len(b)]
	copy(in, b)
	return in, func() error {
		for i, v := range all {
			if (i < room+off || i >= room+off+len(b)) && v != 0xA5 {
				return fmt.Errorf("byte %d beside a buffer of %d was written", i-room-off, len(b))
			}
		}
		return nil
	}
}

// TestRows compares every kernel with the definition of the product, bit by
// bit: row lengths of 1 to 9 blocks and some more, rows that begin anywhere,
// groups of 1 to 5 and 18 activation rows, all of them or chosen ones.
func TestRows(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		for i := range formats {
			f := &formats[i]
			if f.Float || k.rows[f.Type] == nil {
				continue
			}
			t.Run(f.Name, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(f.Type), 1))
				for _, blocks := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 18, 33} {
					n := blocks * f.Block
					for _, count := range []int{1, 2, 3, 5, 18} {
						rows := 1 + rng.IntN(4)
						if count == 18 && blocks < 10 {
							rows = 1 + rng.IntN(70) // slabs of 16 rows
						}
						x := randomFloats(rng, count*n)
						if blocks%3 == 0 {
							x = specials(rng, count*n)
						}
						checkMul(t, rng, f, randomRows(rng, f, rows, n), rows, count, n, x)
					}
				}
			})
		}
	})
}

// TestFloatRows does the same for rows of floats, with every length to 70.
func TestFloatRows(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		for _, typ := range []Type{F32, F16, BF16} {
			f := mustOf(t, typ)
			if k.floats[typ] == nil {
				t.Errorf("no kernel for %s", f.Name)
				continue
			}
			rng := rand.New(rand.NewPCG(uint64(typ), 2))
			for n := 1; n < 400; n++ {
				if n > 70 {
					n += 31
				}
				for _, count := range []int{1, 2, 17} {
					rows := 1 + rng.IntN(9)
					data := make([]byte, rows*f.RowBytes(n))
					f.Encode(data, randomFloats(rng, rows*n))
					checkMul(t, rng, f, data, rows, count, n, randomFloats(rng, count*n))
				}
			}
		}
	})
}

// specials are activations with everything that goes wrong: each kind fills a
// block of 32 somewhere.
func specials(rng *rand.Rand, n int) []float32 {
	x := randomFloats(rng, n)
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for b := 0; b < n; b += 32 {
		block := x[b:min(b+32, n)]
		switch at := rng.IntN(len(block)); rng.IntN(12) {
		case 0:
			block[at] = inf
		case 1:
			block[at] = -inf
		case 2:
			block[at] = nan
		case 3:
			clear(block)
		case 4:
			for i := range block {
				block[i] *= 0x1p-122
			}
		case 5:
			for i := range block {
				block[i] *= 0x1p-140
			}
		case 6:
			for i := range block {
				block[i] *= 0x1p120
			}
		case 7:
			for i := range block {
				block[i] = float32(rng.IntN(2)*2-1) * 127 // every sum at its edge
			}
		case 8:
			block[at] = 1000
		case 9:
			for i := range block { // halves: ties
				block[i] = float32(rng.IntN(254)-127) / 2
			}
			block[at] = 127
		}
	}
	return x
}

// TestQuantize compares records with those of the plain loop, at every rest of
// 256, with and without special values.
func TestQuantize(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		rng := rand.New(rand.NewPCG(3, 3))
		for n := 1; n < 3000; n += 1 + rng.IntN(40) {
			x := randomFloats(rng, 2*n)
			if rng.IntN(4) > 0 {
				x = append(specials(rng, n), specials(rng, n)...)
			}
			var a Acts
			a.Set(x, 2, n)
			a.Quantize(0, 2)
			want := make([]record, len(a.recs))
			for i := range 2 {
				row := make([]float32, a.groups*256)
				copy(row, x[i*n:i*n+n])
				quantizePlainRecords(&want[i*a.groups], &row[0], a.groups)
			}
			for i := range want {
				if err := sameRecord(&a.recs[i], &want[i]); err != nil {
					t.Fatalf("%d values, record %d: %v", n, i, err)
				}
			}
		}
	})
}

func sameRecord(got, want *record) error {
	for i := range 8 {
		if !sameBits(got.d[i], want.d[i]) {
			return fmt.Errorf("d[%d] is %g, want %g", i, got.d[i], want.d[i])
		}
		if !sameBits(got.dsum[i], want.dsum[i]) {
			return fmt.Errorf("dsum[%d] is %g, want %g", i, got.dsum[i], want.dsum[i])
		}
	}
	if got.q != want.q || got.neg != want.neg || got.neg16 != want.neg16 || got.woven != want.woven || got.negW != want.negW {
		return fmt.Errorf("is %v, want %v", *got, *want)
	}
	return nil
}

// checkMul multiplies and compares with product.
func checkMul(t *testing.T, rng *rand.Rand, f *Format, data []byte, rows, count, n int, x []float32) {
	t.Helper()
	w, wCheck := inRoom(data, rng.IntN(64))
	var a Acts
	a.Set(x, count, n)
	a.Quantize(0, count)
	var idx []int32
	if rng.IntN(2) == 0 {
		for range count {
			idx = append(idx, int32(rng.IntN(count)))
		}
	}
	ldd := rows + rng.IntN(3)
	const guard = 12345
	dst := make([]float32, 16+count*ldd+16)
	for i := range dst {
		dst[i] = guard
	}
	Mul(f, dst[16:16+(count-1)*ldd+rows], ldd, w, rows, &a, idx)
	if err := wCheck(); err != nil {
		t.Fatal(err)
	}
	size := f.RowBytes(n)
	for i, got := range dst {
		j, r := (i-16)/ldd, (i-16)%ldd
		if i < 16 || j >= count || r >= rows {
			if got != guard {
				t.Fatalf("%d rows, %d activation rows of %d: dst[%d] was written", rows, count, n, i-16)
			}
			continue
		}
		at := j
		if idx != nil {
			at = int(idx[j])
		}
		product := f.product
		if f.Float {
			product = f.productFloat
		}
		want := product(w[r*size:(r+1)*size], &a, at)
		if !sameBits(got, want) {
			t.Fatalf("%d rows, %d activation rows of %d: row %d, activation row %d is %g (%#x), want %g (%#x)",
				rows, count, n, r, at, got, math.Float32bits(got), want, math.Float32bits(want))
		}
	}
}

// TestWeightSpecials puts NaN, infinities, zero and the largest and least halves
// into the scales of rows: what is not finite stays so, and all is as defined.
func TestWeightSpecials(t *testing.T) {
	eachLevel(t, func(t *testing.T, k *kernels) {
		for typ, at := range halfAt {
			f := mustOf(t, typ)
			rng := rand.New(rand.NewPCG(uint64(typ), 4))
			for _, h := range []uint16{0x7e00, 0x7c00, 0xfc00, 0, 0x8000, 0x7bff, 0xfbff, 1, 0x8001} {
				if len(at) == 0 || typ == IQ1_M { // IQ1_M spreads its half over four words
					continue
				}
				for _, count := range []int{1, 7} {
					const rows = 3
					n := 3 * f.Block
					w := randomRows(rng, f, rows, n)
					w[f.Bytes+at[0]], w[f.Bytes+at[0]+1] = byte(h), byte(h>>8) // second block of the first row
					x := randomFloats(rng, count*n)
					checkMul(t, rng, f, w, rows, count, n, x)
					if h&0x7c00 != 0x7c00 {
						continue
					}
					var a Acts
					a.Set(x, count, n)
					a.Quantize(0, count)
					dst := make([]float32, rows*count)
					Mul(f, dst, rows, w, rows, &a, nil)
					if v := float64(dst[0]); !math.IsNaN(v) && !math.IsInf(v, 0) {
						t.Errorf("%s: a row with the scale %#x gives %g", f.Name, h, v)
					}
				}
			}
		}
	})
}

// BenchmarkSweep is the speed of memory itself.
func BenchmarkSweep(b *testing.B) {
	for _, size := range []int{1 << 20, 96 << 20} {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			data := make([]byte, size)
			for i := 0; i < size; i += 4096 {
				data[i] = 1 // pages of their own
			}
			perSecond(b, float64(size), "GB/cpu-s", func() { Sweep(data) })
		})
	}
}

// BenchmarkRows is the speed of one activation row with more weights than the
// caches hold, in bytes of weights; BenchmarkSweep is the memory itself.
func BenchmarkRows(b *testing.B) {
	const n, total = 4096, 96 << 20
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range levels {
		if !k.records {
			continue
		}
		undo, err := Use(k.level)
		if err != nil {
			b.Fatal(err)
		}
		for i := range formats {
			f := &formats[i]
			if f.Float || k.rows[f.Type] == nil {
				continue
			}
			for _, size := range []int{1 << 20, total} {
				b.Run(fmt.Sprintf("%s/%s/%dMiB", k.level, f.Name, size>>20), func(b *testing.B) {
					rows := size / f.RowBytes(n)
					w := randomRows(rng, f, rows, n)
					var a Acts
					a.Set(randomFloats(rng, n), 1, n)
					a.Quantize(0, 1)
					dst := make([]float32, rows)
					perSecond(b, float64(len(w)), "GB/cpu-s", func() { Mul(f, dst, rows, w, rows, &a, nil) })
				})
			}
		}
		undo()
	}
}

// BenchmarkMany is the speed of many activation rows, in 10^9 multiplications
// with addition per second.
func BenchmarkMany(b *testing.B) {
	const n, rows = 2048, 256
	rng := rand.New(rand.NewPCG(1, 2))
	for _, k := range levels {
		if !k.records {
			continue
		}
		undo, err := Use(k.level)
		if err != nil {
			b.Fatal(err)
		}
		for i := range formats {
			f := &formats[i]
			if f.Dot == nil {
				continue
			}
			for _, count := range []int{2, 4, 8, 32, 512} {
				b.Run(fmt.Sprintf("%s/%s/%d", k.level, f.Name, count), func(b *testing.B) {
					w := randomRows(rng, f, rows, n)
					var a Acts
					a.Set(randomFloats(rng, n*count), count, n)
					a.Quantize(0, count)
					dst := make([]float32, rows*count)
					perSecond(b, float64(n*rows*count), "Gmac/cpu-s", func() { Mul(f, dst, rows, w, rows, &a, nil) })
				})
			}
		}
		undo()
	}
}
