package ops_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"outcrop/engine/quant"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/compute/ops"
	"outcrop/gpu/kernels"
)

// bench holds what most tests need.
type bench struct {
	t     *testing.T
	dev   *compute.Device
	set   *ops.Set
	arena *compute.Arena
	rng   *rand.Rand
}

func newBench(t *testing.T, d *compute.Device) *bench {
	t.Helper()
	s, err := ops.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t: t, dev: d, set: s, arena: d.Arena(8 << 20), rng: rand.New(rand.NewPCG(1, 2))}
}

func (b *bench) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) alloc(n int64) *compute.Buffer {
	b.t.Helper()
	m, err := b.arena.Alloc(n)
	b.ok(err)
	return m
}

func (b *bench) do(fn func(q *compute.Queue) error) {
	b.t.Helper()
	b.ok(b.dev.Do(fn))
}

// floats puts v on the device.
func (b *bench) floats(v []float32) *compute.Buffer {
	b.t.Helper()
	m := b.alloc(int64(len(v)) * 4)
	b.do(func(q *compute.Queue) error { return q.Write(m, 0, bytesOf(v)) })
	return m
}

func (b *bench) ints(v []int32) *compute.Buffer {
	b.t.Helper()
	raw := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(raw[4*i:], uint32(x))
	}
	m := b.alloc(int64(len(raw)))
	b.do(func(q *compute.Queue) error { return q.Write(m, 0, raw) })
	return m
}

// read gives n floats of m.
func (b *bench) read(m *compute.Buffer, n int) []float32 {
	b.t.Helper()
	raw := make([]byte, 4*n)
	b.do(func(q *compute.Queue) error { return q.Read(raw, m, 0) })
	v := make([]float32, n)
	for i := range v {
		v[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return v
}

func (b *bench) readInts(m *compute.Buffer, n int) []int32 {
	b.t.Helper()
	v := make([]int32, n)
	for i, f := range b.read(m, n) {
		v[i] = int32(math.Float32bits(f))
	}
	return v
}

func bytesOf(v []float32) []byte {
	raw := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(raw[4*i:], math.Float32bits(x))
	}
	return raw
}

// normal gives n floats around zero.
func (b *bench) normal(n int, scale float32) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = scale * float32(b.rng.NormFloat64())
	}
	return v
}

// poison fills a buffer with NaNs, so that what is not written shows.
func (b *bench) poison(m *compute.Buffer) {
	b.do(func(q *compute.Queue) error { return q.Fill(m, 0, m.Len(), 0xff) })
}

// near compares with a relative RMS.
func near(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	if d := distance(got, want); !(d <= tol) {
		t.Errorf("%s: relative RMS %.3g, want <= %.3g; first values %v, want %v", what, d, tol, head(got), head(want))
	}
}

func distance(got, want []float32) float64 {
	if len(got) != len(want) {
		return math.Inf(1)
	}
	var d, w float64
	for i := range got {
		e := float64(got[i]) - float64(want[i])
		d += e * e
		w += float64(want[i]) * float64(want[i])
	}
	if w == 0 {
		return math.Sqrt(d)
	}
	return math.Sqrt(d / w)
}

func head(v []float32) []float32 { return v[:min(len(v), 8)] }

// randomRows gives rows of a format with random bits and sane scales: every
// code occurs, and the values stay in a range where errors show.
func randomRows(rng *rand.Rand, f *quant.Format, n int) []byte {
	raw := make([]byte, n/f.Block*f.Bytes)
	for i := range raw {
		raw[i] = byte(rng.Uint32())
	}
	half := func(b []byte) {
		// 2^-8 .. 2^-5 with either sign
		binary.LittleEndian.PutUint16(b, uint16(rng.Uint32()&0x83ff)|uint16(7+rng.IntN(3))<<10)
	}
	for o := 0; o < len(raw); o += f.Bytes {
		b := raw[o : o+f.Bytes]
		switch f.Type {
		case quant.F32:
			binary.LittleEndian.PutUint32(b, math.Float32bits(float32(rng.NormFloat64())))
		case quant.BF16:
			binary.LittleEndian.PutUint16(b, uint16(math.Float32bits(float32(rng.NormFloat64()))>>16))
		case quant.Q2_K:
			half(b[80:])
			half(b[82:])
		case quant.Q3_K, quant.Q6_K, quant.TQ1_0, quant.TQ2_0:
			half(b[f.Bytes-2:])
		case quant.Q4_1, quant.Q5_1, quant.Q4_K, quant.Q5_K:
			half(b)
			half(b[2:])
		case quant.MXFP4:
			b[0] = byte(118 + rng.IntN(4))
		case quant.NVFP4:
			for i := range 4 {
				b[i] = byte(rng.IntN(0x58))
			}
		case quant.IQ1_M:
			b[55] = b[55]&0x0f | 0x20
		default:
			half(b)
		}
		if f.Type == quant.TQ1_0 {
			// only bytes that five or four digits can make
			for i := range 52 {
				v := rng.IntN(243)
				if i >= 48 {
					v = rng.IntN(81) * 3
				}
				b[i] = byte((v*256 + 242) / 243)
			}
		}
	}
	return raw
}

