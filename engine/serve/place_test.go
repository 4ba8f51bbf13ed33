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

// A split that was asked for is never turned into a plan for the CPU: the load
// refuses it with the numbers of the card.
func TestPlaceKeepsSplit(t *testing.T) {
	p, err := engine.OpenPack("../../assets/starter/starter.gguf")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	root := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 16777216 kB\nMemFree: 1000 kB\nMemAvailable: 12582912 kB\n")}}
	for _, split := range [][]float64{nil, {1}} {
		o := engine.Options{Device: "0000:03:00.0", Context: 512, Placement: engine.Placement{Split: split}, VRAMLimit: []int64{1 << 20}}
		if _, err := place(root, memorySite(root, ""), p, &o, Spec{}); err != nil {
			t.Fatal(err)
		}
		if (o.Plan == nil) != (split != nil) {
			t.Errorf("split %v: the load is given the plan %+v", split, o.Plan)
		}
	}
}
