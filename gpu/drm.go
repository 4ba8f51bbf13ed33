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