// weight puts file rows on the device, in two pieces where that is possible.
func (b *bench) weight(typ uint32, rows, n, count int, raw []byte) *ops.Weight {
	b.t.Helper()
	size, err := ops.WeightSize(typ, rows, n)
	b.ok(err)
	w, err := ops.NewWeight(typ, rows, n, count, b.alloc(size*int64(count)))
	b.ok(err)
	up, err := b.set.NewUpload(typ)
	b.ok(err)
	defer up.Free()
	one := len(raw) / count
	b.do(func(q *compute.Queue) error {
		for e := range count {
			part := one / rows * (rows / 2)
			if err := up.Run(q, w, e, 0, raw[e*one:][:part]); err != nil {
				return err
			}
			if err := up.Run(q, w, e, rows/2, raw[e*one+part:(e+1)*one]); err != nil {
				return err
			}
		}
		return nil
	})
	return w
}

// acts puts x on the device and rounds it.
func (b *bench) acts(x []float32, rows, n int) *ops.Acts {
	b.t.Helper()
	a, err := ops.NewActs(b.arena, rows, n, true, true)
	b.ok(err)
	k, err := b.set.Quantize()
	b.ok(err)
	b.do(func(q *compute.Queue) error {
		if err := q.Write(a.X, 0, bytesOf(x)); err != nil {
			return err
		}
		return k.Run(q, a, a.X, rows, n)
	})
	return a
}

// product is engine/quant's: (cols, rows).
func product(t *testing.T, f *quant.Format, raw []byte, rows int, x []float32, cols, n int) []float32 {
	t.Helper()
	var acts quant.Acts
	acts.Set(x, cols, n)
	acts.Quantize(0, cols)
	y := make([]float32, cols*rows)
	quant.Mul(f, y, rows, raw, rows, &acts, nil)
	return y
}

func act(kind int, g, u float32) float32 {
	x, y := float64(g), float64(u)
	switch kind {
	case ops.GELU:
		return float32(0.5 * x * (1 + math.Tanh(math.Sqrt(2/math.Pi)*x*(1+0.044715*x*x))) * y)
	case ops.Clamped:
		x, y = min(x, 7), max(min(y, 7), -7)
		return float32(x / (1 + math.Exp(-1.702*x)) * (y + 1))
	}
	return float32(x / (1 + math.Exp(-x)) * y)
}

// eachFormat runs fn for all formats that kernels multiply.
func eachFormat(t *testing.T, b *bench, fn func(b *bench, l kernels.Layout, f *quant.Format)) {
	for _, list := range [][]kernels.Layout{kernels.Floats(), kernels.Layouts()} {
		for _, l := range list {
			if !wants(l.Name) {
				continue
			}
			t.Run(l.Name, func(t *testing.T) {
				b := *b
				b.t = t
				f, err := quant.Of(quant.Type(l.Type))
				b.ok(err)
				fn(&b, l, f)
			})
		}
	}
}

// TestMul multiplies every format on the device and compares with engine/quant.
// Both round activations the same way, so what is left is the order of float
// additions: 2e-5 relative RMS of the results is well above that noise.
func TestMul(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		eachFormat(t, newBench(t, d), func(b *bench, l kernels.Layout, f *quant.Format) {
			b.testVec(l, f)
			b.testGLU(l, f)
			b.testExperts(l, f)
		})
	})
}

