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

// Memory makes a device that has memory and no kernels, for Together.
func Memory(d *compute.Device) doctor.Device { return &device{d: d} }

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

// Units multiplies on matrix units. Those that the engine does not try by itself must be
// right; without the others prompts are slower.
func (v *device) Units(ctx context.Context) (words string, err error) {
	if v.set == nil {
		return "", ctx.Err()
	}
	there, err := v.set.ProveUnits()
	switch {
	case !there:
		return "", nil
	case err == nil:
		return "all right", nil
	case v.d.Info().Features.Nvidia > 0:
		return "", fmt.Errorf("matrix units: %w", err)
	}
	return fmt.Sprintf("not used, prompts are slower: %v", err), nil
}

func (v *device) PCI() gpu.PCI { return gpu.PCI(v.d.Info().PCI) }

// Memory is what is free, so that nobody else's memory is counted on.
func (v *device) Memory() int64 {
	if free, _, known := v.d.Memory(); known {
		return free
	}
	return v.d.Info().Memory
}

// Alloc gives one allocation, so that the ladder finds the largest that the
// driver grants.
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
	b, err := v.d.Alloc(n)
	if err != nil {
		return nil, err
	}
	return &onCard{v.d, b}, nil
}

// onCard is memory of the device.
type onCard struct {
	d *compute.Device
	b *compute.Buffer
}

func (b *onCard) Size() int64 { return b.b.Len() }

func (b *onCard) Write(off int64, p []byte) error {
	return b.d.Do(func(q *compute.Queue) error { return q.Write(b.b, off, p) })
}

func (b *onCard) Read(off int64, p []byte) error {
	return b.d.Do(func(q *compute.Queue) error { return q.Read(p, b.b, off) })
}

func (b *onCard) Free() error {
	b.b.Free()
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
