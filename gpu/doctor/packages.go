package doctor

import (
	"slices"

	"outcrop/gpu"
)

// piece is something a distribution's package brings.
type piece string

const (
	openclLoader piece = "OpenCL loader"
	intelOpenCL  piece = "Intel's OpenCL driver"
	zeLoader     piece = "Level Zero loader"
	zeDriver     piece = "Intel's Level Zero driver"
	amdOpenCL    piece = "AMD's OpenCL driver"
	nvidiaLib    piece = "NVIDIA's driver libraries"
	vulkanIntel  piece = "Vulkan driver"
	rocmHIP      piece = "HIP runtime"
)

// family groups distributions by package manager.
func family(d gpu.Distro) string {
	for _, id := range append([]string{d.ID}, d.Like...) {
		switch id {
		case "debian", "ubuntu", "linuxmint", "pop":
			return "debian"
		case "fedora", "rhel", "centos":
			return "fedora"
		case "arch", "cachyos", "manjaro", "endeavouros":
			return "arch"
		case "suse", "opensuse", "opensuse-tumbleweed", "opensuse-leap":
			return "suse"
		}
	}
	return ""
}

// packageNames maps pieces to packages by family.
var packageNames = map[piece]map[string]string{
	openclLoader: {"debian": "ocl-icd-libopencl1", "fedora": "OpenCL-ICD-Loader", "arch": "ocl-icd", "suse": "libOpenCL1"},
	intelOpenCL:  {"debian": "intel-opencl-icd", "fedora": "intel-opencl", "arch": "intel-compute-runtime", "suse": "intel-opencl"},
	zeLoader:     {"debian": "libze1", "fedora": "oneapi-level-zero", "arch": "level-zero-loader", "suse": "libze_loader1"},
	zeDriver:     {"debian": "libze-intel-gpu1", "fedora": "intel-level-zero", "arch": "intel-compute-runtime", "suse": "libze_intel_gpu1"},
	amdOpenCL:    {"debian": "mesa-opencl-icd", "fedora": "rocm-opencl", "arch": "rocm-opencl-runtime", "suse": "Mesa-libRusticlOpenCL"},
	nvidiaLib:    {"debian": "nvidia-driver", "fedora": "xorg-x11-drv-nvidia-cuda", "arch": "nvidia-utils", "suse": "nvidia-compute-G06"},
	vulkanIntel:  {"debian": "mesa-vulkan-drivers", "fedora": "mesa-vulkan-drivers", "arch": "vulkan-intel", "suse": "libvulkan_intel"},
	rocmHIP:      {"debian": "libamdhip64-5", "fedora": "rocm-hip", "arch": "rocm-hip-runtime", "suse": "rocm-hip"},
}

// install says how to bring a piece on this distribution.
func (x *exam) install(p piece) (next, command string) {
	d := x.m.Host.Distro
	f := family(d)
	name := packageNames[p][f]
	// Debian 12's intel-opencl-icd holds the Level Zero driver as well.
	if p == zeDriver && d.ID == "debian" && d.Version == "12" {
		name = "intel-opencl-icd"
	}
	switch f {
	case "debian":
		command = "sudo apt-get install " + name
	case "fedora":
		command = "sudo dnf install " + name
	case "arch":
		command = "sudo pacman -S " + name
	case "suse":
		command = "sudo zypper install " + name
	default:
		who := d.Name
		if who == "" {
			who = "this distribution"
		}
		return "install the package of " + who + " that brings the " + string(p) + " (Debian: " + packageNames[p]["debian"] + ", Fedora: " + packageNames[p]["fedora"] + ", Arch: " + packageNames[p]["arch"] + ")", ""
	}
	next = "install " + name
	// Ubuntu 24.04's own packages are older than Battlemage.
	if d.ID == "ubuntu" && d.Version == "24.04" && slices.Contains([]piece{intelOpenCL, zeDriver}, p) && x.newIntel() {
		next += " from Intel's PPA (ppa:kobuk-team/intel-graphics): the one of Ubuntu 24.04 itself is older than this card"
		command = "sudo add-apt-repository -y ppa:kobuk-team/intel-graphics && " + command
	}
	return next, command
}

func (x *exam) newIntel() bool {
	for _, c := range x.m.Cards {
		if c.Arch.Xe2OrNewer() {
			return true
		}
	}
	return false
}
