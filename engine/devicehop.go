package engine

import (
	"errors"
	"sync"
	"time"

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

// newHop takes n bytes between two devices, one memory if share is set and they can.
func newHop(from, to *compute.Device, n int64, share bool) (*hop, error) {
	var err error
	if share {
		var both []*compute.Host
		if both, err = compute.Share(n, from, to); err == nil {
			return &hop{both[0], both[1], true}, nil
		}
		if !errors.Is(err, compute.ErrNotShared) {
			return nil, err
		}
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

// probeBytes are copied to find out how fast memory is that two devices know.
const probeBytes = 4 << 20

// sluggish tells whether a device copies from or to memory that it shares at less
// than half the speed of its own: a driver may know the memory, and go through a
// buffer of its own all the same. What stands for a card has no link to measure.
func (h *hop) sluggish(from, to *run) (bool, error) {
	for _, x := range []struct {
		dev *compute.Device
		mem *compute.Host
		buf *compute.Buffer // as long, and not in use yet
	}{{from.dev, h.from, from.buf.x}, {to.dev, h.to, to.buf.x}} {
		n := min(probeBytes, int64(len(x.mem.Bytes())))
		if i := x.dev.Info(); i.CPU || i.Driver == "fake" || n < probeBytes {
			continue
		}
		own, err := x.dev.Host(n)
		if err != nil {
			return false, err
		}
		var took [2]time.Duration
		for k, mem := range []*compute.Host{x.mem, own} {
			for run := range 5 {
				begin := time.Now()
				if err == nil {
					err = x.dev.Do(func(q *compute.Queue) error {
						if err := q.ReadHost(mem, 0, x.buf, 0, n); err != nil {
							return err
						}
						return q.WriteHost(x.buf, 0, mem, 0, n)
					})
				}
				if d := time.Since(begin); run == 0 || d < took[k] {
					took[k] = d
				}
			}
		}
		own.Free()
		if err != nil {
			return false, err
		}
		if took[0] > 2*took[1] {
			return true, nil
		}
	}
	return false, nil
}

// openHops takes what activations go through between the runs.
func (c *cards) openHops() error {
	if !c.flows() {
		return nil
	}
	c.chain, c.giveUp = c.chains(), giveUp
	for i, r := range c.runs[:len(c.runs)-1] {
		share, next := true, c.runs[i+1].dev
		for len(r.hops) < hopsEach {
			h, err := newHop(r.dev, next, 4*int64(r.buf.rows*c.m.spec.dim), share)
			if err != nil {
				return r.wrap(err)
			}
			if h.one && len(r.hops) == 0 {
				slow, err := h.sluggish(r, c.runs[i+1])
				if err != nil || slow {
					h.free()
				}
				if err != nil {
					return r.wrap(err)
				}
				if slow {
					share = false
					continue
				}
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
