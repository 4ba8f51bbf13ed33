//go:build linux || windows

package gpu

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
)

// nvml is NVIDIA's management library. It is loaded at run time; a machine
// without it has no nvml, and the readings say so. The layouts are those of
// NVIDIA's nvml.h; functions a driver lacks leave their reading unknown.
type nvml struct {
	dev  map[PCI]uintptr
	init func() int32
	shut func() int32

	handle  func(bus string, dev *uintptr) int32
	mem2    func(dev uintptr, m *nvmlMemory2) int32
	mem1    func(dev uintptr, m *nvmlMemory1) int32
	name    func(dev uintptr, buf *byte, n uint32) int32
	uuid    func(dev uintptr, buf *byte, n uint32) int32
	temp    func(dev uintptr, sensor int32, t *uint32) int32
	power   func(dev uintptr, mw *uint32) int32
	limit   func(dev uintptr, mw *uint32) int32
	fan     func(dev uintptr, percent *uint32) int32
	clock   func(dev uintptr, kind int32, mhz *uint32) int32
	util    func(dev uintptr, u *nvmlUtil) int32
	slow    func(dev uintptr, reasons *uint64) int32
	cc      func(dev uintptr, major, minor *int32) int32
	gen     func(dev uintptr, v *uint32) int32
	width   func(dev uintptr, v *uint32) int32
	bar1    func(dev uintptr, b *nvmlBAR1) int32
	lists   nvmlLists
	version func(buf *byte, n uint32) int32
}

type nvmlMemory2 struct {
	version                     uint32
	_                           uint32
	total, reserved, free, used uint64
}

type nvmlMemory1 struct{ total, free, used uint64 }
type nvmlUtil struct{ gpu, memory uint32 }
type nvmlBAR1 struct{ total, free, used uint64 }

const nvmlSource = "NVML"

// openNVML loads and starts the library.
func openNVML() (*nvml, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, fmt.Errorf("NVML: not on %s", runtime.GOARCH)
	}
	h, err := openLib("libnvidia-ml.so.1", "nvml.dll", "/usr/lib/wsl/lib/libnvidia-ml.so.1")
	if err != nil {
		return nil, fmt.Errorf("NVML: %w", err)
	}
	n := &nvml{dev: map[PCI]uintptr{}}
	for _, s := range []struct {
		name string
		f    any
	}{{"nvmlInit_v2", &n.init}, {"nvmlShutdown", &n.shut}, {"nvmlDeviceGetHandleByPciBusId_v2", &n.handle}} {
		if err := bind(h, s.name, s.f); err != nil {
			return nil, fmt.Errorf("NVML: %w", err)
		}
	}
	for _, s := range []struct {
		name string
		f    any
	}{
		{"nvmlDeviceGetMemoryInfo_v2", &n.mem2}, {"nvmlDeviceGetMemoryInfo", &n.mem1}, {"nvmlDeviceGetName", &n.name}, {"nvmlDeviceGetUUID", &n.uuid},
		{"nvmlDeviceGetTemperature", &n.temp}, {"nvmlDeviceGetPowerUsage", &n.power}, {"nvmlDeviceGetEnforcedPowerLimit", &n.limit}, {"nvmlDeviceGetFanSpeed", &n.fan},
		{"nvmlDeviceGetClockInfo", &n.clock}, {"nvmlDeviceGetUtilizationRates", &n.util}, {"nvmlDeviceGetCurrentClocksThrottleReasons", &n.slow},
		{"nvmlDeviceGetCudaComputeCapability", &n.cc}, {"nvmlDeviceGetCurrPcieLinkGeneration", &n.gen}, {"nvmlDeviceGetCurrPcieLinkWidth", &n.width},
		{"nvmlDeviceGetBAR1MemoryInfo", &n.bar1}, {"nvmlSystemGetDriverVersion", &n.version},
	} {
		_ = bind(h, s.name, s.f) // stays nil: that reading is unknown
	}
	for kind, f := range map[string]any{"Compute": &n.lists.compute, "Graphics": &n.lists.graphics} {
		for _, name := range nvmlListNames(kind) {
			if bind(h, name, f) == nil {
				break
			}
		}
	}
	if rc := n.init(); rc != 0 {
		return nil, fmt.Errorf("NVML: nvmlInit_v2 gives %s", nvmlError(rc))
	}
	return n, nil
}

func (n *nvml) close() { n.shut() }

// device gives the handle of a card by its address, never by a number.
func (n *nvml) device(p PCI) (uintptr, error) {
	if d, ok := n.dev[p]; ok {
		return d, nil
	}
	var d uintptr
	if rc := n.handle(string(p), &d); rc != 0 {
		return 0, fmt.Errorf("nvmlDeviceGetHandleByPciBusId gives %s", nvmlError(rc))
	}
	n.dev[p] = d
	return d, nil
}

func nvmlError(rc int32) string {
	switch rc {
	case 3:
		return "not supported"
	case 4:
		return "no permission"
	case 6:
		return "not found"
	case 9:
		return "driver not loaded"
	case 12:
		return "library not found"
	case 15:
		return "the card is lost"
	case 18:
		return "driver and library differ in version: boot again after the update"
	}
	return fmt.Sprintf("error %d", rc)
}

// text calls a function that fills a string.
func (n *nvml) text(f func(uintptr, *byte, uint32) int32, d uintptr) string {
	if f == nil {
		return ""
	}
	var b [128]byte
	if f(d, &b[0], uint32(len(b))) != 0 {
		return ""
	}
	s, _, _ := bytes.Cut(b[:], []byte{0})
	return string(s)
}

