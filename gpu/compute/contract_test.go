package compute_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/kernels"
)

// lightInGo is the light module for the fake device.
var lightInGo = map[string]compute.FakeKernel{
	"light_add": func(c *compute.FakeCall) error {
		b := c.Bytes(0)
		for i := range c.Int(1) {
			binary.LittleEndian.PutUint32(b[4*i:], binary.LittleEndian.Uint32(b[4*i:])+uint32(c.Int(2)))
		}
		return nil
	},
	"light_touch": func(c *compute.FakeCall) error {
		binary.LittleEndian.PutUint32(c.Bytes(0), uint32(c.Int(1)))
		return nil
	},
}

// TestContract is what every driver must do. Each part gets an open device.
func TestContract(t *testing.T) {
	parts := []struct {
		name string
		fn   func(t *testing.T, d *compute.Device)
	}{
		{"info", contractInfo}, {"memory", contractMemory}, {"copies", contractCopies}, {"pinned", contractPinned},
		{"slices", contractSlices}, {"arena", contractArena}, {"kernels", contractKernels}, {"builds", contractBuilds}, {"record", contractRecord},
		{"errors", contractErrors}, {"close", contractClose},
	}
	run := func(t *testing.T, d *compute.Device) {
		for _, p := range parts {
			t.Run(p.name, func(t *testing.T) { p.fn(t, d) })
		}
	}
	t.Run("fake", func(t *testing.T) {
		f := &compute.Fake{Kernels: lightInGo}
		infos, _ := f.Devices()
		d, err := compute.Open(f, infos[0], compute.Options{})
		if err != nil {
			t.Fatal(err)
		}
		run(t, d)
		if n := f.Live(); n != 0 {
			t.Errorf("%d handles were not given back", n)
		}
	})
	computetest.Each(t, run)
}

func contractInfo(t *testing.T, d *compute.Device) {
	i := d.Info()
	if i.Driver == "" || i.Name == "" || i.API == "" {
		t.Errorf("driver %q, name %q, API %q: want all of them", i.Driver, i.Name, i.API)
	}
	if i.Memory <= 0 || i.MaxAlloc <= 0 || i.Units <= 0 || i.Local <= 0 || i.Align <= 0 {
		t.Errorf("memory %d, largest allocation %d, units %d, local %d, align %d: want positive numbers", i.Memory, i.MaxAlloc, i.Units, i.Local, i.Align)
	}
	if free, total, known := d.Memory(); known && (free <= 0 || free > total) {
		t.Errorf("%d of %d bytes free", free, total)
	}
}

func contractMemory(t *testing.T, d *compute.Device) {
	before, _ := d.Used()
	b, err := d.Alloc(1 << 20)
	if err != nil {
		t.Fatal(err)
	}
	if used, _ := d.Used(); used != before+1<<20 {
		t.Errorf("%d bytes in use, want %d", used, before+1<<20)
	}
	b.Free()
	b.Free() // twice does nothing
	if used, _ := d.Used(); used != before {
		t.Errorf("%d bytes in use after Free, want %d", used, before)
	}
	if _, err := d.Alloc(d.MaxBuffer() + 1); !errors.Is(err, compute.ErrTooBig) {
		t.Errorf("more than the largest allocation: %v, want ErrTooBig", err)
	}
	if _, err := d.Host(compute.HostLimit + 1); !errors.Is(err, compute.ErrTooBig) {
		t.Errorf("more than the largest pinned memory: %v, want ErrTooBig", err)
	}
	for _, n := range []int64{0, -1} {
		if _, err := d.Alloc(n); err == nil {
			t.Errorf("allocation of %d bytes worked", n)
		}
	}
}

// pattern gives n bytes that depend on their place.
func pattern(n, seed int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + seed)
	}
	return b
}

func alloc(t *testing.T, d *compute.Device, n int64) *compute.Buffer {
	t.Helper()
	b, err := d.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Free)
	return b
}

func do(t *testing.T, d *compute.Device, fn func(q *compute.Queue) error) {
	t.Helper()
	if err := d.Do(fn); err != nil {
		t.Fatal(err)
	}
}

