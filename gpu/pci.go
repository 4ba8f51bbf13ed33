package gpu

import (
	"io/fs"
	"path"
	"sort"
	"strconv"
	"strings"
)

const pciDir = "sys/bus/pci/devices"

// pciDevice is one function below sys/bus/pci/devices that may be a card.
type pciDevice struct {
	addr PCI
	dir  string   // folder to read it in
	up   []string // folders of the bridges above it, nearest first
}

// displays lists the graphics devices: PCI class 03 (VGA, 3D, other display)
// and AMD's accelerators of class 12. Where a machine has no bus folder (some
// containers, cut-down recordings) the DRM cards are followed instead.
func displays(root fs.FS) []pciDevice {
	var out []pciDevice
	seen := map[PCI]bool{}
	for _, n := range names(root, pciDir) {
		d := device(root, path.Join(pciDir, n), n)
		c, ok := class(root, d.dir)
		if !ok {
			continue
		}
		v, _ := hex16(root, d.dir+"/vendor")
		if c>>16 == 0x03 || c>>8 == 0x1200 && v == AMD {
			out = append(out, d)
			seen[d.addr] = true
		}
	}
	for _, n := range names(root, "sys/class/drm") {
		if !strings.HasPrefix(n, "card") || strings.Contains(n, "-") {
			continue
		}
		dir := "sys/class/drm/" + n + "/device"
		addr := slot(root, dir)
		if addr == "" || seen[PCI(addr)] {
			continue
		}
		if _, ok := hex16(root, dir+"/vendor"); !ok {
			continue
		}
		out = append(out, device(root, dir, addr))
		seen[PCI(addr)] = true
	}
	sort.Slice(out, func(i, j int) bool { return out[i].addr < out[j].addr })
	return out
}

// slot tells the PCI address of a device folder, from its uevent or the name
// the link points to.
func slot(root fs.FS, dir string) string {
	for line := range strings.Lines(text(root, dir+"/uevent")) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "PCI_SLOT_NAME="); ok {
			return v
		}
	}
	if t := link(root, dir); isAddr(path.Base(t)) {
		return path.Base(t)
	}
	return ""
}

// isAddr says whether a folder name is a PCI address.
func isAddr(s string) bool {
	if len(s) < 12 || s[len(s)-2] != '.' {
		return false
	}
	return strings.Count(s, ":") == 2
}

// device resolves the link to the device's place in the tree, which tells the
// bridges above it.
func device(root fs.FS, dir, addr string) pciDevice {
	d := pciDevice{addr: PCI(strings.ToLower(addr)), dir: dir}
	t := link(root, dir)
	if t == "" {
		return d
	}
	if exists(root, t) {
		d.dir = t
	}
	for p := path.Dir(t); isAddr(path.Base(p)); p = path.Dir(p) {
		d.up = append(d.up, p)
	}
	return d
}

func class(root fs.FS, dir string) (uint32, bool) {
	v, err := strconv.ParseUint(strings.TrimPrefix(text(root, dir+"/class"), "0x"), 16, 32)
	return uint32(v), err == nil
}

// driverOf gives the bound kernel driver, "" for none.
func driverOf(root fs.FS, dir string) string {
	if t := link(root, dir+"/driver"); t != "" {
		return path.Base(t)
	}
	for line := range strings.Lines(text(root, dir+"/uevent")) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "DRIVER="); ok {
			return v
		}
	}
	return ""
}

// resource is one line of a device's resource file.
type resource struct {
	Size     int64
	Memory   bool
	Prefetch bool
}

// parseResources reads the resource file: start, end and flags per line, all
// zero for an unused one. Only the six BARs are kept.
func parseResources(s string) []resource {
	var out []resource
	for line := range strings.Lines(s) {
		if len(out) == 6 {
			break
		}
		f := strings.Fields(line)
		var r resource
		if len(f) == 3 {
			start, e1 := strconv.ParseUint(strings.TrimPrefix(f[0], "0x"), 16, 64)
			end, e2 := strconv.ParseUint(strings.TrimPrefix(f[1], "0x"), 16, 64)
			flags, e3 := strconv.ParseUint(strings.TrimPrefix(f[2], "0x"), 16, 64)
			if e1 == nil && e2 == nil && e3 == nil && end > start && end-start < 1<<62 {
				r = resource{int64(end-start) + 1, flags&0x200 != 0, flags&0x2000 != 0}
			}
		}
		out = append(out, r)
	}
	return out
}

