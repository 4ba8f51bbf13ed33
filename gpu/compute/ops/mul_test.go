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

// TestMulVec multiplies every format with 1 to 8 columns on the device and
// compares with the plain loops of engine/quant. Both round activations the
// same way, so what is left is the order of float additions: 1e-6 of the sum of
// magnitudes would do, 2e-5 relative RMS of the results is well above noise.
func TestMulVec(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		b := newBench(t, d)
		quantize, err := b.set.Quantize()
		b.ok(err)
		for _, l := range kernels.Layouts() {
			t.Run(l.Name, func(t *testing.T) {
				b := *b
				b.t = t
				f, err := quant.Of(quant.Type(l.Type))
				b.ok(err)
				const rows, cols, n = 37, 8, 512
				raw := randomRows(b.rng, f, rows*n)
				x := b.normal(cols*n, 1)
				var acts quant.Acts
				acts.Set(x, cols, n)
				acts.Quantize(0, cols)
				want := make([]float32, cols*rows)
				quant.Mul(f, want, rows, raw, rows, &acts, nil)

				size, err := ops.WeightSize(l.Type, rows, n)
				b.ok(err)
				w, err := ops.NewWeight(l.Type, rows, n, 1, b.alloc(size))
				b.ok(err)
				up, err := b.set.NewUpload(l.Type)
				b.ok(err)
				defer up.Free()
				mul, err := b.set.MulVec(w)
				b.ok(err)
				a, err := ops.NewActs(b.arena, cols, n)
				b.ok(err)
				dx, y := b.floats(x), b.alloc(4*cols*rows)
				for _, c := range []int{1, 2, 3, 5, 8} {
					b.poison(y)
					b.do(func(q *compute.Queue) error {
						// two pieces, to test rows that do not start at 0
						part := 16 * f.RowBytes(n)
						if err := up.Run(q, w, 0, 0, raw[:part]); err != nil {
							return err
						}
						if err := up.Run(q, w, 0, 16, raw[part:]); err != nil {
							return err
						}
						if err := quantize.Run(q, a, dx, cols, n); err != nil {
							return err
						}
						return mul.Run(q, a, c, ops.Out{Y: y, Ld: rows})
					})
					near(t, "product", b.read(y, c*rows), want[:c*rows], 2e-5)
				}
			})
		}
	})
}
