package engine

import (
	"os"
	"path"
	"runtime"
	"strconv"
	"strings"
)

// DefaultThreads returns the number of workers used when none is asked for:
// the physical cores this process may run on, no more than its cgroup's CPU
// quota, and never more than the Go scheduler uses.
//
// Two threads of one core share its load ports and its cache, and the products
// of a decode step keep both busy, so the second thread adds nothing. On
// processors with two kinds of cores only the fast ones are counted when there
// are at least two: the slow ones would end each product late.
func DefaultThreads() int {
	n := runtime.NumCPU()
	if cpus := allowedCPUs(); len(cpus) > 0 {
		n = physicalCores(os.ReadFile, cpus)
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
	if b, err := read("/sys/devices/cpu_core/cpus"); err == nil {
		if fast := intersect(cpus, parseCPUList(string(b))); len(fast) >= 2 {
			cpus = fast
		}
	}
	seen := map[string]bool{}
	for _, c := range cpus {
		dir := "/sys/devices/system/cpu/cpu" + strconv.Itoa(c) + "/topology"
		key := "cpu " + strconv.Itoa(c)
		if b, err := read(path.Join(dir, "thread_siblings_list")); err == nil {
			key = strings.TrimSpace(string(b))
		}
		seen[key] = true
	}
	return len(seen)
}

// cpuQuota returns the CPUs that the cgroup (version 2) of this process may
// use, rounded up; 0 when there is no limit or it cannot be read.
func cpuQuota(read readFile) int {
	dir := "/"
	if b, err := read("/proc/self/cgroup"); err == nil {
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
				dir = rest
			}
		}
	}
	quota := 0
	for {
		if b, err := read(path.Join("/sys/fs/cgroup", dir, "cpu.max")); err == nil {
			f := strings.Fields(string(b))
			if len(f) == 2 && f[0] != "max" {
				q, err1 := strconv.ParseInt(f[0], 10, 64)
				per, err2 := strconv.ParseInt(f[1], 10, 64)
				if err1 == nil && err2 == nil && q > 0 && per > 0 {
					n := int((q + per - 1) / per)
					if quota == 0 || n < quota {
						quota = n
					}
				}
			}
		}
		if dir == "/" || dir == "." || dir == "" {
			return quota
		}
		dir = path.Dir(dir)
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
