package gpu

import (
	"fmt"
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
	g.Left = leastLeft(dir, base, func(d string) (max, used, cache Reading[int64]) {
		return number(root, d+"/memory.max"), number(root, d+"/memory.current"), groupCache(root, d)
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

// readCPU reads the processor's name and counts.
func readCPU(root fs.FS) CPU {
	var c CPU
	cores := map[string]bool{}
	phys := "0"
	for line := range strings.Lines(text(root, "proc/cpuinfo")) {
		k, v, _ := strings.Cut(line, ":")
		v = strings.TrimSpace(v)
		switch strings.TrimSpace(k) {
		case "processor":
			c.Threads++
		case "model name":
			if c.Name == "" {
				c.Name = v
			}
		case "physical id":
			phys = v
		case "core id":
			cores[phys+"/"+v] = true
		}
	}
	c.Cores = len(cores)
	if c.Cores == 0 {
		c.Cores = c.Threads
	}
	return c
}

// readDistro reads os-release.
func readDistro(root fs.FS) Distro {
	s := text(root, "etc/os-release")
	if s == "" {
		s = text(root, "usr/lib/os-release")
	}
	var d Distro
	for line := range strings.Lines(s) {
		k, v, ok := strings.Cut(strings.TrimSpace(line), "=")
		if !ok {
			continue
		}
		v = strings.Trim(v, `"'`)
		switch k {
		case "ID":
			d.ID = v
		case "ID_LIKE":
			d.Like = strings.Fields(v)
		case "VERSION_ID":
			d.Version = v
		case "PRETTY_NAME":
			d.Name = v
		}
	}
	return d
}

// readGroups reads /etc/group: names by number, and the numbers that list user.
func readGroups(root fs.FS, user string) (byID map[int64]string, listed []int64) {
	byID = map[int64]string{}
	for line := range strings.Lines(text(root, "etc/group")) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) < 4 {
			continue
		}
		g, err := strconv.ParseInt(f[2], 10, 64)
		if err != nil {
			continue
		}
		byID[g] = f[0]
		for _, u := range strings.Split(f[3], ",") {
			if user != "" && u == user {
				listed = append(listed, g)
			}
		}
	}
	return byID, listed
}

// readUser tells who runs this process and its groups, from /proc/self/status.
func readUser(root fs.FS) (u User, login string) {
	u.UID = -1
	s := text(root, "proc/self/status")
	if v, ok := keyed(s, "Uid"); ok {
		if f := strings.Fields(v); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				u.UID = n
			}
		}
	}
	if v, ok := keyed(s, "Gid"); ok {
		if f := strings.Fields(v); len(f) >= 2 {
			if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
				u.Groups = append(u.Groups, n)
			}
		}
	}
	if v, ok := keyed(s, "Groups"); ok {
		for _, g := range strings.Fields(v) {
			if n, err := strconv.ParseInt(g, 10, 64); err == nil {
				u.Groups = append(u.Groups, n)
			}
		}
	}
	for line := range strings.Lines(text(root, "etc/passwd")) {
		f := strings.Split(line, ":")
		if len(f) > 3 && f[2] == fmt.Sprint(u.UID) {
			login = f[0]
		}
	}
	return u, login
}

// Capabilities of /proc/self/status that open Intel's memory accounting.
const (
	capSysAdmin = 21
	capPerfmon  = 38
)

// readPerfmon says whether the process may see what other processes use of an
// Intel card.
func readPerfmon(root fs.FS) Reading[bool] {
	const src = "/proc/self/status"
	v, ok := keyed(text(root, "proc/self/status"), "CapEff")
	if !ok {
		return Unknown[bool](src, "no CapEff")
	}
	c, err := strconv.ParseUint(v, 16, 64)
	if err != nil {
		return Unknown[bool](src, clip(v))
	}
	return Known(c&(1<<capSysAdmin|1<<capPerfmon) != 0, src)
}

