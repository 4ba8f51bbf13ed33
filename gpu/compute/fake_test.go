package compute

import (
	"errors"
	"strings"
	"testing"
	"time"

	"outcrop/gpu/kernels"
)

// addOne is the smallest kernel: it adds argument 1 to every byte of buffer 0.
func addOne(c *FakeCall) error {
	b := c.Bytes(0)
	for i := range b {
		b[i] += byte(c.Int(1))
	}
	return nil
}

func fakeDevice(t *testing.T, f *Fake, o Options) *Device {
	t.Helper()
	infos, err := f.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(f, infos[0], o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func fakeKernel(t *testing.T, d *Device, name string) *Kernel {
	t.Helper()
	p, err := d.Load(kernels.Module{Name: "m"})
	if err != nil {
		t.Fatal(err)
	}
	k, err := p.Kernel(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestFakeFaults(t *testing.T) {
	f := &Fake{Kernels: map[string]FakeKernel{"add": addOne}, Memory: 1 << 20, MaxAlloc: 1 << 18}
	d := fakeDevice(t, f, Options{})
	if _, err := d.Alloc(1<<18 + 1); !errors.Is(err, ErrTooBig) {
		t.Errorf("allocation over the device's limit: %v, want ErrTooBig", err)
	}
	b, err := d.Alloc(1000)
	if err != nil {
		t.Fatal(err)
	}
	f.Break(Fault{AllocOver: 1500})
	if _, err := d.Alloc(1000); !errors.Is(err, ErrMemory) {
		t.Errorf("allocation: %v, want ErrMemory", err)
	}
	f.Break(Fault{CopyFails: 2})
	write := func() error { return d.Do(func(q *Queue) error { return q.Write(b, 0, []byte{1}) }) }
	if err := write(); err != nil {
		t.Errorf("first copy: %v", err)
	}
	if err := write(); err == nil {
		t.Error("second copy worked, want the ordered failure")
	}
	k := fakeKernel(t, d, "add")
	f.Break(Fault{LostAfter: 1})
	run := func() error {
		return d.Do(func(q *Queue) error { return q.Launch(k, Dim{X: 1}, Dim{X: 1}, Mem(b), Int(1)) })
	}
	if err := run(); !errors.Is(err, ErrLost) {
		t.Errorf("launch: %v, want ErrLost", err)
	}
	f.Break(Fault{})
	if err := run(); !errors.Is(err, ErrLost) {
		t.Errorf("launch on a lost device: %v, want ErrLost without asking it", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close of a lost device: %v", err)
	}
	if n := f.Live(); n != 0 {
		t.Errorf("%d handles not given back", n)
	}
}

func TestWatchdog(t *testing.T) {
	f := &Fake{Kernels: map[string]FakeKernel{"add": addOne}}
	f.Break(Fault{Hang: "add", HangFor: 300 * time.Millisecond})
	d := fakeDevice(t, f, Options{Watchdog: 20 * time.Millisecond})
	b, err := d.Alloc(16)
	if err != nil {
		t.Fatal(err)
	}
	k := fakeKernel(t, d, "add")
	run := func() error {
		return d.Do(func(q *Queue) error { return q.Launch(k, Dim{X: 1}, Dim{X: 1}, Mem(b), Int(1)) })
	}
	if err := run(); !errors.Is(err, ErrHung) {
		t.Fatalf("hanging kernel: %v, want ErrHung", err)
	}
	start := time.Now()
	if err := run(); !errors.Is(err, ErrHung) {
		t.Errorf("after a hang: %v, want ErrHung", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close after a hang: %v", err)
	}
	if took := time.Since(start); took > 100*time.Millisecond {
		t.Errorf("a hung device was asked again: %v", took)
	}
}

func TestPanicInDo(t *testing.T) {
	d := fakeDevice(t, &Fake{}, Options{})
	var none []int
	err := d.Do(func(*Queue) error { _ = none[3]; return nil })
	if !errors.Is(err, ErrPanicked) {
		t.Fatalf("panic inside Do: %v, want ErrPanicked", err)
	}
	if err := d.Do(func(*Queue) error { return nil }); err != nil {
		t.Errorf("the device after it: %v", err)
	}
}

func TestLimit(t *testing.T) {
	f := &Fake{Memory: 1 << 20, MaxAlloc: 1 << 20}
	d := fakeDevice(t, f, Options{})
	d.Limit(1 << 16)
	b, err := d.Alloc(1 << 15)
	if err != nil {
		t.Fatal(err)
	}
	if free, total, known := d.Memory(); free != 1<<15 || total != 1<<16 || !known {
		t.Errorf("%d of %d bytes free (known: %v), want half of 65536", free, total, known)
	}
	_, err = d.Alloc(1<<15 + 1)
	if !errors.Is(err, ErrMemory) || !strings.Contains(err.Error(), "32768 of the 65536 bytes that it may use are taken") {
		t.Errorf("allocation beyond the limit: %v", err)
	}
	if _, err := d.Alloc(1 << 15); err != nil {
		t.Errorf("up to the limit: %v", err)
	}
	b.Free()
	d.Limit(0)
	if _, err := d.Alloc(1 << 19); err != nil || d.Limited() != 0 {
		t.Errorf("without a limit: %v", err)
	}
}

// TestSlicesEndNewestFirst: slices are given back in the reverse of the order in
// which they were made, which NVIDIA's OpenCL wants.
func TestSlicesEndNewestFirst(t *testing.T) {
	f := &Fake{}
	infos, err := f.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := Open(f, infos[0], Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	b, err := d.Alloc(1 << 16)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(64) {
		if _, err := b.Slice(i*256, 512); err != nil {
			t.Fatal(err)
		}
	}
	b.Free()
	if n := f.open_[0].mixed; n > 0 {
		t.Errorf("%d of 64 slices were given back before a newer one", n)
	}
	if n := f.Live(); n > 0 {
		t.Errorf("%d things stayed", n)
	}
}
