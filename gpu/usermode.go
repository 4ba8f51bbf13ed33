package gpu

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// libDirs are where shared libraries lie on the distributions we know.
var libDirs = []string{
	"usr/lib/x86_64-linux-gnu", "usr/lib64", "usr/lib", "lib/x86_64-linux-gnu", "lib64", "usr/local/lib", "usr/local/lib64",
	"usr/lib/aarch64-linux-gnu", "usr/lib/wsl/lib", "opt/rocm/lib", "opt/intel/oneapi/redist/lib", "run/opengl-driver/lib",
	"usr/lib/x86_64-linux-gnu/intel-opencl", "usr/lib64/intel-opencl", "usr/lib/intel-opencl",
}

// findLib looks for a shared library by its file name.
func findLib(root fs.FS, name string) Library {
	l := Library{Name: name}
	for _, d := range libDirs {
		if exists(root, d+"/"+name) {
			l.Path, l.Found = "/"+d+"/"+name, true
			return l
		}
	}
	return l
}

// packages are the ones whose version says how old a driver is, by the answer
// they give. The first that is installed counts.
var packages = map[string][]string{
	"neo":    {"libze-intel-gpu1", "intel-opencl-icd", "intel-compute-runtime", "intel-level-zero", "intel-level-zero-gpu", "intel-opencl"},
	"igc":    {"libigc2", "intel-igc-core-2", "intel-igc-core", "libigc1", "intel-graphics-compiler", "intel-igc"},
	"rocm":   {"rocm-core", "rocm-runtime", "hsa-rocr", "libhsa-runtime64-1", "rocm-hip-runtime", "rocm-hip"},
	"mesa":   {"mesa-vulkan-drivers", "vulkan-intel", "vulkan-radeon", "mesa"},
	"oneapi": {"intel-oneapi-runtime-libs", "intel-oneapi-basekit", "intel-oneapi-dpcpp-cpp", "intel-oneapi-compiler-dpcpp-cpp"},
	"nvidia": {"nvidia-utils", "nvidia-driver", "libnvidia-compute"},
}

// installed gives package versions from the records that are plain files:
// dpkg's status and pacman's folder names. rpm keeps a database; its answers
// come from a live probe.
func installed(root fs.FS) (map[string]string, string) {
	want := map[string]bool{}
	for _, ps := range packages {
		for _, p := range ps {
			want[p] = true
		}
	}
	out := map[string]string{}
	if f, err := root.Open("var/lib/dpkg/status"); err == nil {
		defer f.Close()
		dpkg(f, want, out)
		return out, "dpkg"
	}
	for _, n := range names(root, "var/lib/pacman/local") {
		// name-version-release, where the name itself may hold dashes
		p := strings.Split(n, "-")
		if len(p) < 3 {
			continue
		}
		name := strings.Join(p[:len(p)-2], "-")
		if want[name] {
			out[name] = p[len(p)-2]
		}
	}
	if len(out) > 0 {
		return out, "pacman"
	}
	return out, ""
}

// dpkg reads the wanted packages that are installed from a status file.
func dpkg(r io.Reader, want map[string]bool, out map[string]string) {
	sc := bufio.NewScanner(io.LimitReader(r, 256<<20))
	sc.Buffer(make([]byte, 0, 64<<10), 4<<20)
	name, ok := "", false
	for sc.Scan() {
		k, v, found := strings.Cut(sc.Text(), ": ")
		if !found {
			if sc.Text() == "" {
				name, ok = "", false
			}
			continue
		}
		switch k {
		case "Package":
			name, ok = v, false
		case "Status":
			ok = strings.HasSuffix(v, " installed")
		case "Version":
			base := name
			// nvidia-driver-580-open and libnvidia-compute-580 carry their branch in the name
			for _, p := range packages["nvidia"] {
				if strings.HasPrefix(name, p+"-5") {
					base = p
				}
			}
			if ok && want[base] {
				out[base] = v
			}
		}
	}
}

// versionOf combines what was answered with the package records.
func versionOf(key string, a Answers, pk map[string]string, from string) Reading[string] {
	if v, ok := a[key]; ok && v.Value != "" {
		return Known(CleanVersion(v.Value), v.Source)
	}
	for _, p := range packages[key] {
		if v := pk[p]; v != "" {
			return Known(CleanVersion(v), from+" "+p)
		}
	}
	if from == "" {
		return Unknown[string]("package records", "no dpkg or pacman records here, and no answer from rpm")
	}
	return Unknown[string](from, "not installed: "+strings.Join(packages[key], ", "))
}

// soname gives what follows ".so." in the file a library link points to.
func soname(root fs.FS, l Library) string {
	if !l.Found {
		return ""
	}
	t := link(root, strings.TrimPrefix(l.Path, "/"))
	if _, v, ok := strings.Cut(path.Base(t), ".so."); ok {
		return v
	}
	return ""
}

