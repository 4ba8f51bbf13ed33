package gpu

import (
	"testing"
	"testing/fstest"
)

// TestAtMax: the use that goes with a limit is that of the group that has it.
func TestAtMax(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	for name, c := range map[string]struct {
		root        fstest.MapFS
		used, cache int64
		known       bool
	}{
		"version 2, a slice's": {fstest.MapFS{
			"proc/self/cgroup":                  file("0::/user/app\n"),
			"sys/fs/cgroup/cgroup.controllers":  file("memory"),
			"sys/fs/cgroup/user/memory.max":     file("2048\n"),
			"sys/fs/cgroup/user/memory.current": file("512\n"),
			"sys/fs/cgroup/user/memory.stat":    file("file 100\nshmem 40\n"),
			"sys/fs/cgroup/user/app/memory.max": file("max\n"), "sys/fs/cgroup/user/app/memory.current": file("7\n"),
		}, 512, 60, true},
		"version 1": {fstest.MapFS{
			"proc/self/cgroup":                                file("4:cpu,memory:/jobs\n"),
			"sys/fs/cgroup/memory/memory.limit_in_bytes":      file("9223372036854771712\n"),
			"sys/fs/cgroup/memory/jobs/memory.limit_in_bytes": file("4096\n"),
			"sys/fs/cgroup/memory/jobs/memory.usage_in_bytes": file("100\n"),
			"sys/fs/cgroup/memory/jobs/memory.stat":           file("total_cache 60\ntotal_dirty 10\n"),
		}, 100, 50, true},
		"no limit": {fstest.MapFS{
			"proc/self/cgroup":                 file("0::/\n"),
			"sys/fs/cgroup/cgroup.controllers": file("memory"),
		}, 0, 0, false},
	} {
		used, cache := ReadCgroup(c.root).AtMax(c.root)
		if used.Value != c.used || cache.Value != c.cache || used.Known != c.known || cache.Known != c.known {
			t.Errorf("%s: %+v, %+v", name, used, cache)
		}
		if !used.Known && used.Why == "" {
			t.Errorf("%s: unknown without a reason", name)
		}
	}
}
