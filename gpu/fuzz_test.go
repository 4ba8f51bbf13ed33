package gpu

import (
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"
)

// FuzzParsers feeds every text parser of sys, proc and driver answers: none may
// panic, and what they give must be in range.
func FuzzParsers(f *testing.F) {
	for _, s := range []string{
		"MemTotal: 1 kB\nMemAvailable: 99999999999999999999 kB\n", "some avg10=NaN avg60=-1 total=1e300\n", "pgmajfault 5\n", "0::/../../x\n",
		"drm-driver: xe\ndrm-pdev: 0000:03:00.0\ndrm-client-id: -1\ndrm-total-vram0: 99999999999999 MiB\ndrm-engine-: x ns\n",
		"0x0000004000000000 0x00000043ffffffff 0x000000000014220c\n", "0xffffffffffffffff 0x0 0x200\n", "16.0 GT/s PCIe", "crw-rw---- 1 root render", "name = x # y\n= \n",
		"NVRM version: Kernel Module  1.2", "9 (a)) S 1", "Max locked memory unlimited unlimited bytes", `{"adapters":[{"vendor":32902}],"counters":[{"path":"\\GPU Engine(pid_1_luid_","value":1e999}]}`,
		"processor : 0\nflags : hypervisor", "/dev/sda1 /a\\040b\\0 ext4 rw", "-- a -> b --\n-- c/ --\nx y\n", "Uid: 1 2\nCapEff: zz\n", "gfx_target_version -5\nlocation_id 99999999999\n", "cgroup",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m := ParseMeminfo(s)
		if m.Total.Known && (m.Total.Value < 0 || m.Total.Value > 1<<62) {
			t.Errorf("MemTotal %d", m.Total.Value)
		}
		p, _ := ParsePressure(s)
		if p.SomeAvg10 < 0 || math.IsNaN(p.SomeAvg10) || p.SomeTotal < 0 {
			t.Errorf("%+v", p)
		}
		ParseVMStat(s)
		if c, ok := ParseFdinfo(s); ok {
			if r, cl := c.vram(); r < 0 || cl < r {
				t.Errorf("resident %d, claim %d", r, cl)
			}
		}
		for _, r := range parseResources(s) {
			if r.Size < 0 {
				t.Errorf("region of %d bytes", r.Size)
			}
		}
		ParseAnswers(s)
		CleanVersion(s)
		if NEOBuild(s) < 0 {
			t.Error("negative build")
		}
		CompareVersions(s, "1.2")
		nvidiaVersion(s)
		parsePerm(s, map[int64]string{1: "x"})
		busOf(s)
		unescapeMount(s)
		if w, err := ParseWindows([]byte(s)); err == nil {
			DetectWindows(w)
			winCounters(w, "0x0")
		}
		parseXeRegions([]byte(s))
		parseI915Regions([]byte(s))
		if mf, err := ParseMachineFile([]byte(s)); err == nil {
			mf.Format()
		}
	})
}

// FuzzDetect puts one text into every file detection reads of a card and its
// machine: whatever is in them, there is an answer and no panic.
func FuzzDetect(f *testing.F) {
	for _, s := range []string{"", "0x8086\n", "0x56a0", "-1", "99999999999999999999", "16 GT/s", "..", "/", "a\x00b", "0x0000004000000000 0x00000043ffffffff 0x000000000014220c\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fsys := fstest.MapFS{}
		for n, e := range arc("xe") {
			fsys[n] = e
		}
		for _, n := range []string{
			gp + "/resource", gp + "/class", gp + "/uevent", gp + "/boot_vga", gp + "/tile0/physical_vram_size_bytes", gp + "/hwmon/hwmon1/temp2_input", gp + "/hwmon/hwmon1/energy1_input",
			up + "/current_link_speed", up + "/current_link_width", "proc/meminfo", "proc/cpuinfo", "proc/self/status", "proc/self/limits", "proc/self/cgroup", "proc/self/environ", "proc/mounts",
			"proc/swaps", "proc/cmdline", "proc/version", "proc/7/fdinfo/3", "etc/group", "etc/os-release", "etc/OpenCL/vendors/x.icd", "var/lib/dpkg/status", "answers", "dev/dri/renderD128",
			"sys/class/kfd/kfd/topology/nodes/1/properties", "sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory.stat", "proc/driver/nvidia/gpus/0000:03:00.0/information", "proc/driver/nvidia/version",
		} {
			fsys[n] = file(s)
		}
		m, err := Detect(fsys)
		if err != nil {
			t.Fatal(err)
		}
		sm := NewSampler(fsys, m, false)
		for i := range 2 {
			for _, r := range sm.Sample(time.Unix(int64(i), 0)) {
				if r.VRAM.Free.Known && (r.VRAM.Free.Value < 0 || r.VRAM.Total.Known && r.VRAM.Free.Value > r.VRAM.Total.Value) {
					t.Errorf("free %d of %s", r.VRAM.Free.Value, r.VRAM.Total)
				}
				if r.Power.Known && r.Power.Value < 0 {
					t.Errorf("power %v", r.Power)
				}
			}
		}
		if _, _, err := Record(fsys, nil); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzMachineFile unpacks foreign machine files: nothing may land outside.
func FuzzMachineFile(f *testing.F) {
	f.Add([]byte("-- sys/bus/pci/devices/0000:03:00.0/ --\nvendor 0x8086\nclass 0x030000\ndrm -> ../../x\n-- proc/meminfo --\nMemTotal: 1 kB\n"))
	f.Add([]byte("-- a -> ../../x --\n-- b/ --\nc -> /etc/passwd\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMachineFile(b)
		if err != nil || len(m.Files) > 200 {
			return
		}
		dir := t.TempDir()
		in := filepath.Join(dir, "in")
		if err := os.Mkdir(in, 0o755); err != nil {
			t.Fatal(err)
		}
		if m.Unpack(in) == nil {
			Detect(os.DirFS(in))
		}
		es, err := os.ReadDir(dir)
		if err != nil || len(es) != 1 {
			t.Errorf("something was written outside: %v", es)
		}
	})
}