func contractCopies(t *testing.T, d *compute.Device) {
	// 9 MiB and a bit: several pieces of the staging memory
	const n = 9<<20 + 333
	a, b := alloc(t, d, n), alloc(t, d, n)
	src, got := pattern(n, 1), make([]byte, n)
	do(t, d, func(q *compute.Queue) error {
		if err := q.Write(a, 0, src); err != nil {
			return err
		}
		keep := bytes.Clone(src)
		for i := range src {
			src[i] = 0 // the caller's memory is free on return
		}
		defer copy(src, keep)
		if err := q.Fill(b, 0, n, 0x55); err != nil {
			return err
		}
		if err := q.Copy(b, 5000, a, 1001, 100_000); err != nil {
			return err
		}
		return q.Read(got, b, 0)
	})
	want := bytes.Repeat([]byte{0x55}, n)
	copy(want[5000:], src[1001:101_001])
	if !bytes.Equal(got, want) {
		t.Errorf("fill and copy: first difference at %d", differs(got, want))
	}
	do(t, d, func(q *compute.Queue) error { return q.Read(got, a, 0) })
	if !bytes.Equal(got, src) {
		t.Errorf("write and read: first difference at %d", differs(got, src))
	}
	do(t, d, func(q *compute.Queue) error {
		if err := q.Fill(a, 3, 5, 0xee); err != nil {
			return err
		}
		return q.Read(got[:10], a, 0)
	})
	want = append(append(bytes.Clone(src[:3]), bytes.Repeat([]byte{0xee}, 5)...), src[8:10]...)
	if !bytes.Equal(got[:10], want) {
		t.Errorf("odd fill: %x, want %x", got[:10], want)
	}
}

func differs(a, b []byte) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

func contractPinned(t *testing.T, d *compute.Device) {
	const n = 1 << 20
	h, err := d.Host(2 * n)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Free()
	if _, p := d.Used(); p < 2*n {
		t.Errorf("%d pinned bytes in use, want at least %d", p, 2*n)
	}
	b := alloc(t, d, n)
	copy(h.Bytes(), pattern(n, 2))
	do(t, d, func(q *compute.Queue) error {
		if err := q.WriteHost(b, 0, h, 0, n); err != nil {
			return err
		}
		return q.ReadHost(h, n, b, 0, n)
	})
	if !bytes.Equal(h.Bytes()[n:], h.Bytes()[:n]) {
		t.Errorf("pinned round trip: first difference at %d", differs(h.Bytes()[n:], h.Bytes()[:n]))
	}
	// Without waiting: a later Do ends it.
	do(t, d, func(q *compute.Queue) error {
		defer q.Leave()
		return q.WriteHost(b, 100, h, 0, 50)
	})
	got := make([]byte, 50)
	do(t, d, func(q *compute.Queue) error { return q.Read(got, b, 100) })
	if !bytes.Equal(got, pattern(50, 2)) {
		t.Error("a copy that was left running did not arrive")
	}
}

func contractSlices(t *testing.T, d *compute.Device) {
	align := d.Info().Align
	b := alloc(t, d, 16*align)
	s, err := b.Slice(4*align, 2*align)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Slice(4*align, 2*align)
	if err != nil || again != s {
		t.Errorf("the same slice twice: %p and %p, %v", s, again, err)
	}
	deep, err := s.Slice(align, align)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 16*align)
	do(t, d, func(q *compute.Queue) error {
		if err := q.Fill(b, 0, b.Len(), 1); err != nil {
			return err
		}
		if err := q.Fill(s, 0, s.Len(), 2); err != nil {
			return err
		}
		if err := q.Fill(deep, 1, 2, 3); err != nil {
			return err
		}
		return q.Read(got, b, 0)
	})
	want := bytes.Repeat([]byte{1}, int(16*align))
	copy(want[4*align:], bytes.Repeat([]byte{2}, int(2*align)))
	want[5*align+1], want[5*align+2] = 3, 3
	if !bytes.Equal(got, want) {
		t.Errorf("slices: first difference at %d", differs(got, want))
	}
	if _, err := b.Slice(15*align, 2*align); err == nil {
		t.Error("a slice past the end worked")
	}
	if align > 1 {
		if _, err := b.Slice(1, align); err == nil {
			t.Error("a slice at an odd place worked")
		}
	}
}

