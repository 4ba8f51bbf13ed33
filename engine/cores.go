package engine

import (
	"encoding/binary"
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// DefaultThreads returns the number of workers used when none is asked for
// (Options.Threads): the physical cores this process may run on, no more than
// its cgroup's CPU quota, and never more than the Go scheduler uses.
//
// Two threads of one core share its load ports and its cache, and the products
// of a decode step keep both busy, so the second thread adds nothing. On
// processors with two kinds of cores only the fast ones are counted when there
// are at least two: the slow ones would end each product late.
func DefaultThreads() int {
	n := runtime.NumCPU()
	if m := systemCores(); m > 0 {
		n = m
	}
	if q := cpuQuota(os.ReadFile); q > 0 && q < n {
		n = q
	}
	return max(1, min(n, runtime.GOMAXPROCS(0)))
}

type readFile func(name string) ([]byte, error)

// physicalCores counts the cores behind the given CPU numbers from sysfs
// topology files; a CPU without them counts as a core.
func physicalCores(read readFile, cpus []int) int {
	cores := func(cpus []int) int {
		seen := map[string]bool{}
		for _, c := range cpus {
			key := "cpu " + strconv.Itoa(c)
			for _, name := range []string{"core_cpus_list", "thread_siblings_list"} { // the second before Linux 5.3
				if b, err := read(cpuFile(c, "topology/"+name)); err == nil {
					key = strings.TrimSpace(string(b))
					break
				}
			}
			seen[key] = true
		}
		return len(seen)
	}
	if n := cores(fastCPUs(read, cpus)); n >= 2 {
		return n
	}
	return cores(cpus)
}

func cpuFile(cpu int, name string) string {
	return "/sys/devices/system/cpu/cpu" + strconv.Itoa(cpu) + "/" + name
}

// slowPart is how fast a core may be, of the fastest, and still count as slow.
// The cores of one kind differ by less than a tenth in what they may boost to;
// small cores of processors with two kinds have 40 to 65 % of the large ones.
const slowPart = 0.7

// fastCPUs leaves out the slow kind of cores, where there are two kinds. Intel's
// drivers name the kinds (cpu_core and cpu_atom);
// arm64 and newer x86 kernels rate each CPU (cpu_capacity, 1024 for the
// fastest); else the highest frequency tells.
func fastCPUs(read readFile, cpus []int) []int {
	if b, err := read("/sys/devices/cpu_core/cpus"); err == nil {
		return intersect(cpus, parseCPUList(string(b)))
	}
	for _, name := range []string{"cpu_capacity", "cpufreq/cpuinfo_max_freq"} {
		rate, most := make([]float64, len(cpus)), 0.0
		for i, c := range cpus {
			if b, err := read(cpuFile(c, name)); err == nil {
				rate[i], _ = strconv.ParseFloat(strings.TrimSpace(string(b)), 64)
			}
			most = max(most, rate[i])
		}
		var fast []int
		for i, c := range cpus {
			if rate[i] == 0 { // not told: nothing can be said of any
				most = 0
			}
			if rate[i] > slowPart*most {
				fast = append(fast, c)
			}
		}
		if most > 0 {
			return fast
		}
	}
	return cpus
}

// cpuQuota returns the CPUs that the cgroup of this process, or one around it,
// may use, rounded up; 0 when there is no limit or it cannot be read.
func cpuQuota(read readFile) int {
	quota := 0
	take := func(used, period string) {
		q, err1 := strconv.ParseInt(used, 10, 64)
		per, err2 := strconv.ParseInt(period, 10, 64)
		if err1 != nil || err2 != nil || q <= 0 || per <= 0 { // "max", or -1 in version 1
			return
		}
		if n := int((q + per - 1) / per); quota == 0 || n < quota {
			quota = n
		}
	}
	text := func(name string) string {
		b, err := read(name)
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(b))
	}
	v2, v1 := "/", "/" // inside a container the files may be at the root
	for line := range strings.Lines(text("/proc/self/cgroup")) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		if f[0] == "0" && f[1] == "" {
			v2 = f[2]
		}
		for name := range strings.SplitSeq(f[1], ",") {
			if name == "cpu" {
				v1 = f[2]
			}
		}
	}
	climb(v2, func(dir string) {
		if f := strings.Fields(text(path.Join("/sys/fs/cgroup", dir, "cpu.max"))); len(f) == 2 {
			take(f[0], f[1])
		}
	})
	climb(v1, func(dir string) {
		for _, base := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"} {
			take(text(path.Join(base, dir, "cpu.cfs_quota_us")), text(path.Join(base, dir, "cpu.cfs_period_us")))
		}
	})
	return quota
}

// climb calls f for a directory and those around it up to the root.
func climb(dir string, f func(dir string)) {
	for dir = path.Clean("/" + dir); ; dir = path.Dir(dir) {
		f(dir)
		if dir == "/" {
			return
		}
	}
}

// parseCPUList reads the kernel's list form: "0-3,8,10-11".
func parseCPUList(s string) []int {
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(s), ",") {
		lo, hi, ranged := strings.Cut(part, "-")
		a, err := strconv.Atoi(lo)
		if err != nil {
			continue
		}
		b := a
		if ranged {
			if b, err = strconv.Atoi(hi); err != nil {
				continue
			}
		}
		for c := a; c <= b && c-a < 1<<16; c++ {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

func intersect(a, b []int) []int {
	in := map[int]bool{}
	for _, x := range b {
		in[x] = true
	}
	var out []int
	for _, x := range a {
		if in[x] {
			out = append(out, x)
		}
	}
	return out
}

// parseWindowsCores counts the cores in the answer of Windows'
// GetLogicalProcessorInformationEx for RelationProcessorCore: records of a
// relationship (0), their length, flags, and a class that is higher for faster
// cores. 0 when it is not such an answer.
func parseWindowsCores(b []byte) int {
	byClass, fastest, all := map[byte]int{}, byte(0), 0
	for len(b) >= 10 {
		size := int(binary.LittleEndian.Uint32(b[4:]))
		if size < 10 || size > len(b) {
			return 0
		}
		if binary.LittleEndian.Uint32(b) == 0 {
			class := b[9]
			byClass[class]++
			fastest = max(fastest, class)
			all++
		}
		b = b[size:]
	}
	if n := byClass[fastest]; n >= 2 {
		return n
	}
	return all
}
