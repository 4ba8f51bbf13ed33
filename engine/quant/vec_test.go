package quant

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// room keeps floats between sentinels: in is a copy of x, off floats past a
// place, and check reports writes beside it.
func room(x []float32, off int) (in []float32, check func() error) {
	const side, guard = 20, 1234567
	all := make([]float32, side+off+len(x)+side)
	for i := range all {
		all[i] = guard
	}
	in = all[side+off : side+off+len(x) : side+off+len(x)]
	copy(in, x)
	return in, func() error {
		for i, v := range all {
			if (i < side+off || i >= side+off+len(x)) && v != guard {
				return fmt.Errorf("float %d beside a slice of %d was written", i-side-off, len(x))
			}
		}
		return nil
	}
}

// near compares with the exact value: within rel of it, or of sum where the
// value is a sum of terms that may cancel. NaN matches NaN.
func near(got float32, want, rel, sum float64) bool {
	g := float64(got)
	if math.IsNaN(want) || math.IsInf(want, 0) || math.Abs(want) > math.MaxFloat32 {
		return math.IsNaN(want) == math.IsNaN(g) && (math.IsNaN(g) || math.IsInf(g, 0))
	}
	return math.Abs(g-want) <= rel*math.Max(math.Abs(want), sum)+1e-37
}

// eachVec runs a test with the vector operations of every level.
func eachVec(t *testing.T, test func(t *testing.T)) {
	for _, l := range Levels() {
		t.Run(l.String(), func(t *testing.T) {
			undo, err := Use(l)
			if err != nil {
				t.Fatal(err)
			}
			defer undo()
			test(t)
		})
	}
}

// maps are the operations that give one value for each value.
var maps = []struct {
	name string
	rel  float64
	run  func(dst, x, y []float32)
	want func(x, y, old float64) float64
}{
	{"AxpyF32", 1.5e-7, func(dst, x, y []float32) { AxpyF32(dst, 1.25, x) }, func(x, y, old float64) float64 { return old + 1.25*x }},
	{"ScaleF32", 1e-7, func(dst, x, y []float32) { ScaleF32(dst, 0.7) }, func(x, y, old float64) float64 { return old * float64(float32(0.7)) }},
	{"AddF32", 1e-7, func(dst, x, y []float32) { AddF32(dst, x) }, func(x, y, old float64) float64 { return old + x }},
	{"MulF32", 1e-7, func(dst, x, y []float32) { MulF32(dst, x) }, func(x, y, old float64) float64 { return old * x }},
	{"Exp", 2e-7, func(dst, x, y []float32) { Exp(dst, x) }, func(x, y, old float64) float64 { return exact(x) }},
	{"Sigmoid", 3e-7, func(dst, x, y []float32) { Sigmoid(dst, x) }, func(x, y, old float64) float64 { return 1 / (1 + exact(-x)) }},
	{"SiLU", 4e-7, func(dst, x, y []float32) { SiLU(dst, x) }, func(x, y, old float64) float64 { return x / (1 + exact(-x)) }},
	{"SwiGLU", 5e-7, func(dst, x, y []float32) { SwiGLU(dst, x, y) }, func(x, y, old float64) float64 { return x / (1 + exact(-x)) * y }},
	// The argument of the exponential is rounded: its error grows with it.
	{"GeGLU", 2e-5, func(dst, x, y []float32) { GeGLU(dst, x, y) }, func(x, y, old float64) float64 {
		return x / (1 + exact(-gelu2*(x+geluCube*x*x*x))) * y
	}},
}

// exact is e^x where Exp promises it, and 0 below.
func exact(x float64) float64 {
	if x < expLow {
		return 0
	}
	return math.Exp(x)
}