// readMemlock reads the soft limit on locked memory.
func readMemlock(root fs.FS) Reading[int64] {
	const src = "/proc/self/limits"
	s, err := read(root, "proc/self/limits")
	if err != nil {
		return Unknown[int64](src, reason(err))
	}
	for line := range strings.Lines(s) {
		rest, ok := strings.CutPrefix(line, "Max locked memory")
		if !ok {
			continue
		}
		f := strings.Fields(rest)
		if len(f) > 0 && f[0] == "unlimited" {
			return Known(int64(-1), src)
		}
		if len(f) > 0 {
			if n, err := strconv.ParseInt(f[0], 10, 64); err == nil && n >= 0 {
				return Known(n, src)
			}
		}
	}
	return Unknown[int64](src, "no line for locked memory")
}

// argPrefixes are the kernel arguments that concern cards and memory. The rest
// of the command line (disk ids, host names) is nobody's business.
var argPrefixes = []string{
	"xe.", "i915.", "amdgpu.", "nvidia", "nouveau.", "radeon.", "pci=", "pcie_", "iommu", "intel_iommu", "amd_iommu",
	"psi=", "transparent_hugepage", "hugepages", "default_hugepagesz", "modprobe.blacklist", "module_blacklist",
	"nomodeset", "mem=", "zswap.", "cgroup_", "systemd.unified_cgroup_hierarchy", "vfio-pci.", "rd.driver.blacklist",
}

func readArgs(root fs.FS) []string {
	var out []string
	for _, a := range strings.Fields(text(root, "proc/cmdline")) {
		for _, p := range argPrefixes {
			if strings.HasPrefix(a, p) {
				out = append(out, a)
				break
			}
		}
	}
	return out
}

// envPrefixes are the variables a driver, a loader or an engine reads.
var envPrefixes = []string{
	"ONEAPI_", "ZE_", "ZES_", "ZEX_", "ZEL_", "NEO", "UR_", "SYCL_", "IGC_", "OCL_ICD", "OverrideDefaultFP64", "AllowUnrestricted",
	"Enable", "SetCommandStream", "ProductFamily", "HardwareInfo", "ForceDeviceId", "FilterBdf", "FilterDeviceId",
	"CUDA_VISIBLE", "CUDA_DEVICE", "CUDA_MODULE", "CUDA_CACHE", "CUDA_LAUNCH", "NVIDIA_VISIBLE", "HIP_", "ROCR_", "HSA_", "GPU_", "AMD_", "RUSTICL_", "VK_", "MESA_", "GGML_", "LLAMA_", "STRATA_", "OUTCROP_", "OLLAMA_",
	"RADV_", "POCL_", "MALLOC_ARENA_MAX", "PYTORCH_", "TORCH_", "CHIP_", "LIBOMPTARGET_", "BCC_", "IPEX_", "DirectSubmission", "ClDevice", "PrintDebug", "PrintXe",
}

// FilterEnv keeps the variables of environ ("NAME=value") that a driver, a
// loader or an engine reads, so that nothing private is carried about. Values of
// names that look like a key or a token are replaced.
func FilterEnv(environ []string) []EnvVar {
	var out []EnvVar
	for _, kv := range environ {
		n, v, ok := strings.Cut(kv, "=")
		if !ok {
			continue
		}
		for _, p := range envPrefixes {
			if strings.HasPrefix(n, p) {
				up := strings.ToUpper(n)
				if strings.Contains(up, "TOKEN") || strings.Contains(up, "SECRET") || strings.Contains(up, "PASSWORD") || strings.HasSuffix(up, "_KEY") {
					v = "(hidden)"
				}
				out = append(out, EnvVar{n, v})
				break
			}
		}
	}
	return out
}

func readEnv(root fs.FS) []EnvVar {
	s, err := read(root, "proc/self/environ")
	if err != nil || s == "" {
		return nil
	}
	sep := "\x00"
	if !strings.Contains(s, sep) {
		sep = "\n" // recordings are text
	}
	return FilterEnv(strings.Split(strings.TrimRight(s, "\x00\n"), sep))
}

