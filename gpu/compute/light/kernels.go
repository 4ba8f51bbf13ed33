package light

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
	"outcrop/gpu/doctor"
	"outcrop/gpu/kernels"
)

const (
	rows = 64
	cols = 512
)

// Kernels lists the products of every format, the norm and the choice of the
// best, each with a reference in float64.
func (v *device) Kernels() []doctor.Kernel {
	var list []doctor.Kernel
	if v.decode != nil {
		for _, set := range [][]kernels.Layout{kernels.Floats(), kernels.Layouts()} {
			for _, l := range set {
				list = append(list, &product{v, l})
			}
		}
	}
	return append(list, &norm{v}, &best{v})
}

// numbers gives n values around zero, the same at every call.
func numbers(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

func toBytes(v []float32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return b
}

// distance is the error relative to the reference's root mean square.
func distance(raw []byte, want []float64) float64 {
	var e, w float64
	for i, x := range want {
		d := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))) - x
		e += d * d
		w += x * x
	}
	if w == 0 {
		return math.Sqrt(e)
	}
	return math.Sqrt(e / w)
}

// blocks gives file blocks of random bits whose scales are sane: a block that
// decodes to something large or broken is drawn again.
func (v *device) blocks(l kernels.Layout, n int) ([]byte, []float32, error) {
	r := rand.New(rand.NewPCG(uint64(l.Type), 2))
	raw, val := make([]byte, n/l.Block*l.Bytes), make([]float32, n)
	for i := range n / l.Block {
		b, x := raw[i*l.Bytes:(i+1)*l.Bytes], val[i*l.Block:(i+1)*l.Block]
		for try := 0; ; try++ {
			for k := range b {
				b[k] = byte(r.Uint32())
			}
			if err := v.decode(l.Type, x, b); err != nil {
				return nil, nil, err
			}
			if sane(x) {
				break
			}
			if try == 10_000 {
				clear(b)
				if err := v.decode(l.Type, x, b); err != nil {
					return nil, nil, err
				}
				break
			}
		}
	}
	return raw, val, nil
}

func sane(x []float32) bool {
	var most float32
	for _, f := range x {
		if f != f {
			return false
		}
		most = max(most, float32(math.Abs(float64(f))))
	}
	return most < 1e3 && most > 1e-3
}

// product multiplies a matrix of a format with one column.
type product struct {
	v *device
	l kernels.Layout
}

func (k *product) Name() string { return "product " + k.l.Name }

// Want: activations are rounded to 8 bits (1/254 of the largest of 32 values at
// most, a third of that on average); float weights take them as they are.
func (k *product) want() float64 {
	if k.l.Float() {
		return 1e-5
	}
	return 2e-2
}