// num calls a function that fills an unsigned number.
func (n *nvml) num(what string, f func(uintptr, *uint32) int32, d uintptr, k float64) Reading[float64] {
	if f == nil {
		return Unknown[float64](nvmlSource, what+": this driver has no such call")
	}
	var v uint32
	if rc := f(d, &v); rc != 0 {
		return Unknown[float64](nvmlSource, what+": "+nvmlError(rc))
	}
	return Known(float64(v)*k, nvmlSource)
}

// memory gives total and used bytes.
func (n *nvml) memory(p PCI) VRAMAnswer {
	d, err := n.device(p)
	if err != nil {
		return VRAMAnswer{Source: nvmlSource + " (" + err.Error() + ")"}
	}
	if n.mem2 != nil {
		m := nvmlMemory2{version: 40 | 2<<24}
		if n.mem2(d, &m) == 0 && m.total > 0 && m.total < 1<<60 {
			// What the driver keeps for itself is not free.
			return VRAMAnswer{Source: nvmlSource, Total: int64(m.total), Used: int64(m.total - min(m.free, m.total)), HaveUsed: true}
		}
	}
	if n.mem1 != nil {
		var m nvmlMemory1
		if n.mem1(d, &m) == 0 && m.total > 0 && m.total < 1<<60 {
			return VRAMAnswer{Source: nvmlSource, Total: int64(m.total), Used: int64(m.total - min(m.free, m.total)), HaveUsed: true}
		}
	}
	// GB10 and other unified systems answer "not supported".
	return VRAMAnswer{Source: nvmlSource + " (memory: not supported on this device)"}
}

// fill reads a card's sensors.
func (n *nvml) fill(p PCI, r *CardReadings) {
	d, err := n.device(p)
	if err != nil {
		u := Unknown[float64](nvmlSource, err.Error())
		r.Busy, r.Temp, r.TempVRAM, r.Power, r.PowerMax, r.Fan, r.Clock, r.ClockMem = u, u, u, u, u, u, u, u
		return
	}
	r.Temp = Unknown[float64](nvmlSource, "this driver has no such call")
	if n.temp != nil {
		r.Temp = n.num("temperature", func(d uintptr, v *uint32) int32 { return n.temp(d, 0, v) }, d, 1)
	}
	r.TempVRAM = Unknown[float64](nvmlSource, "not told by this call")
	r.Power = n.num("power", n.power, d, 1e-3)
	r.PowerMax = n.num("power limit", n.limit, d, 1e-3)
	r.Fan, r.FanUnit = n.num("fan", n.fan, d, 1), "%"
	if n.clock != nil {
		r.Clock = n.num("clock", func(d uintptr, v *uint32) int32 { return n.clock(d, 1, v) }, d, 1)
		r.ClockMem = n.num("memory clock", func(d uintptr, v *uint32) int32 { return n.clock(d, 2, v) }, d, 1)
	}
	r.Busy = Unknown[float64](nvmlSource, "this driver has no such call")
	if n.util != nil {
		var u nvmlUtil
		if rc := n.util(d, &u); rc == 0 && u.gpu <= 100 {
			r.Busy = Known(float64(u.gpu), nvmlSource)
		} else {
			r.Busy = Unknown[float64](nvmlSource, nvmlError(rc))
		}
	}
	r.Throttle = Unknown[string](nvmlSource, "this driver has no such call")
	if n.slow != nil {
		var m uint64
		if rc := n.slow(d, &m); rc == 0 {
			r.Throttle = Known(nvmlReasons(m), nvmlSource)
		} else {
			r.Throttle = Unknown[string](nvmlSource, nvmlError(rc))
		}
	}
	if g, w := n.num("link", n.gen, d, 1), n.num("link", n.width, d, 1); g.Known && w.Known && g.Value >= 1 && g.Value <= 7 {
		r.Link.Speed = Known([]float64{2.5, 5, 8, 16, 32, 64, 128}[int(g.Value)-1], nvmlSource)
		r.Link.Width = Known(int(w.Value), nvmlSource)
	}
}

// nvmlReasons names what holds the clock down; idle and a set clock do not.
func nvmlReasons(m uint64) string {
	var on []string
	for _, r := range []struct {
		bit  uint64
		name string
	}{{0x4, "power limit"}, {0x8, "hardware slowdown"}, {0x20, "thermal, software"}, {0x40, "thermal, hardware"}, {0x80, "power brake"}} {
		if m&r.bit != 0 {
			on = append(on, r.name)
		}
	}
	return strings.Join(on, ", ")
}

// answers are the facts of detection that only NVML tells.
func (n *nvml) answers(cards []Card, a Answers) {
	for _, c := range cards {
		if c.Vendor != NVIDIA {
			continue
		}
		d, err := n.device(c.PCI)
		if err != nil {
			continue
		}
		put := func(key, v string) {
			if v != "" {
				a[key+" "+string(c.PCI)] = Answer{v, nvmlSource}
			}
		}
		put("name", n.text(n.name, d))
		put("uuid", n.text(n.uuid, d))
		if m := n.memory(c.PCI); m.Total > 0 {
			put("vram.total", fmt.Sprint(m.Total))
		}
		if n.cc != nil {
			var major, minor int32
			if n.cc(d, &major, &minor) == 0 {
				put("cc", fmt.Sprintf("%d.%d", major, minor))
			}
		}
		if n.bar1 != nil {
			var b nvmlBAR1
			if n.bar1(d, &b) == 0 && b.total > 0 {
				put("vram.visible", fmt.Sprint(b.total))
			}
		}
	}
	if n.version != nil {
		var b [96]byte
		if n.version(&b[0], uint32(len(b))) == 0 {
			s, _, _ := bytes.Cut(b[:], []byte{0})
			a["nvidia"] = Answer{string(s), nvmlSource}
		}
	}
}
