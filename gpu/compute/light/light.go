// Package light makes an open device ready for first light (gpu/doctor): memory
// that is asked for, written and read through the driver, and every kernel that
// a model uses with a reference in Go beside it.
package light

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"outcrop/gpu"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
	"outcrop/gpu/doctor"
	"outcrop/gpu/kernels"
)

// Decode gives the values of file blocks: len(dst) values of the ggml type. It
// comes from outside (engine/quant), as nothing under gpu knows file formats.
type Decode func(typ uint32, dst []float32, src []byte) error

// New makes a device of first light. The context stays the caller's to close.
func New(d *compute.Device, decode Decode) (doctor.Device, error) {
	set, err := ops.New(d)
	if err != nil {
		return nil, err
	}
	p, err := d.Load(kernels.Light())
	if err != nil {
		return nil, err
	}
	touch, err := p.Kernel("light_touch")
	if err != nil {
		return nil, err
	}
	word, err := d.Alloc(256)
	if err != nil {
		return nil, err
	}
	return &device{d: d, set: set, touch: touch, word: word, decode: decode}, nil
}

type device struct {
	d      *compute.Device
	set    *ops.Set
	touch  *compute.Kernel
	word   *compute.Buffer
	turn   uint32
	decode Decode
}

func (v *device) Name() string { return v.d.Info().Name }

func (v *device) Driver() string {
	i := v.d.Info()
	s := i.API
	if i.Version != "" {
		s += ", driver " + i.Version
	}
	return i.Driver + ": " + s
}

func (v *device) PCI() gpu.PCI  { return gpu.PCI(v.d.Info().PCI) }
func (v *device) Memory() int64 { return v.d.Info().Memory }

// Alloc gives one piece of memory. Device memory beyond the largest single
// allocation comes in chunks, as the engine takes it.
func (v *device) Alloc(ctx context.Context, s doctor.Space, n int64) (doctor.Buffer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s == doctor.PinnedHost {
		h, err := v.d.Host(n)
		if err != nil {
			return nil, err
		}
		return &pinned{v.d, h, n}, nil
	}
	b := &chunks{d: v.d, n: n, each: v.d.MaxBuffer() / 4096 * 4096}
	for left := n; left > 0; left -= b.each {
		c, err := v.d.Alloc(min(left, b.each))
		if err != nil {
			b.Free()
			return nil, err
		}
		b.list = append(b.list, c)
	}
	return b, nil
}

// chunks is device memory in pieces below the largest allocation.
type chunks struct {
	d       *compute.Device
	list    []*compute.Buffer
	n, each int64
}

func (b *chunks) Size() int64 { return b.n }

// pieces calls fn for the parts of a range that lie in one chunk.
func (b *chunks) pieces(off int64, p []byte, fn func(q *compute.Queue, c *compute.Buffer, off int64, p []byte) error) error {
	if off < 0 || off+int64(len(p)) > b.n {
		return fmt.Errorf("%d bytes at %d are outside a buffer of %d", len(p), off, b.n)
	}
	return b.d.Do(func(q *compute.Queue) error {
		for len(p) > 0 {
			i, at := off/b.each, off%b.each
			n := min(int64(len(p)), b.list[i].Len()-at)
			if err := fn(q, b.list[i], at, p[:n]); err != nil {
				return err
			}
			p, off = p[n:], off+n
		}
		return nil
	})
}

func (b *chunks) Write(off int64, p []byte) error {
	return b.pieces(off, p, func(q *compute.Queue, c *compute.Buffer, off int64, p []byte) error { return q.Write(c, off, p) })
}

func (b *chunks) Read(off int64, p []byte) error {
	return b.pieces(off, p, func(q *compute.Queue, c *compute.Buffer, off int64, p []byte) error { return q.Read(p, c, off) })
}

func (b *chunks) Free() error {
	for _, c := range b.list {
		c.Free()
	}
	b.list = nil
	return b.d.Err()
}

// pinned is pinned host memory. What is written goes to the device and back, as
// the host alone would prove nothing.
type pinned struct {
	d *compute.Device
	h *compute.Host
	n int64
}

func (b *pinned) Size() int64 { return b.n }

func (b *pinned) inside(off int64, p []byte) error {
	if off < 0 || off+int64(len(p)) > b.n {
		return fmt.Errorf("%d bytes at %d are outside a buffer of %d", len(p), off, b.n)
	}
	return nil
}

func (b *pinned) Write(off int64, p []byte) error {
	if err := b.inside(off, p); err != nil || len(p) == 0 {
		return err
	}
	n := int64(len(p))
	t, err := b.d.Alloc(n)
	if err != nil {
		return err
	}
	defer t.Free()
	return b.d.Do(func(q *compute.Queue) error {
		if err := q.Write(t, 0, p); err != nil {
			return err
		}
		return q.ReadHost(b.h, off, t, 0, n)
	})
}

func (b *pinned) Read(off int64, p []byte) error {
	if err := b.inside(off, p); err != nil || len(p) == 0 {
		return err
	}
	n := int64(len(p))
	t, err := b.d.Alloc(n)
	if err != nil {
		return err
	}
	defer t.Free()
	return b.d.Do(func(q *compute.Queue) error {
		if err := q.WriteHost(t, 0, b.h, off, n); err != nil {
			return err
		}
		return q.Read(p, t, 0)
	})
}

func (b *pinned) Free() error {
	b.h.Free()
	return b.d.Err()
}

// Launch runs a kernel that writes one word and reads it back.
func (v *device) Launch(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	v.turn++
	var got [4]byte
	err := v.d.Do(func(q *compute.Queue) error {
		if err := q.Launch(v.touch, compute.Dim{X: 1}, compute.Dim{X: 32}, compute.Mem(v.word), compute.Int(int(v.turn))); err != nil {
			return err
		}
		return q.Read(got[:], v.word, 0)
	})
	if err == nil && binary.LittleEndian.Uint32(got[:]) != v.turn {
		err = errors.New("the word that a kernel wrote was read back wrong")
	}
	return err
}
