package doctor

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"outcrop/gpu"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
	source "outcrop/gpu/kernels"
)

// On gives an open graphics device as a device of first light. Its kernels are
// those that a model uses, compared with plain Go: a norm, products with floats
// and with 8-bit weights.
func On(d *compute.Device) (Device, error) {
	set, err := ops.New(d)
	if err != nil {
		return nil, fmt.Errorf("first light on %s: %w", d.Info(), err)
	}
	p, err := d.Load(source.Light())
	if err != nil {
		return nil, fmt.Errorf("first light: %w", err)
	}
	c := &card{dev: d, set: set}
	if c.touch, err = p.Kernel("light_touch"); err != nil {
		return nil, err
	}
	if c.word, err = d.Alloc(256); err != nil {
		return nil, err
	}
	return c, nil
}

type card struct {
	dev   *compute.Device
	set   *ops.Set
	touch *compute.Kernel
	word  *compute.Buffer
	turns uint32
}

func (c *card) Name() string { return c.dev.Info().Name }
func (c *card) Driver() string {
	i := c.dev.Info()
	return i.API + ", " + i.Version
}
func (c *card) PCI() gpu.PCI { return gpu.PCI(c.dev.Info().PCI) }

// Memory is what is free, so that nobody else's memory is counted on.
func (c *card) Memory() int64 {
	if free, _, known := c.dev.Memory(); known {
		return free
	}
	return c.dev.Info().Memory
}

func (c *card) Alloc(_ context.Context, s Space, n int64) (Buffer, error) {
	if s == PinnedHost {
		h, err := c.dev.Host(n)
		if err != nil {
			return nil, err
		}
		// Pinned memory is proved by the device reading and writing it.
		b, err := c.dev.Alloc(min(n, pinnedPiece))
		if err != nil {
			h.Free()
			return nil, err
		}
		return &pinned{c.dev, h, b, n}, nil
	}
	b, err := c.dev.Alloc(n)
	if err != nil {
		return nil, err
	}
	return &onCard{c.dev, b}, nil
}

// Launch runs a kernel that writes one word, and reads it.
func (c *card) Launch(context.Context) error {
	c.turns++
	var got [4]byte
	err := c.dev.Do(func(q *compute.Queue) error {
		if err := q.Launch(c.touch, compute.Dim{X: 1}, compute.Dim{X: 32}, compute.Mem(c.word), compute.Int(int(c.turns))); err != nil {
			return err
		}
		return q.Read(got[:], c.word, 0)
	})
	if err == nil && binary.LittleEndian.Uint32(got[:]) != c.turns {
		err = fmt.Errorf("a kernel wrote %d, read back as %d", c.turns, binary.LittleEndian.Uint32(got[:]))
	}
	return err
}

func (c *card) Kernels() []Kernel {
	return []Kernel{cardNorm{c}, cardProduct{c, false}, cardProduct{c, true}}
}

type onCard struct {
	dev *compute.Device
	b   *compute.Buffer
}

func (b *onCard) Size() int64 { return b.b.Len() }
func (b *onCard) Write(off int64, p []byte) error {
	return b.dev.Do(func(q *compute.Queue) error { return q.Write(b.b, off, p) })
}
func (b *onCard) Read(off int64, p []byte) error {
	return b.dev.Do(func(q *compute.Queue) error { return q.Read(p, b.b, off) })
}
func (b *onCard) Free() error { b.b.Free(); return nil }

// pinnedPiece is how much goes over the device at once to prove pinned memory.
const pinnedPiece = 4 << 20

type pinned struct {
	dev *compute.Device
	h   *compute.Host
	b   *compute.Buffer
	n   int64
}

func (b *pinned) Size() int64 { return b.n }

// Write brings p to the device and from there into pinned memory.
func (b *pinned) Write(off int64, p []byte) error {
	for len(p) > 0 {
		n := min(int64(len(p)), b.b.Len())
		err := b.dev.Do(func(q *compute.Queue) error {
			if err := q.Write(b.b, 0, p[:n]); err != nil {
				return err
			}
			return q.ReadHost(b.h, off, b.b, 0, n)
		})
		if err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	return nil
}

// Read has the device fetch pinned memory, and reads that.
func (b *pinned) Read(off int64, p []byte) error {
	for len(p) > 0 {
		n := min(int64(len(p)), b.b.Len())
		err := b.dev.Do(func(q *compute.Queue) error {
			if err := q.WriteHost(b.b, 0, b.h, off, n); err != nil {
				return err
			}
			return q.Read(p[:n], b.b, 0)
		})
		if err != nil {
			return err
		}
		p, off = p[n:], off+n
	}
	return nil
}

func (b *pinned) Free() error {
	b.b.Free()
	b.h.Free()
	return nil
}

// wave gives n numbers between -1 and 1 that look like nothing in particular.
func wave(n int, seed uint32) []float32 {
	out, x := make([]float32, n), seed*2654435761+1
	for i := range out {
		x ^= x << 13
		x ^= x >> 17
		x ^= x << 5
		out[i] = float32(int32(x)) / (1 << 31)
	}
	return out
}

func bytesOf(v []float32) []byte {
	b := make([]byte, 4*len(v))
	for i, x := range v {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(x))
	}
	return b
}

