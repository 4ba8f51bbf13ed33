// Package vitals reads how a machine and a process are doing: RAM, memory
// pressure, control-group limits, a process's own memory, CPU time. Everything
// comes from /proc and /sys through an fs.FS, so that a recorded machine reads
// like a live one; what a kernel does not tell stays unknown, with the file
// that was asked. It decides nothing: that is engine/guard's work.
package vitals

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"outcrop/engine/wire"
)

// Live is the running machine.
func Live() fs.FS { return os.DirFS("/") }

// Memory reads the machine's RAM, its pressure, and the control group of the
// process that asks. Level is left empty.
func Memory(root fs.FS) wire.Memory {
	m := wire.Memory{}
	info, err := pairs(root, "proc/meminfo")
	kib := func(key string) wire.Reading {
		return fromKiB(info, err, "proc/meminfo", key)
	}
	m.Total = kib("MemTotal")
	m.Available = kib("MemAvailable")
	if !m.Available.Known && err == nil {
		// Kernels before 3.14 have no MemAvailable. Free plus page cache is its
		// usual upper estimate; shared memory in the cache cannot be dropped.
		free, cached, shmem := kib("MemFree"), kib("Cached"), kib("Shmem")
		if free.Known && cached.Known {
			m.Available = wire.Known(free.Value+cached.Value-shmem.Value, "bytes", "/proc/meminfo MemFree + Cached - Shmem (no MemAvailable)")
		}
	}
	total, left := kib("SwapTotal"), kib("SwapFree")
	if total.Known && left.Known {
		m.SwapUsed = wire.Known(total.Value-left.Value, "bytes", total.Source)
	} else {
		m.SwapUsed = total
	}
	if err != nil && noProc {
		foreignMemory(&m)
	}
	m.SomeAvg10, m.FullAvg10 = pressure(root)
	m.Limit, m.Used, m.Cache = group(root)
	return m
}

// Process reads the memory of one process; pid 0 is the one that asks.
func Process(root fs.FS, pid int) wire.Process {
	name := "self"
	if pid != 0 {
		name = strconv.Itoa(pid)
	}
	file := "proc/" + name + "/status"
	st, err := pairs(root, file)
	p := wire.Process{PID: pid}
	if pid == 0 {
		p.PID = os.Getpid()
	}
	p.RSS = fromKiB(st, err, file, "VmRSS")
	if err != nil && noProc {
		foreignProcess(&p)
	}
	p.Anon = fromKiB(st, err, file, "RssAnon")
	p.Mapped = fromKiB(st, err, file, "RssFile")
	p.Peak = fromKiB(st, err, file, "VmHWM")
	p.Swap = fromKiB(st, err, file, "VmSwap")
	stat := "proc/" + name + "/stat"
	if f, err := statFields(root, stat); err != nil {
		p.Major = wire.Unknown("", "/"+stat, err.Error())
	} else if n, err := strconv.ParseFloat(f[9], 64); err != nil {
		p.Major = wire.Unknown("", "/"+stat, err.Error())
	} else {
		p.Major = wire.Known(n, "", "/"+stat)
	}
	return p
}

// pressure reads the kernel's memory pressure (PSI), avg10 of some and full.
func pressure(root fs.FS) (some, full wire.Reading) {
	const file = "proc/pressure/memory"
	b, err := fs.ReadFile(root, file)
	if err != nil {
		r := wire.Unknown("percent", "/"+file, "this kernel has no pressure information: "+reason(err))
		return r, r
	}
	some = wire.Unknown("percent", "/"+file, "no line \"some\"")
	full = wire.Unknown("percent", "/"+file, "no line \"full\"")
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		v, ok := strings.CutPrefix(f[1], "avg10=")
		n, err := strconv.ParseFloat(v, 64)
		if !ok || err != nil {
			continue
		}
		switch f[0] {
		case "some":
			some = wire.Known(n, "percent", "/"+file)
		case "full":
			full = wire.Known(n, "percent", "/"+file)
		}
	}
	return some, full
}

// group reads limit and use of the strictest memory control group around this
// process, and how much of the use is file pages that can be dropped; no limit
// is unknown, with the reason.
func group(root fs.FS) (limit, used, cache wire.Reading) {
	dirs := GroupDirs(root)
	limit = wire.Unknown("bytes", "/proc/self/cgroup", "no memory control group")
	used, cache = limit, limit
	if len(dirs) == 0 {
		return limit, used, cache
	}
	limit.Why = "no limit is set"
	used, cache = limit, limit
	for _, d := range dirs {
		file := d.join("memory.max", "memory.limit_in_bytes")
		n, err := number(root, file)
		// Version 1 says "no limit" with a number near 2^63.
		if err != nil || n >= 1<<60 {
			continue
		}
		if limit.Known && n >= limit.Value {
			continue
		}
		limit = wire.Known(n, "bytes", "/"+file)
		file = d.join("memory.current", "memory.usage_in_bytes")
		if n, err := number(root, file); err == nil {
			used = wire.Known(n, "bytes", "/"+file)
		} else {
			used = wire.Unknown("bytes", "/"+file, reason(err))
		}
		// Version 2 has the counts of the subtree without a prefix, version 1 with.
		key := "total_inactive_file"
		active := "total_active_file"
		if d.V2 {
			key, active = "inactive_file", "active_file"
		}
		file = path.Join(d.Path, "memory.stat")
		st, err := pairs(root, file)
		cold, cerr := strconv.ParseFloat(st[key], 64)
		warm, werr := strconv.ParseFloat(st[active], 64)
		switch {
		case err != nil:
			cache = wire.Unknown("bytes", "/"+file, reason(err))
		case cerr != nil || werr != nil:
			cache = wire.Unknown("bytes", "/"+file, "no line "+key)
		default:
			cache = wire.Known(cold+warm, "bytes", "/"+file+" "+key+" + "+active)
		}
	}
	return limit, used, cache
}