func readUserMode(root fs.FS, a Answers) UserMode {
	pk, from := installed(root)
	u := UserMode{
		NEO: versionOf("neo", a, pk, from), IGC: versionOf("igc", a, pk, from), ROCm: versionOf("rocm", a, pk, from),
		NVIDIA: versionOf("nvidia", a, pk, from), Mesa: versionOf("mesa", a, pk, from), OneAPI: versionOf("oneapi", a, pk, from),
		LevelZero: findLib(root, "libze_loader.so.1"),
		ZeIntel:   findLib(root, "libze_intel_gpu.so.1"),
		OpenCL:    findLib(root, "libOpenCL.so.1"),
		Vulkan:    findLib(root, "libvulkan.so.1"),
		CUDA:      findLib(root, "libcuda.so.1"),
		HIP:       findLib(root, "libamdhip64.so"),
	}
	if !u.HIP.Found {
		for _, n := range []string{"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"} {
			if l := findLib(root, n); l.Found {
				u.HIP = l
				break
			}
		}
	}
	// A library's full name carries the build: libze_intel_gpu.so.1.14.37435.
	if !u.NEO.Known {
		if v := soname(root, u.ZeIntel); NEOBuild(v) > 0 {
			u.NEO = Known(fmt.Sprintf("build %d", NEOBuild(v)), "file name of "+u.ZeIntel.Path)
		}
	}
	if v := text(root, "opt/rocm/.info/version"); v != "" && !u.ROCm.Known {
		u.ROCm = Known(CleanVersion(v), "/opt/rocm/.info/version")
	}
	if v := nvidiaVersion(text(root, "proc/driver/nvidia/version")); v != "" {
		u.NVIDIA = Known(v, "/proc/driver/nvidia/version")
	}
	if v := text(root, "opt/intel/oneapi/version"); v != "" && !u.OneAPI.Known {
		u.OneAPI = Known(CleanVersion(v), "/opt/intel/oneapi/version")
	} else if !u.OneAPI.Known {
		best := ""
		for _, n := range names(root, "opt/intel/oneapi/compiler") {
			if n != "latest" && CompareVersions(n, best) > 0 {
				best = n
			}
		}
		if best != "" {
			u.OneAPI = Known(best, "/opt/intel/oneapi/compiler")
		}
	}
	for _, d := range []string{"etc/OpenCL/vendors", "usr/share/OpenCL/vendors"} {
		for _, n := range names(root, d) {
			if !strings.HasSuffix(n, ".icd") {
				continue
			}
			lib := strings.TrimSpace(text(root, d+"/"+n))
			i := ICD{File: "/" + d + "/" + n, Library: lib}
			if strings.HasPrefix(lib, "/") {
				i.Found = exists(root, strings.TrimPrefix(path.Clean(lib), "/"))
			} else if lib != "" && !strings.Contains(lib, "/") {
				i.Found = findLib(root, lib).Found
			}
			u.ICDs = append(u.ICDs, i)
		}
	}
	for _, d := range []string{"usr/share/vulkan/icd.d", "etc/vulkan/icd.d", "usr/local/share/vulkan/icd.d", "run/opengl-driver/share/vulkan/icd.d"} {
		for _, n := range names(root, d) {
			if strings.HasSuffix(n, ".json") {
				u.VulkanICDs = append(u.VulkanICDs, "/"+d+"/"+n)
			}
		}
	}
	return u
}

// nvidiaVersion reads the driver's version from /proc/driver/nvidia/version,
// the first word that looks like one after "Kernel Module".
func nvidiaVersion(s string) string {
	_, rest, ok := strings.Cut(s, "Kernel Module")
	if !ok {
		return ""
	}
	for _, f := range strings.Fields(rest) {
		if f[0] >= '0' && f[0] <= '9' && strings.Contains(f, ".") {
			return f
		}
	}
	return ""
}

// HasICD says whether an OpenCL driver of a vendor is installed: its ICD file
// is there and the library it names exists.
func (u UserMode) HasICD(v uint16) (installed, works bool) {
	for _, i := range u.ICDs {
		l := strings.ToLower(i.Library + " " + path.Base(i.File))
		is := false
		switch v {
		case Intel:
			is = strings.Contains(l, "igdrcl") || strings.Contains(l, "intel")
		case AMD:
			is = strings.Contains(l, "amdocl") || strings.Contains(l, "rusticl")
		case NVIDIA:
			is = strings.Contains(l, "nvidia")
		}
		if is {
			installed = true
			works = works || i.Found
		}
	}
	return installed, works
}

// HasVulkan says whether a Vulkan driver for a vendor's cards is installed.
func (u UserMode) HasVulkan(v uint16) bool {
	for _, f := range u.VulkanICDs {
		n := path.Base(f)
		switch v {
		case Intel:
			if strings.HasPrefix(n, "intel_icd") || strings.HasPrefix(n, "intel_hasvk") {
				return true
			}
		case AMD:
			if strings.HasPrefix(n, "radeon_icd") || strings.HasPrefix(n, "amd_icd") {
				return true
			}
		case NVIDIA:
			if strings.HasPrefix(n, "nvidia_icd") || strings.HasPrefix(n, "nouveau_icd") {
				return true
			}
		}
	}
	return false
}
