package gpu

import (
	"encoding/binary"
	"fmt"
)

// region is one memory of a card as the kernel's query tells it.
type region struct {
	device  bool // the card's own memory
	total   uint64
	used    uint64
	visible uint64 // part the CPU can reach; 0: not told
}

const regionSize = 88 // both drivers' structure of one region

// parseXeRegions reads the answer of DRM_XE_DEVICE_QUERY_MEM_REGIONS: a count and
// regions of class, instance, page size, total_size, used, cpu_visible_size
// (kernel uapi xe_drm.h).
func parseXeRegions(b []byte) ([]region, error) {
	if len(b) < 8 {
		return nil, fmt.Errorf("xe memory query: %d bytes", len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	if n > 64 || len(b) < 8+int(n)*regionSize {
		return nil, fmt.Errorf("xe memory query: %d regions in %d bytes", n, len(b))
	}
	out := make([]region, n)
	for i := range out {
		r := b[8+i*regionSize:]
		out[i] = region{
			device:  binary.LittleEndian.Uint16(r) == 1,
			total:   binary.LittleEndian.Uint64(r[8:]),
			used:    binary.LittleEndian.Uint64(r[16:]),
			visible: binary.LittleEndian.Uint64(r[24:]),
		}
	}
	return out, nil
}

// parseI915Regions reads the answer of DRM_I915_QUERY_MEMORY_REGIONS: a count
// and regions of class, instance, probed_size, unallocated_size,
// probed_cpu_visible_size (kernel uapi i915_drm.h).
func parseI915Regions(b []byte) ([]region, error) {
	if len(b) < 16 {
		return nil, fmt.Errorf("i915 memory query: %d bytes", len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	if n > 64 || len(b) < 16+int(n)*regionSize {
		return nil, fmt.Errorf("i915 memory query: %d regions in %d bytes", n, len(b))
	}
	out := make([]region, n)
	for i := range out {
		r := b[16+i*regionSize:]
		probed, left := binary.LittleEndian.Uint64(r[8:]), binary.LittleEndian.Uint64(r[16:])
		out[i] = region{device: binary.LittleEndian.Uint16(r) == 1, total: probed, visible: binary.LittleEndian.Uint64(r[24:])}
		if left <= probed {
			out[i].used = probed - left
		}
	}
	return out, nil
}

// sumRegions adds the card's own regions.
func sumRegions(rs []region) (total, used, visible int64) {
	for _, r := range rs {
		if !r.device || r.total > 1<<50 {
			continue
		}
		total += int64(r.total)
		used += int64(min(r.used, r.total))
		visible += int64(min(r.visible, r.total))
	}
	return
}

// parseXeVersion reads the answer of DRM_XE_DEVICE_QUERY_GT_LIST: a count and
// graphics units of type, tile, id, clock, memory masks and IP version. The
// version of the first main unit is the card's, as "major.minor".
func parseXeVersion(b []byte) (string, error) {
	const size = 96 // one unit
	if len(b) < 8 {
		return "", fmt.Errorf("xe unit query: %d bytes", len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	if n == 0 || n > 64 || len(b) < 8+int(n)*size {
		return "", fmt.Errorf("xe unit query: %d units in %d bytes", n, len(b))
	}
	for i := range int(n) {
		u := b[8+i*size:]
		if binary.LittleEndian.Uint16(u) != 0 {
			continue // a media unit
		}
		if major := binary.LittleEndian.Uint16(u[32:]); major > 0 {
			return fmt.Sprintf("%d.%d", major, binary.LittleEndian.Uint16(u[34:])), nil
		}
	}
	return "", fmt.Errorf("xe unit query: no version (kernel before 6.8)")
}

// archOfIP gives the generation of a graphics IP version, for cards whose id is
// in no table: 12.55 to 12.57 is DG2, 20.1 Battlemage, 20.4 Lunar Lake.
func archOfIP(ip string) Arch {
	var major, minor int
	if n, _ := fmt.Sscanf(ip, "%d.%d", &major, &minor); n != 2 {
		return IntelOther
	}
	switch {
	case major == 12 && minor >= 55 && minor <= 57:
		return Alchemist
	case major == 12 && minor == 60:
		return PonteVecc
	case major == 12 && (minor == 70 || minor == 71):
		return MeteorLake
	case major == 12 && minor == 74:
		return ArrowLakeH
	case major == 12 && minor <= 10:
		return XeLP
	case major == 20 && minor == 4:
		return LunarLake
	case major == 20:
		return Battlemage
	case major == 30:
		return PantherLake
	}
	return IntelOther
}
