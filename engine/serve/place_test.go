package serve

import (
	"strings"
	"testing"
	"testing/fstest"

	"outcrop/engine"
)

// A pack whose plan leaves less than the floor is refused with numbers and a
// way out that was tried, and loads when the person insists.
func TestPlaceRefusesWhatDoesNotFit(t *testing.T) {
	p, err := engine.OpenPack("../../assets/starter/starter.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	machine := func(total, available string) fstest.MapFS {
		return fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: " + total + " kB\nMemFree: 1000 kB\nMemAvailable: " + available + " kB\n")}}
	}
	plenty := machine("16777216", "12582912")
	var o engine.Options
	if notes, err := place(plenty, memorySite(plenty, ""), p, &o, Spec{}); err != nil || len(notes) > 0 {
		t.Errorf("16 GiB: %v, %v", notes, err)
	}
	// 12 GiB available, a quarter of 16 GiB to stay free, 1 GiB for caches.
	if want := int64(7) << 30; o.Relay != want {
		t.Errorf("room for faster layouts is %d, want %d", o.Relay, want)
	}
	o = engine.Options{Context: 2048, KV: "f32"}
	tight := machine("1048576", "270000") // a floor of 256 MiB, 8 MiB above it
	_, err = place(tight, memorySite(tight, ""), p, &o, Spec{})
	if err == nil || !strings.Contains(err.Error(), "does not fit") || !strings.Contains(err.Error(), "short of") || !strings.Contains(err.Error(), "would fit: 8-bit KV") || !strings.Contains(err.Error(), "--force") {
		t.Errorf("256 MiB: %v", err)
	}
	notes, err := place(tight, memorySite(tight, ""), p, &o, Spec{Force: true})
	if err != nil || len(notes) == 0 {
		t.Errorf("with force: %v, %v", notes, err)
	}
	if o.Relay != 0 {
		t.Errorf("copies of weights on a machine without room: %d", o.Relay)
	}
}