// relative is the largest error over the RMS of want.
func relative(got []byte, want []float64) float64 {
	var worst, sum float64
	for i, w := range want {
		g := float64(math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])))
		if e := math.Abs(g - w); e > worst || e != e {
			worst = e
		}
		sum += w * w
	}
	return worst / math.Sqrt(sum/float64(len(want)))
}

// cardNorm: x / rms(x).
type cardNorm struct{ c *card }

func (cardNorm) Name() string { return "norm" }

func (k cardNorm) Run(context.Context) (out []byte, e, want float64, err error) {
	const n, rows = 2048, 3
	a := k.c.dev.Arena(1 << 20)
	defer a.Free()
	to, err := ops.NewActs(a, rows, n, true, false)
	if err != nil {
		return nil, 0, 0, err
	}
	x, err := a.Alloc(4 * n * rows)
	if err != nil {
		return nil, 0, 0, err
	}
	r, err := k.c.set.Rows()
	if err != nil {
		return nil, 0, 0, err
	}
	in := wave(n*rows, 7)
	out = make([]byte, 4*n*rows)
	err = k.c.dev.Do(func(q *compute.Queue) error {
		if err := q.Write(x, 0, bytesOf(in)); err != nil {
			return err
		}
		if err := r.Norm(q, rows, ops.Norm{X: x, N: n, Eps: 1e-6, To: to}); err != nil {
			return err
		}
		return q.Read(out, to.X, 0)
	})
	ref := make([]float64, n*rows)
	for t := range rows {
		var sum float64
		for _, v := range in[t*n : (t+1)*n] {
			sum += float64(v) * float64(v)
		}
		for i, v := range in[t*n : (t+1)*n] {
			ref[t*n+i] = float64(v) / math.Sqrt(sum/n+1e-6)
		}
	}
	return out, relative(out, ref), 1e-5, err
}

// cardProduct: a matrix times a column, with floats or with Q8_0 blocks.
type cardProduct struct {
	c     *card
	bytes bool
}

func (k cardProduct) Name() string {
	if k.bytes {
		return "product with 8-bit weights"
	}
	return "product with floats"
}

func (k cardProduct) Run(context.Context) (out []byte, e, want float64, err error) {
	const n, rows = 1024, 96
	in, w := wave(n, 11), wave(n*rows, 13)
	typ, raw := uint32(0), []byte(nil)
	if k.bytes { // Q8_0: a half as scale, 32 bytes; the scale is 1/128 exactly
		typ = 8
		for i := 0; i < len(w); i += 32 {
			raw = binary.LittleEndian.AppendUint16(raw, 0x2000)
			for j := range 32 {
				v := int8(w[i+j] * 127)
				w[i+j] = float32(v) / 128
				raw = append(raw, byte(v))
			}
		}
	} else {
		raw = bytesOf(w)
	}
	ref := make([]float64, rows)
	for r := range ref {
		for c, v := range in {
			ref[r] += float64(v) * float64(w[r*n+c])
		}
	}
	want = 1e-5
	if k.bytes {
		want = 2e-2 // the column is rounded to 8 bits
	}
	a := k.c.dev.Arena(1 << 20)
	defer a.Free()
	size, err := ops.WeightSize(typ, rows, n)
	if err != nil {
		return nil, 0, 0, err
	}
	wb, err := a.Alloc(size)
	if err != nil {
		return nil, 0, 0, err
	}
	xb, err := a.Alloc(4 * n)
	if err != nil {
		return nil, 0, 0, err
	}
	y, err := a.Alloc(4 * rows)
	if err != nil {
		return nil, 0, 0, err
	}
	acts, err := ops.NewActs(a, 1, n, false, true)
	if err != nil {
		return nil, 0, 0, err
	}
	acts.X = xb
	weight, err := ops.NewWeight(typ, rows, n, 1, wb)
	if err != nil {
		return nil, 0, 0, err
	}
	mul, err := k.c.set.Mul(weight, 1)
	if err != nil {
		return nil, 0, 0, err
	}
	round, err := k.c.set.Quantize()
	if err != nil {
		return nil, 0, 0, err
	}
	up, err := k.c.set.NewUpload(typ)
	if err != nil {
		return nil, 0, 0, err
	}
	defer up.Free()
	out = make([]byte, 4*rows)
	err = k.c.dev.Do(func(q *compute.Queue) error {
		if err := up.Run(q, weight, 0, 0, raw); err != nil {
			return err
		}
		if err := q.Write(xb, 0, bytesOf(in)); err != nil {
			return err
		}
		if err := round.Run(q, acts, xb, 1, n); err != nil {
			return err
		}
		if err := mul.Run(q, acts, 1, ops.Out{Y: y, Ld: rows}); err != nil {
			return err
		}
		return q.Read(out, y, 0)
	})
	return out, relative(out, ref), want, err
}
