package compute

import "fmt"

// Arena hands out device memory from chunks, so that a model of any size never
// asks for more than a device gives at once, and small tensors do not cost one
// driver allocation each.
type Arena struct {
	dev    *Device
	chunk  int64
	chunks []*Buffer
	used   int64 // bytes taken of the last chunk
}

// Arena makes an empty arena. chunk is the size of its allocations, at most
// MaxBuffer; 0 means 256 MiB.
func (d *Device) Arena(chunk int64) *Arena {
	if chunk <= 0 {
		chunk = 256 << 20
	}
	return &Arena{dev: d, chunk: min(chunk, d.MaxBuffer())}
}

// Device is the device that the arena takes memory of.
func (a *Arena) Device() *Device { return a.dev }

// Alloc takes n bytes. More than a chunk gets an allocation of its own, more
// than MaxBuffer is ErrTooBig.
func (a *Arena) Alloc(n int64) (*Buffer, error) {
	if n <= 0 {
		return nil, fmt.Errorf("arena: allocate %d bytes: not a size", n)
	}
	var b *Buffer
	err := a.dev.run(a.dev.opts.Watchdog, func() (err error) {
		b, err = a.alloc(n)
		return err
	})
	return b, err
}

func (a *Arena) alloc(n int64) (*Buffer, error) {
	if n > a.chunk {
		b, err := a.dev.allocate(n)
		if err != nil {
			return nil, err
		}
		// before the last one, which still has room
		a.chunks = append([]*Buffer{b}, a.chunks...)
		return b.slice(0, n)
	}
	align := max(a.dev.info.Align, 256)
	off := (a.used + align - 1) / align * align
	if len(a.chunks) == 0 || a.chunks[len(a.chunks)-1].n != a.chunk || off+n > a.chunk {
		b, err := a.dev.allocate(a.chunk)
		if err != nil {
			return nil, err
		}
		a.chunks = append(a.chunks, b)
		off = 0
	}
	a.used = off + n
	return a.chunks[len(a.chunks)-1].slice(off, n)
}

// Size is the bytes of all chunks.
func (a *Arena) Size() int64 {
	var n int64
	for _, c := range a.chunks {
		n += c.n
	}
	return n
}

// Free gives all of it back.
func (a *Arena) Free() {
	for _, c := range a.chunks {
		c.Free()
	}
	a.chunks, a.used = nil, 0
}
