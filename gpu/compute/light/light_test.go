package light_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
	"outcrop/gpu/compute/light"
	"outcrop/gpu/doctor"
)

// TestFirstLight: PoCL, or a card, passes.
func TestFirstLight(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		v, err := light.New(d, formats)
		if err != nil {
			t.Fatal(err)
		}
		l, err := doctor.FirstLight(context.Background(), v, doctor.LightOptions{MaxBytes: 64 << 20, Repeat: 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range l.Steps {
			t.Logf("%-12s %d of %d  %s %s", s.Step, s.Passed, s.Total, s.Detail, s.Skipped)
		}
		if !l.OK() {
			t.Errorf("first light: %s", l)
		}
	})
}

// TestBrokenCard: a card whose copies are wrong or which is lost does not pass.
func TestBrokenCard(t *testing.T) {
	f := &compute.Fake{Kernels: map[string]compute.FakeKernel{"light_touch": func(c *compute.FakeCall) error {
		copy(c.Bytes(0), []byte{byte(c.Int(1)), byte(c.Int(1) >> 8), 0, 0})
		return nil
	}}}
	infos, _ := f.Devices()
	d, err := compute.Open(f, infos[0], compute.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	v, err := light.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Launch(context.Background()); err != nil {
		t.Errorf("a sound card: %v", err)
	}
	f.Break(compute.Fault{Bits: "light_touch"})
	if err := v.Launch(context.Background()); err == nil {
		t.Error("a wrong bit in what a kernel wrote went unseen")
	}
	f.Break(compute.Fault{AllocOver: 1})
	if _, err := v.Alloc(context.Background(), doctor.DeviceMemory, 1<<20); !errors.Is(err, compute.ErrMemory) {
		t.Errorf("allocation on a full card: %v, want ErrMemory", err)
	}
	f.Break(compute.Fault{LostAfter: 1})
	if err := v.Launch(context.Background()); !errors.Is(err, compute.ErrLost) || !strings.Contains(err.Error(), "FAKE_LOST") {
		t.Errorf("a lost card: %v, want ErrLost with its name", err)
	}
}

// TestUnits: wrong products on matrix units, and kernels of theirs that cannot be made,
// are told; a device without any has nothing to tell.
func TestUnits(t *testing.T) {
	f := &compute.Fake{Other: func(*compute.FakeCall) error { return nil }} // computes nothing
	for _, c := range []struct {
		nvidia int
		fault  compute.Fault
		says   string
	}{{0, compute.Fault{}, ""}, {90, compute.Fault{}, "wrong products"}, {90, compute.Fault{BuildFails: "half_f16"}, "as ordered"}} {
		infos, _ := f.Devices()
		infos[0].Features.Nvidia = c.nvidia
		d, err := compute.Open(f, infos[0], compute.Options{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := light.New(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.Break(c.fault)
		words, err := v.(interface {
			Units(context.Context) (string, error)
		}).Units(context.Background())
		if c.says == "" && (words != "" || err != nil) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("capability %d, %q does not build: %q, %v; want %q", c.nvidia, c.fault.BuildFails, words, err, c.says)
		}
		f.Break(compute.Fault{})
		d.Close()
	}
}
