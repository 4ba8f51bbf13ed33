package gpu

import (
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// ReadMeminfo reads /proc/meminfo. Kernels without MemAvailable (before 3.14)
// get MemFree plus half the page cache, and the source says it is an estimate.
func ReadMeminfo(root fs.FS) Meminfo {
	s, err := read(root, "proc/meminfo")
	if err != nil {
		u := Unknown[int64]("/proc/meminfo", reason(err))
		return Meminfo{u, u, u, u, u, u, u, u}
	}
	return ParseMeminfo(s)
}

// ParseMeminfo reads the text of /proc/meminfo.
func ParseMeminfo(s string) Meminfo {
	get := func(key string) Reading[int64] {
		v, ok := keyed(s, key)
		if !ok {
			return Unknown[int64]("/proc/meminfo", "no "+key)
		}
		f := strings.Fields(v)
		if len(f) == 0 {
			return Unknown[int64]("/proc/meminfo", "empty "+key)
		}
		n, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil || n < 0 || n > 1<<52 {
			return Unknown[int64]("/proc/meminfo", key+" "+clip(v))
		}
		if len(f) > 1 && f[1] == "kB" {
			n <<= 10
		}
		return Known(n, "/proc/meminfo")
	}
	m := Meminfo{
		Total: get("MemTotal"), Available: get("MemAvailable"), Free: get("MemFree"), Anon: get("AnonPages"),
		Cached: get("Cached"), Shmem: get("Shmem"), SwapTotal: get("SwapTotal"), SwapFree: get("SwapFree"),
	}
	if !m.Available.Known && m.Free.Known {
		m.Available = Known(m.Free.Value+m.Cached.Or(0)/2, "/proc/meminfo, estimated: this kernel has no MemAvailable")
	}
	return m
}

// ReadPressure reads a PSI file, such as proc/pressure/memory or a cgroup's
// memory.pressure.
func ReadPressure(root fs.FS, name string) Reading[Pressure] {
	s, err := read(root, name)
	if err != nil {
		return Unknown[Pressure]("/"+name, reason(err)+" (kernel without PSI, or booted with psi=0)")
	}
	p, ok := ParsePressure(s)
	if !ok {
		return Unknown[Pressure]("/"+name, "not a pressure file: "+clip(s))
	}
	return Known(p, "/"+name)
}

// ParsePressure reads the text of a PSI file; false when it has no "some" line.
func ParsePressure(s string) (Pressure, bool) {
	var p Pressure
	ok := false
	for line := range strings.Lines(s) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		for _, kv := range f[1:] {
			k, v, _ := strings.Cut(kv, "=")
			x, err := strconv.ParseFloat(v, 64)
			if err != nil || x < 0 || x != x {
				continue
			}
			switch f[0] + k {
			case "someavg10":
				p.SomeAvg10, ok = x, true
			case "someavg60":
				p.SomeAvg60 = x
			case "sometotal":
				p.SomeTotal = clampInt(x)
			case "fullavg10":
				p.FullAvg10 = x
			case "fullavg60":
				p.FullAvg60 = x
			case "fulltotal":
				p.FullTotal = clampInt(x)
			}
		}
	}
	return p, ok
}

func clampInt(x float64) int64 {
	if x > 1<<62 {
		return 1 << 62
	}
	return int64(x)
}

// ReadVMStat reads the counters of /proc/vmstat that tell of memory pressure.
func ReadVMStat(root fs.FS) Reading[VMStat] {
	s, err := read(root, "proc/vmstat")
	if err != nil {
		return Unknown[VMStat]("/proc/vmstat", reason(err))
	}
	return Known(ParseVMStat(s), "/proc/vmstat")
}

// ParseVMStat reads the text of /proc/vmstat.
func ParseVMStat(s string) VMStat {
	var v VMStat
	for line := range strings.Lines(s) {
		k, n, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			continue
		}
		x, err := strconv.ParseInt(n, 10, 64)
		if err != nil || x < 0 {
			continue
		}
		switch k {
		case "pgmajfault":
			v.MajorFaults = x
		case "pswpin":
			v.SwapIn = x
		case "pswpout":
			v.SwapOut = x
		case "workingset_refault_file":
			v.Refault = x
		case "oom_kill":
			v.OOMKills = x
		}
	}
	return v
}