func TestMaps(t *testing.T) {
	eachVec(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(5, 5))
		inf := float32(math.Inf(1))
		odd := []float32{0, float32(math.Copysign(0, -1)), 1, -1, 1e-30, -1e-30, 1e-42, 20, -20, 60, -60, 87, -87, inf, -inf, float32(math.NaN())}
		for _, m := range maps {
			for n := 0; n < 80; n++ {
				x, y, old := randomFloats(rng, n), randomFloats(rng, n), randomFloats(rng, n)
				for i := range x {
					x[i] *= float32(rng.IntN(3) * 8)
					if n > 60 && rng.IntN(3) == 0 {
						x[i] = odd[rng.IntN(len(odd))]
					}
				}
				xs, xCheck := room(x, n%5)
				ys, yCheck := room(y, n%3)
				dst, dCheck := room(old, n%7)
				m.run(dst, xs, ys)
				for _, check := range []func() error{xCheck, yCheck, dCheck} {
					if err := check(); err != nil {
						t.Fatalf("%s of %d: %v", m.name, n, err)
					}
				}
				for i, got := range dst {
					want := m.want(float64(x[i]), float64(y[i]), float64(old[i]))
					scale := 0.0
					if m.name == "AxpyF32" || m.name == "AddF32" {
						scale = math.Abs(float64(old[i])) + math.Abs(float64(x[i]))
					}
					if math.Abs(float64(x[i])) > 80 && math.IsNaN(want) {
						continue // 0 times infinity: either answer is fine
					}
					if !near(got, want, m.rel, scale) {
						t.Fatalf("%s of %d: value %d of %g, %g is %g, want %g", m.name, n, i, x[i], y[i], got, want)
					}
				}
			}
		}
	})
}

// TestExp walks over the whole range, densely where the result turns to zero or
// infinity.
func TestExp(t *testing.T) {
	eachVec(t, func(t *testing.T) {
		worst := 0.0
		x, got := make([]float32, 0, 1<<16), make([]float32, 1<<16)
		for v := float32(-104); v < 90; v += 0.00317 {
			x = append(x, v)
		}
		for v := uint32(0xc2aea000); v < 0xc2aeb800; v += 7 { // around -87.33
			x = append(x, math.Float32frombits(v))
		}
		for v := uint32(0x42b17000); v < 0x42b18000; v++ { // around 88.72
			x = append(x, math.Float32frombits(v))
		}
		got = append(got[:0], x...)
		Exp(got, x)
		for i, v := range x {
			want := exact(float64(v))
			if !near(got[i], want, 2e-7, 0) {
				t.Fatalf("e^%g is %g, want %g", v, got[i], want)
			}
			if want > 0 && want < math.MaxFloat32 {
				worst = max(worst, math.Abs(float64(got[i])-want)/want)
			}
		}
		t.Logf("worst error %.2e", worst)
		if x := []float32{float32(math.NaN())}; true {
			Exp(x, x)
			if x[0] == x[0] {
				t.Errorf("e^NaN is %g", x[0])
			}
		}
	})
}

