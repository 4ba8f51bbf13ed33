package engine

import (
	"encoding/binary"
	"fmt"
	"os"
	"testing"
)

// coreGroup is cores of one kind, of threads CPUs each, with what sysfs says of
// their capacity and speed (kHz).
type coreGroup struct {
	cores, threads  int
	capacity, speed string
}

// machineOf writes the sysfs of a machine.
func machineOf(groups ...coreGroup) map[string]string {
	files, cpu := map[string]string{}, 0
	for _, g := range groups {
		for range g.cores {
			list := fmt.Sprint(cpu)
			if g.threads > 1 {
				list = fmt.Sprintf("%d-%d", cpu, cpu+g.threads-1)
			}
			for range g.threads {
				files[cpuFile(cpu, "topology/core_cpus_list")] = list + "\n"
				if g.capacity != "" {
					files[cpuFile(cpu, "cpu_capacity")] = g.capacity + "\n"
				}
				if g.speed != "" {
					files[cpuFile(cpu, "cpufreq/cpuinfo_max_freq")] = g.speed + "\n"
				}
				cpu++
			}
		}
	}
	return files
}

func (g coreGroup) with(capacity, speed string) coreGroup {
	g.capacity, g.speed = capacity, speed
	return g
}

func TestPhysicalCores(t *testing.T) {
	two := coreGroup{cores: 8, threads: 2}
	alder := machineOf(two, coreGroup{cores: 8, threads: 1})
	alder["/sys/devices/cpu_core/cpus"], alder["/sys/devices/cpu_atom/cpus"] = "0-15\n", "16-23\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		cpus  string // of the affinity mask
		want  int
	}{
		{"8 cores of 2 threads", machineOf(two), "0-15", 8},
		{"one thread of each of 4 of them", machineOf(two), "0,2,4,6", 4},
		{"both threads of 2 of them", machineOf(two), "0-3", 2},
		{"8 fast and 8 slow ones", alder, "0-23", 8},
		{"their slow ones alone", alder, "16-23", 8},
		{"one fast and 4 slow of them", alder, "0,1,16-19", 5},
		{"one thread of a fast one and 3 slow", alder, "0,16-18", 4},
		{"4 large and 4 small, rated", machineOf(coreGroup{cores: 4, threads: 1}.with("414", ""), coreGroup{cores: 4, threads: 1}.with("1024", "")), "0-7", 4},
		{"1 prime, 3 large, 4 small, rated", machineOf(coreGroup{cores: 4, threads: 1}.with("250", ""), coreGroup{cores: 3, threads: 1}.with("760", ""), coreGroup{cores: 1, threads: 1}.with("1024", "")), "0-7", 4},
		{"1 large and 6 small, rated", machineOf(coreGroup{cores: 6, threads: 1}.with("300", ""), coreGroup{cores: 1, threads: 1}.with("1024", "")), "0-6", 7},
		{"4 of 5.1 GHz and 8 of 3.3", machineOf(coreGroup{cores: 4, threads: 2}.with("", "5100000"), coreGroup{cores: 8, threads: 2}.with("", "3300000")), "0-23", 4},
		{"favoured cores are no other kind", machineOf(coreGroup{cores: 2, threads: 2}.with("", "5700000"), coreGroup{cores: 6, threads: 2}.with("", "5400000")), "0-15", 8},
		{"a speed that one does not tell", machineOf(coreGroup{cores: 2, threads: 1}.with("", "5000000"), coreGroup{cores: 2, threads: 1}), "0-3", 4},
		{"nothing told", nil, "0-5", 6},
		{"nonsense", map[string]string{"/sys/devices/cpu_core/cpus": "a-b,,9999999999999999999\n", cpuFile(0, "cpu_capacity"): "x"}, "0-1", 2},
	} {
		if got := physicalCores(files(c.files), parseCPUList(c.cpus)); got != c.want {
			t.Errorf("%s: %d cores, want %d", c.name, got, c.want)
		}
	}
}

func files(m map[string]string) readFile {
	return func(name string) ([]byte, error) {
		if s, ok := m[name]; ok {
			return []byte(s), nil
		}
		return nil, os.ErrNotExist
	}
}

func TestCPUQuota(t *testing.T) {
	for _, c := range []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"none", nil, 0},
		{"version 2, own", map[string]string{"/proc/self/cgroup": "0::/a\n", "/sys/fs/cgroup/a/cpu.max": "400000 100000\n"}, 4},
		{"version 2, a tighter one around it", map[string]string{"/proc/self/cgroup": "0::/a/b\n", "/sys/fs/cgroup/a/b/cpu.max": "max 100000\n", "/sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 2},
		{"version 2, a container", map[string]string{"/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1},
		{"version 1", map[string]string{"/proc/self/cgroup": "5:memory:/m\n4:cpu,cpuacct:/docker/x\n", "/sys/fs/cgroup/cpu/docker/x/cpu.cfs_quota_us": "300000\n", "/sys/fs/cgroup/cpu/docker/x/cpu.cfs_period_us": "100000\n"}, 3},
		{"version 1 without limit", map[string]string{"/proc/self/cgroup": "4:cpu,cpuacct:/\n", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 0},
		{"version 1 in a container", map[string]string{"/proc/self/cgroup": "4:cpu,cpuacct:/docker/x\n", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "200000\n", "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n"}, 2},
		{"nonsense", map[string]string{"/proc/self/cgroup": "0::../..\n:\n", "/sys/fs/cgroup/cpu.max": "1 0\n"}, 0},
	} {
		if got := cpuQuota(files(c.files)); got != c.want {
			t.Errorf("%s: %d CPUs, want %d", c.name, got, c.want)
		}
	}
}

func TestWindowsCores(t *testing.T) {
	record := func(relation uint32, class byte) []byte {
		b := make([]byte, 48)
		binary.LittleEndian.PutUint32(b, relation)
		binary.LittleEndian.PutUint32(b[4:], 48)
		b[9] = class
		return b
	}
	var hybrid, plain []byte
	for i := range 12 {
		hybrid = append(hybrid, record(0, byte(min(i/4, 1)))...) // 4 slow, 8 fast
		plain = append(plain, record(0, 0)...)
	}
	plain = append(plain, record(1, 9)...) // a NUMA node
	one := append(record(0, 1), record(0, 0)...)
	for i, c := range []struct {
		b    []byte
		want int
	}{{hybrid, 8}, {plain, 12}, {one, 2}, {nil, 0}, {make([]byte, 40), 0}, {hybrid[:100], 2}} {
		if got := parseWindowsCores(c.b[:len(c.b):len(c.b)]); got != c.want {
			t.Errorf("answer %d: %d cores, want %d", i, got, c.want)
		}
	}
	if DefaultThreads() < 1 {
		t.Error("no threads")
	}
}