// ReadCgroup reads the memory controller of this process's cgroup (version 2).
// Limits of every ancestor count, so a slice's limit is seen from a service in
// it; inside a container the group's own files are at the root of the mount.
func ReadCgroup(root fs.FS) Cgroup {
	return readCgroup(root, text(root, "proc/self/cgroup"))
}

func readCgroup(root fs.FS, self string) Cgroup {
	const base = "sys/fs/cgroup"
	g := Cgroup{}
	for line := range strings.Lines(self) {
		if p, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			g.Path = path.Clean("/" + p)
		}
	}
	src := "/" + base
	if one, ok := readCgroup1(root, self); ok {
		return one
	}
	if !exists(root, base+"/cgroup.controllers") && !exists(root, base+"/memory.max") {
		why := "no cgroup version 2 here"
		u := Unknown[int64](src, why)
		return Cgroup{Path: g.Path, Max: u, High: u, Current: u, Cache: u, Left: u, SwapMax: u, OOMKills: u}
	}
	dir := path.Join(base, g.Path)
	if !exists(root, dir) {
		dir = base
	}
	g.Current = number(root, dir+"/memory.current")
	g.Cache = groupCache(root, dir)
	g.OOMKills = Unknown[int64]("/"+dir+"/memory.events", "no such line")
	if v, ok := event(text(root, dir+"/memory.events"), "oom_kill"); ok {
		g.OOMKills = Known(v, "/"+dir+"/memory.events")
	}
	least := func(file string) Reading[int64] {
		out := Unknown[int64]("/"+dir+"/"+file, "no limit")
		for d := dir; ; d = path.Dir(d) {
			s := text(root, d+"/"+file)
			if v, err := strconv.ParseInt(s, 10, 64); err == nil && v >= 0 && (!out.Known || v < out.Value) {
				out = Known(v, "/"+d+"/"+file)
			}
			if d == base || len(d) <= len(base) {
				return out
			}
		}
	}
	g.Max, g.High, g.SwapMax = least("memory.max"), least("memory.high"), least("memory.swap.max")
	g.Left = leastLeft(dir, base, func(d string) (limit, used, cache Reading[int64]) {
		limit = number(root, d+"/memory.max")
		// Above memory.high the group is slowed down until it has shrunk.
		if h := number(root, d+"/memory.high"); h.Known && (!limit.Known || h.Value < limit.Value) {
			limit = h
		}
		return limit, number(root, d+"/memory.current"), groupCache(root, d)
	})
	return g
}

// leastLeft goes from a group up to the root and gives the least that any of
// them may still take: the limit of a slice is shared with all in it.
func leastLeft(dir, base string, read func(dir string) (max, used, cache Reading[int64])) Reading[int64] {
	out := Unknown[int64]("/"+dir, "no limit")
	for d := dir; ; d = path.Dir(d) {
		if m, u, c := read(d); m.Known && u.Known {
			left := min(m.Value, max(m.Value-u.Value+c.Or(0), 0))
			if !out.Known || left < out.Value {
				out = Known(left, m.Source)
			}
		}
		if d == base || len(d) <= len(base) {
			return out
		}
	}
}

func event(s, key string) (int64, bool) {
	for line := range strings.Lines(s) {
		f := strings.Fields(line)
		if len(f) == 2 && f[0] == key {
			v, err := strconv.ParseInt(f[1], 10, 64)
			return v, err == nil && v >= 0
		}
	}
	return 0, false
}

// groupCache is the page cache of a group that can be dropped without writing.
func groupCache(root fs.FS, dir string) Reading[int64] {
	name := dir + "/memory.stat"
	s := text(root, name)
	file, ok := event(s, "file")
	if !ok {
		return Unknown[int64]("/"+name, "no line for file pages")
	}
	for _, k := range []string{"shmem", "file_dirty", "file_writeback"} {
		v, _ := event(s, k)
		file -= v
	}
	return Known(max(file, 0), "/"+name)
}

