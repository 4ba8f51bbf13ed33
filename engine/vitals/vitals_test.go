package vitals

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }

const stat = "42 (a (odd) name) S 1 42 42 0 -1 4194560 100 0 7 0 150 50 0 0 20 0 8 0 100 0 0 18446744073709551615\n"

func TestMemory(t *testing.T) {
	root := fstest.MapFS{
		"proc/meminfo":                         file("MemTotal:       1000 kB\nMemFree: 100 kB\nMemAvailable:    400 kB\nSwapTotal: 50 kB\nSwapFree: 20 kB\n"),
		"proc/pressure/memory":                 file("some avg10=1.50 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.25 avg60=0.00 avg300=0.00 total=0\n"),
		"proc/self/cgroup":                     file("0::/user/app\n"),
		"sys/fs/cgroup/cgroup.controllers":     file("memory"),
		"sys/fs/cgroup/memory.events":          file("oom_kill 9\n"),
		"sys/fs/cgroup/user/memory.max":        file("2048\n"),
		"sys/fs/cgroup/user/memory.current":    file("512\n"),
		"sys/fs/cgroup/user/app/memory.max":    file("max\n"),
		"sys/fs/cgroup/user/app/memory.events": file("low 0\noom 1\noom_kill 3\n"),
		"proc/vmstat":                          file("pgfault 1\noom_kill 12\n"),
	}
	m := Memory(root)
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"total", m.Total.Value, 1000 << 10},
		{"available", m.Available.Value, 400 << 10},
		{"swap", m.SwapUsed.Value, 30 << 10},
		{"some", m.SomeAvg10.Value, 1.5},
		{"full", m.FullAvg10.Value, 0.25},
		{"limit of the parent group", m.Limit.Value, 2048},
		{"used", m.Used.Value, 512},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
	own, machine := OOMKills(root)
	if own.Value != 3 || machine.Value != 12 {
		t.Errorf("kills: got %v and %v", own, machine)
	}
}

// T92: a kernel without MemAvailable; and a machine that tells nothing.
func TestMemoryUnknown(t *testing.T) {
	m := Memory(fstest.MapFS{"proc/meminfo": file("MemTotal: 1000 kB\nMemFree: 100 kB\nCached: 300 kB\nShmem: 50 kB\n")})
	if m.Available.Value != 250<<10 || !strings.Contains(m.Available.Source, "no MemAvailable") {
		t.Errorf("estimate: got %+v", m.Available)
	}
	m = Memory(fstest.MapFS{})
	for name, r := range map[string]interface{ MarshalJSON() ([]byte, error) }{"total": m.Total, "available": m.Available, "some": m.SomeAvg10, "limit": m.Limit, "swap": m.SwapUsed} {
		b, err := r.MarshalJSON()
		if err != nil || !strings.Contains(string(b), `"value":null`) || !strings.Contains(string(b), `"why":"`) {
			t.Errorf("%s: got %s, %v", name, b, err)
		}
	}
}

func TestGroupV1(t *testing.T) {
	root := fstest.MapFS{
		"proc/self/cgroup":                                  file("9:name=systemd:/\n4:cpu,memory:/jobs/7\n0::/\n"),
		"sys/fs/cgroup/memory/memory.limit_in_bytes":        file("9223372036854771712\n"),
		"sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes": file("4096\n"),
		"sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes": file("100\n"),
		"sys/fs/cgroup/memory/jobs/7/memory.stat":           file("cache 60\ntotal_cache 60\ntotal_shmem 10\n"),
		"sys/fs/cgroup/memory/jobs/7/memory.oom_control":    file("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
	}
	m := Memory(root)
	if m.Limit.Value != 4096 || m.Used.Value != 100 || m.Cache.Value != 50 {
		t.Errorf("got %+v, %+v, %+v", m.Limit, m.Used, m.Cache)
	}
	if own, _ := OOMKills(root); own.Value != 2 {
		t.Errorf("kills: got %+v", own)
	}
}

func TestProcess(t *testing.T) {
	root := fstest.MapFS{
		"proc/42/status": file("Name:\tx\nVmHWM:\t  9 kB\nVmRSS:\t  8 kB\nRssAnon:\t  5 kB\nRssFile:\t  3 kB\nVmSwap:\t 0 kB\n"),
		"proc/42/stat":   file(stat),
	}
	p := Process(root, 42)
	if p.RSS.Value != 8<<10 || p.Anon.Value != 5<<10 || p.Mapped.Value != 3<<10 || p.Peak.Value != 9<<10 || p.Major.Value != 7 || !p.Swap.Known {
		t.Errorf("got %+v", p)
	}
	if p := Process(root, 43); p.RSS.Known || p.Major.Known {
		t.Errorf("a process that is gone has readings: %+v", p)
	}
}

func TestCPU(t *testing.T) {
	root := fstest.MapFS{
		"proc/stat":      file("cpu  100 0 100 800 0 0 0 0 0 0\n"),
		"proc/self/stat": file(stat),
	}
	c := NewCPU(root, 0, 4)
	now := time.Unix(100, 0)
	if r := c.Read(now); r.Busy.Known || r.Process.Known || r.Busy.Why != measuring {
		t.Errorf("first reading: got %+v", r)
	}
	root["proc/stat"] = file("cpu  150 0 150 900 0 0 0 0 0 0\n")
	root["proc/self/stat"] = file(strings.Replace(stat, " 150 50 ", " 250 50 ", 1))
	r := c.Read(now.Add(2 * time.Second))
	if r.Busy.Value != 50 || r.Process.Value != 50 {
		t.Errorf("got %+v", r)
	}
}
