package gpu

import (
	"io/fs"
	"strings"
)

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