func TestReductions(t *testing.T) {
	eachVec(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(6, 6))
		for n := 0; n < 150; n++ {
			a, aCheck := room(randomFloats(rng, n), n%5)
			b, _ := room(randomFloats(rng, n), n%3)
			var dot, sum, top = 0.0, 0.0, math.Inf(-1)
			for i := range a {
				dot += float64(a[i]) * float64(b[i])
				sum += math.Abs(float64(a[i]) * float64(b[i]))
				top = max(top, float64(a[i]))
			}
			if got := DotF32(a, b); !near(got, dot, 3e-7, sum) {
				t.Fatalf("dot of %d: %g, want %g", n, got, dot)
			}
			if got := Max(a); float64(got) != top {
				t.Fatalf("max of %d: %g, want %g", n, got, top)
			}
			var all float64
			want := make([]float64, n)
			for i, v := range a {
				want[i] = math.Exp(float64(v - float32(top)))
				all += want[i]
			}
			e := append([]float32(nil), a...)
			Softmax(e)
			if got := ExpSum(a, float32(top)); !near(got, all, 5e-7, 0) {
				t.Fatalf("sum of %d powers: %g, want %g", n, got, all)
			}
			for i := range a {
				if !near(a[i], want[i], 3e-7, 0) || !near(e[i], want[i]/all, 8e-7, 0) {
					t.Fatalf("power %d of %d: %g, softmax %g; want %g and %g", i, n, a[i], e[i], want[i], want[i]/all)
				}
			}
			if err := aCheck(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestRMSNorm(t *testing.T) {
	eachVec(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(7, 7))
		for _, n := range []int{1, 7, 8, 100, 1024, 4096} {
			x, w, dst := randomFloats(rng, n), randomFloats(rng, n), make([]float32, n)
			var sum float64
			for _, v := range x {
				sum += float64(v) * float64(v)
			}
			s := 1 / math.Sqrt(sum/float64(n)+1e-6)
			for _, w := range [][]float32{w, nil} {
				RMSNorm(dst, x, w, 1e-6)
				for i := range dst {
					want := float64(x[i]) * s
					if w != nil {
						want *= float64(w[i])
					}
					if !near(dst[i], want, 1e-6, 0) {
						t.Fatalf("value %d of %d: %g, want %g", i, n, dst[i], want)
					}
				}
			}
		}
	})
}

// cacheForms are the forms of cached rows, as functions over values.
var cacheForms = []struct {
	name   string
	unit   int // row lengths are multiples
	encode func(x []float32) []byte
	decode func(row []byte, n int) []float32
	scores func(dst, q []float32, k []byte, stride int)
	mix    func(dst, p []float32, v []byte, stride int)
}{
	{"f16", 1, func(x []float32) []byte {
		h := make([]uint16, len(x))
		ToF16(h, x)
		return bytesOf(h)
	}, func(row []byte, n int) []float32 {
		x := make([]float32, n)
		decodeF16(x, row)
		return x
	}, func(dst, q []float32, k []byte, stride int) { ScoresF16(dst, q, halvesOf(k), stride/2) },
		func(dst, p []float32, v []byte, stride int) { MixF16(dst, p, halvesOf(v), stride/2) }},
	cacheForm("8 bits", Cache8),
	cacheForm("4 bits", Cache4),
}

// cacheForm is the rows of a kind; those of one slab each, so that rows may lie
// anywhere, and calls bring them together.
func cacheForm(name string, c CacheKind) (f struct {
	name   string
	unit   int // row lengths are multiples
	encode func(x []float32) []byte
	decode func(row []byte, n int) []float32
	scores func(dst, q []float32, k []byte, stride int)
	mix    func(dst, p []float32, v []byte, stride int)
}) {
	f.name, f.unit = name, cacheBlock
	f.encode = func(x []float32) []byte {
		b := make([]byte, CacheRows*c.RowBytes(len(x)))
		c.Put(b, 0, x)
		return b
	}
	f.decode = func(row []byte, n int) []float32 {
		x := make([]float32, n)
		c.Get(x, row, 0)
		return x
	}
	together := func(b []byte, rows, stride, n int) []byte {
		out := make([]byte, (rows+CacheRows-1)/CacheRows*CacheRows*c.RowBytes(n))
		for r := range rows {
			moveRow(c, out, r, b[r*stride:], 0, n)
		}
		return out
	}
	f.scores = func(dst, q []float32, k []byte, stride int) {
		var x CacheQueries
		c.Round(&x, q, 1, len(q), len(q))
		c.Scores(dst, len(dst), &x, together(k, len(dst), stride, len(q)), 0, len(dst), nil)
	}
	f.mix = func(dst, p []float32, v []byte, stride int) {
		c.Mix(dst, len(dst), len(dst), p, len(p), 1, together(v, len(p), stride, len(dst)), 0, len(p), len(dst), nil)
	}
	return f
}

// moveRow copies row from of slabs to row to of others, as it is.
func moveRow(c CacheKind, dst []byte, to int, src []byte, from, n int) {
	size, groups := CacheRows*c.RowBytes(n), n/cacheBlock
	dst, src = dst[to/CacheRows*size:][:size], src[from/CacheRows*size:][:size]
	to, from = to%CacheRows, from%CacheRows
	halves, unit := groups, 2*CacheRows*groups
	if c == Cache4 {
		halves, unit = 2*groups, 2*unit
	}
	for h := range halves {
		copy(dst[2*(h*CacheRows+to):][:2], src[2*(h*CacheRows+from):])
	}
	for at := unit; at < size; at += 4 * CacheRows {
		copy(dst[at+4*to:][:4], src[at+4*from:])
	}
}

// positive makes weights of floats.
func positive(x []float32) []float32 {
	for i, v := range x {
		x[i] = float32(math.Abs(float64(v)))
	}
	return x
}

func bytesOf(h []uint16) []byte {
	b := make([]byte, 2*len(h))
	for i, v := range h {
		b[2*i], b[2*i+1] = byte(v), byte(v>>8)
	}
	return b
}

func halvesOf(b []byte) []uint16 {
	h := make([]uint16, len(b)/2)
	for i := range h {
		h[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
	}
	return h
}

// TestCacheRows compares scores and sums over cached rows with the decoded
// values in float64, for every number of rows to 9, and checks that a row's
// score is the same bits alone and among others.
func TestCacheRows(t *testing.T) {
	eachVec(t, func(t *testing.T) {
		for _, form := range cacheForms {
			rng := rand.New(rand.NewPCG(8, 8))
			for _, n := range []int{3, 8, 24, 64, 72, 80, 128, 192, 256, 320} {
				if n%form.unit != 0 {
					continue
				}
				size := len(form.encode(make([]float32, n)))
				for rows := 1; rows < 10; rows++ {
					stride := size + 2*rng.IntN(5)
					data := make([]byte, (rows-1)*stride+size)
					values := make([][]float32, rows)
					for r := range rows {
						copy(data[r*stride:], form.encode(randomFloats(rng, n)))
						values[r] = form.decode(data[r*stride:], n)
					}
					q, qCheck := room(randomFloats(rng, n), rows%3)
					p, pCheck := room(positive(randomFloats(rng, rows)), 1)
					old := randomFloats(rng, n)
					dst, dCheck := room(old, rows%5)
					scores, sCheck := room(make([]float32, rows), 3)
					form.scores(scores, q, data, stride)
					form.mix(dst, p, data, stride)
					for _, check := range []func() error{qCheck, pCheck, dCheck, sCheck} {
						if err := check(); err != nil {
							t.Fatalf("%s: %d rows of %d: %v", form.name, rows, n, err)
						}
					}
					for r := range rows {
						var want, sum float64
						for i, v := range values[r] {
							want += float64(q[i]) * float64(v)
							sum += math.Abs(float64(q[i]) * float64(v))
						}
						if form.unit > 1 {
							sum += 1e6 * wholeSlack(form.name, q, values[r])
						}
						if !near(scores[r], want, 1e-6, sum) {
							t.Fatalf("%s: score %d of %d rows of %d: %g, want %g", form.name, r, rows, n, scores[r], want)
						}
						var one [1]float32
						form.scores(one[:], q, data[r*stride:][:size], stride)
						if one[0] != scores[r] {
							t.Fatalf("%s: score of row %d of %d alone: %g, among others %g", form.name, r, n, one[0], scores[r])
						}
					}
					for i := range dst {
						want, sum := float64(old[i]), math.Abs(float64(old[i]))
						for r := range rows {
							want += float64(p[r]) * float64(values[r][i])
							sum += math.Abs(float64(p[r]) * float64(values[r][i]))
						}
						if form.unit > 1 {
							sum += 5e5 * weightSlack(form.name, p, values, i)
						}
						if !near(dst[i], want, 2e-6, sum) {
							t.Fatalf("%s: sum %d of %d rows of %d: %g, want %g", form.name, i, rows, n, dst[i], want)
						}
					}
				}
			}
		}
	})
}

// wholeSlack is how far a score may be off because queries become whole numbers:
// half of a 32639th, or of a 127th, of the largest of each 64.
func wholeSlack(form string, q, v []float32) (slack float64) {
	numbers := 32639.0
	if form == "4 bits" {
		numbers = 127
	}
	for b := 0; b < len(q); b += cacheBlock {
		var most, sum float64
		for i := b; i < b+cacheBlock; i++ {
			most = max(most, math.Abs(float64(q[i])))
			sum += math.Abs(float64(v[i]))
		}
		slack += 1.01 * most * sum / (2 * numbers)
	}
	return slack
}

// weightSlack is the same for value at of a sum: weights become whole numbers
// together with the scales of rows. Those of 8 bits carry over what they lose, to
// other rows of which a few are in these tests, and then none.
func weightSlack(form string, p []float32, values [][]float32, at int) float64 {
	most, numbers := 0.0, 32767.0
	if form == "4 bits" {
		numbers = 254
	}
	for r, v := range values {
		lo, hi := v[at/cacheBlock*cacheBlock], v[at/cacheBlock*cacheBlock]
		for _, x := range v[at/cacheBlock*cacheBlock:][:cacheBlock] {
			lo, hi = min(lo, x), max(hi, x)
		}
		most = max(most, float64(p[r])*float64(max(hi-lo, hi, -lo)))
	}
	return 1.01 * most * float64(len(p)) / (2 * numbers)
}

// TestCacheRounding says how far cached rows may be from what went in.
func TestCacheRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 9))
	for i, limit := range []float64{5e-4, 8e-3, 0.12} {
		form := cacheForms[i]
		x := randomFloats(rng, 1024)
		got := form.decode(form.encode(x), len(x))
		var e, s float64
		for i := range x {
			e += math.Pow(float64(got[i]-x[i]), 2)
			s += math.Pow(float64(x[i]), 2)
		}
		if r := math.Sqrt(e / s); r > limit {
			t.Errorf("%s: relative distance %.2e, want at most %.0e", form.name, r, limit)
		}
	}
	if CacheFits(96) == nil || CacheFits(128) != nil {
		t.Error("rows of 128 fit in 8 bits, rows of 96 do not")
	}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1))} {
		for _, form := range cacheForms {
			x := randomFloats(rng, 64)
			x[5] = bad
			var s [1]float32
			row := form.encode(x)
			form.scores(s[:], randomFloats(rng, 64), row, len(row))
			if v := float64(s[0]); !math.IsNaN(v) && !math.IsInf(v, 0) {
				t.Errorf("%s: a score with %g in the row is %g", form.name, bad, v)
			}
		}
	}
}

