//go:build linux

package gpu

import (
	"os"
	"runtime"
	"testing"
	"time"
)

// TestLiveOwnVRAM takes memory of an NVIDIA card through its driver and finds it
// again as this process's own, in what NVML lists.
func TestLiveOwnVRAM(t *testing.T) {
	m, fsys, live, err := Open("/")
	if err != nil {
		t.Fatal(err)
	}
	var card *Card
	for i := range m.Cards {
		if c := &m.Cards[i]; c.Driver == "nvidia" && card == nil {
			card = c
		}
	}
	if card == nil {
		t.Skip("this machine has no NVIDIA card with its driver")
	}
	h, err := openLib("libcuda.so.1")
	if err != nil {
		t.Skip("no CUDA driver: ", err)
	}
	var (
		start    func(flags uint32) int32
		byPCI    func(dev *int32, pci string) int32
		retain   func(ctx *uintptr, dev int32) int32
		release  func(dev int32) int32
		current  func(ctx uintptr) int32
		allocate func(at *uint64, n uint64) int32
		free     func(at uint64) int32
	)
	for name, f := range map[string]any{"cuInit": &start, "cuDeviceGetByPCIBusId": &byPCI, "cuDevicePrimaryCtxRetain": &retain,
		"cuDevicePrimaryCtxRelease_v2": &release, "cuCtxSetCurrent": &current, "cuMemAlloc_v2": &allocate, "cuMemFree_v2": &free} {
		if err := bind(h, name, f); err != nil {
			t.Skip("the CUDA driver is too old: ", err)
		}
	}
	runtime.LockOSThread() // the context is current on this thread
	defer runtime.UnlockOSThread()
	s := NewSampler(fsys, m, live)
	defer s.Close()
	read := func() VRAM {
		for _, r := range s.Sample(time.Now()) {
			if r.PCI == card.PCI {
				return r.VRAM
			}
		}
		t.Fatal("the card has gone")
		return VRAM{}
	}
	before := read()
	if own := before.Of(os.Getpid()); own.Known {
		t.Errorf("before anything was taken %d bytes are ours", own.Value)
	}
	var dev int32
	var ctx uintptr
	var at uint64
	const take = 1 << 30
	for _, step := range []struct {
		what string
		do   func() int32
	}{
		{"start", func() int32 { return start(0) }},
		{"find the card", func() int32 { return byPCI(&dev, string(card.PCI)) }},
		{"open it", func() int32 { return retain(&ctx, dev) }},
		{"use it", func() int32 { return current(ctx) }},
		{"take 1 GiB", func() int32 { return allocate(&at, take) }},
	} {
		if rc := step.do(); rc != 0 {
			t.Skipf("%s: the CUDA driver gives error %d", step.what, rc)
		}
	}
	defer release(dev)
	held := read()
	own := held.Of(os.Getpid())
	t.Logf("used before %d, now %d; own %+v; listed %+v; %+v", before.Used.Value, held.Used.Value, own, held.Listed, held.Procs)
	if !own.Known {
		if ns, err := os.Readlink("/proc/self/ns/pid"); err == nil && ns != hostPIDs {
			t.Skip("in a container the driver's numbers of processes are the host's")
		}
		t.Fatalf("1 GiB is taken and none of it is ours: %+v", own)
	}
	if own.Value < take || own.Value > held.Used.Value {
		t.Errorf("of 1 GiB and what a context takes, %d bytes are ours; in use are %d", own.Value, held.Used.Value)
	}
	if grown := held.Used.Value - before.Used.Value; grown < take {
		t.Errorf("1 GiB was taken and %d bytes more are in use", grown)
	}
	free(at)
	if less := read().Of(os.Getpid()); less.Known && own.Value-less.Value < take {
		t.Errorf("1 GiB was given back: %d bytes were ours, %d are", own.Value, less.Value)
	}
}
