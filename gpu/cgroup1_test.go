package gpu

import (
	"testing"
	"testing/fstest"
)

func groupFile(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

func TestCgroupVersion1(t *testing.T) {
	fsys := fstest.MapFS{
		"proc/meminfo":     groupFile("MemTotal: 33554432 kB\nMemAvailable: 16777216 kB\n"),
		"proc/self/cgroup": groupFile("5:cpu,memory:/slice/app\n0::/\n"),
		"sys/fs/cgroup/memory/memory.limit_in_bytes":           groupFile("9223372036854771712\n"),
		"sys/fs/cgroup/memory/memory.usage_in_bytes":           groupFile("20000000000\n"),
		"sys/fs/cgroup/memory/slice/memory.limit_in_bytes":     groupFile("3000000000\n"),
		"sys/fs/cgroup/memory/slice/memory.usage_in_bytes":     groupFile("2900000000\n"),
		"sys/fs/cgroup/memory/slice/memory.stat":               groupFile("cache 1\ntotal_cache 500000000\ntotal_shmem 100000000\ntotal_dirty 1000\n"),
		"sys/fs/cgroup/memory/slice/app/memory.limit_in_bytes": groupFile("2000000000\n"),
		"sys/fs/cgroup/memory/slice/app/memory.usage_in_bytes": groupFile("800000000\n"),
		"sys/fs/cgroup/memory/slice/app/memory.stat":           groupFile("total_cache 0\n"),
		"sys/fs/cgroup/memory/slice/app/memory.oom_control":    groupFile("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
	}
	g := ReadCgroup(fsys)
	if g.Path != "/slice/app" || g.Max.Or(0) != 2e9 || g.Current.Or(0) != 8e8 || g.OOMKills.Or(0) != 3 {
		t.Errorf("%+v", g)
	}
	// The slice around it has less left than the group itself: 100 MB and the
	// 399.999 MB of cache that can be dropped.
	if g.Left.Or(0) != 100000000+399999000 {
		t.Errorf("left %v", g.Left)
	}
	h := Host{Memory: ReadMeminfo(fsys), Cgroup: g}
	if h.RAM().Value != 2e9 || h.Available().Value != g.Left.Value {
		t.Errorf("RAM %v, available %v", h.RAM(), h.Available())
	}
	delete(fsys, "sys/fs/cgroup/memory/slice/memory.limit_in_bytes")
	delete(fsys, "sys/fs/cgroup/memory/slice/app/memory.limit_in_bytes")
	if g := ReadCgroup(fsys); g.Max.Known || g.Left.Known {
		t.Errorf("no limit reads as %v, %v left", g.Max, g.Left)
	}
}

// The limit of a slice is shared with whatever else is in it.
func TestCgroupLeftOfSlice(t *testing.T) {
	fsys := fstest.MapFS{
		"proc/self/cgroup":                            groupFile("0::/user.slice/app\n"),
		"sys/fs/cgroup/cgroup.controllers":            groupFile("memory\n"),
		"sys/fs/cgroup/user.slice/memory.max":         groupFile("4000000000\n"),
		"sys/fs/cgroup/user.slice/memory.current":     groupFile("3900000000\n"),
		"sys/fs/cgroup/user.slice/memory.stat":        groupFile("file 50000000\n"),
		"sys/fs/cgroup/user.slice/app/memory.max":     groupFile("max\n"),
		"sys/fs/cgroup/user.slice/app/memory.current": groupFile("10\n"),
	}
	if g := ReadCgroup(fsys); g.Max.Or(0) != 4e9 || g.Left.Or(0) != 150000000 {
		t.Errorf("limit %v, left %v", g.Max, g.Left)
	}
	fsys["sys/fs/cgroup/user.slice/app/memory.high"] = groupFile("100000010\n")
	if g := ReadCgroup(fsys); g.Left.Or(0) != 100000000 {
		t.Errorf("below memory.high %v are left", g.Left)
	}
}
