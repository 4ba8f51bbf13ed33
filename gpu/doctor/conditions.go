package doctor

import (
	"fmt"
	"slices"
	"strings"

	"outcrop/gpu"
)

// checkers is the table of conditions.
var checkers = slices.Concat(driverChecks, userModeChecks, memoryChecks, envChecks)

func gib(n int64) string { return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30)) }

// driverChecks concern the card, its kernel driver and its device file.
var driverChecks = []checker{
	{
		code: "no-card", title: "no graphics card", severity: Info, source: "this program",
		find: func(x *exam) *found {
			for _, c := range x.m.Cards {
				if !c.Virtual {
					return nil
				}
			}
			f := &found{text: "No graphics card was found: the CPU runs the model.", evidence: slices.Clone(x.m.Notes)}
			if x.m.Host.Virtual == "container" {
				f.next, f.command = "hand the card's device files into the container if the machine has one", "docker run --device /dev/dri ..."
			} else {
				f.next = "nothing to do, unless a card should be here: then check that it is seated and powered"
			}
			for _, c := range x.m.Cards {
				f.evidence = append(f.evidence, fmt.Sprintf("%s %s", c.PCI, c.Name))
			}
			return f
		},
	},
	{
		code: "driver-vfio", title: "card is handed to a virtual machine", severity: Blocks, source: "reference: kernel vfio documentation", perCard: true,
		find: func(x *exam) *found {
			if x.c.Driver != "vfio-pci" {
				return nil
			}
			return &found{
				text:     "The card is bound to vfio-pci, which keeps it for a virtual machine; no program here can use it.",
				evidence: []string{"driver of " + string(x.c.PCI) + ": vfio-pci"},
				next:     "take it back from vfio-pci, or run Outcrop in the virtual machine",
				command:  "echo " + string(x.c.PCI) + " | sudo tee /sys/bus/pci/drivers/vfio-pci/unbind && echo " + string(x.c.PCI) + " | sudo tee /sys/bus/pci/drivers_probe",
			}
		},
	},
	{
		code: "driver-none", title: "no kernel driver", severity: Blocks, source: "Niko1221/Strata#1545, kernel documentation", perCard: true,
		find: func(x *exam) *found {
			if x.c.Driver != "" {
				return nil
			}
			f := &found{text: "No kernel driver is bound to the card, so no program can use it.", evidence: []string{"/" + x.c.Sysfs + "/driver: none", "kernel " + x.m.Host.Kernel}}
			id := fmt.Sprintf("%04x", x.c.Device)
			switch {
			case slices.Contains(x.m.Host.Args, "nomodeset"):
				f.evidence = append(f.evidence, "kernel command line: nomodeset")
				f.next = "remove nomodeset from the kernel command line and boot again"
			case x.forced(id, "i915", true) && !x.forced(id, "xe", false):
				f.evidence = append(f.evidence, "kernel command line: i915.force_probe=!"+id+" without xe.force_probe="+id)
				f.next = "add xe.force_probe=" + id + " to the kernel command line and boot again, or remove i915.force_probe=!" + id
			case x.c.Vendor == gpu.Intel && tooOldKernel(x.c, x.m.Host.Kernel) != "":
				min := tooOldKernel(x.c, x.m.Host.Kernel)
				f.text += " This kernel is older than the card."
				f.next = "install kernel " + min + " or newer"
			case x.c.Vendor == gpu.Intel:
				f.next = "load the driver and look at its messages"
				f.command = "sudo modprobe " + intelDriver(x.c) + " && sudo dmesg | grep -i -e " + intelDriver(x.c) + " -e firmware"
			case x.c.Vendor == gpu.NVIDIA:
				f.next, f.command = x.install(nvidiaLib)
			case x.c.Vendor == gpu.AMD:
				f.next, f.command = "load the driver and look at its messages", "sudo modprobe amdgpu && sudo dmesg | grep -i amdgpu"
			default:
				f.next = "install the vendor's driver"
			}
			return f
		},
	},
	{
		code: "driver-nouveau", title: "nouveau cannot compute", severity: Blocks, source: "reference: Mesa and NVIDIA documentation", perCard: true,
		find: func(x *exam) *found {
			if x.c.Driver != "nouveau" {
				return nil
			}
			next, cmd := x.install(nvidiaLib)
			return &found{text: "The card is bound to nouveau, which has no compute path worth using.", evidence: []string{"driver of " + string(x.c.PCI) + ": nouveau"}, next: next + " and boot again", command: cmd}
		},
	},
	{
		code: "rebar-off", title: "resizable BAR is off", severity: Warns, source: "intel/compute-runtime#872, intel/compute-runtime#933, intel/compute-runtime#997", perCard: true,
		find: func(x *exam) *found {
			if !x.c.Discrete || !x.c.BAR.Resizable.Known || x.c.BAR.Resizable.Value || x.c.Driver != "xe" && x.c.Driver != "i915" { // the driver is what resizes
				return nil
			}
			size := "unknown"
			if x.c.BAR.Size.Known {
				size = fmt.Sprintf("%d MiB", x.c.BAR.Size.Value>>20)
			}
			f := &found{
				text:     "The CPU sees only a small window of the card's memory. Copies are slow.",
				evidence: []string{"memory window: " + size + " (" + x.c.BAR.Size.Source + ")", "card memory: " + mem(x.c.Memory.Total)},
				next:     "turn on \"Above 4G decoding\" and \"Resizable BAR\" in the firmware setup; the window measured here must then be as big as the card's memory",
			}
			if x.c.Driver == "xe" {
				f.severity = Blocks
				f.text = "The CPU sees only a small window of the card's memory, and Intel's user-mode driver refuses such a card on xe: OpenCL and Level Zero show no device."
				if x.c.Arch == gpu.Alchemist {
					f.next += "; where the board cannot, bind the card to i915, which allows it"
				} else {
					f.next += "; where the board cannot, Vulkan still works"
				}
			}
			return f
		},
	},
	{
		code: "container-no-nodes", title: "no device file in the container", severity: Blocks, source: "linuxserver/docker-jellyfin#284", perCard: true,
		find: func(x *exam) *found {
			if x.m.Host.Virtual != "container" || !x.c.Compute() || x.c.Node.GID >= 0 || x.c.Node.Access.Or(false) {
				return nil
			}
			path := x.c.Node.Path
			if path == "" {
				path = "/dev/dri"
			}
			return &found{
				text:     "The card can be seen in this container but not opened: its device file was not handed in.",
				evidence: []string{path + ": " + x.c.Node.Access.Why},
				next:     "start the container with the device and the number of the render group (names differ between host and image)",
				command:  "docker run --device /dev/dri --group-add $(stat -c %g /dev/dri/renderD128) ...",
			}
		},
	},
	{
		code: "no-node", title: "no device file", severity: Blocks, source: "NVIDIA driver README; kernel DRM documentation", perCard: true,
		find: func(x *exam) *found {
			if x.m.Host.Virtual == "container" || !x.c.Compute() || x.c.Node.GID >= 0 || x.c.Node.Access.Known {
				return nil
			}
			f := &found{text: "The kernel driver is bound, but there is no device file to open.", evidence: []string{x.c.Node.Access.Source + ": " + x.c.Node.Access.Why}}
			switch {
			case x.c.Driver == "nvidia":
				f.next, f.command = "let NVIDIA's tool make the device files", "sudo nvidia-modprobe -u -c=0"
			case x.c.Driver == "dxg":
				f.next, f.command = "update WSL so that it hands the card in", "wsl --update"
			default:
				f.next, f.command = "look at the driver's messages: missing firmware ends here", "sudo dmesg | grep -i -e "+x.c.Driver+" -e firmware"
			}
			return f
		},
	},
	{
		code: "render-group", title: "no permission for the card", severity: Blocks, source: "intel/llm-scaler#370", perCard: true,
		find: func(x *exam) *found {
			n := x.c.Node
			if !n.Access.Known || n.Access.Value || x.relogin(n) {
				return nil
			}
			return x.permission(n)
		},
	},
	{
		code: "kfd-group", title: "no permission for AMD's compute device", severity: Blocks, source: "ROCm documentation", perCard: true,
		find: func(x *exam) *found {
			n := x.m.KFD
			if x.c.Vendor != gpu.AMD || x.c.Driver != "amdgpu" || !n.Access.Known || n.Access.Value || x.relogin(n) {
				return nil
			}
			return x.permission(n)
		},
	},
	{
		code: "relogin", title: "log in again", severity: Blocks, source: "group membership is read at login", perCard: true,
		find: func(x *exam) *found {
			for _, n := range []gpu.Node{x.c.Node, x.m.KFD} {
				if n.Path == "/dev/kfd" && x.c.Vendor != gpu.AMD {
					continue
				}
				if n.Access.Known && !n.Access.Value && x.relogin(n) {
					return &found{
						text:     "You are in group " + n.Group.Value + " already, but this session began before that.",
						evidence: []string{"/etc/group lists you in " + n.Group.Value, fmt.Sprintf("groups of this process: %v", x.m.Host.User.Groups)},
						next:     "log out and in again (a new terminal is not enough)",
					}
				}
			}
			return nil
		},
	},
	{
		code: "link-narrow", title: "card runs in fewer lanes than it has", severity: Info, source: "Niko1221/Strata docs/A770_SPEED_SPEC.md", perCard: true,
		find: func(x *exam) *found {
			l := x.c.Link
			if !x.c.Discrete || !l.Width.Known || !l.MaxWidth.Known || l.Width.Value*2 > l.MaxWidth.Value {
				return nil
			}
			return &found{
				text:     "What lies in RAM reaches the card slowly: experts that miss are better computed by the CPU.",
				evidence: []string{fmt.Sprintf("x%d of x%d at %s", l.Width.Value, l.MaxWidth.Value, l.At)},
				next:     "put the card into the slot with the most lanes",
			}
		},
	},
	{
		code: "sandbox", title: "the sandbox hides the drivers", severity: Blocks, source: "intel/compute-runtime#992",
		find: func(x *exam) *found {
			if x.m.Host.Virtual != "flatpak" {
				return nil
			}
			return &found{text: "This program runs in a flatpak: the drivers of the system are not visible in it, and AMD's compute device is not handed in.", evidence: []string{"/.flatpak-info"}, next: "run Outcrop outside the flatpak"}
		},
	},
	{
		code: "wsl", title: "sensors are not visible under WSL", severity: Info, source: "intel/compute-runtime WSL.md, pytorch/pytorch#194576",
		find: func(x *exam) *found {
			if x.m.Host.Virtual != "wsl" {
				return nil
			}
			return &found{
				text:     "Under WSL the card belongs to Windows: free memory, temperature and power cannot be read here, and plans use a careful share of the total.",
				evidence: []string{"kernel " + x.m.Host.Kernel},
				next:     "run Outcrop on Windows itself to see them",
			}
		},
	},
}

