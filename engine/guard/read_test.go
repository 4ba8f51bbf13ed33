package guard

import (
	"testing"
	"testing/fstest"
	"time"

	"outcrop/gpu"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

const meminfo = "MemTotal: 33554432 kB\nMemFree: 1048576 kB\nMemAvailable: 16777216 kB\n"

func TestReaderRates(t *testing.T) {
	fsys := fstest.MapFS{
		"proc/meminfo":         file(meminfo),
		"proc/pressure/memory": file("some avg10=12.50 avg60=1.00 avg300=0.00 total=5\nfull avg10=3.00 avg60=0.10 avg300=0.00 total=2\n"),
		"proc/vmstat":          file("pswpin 1000\npswpout 5\npgmajfault 10\n"),
		"proc/42/stat":         file("42 (out crop) S 1 1 1 0 -1 0 0 0 500 0 0 0\n"),
	}
	r := NewReader(fsys, 42, 4096)
	now := time.Unix(100, 0)
	card := gpu.CardReadings{PCI: "0000:03:00.0", GTT: gpu.Known(int64(1<<30), "test"), VRAM: gpu.VRAM{Total: gpu.Known(int64(8<<30), "test")}}
	first := r.Read(now, []gpu.CardReadings{card}, map[string]int64{"0000:03:00.0": 7})
	if first.RAMTotal != Of(32<<30) || first.RAMAvailable != Of(16<<30) {
		t.Errorf("RAM %+v of %+v", first.RAMAvailable, first.RAMTotal)
	}
	if first.PSISome.N != 12.5 || first.PSIFull.N != 3 {
		t.Errorf("pressure %+v %+v", first.PSISome, first.PSIFull)
	}
	if first.SwapIn.Known || first.MajorFaults.Known || first.GTTGrowth.Known {
		t.Error("a rate from a single look")
	}
	if v := first.VRAM[0]; v.Free.Known || v.Total != Of(8<<30) || v.Slots != 7 {
		t.Errorf("card %+v", v)
	}
	fsys["proc/vmstat"] = file("pswpin 3000\n")
	fsys["proc/42/stat"] = file("42 (out crop) S 1 1 1 0 -1 0 0 0 900 0 0 0\n")
	card.GTT = gpu.Known(int64(1<<30+200<<20), "test")
	second := r.Read(now.Add(2*time.Second), []gpu.CardReadings{card}, nil)
	if second.SwapIn.N != 1000*4096 {
		t.Errorf("swap-in %v bytes/s, want %v", second.SwapIn.N, 1000*4096)
	}
	if second.MajorFaults.N != 200 {
		t.Errorf("major faults %v/s, want 200", second.MajorFaults.N)
	}
	if second.GTTGrowth.N != 100<<20 {
		t.Errorf("GTT growth %v, want %v", second.GTTGrowth.N, 100<<20)
	}
}

// A model mapped inside a container fills the group with page cache. That is
// not a full group.
func TestReaderContainerLimit(t *testing.T) {
	fsys := fstest.MapFS{
		"proc/meminfo":                      file(meminfo),
		"proc/self/cgroup":                  file("0::/app\n"),
		"sys/fs/cgroup/cgroup.controllers":  file("memory\n"),
		"sys/fs/cgroup/app/memory.max":      file("4294967296\n"),
		"sys/fs/cgroup/app/memory.current":  file("4294000000\n"),
		"sys/fs/cgroup/app/memory.stat":     file("anon 800000000\nfile 3400000000\nshmem 100000000\nfile_dirty 0\n"),
		"sys/fs/cgroup/app/memory.events":   file("oom_kill 0\n"),
		"sys/fs/cgroup/app/memory.pressure": file("some avg10=1.00 avg60=0 avg300=0 total=0\nfull avg10=0.50 avg60=0 avg300=0 total=0\n"),
		"proc/pressure/memory":              file("some avg10=90.00 avg60=0 avg300=0 total=0\nfull avg10=80.00 avg60=0 avg300=0 total=0\n"),
	}
	got := NewReader(fsys, 0, 4096).Read(time.Unix(1, 0), nil, nil)
	if got.RAMTotal != Of(4<<30) {
		t.Errorf("total %+v, want the limit", got.RAMTotal)
	}
	if want := int64(4294967296 - 4294000000 + 3300000000); got.RAMAvailable != Of(want) {
		t.Errorf("available %+v, want %d", got.RAMAvailable, want)
	}
	if got.PSIFull.N != 0.5 {
		t.Errorf("pressure %+v, want the group's own", got.PSIFull)
	}
	if l := LevelOf(got, daily); l != Good {
		t.Errorf("level %v, want good: the cache can be taken back", l)
	}
}

func TestReaderWithoutFiles(t *testing.T) {
	got := NewReader(fstest.MapFS{}, 0, 4096).Read(time.Unix(1, 0), nil, nil)
	if got.RAMTotal.Known || got.PSISome.Known || LevelOf(got, daily) != Unknown {
		t.Errorf("%+v", got)
	}
}
