package gpu

import (
	"fmt"
	"io/fs"
	"strings"
)

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
