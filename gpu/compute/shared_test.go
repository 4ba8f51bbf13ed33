package compute_test

import (
	"bytes"
	"errors"
	"runtime"
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
)

// TestShare: what one device copies to shared memory another one copies from,
// plain and in recorded sequences; views are freed in any order, and close with
// their device. A driver that has none says so, and leaves nothing behind.
func TestShare(t *testing.T) {
	t.Run("fake", func(t *testing.T) {
		f := &compute.Fake{Count: 2}
		infos, err := f.Devices()
		if err != nil {
			t.Fatal(err)
		}
		var devs []*compute.Device
		for _, i := range infos {
			devs = append(devs, computetest.Open(t, f, i))
		}
		if !shares(t, devs[0], devs[1]) {
			t.Error("fake cards do not share")
		}
		before := f.Live()
		_, staged := devs[0].Used()
		f.Break(compute.Fault{NoShare: true})
		if shares(t, devs[0], devs[1]) {
			t.Error("shared by cards that cannot")
		}
		f.Break(compute.Fault{PinFails: true})
		if _, err := compute.Share(1<<16, devs...); !errors.Is(err, compute.ErrNotShared) || !errors.Is(err, compute.ErrMemory) {
			t.Errorf("no memory to pin: %v", err)
		}
		f.Break(compute.Fault{})
		if n := f.Live(); n != before {
			t.Errorf("%d things are held, %d before", n, before)
		}
		// The second of two cannot: the first one's view goes back.
		other := &compute.Fake{}
		other.Break(compute.Fault{NoShare: true})
		infos, _ = other.Devices()
		if _, err := compute.Share(1<<16, devs[0], computetest.Open(t, other, infos[0])); !errors.Is(err, compute.ErrNotShared) {
			t.Errorf("with a device that cannot: %v", err)
		}
		if _, pinned := devs[0].Used(); f.Live() != before || pinned != staged {
			t.Errorf("%d things and %d bytes are held after a share that failed, %d and %d before", f.Live(), pinned, before, staged)
		}
	})
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		for _, drv := range compute.Drivers() {
			if drv.Name() == d.Info().Driver && !shares(t, d, computetest.Open(t, drv, d.Info())) {
				t.Log("not there: ", d.Info())
			}
		}
	})
	for _, n := range []int64{0, -1, compute.HostLimit + 1} {
		if _, err := compute.Share(n); err == nil {
			t.Errorf("shared %d bytes among none", n)
		}
	}
}

// shares tells whether two devices share memory, and tests that they do.
func shares(t *testing.T, a, b *compute.Device) bool {
	t.Helper()
	const n = 1<<20 + 1234
	used := func() (n int64) {
		for _, d := range []*compute.Device{a, b} {
			_, p := d.Used()
			n += p
		}
		return n
	}
	before := used()
	from, to := alloc(t, a, n), alloc(t, b, n)
	defer from.Free()
	defer to.Free()
	src, got := pattern(n, 3), make([]byte, n)
	do(t, a, func(q *compute.Queue) error { return q.Write(from, 0, src) })
	do(t, b, func(q *compute.Queue) error { return q.Read(got, to, 0) }) // staging memory is there
	staged := used() - before
	views, err := compute.Share(n, a, b)
	if errors.Is(err, compute.ErrNotShared) {
		if views != nil || used()-before != staged {
			t.Errorf("not shared: %v, %d bytes held", views, used()-before-staged)
		}
		return false
	}
	if err != nil || len(views) != 2 || len(views[0].Bytes()) != n || &views[0].Bytes()[0] != &views[1].Bytes()[0] {
		t.Fatalf("share: %d views, %v", len(views), err)
	}
	hand := func(what string) {
		t.Helper()
		do(t, b, func(q *compute.Queue) error {
			if err := q.Fill(to, 0, n, 0xee); err != nil {
				return err
			}
			return q.WriteHost(to, 4, views[1], 4, n-4)
		})
		do(t, b, func(q *compute.Queue) error { return q.Read(got, to, 0) })
		if !bytes.Equal(got[4:], views[1].Bytes()[4:]) || !bytes.Equal(got[:4], []byte{0xee, 0xee, 0xee, 0xee}) {
			t.Errorf("%s: first difference at %d", what, differs(got[4:], views[1].Bytes()[4:]))
		}
	}
	do(t, a, func(q *compute.Queue) error { return q.ReadHost(views[0], 0, from, 0, n) })
	if !bytes.Equal(views[1].Bytes(), src) {
		t.Errorf("through the other view: first difference at %d", differs(views[1].Bytes(), src))
	}
	hand("handed over")
	for i := range views[1].Bytes() {
		views[1].Bytes()[i] = byte(i)
	}
	hand("written by the CPU")
	// Recorded on both sides.
	down, err := a.Record(func(q *compute.Queue) error { return q.ReadHost(views[0], 0, from, 0, n) })
	if err != nil {
		t.Fatal(err)
	}
	up, err := b.Record(func(q *compute.Queue) error { return q.WriteHost(to, 0, views[1], 0, n) })
	if err != nil {
		t.Fatal(err)
	}
	for seed := range 3 {
		src = pattern(n, 10+seed)
		do(t, a, func(q *compute.Queue) error {
			if err := q.Write(from, 0, src); err != nil {
				return err
			}
			return q.Replay(down)
		})
		do(t, b, func(q *compute.Queue) error {
			if err := q.Replay(up); err != nil {
				return err
			}
			return q.Read(got, to, 0)
		})
		if !bytes.Equal(got, src) {
			t.Errorf("recorded: first difference at %d", differs(got, src))
		}
	}
	down.Free()
	up.Free()
	// A view is its device's alone.
	if err := b.Do(func(q *compute.Queue) error { return q.WriteHost(to, 0, views[0], 0, n) }); err == nil {
		t.Error("a device copied from another one's view")
	}
	views[0].Free()
	views[0].Free()
	if err := a.Do(func(q *compute.Queue) error { return q.ReadHost(views[0], 0, from, 0, n) }); err == nil {
		t.Error("a device copied to a view that was freed")
	}
	runtime.GC()
	hand("after the other view has gone")
	views[1].Free()
	if used()-before != staged {
		t.Errorf("%d bytes are held after both views were freed", used()-before-staged)
	}
	return true
}
