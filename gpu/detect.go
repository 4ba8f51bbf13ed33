package gpu

import (
	"fmt"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Machine is everything a recipe, a plan and the doctor want to know.
type Machine struct {
	Cards    []Card   `json:"cards"` // sorted by PCI address
	Host     Host     `json:"host"`
	UserMode UserMode `json:"user_mode"`
	KFD      Node     `json:"kfd"` // AMD's compute device file
	Notes    []string `json:"notes,omitempty"`
}

// UserMode is the user-mode half of the drivers: what is installed, by file
// and by the package manager's own records.
type UserMode struct {
	NEO        Reading[string] `json:"neo"` // Intel compute-runtime
	IGC        Reading[string] `json:"igc"` // Intel graphics compiler
	ROCm       Reading[string] `json:"rocm"`
	NVIDIA     Reading[string] `json:"nvidia"`
	Mesa       Reading[string] `json:"mesa"`
	OneAPI     Reading[string] `json:"oneapi"`
	LevelZero  Library         `json:"level_zero"`        // loader
	ZeIntel    Library         `json:"level_zero_driver"` // Intel's driver under the loader
	OpenCL     Library         `json:"opencl"`            // loader
	ICDs       []ICD           `json:"icds"`              // OpenCL drivers
	Vulkan     Library         `json:"vulkan"`            // loader
	VulkanICDs []string        `json:"vulkan_icds"`
	CUDA       Library         `json:"cuda"` // libcuda.so.1
	HIP        Library         `json:"hip"`
}

// Library is a shared library looked for in the usual places.
type Library struct {
	Name  string `json:"name"`
	Path  string `json:"path,omitempty"` // empty: not found
	Found bool   `json:"found"`
}

// ICD is one OpenCL driver file of /etc/OpenCL/vendors.
type ICD struct {
	File    string `json:"file"`
	Library string `json:"library"`
	Found   bool   `json:"found"` // the library it names exists
}

// Detect reads the machine below root, and the recorded answers beside it (see
// [AnswersFile]). It fails only when root itself cannot be read: a machine with
// no card is a machine, and what is missing is said in the readings.
func Detect(root fs.FS) (Machine, error) {
	if _, err := fs.ReadDir(root, "."); err != nil {
		return Machine{}, fmt.Errorf("read the machine: %w", err)
	}
	return detect(root, answersOf(root)), nil
}

func detect(root fs.FS, a Answers) Machine {
	if w, ok := windowsOf(root); ok {
		return DetectWindows(w)
	}
	m := Machine{Cards: []Card{}, Host: readHost(root, a), UserMode: readUserMode(root, a)}
	for _, d := range displays(root) {
		m.Cards = append(m.Cards, readCard(root, d, a, m))
	}
	m.KFD = nodeOf(root, "/dev/kfd", m.Host.User, m.Host.groups, a)
	if m.Host.Virtual == "wsl" {
		m.wsl(root, a)
	}
	m.note(root)
	return m
}

// readCard gathers one card.
func readCard(root fs.FS, d pciDevice, a Answers, m Machine) Card {
	c := Card{PCI: d.addr, Sysfs: d.dir}
	c.Vendor, _ = hex16(root, d.dir+"/vendor")
	c.Device, _ = hex16(root, d.dir+"/device")
	c.Class, _ = class(root, d.dir)
	c.Boot = text(root, d.dir+"/boot_vga") == "1"
	var gbs int
	c.Name, c.Arch, c.Chip, gbs = Identify(c.Vendor, c.Device)
	if v, ok := a["ip "+string(c.PCI)]; ok && c.Arch == IntelOther {
		if c.Arch = archOfIP(v.Value); c.Arch != IntelOther {
			c.Name, c.Chip = "Intel graphics "+v.Value+", id unknown to us", "IP "+v.Value
		}
	}
	c.Driver = driverOf(root, d.dir)
	c.Virtual = c.Arch == VirtualArch
	c.Discrete = discrete(root, c, a)
	c.Memory.Shared = !c.Discrete && !c.Virtual
	if c.Vendor == AMD {
		if t := kfdTarget(root, c.PCI); t != "" {
			c.Chip = t
			if c.Arch == AMDOther {
				c.Arch = archOfGFX(t)
			}
		}
		if id := kfdUUID(root, c.PCI); id != "" {
			c.UUID = Known(id, "kfd topology")
		}
	}
	if c.Vendor == NVIDIA {
		nvidiaFiles(root, &c)
	}
	if v, ok := a["name "+string(c.PCI)]; ok {
		c.Name = v.Value
	}
	if v, ok := a["cc "+string(c.PCI)]; ok {
		c.Chip = "cc " + v.Value
	}
	if v, ok := a["uuid "+string(c.PCI)]; ok {
		c.UUID = Known(v.Value, v.Source)
	}
	if !c.UUID.Known && c.UUID.Source == "" {
		c.UUID = Unknown[string]("driver", "no answer")
	}
	c.Caps = CapsOf(c.Arch, c.Chip)
	if gbs > 0 {
		c.Memory.GBs = Known(gbs, "table of card models (nominal)")
	} else {
		c.Memory.GBs = Unknown[int]("table of card models", "no figure for this model")
	}
	c.BAR = barOf(root, d.dir)
	c.Memory.Total = totalVRAM(root, c, a)
	c.Memory.Usable = usableVRAM(c, m.Host)
	c.BAR.Resizable = resizable(root, c, a)
	c.Link = linkOf(root, d, c.Vendor)
	if c.Memory.Shared {
		u := "integrated: reached through memory, not a slot"
		c.Link = Link{Speed: Unknown[float64]("/"+d.dir, u), Width: Unknown[int]("/"+d.dir, u), MaxSpeed: Unknown[float64]("/"+d.dir, u), MaxWidth: Unknown[int]("/"+d.dir, u)}
	}
	c.DriverVersion = driverVersion(root, c, m)
	c.DRM, c.Displays = drmOf(root, d)
	c.Node = cardNode(root, d, c, m, a)
	return c
}

// discrete tells a card of its own from graphics in the processor. Intel's
// integrated graphics is 00:02.0 on every machine seen; AMD's sits on a bus like
// a card, so the chip decides.
func discrete(root fs.FS, c Card, a Answers) bool {
	switch c.Vendor {
	case Intel:
		switch c.Arch {
		case Alchemist, Battlemage, DG1, PonteVecc, Crescent:
			return true
		}
		return c.Arch == IntelOther && !strings.HasPrefix(string(c.PCI), "0000:00:")
	case AMD:
		switch strings.TrimPrefix(c.Chip, "gfx") {
		case "1036", "1035", "1037", "1103", "1150", "1151", "1152", "1153", "90c", "902", "909":
			return false
		}
		return true
	case NVIDIA:
		return true
	}
	return false
}

// driverVersion is the version of the kernel driver; drivers in the kernel tree
// have the kernel's.
func driverVersion(root fs.FS, c Card, m Machine) Reading[string] {
	if c.Driver == "" {
		return Unknown[string]("/"+c.Sysfs+"/driver", "no driver is bound")
	}
	if c.Driver == "nvidia" && m.UserMode.NVIDIA.Known {
		return m.UserMode.NVIDIA
	}
	if v := text(root, "sys/module/"+c.Driver+"/version"); v != "" {
		return Known(v, "/sys/module/"+c.Driver+"/version")
	}
	if m.Host.Kernel != "" {
		return Known(m.Host.Kernel, "kernel release")
	}
	return Unknown[string]("/sys/module/"+c.Driver+"/version", "no such file")
}

// drmName gives cardN of a device folder.
func drmName(root fs.FS, dir string) string {
	for _, n := range names(root, dir+"/drm") {
		if strings.HasPrefix(n, "card") {
			return n
		}
	}
	return ""
}

// drmOf finds the DRM card of a device and the connectors with a screen.
func drmOf(root fs.FS, d pciDevice) (string, []string) {
	name := drmName(root, d.dir)
	if name == "" {
		for _, n := range names(root, "sys/class/drm") {
			if strings.HasPrefix(n, "card") && !strings.Contains(n, "-") && slot(root, "sys/class/drm/"+n+"/device") == string(d.addr) {
				name = n
			}
		}
	}
	if name == "" {
		return "", nil
	}
	var on []string
	for _, n := range names(root, "sys/class/drm") {
		if rest, ok := strings.CutPrefix(n, name+"-"); ok && text(root, "sys/class/drm/"+n+"/status") == "connected" {
			on = append(on, rest)
		}
	}
	sort.Strings(on)
	return name, on
}

// cardNode is the file a compute program opens: the render node, or NVIDIA's
// own.
func cardNode(root fs.FS, d pciDevice, c Card, m Machine, a Answers) Node {
	if c.Driver == "nvidia" {
		minor := "0"
		if v, ok := keyed(text(root, "proc/driver/nvidia/gpus/"+string(c.PCI)+"/information"), "Device Minor"); ok {
			minor = v
		}
		return nodeOf(root, "/dev/nvidia"+minor, m.Host.User, m.Host.groups, a)
	}
	for _, n := range names(root, d.dir+"/drm") {
		if strings.HasPrefix(n, "renderD") {
			return nodeOf(root, "/dev/dri/"+n, m.Host.User, m.Host.groups, a)
		}
	}
	for _, n := range names(root, "sys/class/drm") {
		if strings.HasPrefix(n, "renderD") && slot(root, "sys/class/drm/"+n+"/device") == string(c.PCI) {
			return nodeOf(root, "/dev/dri/"+n, m.Host.User, m.Host.groups, a)
		}
	}
	why := "the kernel driver made no render node"
	if c.Driver == "" {
		why = "no kernel driver is bound"
	}
	return Node{GID: -1, Access: Unknown[bool]("/"+d.dir+"/drm", why), Group: Unknown[string]("/"+d.dir+"/drm", why)}
}

// nvidiaFiles reads what the proprietary driver puts in /proc.
func nvidiaFiles(root fs.FS, c *Card) {
	s := text(root, "proc/driver/nvidia/gpus/"+string(c.PCI)+"/information")
	if v, ok := keyed(s, "Model"); ok && v != "" && v != "Unknown" {
		c.Name = v
	}
	if v, ok := keyed(s, "GPU UUID"); ok && strings.HasPrefix(v, "GPU-") && !strings.Contains(v, "?") {
		c.UUID = Known(v, "/proc/driver/nvidia/gpus/"+string(c.PCI)+"/information")
	}
}

// wsl adds what can be known where Windows has the card: no sysfs, only the
// door to it.
func (m *Machine) wsl(root fs.FS, a Answers) {
	n := nodeOf(root, "/dev/dxg", m.Host.User, m.Host.groups, a)
	if n.Access.Why == "no such file" {
		m.Notes = append(m.Notes, "WSL without /dev/dxg: Windows gives this system no graphics card")
		return
	}
	if len(m.Cards) > 0 {
		return
	}
	why := "under WSL the card belongs to Windows: there is no sysfs, hwmon or fdinfo for it here"
	u := Unknown[int64]("/dev/dxg", why)
	c := Card{
		Name: "graphics of the Windows host", Driver: "dxg", Node: n, UUID: Unknown[string]("/dev/dxg", why), DriverVersion: Unknown[string]("/dev/dxg", why),
		Memory: Memory{Total: u, Usable: u, GBs: Unknown[int]("/dev/dxg", why)},
		BAR:    BAR{Size: u, Resizable: Unknown[bool]("/dev/dxg", why)},
		Link:   Link{Speed: Unknown[float64]("/dev/dxg", why), Width: Unknown[int]("/dev/dxg", why), MaxSpeed: Unknown[float64]("/dev/dxg", why), MaxWidth: Unknown[int]("/dev/dxg", why)},
	}
	// Which vendor: only the libraries Windows mounts tell.
	switch {
	case exists(root, "usr/lib/wsl/lib/libnvidia-ml.so.1"):
		c.Vendor, c.Arch, c.Name = NVIDIA, NVIDIAOther, "NVIDIA graphics of the Windows host"
	case m.UserMode.ZeIntel.Found:
		c.Vendor, c.Arch, c.Name = Intel, IntelOther, "Intel graphics of the Windows host"
	case m.UserMode.HIP.Found:
		c.Vendor, c.Arch, c.Name = AMD, AMDOther, "AMD graphics of the Windows host"
	}
	c.PCI = "wsl:dxg"
	c.Discrete = true
	if v := a.int("vram.total wsl:dxg", ""); v.Known {
		c.Memory.Total, c.Memory.Usable = v, v
	}
	if v, ok := a["name wsl:dxg"]; ok {
		c.Name = v.Value
	}
	m.Cards = append(m.Cards, c)
	m.Notes = append(m.Notes, "WSL: "+why)
}

// note says in words what a reader of the facts should know.
func (m *Machine) note(root fs.FS) {
	real := 0
	for _, c := range m.Cards {
		if !c.Virtual {
			real++
		}
		if c.Arch == IntelOther || c.Arch == AMDOther || c.Arch == NVIDIAOther {
			if c.PCI != "wsl:dxg" {
				m.Notes = append(m.Notes, fmt.Sprintf("%s (%s) is not in our table: its generation is unknown, so the recipe has only what holds for every card of the vendor", c.PCI, c.ID()))
			}
		}
	}
	switch {
	case real == 0 && m.Host.Virtual == "container":
		m.Notes = append(m.Notes, "no card is visible in this container: device files must be passed in (for example --device /dev/dri); the CPU runs the model")
	case real == 0:
		m.Notes = append(m.Notes, "no graphics card: the CPU runs the model")
	}
	if m.Host.Virtual == "container" && real > 0 {
		nodes := false
		for _, c := range m.Cards {
			nodes = nodes || c.Node.Access.Known || c.Node.GID >= 0
		}
		if !nodes {
			m.Notes = append(m.Notes, "cards are visible but this container has no device files for them")
		}
	}
	if !exists(root, "sys/bus/pci") && !exists(root, "sys/class/drm") {
		m.Notes = append(m.Notes, "there is no /sys with devices here: cards cannot be listed")
	}
}

// Card gives the card at an address, or nil.
func (m *Machine) Card(p PCI) *Card {
	for i := range m.Cards {
		if m.Cards[i].PCI == p {
			return &m.Cards[i]
		}
	}
	return nil
}

// file names a file of the card in sysfs.
func (c Card) file(name string) string { return path.Join(c.Sysfs, name) }