// mem says a size, or that it is unknown.
func mem(r gpu.Reading[int64]) string {
	if !r.Known {
		return "n/a"
	}
	return gib(r.Value)
}

// relogin says whether /etc/group already gives what the session lacks.
func (x *exam) relogin(n gpu.Node) bool {
	return n.GID > 0 && slices.Contains(x.m.Host.User.Listed, n.GID) && !slices.Contains(x.m.Host.User.Groups, n.GID)
}

// permission describes a device file this user may not open.
func (x *exam) permission(n gpu.Node) *found {
	group := n.Group.Or("render")
	f := &found{
		text:     "This user may not open " + n.Path + ", so programs see no card, only the CPU.",
		evidence: []string{n.Path + " belongs to group " + group, fmt.Sprintf("groups of this process: %v", x.m.Host.User.Groups)},
	}
	if n.Access.Why != "" {
		f.evidence = append(f.evidence, "opening it: "+n.Access.Why)
	}
	if x.m.Host.Virtual == "container" {
		f.next, f.command = "start the container with the group's number", fmt.Sprintf("docker run --group-add %d ...", n.GID)
		return f
	}
	if n.GID == 0 {
		f.next, f.command = "give the device file to the render group with a udev rule, then boot again", `echo 'SUBSYSTEM=="drm", KERNEL=="renderD*", GROUP="render", MODE="0660"' | sudo tee /etc/udev/rules.d/70-render.rules`
		return f
	}
	f.next, f.command = "join the group, then log out and in again", "sudo usermod -aG "+group+" $USER"
	return f
}