func (k *product) Run(ctx context.Context) ([]byte, float64, float64, error) {
	want := k.want()
	if err := ctx.Err(); err != nil {
		return nil, 0, want, err
	}
	raw, val, err := k.v.blocks(k.l, rows*cols)
	if err != nil {
		return nil, 0, want, err
	}
	x := numbers(cols, 3)
	ref := make([]float64, rows)
	for r := range ref {
		for c, a := range x {
			ref[r] += float64(val[r*cols+c]) * float64(a)
		}
	}
	d, set := k.v.d, k.v.set
	arena := d.Arena(4 << 20)
	defer arena.Free()
	size, err := ops.WeightSize(k.l.Type, rows, cols)
	if err != nil {
		return nil, 0, want, err
	}
	buf, err := arena.Alloc(size)
	if err != nil {
		return nil, 0, want, err
	}
	w, err := ops.NewWeight(k.l.Type, rows, cols, 1, buf)
	if err != nil {
		return nil, 0, want, err
	}
	up, err := set.NewUpload(k.l.Type)
	if err != nil {
		return nil, 0, want, err
	}
	defer up.Free()
	mul, err := set.Mul(w, 1)
	if err != nil {
		return nil, 0, want, err
	}
	quantize, err := set.Quantize()
	if err != nil {
		return nil, 0, want, err
	}
	a, err := ops.NewActs(arena, 1, cols, true, true)
	if err != nil {
		return nil, 0, want, err
	}
	y, err := arena.Alloc(4 * rows)
	if err != nil {
		return nil, 0, want, err
	}
	out := make([]byte, 4*rows)
	err = d.Do(func(q *compute.Queue) error {
		for _, op := range []func() error{
			func() error { return q.Fill(y, 0, 4*rows, 0xff) }, // what is not written is NaN
			func() error { return up.Run(q, w, 0, 0, raw) },
			func() error { return q.Write(a.X, 0, toBytes(x)) },
			func() error { return quantize.Run(q, a, a.X, 1, cols) },
			func() error { return mul.Run(q, a, 1, ops.Out{Y: y, Ld: rows}) },
			func() error { return q.Read(out, y, 0) },
		} {
			if err := op(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, want, err
	}
	return out, distance(out, ref), want, nil
}

// norm is the RMS norm of one row.
type norm struct{ v *device }

func (k *norm) Name() string { return "norm" }

func (k *norm) Run(ctx context.Context) ([]byte, float64, float64, error) {
	const want = 1e-5
	if err := ctx.Err(); err != nil {
		return nil, 0, want, err
	}
	x, w := numbers(cols, 4), numbers(cols, 5)
	var sum float64
	for _, a := range x {
		sum += float64(a) * float64(a)
	}
	ref := make([]float64, cols)
	for i, a := range x {
		ref[i] = float64(a) / math.Sqrt(sum/cols+1e-6) * float64(w[i])
	}
	d := k.v.d
	r, err := k.v.set.Rows()
	if err != nil {
		return nil, 0, want, err
	}
	arena := d.Arena(1 << 20)
	defer arena.Free()
	dx, err := arena.Alloc(4 * cols)
	if err != nil {
		return nil, 0, want, err
	}
	dw, err := arena.Alloc(4 * cols)
	if err != nil {
		return nil, 0, want, err
	}
	to, err := ops.NewActs(arena, 1, cols, true, false)
	if err != nil {
		return nil, 0, want, err
	}
	out := make([]byte, 4*cols)
	err = d.Do(func(q *compute.Queue) error {
		if err := q.Write(dx, 0, toBytes(x)); err != nil {
			return err
		}
		if err := q.Write(dw, 0, toBytes(w)); err != nil {
			return err
		}
		if err := r.Norm(q, 1, ops.Norm{X: dx, N: cols, W: dw, Eps: 1e-6, To: to}); err != nil {
			return err
		}
		return q.Read(out, to.X, 0)
	})
	if err != nil {
		return nil, 0, want, err
	}
	return out, distance(out, ref), want, nil
}

// best is the choice of the largest logit.
type best struct{ v *device }

func (k *best) Name() string { return "best logit" }

func (k *best) Run(ctx context.Context) ([]byte, float64, float64, error) {
	const n = 20_000
	if err := ctx.Err(); err != nil {
		return nil, 0, 0, err
	}
	x := numbers(n, 6)
	place := 0
	for i, v := range x {
		if v > x[place] {
			place = i
		}
	}
	d := k.v.d
	r, err := k.v.set.Rows()
	if err != nil {
		return nil, 0, 0, err
	}
	arena := d.Arena(1 << 20)
	defer arena.Free()
	var bufs [5]*compute.Buffer
	for i, size := range []int64{4 * n, ops.BestScratch(1, n), ops.BestScratch(1, n), 4, 4} {
		if bufs[i], err = arena.Alloc(size); err != nil {
			return nil, 0, 0, err
		}
	}
	out := make([]byte, 4)
	err = d.Do(func(q *compute.Queue) error {
		if err := q.Write(bufs[0], 0, toBytes(x)); err != nil {
			return err
		}
		if err := r.Best(q, bufs[0], 1, n, bufs[1], bufs[2], bufs[3], bufs[4]); err != nil {
			return err
		}
		return q.Read(out, bufs[4], 0)
	})
	if err != nil {
		return nil, 0, 0, err
	}
	if got := int(int32(binary.LittleEndian.Uint32(out))); got != place {
		return out, 0, 0, fmt.Errorf("place %d, want %d", got, place)
	}
	return out, 0, 0, nil
}
