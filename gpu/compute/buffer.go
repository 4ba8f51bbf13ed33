package compute

import (
	"fmt"
	"sync/atomic"
)

// Buffer is a range of device memory: an allocation, or a slice of one.
type Buffer struct {
	dev  *Device
	base *base
	ref  handle
	off  int64 // within base
	n    int64
	own  bool // the whole allocation: Free gives it back
	gone atomic.Bool
}

// base is one allocation of the driver.
type base struct {
	dev    *Device
	ref    handle
	n      int64
	keys   map[[2]int64]*Buffer
	slices []handle // of keys, in the order of making
	freed  bool
}

// Alloc takes n bytes of device memory, contents undefined. A size over
// Info.MaxAlloc or ChunkLimit is refused with ErrTooBig without asking the
// driver: callers cut their data, or use an Arena.
func (d *Device) Alloc(n int64) (*Buffer, error) {
	var b *Buffer
	err := d.run(d.opts.Watchdog, func() (err error) {
		b, err = d.allocate(n)
		return err
	})
	return b, err
}

// MaxBuffer is the largest size that Alloc takes.
func (d *Device) MaxBuffer() int64 {
	if d.info.MaxAlloc > 0 {
		return min(d.info.MaxAlloc, ChunkLimit)
	}
	return ChunkLimit
}

func (d *Device) allocate(n int64) (*Buffer, error) {
	if n <= 0 {
		return nil, fmt.Errorf("allocate %d bytes on %s: not a size", n, d.info)
	}
	if most := d.MaxBuffer(); n > most {
		return nil, fmt.Errorf("allocate %d bytes on %s: %w: at most %d at once", n, d.info, ErrTooBig, most)
	}
	if err := d.within(n); err != nil {
		return nil, err
	}
	ref, err := d.back.alloc(n)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes on %s (%d in use): %w", n, d.info, d.used.Load(), err)
	}
	d.used.Add(n)
	ba := &base{dev: d, ref: ref, n: n, keys: map[[2]int64]*Buffer{}}
	d.bases[ba] = struct{}{}
	return &Buffer{dev: d, base: ba, ref: ref, n: n, own: true}, nil
}

// Len is the buffer's size in bytes.
func (b *Buffer) Len() int64 { return b.n }

// Device is where the buffer lies.
func (b *Buffer) Device() *Device { return b.dev }

// Slice gives n bytes at off of the buffer, sharing its memory. off must be a
// multiple of Info.Align. Slices need no Free; they end with the allocation.
func (b *Buffer) Slice(off, n int64) (*Buffer, error) {
	var s *Buffer
	err := b.dev.run(b.dev.opts.Watchdog, func() (err error) {
		s, err = b.slice(off, n)
		return err
	})
	return s, err
}

func (b *Buffer) slice(off, n int64) (*Buffer, error) {
	if off < 0 || n <= 0 || off+n > b.n {
		return nil, fmt.Errorf("slice %d bytes at %d of a buffer of %d bytes", n, off, b.n)
	}
	off += b.off
	if a := b.dev.info.Align; a > 1 && off%a != 0 {
		return nil, fmt.Errorf("slice at %d: %s wants multiples of %d", off, b.dev.info, a)
	}
	key := [2]int64{off, n}
	if s := b.base.keys[key]; s != nil {
		return s, nil
	}
	ref, err := b.dev.back.slice(b.base.ref, off, n)
	if err != nil {
		return nil, fmt.Errorf("slice %d bytes at %d of a buffer of %d bytes: %w", n, off, b.base.n, err)
	}
	s := &Buffer{dev: b.dev, base: b.base, ref: ref, off: off, n: n}
	b.base.keys[key] = s
	b.base.slices = append(b.base.slices, ref)
	return s, nil
}

// Free gives the memory back. Work that uses it must have ended: Do waits for
// that by default. Freeing twice, or a slice, does nothing.
func (b *Buffer) Free() {
	if b == nil || !b.own || b.gone.Swap(true) {
		return
	}
	b.dev.run(b.dev.opts.Watchdog, func() error {
		b.base.free()
		return nil
	})
}

func (b *base) free() {
	if b.freed {
		return
	}
	b.freed = true
	// The newest first: NVIDIA's OpenCL (580.159) crashes in clReleaseMemObject when
	// sub-buffers go in another order.
	for i := len(b.slices) - 1; i >= 0; i-- {
		b.dev.back.release(b.slices[i])
	}
	b.dev.back.free(b.ref)
	b.dev.used.Add(-b.n)
	delete(b.dev.bases, b)
}

// inside checks a range of a copy.
func (b *Buffer) inside(off, n int64) error {
	switch {
	case b == nil:
		return fmt.Errorf("copy: no buffer")
	case b.base.freed:
		return fmt.Errorf("copy: the buffer of %d bytes was freed", b.n)
	case off < 0 || n < 0 || off+n > b.n:
		return fmt.Errorf("copy %d bytes at %d of a buffer of %d bytes", n, off, b.n)
	}
	return nil
}

// Host is pinned host memory: the device copies from and to it directly and
// asynchronously. It is not Go memory; it stays valid until Free.
type Host struct {
	dev    *Device
	token  handle
	mem    []byte
	shared *sharedMemory // nil: the device's own
	freed  bool
	gone   atomic.Bool
}

// Host takes n bytes of pinned host memory, at most HostLimit.
func (d *Device) Host(n int64) (*Host, error) {
	var h *Host
	err := d.run(d.opts.Watchdog, func() (err error) {
		h, err = d.host(n)
		return err
	})
	return h, err
}

func (d *Device) host(n int64) (*Host, error) {
	if n <= 0 {
		return nil, fmt.Errorf("pin %d bytes for %s: not a size", n, d.info)
	}
	if n > HostLimit {
		return nil, fmt.Errorf("pin %d bytes for %s: %w: at most %d at once", n, d.info, ErrTooBig, int64(HostLimit))
	}
	mem, token, err := d.back.pin(n)
	if err != nil {
		return nil, fmt.Errorf("pin %d bytes for %s: %w", n, d.info, err)
	}
	d.pinned.Add(n)
	h := &Host{dev: d, token: token, mem: mem}
	d.hosts[h] = struct{}{}
	return h, nil
}

// Bytes is the memory. It must not be touched while a copy that uses it is on
// its way.
func (h *Host) Bytes() []byte { return h.mem }

// Free gives the memory back; Bytes must not be used any more.
func (h *Host) Free() {
	if h == nil || h.gone.Swap(true) {
		return
	}
	h.dev.run(h.dev.opts.Watchdog, func() error {
		h.free()
		return nil
	})
}

func (h *Host) free() {
	if h.freed {
		return
	}
	h.freed = true
	if h.shared != nil {
		h.shared.release(h.dev, h.token)
	} else {
		h.dev.back.unpin(h.token)
	}
	h.dev.pinned.Add(-int64(len(h.mem)))
	h.mem = nil
	delete(h.dev.hosts, h)
}
