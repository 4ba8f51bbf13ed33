package engine

import (
	"errors"
	"strings"
	"testing"

	"outcrop/gpu/compute"
)

func TestPickDevices(t *testing.T) {
	dir := t.TempDir()
	list := []DeviceInfo{
		{compute.Info{Driver: "cuda", Name: "H200", PCI: "0000:06:00.0"}, "cuda:0"},
		{compute.Info{Driver: "opencl", Name: "H200", PCI: "0000:06:00.0"}, "opencl:0"},
		{compute.Info{Driver: "opencl", Name: "A770", PCI: "0000:03:00.0", Index: 1}, "opencl:1"},
		{compute.Info{Driver: "opencl", Name: "a processor", CPU: true, Index: 2}, "opencl:2"},
	}
	for i := range list {
		if i == 0 {
			continue // has not passed first light
		}
		if err := SetLit(dir, list[i], true); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"": "", "cpu": "", "cuda:0": "cuda:0", "0000:03:00.0": "opencl:1", "opencl:2,cuda:0": "opencl:2 cuda:0",
		"auto": "opencl:0 opencl:1",
	} {
		got, err := pickDevices(name, dir, list)
		if err != nil {
			t.Fatal(err)
		}
		var ids []string
		for _, d := range got {
			ids = append(ids, d.ID)
		}
		if s := strings.Join(ids, " "); s != want {
			t.Errorf("%q: got %q, want %q", name, s, want)
		}
	}
	if _, err := pickDevices("cuda:1", dir, list); err == nil || !strings.Contains(err.Error(), "opencl:1 (A770)") {
		t.Errorf("a device that is not there: %v", err)
	}
	for _, same := range []string{"opencl:1,opencl:1", "0000:03:00.0,opencl:1", "cuda:0,opencl:1,opencl:0"} {
		if got, err := pickDevices(same, dir, list); err == nil || got != nil || !strings.Contains(err.Error(), "are the same card") {
			t.Errorf("%s: %v, %v", same, got, err)
		}
	}
	if got, err := pickDevices("opencl:2,opencl:2", dir, list); err != nil || len(got) != 2 {
		t.Errorf("two contexts on the processor: %v, %v", got, err)
	}
	for _, failed := range []bool{true, false} {
		if err := SetApart(dir, []DeviceInfo{list[2], list[1]}, failed); err != nil {
			t.Fatal(err)
		}
		want := 2
		if failed {
			want = 1
		}
		if got, err := pickDevices("auto", dir, list); err != nil || len(got) != want {
			t.Errorf("auto with cards that failed side by side (%v): %v, %v", failed, got, err)
		}
	}
	if err := SetLit(dir, list[2], false); err != nil || Lit(dir, list[2]) || !Lit(dir, list[1]) {
		t.Errorf("a device that fails first light later: %v", err)
	}
}

// A model of which no part has kernels is refused by name of what is missing,
// and "auto" goes on with the CPU and says why.
func TestNoDevice(t *testing.T) {
	s := &spec{arch: "deepseek2", dim: 40, layers: []layerSpec{{mixer: latent, ff: 48}}}
	if why := deviceRefusal(s); why != "a width of 40, which is not a multiple of 32" {
		t.Errorf("got %q", why)
	}
	s.dim = 64
	if why := deviceRefusal(s); why != "" {
		t.Errorf("a feed-forward alone: got %q", why)
	}
	m := starter(t, Options{Threads: 1, Context: 64, Device: "auto", KernelCache: t.TempDir()})
	if d := m.Telemetry().Device; d.Name != "" || !strings.Contains(d.Why, "first light") {
		t.Errorf("got %+v", d)
	}
	fake := &compute.Fake{}
	infos, err := fake.Devices()
	if err != nil {
		t.Fatal(err)
	}
	dev, err := compute.Open(fake, infos[0], compute.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	p, err := OpenPack(tinySpec{dim: 40, seed: 1}.write(t)) // a width that no kernel takes
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := Load(t.Context(), p, Options{Context: 64, Devices: []*compute.Device{dev}}); !errors.Is(err, ErrNoKernels) {
		t.Errorf("got %v", err)
	}
}
