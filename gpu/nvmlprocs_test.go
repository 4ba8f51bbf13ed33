//go:build linux

package gpu

import (
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unsafe"
)

// listCall is a driver that knows these processes and writes entries of so many
// 8-byte words.
func listCall(words int, rc int32, procs ...[2]uint64) func(uintptr, *uint32, unsafe.Pointer) int32 {
	return func(_ uintptr, n *uint32, at unsafe.Pointer) int32 {
		room := *n
		*n = uint32(len(procs))
		switch {
		case rc != 0:
			return rc
		case int(room) < len(procs):
			return 7
		}
		out := unsafe.Slice((*uint64)(at), int(room)*nvmlEntryMost)
		for i, p := range procs {
			// The padding above a pid keeps what was there.
			out[i*words] = out[i*words]&^0xffffffff | p[0]
			out[i*words+1] = p[1]
			for k := 2; k < words; k++ {
				out[i*words+k] = ^uint64(0) // no instances: all ones
			}
		}
		return 0
	}
}

// TestNVMLList reads the list in every layout that drivers write, and says in
// words why another one is not read.
func TestNVMLList(t *testing.T) {
	two := [][2]uint64{{100, 3 << 30}, {200, ^uint64(0)}}
	want := []ProcVRAM{{PID: 100, VRAM: 3 << 30, Claim: 3 << 30}, {PID: 200, Unknown: "the driver does not tell how much"}}
	for words := 2; words <= nvmlEntryMost; words++ {
		if got, why := nvmlList(listCall(words, 0, two...), 0); why != "" || !slices.Equal(got, want) {
			t.Errorf("entries of %d bytes: %+v %q", words*8, got, why)
		}
	}
	var many [][2]uint64
	for i := range 300 {
		many = append(many, [2]uint64{uint64(1000 + i), uint64(i) << 20})
	}
	if got, why := nvmlList(listCall(3, 0, many...), 0); why != "" || len(got) != 300 || got[299].VRAM != 299<<20 {
		t.Errorf("more than the first room: %d %q", len(got), why)
	}
	if got, why := nvmlList(listCall(3, 0), 0); why != "" || len(got) != 0 {
		t.Errorf("nobody: %+v %q", got, why)
	}
	if got, why := nvmlList(listCall(3, 0, [2]uint64{7, 1 << 61}), 0); why != "" || got[0].Unknown != "out of range" {
		t.Errorf("out of range: %+v %q", got, why)
	}
	for name, c := range map[string]struct {
		call func(uintptr, *uint32, unsafe.Pointer) int32
		why  string
	}{
		"not permitted":    {listCall(3, 4), "no permission"},
		"not supported":    {listCall(3, 3), "not supported"},
		"always too small": {listCall(3, 7), "more than 4096"},
		"one word an entry": {func(_ uintptr, n *uint32, p unsafe.Pointer) int32 {
			*n = 2
			*(*[2]uint64)(p) = [2]uint64{1, 2}
			return 0
		}, "layout that is not known"},
		"nothing written": {func(_ uintptr, n *uint32, p unsafe.Pointer) int32 { *n = 2; return 0 }, "layout that is not known"},
		"count past room": {func(_ uintptr, n *uint32, p unsafe.Pointer) int32 { *n = 1 << 20; return 0 }, "room for 64"},
	} {
		if got, why := nvmlList(c.call, 0); got != nil || !strings.Contains(why, c.why) {
			t.Errorf("%s: %+v %q", name, got, why)
		}
	}
	n := &nvml{dev: map[PCI]uintptr{"0000:01:00.0": 1}}
	if _, r := n.processes("0000:01:00.0"); r.Known || !strings.Contains(r.Why, "no such call") {
		t.Errorf("a driver without the calls: %+v", r)
	}
}

// TestProcessesInContainer: NVIDIA's driver counts processes as the host does.
// What it says of process 57 is not about the container's process 57.
func TestProcessesInContainer(t *testing.T) {
	told := []ProcVRAM{{PID: 57, VRAM: gib}}
	for ns, in := range map[string]bool{hostPIDs: false, "pid:[4026532999]": true} {
		root := fstest.MapFS{
			"proc/57/comm":     {Data: []byte("engine\n")},
			"proc/self/ns/pid": {Data: []byte(ns), Mode: fs.ModeSymlink | 0o777},
		}
		s := &Sampler{root: root}
		p, r := s.named(slices.Clone(told), Known(1, nvmlSource))
		v := VRAM{Procs: p, Listed: r}
		if own := v.Of(57); own.Known == in || in && !strings.Contains(own.Why, "container") || !in && (own.Value != gib || p[0].Name != "engine") {
			t.Errorf("%s: %+v %+v %+v", ns, p, r, own)
		}
		if own := v.Of(58); own.Known {
			t.Errorf("%s: a process that is not listed holds %+v", ns, own)
		}
	}
}
