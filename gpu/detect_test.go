package gpu

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestMain(m *testing.M) {
	if HelperMain(os.Args) { // the test binary is its own sensor helper
		return
	}
	os.Exit(m.Run())
}

func file(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o644} }
func ln(s string) *fstest.MapFile {
	return &fstest.MapFile{Data: []byte(s), Mode: fs.ModeSymlink | 0o777}
}

const (
	up = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
	dn = up + "/0000:02:01.0"
	gp = dn + "/0000:03:00.0"
)

// arc is an A770 behind its own switch, with a symlink for all that is one in
// real sysfs.
func arc(driver string) fstest.MapFS {
	zero := "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
	f := fstest.MapFS{
		"sys/bus/pci/devices/0000:03:00.0":           ln("../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0"),
		"sys/bus/pci/devices/0000:01:00.0":           ln("../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0"),
		"sys/devices/pci0000:00/0000:00:01.0/vendor": file("0x1022\n"), "sys/devices/pci0000:00/0000:00:01.0/class": file("0x060400\n"),
		up + "/vendor": file("0x8086\n"), up + "/class": file("0x060400\n"), up + "/current_link_speed": file("16.0 GT/s PCIe\n"), up + "/current_link_width": file("8\n"), up + "/max_link_speed": file("16.0 GT/s PCIe\n"), up + "/max_link_width": file("16\n"),
		dn + "/vendor": file("0x8086\n"), dn + "/class": file("0x060400\n"),
		gp + "/vendor": file("0x8086\n"), gp + "/device": file("0x56a0\n"), gp + "/class": file("0x030000\n"), gp + "/current_link_speed": file("2.5 GT/s PCIe\n"), gp + "/current_link_width": file("1\n"),
		gp + "/resource":                  file(strings.Repeat(zero, 2) + "0x0000004000000000 0x00000043ffffffff 0x000000000014220c\n" + strings.Repeat(zero, 3)),
		gp + "/drm/card1/dev":             file("226:1\n"),
		gp + "/drm/card1/device":          ln("../../../0000:03:00.0"),
		gp + "/drm/renderD128/dev":        file("226:128\n"),
		"sys/class/drm/card1":             ln("../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0/drm/card1"),
		"sys/class/drm/card1-DP-1/status": file("connected\n"), "sys/class/drm/card1-DP-2/status": file("disconnected\n"),
		"dev/dri/renderD128": file("crw-rw---- 1 root render 226, 128\n"),
		"etc/group":          file("root:x:0:\nrender:x:992:user\n"), "etc/passwd": file("user:x:1000:1000::/home/user:/bin/sh\n"),
		"proc/self/status": file("Name:\toutcrop\nUid:\t1000\t1000\t1000\t1000\nGid:\t1000\t1000\t1000\t1000\nGroups:\t44 992 \nCapEff:\t0000000000000000\n"),
		"proc/meminfo":     file("MemTotal:       32505856 kB\nMemFree:        1000000 kB\nMemAvailable:   20000000 kB\n"),
	}
	if driver != "" {
		f[gp+"/driver"] = ln("../../../../../../bus/pci/drivers/" + driver)
		f["sys/bus/pci/drivers/"+driver+"/bind"] = file("")
	}
	return f
}

func one(t *testing.T, f fs.FS) Card {
	t.Helper()
	m, err := Detect(f)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Cards) != 1 {
		t.Fatalf("%d cards, want 1", len(m.Cards))
	}
	return m.Cards[0]
}

