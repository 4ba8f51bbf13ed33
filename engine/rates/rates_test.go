package rates

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"outcrop/engine/quant"
	"outcrop/gpu"
	"outcrop/gpu/compute"
)

// quick is an effort for tests: the numbers mean nothing.
var quick = effort{cpuBytes: 8 << 20, cpuTime: time.Millisecond, diskTime: 20 * time.Millisecond, diskBytes: 8 << 20, diskLeast: 1 << 20, linkTime: time.Millisecond}

// testLink counts, and breaks on order.
type testLink struct {
	writes, hands int
	fail          error
}

func (l *testLink) Most() int64       { return 1 << 20 }
func (l *testLink) Write(int64) error { l.writes++; return l.fail }
func (l *testLink) HandOff() error    { l.hands++; return nil }

func testMachine() gpu.Machine {
	m := gpu.Machine{}
	m.Host.CPU = gpu.CPU{Name: "Test CPU", Cores: 2, Threads: 4}
	m.Host.Memory.Total = gpu.Known(int64(32<<30), "test")
	m.Host.Memory.Available = gpu.Known(int64(16<<30), "test")
	m.Cards = []gpu.Card{{PCI: "0000:03:00.0", Vendor: gpu.Intel, Device: 0x56a0, Name: "A770", Driver: "xe",
		DriverVersion: gpu.Known("1.6", "test"), Link: gpu.Link{Width: gpu.Known(16, "test"), Speed: gpu.Known(8.0, "test")}}}
	m.Cards[0].Memory.Total = gpu.Known(int64(16<<30), "test")
	return m
}

// testWork has a pack of 3 MB on a real disk.
func testWork(t *testing.T) Work {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pack.gguf")
	if err := os.WriteFile(path, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	return Work{Machine: testMachine(), Pack: path, Expert: 300_000, Format: quant.Q4_K, Rows: 64, Cols: 256,
		Links: map[gpu.PCI]Link{"0000:03:00.0": &testLink{}}, effort: quick}
}

func TestMeasureOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rates.json")
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	w := testWork(t)
	if got := s.Missing(w); len(got) != 3 {
		t.Errorf("missing at first: %v", got)
	}
	changed, err := s.Measure(t.Context(), w)
	if err != nil || !changed {
		t.Fatal(changed, err)
	}
	r := s.Rates()
	c := r.CPU[0]
	if len(c.Experts) != 2 || c.Experts[0].Threads != 1 || c.Experts[1].Threads != 2 || c.Experts[0].PerSecond <= 0 || c.RAM <= 0 {
		t.Errorf("%+v", c)
	}
	if d := r.Disks[0]; d.Expert <= 0 || d.Random <= 0 || d.Stream <= 0 || d.How == "" || d.Size != 300_000 {
		t.Errorf("%+v", d)
	}
	if l := r.Cards[0]; l.HostToDevice <= 0 || l.HandOff < 0 {
		t.Errorf("%+v", l)
	}
	s, err = Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Missing(w); len(got) != 0 {
		t.Errorf("missing after a restart: %v", got)
	}
	if changed, err := s.Measure(t.Context(), w); changed || err != nil {
		t.Errorf("measured again: %v %v", changed, err)
	}
	for name, c := range map[string]struct {
		change func(w *Work)
		want   string
	}{
		"driver":   {func(w *Work) { w.Machine.Cards[0].DriverVersion = gpu.Known("1.7", "test") }, "the link of A770"},
		"width":    {func(w *Work) { w.Machine.Cards[0].Link.Width = gpu.Known(4, "test") }, "the link of A770"},
		"slot":     {func(w *Work) { w.Machine.Cards[0].PCI = "0000:04:00.0" }, ""},
		"cpu":      {func(w *Work) { w.Machine.Host.CPU.Name = "Other" }, "the processor"},
		"threads":  {func(w *Work) { w.Threads = 1 }, "the processor"},
		"format":   {func(w *Work) { w.Format = quant.Q8_0 }, "the processor"},
		"expert":   {func(w *Work) { w.Expert = 400_000 }, "the disk"},
		"speed":    {func(w *Work) { w.Machine.Cards[0].Link.Speed = gpu.Known(2.5, "asleep") }, ""},
		"disabled": {func(w *Work) { w.Links = nil }, ""},
	} {
		w := testWork(t)
		w.Machine.Cards = slices.Clone(w.Machine.Cards)
		c.change(&w)
		if got := strings.Join(s.Missing(w), ", "); got != c.want {
			t.Errorf("%s changed: %q is measured again, want %q", name, got, c.want)
		}
	}
	w.Again = true
	if got := s.Missing(w); len(got) != 3 {
		t.Errorf("all again: %v", got)
	}
}

// What cannot be measured must not keep the rest from being kept.
func TestMeasurePartly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rates.json")
	s, _ := Open(path)
	w := testWork(t)
	w.Links["0000:03:00.0"] = &testLink{fail: errors.New("device lost")}
	w.effort.diskLeast = 1 << 40
	changed, err := s.Measure(t.Context(), w)
	if !changed || err == nil || !strings.Contains(err.Error(), "device lost") {
		t.Errorf("%v %v", changed, err)
	}
	s, _ = Open(path)
	if r := s.Rates(); len(r.CPU) != 1 || len(r.Disks) != 0 || len(r.Cards) != 0 {
		t.Errorf("%+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Measure(ctx, testWork(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	w = testWork(t)
	w.Pack = filepath.Join(t.TempDir(), "gone")
	if _, err := s.Measure(t.Context(), w); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing pack: %v", err)
	}
}

func TestDamagedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rates.json")
	for _, text := range []string{
		"{", `{"version":2,"cpu":[{"key":"a","experts":[{"threads":1,"per_second":-5}]}]}`,
		`{"version":2,"disks":[{"key":"a","expert":1e40}]}`, `{"version":2,"cards":[{"key":"a","hand_off":-1}]}`,
		`{"version":2,"cards":[{"key":"a","read":-1}]}`, `{"version":2,"cards":[{"key":"a","multiply":1e19}]}`,
	} {
		os.WriteFile(path, []byte(text), 0o600)
		s, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", text, err)
		}
		if r := s.Rates(); len(r.CPU)+len(r.Disks)+len(r.Cards) > 0 {
			t.Errorf("%s: kept %+v", text, r)
		}
	}
	os.WriteFile(path, []byte(`{"version":99,"cpu":[{"key":"a"}]}`), 0o600)
	if s, err := Open(path); err != nil || len(s.Rates().CPU) > 0 {
		t.Errorf("another version: %v %+v", err, s.Rates())
	}
}

func TestMachine(t *testing.T) {
	s, _ := Open(filepath.Join(t.TempDir(), "rates.json"))
	w := testWork(t)
	f := Facts{Machine: w.Machine, Work: w}
	m := s.Machine(f)
	if m.CPU.PerSecond != 0 || m.DiskRandom.Measured || m.Threads != 2 || m.RAMAvailable.N != 16<<30 {
		t.Errorf("before anything was measured: %+v", m)
	}
	c := m.Cards[0]
	if c.Unusable != "no compute driver opened it" || c.Backend != "" || c.Free.Known || c.HostToDevice.Measured || c.HostToDevice.PerSecond < 15e9 {
		t.Errorf("%+v", c)
	}
	if _, err := s.Measure(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	f.Usable = map[gpu.PCI]Usable{"0000:03:00.0": {Backend: "level zero", MaxPinned: 2 << 30}}
	f.Now = []gpu.CardReadings{{PCI: "0000:03:00.0", VRAM: gpu.VRAM{Free: gpu.Known(int64(14<<30), "test")}}}
	m = s.Machine(f)
	c = m.Cards[0]
	if !m.CPU.Measured || m.CPU.PerSecond <= 0 || !m.DiskRandom.Measured || !m.DiskStream.Measured {
		t.Errorf("%+v", m)
	}
	if c.Backend != "level zero" || c.Unusable != "" || !c.HostToDevice.Measured || c.Free.N != 14<<30 || c.MaxPinned != 2<<30 || c.Total.N != 16<<30 {
		t.Errorf("%+v", c)
	}
	f.Usable["0000:03:00.0"] = Usable{Why: "first light failed"}
	if c := s.Machine(f).Cards[0]; c.Unusable != "first light failed" {
		t.Errorf("%+v", c)
	}
	// In a container the machine is as big as its limit.
	f.Machine.Host.Cgroup.Max = gpu.Known(int64(4<<30), "test")
	f.Machine.Host.Cgroup.Left = gpu.Known(int64(3<<30), "test")
	if m := s.Machine(f); m.RAMTotal.N != 4<<30 || m.RAMAvailable.N != 3<<30 {
		t.Errorf("RAM %+v, %+v", m.RAMTotal, m.RAMAvailable)
	}
}

// openFake opens a device in memory until the test's end.
func openFake(t *testing.T, f *compute.Fake) *compute.Device {
	t.Helper()
	infos, err := f.Devices()
	if err != nil {
		t.Fatal(err)
	}
	d, err := compute.Open(f, infos[0], compute.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// The link of a real device interface, with a device in memory behind it.
func TestDeviceLink(t *testing.T) {
	fake := &compute.Fake{Memory: 256 << 20, MaxAlloc: 32 << 20}
	d := openFake(t, fake)
	l, free, err := Device(d)
	if err != nil {
		t.Fatal(err)
	}
	c, err := measureCard(t.Context(), l, quick)
	if err != nil || c.HostToDevice <= 0 || c.HandOff <= 0 {
		t.Errorf("%+v, %v", c, err)
	}
	free()
	if dev, pinned := d.Used(); dev != 0 || pinned != 0 {
		t.Errorf("%d and %d bytes are still held", dev, pinned)
	}
}

func TestBlocksAreFinite(t *testing.T) {
	for _, typ := range []quant.Type{quant.F32, quant.Q4_K, quant.Q8_0, quant.IQ3_S, quant.MXFP4} {
		f, err := quant.Of(typ)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 64*f.Bytes)
		fillBlocks(b, f)
		vals := make([]float32, 64*f.Block)
		if f.Decode(vals, b); !finite(vals) {
			t.Errorf("%s: not all finite", f.Name)
		}
	}
}