func contractArena(t *testing.T, d *compute.Device) {
	before, _ := d.Used()
	a := d.Arena(1 << 20)
	var all []*compute.Buffer
	for _, n := range []int64{100, 300_000, 600_000, 200_000, 3 << 20, 10, 900_000} {
		b, err := a.Alloc(n)
		if err != nil {
			t.Fatal(err)
		}
		if b.Len() != n {
			t.Errorf("arena gave %d bytes, want %d", b.Len(), n)
		}
		all = append(all, b)
	}
	do(t, d, func(q *compute.Queue) error {
		for i, b := range all {
			if err := q.Fill(b, 0, b.Len(), byte(i+1)); err != nil {
				return err
			}
		}
		return nil
	})
	for i, b := range all {
		got := make([]byte, b.Len())
		do(t, d, func(q *compute.Queue) error { return q.Read(got, b, 0) })
		if n := bytes.Count(got, []byte{byte(i + 1)}); n != len(got) {
			t.Errorf("piece %d overlaps another: %d of %d bytes are right", i, n, len(got))
		}
	}
	if _, err := a.Alloc(d.MaxBuffer() + 1); !errors.Is(err, compute.ErrTooBig) {
		t.Errorf("more than the largest allocation: %v, want ErrTooBig", err)
	}
	a.Free()
	if used, _ := d.Used(); used != before {
		t.Errorf("%d bytes in use after Free, want %d", used, before)
	}
}

