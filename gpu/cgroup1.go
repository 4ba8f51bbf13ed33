package gpu

import (
	"io/fs"
	"path"
	"strings"
)

// noLimit1 and above is how version 1 says that there is no limit: 2^63 less
// one page.
const noLimit1 = 1 << 60

// readCgroup1 reads the memory controller of version 1, which machines that
// still run old containers have. ok is false where the controller is not there.
func readCgroup1(root fs.FS, self string) (g Cgroup, ok bool) {
	const base = "sys/fs/cgroup/memory"
	if !exists(root, base+"/memory.limit_in_bytes") && !exists(root, base+"/memory.usage_in_bytes") {
		return g, false
	}
	found := false
	for line := range strings.Lines(self) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) == 3 {
			for name := range strings.SplitSeq(f[1], ",") {
				if name == "memory" {
					g.Path, found = path.Clean("/"+f[2]), true
				}
			}
		}
	}
	if !found {
		return g, false
	}
	dir := path.Join(base, g.Path)
	if !exists(root, dir) {
		dir = base // inside a container the path may be one that only the host can see
	}
	limit := func(d string) Reading[int64] {
		r := number(root, d+"/memory.limit_in_bytes")
		if r.Known && r.Value >= noLimit1 {
			return Unknown[int64](r.Source, "no limit")
		}
		return r
	}
	g.Max = Unknown[int64]("/"+dir+"/memory.limit_in_bytes", "no limit")
	for d := dir; ; d = path.Dir(d) {
		if r := limit(d); r.Known && (!g.Max.Known || r.Value < g.Max.Value) {
			g.Max = r
		}
		if d == base || len(d) <= len(base) {
			break
		}
	}
	g.Current = number(root, dir+"/memory.usage_in_bytes")
	g.Cache = groupCache1(root, dir)
	g.Left = leastLeft(dir, base, func(d string) (max, used, cache Reading[int64]) {
		return limit(d), number(root, d+"/memory.usage_in_bytes"), groupCache1(root, d)
	})
	g.High = Unknown[int64]("/"+dir, "version 1 has no such limit")
	g.SwapMax = Unknown[int64]("/"+dir, "version 1 has no such limit")
	g.OOMKills = Unknown[int64]("/"+dir+"/memory.oom_control", "no such line")
	if v, ok := event(text(root, dir+"/memory.oom_control"), "oom_kill"); ok {
		g.OOMKills = Known(v, "/"+dir+"/memory.oom_control")
	}
	return g, true
}

// groupCache1 is the page cache of a group and those in it that can be dropped
// without writing.
func groupCache1(root fs.FS, dir string) Reading[int64] {
	name := dir + "/memory.stat"
	s := text(root, name)
	cache, ok := event(s, "total_cache")
	if !ok {
		return Unknown[int64]("/"+name, "no line for file pages")
	}
	for _, k := range []string{"total_shmem", "total_dirty", "total_writeback"} {
		v, _ := event(s, k)
		cache -= v
	}
	return Known(max(cache, 0), "/"+name)
}
