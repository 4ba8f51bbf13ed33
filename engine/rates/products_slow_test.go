//go:build slow

package rates

import (
	"testing"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/computetest"
)

// TestProducts: the engine's kernels run for the measurement, and prompts get more
// out of a byte of weights than tokens do.
func TestProducts(t *testing.T) {
	computetest.Each(t, func(t *testing.T, d *compute.Device) {
		l, free, err := Device(d)
		if err != nil {
			t.Fatal(err)
		}
		defer free()
		e := quick
		if !d.Info().CPU {
			e = usual
		}
		read, multiply, err := l.(Computer).Products(t.Context(), e.linkTime)
		if err != nil || !(read > 0) || !(multiply > read) {
			t.Errorf("%v and %v bytes a second, %v", read, multiply, err)
		}
		t.Logf("%s: one token %.3g GB/s, prompts %.3g TB/s times tokens", d.Info(), read/1e9, multiply/1e12)
	})
}
