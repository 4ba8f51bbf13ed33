package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"outcrop/gpu"
)

// TestLightCPU: the processor passes first light, with the count in words.
func TestLightCPU(t *testing.T) {
	m := gpu.Machine{}
	m.Host.CPU.Name = "Test CPU"
	var seen []string
	l, err := FirstLight(context.Background(), CPU(m), LightOptions{
		MaxBytes: 64 * mib,
		Golden:   func(context.Context, Device) (int, int, error) { return 32, 32, nil },
		Emit:     func(s StepResult) { seen = append(seen, s.Step) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if !l.OK() || l.String() != "44 of 44 on Test CPU" {
		for _, s := range l.Steps {
			t.Logf("%+v", s)
		}
		t.Fatalf("%s", l)
	}
	if len(seen) != len(LightSteps()) || seen[0] != "patterns" || seen[len(seen)-1] != "golden" {
		t.Errorf("steps told: %v", seen)
	}
	b, err := json.Marshal(l)
	if err != nil || !strings.Contains(string(b), `"h2d_gb_s":`) || !strings.Contains(string(b), `"launch_us":`) {
		t.Errorf("%s %v", b, err)
	}
}

// TestLightPast4GiB writes tags past 4 GiB; pages are taken only where touched.
func TestLightPast4GiB(t *testing.T) {
	r := patterns(context.Background(), &lightRun{d: CPU(gpu.Machine{}), o: LightOptions{MaxBytes: 6 << 30}})
	if r.Passed != r.Total || r.Values["highest_offset"] < float64(fourGiB) {
		t.Errorf("%+v", r)
	}
	// A device with the 4 GiB cap is tested with several buffers.
	r = patterns(context.Background(), &lightRun{d: CPU(gpu.Machine{}), o: LightOptions{MaxBytes: 6 << 30, AllocMax: fourGiB - 8192}})
	if r.Passed != r.Total || !strings.Contains(r.Detail, "2 buffer(s)") || r.Values["bytes"] < float64(fourGiB) {
		t.Errorf("%+v", r)
	}
}

// broken is a device with one fault.
type broken struct {
	Device
	alloc   func(s Space, n int64) (Buffer, error)
	wrap    func(Buffer) Buffer
	kernels []Kernel
	launch  error
}

func (b *broken) Alloc(ctx context.Context, s Space, n int64) (Buffer, error) {
	if b.alloc != nil {
		if buf, err := b.alloc(s, n); err != nil {
			return buf, err
		}
	}
	buf, err := b.Device.Alloc(ctx, s, n)
	if err == nil && b.wrap != nil {
		buf = b.wrap(buf)
	}
	return buf, err
}
func (b *broken) Kernels() []Kernel {
	if b.kernels != nil {
		return b.kernels
	}
	return b.Device.Kernels()
}
func (b *broken) Launch(ctx context.Context) error {
	if b.launch != nil {
		return b.launch
	}
	return b.Device.Launch(ctx)
}

// aliased maps one page of 2 MiB onto another, as xe did in a large arena.
type aliased struct{ Buffer }

func (a aliased) at(off int64) int64 {
	if off/tagEvery == 7 {
		return off - 4*tagEvery
	}
	return off
}
func (a aliased) Write(off int64, p []byte) error { return a.Buffer.Write(a.at(off), p) }
func (a aliased) Read(off int64, p []byte) error  { return a.Buffer.Read(a.at(off), p) }

// wrapping uses only the low bits of an offset, as a 32-bit kernel does.
type wrapping struct{ Buffer }

func (w wrapping) Write(off int64, p []byte) error { return w.Buffer.Write(off%(16*mib), p) }
func (w wrapping) Read(off int64, p []byte) error  { return w.Buffer.Read(off%(16*mib), p) }

// zeroing loses what is written, as a driver that never ran anything.
type zeroing struct{ Buffer }

func (zeroing) Write(int64, []byte) error { return nil }

type fakeKernel struct {
	n    int
	run  func(n int) ([]byte, float64, error)
	name string
}

func (f *fakeKernel) Name() string { return f.name }
func (f *fakeKernel) Run(context.Context) ([]byte, float64, float64, error) {
	f.n++
	out, e, err := f.run(f.n)
	return out, e, 1e-4, err
}

// TestLightFinds breaks a device in one way at a time: the step that is for it
// must fail and the others pass.
func TestLightFinds(t *testing.T) {
	refused := errors.New("out of device memory")
	for _, k := range []struct {
		name, step string
		dev        *broken
		o          LightOptions
		says       string
	}{
		{"aliased pages", "patterns", &broken{wrap: func(b Buffer) Buffer { return aliased{b} }}, LightOptions{}, "another place's tag"},
		{"32-bit offsets", "patterns", &broken{wrap: func(b Buffer) Buffer { return wrapping{b} }}, LightOptions{}, "tag"},
		{"copies that do nothing", "patterns", &broken{wrap: func(b Buffer) Buffer { return zeroing{b} }}, LightOptions{}, "came back as"},
		{"device allocation stops early", "alloc-device", &broken{alloc: func(s Space, n int64) (Buffer, error) {
			if s == DeviceMemory && n == 256*mib {
				return nil, refused
			}
			return nil, nil
		}}, LightOptions{AllocMax: fourGiB - 8192}, "stops below the 256 MiB counted on"},
		{"pinned allocation stops early", "alloc-host", &broken{alloc: func(s Space, n int64) (Buffer, error) {
			if s == PinnedHost && n >= 64*mib {
				return nil, refused
			}
			return nil, nil
		}}, LightOptions{HostAllocMax: 2 << 30}, "stops below"},
		{"kernel computes nonsense", "kernels", &broken{kernels: []Kernel{&fakeKernel{name: "gemv", run: func(int) ([]byte, float64, error) { return []byte{1}, 0.3, nil }}}}, LightOptions{}, "gemv: relative error 0.3"},
		{"kernel gives NaN", "kernels", &broken{kernels: []Kernel{&fakeKernel{name: "gemv", run: func(int) ([]byte, float64, error) { return []byte{1}, math.NaN(), nil }}}}, LightOptions{}, "gemv"},
		{"kernel fails", "kernels", &broken{kernels: []Kernel{&fakeKernel{name: "gemv", run: func(n int) ([]byte, float64, error) {
			if n == 1 {
				return nil, 0, errors.New("device lost")
			}
			return []byte{1}, 0, nil
		}}}}, LightOptions{}, "device lost"},
		{"eviction corrupts the 13th run", "repeat", &broken{kernels: []Kernel{&fakeKernel{name: "gemv", run: func(n int) ([]byte, float64, error) {
			if n == 14 { // one run belongs to the step before
				return []byte{9}, 0, nil
			}
			return []byte{1}, 0, nil
		}}}}, LightOptions{}, "gave other bytes"},
		{"launch fails", "launch", &broken{launch: errors.New("fence time-out")}, LightOptions{}, "fence time-out"},
		{"other card refuses", "together", &broken{}, LightOptions{Others: []Device{&broken{alloc: func(Space, int64) (Buffer, error) { return nil, refused }}}}, "2 MiB on"},
		{"tokens differ", "golden", &broken{}, LightOptions{Golden: func(context.Context, Device) (int, int, error) { return 3, 32, nil }}, "3 of 32"},
		{"starter pack fails", "golden", &broken{}, LightOptions{Golden: func(context.Context, Device) (int, int, error) { return 0, 32, errors.New("not finite") }}, "not finite"},
	} {
		t.Run(k.name, func(t *testing.T) {
			k.dev.Device = CPU(gpu.Machine{})
			for _, d := range k.o.Others {
				d.(*broken).Device = CPU(gpu.Machine{})
			}
			k.o.MaxBytes = 64 * mib
			if k.step == "alloc-device" {
				k.o.MaxBytes = 256 * mib
			}
			l, err := FirstLight(context.Background(), k.dev, k.o)
			if err != nil {
				t.Fatal(err)
			}
			if l.OK() {
				t.Fatal("a broken device passed")
			}
			for _, s := range l.Steps {
				switch {
				case s.Step == k.step && s.Passed == s.Total:
					t.Errorf("%s passed: %+v", k.step, s)
				case s.Step == k.step && !strings.Contains(s.Detail, k.says):
					t.Errorf("%s says %q, want %q", k.step, s.Detail, k.says)
				case s.Step != k.step && s.Passed < s.Total && k.name != "copies that do nothing" && k.step != "alloc-device":
					t.Errorf("%s failed too: %+v", s.Step, s)
				}
			}
		})
	}
}

// TestLightStops: a cancelled run says so and never passes.
func TestLightStops(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	stop()
	l, err := FirstLight(ctx, CPU(gpu.Machine{}), LightOptions{MaxBytes: 64 * mib})
	if !errors.Is(err, context.Canceled) || l.OK() {
		t.Errorf("%v, %+v", err, l)
	}
}

// one card's memory that another card writes to.
type shared struct{ Buffer }

// TestTogether: cards that are well pass; a card that refuses once another one
// holds memory, and one that writes into the other's, are named.
func TestTogether(t *testing.T) {
	card := func() *broken { return &broken{Device: CPU(gpu.Machine{})} }
	if r := Together(t.Context(), []Device{card(), card(), card()}); r.Total != 6 || r.Passed != 6 {
		t.Errorf("three cards that are well: %+v", r)
	}
	// GSD-12641: with another card in use, 2 MiB are out of device memory.
	held := 0
	counted := func() *broken {
		b := card()
		b.alloc = func(Space, int64) (Buffer, error) {
			if held > 0 {
				return nil, errors.New("out of device memory")
			}
			held++
			return nil, nil
		}
		return b
	}
	r := Together(t.Context(), []Device{counted(), counted()})
	if r.Total != 4 || r.Passed != 1 || !strings.Contains(r.Detail, "with 2 devices open: out of device memory") {
		t.Errorf("a card that refuses beside another: %+v", r)
	}
	// Both cards' memory is one and the same.
	var one Buffer
	mixed := func() *broken {
		b := card()
		b.wrap = func(x Buffer) Buffer {
			if one == nil {
				one = x
			}
			return shared{one}
		}
		return b
	}
	r = Together(t.Context(), []Device{mixed(), mixed()})
	if r.Passed == r.Total || !strings.Contains(r.Detail, "want") {
		t.Errorf("cards that share memory: %+v", r)
	}
}

// withUnits is a device that knows of matrix units.
type withUnits struct {
	Device
	words string
	err   error
}

func (w withUnits) Units(context.Context) (string, error) { return w.words, w.err }

// TestLightUnits: the step for matrix units counts where there are some.
func TestLightUnits(t *testing.T) {
	for _, c := range []struct {
		dev           Device
		passed, total int
	}{
		{CPU(gpu.Machine{}), 0, 0},
		{withUnits{CPU(gpu.Machine{}), "", nil}, 0, 0},
		{withUnits{CPU(gpu.Machine{}), "all right", nil}, 1, 1},
		{withUnits{CPU(gpu.Machine{}), "", errors.New("wrong products")}, 0, 1},
	} {
		s := units(context.Background(), &lightRun{d: c.dev})
		if s.Passed != c.passed || s.Total != c.total || (s.Skipped != "") != (c.total == 0) {
			t.Errorf("%d of %d, %q, %q; want %d of %d", s.Passed, s.Total, s.Detail, s.Skipped, c.passed, c.total)
		}
	}
}
