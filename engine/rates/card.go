package rates

import (
	"context"
	"fmt"
	"slices"
	"time"

	"outcrop/gpu/compute"
)

// Link moves bytes to and from a card. Each call returns when the bytes are
// there.
type Link interface {
	// Write copies n bytes from pinned memory to the card.
	Write(n int64) error
	// HandOff writes and reads back a few kilobytes, as the engine does once a
	// layer when card and CPU share the work.
	HandOff() error
	// Most is the largest Write.
	Most() int64
}

const (
	linkBytes = 64 << 20
	handOffs  = 60
)

func measureCard(ctx context.Context, l Link, e effort) (c Card, err error) {
	n := min(linkBytes, l.Most())
	if n <= 0 {
		return c, fmt.Errorf("the card takes %d bytes at once", n)
	}
	for begin, i := time.Now(), 0; i < 3 || time.Since(begin) < e.linkTime; i++ {
		if err := ctx.Err(); err != nil {
			return c, err
		}
		one := time.Now()
		if err := l.Write(n); err != nil {
			return c, err
		}
		if i > 0 { // the first one touches pages and wakes the link up
			c.HostToDevice = max(c.HostToDevice, float64(n)/max(time.Since(one).Seconds(), 1e-9))
		}
	}
	times := make([]time.Duration, 0, handOffs)
	for range handOffs {
		one := time.Now()
		if err := l.HandOff(); err != nil {
			return c, err
		}
		times = append(times, time.Since(one))
	}
	slices.Sort(times)
	c.HandOff = times[len(times)/2]
	if p, ok := l.(Computer); ok {
		read, multiply, err := p.Products(ctx, e.linkTime)
		if err == nil {
			c.Read, c.Multiply = read, multiply
		} else if ctx.Err() != nil {
			return c, err
		} // else the load of a pack says what is wrong with its kernels
	}
	return c, nil
}

// deviceLink is a Link over an open device.
type deviceLink struct {
	dev  *compute.Device
	host *compute.Host
	buf  *compute.Buffer
}

// handOffBytes is a hidden state of 4096 floats.
const handOffBytes = 16 << 10

// Device makes a Link of an open device. Free gives its memory back.
func Device(d *compute.Device) (l Link, free func(), err error) {
	k := &deviceLink{dev: d}
	n := int64(linkBytes)
	if m := d.MaxBuffer(); m > 0 {
		n = min(n, m)
	}
	if k.host, err = d.Host(n); err != nil {
		return nil, nil, fmt.Errorf("pinned memory to measure the link with: %w", err)
	}
	if k.buf, err = d.Alloc(n); err != nil {
		k.host.Free()
		return nil, nil, fmt.Errorf("card memory to measure the link with: %w", err)
	}
	return k, func() { k.buf.Free(); k.host.Free() }, nil
}

func (k *deviceLink) Most() int64 { return k.buf.Len() }

func (k *deviceLink) Write(n int64) error {
	return k.dev.Do(func(q *compute.Queue) error { return q.WriteHost(k.buf, 0, k.host, 0, n) })
}

func (k *deviceLink) HandOff() error {
	n := min(handOffBytes, k.Most())
	return k.dev.Do(func(q *compute.Queue) error {
		if err := q.WriteHost(k.buf, 0, k.host, 0, n); err != nil {
			return err
		}
		return q.ReadHost(k.host, 0, k.buf, 0, n)
	})
}