// TestDetectArc reads the same card from a map with links, from a real tree and
// through os.Root.
func TestDetectArc(t *testing.T) {
	f := arc("xe")
	dir := t.TempDir()
	for name, e := range f {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if e.Mode&fs.ModeSymlink != 0 {
			err = os.Symlink(string(e.Data), p)
		} else {
			err = os.WriteFile(p, e.Data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for name, fsys := range map[string]fs.FS{"map": f, "dir": os.DirFS(dir), "root": root.FS()} {
		c := one(t, fsys)
		if c.PCI != "0000:03:00.0" || c.Name != "Arc A770" || c.Arch != Alchemist || c.Driver != "xe" || !c.Discrete {
			t.Errorf("%s: %+v", name, c)
		}
		if c.BAR.Size.Value != 16*gib || !c.BAR.Resizable.Value || c.Memory.Total.Value != 16*gib || c.Memory.Total.Source != nominalSource {
			t.Errorf("%s: BAR %+v, memory %+v", name, c.BAR, c.Memory)
		}
		if c.Link.At != "0000:01:00.0" || c.Link.Speed.Value != 16 || c.Link.Width.Value != 8 {
			t.Errorf("%s: the link must be read at the switch's upstream port: %+v", name, c.Link)
		}
		if !c.Node.Access.Value || c.Node.Group.Value != "render" || c.Node.Path != "/dev/dri/renderD128" {
			t.Errorf("%s: node %+v", name, c.Node)
		}
		if c.DRM != "card1" || strings.Join(c.Displays, " ") != "DP-1" {
			t.Errorf("%s: DRM %s, displays %v", name, c.DRM, c.Displays)
		}
	}
}

// TestCardWithoutBus: some containers show only /sys/class/drm.
func TestCardWithoutBus(t *testing.T) {
	f := arc("xe")
	delete(f, "sys/bus/pci/devices/0000:03:00.0")
	delete(f, "sys/bus/pci/devices/0000:01:00.0")
	if c := one(t, f); c.PCI != "0000:03:00.0" || c.Driver != "xe" {
		t.Errorf("%+v", c)
	}
}

// TestLinkUnknown: a recording without the bridges must not repeat the
// endpoint's 2.5 GT/s x1.
func TestLinkUnknown(t *testing.T) {
	f := fstest.MapFS{}
	for n, e := range arc("xe") {
		if rest, ok := strings.CutPrefix(n, gp+"/"); ok && e.Mode&fs.ModeSymlink == 0 {
			f["sys/bus/pci/devices/0000:03:00.0/"+rest] = e
		}
	}
	if c := one(t, f); c.Link.Speed.Known || c.Link.Speed.Why == "" {
		t.Errorf("%+v", c.Link)
	}
}

func TestPermissions(t *testing.T) {
	groups := map[int64]string{992: "render"}
	for _, k := range []struct {
		line string
		user User
		want bool
	}{
		{"crw-rw---- 1 root render", User{UID: 1000, Groups: []int64{1000, 992}}, true},
		{"crw-rw---- 1 root render", User{UID: 1000, Groups: []int64{1000}}, false},
		{"crw-rw-rw- 1 root root", User{UID: 1000}, true},
		{"crw-r--r-- 1 root root", User{UID: 1000}, false},
		{"crw------- 1 1000 0", User{UID: 1000}, true},
		{"crw------- 1 0 0", User{UID: 0}, true},
		{"crw----rw- 1 0 992", User{UID: 5, Groups: []int64{992}}, false}, // the group's bits count for a member
		{"c---rw---- 1 1000 992", User{UID: 1000, Groups: []int64{992}}, false},
	} {
		p, ok := parsePerm(k.line, groups)
		if !ok || p.may(k.user) != k.want {
			t.Errorf("%q for %+v: %v %v, want %v", k.line, k.user, ok, p.may(k.user), k.want)
		}
	}
	f := arc("xe")
	f["dev/dri/renderD128"] = file("crw-rw----+ 1 root render 226, 128")
	f["proc/self/status"] = file("Uid: 1000 1000 1000 1000\nGroups: 44\n")
	if c := one(t, f); c.Node.Access.Known {
		t.Errorf("an access list decides, and nobody asked it: %+v", c.Node.Access)
	}
	// A real file's owner is read from the system.
	info, err := os.Stat("/dev/null")
	if err == nil {
		if p, ok := statPerm(info); ok && !p.may(User{UID: 12345}) {
			t.Errorf("/dev/null: %+v", p)
		}
	}
}

// TestFreeVRAM is the one function that answers for free memory, as a table.
func TestFreeVRAM(t *testing.T) {
	arc := Card{Vendor: Intel, Driver: "xe", Discrete: true, Memory: Memory{Total: Known(16*gib, "DRM"), Usable: Known(15*gib, "x")}}
	amd := Card{Vendor: AMD, Driver: "amdgpu", Discrete: true, Memory: Memory{Total: Known(16*gib, "sysfs"), Usable: Known(16*gib, "x")}}
	blank := Card{Vendor: NVIDIA, Driver: "nvidia", Discrete: true, Memory: Memory{Total: Unknown[int64]("NVML", "not loaded"), Usable: Unknown[int64]("NVML", "not loaded")}}
	plain := Host{}
	root := Host{Perfmon: Known(true, "x")}
	own := []ProcVRAM{{PID: 7, VRAM: 3 * gib, Claim: 4 * gib}}
	for _, k := range []struct {
		name             string
		c                Card
		h                Host
		a                []VRAMAnswer
		p                []ProcVRAM
		used, free, plan int64 // -1: unknown
	}{
		{"xe tells nothing used without the right", arc, plain, []VRAMAnswer{{"DRM", 16 * gib, 0, true, true}}, nil, -1, -1, 15*gib - 15*gib/10},
		{"the same with our own claims", arc, plain, []VRAMAnswer{{"DRM", 16 * gib, 0, true, true}}, own, -1, -1, 15*gib - 15*gib/10 - 4*gib},
		{"with the right 0 is an answer", arc, root, []VRAMAnswer{{"DRM", 16 * gib, 0, true, true}}, nil, 0, 16 * gib, 15 * gib},
		{"a used figure is believed", arc, plain, []VRAMAnswer{{"DRM", 16 * gib, 2 * gib, true, true}}, nil, 2 * gib, 14 * gib, 13 * gib},
		{"Sysman first", arc, plain, []VRAMAnswer{{"Sysman", 16 * gib, 5 * gib, true, false}, {"DRM", 16 * gib, 2 * gib, true, true}}, nil, 5 * gib, 11 * gib, 10 * gib},
		{"a blind Sysman gives way to DRM", arc, plain, []VRAMAnswer{{"Sysman", 16 * gib, 0, true, true}, {"DRM", 16 * gib, 2 * gib, true, true}}, nil, 2 * gib, 14 * gib, 13 * gib},
		{"nobody answers", arc, plain, nil, nil, -1, -1, 15*gib - 15*gib/10},
		{"processes that claim all leave a real 0", arc, plain, nil, []ProcVRAM{{Claim: 20 * gib}}, -1, -1, 0},
		{"amdgpu says 0 and means it", amd, plain, []VRAMAnswer{{"sysfs", 16 * gib, 0, true, false}}, nil, 0, 16 * gib, 16 * gib},
		{"used above the total is cut", amd, plain, []VRAMAnswer{{"PDH", 16 * gib, 20 * gib, true, false}}, nil, 16 * gib, 0, 0},
		{"negative is cut", amd, plain, []VRAMAnswer{{"PDH", 16 * gib, -5, true, false}}, nil, 0, 16 * gib, 16 * gib},
		{"nothing at all", blank, plain, nil, nil, -1, -1, -1},
		{"total from the driver call", blank, plain, []VRAMAnswer{{"NVML", 8 * gib, gib, true, false}}, nil, gib, 7 * gib, 7 * gib},
	} {
		v := FreeVRAM(k.c, k.h, k.a, k.p)
		for _, x := range []struct {
			what string
			got  Reading[int64]
			want int64
		}{{"used", v.Used, k.used}, {"free", v.Free, k.free}, {"plan", v.Plan, k.plan}} {
			if x.got.Known != (x.want >= 0) || x.got.Known && x.got.Value != x.want {
				t.Errorf("%s: %s = %+v, want %d", k.name, x.what, x.got, x.want)
			}
			if !x.got.Known && (x.got.Why == "" || x.got.Value != 0) {
				t.Errorf("%s: %s is unknown without a reason: %+v", k.name, x.what, x.got)
			}
		}
	}
}

// TestSharedVRAM: integrated graphics plans on RAM; AMD's carve-out is real.
func TestSharedVRAM(t *testing.T) {
	h := Host{Memory: Meminfo{Total: Known(32*gib, "x"), Available: Known(20*gib, "x")}}
	intel := Card{Vendor: Intel, Memory: Memory{Shared: true, Total: Unknown[int64]("x", "shares RAM"), Usable: Known(8*gib, "x")}}
	if v := FreeVRAM(intel, h, []VRAMAnswer{{"Sysman", 20 * gib, 3 * gib, true, true}}, nil); v.Used.Known || v.Plan.Value != 8*gib {
		t.Errorf("%+v", v)
	}
	apu := Card{Vendor: AMD, Memory: Memory{Shared: true, Total: Known(4*gib, "x")}}
	if v := FreeVRAM(apu, h, []VRAMAnswer{{"sysfs", 4 * gib, gib, true, false}}, nil); v.Free.Value != 3*gib || v.Plan.Value != 13*gib {
		t.Errorf("%+v", v)
	}
}

// TestFdinfo: descriptors that share a client are one client (T83), claims count
// what is there now or more, and regions of both drivers are known.
func TestFdinfo(t *testing.T) {
	f := arc("xe")
	xe := "pos:\t0\ndrm-driver:\txe\ndrm-client-id:\t21\ndrm-pdev:\t0000:03:00.0\ndrm-total-vram0:\t6291456 KiB\ndrm-resident-vram0:\t4 GiB\ndrm-total-gtt:\t4096 KiB\ndrm-cycles-ccs:\t%C\ndrm-total-cycles-ccs:\t%T\n"
	first := strings.NewReplacer("4 GiB", "4096 MiB", "%C", "1000", "%T", "100000").Replace(xe)
	f["proc/42/comm"] = file("engine\n")
	f["proc/42/stat"] = file("42 (a) b)) S 7 42 42 0\n")
	f["proc/42/fdinfo/7"], f["proc/42/fdinfo/8"] = file(first), file(first)
	f["proc/42/fdinfo/9"] = file("pos: 0\nflags: 02\n")
	f["proc/77/fdinfo/3"] = file("drm-driver: i915\ndrm-client-id: 21\ndrm-pdev: 0000:00:02.0\ndrm-total-local0: 1 MiB\n")
	if old, _ := ParseFdinfo("drm-driver: i915\ndrm-client-id: 3\ndrm-engine-compute: 9 ns\n"); old.tells() {
		t.Error("a kernel that does not count memory tells of it")
	}
	m, err := Detect(f)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSampler(f, m, false)
	r := s.Sample(time.Unix(100, 0))[0]
	if len(r.VRAM.Procs) != 1 || r.VRAM.Procs[0].VRAM != 4*gib || r.VRAM.Procs[0].Claim != 6*gib || r.VRAM.Procs[0].Name != "engine" || r.GTT.Value != 4<<20 {
		t.Errorf("%+v, GTT %+v", r.VRAM.Procs, r.GTT)
	}
	if own := r.VRAM.Of(42); own.Value != 4*gib || !r.VRAM.Listed.Known || r.VRAM.Of(7) != own {
		t.Errorf("own %+v, listed %+v", own, r.VRAM.Listed)
	}
	if r.Busy.Known {
		t.Errorf("busy is a difference, and this was the first reading: %+v", r.Busy)
	}
	f["proc/42/fdinfo/7"] = file(strings.NewReplacer("4 GiB", "4096 MiB", "4096 KiB", "1052672 KiB", "%C", "51000", "%T", "200000").Replace(xe))
	r = s.Sample(time.Unix(101, 0))[0]
	if !r.Busy.Known || r.Busy.Value != 50 {
		t.Errorf("busy %+v, want 50", r.Busy)
	}
	if r.GTTGrowth.Value != gib {
		t.Errorf("GTT grew by %+v, want 1 GiB", r.GTTGrowth)
	}
}

// TestEnergy: power on xe is a difference of energy; a counter that went back
// gives no answer.
func TestEnergy(t *testing.T) {
	f := arc("xe")
	hw := gp + "/hwmon/hwmon3/"
	f[hw+"name"], f[hw+"temp2_input"], f[hw+"temp3_input"], f[hw+"fan1_input"] = file("xe\n"), file("52000\n"), file("58000\n"), file("900\n")
	f[hw+"energy1_input"] = file("1000000\n")
	f[gp+"/tile0/gt0/freq0/act_freq"] = file("2400\n")
	f[gp+"/tile0/gt0/freq0/throttle/status"], f[gp+"/tile0/gt0/freq0/throttle/reason_thermal"], f[gp+"/tile0/gt0/freq0/throttle/reason_pl1"] = file("1\n"), file("1\n"), file("0\n")
	m, _ := Detect(f)
	s := NewSampler(f, m, false)
	r := s.Sample(time.Unix(1, 0))[0]
	if r.Power.Known || r.Temp.Value != 52 || r.TempVRAM.Value != 58 || r.Fan.Value != 900 || r.Clock.Value != 2400 || r.Throttle.Value != "thermal" {
		t.Errorf("%+v", r)
	}
	f[hw+"energy1_input"] = file("96000000\n")
	if r = s.Sample(time.Unix(2, 0))[0]; r.Power.Value != 95 {
		t.Errorf("power %+v, want 95 W", r.Power)
	}
	f[hw+"energy1_input"] = file("5\n")
	if r = s.Sample(time.Unix(3, 0))[0]; r.Power.Known {
		t.Errorf("a counter that started again gave %+v", r.Power)
	}
	// A sleeping card is left alone.
	f[gp+"/power/runtime_status"] = file("suspended\n")
	if r = s.Sample(time.Unix(4, 0))[0]; r.Temp.Known || !strings.Contains(r.Temp.Why, "asleep") || !r.VRAM.Plan.Known {
		t.Errorf("%+v", r)
	}
}

// TestUnknownJSON: an unknown value is null, never 0.
func TestUnknownJSON(t *testing.T) {
	b, err := json.Marshal(Unknown[int64]("NVML", "not loaded"))
	if err != nil || string(b) != `{"value":null,"known":false,"source":"NVML","why":"not loaded"}` {
		t.Errorf("%s %v", b, err)
	}
	var r Reading[int64]
	if err := json.Unmarshal(b, &r); err != nil || r.Known {
		t.Errorf("%+v %v", r, err)
	}
	b, _ = json.Marshal(Known(int64(0), "sysfs"))
	if string(b) != `{"value":0,"known":true,"source":"sysfs"}` {
		t.Errorf("%s", b)
	}
	if got := First(Unknown[int]("a", "no a"), Unknown[int]("b", "no b")); got.Source != "a; b" || got.Why != "no a; no b" {
		t.Errorf("%+v", got)
	}
}

func TestVersions(t *testing.T) {
	for in, want := range map[string]string{"1:26.09.37435.1-1~24.04~ppa1": "26.09.37435.1", "26.31.39395.13-1": "26.31.39395.13", "2.28.4+20760": "2.28.4", " 580.95.05 ": "580.95.05", "build 39395": "build 39395"} {
		if got := CleanVersion(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]int{"26.09.37435.1": 37435, "25.44.36015.5-1": 36015, "1.14.37435": 37435, "build 39395": 39395, "": 0, "1.3": 0, "x.y.z": 0, "23.43": 0} {
		if got := NEOBuild(in); got != want {
			t.Errorf("%q: %d, want %d", in, got, want)
		}
	}
	for _, k := range []struct {
		a, b string
		want int
	}{{"6.9", "6.11", -1}, {"6.11", "6.11.0", 0}, {"7.0", "6.19", 1}, {"6.x", "6.1", 0}} {
		if got := CompareVersions(k.a, k.b); got != k.want {
			t.Errorf("%s %s: %d", k.a, k.b, got)
		}
	}
}

// TestIdentify walks every id: no two tables claim the same, and every listed
// generation has capabilities.
func TestIdentify(t *testing.T) {
	for id := range intelChips {
		for _, r := range intelRanges {
			if id >= r.lo && id <= r.hi && intelChips[id].arch != r.arch {
				t.Errorf("%04x is %s and in the range of %s", id, intelChips[id].arch, r.arch)
			}
		}
	}
	for _, v := range []uint16{Intel, AMD, NVIDIA, Virtio, 0xffff} {
		for d := 0; d <= 0xffff; d++ {
			name, arch, chip, _ := Identify(v, uint16(d))
			if name == "" {
				t.Fatalf("%04x:%04x has no name", v, d)
			}
			CapsOf(arch, chip)
		}
	}
	for _, k := range []struct {
		v, d uint16
		arch Arch
		fp64 bool
		mtx  bool
		cap4 bool
	}{
		{Intel, 0x56a0, Alchemist, false, true, true}, {Intel, 0xe223, Battlemage, true, true, false}, {Intel, 0x7d55, MeteorLake, true, false, true},
		{Intel, 0x7d51, ArrowLakeH, true, true, true}, {Intel, 0x4680, XeLP, false, false, true}, {Intel, 0x64a0, LunarLake, true, true, false},
		{Intel, 0x0bda, PonteVecc, true, true, false}, {NVIDIA, 0x1b38, Pascal, true, false, false}, {AMD, 0x744c, RDNA3, true, true, false},
	} {
		_, arch, chip, _ := Identify(k.v, k.d)
		c := CapsOf(arch, chip)
		if arch != k.arch || c.FP64 != k.fp64 || c.Matrix != k.mtx || (c.AllocMax == alloc4G) != k.cap4 || arch.Capped() != k.cap4 {
			t.Errorf("%04x:%04x: %s %+v", k.v, k.d, arch, c)
		}
	}
}

func TestHost(t *testing.T) {
	// T92: a kernel without MemAvailable.
	m := ParseMeminfo("MemTotal: 1000 kB\nMemFree: 100 kB\nCached: 400 kB\n")
	if m.Available.Value != 300<<10 || !strings.Contains(m.Available.Source, "estimated") {
		t.Errorf("%+v", m.Available)
	}
	// T89: a limit of any ancestor counts, and T91: cache is not use.
	f := fstest.MapFS{
		"proc/meminfo": file("MemTotal: 33554432 kB\nMemAvailable: 30000000 kB\n"), "proc/self/cgroup": file("0::/a.slice/b.scope\n"),
		"sys/fs/cgroup/cgroup.controllers": file("memory"), "sys/fs/cgroup/a.slice/memory.max": file("8589934592\n"), "sys/fs/cgroup/a.slice/b.scope/memory.max": file("max\n"),
		"sys/fs/cgroup/a.slice/b.scope/memory.current": file("8000000000\n"), "sys/fs/cgroup/a.slice/b.scope/memory.stat": file("anon 1000000000\nfile 7000000000\n"),
	}
	d, err := Detect(f)
	if err != nil {
		t.Fatal(err)
	}
	if d.Host.RAM().Value != 8<<30 || d.Host.Available().Value != 8<<30-1000000000 {
		t.Errorf("RAM %+v, available %+v", d.Host.RAM(), d.Host.Available())
	}
	p, ok := ParsePressure("some avg10=1.50 avg60=0.20 avg300=0.00 total=12345\nfull avg10=0.75 avg60=0.10 avg300=0.00 total=999\n")
	if !ok || p != (Pressure{1.5, 0.2, 0.75, 0.1, 12345, 999}) {
		t.Errorf("%+v", p)
	}
	if v := ParseVMStat("pgmajfault 5\npswpin 1\npswpout 2\nworkingset_refault_file 3\noom_kill 4\nother x\n"); v != (VMStat{5, 1, 2, 3, 4}) {
		t.Errorf("%+v", v)
	}
	f["proc/9/stat"] = file("9 (a (b) c) S 1 9 9 0 -1 4194304 100 0 77 0 5 5")
	if r := ReadMajorFaults(f, "9"); r.Value != 77 {
		t.Errorf("%+v", r)
	}
	// Nothing private is carried: only variables that drivers read, no secrets.
	e := FilterEnv([]string{"HOME=/home/x", "SSH_AUTH_SOCK=/x", "ZE_AFFINITY_MASK=0", "OUTCROP_API_KEY=abc", "HIP_X=a=b"})
	if len(e) != 3 || e[1].Value != "(hidden)" || e[2].Value != "a=b" {
		t.Errorf("%+v", e)
	}
}

// TestHere reads the machine the test runs on: whatever it is, no error.
func TestHere(t *testing.T) {
	m, fsys, live, err := Open("")
	if err != nil || !live {
		t.Fatal(err)
	}
	s := NewSampler(fsys, m, live)
	defer s.Close()
	s.Sample(time.Now())
	b, err := json.Marshal(struct {
		M Machine
		R []CardReadings
	}{m, s.Sample(time.Now())})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes of facts, %d cards, RAM %s", len(b), len(m.Cards), m.Host.RAM())
}

// TestMachineFileRefuses: a machine file is foreign input that is written to
// disk.
func TestMachineFileRefuses(t *testing.T) {
	for _, bad := range []string{
		"", "root:x:0:0\n", "-- ../x --\n", "-- /etc/passwd --\n", "-- a/../../x --\n", "-- a --\n-- a --\n", "-- a --\n-- a/b --\n", "-- a/ --\n../../x 1\n", "-- a//b --\n", "-- ../x -> y --\n",
	} {
		if _, err := ParseMachineFile([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	// A link out of the folder is written as a link, and nothing through it.
	m, err := ParseMachineFile([]byte("-- sys/a -> ../../../../../../tmp --\n-- sys/b/ --\nc one\\ntwo\nd -> c\n"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := m.Unpack(dir); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "sys/b/d")); err != nil || string(b) != "one\ntwo\n" {
		t.Errorf("%q %v", b, err)
	}
	back, err := ParseMachineFile(m.Format())
	if err != nil || len(back.Files) != len(m.Files) {
		t.Errorf("%+v %v", back, err)
	}
}