func TestToF16(t *testing.T) {
	eachVec(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(10, 10))
		for n := range 40 {
			x := make([]float32, n)
			for i := range x {
				x[i] = math.Float32frombits(rng.Uint32())
			}
			got := make([]uint16, n)
			ToF16(got, x)
			for i, v := range x {
				if want := F32ToF16(v); got[i] != want && v == v {
					t.Fatalf("half of %g is %#x, want %#x", v, got[i], want)
				}
			}
		}
	})
}

func TestSweep(t *testing.T) {
	eachVec(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(11, 11))
		for _, n := range []int{0, 5, 255, 256, 700, 5120} {
			b := make([]byte, n)
			var want uint64
			for i := range b {
				b[i] = byte(rng.Uint32())
				if i < n&^255 {
					want ^= uint64(b[i]) << (i % 8 * 8)
				}
			}
			if got := Sweep(b); got != want {
				t.Errorf("%d bytes: %#x, want %#x", n, got, want)
			}
		}
	})
}

func BenchmarkVec(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	const n, rows = 128, 32 << 10
	x, y := randomFloats(rng, 4096), randomFloats(rng, 4096)
	for _, l := range Levels() {
		undo, err := Use(l)
		if err != nil {
			b.Fatal(err)
		}
		run := func(name string, bytes int, f func()) {
			b.Run(l.String()+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(bytes))
				for b.Loop() {
					f()
				}
			})
		}
		run("DotF32", 8*len(x), func() { DotF32(x, y) })
		run("SwiGLU", 8*len(x), func() { SwiGLU(x, x, y) })
		run("RMSNorm", 8*len(x), func() { RMSNorm(x, x, y, 1e-6) })
		q, scores := randomFloats(rng, n), make([]float32, rows)
		for _, form := range cacheForms {
			row := form.encode(randomFloats(rng, n))
			data := make([]byte, rows*len(row))
			for r := range rows {
				copy(data[r*len(row):], row)
			}
			if form.name == "f16" {
				h := halvesOf(data)
				run("scores f16", len(data), func() { ScoresF16(scores, q, h, n) })
				run("mix f16", len(data), func() { MixF16(q, scores, h, n) })
				continue
			}
			run("scores "+form.name, len(data), func() { form.scores(scores, q, data, len(row)) })
			run("mix "+form.name, len(data), func() { form.mix(q, scores, data, len(row)) })
		}
		undo()
	}
}