// forced says whether the kernel command line has module.force_probe with the
// id, negated or not.
func (x *exam) forced(id, module string, not bool) bool {
	for _, a := range x.m.Host.Args {
		v, ok := strings.CutPrefix(a, module+".force_probe=")
		if !ok {
			continue
		}
		for _, p := range strings.Split(v, ",") {
			n := strings.HasPrefix(p, "!")
			p = strings.ToLower(strings.TrimPrefix(p, "!"))
			if n == not && (p == id || p == "*") {
				return true
			}
		}
	}
	return false
}

// intelDriver is the kernel driver that takes a card by default.
func intelDriver(c *gpu.Card) string {
	if c.Arch.Xe2OrNewer() {
		return "xe"
	}
	return "i915"
}

// kernelFor is the first kernel usable with a generation (distribution notes and
// reports; not the first that knows the id).
var kernelFor = map[gpu.Arch]string{gpu.Alchemist: "6.2", gpu.Battlemage: "6.12", gpu.LunarLake: "6.11", gpu.PantherLake: "6.16"}

// tooOldKernel gives the kernel a card needs when this one is older, else "".
func tooOldKernel(c *gpu.Card, release string) string {
	min := kernelFor[c.Arch]
	switch c.Device {
	case 0xe211, 0xe212:
		min = "6.14"
	case 0xe222, 0xe223:
		min = "6.19"
	}
	if min == "" || release == "" || gpu.CompareVersions(majorMinor(release), min) >= 0 {
		return ""
	}
	return min
}

func majorMinor(release string) string {
	p := strings.SplitN(release, ".", 3)
	if len(p) < 2 {
		return release
	}
	minor := p[1]
	for i, c := range minor {
		if c < '0' || c > '9' {
			minor = minor[:i]
			break
		}
	}
	return p[0] + "." + minor
}
