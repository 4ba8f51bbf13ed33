package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// load reads a recorded machine as a file system that a test can change.
func load(t *testing.T, name string) fstest.MapFS {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "recipe", "testdata", "machines", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := gpu.ParseMachineFile(b)
	if err != nil {
		t.Fatal(err)
	}
	return mapFS(f)
}

func mapFS(f *gpu.MachineFile) fstest.MapFS {
	m := fstest.MapFS{}
	for _, r := range f.Files {
		if r.Target != "" {
			m[r.Name] = &fstest.MapFile{Data: []byte(r.Target), Mode: fs.ModeSymlink | 0o777}
		} else {
			m[r.Name] = &fstest.MapFile{Data: []byte(r.Data), Mode: 0o644}
		}
	}
	return m
}

func detect(t *testing.T, f fs.FS) gpu.Machine {
	t.Helper()
	m, err := gpu.Detect(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func find(m gpu.Machine, o Options, code string) *Condition {
	for _, c := range Check(m, o) {
		if c.Code == code {
			return &c
		}
	}
	return nil
}

func put(f fstest.MapFS, name, data string) {
	f[name] = &fstest.MapFile{Data: []byte(data), Mode: 0o644}
}

// sub replaces text in a file, which must be there.
func sub(t *testing.T, f fstest.MapFS, name, old, with string) {
	t.Helper()
	e := f[name]
	if e == nil || !strings.Contains(string(e.Data), old) {
		t.Fatalf("%s has no %q", name, old)
	}
	put(f, name, strings.ReplaceAll(string(e.Data), old, with))
}

// addEnv puts a recipe into the recorded environment, as "outcrop run" would.
func addEnv(t *testing.T, f fstest.MapFS, target string) {
	t.Helper()
	r, err := recipe.For(detect(t, f), target, recipe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	if e := f["proc/self/environ"]; e != nil {
		env = strings.Split(strings.TrimSpace(string(e.Data)), "\n")
	}
	put(f, "proc/self/environ", strings.Join(r.Apply(env), "\n")+"\n")
}

// bind gives a card a kernel driver and the device files that come with it.
func bind(t *testing.T, f fstest.MapFS, dir, driver string) {
	t.Helper()
	u := dir + "/uevent"
	e := f[u]
	if e == nil {
		t.Fatalf("no %s", u)
	}
	out := []string{"DRIVER=" + driver}
	for line := range strings.Lines(string(e.Data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "DRIVER=") {
			out = append(out, line)
		}
	}
	put(f, u, strings.Join(out, "\n")+"\n")
	put(f, dir+"/drm/card7/dev", "226:7")
	put(f, dir+"/drm/renderD140/dev", "226:140")
	put(f, "dev/dri/renderD140", "crw-rw-rw- 1 root render 226, 140")
}

const arc3 = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:03:00.0"

// steps says, for every condition, a recorded machine that has it and what its
// next step does to that machine. After the step the condition must be gone:
// advice that changes nothing is worse than none.
var steps = map[string][]struct {
	name, machine string
	o             Options
	step          func(*testing.T, fstest.MapFS, *Options)
}{
	"no-card": {
		{name: "hand the device in", machine: "ollama-15474-cgroup", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			put(f, "sys/bus/pci/devices/0000:03:00.0/vendor", "0x8086")
			put(f, "sys/bus/pci/devices/0000:03:00.0/device", "0x56a0")
			put(f, "sys/bus/pci/devices/0000:03:00.0/class", "0x030000")
		}},
	},
	"driver-vfio": {{name: "unbind", machine: "ollama-15956-vfio", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		sub(t, f, "sys/devices/pci0000:00/0000:00:01.1/0000:09:00.0/uevent", "vfio-pci", "nvidia")
	}}},
	"driver-none": {
		{name: "finish force_probe", machine: "a770-half-forced", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "proc/cmdline", "i915.force_probe=!56a0", "i915.force_probe=!56a0 xe.force_probe=56a0")
			bind(t, f, arc3, "xe")
		}},
		{name: "remove nomodeset", machine: "nomodeset", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "proc/cmdline", " nomodeset", "")
			bind(t, f, arc3, "i915")
		}},
		{name: "newer kernel", machine: "b60-old-kernel", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			put(f, "proc/sys/kernel/osrelease", "6.17.0-14-generic")
			bind(t, f, arc3, "xe")
		}},
	},
	"driver-nouveau": {{name: "vendor's driver", machine: "ollama-16235-nouveau", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		sub(t, f, "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/uevent", "nouveau", "nvidia")
	}}},
	"rebar-off": {
		{name: "firmware setup", machine: "neo-872-b580-small-bar", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "sys/devices/pci0000:00/0000:00:01.0/0000:19:00.0/0000:1a:01.0/0000:1b:00.0/resource", "0x000000400fffffff", "0x00000043ffffffff")
		}},
		{name: "on i915 it only warns", machine: "neo-997-small-bar-i915", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, arc3+"/resource", "0x000000400fffffff", "0x00000041ffffffff")
		}},
	},
	"container-no-nodes": {{name: "--device and --group-add", machine: "docker-284-no-node", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "dev/dri/renderD128", "crw-rw---- 1 root 992 226, 128")
		sub(t, f, "proc/self/status", "Groups: ", "Groups: 992 ")
	}}},
	"no-node": {{name: "nvidia-modprobe", machine: "ollama-7049-quadro", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "dev/nvidia0", "crw-rw-rw- 1 root root 195, 0")
	}}},
	"render-group": {
		{name: "usermod and login", machine: "neo-701-a770-ssh", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "proc/self/status", "Groups: ", "Groups: 992")
			put(f, "answers", strings.Replace(string(f["answers"].Data), "permission denied", "yes", 1))
		}},
		{name: "--group-add", machine: "docker-284-group", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "proc/self/status", "Groups: ", "Groups: 993")
		}},
	},
	"kfd-group": {{name: "usermod and login", machine: "ollama-9184-680m", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		sub(t, f, "proc/self/status", "Groups: 44", "Groups: 44 992")
	}}},
	"relogin": {{name: "login", machine: "llm-scaler-370-group", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		sub(t, f, "proc/self/status", "Groups: 44", "Groups: 44 992")
	}}},
	"link-narrow": {{name: "other slot", machine: "strata-a770-slow-link", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0/current_link_width", "16")
	}}},
	"sandbox": {{name: "run outside", machine: "neo-992-b580-flatpak", step: func(t *testing.T, f fstest.MapFS, _ *Options) { delete(f, ".flatpak-info") }}},
	"wsl": {{name: "run on the machine itself", machine: "strata-b580-wsl", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "proc/version", "Linux version 6.12.48 (builder@example) (gcc) #1 SMP")
	}}},

	"opencl-loader": {{name: "install", machine: "no-opencl-loader", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "run/opengl-driver/lib/libOpenCL.so.1", "")
	}}},
	"intel-icd": {{name: "install", machine: "aip-534-b580-no-driver", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "etc/OpenCL/vendors/intel.icd", "/usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so")
		put(f, "usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so", "")
	}}},
	"icd-broken": {
		{name: "remove the entry", machine: "neo-992-icd-gone", step: func(t *testing.T, f fstest.MapFS, _ *Options) { delete(f, "etc/OpenCL/vendors/intel.icd") }},
		{name: "install again", machine: "neo-992-icd-gone", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			put(f, "usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so", "")
		}},
	},
	"ze-loader": {{name: "install", machine: "aip-534-b580-no-driver", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "usr/lib/x86_64-linux-gnu/libze_loader.so.1", "")
	}}},
	"ze-driver": {{name: "install", machine: "neo-992-icd-gone", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1", "")
	}}},
	"neo-old": {
		{name: "update for Battlemage", machine: "llmfit-733-two-b70", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "var/lib/dpkg/status", "23.43.27642.40", "25.40.35563.7")
		}},
		{name: "update for DG1", machine: "neo-899-dg1-xe", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "var/lib/dpkg/status", "26.05.37020.3", "26.18.38308.1")
		}},
	},
	"neo-dg2-xe": {
		{name: "update", machine: "neo-905-a770-xe-pve", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "var/lib/dpkg/status", "26.05.37020.3", "26.35.39758.4")
		}},
		{name: "bind to i915", machine: "neo-905-a770-xe-pve", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "sys/devices/pci0000:00/0000:00:01.0/0000:08:00.0/0000:09:01.0/0000:0a:00.0/uevent", "DRIVER=xe", "DRIVER=i915")
		}},
	},
	"neo-legacy": {{name: "the recipe's mask", machine: "neo-579-haswell", step: func(t *testing.T, f fstest.MapFS, _ *Options) { addEnv(t, f, recipe.Outcrop) }}},
	"neo-igc-pair": {{name: "update both", machine: "neo-963-a770-onednn", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		sub(t, f, "var/lib/dpkg/status", "26.14.37833.4", "26.27.39122.11")
		sub(t, f, "var/lib/dpkg/status", "2.32.7", "2.36.1")
	}}},
	"multi-card-neo": {
		{name: "the recipe's mask", machine: "gsd-12641-two-a770", step: func(t *testing.T, f fstest.MapFS, _ *Options) { addEnv(t, f, recipe.Outcrop) }},
		{name: "the working selector", machine: "gsd-12641-two-a770", step: func(t *testing.T, f fstest.MapFS, _ *Options) { addEnv(t, f, recipe.PyTorchXPU) }},
	},
	"igpu-chosen": {
		{name: "the recipe's mask", machine: "llama-9241-dgpu-igpu", step: func(t *testing.T, f fstest.MapFS, _ *Options) { addEnv(t, f, recipe.Outcrop) }},
		{name: "the recipe's mask, AMD", machine: "amd-mixed-7900-6700", step: func(t *testing.T, f fstest.MapFS, _ *Options) { addEnv(t, f, recipe.LlamaHIP) }},
	},
	"amd-icd": {{name: "install", machine: "rocm-5700xt", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "etc/OpenCL/vendors/rusticl.icd", "libRusticlOpenCL.so.1")
		put(f, "usr/lib64/libRusticlOpenCL.so.1", "")
	}}},
	"rocm-dropped": {{name: "Mesa's OpenCL", machine: "rocm-clr-269-rx570", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "etc/OpenCL/vendors/rusticl.icd", "libRusticlOpenCL.so.1")
		put(f, "usr/lib/x86_64-linux-gnu/libRusticlOpenCL.so.1", "")
	}}},
	"nvidia-libs": {{name: "install", machine: "ollama-14661-rented", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "usr/lib/x86_64-linux-gnu/libcuda.so.1", "")
	}}},
	"vulkan-driver": {{name: "install", machine: "llama-14099-llvmpipe", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "usr/share/vulkan/icd.d/intel_icd.x86_64.json", "{}")
	}}},
	"engine-level-zero": {{name: "build with headers", machine: "strata-1545-a770-xe", o: Options{Engines: []Engine{{Path: "strata", SYCL: true, Needed: []string{"libsycl.so.8"}}}}, step: func(t *testing.T, f fstest.MapFS, o *Options) {
		o.Engines[0].LevelZero = true
	}}},
	"cache-stale": {{name: "delete the folder", machine: "strata-1545-a770-xe", o: Options{Caches: []Cache{{Path: "/home/user/.cache/outcrop/kernels", Version: "neo 26.31.39395.13"}}}, step: func(t *testing.T, f fstest.MapFS, o *Options) {
		o.Caches = nil
	}}},

	"vram-unreadable": {{name: "a helper with the right", machine: "strata-1545-a770-xe", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "answers", string(f["answers"].Data)+"perfmon.helper = yes # outcrop-probe\n")
	}}, {name: "CAP_PERFMON", machine: "strata-1545-a770-xe", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		sub(t, f, "proc/self/status", "CapEff: 0000000000000000", "CapEff: 0000004000000000")
	}}},
	"memlock-low": {
		{name: "raise the limit", machine: "strata-1545-a770-xe", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "proc/self/limits", "8388608", "unlimited")
		}},
		{name: "raise the limit above the plan", machine: "strata-1545-a770-xe", o: Options{PlanPinned: 15 << 30}, step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "proc/self/limits", "8388608", "17179869184")
		}},
	},
	"cgroup-limit": {
		{name: "raise the limit", machine: "slice-limit", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			put(f, "sys/fs/cgroup/user.slice/user-1000.slice/memory.max", "max")
		}},
		{name: "a smaller pack", machine: "ollama-15474-cgroup", o: Options{PlanRAM: 20 << 30}, step: func(t *testing.T, f fstest.MapFS, o *Options) { o.PlanRAM = 8 << 30 }},
	},
	"plan-ram": {{name: "map instead of copy", machine: "strata-1545-a770-xe", o: Options{PlanRAM: 26 << 30}, step: func(t *testing.T, f fstest.MapFS, o *Options) { o.PlanRAM = 6 << 30 }}},
	"swap-zram": {{name: "add a swap file", machine: "strata-b70", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "proc/swaps", string(f["proc/swaps"].Data)+"/swapfile file 8388604 0 -2\n")
	}}},
	"swap-none": {{name: "add a swap file", machine: "vm-virtio", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "proc/swaps", "Filename Type Size Used Priority\n/swapfile file 8388604 0 -2\n")
	}}},
	"disk-turns": {{name: "move to an SSD", machine: "llama-20338-a770-epyc", step: func(t *testing.T, f fstest.MapFS, o *Options) {
		put(f, "proc/mounts", string(f["proc/mounts"].Data)+"/dev/nvme0n1p1 /fast ext4 rw 0 0\n")
		put(f, "sys/block/nvme0n1/queue/rotational", "0")
		o.DiskPath = "/fast/packs"
	}}},
	"disk-full": {{name: "make room", machine: "llama-20338-a770-epyc", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		sub(t, f, "answers", "free / = 812345678", "free / = 812345678000")
	}}},
	"psi-off": {{name: "psi=1", machine: "neo-992-icd-gone", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		put(f, "proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	}}},

	"env-conflict": {
		{name: "run under the recipe", machine: "llama-22885-two-b70", step: func(t *testing.T, f fstest.MapFS, _ *Options) { addEnv(t, f, recipe.Outcrop) }},
		{name: "run under the recipe, Tiger Lake", machine: "ipex-257-tgl", step: func(t *testing.T, f fstest.MapFS, _ *Options) { addEnv(t, f, recipe.Outcrop) }},
	},
	"env-empty": {{name: "remove it", machine: "llama-20338-a770-epyc", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
		sub(t, f, "proc/self/environ", "UR_L0_USE_COPY_ENGINE=\n", "")
	}}},
	"env-inert": {
		{name: "set NEOReadDebugKeys", machine: "gsd-12641-two-a770", step: func(t *testing.T, f fstest.MapFS, _ *Options) {
			sub(t, f, "proc/self/environ", "EnableDeviceUsm", "NEOReadDebugKeys=1\nEnableDeviceUsm")
		}},
	},
	"env-hides-card": {{name: "remove it", machine: "ollama-17832-three-h200", step: func(t *testing.T, f fstest.MapFS, _ *Options) { delete(f, "proc/self/environ") }}},
}

// TestStepsChangeTheOutcome takes the step of every condition.
func TestStepsChangeTheOutcome(t *testing.T) {
	for _, code := range Codes() {
		if len(steps[code]) == 0 {
			t.Errorf("condition %s has no test of its step", code)
		}
	}
	for code, cases := range steps {
		for _, k := range cases {
			t.Run(code+"/"+k.name, func(t *testing.T) {
				f := load(t, k.machine)
				o := k.o
				c := find(detect(t, f), o, code)
				if c == nil {
					t.Fatalf("%s does not have %s", k.machine, code)
				}
				if c.Title == "" || c.Text == "" || c.Next == "" || len(c.Evidence) == 0 || c.Source == "" {
					t.Errorf("incomplete: %+v", c)
				}
				k.step(t, f, &o)
				if c := find(detect(t, f), o, code); c != nil {
					t.Errorf("still there after the step: %+v", c)
				}
			})
		}
	}
}

// TestSeverity fixes what blocks and what only warns.
func TestSeverity(t *testing.T) {
	for _, k := range []struct {
		machine, code string
		want          Severity
	}{
		{"neo-872-b580-small-bar", "rebar-off", Blocks}, {"neo-997-small-bar-i915", "rebar-off", Warns},
		{"neo-899-dg1-xe", "neo-old", Warns}, {"llmfit-733-two-b70", "neo-old", Blocks},
		{"strata-1545-a770-xe", "vram-unreadable", Info}, {"aip-534-b580-no-driver", "intel-icd", Blocks},
	} {
		c := find(detect(t, load(t, k.machine)), Options{}, k.code)
		if c == nil || c.Severity != k.want {
			t.Errorf("%s %s: %+v, want %s", k.machine, k.code, c, k.want)
		}
	}
	cs := Check(detect(t, load(t, "llama-20338-a770-epyc")), Options{})
	for i := 1; i < len(cs); i++ {
		if cs[i-1].Severity == Info && cs[i].Severity != Info {
			t.Error("conditions are not worst first")
		}
	}
	if h := HealthOf(cs, "0000:41:00.0"); h != Care {
		t.Errorf("health %s", h)
	}
	if h := HealthOf(Check(detect(t, load(t, "neo-872-b580-small-bar")), Options{}), "0000:1b:00.0"); h != Bad {
		t.Errorf("health %s", h)
	}
}

// TestPackages: the command is that of the distribution.
func TestPackages(t *testing.T) {
	for id, want := range map[string]string{
		"ID=debian\nVERSION_ID=\"13\"":                "sudo apt-get install libze-intel-gpu1",
		"ID=debian\nVERSION_ID=\"12\"":                "sudo apt-get install intel-opencl-icd",
		"ID=fedora\nVERSION_ID=44":                    "sudo dnf install intel-level-zero",
		"ID=cachyos\nID_LIKE=arch":                    "sudo pacman -S intel-compute-runtime",
		"ID=opensuse-leap\nID_LIKE=\"suse opensuse\"": "sudo zypper install libze_intel_gpu1",
		"ID=nixos": "",
	} {
		f := load(t, "neo-992-icd-gone")
		put(f, "etc/os-release", id)
		c := find(detect(t, f), Options{}, "ze-driver")
		if c == nil || c.Command != want {
			t.Errorf("%q: %+v, want command %q", id, c, want)
		}
	}
	// Ubuntu 24.04's own driver does not know Battlemage: the advice names one
	// that does.
	f := load(t, "aip-534-b580-no-driver")
	put(f, "etc/os-release", "ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"")
	if c := find(detect(t, f), Options{}, "intel-icd"); c == nil || !strings.Contains(c.Command, "kobuk-team") {
		t.Errorf("%+v", c)
	}
}
