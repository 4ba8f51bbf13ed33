package engine

import (
	"errors"
	"sync"

	"outcrop/gpu/compute"
)

// hop is pinned memory in which activations go from one device to the next: one
// piece of memory that both know, or, where their drivers have no such thing, a
// piece of each and a copy by the CPU between them.
type hop struct {
	from, to *compute.Host // as the two devices see it
	one      bool          // it is the same memory
}

// hopsEach is how many there are between two devices: one that is written to, one
// that is read, and one that waits, so that neither device stops for the other's
// shorter piece.
const hopsEach = 3

// newHop takes n bytes between two devices.
func newHop(from, to *compute.Device, n int64) (*hop, error) {
	both, err := compute.Share(n, from, to)
	if err == nil {
		return &hop{both[0], both[1], true}, nil
	}
	if !errors.Is(err, compute.ErrNotShared) {
		return nil, err
	}
	h := &hop{}
	if h.from, err = from.Host(n); err == nil {
		if h.to, err = to.Host(n); err == nil {
			return h, nil
		}
	}
	h.free()
	return nil, err
}

// pass has the first n bytes, which the one device has written, be there for the
// other.
func (h *hop) pass(n int) {
	if !h.one {
		copyWide(h.to.Bytes()[:n], h.from.Bytes()[:n])
	}
}

func (h *hop) free() {
	for _, x := range []*compute.Host{h.from, h.to} {
		if x != nil {
			x.Free()
		}
	}
}

// openHops takes what activations go through between the runs.
func (c *cards) openHops() error {
	if !c.flows() {
		return nil
	}
	c.chain, c.giveUp = c.chains(), giveUp
	for i, r := range c.runs[:len(c.runs)-1] {
		for range hopsEach {
			h, err := newHop(r.dev, c.runs[i+1].dev, 4*int64(r.buf.rows*c.m.spec.dim))
			if err != nil {
				return r.wrap(err)
			}
			r.hops = append(r.hops, h)
		}
	}
	return nil
}

// flows tells whether activations go from device to device.
func (c *cards) flows() bool { return len(c.runs) > 1 && c.piped() }

// piped tells whether prompts go piece by piece through several devices, or the
// CPU's layers and a device's.
func (c *cards) piped() bool { return c.stages() > 1 && c.check == nil && c.plain() }

// stages counts the devices, and the CPU where it has layers.
func (c *cards) stages() int {
	if c.first > 0 {
		return len(c.runs) + 1
	}
	return len(c.runs)
}

// widePiece and wideMost: one core copies 7 to 10 GB/s where the memory gives
// several times that.
const (
	widePiece = 1 << 20
	wideMost  = 8
)

// copyWide copies with several goroutines where there is much.
func copyWide(dst, src []byte) {
	n := min(len(dst), len(src))
	parts := min(n/widePiece, wideMost)
	if parts < 2 {
		copy(dst[:n], src)
		return
	}
	var all sync.WaitGroup
	each := (n/parts + 63) / 64 * 64
	for at := each; at < n; at += each {
		end := min(at+each, n)
		all.Go(func() { copy(dst[at:end], src[at:end]) })
	}
	copy(dst[:each], src)
	all.Wait()
}