// GroupDir is a directory of the memory controller, version 1 or 2.
type GroupDir struct {
	Path string // below root, without leading slash
	V2   bool
}

func (d GroupDir) join(v2, v1 string) string {
	if d.V2 {
		return path.Join(d.Path, v2)
	}
	return path.Join(d.Path, v1)
}

// GroupDirs lists the memory controller's directories from this process's own
// group up to the root.
func GroupDirs(root fs.FS) []GroupDir {
	b, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var v1, v2 []GroupDir
	for line := range strings.Lines(string(b)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		switch {
		case f[0] == "0" && f[1] == "":
			for _, base := range []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"} {
				if _, err := fs.Stat(root, base+"/cgroup.controllers"); err == nil {
					v2 = climb(root, base, f[2], true)
				}
			}
		case contains(strings.Split(f[1], ","), "memory"):
			v1 = climb(root, "sys/fs/cgroup/memory", f[2], false)
		}
	}
	if len(v1) > 0 {
		return v1 // a mixed machine keeps the memory controller in one of the two
	}
	return v2
}

// climb lists base/group and its parents that exist. Inside a container the
// group's path may be one that only the host can see; its base is left then.
func climb(root fs.FS, base, group string, v2 bool) []GroupDir {
	var dirs []GroupDir
	for g := path.Clean("/" + group); ; g = path.Dir(g) {
		d := path.Join(base, g)
		if _, err := fs.Stat(root, d); err == nil {
			dirs = append(dirs, GroupDir{d, v2})
		}
		if g == "/" {
			return dirs
		}
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// OOMKills is the number of processes of this control group that the kernel
// killed for memory so far, and that of the whole machine.
func OOMKills(root fs.FS) (own, machine wire.Reading) {
	own = wire.Unknown("", "/proc/self/cgroup", "no memory control group with a count of kills")
	for _, d := range GroupDirs(root) {
		file := d.join("memory.events", "memory.oom_control")
		m, err := pairs(root, file)
		if v, ok := m["oom_kill"]; err == nil && ok {
			if n, err := strconv.ParseFloat(v, 64); err == nil {
				own = wire.Known(n, "", "/"+file)
				break
			}
		}
	}
	m, err := pairs(root, "proc/vmstat")
	machine = wire.Unknown("", "/proc/vmstat", "no line oom_kill")
	if err != nil {
		machine.Why = reason(err)
	} else if n, err := strconv.ParseFloat(m["oom_kill"], 64); err == nil {
		machine = wire.Known(n, "", "/proc/vmstat")
	}
	return own, machine
}

// pairs reads "key: value" or "key value" lines.
func pairs(root fs.FS, file string) (map[string]string, error) {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		key, val, ok := strings.Cut(sc.Text(), ":")
		if !ok {
			key, val, _ = strings.Cut(sc.Text(), " ")
		}
		m[strings.TrimSpace(key)] = strings.TrimSpace(val)
	}
	return m, sc.Err()
}

// fromKiB makes a reading in bytes of a line in kB (which the kernel means as KiB).
func fromKiB(m map[string]string, err error, file, key string) wire.Reading {
	source := "/" + file + " " + key
	if err != nil {
		return wire.Unknown("bytes", source, reason(err))
	}
	v, ok := m[key]
	if !ok {
		return wire.Unknown("bytes", source, "no such line")
	}
	n, perr := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(v, "kB")), 10, 53)
	if perr != nil {
		return wire.Unknown("bytes", source, fmt.Sprintf("not a number: %q", v))
	}
	return wire.Known(float64(n)*1024, "bytes", source)
}

func number(root fs.FS, file string) (float64, error) {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, err
	}
	return strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
}

// statFields are the fields of a stat file after the command's closing
// parenthesis: f[0] is the state (field 3 of proc(5)).
func statFields(root fs.FS, file string) ([]string, error) {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, fmt.Errorf("%s", reason(err))
	}
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 20 {
		return nil, fmt.Errorf("unexpected form")
	}
	return f, nil
}

// reason drops the path from a file error: the source names it already.
func reason(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
