// Package gpu finds the graphics cards of a machine and reads their sensors.
//
// It works from files: [Detect] takes the root of a file system that holds
// sys/, proc/, dev/ and, where they matter, etc/, usr/ and var/, so the machine
// in front of the user, a container and a recorded machine in a test are read
// by the same code. What only a running driver can answer (NVML, DRM ioctls,
// Level Zero Sysman) is added by a [Sampler] on the real machine.
//
// Every number that can be missing is a [Reading]: unknown is not zero.
package gpu

import "fmt"

// PCI is a card's address, domain:bus:device.function in lower case
// hexadecimal, such as 0000:03:00.0. It is the identity of a card everywhere:
// indices of drivers and libraries differ from each other and from boot to boot.
type PCI string

// PCI vendors.
const (
	Intel  uint16 = 0x8086
	AMD    uint16 = 0x1002
	NVIDIA uint16 = 0x10de
	Virtio uint16 = 0x1af4
	VMware uint16 = 0x15ad
	QXL    uint16 = 0x1b36
	Bochs  uint16 = 0x1234
	HyperV uint16 = 0x1414
	ASpeed uint16 = 0x1a03
	Matrox uint16 = 0x102b
)

// Card is one graphics device.
type Card struct {
	PCI      PCI    `json:"pci"`
	Vendor   uint16 `json:"vendor"`
	Device   uint16 `json:"device"`
	Name     string `json:"name"`  // from our own table; drivers older than the card give generic names
	Arch     Arch   `json:"arch"`  // from the PCI id, never from the driver's name
	Chip     string `json:"chip"`  // DG2-G10, BMG-G31, gfx1100, ...; empty when unknown
	Class    uint32 `json:"class"` // PCI class, 0x03xxxx
	Boot     bool   `json:"boot"`  // boot_vga: drives the console
	Discrete bool   `json:"discrete"`
	Virtual  bool   `json:"virtual"` // no card behind it: QXL, virtio, VMware, BMC

	Driver        string          `json:"driver"` // kernel driver bound: i915, xe, amdgpu, nvidia, nouveau, vfio-pci, ..., dxg under WSL, wddm on Windows; empty: none
	DriverVersion Reading[string] `json:"driver_version"`
	UUID          Reading[string] `json:"uuid"` // NVML or kfd identity, for selectors that take it

	Caps   Caps   `json:"caps"`
	Memory Memory `json:"memory"`
	BAR    BAR    `json:"bar"`
	Link   Link   `json:"link"`
	Node   Node   `json:"node"`

	Displays []string `json:"displays,omitempty"` // connectors with a screen: a card that drives a desktop needs a reserve
	DRM      string   `json:"drm,omitempty"`      // card0, card1, ...; changes between boots, never an identity
	Sysfs    string   `json:"-"`                  // the device's folder below the root
}

// Vendor names as people say them.
func (c Card) VendorName() string { return VendorName(c.Vendor) }

// VendorName gives the name of a PCI vendor, or its number.
func VendorName(v uint16) string {
	switch v {
	case Intel:
		return "Intel"
	case AMD:
		return "AMD"
	case NVIDIA:
		return "NVIDIA"
	case Virtio:
		return "virtio"
	case VMware:
		return "VMware"
	case QXL, Bochs:
		return "QEMU"
	case HyperV:
		return "Microsoft"
	case ASpeed:
		return "ASPEED"
	case Matrox:
		return "Matrox"
	}
	return fmt.Sprintf("vendor %04x", v)
}

// ID gives vendor:device in hexadecimal, as lspci -nn prints it.
func (c Card) ID() string { return fmt.Sprintf("%04x:%04x", c.Vendor, c.Device) }

// Compute says whether the card could run kernels at all with the driver it
// has: a real card, bound to a driver that has a compute path.
func (c Card) Compute() bool {
	if c.Virtual {
		return false
	}
	switch c.Driver {
	case "i915", "xe", "amdgpu", "nvidia", "dxg", "wddm":
		return true
	}
	return false
}

// Memory is what is known of a card's own memory without a driver call.
type Memory struct {
	Total  Reading[int64] `json:"total"`  // bytes of VRAM as the kernel counts them
	Usable Reading[int64] `json:"usable"` // bytes the user-mode driver will hand out (NEO keeps 5 % on Linux)
	Shared bool           `json:"shared"` // integrated: VRAM is a share of RAM
	GBs    Reading[int]   `json:"gb_s"`   // nominal bandwidth, from the table
}

// BAR is the size of the aperture through which the CPU sees the card's
// memory, and whether it covers all of it.
type BAR struct {
	Size      Reading[int64] `json:"size"`      // bytes
	Resizable Reading[bool]  `json:"resizable"` // covers the whole VRAM; false: resizable BAR is off
	Resize    bool           `json:"resize"`    // the kernel offers a resize file
}

// Link is the PCI Express link, read where it tells the truth: an Arc card
// sits behind a switch of its own and its endpoint always says 2.5 GT/s x1
// (intel/compute-runtime#916, Syllo/nvtop).
type Link struct {
	Speed    Reading[float64] `json:"speed_gt_s"`
	Width    Reading[int]     `json:"width"`
	MaxSpeed Reading[float64] `json:"max_speed_gt_s"`
	MaxWidth Reading[int]     `json:"max_width"`
	At       PCI              `json:"at,omitempty"` // device it was read at
}

// GBs gives the nominal rate of the link in GB/s, before protocol overhead.
func (l Link) GBs() Reading[float64] {
	if !l.Speed.Known {
		return Unknown[float64](l.Speed.Source, l.Speed.Why)
	}
	if !l.Width.Known {
		return Unknown[float64](l.Width.Source, l.Width.Why)
	}
	enc := 128.0 / 130
	if l.Speed.Value < 8 {
		enc = 0.8 // 8b/10b before generation 3
	}
	return Known(l.Speed.Value*float64(l.Width.Value)*enc/8, l.Speed.Source)
}

// Node is the device file through which a program reaches the card.
type Node struct {
	Path   string          `json:"path,omitempty"` // /dev/dri/renderD128, /dev/nvidia0, /dev/dxg
	Access Reading[bool]   `json:"access"`         // may this user open it for reading and writing
	Group  Reading[string] `json:"group"`          // group that may
	GID    int64           `json:"gid"`            // its number; -1 when unknown
}