func light(t *testing.T, d *compute.Device, name string) *compute.Kernel {
	t.Helper()
	p, err := d.Load(kernels.Light())
	if err != nil {
		t.Fatal(err)
	}
	k, err := p.Kernel(name)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func contractKernels(t *testing.T, d *compute.Device) {
	k := light(t, d, "light_add")
	b := alloc(t, d, 4000)
	got := make([]byte, 4000)
	do(t, d, func(q *compute.Queue) error {
		if err := q.Fill(b, 0, 4000, 0); err != nil {
			return err
		}
		for i := range 10 { // in order, each on the result of the last
			if err := q.Launch(k, compute.Dim{X: 16}, compute.Dim{X: 64}, compute.Mem(b), compute.Int(900+10*i), compute.Int(i+1)); err != nil {
				return err
			}
		}
		return q.Read(got, b, 0)
	})
	for i := range 1000 {
		want := uint32(0)
		for j := range 10 {
			if i < 900+10*j {
				want += uint32(j + 1)
			}
		}
		if v := binary.LittleEndian.Uint32(got[4*i:]); v != want {
			t.Fatalf("word %d is %d, want %d", i, v, want)
		}
	}
}

// contractBuilds: modules are compiled beside work on the device, and a launch or
// a recording waits for the one it needs.
func contractBuilds(t *testing.T, d *compute.Device) {
	b := alloc(t, d, 64)
	var list []*compute.Kernel
	for i := range 4 {
		m := kernels.Light()
		m.Name = fmt.Sprint("light", i)
		m.Defines = append(m.Defines, fmt.Sprint("UNUSED=", i))
		list = append(list, d.Prepare(m, []compute.Urgency{compute.Now, compute.Later, compute.Spare}[i%3]).Entry("light_add"))
	}
	got := make([]byte, 64)
	add := func(q *compute.Queue) error {
		for i, k := range list {
			if err := q.Launch(k, compute.Dim{X: 1}, compute.Dim{X: 16}, compute.Mem(b), compute.Int(16), compute.Int(1<<i)); err != nil {
				return err
			}
		}
		return nil
	}
	do(t, d, func(q *compute.Queue) error { return q.Fill(b, 0, 64, 0) })
	s, err := d.Record(add)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	do(t, d, func(q *compute.Queue) error {
		if err := q.Replay(s); err != nil {
			return err
		}
		if err := add(q); err != nil {
			return err
		}
		return q.Read(got, b, 0)
	})
	if v := binary.LittleEndian.Uint32(got); v != 30 {
		t.Errorf("four modules, recorded and launched: %d, want 30", v)
	}
}

func contractRecord(t *testing.T, d *compute.Device) {
	k := light(t, d, "light_add")
	b := alloc(t, d, 64)
	h, err := d.Host(128)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Free()
	s, err := d.Record(func(q *compute.Queue) error {
		if err := q.WriteHost(b, 0, h, 0, 64); err != nil {
			return err
		}
		if err := q.Fill(b, 32, 16, 1); err != nil {
			return err
		}
		for i := range 3 {
			if err := q.Launch(k, compute.Dim{X: 1}, compute.Dim{X: 16}, compute.Mem(b), compute.Int(16), compute.Int(1<<i)); err != nil {
				return err
			}
		}
		return q.ReadHost(h, 64, b, 0, 64)
	})
	if err != nil {
		t.Fatal(err)
	}
	for run := range 3 {
		for i := range 16 {
			binary.LittleEndian.PutUint32(h.Bytes()[4*i:], uint32(100*run+i))
		}
		do(t, d, func(q *compute.Queue) error { return q.Replay(s) })
		for i := range 16 {
			want := uint32(100*run + i + 7)
			if i >= 8 && i < 12 {
				want = 0x01010101 + 7
			}
			if v := binary.LittleEndian.Uint32(h.Bytes()[64+4*i:]); v != want {
				t.Fatalf("run %d: word %d is %#x, want %#x", run, i, v, want)
			}
		}
	}
	s.Free()
	s.Free()
	if err := d.Do(func(q *compute.Queue) error { return q.Replay(s) }); err == nil {
		t.Error("a freed sequence ran")
	}
	if _, err := d.Record(func(q *compute.Queue) error { return q.Finish() }); err == nil {
		t.Error("waiting inside a recording worked")
	}
	if _, err := d.Record(func(q *compute.Queue) error { return errors.New("no") }); err == nil {
		t.Error("a recording that failed gave a sequence")
	}
}

func contractErrors(t *testing.T, d *compute.Device) {
	if d.Info().Driver != "fake" {
		_, err := d.Load(kernels.Module{Name: "broken", Text: "__kernel void f(__global int *p) { p[0] = nonsense; }"})
		if !errors.Is(err, compute.ErrBuild) {
			t.Errorf("broken source: %v, want ErrBuild", err)
		} else if !strings.Contains(err.Error(), "nonsense") && d.Info().Driver == "opencl" {
			t.Errorf("the error lacks the build log: %v", err)
		}
	}
	p, err := d.Load(kernels.Light())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Kernel("no_such_kernel"); !errors.Is(err, compute.ErrMissing) {
		t.Errorf("unknown kernel: %v, want ErrMissing", err)
	}
	k, err := p.Kernel("light_touch")
	if err != nil {
		t.Fatal(err)
	}
	b := alloc(t, d, 64)
	bad := map[string]func(q *compute.Queue) error{
		"write past the end": func(q *compute.Queue) error { return q.Write(b, 60, make([]byte, 8)) },
		"read past the end":  func(q *compute.Queue) error { return q.Read(make([]byte, 8), b, 60) },
		"copy past the end":  func(q *compute.Queue) error { return q.Copy(b, 0, b, 60, 8) },
		"fill past the end":  func(q *compute.Queue) error { return q.Fill(b, -1, 8, 0) },
		"no buffer": func(q *compute.Queue) error {
			return q.Launch(k, compute.Dim{X: 1}, compute.Dim{X: 1}, compute.Mem(nil), compute.Int(1))
		},
	}
	if m := d.Info().MaxGroup; m > 0 {
		bad["work-group too large"] = func(q *compute.Queue) error {
			return q.Launch(k, compute.Dim{X: 1}, compute.Dim{X: m + 1}, compute.Mem(b), compute.Int(1))
		}
	}
	for name, fn := range bad {
		if err := d.Do(fn); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	// The device still works.
	got := make([]byte, 4)
	do(t, d, func(q *compute.Queue) error {
		if err := q.Launch(k, compute.Dim{X: 1}, compute.Dim{X: 1}, compute.Mem(b), compute.Int(42)); err != nil {
			return err
		}
		return q.Read(got, b, 0)
	})
	if got[0] != 42 {
		t.Errorf("after refused calls: %d, want 42", got[0])
	}
}

func contractClose(t *testing.T, d *compute.Device) {
	// Left for Close to give back.
	if _, err := d.Alloc(1000); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Host(1000); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if err := d.Do(func(*compute.Queue) error { return nil }); !errors.Is(err, compute.ErrClosed) {
		t.Errorf("work after close: %v, want ErrClosed", err)
	}
	if dev, pin := d.Used(); dev != 0 || pin != 0 {
		t.Errorf("after close %d device and %d pinned bytes are held", dev, pin)
	}
}
