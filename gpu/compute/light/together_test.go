package light

import (
	"strings"
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/doctor"
)

// TestTogether: several devices, a context each, hold 2 MiB at a time; one that
// refuses, or loses what a copy brought, is named.
func TestTogether(t *testing.T) {
	var fakes []*compute.Fake
	var all []doctor.Device
	for _, name := range []string{"left", "right"} {
		f := &compute.Fake{Memory: 8 << 20, MaxAlloc: 8 << 20}
		infos, err := f.Devices()
		if err != nil {
			t.Fatal(err)
		}
		infos[0].Name = name
		d, err := compute.Open(f, infos[0], compute.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		fakes, all = append(fakes, f), append(all, Memory(d))
	}
	if r := doctor.Together(t.Context(), all); r.Passed != 4 || r.Total != 4 {
		t.Errorf("two that are well: %+v", r)
	}
	fakes[1].Break(compute.Fault{AllocOver: 1 << 20})
	if r := doctor.Together(t.Context(), all); r.Passed != 2 || !strings.Contains(r.Detail, "allocate 2 MiB on right") {
		t.Errorf("one refuses: %+v", r)
	}
	fakes[1].Break(compute.Fault{CopyFails: 2})
	if r := doctor.Together(t.Context(), all); r.Passed == r.Total || !strings.Contains(r.Detail, "right") {
		t.Errorf("one cannot copy: %+v", r)
	}
	fakes[1].Break(compute.Fault{})
	for _, f := range fakes {
		if n := f.Live(); n > 1 { // what copies go through stays
			t.Errorf("%d things stay on a card", n)
		}
	}
}
