//go:build linux || windows

package gpu

import (
	"fmt"
	"runtime"
)

// sysman reads Intel's sensors through Level Zero Sysman. It runs only in the
// helper process: Intel's driver writes to standard error, may end the process,
// and refuses zesInit where the old way of switching Sysman on was used. It is
// always started with zesInit, the only way that works on xe.
type sysman struct {
	init     func(flags uint32) uint32
	drivers  func(n *uint32, d *uintptr) uint32
	devices  func(driver uintptr, n *uint32, d *uintptr) uint32
	pci      func(dev uintptr, p *zesPCI) uint32
	mems     func(dev uintptr, n *uint32, h *uintptr) uint32
	memProps func(h uintptr, p *zesMemProps) uint32
	memState func(h uintptr, s *zesMemState) uint32
	temps    func(dev uintptr, n *uint32, h *uintptr) uint32
	tProps   func(h uintptr, p *zesTempProps) uint32
	tState   func(h uintptr, t *float64) uint32
}

// Structures of zes_api.h.
type zesPCI struct {
	stype                  uint32
	_                      uint32
	next                   uintptr
	domain, bus, dev, fn   uint32
	gen, width             int32
	bandwidth              int64
	_bandwidth, _pkt, _rep uint8
	_                      [5]byte
}

type zesMemProps struct {
	stype    uint32
	_        uint32
	next     uintptr
	kind     int32
	onSub    uint8
	_        [3]byte
	sub      uint32
	location int32
	physical uint64
	bus, ch  int32
}

type zesMemState struct {
	stype      uint32
	_          uint32
	next       uintptr
	health     int32
	_          int32
	free, size uint64
}

type zesTempProps struct {
	stype      uint32
	_          uint32
	next       uintptr
	kind       int32
	onSub      uint8
	_          [3]byte
	sub        uint32
	_          uint32
	max        float64
	_c, _1, _2 uint8
	_          [5]byte
}

// openSysman loads the Level Zero loader and starts Sysman.
func openSysman() (*sysman, error) {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return nil, fmt.Errorf("Sysman: not on %s", runtime.GOARCH)
	}
	h, err := openLib("libze_loader.so.1", "ze_loader.dll")
	if err != nil {
		return nil, fmt.Errorf("Sysman: %w", err)
	}
	s := &sysman{}
	for _, f := range []struct {
		name string
		p    any
	}{
		{"zesInit", &s.init}, {"zesDriverGet", &s.drivers}, {"zesDeviceGet", &s.devices}, {"zesDevicePciGetProperties", &s.pci},
		{"zesDeviceEnumMemoryModules", &s.mems}, {"zesMemoryGetProperties", &s.memProps}, {"zesMemoryGetState", &s.memState},
		{"zesDeviceEnumTemperatureSensors", &s.temps}, {"zesTemperatureGetProperties", &s.tProps}, {"zesTemperatureGetState", &s.tState},
	} {
		if err := bind(h, f.name, f.p); err != nil {
			return nil, fmt.Errorf("Sysman: %w (a loader from before zesInit)", err)
		}
	}
	if rc := s.init(0); rc != 0 {
		return nil, fmt.Errorf("Sysman: zesInit gives 0x%x", rc)
	}
	return s, nil
}

// list calls an enumeration twice, as Level Zero wants it.
func list(f func(n *uint32, h *uintptr) uint32) []uintptr {
	var n uint32
	if f(&n, nil) != 0 || n == 0 || n > 256 {
		return nil
	}
	hs := make([]uintptr, n)
	if f(&n, &hs[0]) != 0 {
		return nil
	}
	return hs[:min(int(n), len(hs))]
}

// cards reads memory and temperature of every device. Regions in system memory
// and values of integrated devices are left out: there Sysman's size and free are
// MemAvailable and MemFree under other names.
func (s *sysman) cards() []HelperCard {
	var out []HelperCard
	for _, dr := range list(s.drivers) {
		for _, d := range list(func(n *uint32, h *uintptr) uint32 { return s.devices(dr, n, h) }) {
			p := zesPCI{stype: 0x2}
			if s.pci(d, &p) != 0 {
				continue
			}
			c := HelperCard{PCI: PCI(fmt.Sprintf("%04x:%02x:%02x.%x", p.domain, p.bus, p.dev, p.fn)), Source: "Level Zero Sysman (zesMemoryGetState)"}
			for _, m := range list(func(n *uint32, h *uintptr) uint32 { return s.mems(d, n, h) }) {
				mp := zesMemProps{stype: 0xb}
				st := zesMemState{stype: 0x1e}
				if s.memProps(m, &mp) != 0 || mp.location != 1 || s.memState(m, &st) != 0 || st.size == 0 || st.size > 1<<50 {
					continue
				}
				c.Total += int64(st.size)
				c.Used += int64(st.size - min(st.free, st.size))
				c.HaveUsed = true
			}
			for _, t := range list(func(n *uint32, h *uintptr) uint32 { return s.temps(d, n, h) }) {
				tp := zesTempProps{stype: 0x14}
				var v float64
				if s.tProps(t, &tp) != 0 || s.tState(t, &v) != 0 || v < -50 || v > 200 {
					continue
				}
				switch tp.kind {
				case 1:
					c.Temp = v
				case 2:
					c.TempVRAM = v
				}
			}
			out = append(out, c)
		}
	}
	return out
}
