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

// totalVRAM asks in order: a driver call, the kernel's files, the model's
// nominal size where the id has one and the aperture does not contradict it.
func totalVRAM(root fs.FS, c Card, a Answers) Reading[int64] {
	if r := a.int("vram.total "+string(c.PCI), ""); r.Known && r.Value > 0 {
		return r
	}
	dir := c.Sysfs
	switch {
	case c.Virtual:
		return Unknown[int64]("/"+dir, "a virtual device has no memory of its own")
	case c.Vendor == AMD:
		r := number(root, dir+"/mem_info_vram_total")
		if r.Known && r.Value <= 0 {
			return Unknown[int64](r.Source, "driver says 0")
		}
		return r
	case c.Vendor == Intel && c.Memory.Shared:
		return Unknown[int64]("/"+dir, "integrated graphics has no memory of its own: it shares RAM")
	case c.Vendor == Intel:
		if r := tileVRAM(root, dir); r.Known {
			return r
		}
		for _, f := range []string{dir + "/lmem_total_bytes", "sys/class/drm/" + drmName(root, dir) + "/lmem_total_bytes"} {
			if r := number(root, f); r.Known && r.Value > 0 {
				return r
			}
		}
		if n := nominal(c); n > 0 {
			return Known(n, nominalSource)
		}
		return Unknown[int64]("/"+dir+", DRM query", "the kernel has no file for it and the model comes in more than one size")
	case c.Vendor == NVIDIA && c.Driver == "nvidia":
		return Unknown[int64]("NVML", "no answer")
	case c.Vendor == NVIDIA:
		return Unknown[int64]("/"+dir, "this driver has no file for it")
	}
	return Unknown[int64]("/"+dir, "no source known for this vendor")
}

// tileVRAM sums the physical memory of an xe card's tiles.
func tileVRAM(root fs.FS, dir string) Reading[int64] {
	var sum int64
	src := ""
	for _, n := range names(root, dir) {
		if !strings.HasPrefix(n, "tile") {
			continue
		}
		for _, f := range []string{"/physical_vram_size_bytes", "/memory/physical_vram_size_bytes"} {
			if r := number(root, dir+"/"+n+f); r.Known && r.Value > 0 && r.Value < 1<<50 {
				sum += r.Value
				src = r.Source
				break
			}
		}
	}
	if sum > 0 {
		return Known(sum, src)
	}
	return Unknown[int64]("/"+dir+"/tile*", "no such file")
}

// nominalGiB is the memory of Intel models that come in one size.
var nominalGiB = map[uint16]int64{
	0x56a1: 8, 0x56a2: 8, 0x56a5: 6, 0x56a6: 4, 0x56af: 16, 0x5690: 16, 0x5691: 12, 0x5692: 8, 0x5693: 4, 0x5694: 4, 0x5696: 8,
	0x56b0: 4, 0x56b1: 6, 0x56b2: 8, 0x56b3: 12, 0x56c0: 16, 0x56c1: 6,
	0xe20b: 12, 0xe209: 12, 0xe20c: 10, 0xe211: 24, 0xe212: 16, 0xe222: 32, 0xe223: 32,
}

// nominal gives the model's size. The A770 has one id for 8 and 16 GB: there a
// large enough aperture tells, because BAR sizes are powers of two.
func nominal(c Card) int64 {
	n := nominalGiB[c.Device] * gib
	if n == 0 && c.Device == 0x56a0 && (c.BAR.Size.Or(0) == 16*gib || c.BAR.Size.Or(0) == 8*gib) {
		n = c.BAR.Size.Value
	}
	return n
}

// usableVRAM is what Intel's user-mode driver hands out: 95 % on Linux, 98 % on
// Windows, and of RAM 94 % less 450 MB for integrated graphics (NEO's FAQ).
func usableVRAM(c Card, h Host) Reading[int64] {
	switch {
	case c.Vendor == Intel && c.Memory.Shared && h.Memory.Total.Known:
		return Known(max(h.Memory.Total.Value*94/100-450<<20, 0), "94 % of RAM less 450 MiB (intel/compute-runtime FAQ)")
	case c.Vendor == Intel && c.Memory.Total.Known && h.OS == "windows":
		return Known(c.Memory.Total.Value*98/100, "98 % of the total (intel/compute-runtime FAQ)")
	case c.Vendor == Intel && c.Memory.Total.Known:
		return Known(c.Memory.Total.Value*95/100, "95 % of the total (intel/compute-runtime FAQ)")
	case c.Memory.Total.Known:
		return c.Memory.Total
	}
	return Unknown[int64](c.Memory.Total.Source, c.Memory.Total.Why)
}