// TestLevels multiplies the formats of levels as cards of NVIDIA do, their byte picker
// emulated: others make levels from bits, and have nibbles in another order.
func TestLevels(t *testing.T) {
	whole(t, "picking of levels")
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		if d.Info().Features.Nvidia > 0 {
			t.Skip("this card has the pick instruction, which TestMul runs")
		}
		b := newBench(t, d)
		b.set.Define("PICK_EMULATED=1")
		for _, typ := range []uint32{20, 23, 39, 40} {
			l, _ := kernels.LayoutOf(typ)
			f, err := quant.Of(quant.Type(typ))
			b.ok(err)
			b.testVec(l, f)
			b.testExperts(l, f)
		}
	})
}

// testVec: 1 to 8 columns, with bias, scale, gate and addition.
func (b *bench) testVec(l kernels.Layout, f *quant.Format) {
	const rows, cols, n = 37, mostColumns, 512
	raw, x := randomRows(b.rng, f, rows*n), b.normal(cols*n, 1)
	want := product(b.t, f, raw, rows, x, cols, n)
	w, a := b.weight(l.Type, rows, n, 1, raw), b.acts(x, cols, n)
	mul, err := b.set.Mul(w, mostColumns)
	b.ok(err)
	y := b.alloc(4 * cols * rows)
	for _, c := range []int{1, 2, 3, 5, 8} {
		if c > cols {
			break
		}
		b.poison(y)
		b.do(func(q *compute.Queue) error { return mul.Run(q, a, c, ops.Out{Y: y, Ld: rows}) })
		near(b.t, "product", b.read(y, c*rows), want[:c*rows], 2e-5)
	}
	bias, gate, before := b.normal(rows, 1), b.normal(cols, 1), b.normal(cols*rows, 1)
	biased, gated := make([]float32, len(want)), make([]float32, len(want))
	for i, v := range want {
		biased[i] = before[i] + 0.5*(v+bias[i%rows])
		gated[i] = float32(float64(v) / (1 + math.Exp(-float64(gate[i/rows]))))
	}
	dst := b.floats(before)
	db, dg := b.floats(bias), b.floats(gate)
	b.do(func(q *compute.Queue) error {
		if err := mul.Run(q, a, cols, ops.Out{Y: dst, Ld: rows, Flags: ops.Bias | ops.Add, Extra: db, Scale: 0.5}); err != nil {
			return err
		}
		return mul.Run(q, a, cols, ops.Out{Y: y, Ld: rows, Flags: ops.Gate, Extra: dg, ExtraLd: 1})
	})
	near(b.t, "with bias and addition", b.read(dst, cols*rows), biased, 2e-5)
	near(b.t, "with a gate", b.read(y, cols*rows), gated, 2e-5)
}

// testGLU: gate and up rows of one matrix, all activations.
func (b *bench) testGLU(l kernels.Layout, f *quant.Format) {
	const rows, cols, n = 64, min(3, mostColumns), 256
	raw, x := randomRows(b.rng, f, 2*rows*n), b.normal(cols*n, 1)
	gu := product(b.t, f, raw, 2*rows, x, cols, n)
	w, a := b.weight(l.Type, 2*rows, n, 1, raw), b.acts(x, cols, n)
	mul, err := b.set.Mul(w, mostColumns)
	b.ok(err)
	to, err := ops.NewActs(b.arena, cols, rows, true, true)
	b.ok(err)
	bias := b.normal(2*rows, 1)
	db := b.floats(bias)
	for kind := range 3 {
		want := make([]float32, cols*rows)
		for i := range want {
			c, r := i/rows, i%rows
			want[i] = act(kind, gu[c*2*rows+r]+bias[r], gu[c*2*rows+rows+r]+bias[rows+r])
		}
		b.poison(to.X)
		b.poison(to.Q)
		b.do(func(q *compute.Queue) error {
			return mul.RunGLU(q, a, cols, ops.GLU{Act: kind, Bias: db, To: to})
		})
		near(b.t, "gated", b.read(to.X, cols*rows), want, 2e-5)
		b.rounded("gated", to, cols, b.read(to.X, cols*rows))
	}
}

// rounded compares an 8-bit copy with what engine/quant makes of x: by value,
// as the division may round to the other side now and then.
func (b *bench) rounded(what string, a *ops.Acts, rows int, x []float32) {
	b.t.Helper()
	near(b.t, what+" rounded", b.dequant(a, rows), requant(x), 2e-4)
}

