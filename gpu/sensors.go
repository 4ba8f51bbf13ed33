package gpu

import (
	"io/fs"
	"sort"
	"strings"
)

// sysfs fills the sensors that are files. The numbers of hwmon files differ by
// driver: xe has the package at temp2 and the memory at temp3, amdgpu edge,
// junction and memory at 1 to 3, i915 one temperature. Labels win where a driver
// writes them.
func (r *CardReadings) sysfs(s *Sampler, c Card, wall int64) {
	hw := s.hw[c.PCI]
	none := Unknown[float64]("/"+c.file("hwmon"), noSensor(c))
	r.Temp, r.TempVRAM, r.Power, r.PowerMax, r.Fan, r.Clock, r.ClockMem, r.Busy = none, none, none, none, none, none, none, none
	r.Throttle = Unknown[string]("/"+c.file(""), noSensor(c))
	r.GTT = Unknown[int64]("/"+c.file(""), noSensor(c))
	if hw != "" {
		r.Temp = scaled(s.root, hw+"/"+tempFile(s.root, hw, c.Driver, false), 1e-3, -50, 200)
		r.TempVRAM = scaled(s.root, hw+"/"+tempFile(s.root, hw, c.Driver, true), 1e-3, -50, 200)
		r.Fan = scaled(s.root, hw+"/fan1_input", 1, 0, 1e5)
		r.PowerMax = first(scaled(s.root, hw+"/power1_max", 1e-6, 0.001, 5e3), scaled(s.root, hw+"/power1_cap", 1e-6, 0.001, 5e3), scaled(s.root, hw+"/power1_rated_max", 1e-6, 0.001, 5e3))
		r.Power = first(scaled(s.root, hw+"/power1_average", 1e-6, 0, 5e3), scaled(s.root, hw+"/power1_input", 1e-6, 0, 5e3))
		if !r.Power.Known {
			r.Power = s.energyPower(c, hw, wall)
		}
	}
	switch c.Driver {
	case "xe":
		f := c.file("tile0/gt0/freq0")
		r.Clock = first(scaled(s.root, f+"/act_freq", 1, 0, 1e5), scaled(s.root, f+"/cur_freq", 1, 0, 1e5))
		r.Throttle = throttle(s.root, f+"/throttle")
	case "i915":
		d := c.file("drm/" + c.DRM)
		r.Clock = first(scaled(s.root, d+"/gt_act_freq_mhz", 1, 0, 1e5), scaled(s.root, d+"/gt/gt0/rps_act_freq_mhz", 1, 0, 1e5), scaled(s.root, d+"/gt_cur_freq_mhz", 1, 0, 1e5))
		r.Throttle = throttle(s.root, d+"/gt/gt0")
	case "amdgpu":
		r.Busy = scaled(s.root, c.file("gpu_busy_percent"), 1, 0, 100)
		if hw != "" {
			r.Clock = scaled(s.root, hw+"/freq1_input", 1e-6, 0, 1e5)
			r.ClockMem = scaled(s.root, hw+"/freq2_input", 1e-6, 0, 1e5)
		}
		r.GTT = number(s.root, c.file("mem_info_gtt_used"))
	}
}

// noSensor says why a driver has no such file.
func noSensor(c Card) string {
	switch c.Driver {
	case "":
		return "no kernel driver is bound"
	case "nvidia":
		return "NVIDIA's driver answers through NVML only"
	case "dxg":
		return "under WSL the card belongs to Windows"
	case "vfio-pci":
		return "the card is handed to a virtual machine"
	}
	return "the " + c.Driver + " driver of this kernel has no such file"
}

// first is First for readings of files that may be missing: the last reason is
// enough.
func first(rs ...Reading[float64]) Reading[float64] {
	for _, r := range rs {
		if r.Known {
			return r
		}
	}
	return rs[0]
}

// scaled reads a number file times k, refused outside lo..hi: sensors that are
// off answer nonsense.
func scaled(root fs.FS, name string, k, lo, hi float64) Reading[float64] {
	n := number(root, name)
	if !n.Known {
		return Unknown[float64](n.Source, n.Why)
	}
	v := float64(n.Value) * k
	if v < lo || v > hi {
		return Unknown[float64](n.Source, "out of range")
	}
	return Known(v, n.Source)
}

// tempFile finds the temperature of the chip or of its memory.
func tempFile(root fs.FS, hw, driver string, memory bool) string {
	want := []string{"pkg", "package", "junction", "edge", "gpu"}
	if memory {
		want = []string{"vram", "mem"}
	}
	ns := names(root, hw)
	sort.Strings(ns)
	for _, w := range want {
		for _, n := range ns {
			if strings.HasPrefix(n, "temp") && strings.HasSuffix(n, "_label") && strings.EqualFold(text(root, hw+"/"+n), w) {
				return strings.TrimSuffix(n, "_label") + "_input"
			}
		}
	}
	switch {
	case driver == "xe" && memory, driver == "amdgpu" && memory:
		return "temp3_input"
	case driver == "xe", driver == "amdgpu" && exists(root, hw+"/temp2_input"):
		return "temp2_input"
	case memory:
		return "temp_memory_input"
	}
	return "temp1_input"
}

// energyPower turns the growth of an energy counter (microjoules) into watts.
// A counter that went back gives no answer, not a negative power.
func (s *Sampler) energyPower(c Card, hw string, wall int64) Reading[float64] {
	e := number(s.root, hw+"/energy1_input")
	if !e.Known {
		return Unknown[float64](e.Source, e.Why)
	}
	old, ok := s.energy[c.PCI]
	s.energy[c.PCI] = e.Value
	switch {
	case !ok || wall <= 0:
		return Unknown[float64](e.Source, "power is the difference of two readings, and this is the first")
	case e.Value < old:
		return Unknown[float64](e.Source, "the counter started again")
	}
	return Known(float64(e.Value-old)*1e3/float64(wall), e.Source+" (difference)")
}

// throttle lists the reasons that hold the clock down.
func throttle(root fs.FS, dir string) Reading[string] {
	any := false
	var on []string
	for _, n := range names(root, dir) {
		rest, ok := strings.CutPrefix(n, "reason_")
		if !ok {
			rest, ok = strings.CutPrefix(n, "throttle_reason_")
		}
		if !ok || strings.HasSuffix(n, "_status") && rest == "status" {
			continue
		}
		any = true
		if text(root, dir+"/"+n) == "1" {
			on = append(on, strings.ReplaceAll(rest, "_", " "))
		}
	}
	if !any {
		return Unknown[string]("/"+dir, "no such file")
	}
	return Known(strings.Join(on, ", "), "/"+dir)
}