// RAM gives how many bytes of RAM programs here may use in all: the machine's,
// or less where a cgroup limits it.
func (h Host) RAM() Reading[int64] {
	t := h.Memory.Total
	if c := h.Cgroup.Max; c.Known && (!t.Known || c.Value < t.Value) {
		return c
	}
	return t
}

// Available gives how many bytes can still be had: MemAvailable, or what the
// cgroup has left when that is less. Clean page cache of the group counts as
// left: a mapped model bigger than the limit would otherwise look like a full
// group for as long as it runs.
func (h Host) Available() Reading[int64] {
	a := h.Memory.Available
	if c := h.Cgroup; c.Max.Known && c.Current.Known {
		left := min(c.Max.Value, max(c.Max.Value-c.Current.Value+c.Cache.Or(0), 0))
		if !a.Known || left < a.Value {
			a = Known(left, c.Max.Source)
		}
	}
	if l := h.Cgroup.Left; l.Known && (!a.Known || l.Value < a.Value) {
		a = l // a group around this one may have less left
	}
	if l := h.CommitLeft; l.Known && (!a.Known || l.Value < a.Value) {
		return l
	}
	return a
}

// ProcMem is where one process's memory is.
type ProcMem struct {
	Anon   int64 `json:"anon"`   // bytes: its own, cannot be dropped
	File   int64 `json:"file"`   // mapped files: clean pages can be dropped, a mapped model is here
	Shmem  int64 `json:"shmem"`  // shared memory
	Swap   int64 `json:"swap"`   // swapped out
	Locked int64 `json:"locked"` // mlocked
	Peak   int64 `json:"peak"`   // highest resident set so far
}

// ReadProcMem reads /proc/PID/status; pid "self" is this process.
func ReadProcMem(root fs.FS, pid string) Reading[ProcMem] {
	name := "proc/" + pid + "/status"
	s, err := read(root, name)
	if err != nil {
		return Unknown[ProcMem]("/"+name, reason(err))
	}
	get := func(key string) int64 {
		v, _ := keyed(s, key)
		f := strings.Fields(v)
		if len(f) == 0 {
			return 0
		}
		n, err := strconv.ParseInt(f[0], 10, 64)
		if err != nil || n < 0 || n > 1<<52 {
			return 0
		}
		return n << 10
	}
	return Known(ProcMem{get("RssAnon"), get("RssFile"), get("RssShmem"), get("VmSwap"), get("VmLck"), get("VmHWM")}, "/"+name)
}

// ReadMajorFaults reads a process's count of major faults (field 12 of
// /proc/PID/stat): pages it had to wait for the disk for.
func ReadMajorFaults(root fs.FS, pid string) Reading[int64] {
	name := "proc/" + pid + "/stat"
	s, err := read(root, name)
	if err != nil {
		return Unknown[int64]("/"+name, reason(err))
	}
	// The command name in brackets may hold spaces and brackets.
	f := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
	if len(f) > 9 {
		if v, err := strconv.ParseInt(f[9], 10, 64); err == nil && v >= 0 {
			return Known(v, "/"+name)
		}
	}
	return Unknown[int64]("/"+name, "no field 12")
}

// readSwaps reads /proc/swaps.
func readSwaps(root fs.FS) []Swap {
	var out []Swap
	for line := range strings.Lines(text(root, "proc/swaps")) {
		f := strings.Fields(line)
		if len(f) < 5 || f[0] == "Filename" {
			continue
		}
		size, e1 := strconv.ParseInt(f[2], 10, 64)
		used, e2 := strconv.ParseInt(f[3], 10, 64)
		if e1 != nil || e2 != nil || size < 0 || size > 1<<52 || used < 0 || used > 1<<52 {
			continue
		}
		out = append(out, Swap{Path: f[0], Size: size << 10, Used: used << 10, Zram: strings.Contains(f[0], "zram")})
	}
	return out
}
