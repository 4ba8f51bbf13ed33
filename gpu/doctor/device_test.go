//go:build slow

package doctor

import (
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
)

// Every check of first light passes on a device that is right.
func TestFirstLightOnDevice(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		c, err := On(d)
		if err != nil {
			t.Fatal(err)
		}
		l, err := FirstLight(t.Context(), c, LightOptions{MaxBytes: 256 << 20, Repeat: 3})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range l.Steps {
			if s.Passed != s.Total {
				t.Errorf("%s: %d of %d: %s", s.Title, s.Passed, s.Total, s.Detail)
			}
		}
		t.Log(l)
	})
}