// resizable says whether the aperture covers the card's memory.
func resizable(root fs.FS, c Card, a Answers) Reading[bool] {
	if c.Memory.Shared || c.Virtual {
		return Unknown[bool]("", "not a card of its own")
	}
	vis := a.int("vram.visible "+string(c.PCI), "")
	if !vis.Known && c.Vendor == AMD {
		vis = number(root, c.Sysfs+"/mem_info_vis_vram_total")
	}
	if vis.Known && c.Memory.Total.Known {
		return Known(vis.Value >= c.Memory.Total.Value*9/10, vis.Source)
	}
	if !c.BAR.Size.Known {
		return Unknown[bool](c.BAR.Size.Source, c.BAR.Size.Why)
	}
	if !c.Memory.Total.Known {
		// Without the total, 256 MiB is still telling: no card we know has less
		// than 4 GB.
		if c.BAR.Size.Value <= 256<<20 {
			return Known(false, c.BAR.Size.Source)
		}
		return Unknown[bool](c.BAR.Size.Source, "size of the card's memory unknown")
	}
	// The kernel counts less than the BAR has: firmware takes its share.
	return Known(c.BAR.Size.Value >= c.Memory.Total.Value*9/10, c.BAR.Size.Source)
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

// kfdTarget reads the gfx target of an AMD card from the kfd topology, matched
// by its address: node numbers are no identity.
func kfdTarget(root fs.FS, p PCI) string {
	props := kfdNode(root, p)
	v, ok := parseInt(prop(props, "gfx_target_version"))
	if !ok || v <= 0 || v > 999999 {
		return ""
	}
	// decimal: major*10000 + minor*100 + step, the step printed in hexadecimal
	return fmt.Sprintf("gfx%d%d%x", v/10000, v/100%100, v%100)
}

func kfdUUID(root fs.FS, p PCI) string {
	v, ok := parseInt(prop(kfdNode(root, p), "unique_id"))
	if !ok || v == 0 {
		return ""
	}
	return fmt.Sprintf("GPU-%016x", uint64(v))
}

func kfdNode(root fs.FS, p PCI) string {
	const dir = "sys/class/kfd/kfd/topology/nodes"
	for _, n := range names(root, dir) {
		s := text(root, dir+"/"+n+"/properties")
		loc, ok := parseInt(prop(s, "location_id"))
		dom, _ := parseInt(prop(s, "domain"))
		if !ok || loc == 0 {
			continue
		}
		if fmt.Sprintf("%04x:%02x:%02x.%x", dom, loc>>8&0xff, loc>>3&0x1f, loc&7) == string(p) {
			return s
		}
	}
	return ""
}

func prop(s, key string) string {
	for line := range strings.Lines(s) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), " "); ok && k == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// archOfGFX gives the generation of a gfx target for cards whose id is new.
func archOfGFX(t string) Arch {
	switch t = strings.TrimPrefix(t, "gfx"); {
	case strings.HasPrefix(t, "12"):
		return RDNA4
	case strings.HasPrefix(t, "115"):
		return RDNA35
	case strings.HasPrefix(t, "11"):
		return RDNA3
	case strings.HasPrefix(t, "103"):
		return RDNA2
	case strings.HasPrefix(t, "101"):
		return RDNA1
	case strings.HasPrefix(t, "94"), strings.HasPrefix(t, "95"), t == "90a", t == "908":
		return CDNA
	case strings.HasPrefix(t, "9"), strings.HasPrefix(t, "8"):
		return GCN
	}
	return AMDOther
}

// file names a file of the card in sysfs.
func (c Card) file(name string) string { return path.Join(c.Sysfs, name) }
