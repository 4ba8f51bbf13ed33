package compute

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
)

// ErrNotShared is wrapped when a device cannot use host memory that is pinned for
// another one too.
var ErrNotShared = errors.New("host memory cannot be shared")

// Share takes n bytes of pinned host memory that each of several devices copies
// from and to directly, so that what one wrote the next can read and no CPU
// copies it. There is one view for each device, in their order, all of the same
// bytes; a view is that device's alone in every call, and is freed by itself. The
// memory goes with the last of them. Where a device cannot do that the error is
// ErrNotShared, and each wants memory of its own.
//
// Devices do not wait for each other: a copy to the memory must have ended (Do
// has returned) before another device's copy from it is enqueued.
func Share(n int64, devs ...*Device) ([]*Host, error) {
	if n <= 0 || len(devs) == 0 {
		return nil, fmt.Errorf("share %d bytes among %d devices: not a size", n, len(devs))
	}
	if n > HostLimit {
		return nil, fmt.Errorf("share %d bytes: %w: at most %d at once", n, ErrTooBig, int64(HostLimit))
	}
	s, err := newSharedMemory(n)
	if err != nil {
		return nil, fmt.Errorf("share %d bytes: %w", n, err)
	}
	var views []*Host
	for _, d := range devs {
		h, err := d.adopt(s)
		if err != nil {
			for _, h := range views {
				h.Free()
			}
			if len(views) == 0 {
				s.drop()
			}
			return nil, err
		}
		views = append(views, h)
	}
	return views, nil
}

// sharedMemory is memory of this program that drivers were told of. A device that
// hangs never gives it back, so it stays where it is for as long.
type sharedMemory struct {
	mem   []byte // whole pages
	n     int64  // that were asked for
	users atomic.Int64
	drop  func()
}

func newSharedMemory(n int64) (*sharedMemory, error) {
	page := int64(max(os.Getpagesize(), 4096))
	mem, free, err := pages((n + page - 1) / page * page)
	return &sharedMemory{mem: mem, n: n, drop: free}, err
}

// adopt makes a view of memory for a device.
func (d *Device) adopt(s *sharedMemory) (h *Host, err error) {
	err = d.run(d.opts.Watchdog, func() error {
		token, err := d.back.adopt(s.mem)
		if err != nil {
			if !fatal(err) && !errors.Is(err, ErrNotShared) {
				err = fmt.Errorf("%w: %w", ErrNotShared, err)
			}
			return fmt.Errorf("share %d bytes with %s: %w", s.n, d.info, err)
		}
		s.users.Add(1)
		d.pinned.Add(s.n)
		h = &Host{dev: d, token: token, mem: s.mem[:s.n:s.n], shared: s}
		d.hosts[h] = struct{}{}
		return nil
	})
	return h, err
}

// release gives a view back, and the memory with the last one.
func (s *sharedMemory) release(d *Device, token handle) {
	d.back.unadopt(token)
	if s.users.Add(-1) == 0 {
		s.drop()
	}
}