// aperture picks the BAR through which the CPU sees the card's memory: BAR 2 on
// Intel, BAR 0 on AMD, BAR 1 on NVIDIA, which is the largest prefetchable one
// everywhere.
func aperture(rs []resource) int64 {
	var best int64
	for _, r := range rs {
		if r.Memory && r.Prefetch && r.Size > best {
			best = r.Size
		}
	}
	return best
}

// barOf reads the aperture's size.
func barOf(root fs.FS, dir string) BAR {
	src := "/" + dir + "/resource"
	b := BAR{
		Resizable: Unknown[bool](src, "size of the card's memory unknown"),
		Resize:    exists(root, dir+"/resource2_resize") || exists(root, dir+"/resource0_resize") || exists(root, dir+"/resource1_resize"),
	}
	s, err := read(root, dir+"/resource")
	if err != nil {
		b.Size = Unknown[int64](src, reason(err))
		b.Resizable = Unknown[bool](src, reason(err))
		return b
	}
	if n := aperture(parseResources(s)); n > 0 {
		b.Size = Known(n, src)
	} else {
		b.Size = Unknown[int64](src, "no prefetchable memory region")
	}
	return b
}

// linkOf reads the link to the slot. Arc and newer Radeon cards carry a switch:
// the function's parent and grandparent are bridges of the card's own vendor
// and neither is a root port, and only the switch's upstream port, two levels
// up, knows the slot's speed.
func linkOf(root fs.FS, d pciDevice, vendor uint16) Link {
	dir, at := d.dir, d.addr
	if len(d.up) >= 2 && ownBridge(root, d.up[0], vendor) && ownBridge(root, d.up[1], vendor) {
		dir, at = d.up[1], PCI(path.Base(d.up[1]))
	} else if len(d.up) == 0 && (vendor == Intel || vendor == AMD) && !strings.HasPrefix(string(d.addr), "0000:00:") {
		why := "the device's place behind its bridges is not recorded, and the card itself always says 2.5 GT/s x1"
		if vendor == AMD {
			why = "the device's place behind its bridges is not recorded, and the card itself says its own maximum"
		}
		src := "/" + d.dir
		return Link{Speed: Unknown[float64](src, why), Width: Unknown[int](src, why), MaxSpeed: Unknown[float64](src, why), MaxWidth: Unknown[int](src, why)}
	}
	return Link{
		Speed:    speed(root, dir+"/current_link_speed"),
		Width:    width(root, dir+"/current_link_width"),
		MaxSpeed: speed(root, dir+"/max_link_speed"),
		MaxWidth: width(root, dir+"/max_link_width"),
		At:       at,
	}
}

// ownBridge says whether a folder is a PCI bridge of the vendor that is not a
// root port (those sit on bus 0).
func ownBridge(root fs.FS, dir string, vendor uint16) bool {
	a := path.Base(dir)
	if len(a) < 7 || a[5:7] == "00" {
		return false
	}
	v, ok := hex16(root, dir+"/vendor")
	c, ok2 := class(root, dir)
	return ok && ok2 && v == vendor && c>>8 == 0x0604
}

func speed(root fs.FS, name string) Reading[float64] {
	s, err := read(root, name)
	if err != nil {
		return Unknown[float64]("/"+name, reason(err))
	}
	f := strings.Fields(s)
	if len(f) > 0 {
		if v, err := strconv.ParseFloat(f[0], 64); err == nil && v > 0 && v < 1000 {
			return Known(v, "/"+name)
		}
	}
	return Unknown[float64]("/"+name, "not a speed: "+clip(s))
}

func width(root fs.FS, name string) Reading[int] {
	r := number(root, name)
	if !r.Known {
		return Unknown[int](r.Source, r.Why)
	}
	if r.Value <= 0 || r.Value > 64 {
		return Unknown[int](r.Source, "not a width: "+strconv.FormatInt(r.Value, 10))
	}
	return Known(int(r.Value), r.Source)
}