// dequant gives the values of an 8-bit copy.
func (b *bench) dequant(a *ops.Acts, rows int) []float32 {
	b.t.Helper()
	n := a.Cols
	q, m := make([]byte, rows*n), make([]byte, rows*n/4)
	b.do(func(qu *compute.Queue) error {
		if err := qu.Read(q, a.Q, 0); err != nil {
			return err
		}
		return qu.Read(m, a.M, 0)
	})
	v := make([]float32, rows*n)
	for r := range rows {
		for u := range n / 32 {
			at := (r*n/32 + u) * 8
			d := math.Float32frombits(binary.LittleEndian.Uint32(m[at:]))
			var sums [2]int16
			for i := range 32 {
				c := int8(q[r*n+i/16*n/2+u*16+i%16])
				sums[i/16] += int16(c)
				v[r*n+u*32+i] = d * float32(c)
			}
			got := [2]int16{int16(binary.LittleEndian.Uint16(m[at+4:])), int16(binary.LittleEndian.Uint16(m[at+6:]))}
			if got != sums {
				b.t.Fatalf("unit %d of row %d: sums %v, want %v", u, r, got, sums)
			}
		}
	}
	return v
}

// requant rounds to 8 bits and back.
func requant(x []float32) []float32 {
	y := make([]float32, len(x))
	for i := 0; i < len(x); i += 32 {
		var m float32
		for _, v := range x[i : i+32] {
			m = max(m, float32(math.Abs(float64(v))))
		}
		if m == 0 {
			continue
		}
		for j, v := range x[i : i+32] {
			y[i+j] = m / 127 * float32(math.RoundToEven(float64(v*(127/m))))
		}
	}
	return y
}

// testExperts: both halves of a mixture, 3 tokens with 2 of 4 experts each.
func (b *bench) testExperts(l kernels.Layout, f *quant.Format) {
	const count, used, tokens, ff, n = 4, 2, 3, 256, 256
	x := b.normal(tokens*n, 1)
	gu, down := randomRows(b.rng, f, count*2*ff*n), randomRows(b.rng, f, count*n*ff)
	ids, weight := []int32{2, 0, 3, 1, 2, 3}, b.normal(tokens*used, 1)
	bias := b.normal(count*2*ff, 0.1)
	dbias := b.normal(count*n, 0.1)

	h := make([]float32, tokens*used*ff)
	for s, e := range ids {
		one := len(gu) / count
		p := product(b.t, f, gu[int(e)*one:][:one], 2*ff, x[s/used*n:][:n], 1, n)
		for r := range ff {
			h[s*ff+r] = act(ops.SiLU, p[r]+bias[int(e)*2*ff+r], p[ff+r]+bias[int(e)*2*ff+ff+r])
		}
	}
	wg, wd, a := b.weight(l.Type, 2*ff, n, count, gu), b.weight(l.Type, n, ff, count, down), b.acts(x, tokens, n)
	mg, err := b.set.Mul(wg, 1)
	b.ok(err)
	md, err := b.set.Mul(wd, 1)
	b.ok(err)
	to, err := ops.NewActs(b.arena, tokens*used, ff, true, true)
	b.ok(err)
	before := b.normal(tokens*n, 1)
	di, dw, db, dd, y := b.ints(ids), b.floats(weight), b.floats(bias), b.floats(dbias), b.floats(before)
	b.do(func(q *compute.Queue) error {
		if err := mg.RunExperts(q, a, tokens, used, di, ops.GLU{Bias: db, To: to}); err != nil {
			return err
		}
		return md.RunDown(q, to, tokens, used, di, dw, ops.Out{Y: y, Ld: n, Extra: dd, Flags: ops.Bias | ops.Add | ops.Settled, Scale: 0.5})
	})
	got := b.read(to.X, tokens*used*ff)
	near(b.t, "experts, first half", got, h, 2e-5)

	want := make([]float32, tokens*n)
	copy(want, before)
	for s, e := range ids {
		one := len(down) / count
		p := product(b.t, f, down[int(e)*one:][:one], n, got[s*ff:][:ff], 1, ff)
		for r := range n {
			want[s/used*n+r] += 0.5 * weight[s] * (p[r] + dbias[int(e)*n+r])
		}
	}
	near(b.t, "experts, second half", b.read(y, tokens*n), want, 3e-4)
}