// readDisks lists mounted file systems on block devices, with whether the disk
// turns. Free space comes from the answers: files do not tell it.
func readDisks(root fs.FS, a Answers) []Disk {
	var out []Disk
	seen := map[string]bool{}
	for line := range strings.Lines(text(root, "proc/mounts")) {
		f := strings.Fields(line)
		if len(f) < 3 || !strings.HasPrefix(f[0], "/dev/") || seen[f[0]] || strings.HasPrefix(f[0], "/dev/loop") {
			continue
		}
		seen[f[0]] = true
		mount := unescapeMount(f[1])
		name := strings.TrimPrefix(f[0], "/dev/")
		if t := link(root, "dev/"+name); t != "" && strings.HasPrefix(t, "dev/") {
			name = strings.TrimPrefix(t, "dev/")
		}
		d := Disk{Name: name, Mount: mount, FS: f[2], Rotational: rotational(root, name)}
		d.Free = a.int("free "+mount, "statfs "+mount)
		d.Size = a.int("size "+mount, "statfs "+mount)
		out = append(out, d)
	}
	return out
}

// unescapeMount undoes the octal escapes of /proc/mounts.
func unescapeMount(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// rotational asks the queue of the disk a partition is on; a device mapper
// target asks what lies below it.
func rotational(root fs.FS, name string) Reading[bool] {
	dir := "sys/class/block/" + name
	for range 4 {
		if sl := names(root, dir+"/slaves"); len(sl) > 0 {
			dir = "sys/class/block/" + sl[0]
			continue
		}
		break
	}
	try := []string{dir + "/queue/rotational"}
	if t := link(root, dir); t != "" {
		try = append(try, path.Dir(t)+"/queue/rotational")
	}
	for _, d := range names(root, "sys/block") {
		if d != "" && strings.HasPrefix(path.Base(dir), d) {
			try = append(try, "sys/block/"+d+"/queue/rotational")
		}
	}
	for _, f := range try {
		if r := number(root, f); r.Known {
			return Known(r.Value == 1, r.Source)
		}
	}
	return Unknown[bool]("/"+try[0], "no such file")
}

// virtualKind tells what the machine runs in.
func virtualKind(root fs.FS) string {
	v := strings.ToLower(text(root, "proc/version"))
	if strings.Contains(v, "microsoft") {
		return "wsl"
	}
	if exists(root, ".flatpak-info") {
		return "flatpak"
	}
	if exists(root, ".dockerenv") || exists(root, "run/.containerenv") {
		return "container"
	}
	for line := range strings.Lines(text(root, "proc/cpuinfo")) {
		if strings.HasPrefix(line, "flags") {
			if strings.Contains(line+" ", " hypervisor ") {
				return "vm"
			}
			break
		}
	}
	return ""
}

// kernelRelease reads the running kernel's release.
func kernelRelease(root fs.FS) string {
	if s := text(root, "proc/sys/kernel/osrelease"); s != "" {
		return s
	}
	if f := strings.Fields(text(root, "proc/version")); len(f) > 2 {
		return f[2]
	}
	return ""
}

func readHost(root fs.FS, a Answers) Host {
	h := Host{
		OS: "linux", Kernel: kernelRelease(root), Distro: readDistro(root), Virtual: virtualKind(root), CPU: readCPU(root),
		Memory: ReadMeminfo(root), Cgroup: ReadCgroup(root), Swaps: readSwaps(root), Disks: readDisks(root, a),
		Args: readArgs(root), Memlock: readMemlock(root), Env: readEnv(root), Perfmon: readPerfmon(root),
	}
	h.Helper = Unknown[bool]("file "+HelperName, "not looked for")
	if v, ok := a["perfmon.helper"]; ok {
		h.Helper = Known(v.Value == "yes", v.Source)
	}
	var login string
	h.User, login = readUser(root)
	h.groups, h.User.Listed = readGroups(root, login)
	h.Pressure = ReadPressure(root, "proc/pressure/memory")
	h.CommitLeft = Unknown[int64]("/proc/meminfo", "Linux commits more than it has")
	return h
}
