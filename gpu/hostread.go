package gpu

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

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
