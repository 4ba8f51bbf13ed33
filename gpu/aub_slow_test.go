//go:build slow && linux

package gpu_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ebitengine/purego"

	"outcrop/gpu"
	"outcrop/gpu/recipe"
)

// aub makes Intel's own user-mode driver believe in an A770 without hardware: it
// compiles and accepts everything and writes the command stream to a file (here
// to nowhere). It is the nearest a plain machine comes to the card.
var aub = []string{
	"NEOReadDebugKeys=1", "SetCommandStreamReceiver=1", "ProductFamilyOverride=dg2", "HardwareInfoOverride=8x4x16", "ForceDeviceId=0x56a0", "AUBDumpCaptureFileName=/dev/null",
}

// started is what the child saw.
type started struct {
	Platform string
	Device   string
	CLErr    string
	ZeInit   uint32
	ZeCount  uint32
	ZeErr    string
}

const childVar = "OUTCROP_TEST_AUB"

// TestRecipeStartsIntelDrivers: under the recipe of outcrop for DG2, Intel's real
// OpenCL and Level Zero drivers start and show the card. A mask that names a
// second device shows that the variable does what the recipe says.
func TestRecipeStartsIntelDrivers(t *testing.T) {
	if os.Getenv(childVar) != "" {
		json.NewEncoder(os.Stdout).Encode(start())
		return
	}
	needDriver(t)
	for _, k := range []struct{ machine, why string }{
		{"strata-1545-a770-xe", "one card"},
		{"neo-907-a770-uhd770", "with the mask of a card beside integrated graphics"},
		{"gsd-12641-two-a770", "with the mask of the first of two cards"},
	} {
		t.Run(k.machine, func(t *testing.T) {
			r := recipeOf(t, k.machine)
			t.Logf("%s: %s, %v", k.why, r.Title, r.Apply(nil))
			got := run(t, r.Apply(append(base(), aub...)))
			if !strings.Contains(got.Platform, "Intel(R) OpenCL") || !strings.Contains(got.Device, "0x56a0") {
				t.Errorf("OpenCL: %+v", got)
			}
			if got.ZeInit != 0 || got.ZeCount != 1 {
				t.Errorf("Level Zero: %+v", got)
			}
		})
	}
	t.Run("a mask hides what it does not name", func(t *testing.T) {
		got := run(t, append(append(base(), aub...), "ZE_AFFINITY_MASK=1"))
		if got.ZeInit == 0 && got.ZeCount != 0 {
			t.Errorf("ZE_AFFINITY_MASK=1 on a machine with one device shows %+v", got)
		}
	})
}

func base() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), childVar + "=1", "ZES_ENABLE_SYSMAN=1", "ZE_ENABLE_PCI_ID_DEVICE_ORDER=1"}
}

func needDriver(t *testing.T) {
	t.Helper()
	for _, p := range []string{"/usr/lib/x86_64-linux-gnu/intel-opencl/libigdrcl.so", "/usr/lib/x86_64-linux-gnu/libze_intel_gpu.so.1", "/usr/lib/x86_64-linux-gnu/libze_loader.so.1", "/usr/lib/x86_64-linux-gnu/libOpenCL.so.1"} {
		if _, err := os.Stat(p); err != nil {
			t.Skipf("%s is missing: apt-get install intel-opencl-icd libze1 ocl-icd-libopencl1 (Debian 12)", filepath.Base(p))
		}
	}
}

func recipeOf(t *testing.T, name string) recipe.Recipe {
	t.Helper()
	dir := t.TempDir()
	if err := gpu.UnpackFile(filepath.Join("recipe", "testdata", "machines", name+".txt"), dir); err != nil {
		t.Fatal(err)
	}
	m, err := gpu.Detect(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	r, err := recipe.For(m, recipe.Outcrop, recipe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func run(t *testing.T, env []string) started {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run", "^TestRecipeStartsIntelDrivers$")
	c.Env = env
	c.WaitDelay = time.Second
	timer := time.AfterFunc(60*time.Second, func() { c.Process.Kill() })
	defer timer.Stop()
	out, err := c.Output()
	if err != nil {
		t.Fatalf("child: %v\n%s", err, out)
	}
	var s started
	line, _, _ := strings.Cut(string(out), "\n")
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		t.Fatalf("child said %q: %v", out, err)
	}
	return s
}

// start asks both drivers, in the child.
func start() (s started) {
	if h, err := purego.Dlopen("libOpenCL.so.1", purego.RTLD_NOW); err != nil {
		s.CLErr = err.Error()
	} else {
		s.Platform, s.Device, s.CLErr = opencl(h)
	}
	h, err := purego.Dlopen("libze_loader.so.1", purego.RTLD_NOW)
	if err != nil {
		s.ZeErr = err.Error()
		return s
	}
	var zeInit func(flags uint32) uint32
	var zeDriverGet func(n *uint32, d *uintptr) uint32
	var zeDeviceGet func(driver uintptr, n *uint32, d *uintptr) uint32
	purego.RegisterLibFunc(&zeInit, h, "zeInit")
	purego.RegisterLibFunc(&zeDriverGet, h, "zeDriverGet")
	purego.RegisterLibFunc(&zeDeviceGet, h, "zeDeviceGet")
	if s.ZeInit = zeInit(1); s.ZeInit != 0 {
		return s
	}
	n := uint32(1)
	var drv uintptr
	if rc := zeDriverGet(&n, &drv); rc != 0 || n == 0 {
		s.ZeErr = fmt.Sprintf("zeDriverGet 0x%x, %d drivers", rc, n)
		return s
	}
	if rc := zeDeviceGet(drv, &s.ZeCount, nil); rc != 0 {
		s.ZeErr = fmt.Sprintf("zeDeviceGet 0x%x", rc)
	}
	return s
}

// opencl finds the Intel platform and its GPU.
func opencl(h uintptr) (platform, device, fail string) {
	var platforms func(n uint32, p *uintptr, got *uint32) int32
	var platformInfo func(p uintptr, what uint32, n uintptr, buf *byte, got *uintptr) int32
	var devices func(p uintptr, kind uint64, n uint32, d *uintptr, got *uint32) int32
	var deviceInfo func(d uintptr, what uint32, n uintptr, buf *byte, got *uintptr) int32
	purego.RegisterLibFunc(&platforms, h, "clGetPlatformIDs")
	purego.RegisterLibFunc(&platformInfo, h, "clGetPlatformInfo")
	purego.RegisterLibFunc(&devices, h, "clGetDeviceIDs")
	purego.RegisterLibFunc(&deviceInfo, h, "clGetDeviceInfo")
	var ps [16]uintptr
	var n uint32
	if rc := platforms(16, &ps[0], &n); rc != 0 {
		return "", "", fmt.Sprintf("clGetPlatformIDs %d", rc)
	}
	for _, p := range ps[:min(n, 16)] {
		var buf [256]byte
		var got uintptr
		if platformInfo(p, 0x0902, 256, &buf[0], &got) != 0 || got == 0 || !strings.Contains(string(buf[:got-1]), "Intel") {
			continue
		}
		platform = string(buf[:got-1])
		var d uintptr
		var nd uint32
		if rc := devices(p, 4, 1, &d, &nd); rc != 0 || nd == 0 {
			return platform, "", fmt.Sprintf("clGetDeviceIDs %d", rc)
		}
		if deviceInfo(d, 0x102b, 256, &buf[0], &got) == 0 && got > 0 {
			device = string(buf[:got-1])
		}
		return platform, device, ""
	}
	return "", "", fmt.Sprintf("no Intel platform among %d", n)
}
