package gpu

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
)

// WindowsFile is the name, below the root of a recorded machine, of what a
// Windows machine answered. A root that has it is read by [DetectWindows].
const WindowsFile = "windows.json"

// WindowsAnswers is what Windows tells of its cards, as its own interfaces give
// it. On Windows it is asked for by probe_windows.go; everywhere else it comes
// from a recording, so that the decisions are tested on any machine.
type WindowsAnswers struct {
	Adapters []WinAdapter `json:"adapters"` // DXGI, DXGI_ADAPTER_DESC1
	Registry []WinKey     `json:"registry"` // display class keys
	Counters []WinCounter `json:"counters"` // PDH
	System   WinSystem    `json:"system"`
	Env      []string     `json:"env,omitempty"` // "NAME=value"
}

// WinAdapter is one DXGI adapter. Memory sizes are bytes.
type WinAdapter struct {
	Description string `json:"description"`
	Vendor      uint16 `json:"vendor"`
	Device      uint16 `json:"device"`
	Dedicated   int64  `json:"dedicated"` // DedicatedVideoMemory
	Shared      int64  `json:"shared"`    // SharedSystemMemory
	LUID        string `json:"luid"`      // 0xHIGH_0xLOW, as in counter names
	Bus         int    `json:"bus"`       // PCI bus; 0 for integrated graphics
	Dev         int    `json:"dev"`       // PCI device number
}

// WinKey is one key below the display class in the registry.
type WinKey struct {
	Key         string `json:"key"` // 0000, 0001, ...
	Description string `json:"description"`
	Matching    string `json:"matching"`       // MatchingDeviceId, PCI\VEN_8086&DEV_E223
	Memory      int64  `json:"qw_memory_size"` // HardwareInformation.qwMemorySize, 64 bits; the older value stops at 4 GB
	Version     string `json:"driver_version"`
	Bus         int    `json:"bus"`
}

// WinCounter is one performance counter.
type WinCounter struct {
	Path  string  `json:"path"`
	Value float64 `json:"value"`
}

// WinSystem is the machine around the cards. Sizes are bytes.
type WinSystem struct {
	Version     string `json:"version"`
	RAM         int64  `json:"ram_total"`
	Available   int64  `json:"ram_available"`
	CommitLimit int64  `json:"commit_limit"` // hard: private memory and pinned memory must fit in it
	CommitUsed  int64  `json:"commit_used"`
	CPU         string `json:"cpu"`
	Cores       int    `json:"cores"`
	Threads     int    `json:"threads"`
}

// windowsOf reads a recorded Windows machine; false when the root is none.
func windowsOf(root fs.FS) (WindowsAnswers, bool) {
	s, err := read(root, WindowsFile)
	if err != nil {
		return WindowsAnswers{}, false
	}
	w, err := ParseWindows([]byte(s))
	return w, err == nil
}

// ParseWindows reads recorded answers.
func ParseWindows(b []byte) (WindowsAnswers, error) {
	var w WindowsAnswers
	if err := json.Unmarshal(b, &w); err != nil {
		return w, fmt.Errorf("read windows answers: %w", err)
	}
	if len(w.Adapters) > 64 || len(w.Counters) > 1<<16 {
		return w, fmt.Errorf("read windows answers: %d adapters and %d counters are too many", len(w.Adapters), len(w.Counters))
	}
	return w, nil
}

// DetectWindows turns the answers into a machine. Adapters of Microsoft's
// software renderer are no cards.
func DetectWindows(w WindowsAnswers) Machine {
	m := Machine{Cards: []Card{}, Host: winHost(w), KFD: Node{GID: -1}}
	seen := map[PCI]bool{}
	for _, a := range w.Adapters {
		if a.Vendor == HyperV {
			continue
		}
		c := winCard(a, w)
		if seen[c.PCI] {
			continue // a card shows once for each output on some drivers
		}
		seen[c.PCI] = true
		c.Memory.Usable = usableVRAM(c, m.Host)
		m.Cards = append(m.Cards, c)
	}
	for i := range m.Cards {
		for j := i; j > 0 && m.Cards[j].PCI < m.Cards[j-1].PCI; j-- {
			m.Cards[j], m.Cards[j-1] = m.Cards[j-1], m.Cards[j]
		}
	}
	none := Unknown[string]("Windows", "one driver package holds kernel and user mode: see the driver version of the card")
	m.UserMode = UserMode{NEO: none, IGC: none, ROCm: none, NVIDIA: none, Mesa: none, OneAPI: none}
	if len(m.Cards) == 0 {
		m.Notes = append(m.Notes, "no graphics card: the CPU runs the model")
	}
	return m
}

func winHost(w WindowsAnswers) Host {
	s := w.System
	h := Host{OS: "windows", Kernel: s.Version, CPU: CPU{s.CPU, s.Cores, s.Threads}, User: User{UID: -1}, Env: FilterEnv(w.Env)}
	mem := func(v int64) Reading[int64] {
		if v > 0 {
			return Known(v, "GlobalMemoryStatusEx")
		}
		return Unknown[int64]("GlobalMemoryStatusEx", "no answer")
	}
	no := Unknown[int64]("Windows", "no such figure")
	h.Memory = Meminfo{Total: mem(s.RAM), Available: mem(s.Available), Free: no, Anon: no, Cached: no, Shmem: no, SwapTotal: no, SwapFree: no}
	h.Cgroup = Cgroup{Max: no, High: no, Current: no, Cache: no, Left: no, SwapMax: no, OOMKills: no}
	h.Memlock = Unknown[int64]("Windows", "the working set decides")
	h.Perfmon = Known(true, "performance counters are open to every user")
	h.Helper = Unknown[bool]("Windows", "not needed")
	h.Pressure = Unknown[Pressure]("", "")
	h.CommitLeft = no
	if s.CommitLimit > 0 {
		h.CommitLeft = Known(max(s.CommitLimit-s.CommitUsed, 0), "GlobalMemoryStatusEx, commit limit less commit charge")
	}
	return h
}

func winCard(a WinAdapter, w WindowsAnswers) Card {
	c := Card{Vendor: a.Vendor, Device: a.Device, Class: 0x030000, Driver: "wddm", Node: Node{GID: -1, Access: Known(true, "DXGI"), Group: Unknown[string]("Windows", "no groups for devices")}}
	var gbs int
	c.Name, c.Arch, c.Chip, gbs = Identify(a.Vendor, a.Device)
	if a.Description != "" {
		c.Name = a.Description
	}
	c.Caps = CapsOf(c.Arch, c.Chip)
	c.Discrete = discrete(nil, c, nil)
	dev := a.Dev
	if a.Bus == 0 && dev == 0 && a.Vendor == Intel {
		dev = 2 // integrated graphics is 00:02.0 on every machine seen
	}
	c.PCI = PCI(fmt.Sprintf("0000:%02x:%02x.0", a.Bus&0xff, dev&0x1f))
	c.Memory.Shared = !c.Discrete
	c.UUID = Unknown[string]("DXGI", "cards are told apart by LUID: "+a.LUID)
	c.Memory.GBs = Unknown[int]("table of card models", "no figure for this model")
	if gbs > 0 {
		c.Memory.GBs = Known(gbs, "table of card models (nominal)")
	}
	c.DriverVersion = Unknown[string]("registry", "no key of the display class matches this card")
	c.Memory.Total = Unknown[int64]("DXGI", "no dedicated memory")
	if a.Dedicated > 0 {
		c.Memory.Total = Known(a.Dedicated, "DXGI DedicatedVideoMemory")
	}
	if k, ok := winKey(a, w); ok {
		if k.Version != "" {
			c.DriverVersion = Known(k.Version, "registry, display class "+k.Key)
		}
		if k.Memory > 0 {
			c.Memory.Total = Known(k.Memory, "registry, qwMemorySize")
		}
	}
	if c.Memory.Shared {
		c.Memory.Total = Unknown[int64]("DXGI", "integrated graphics shares RAM")
	}
	why := "Windows does not tell"
	c.BAR = BAR{Size: Unknown[int64]("DXGI", why), Resizable: Unknown[bool]("DXGI", why)}
	c.Link = Link{Speed: Unknown[float64]("DXGI", why), Width: Unknown[int]("DXGI", why), MaxSpeed: Unknown[float64]("DXGI", why), MaxWidth: Unknown[int]("DXGI", why)}
	return c
}

// winKey finds the registry key of an adapter by id and, when two cards are the
// same, by bus.
func winKey(a WinAdapter, w WindowsAnswers) (WinKey, bool) {
	id := fmt.Sprintf("VEN_%04X&DEV_%04X", a.Vendor, a.Device)
	var found *WinKey
	for i, k := range w.Registry {
		if !strings.Contains(strings.ToUpper(k.Matching), id) {
			continue
		}
		if k.Bus == a.Bus {
			return k, true
		}
		if found == nil {
			found = &w.Registry[i]
		}
	}
	if found != nil {
		return *found, true
	}
	return WinKey{}, false
}

// winReadings are one adapter's counters.
type winReadings struct {
	dedicated, shared Reading[int64]
	busy              Reading[float64]
	procs             []ProcVRAM
}

// winCounters picks an adapter's counters by its LUID: indices of Windows,
// Vulkan and the vendor's libraries have nothing to do with each other.
func winCounters(w WindowsAnswers, luid string) winReadings {
	no := "no counter for this adapter"
	r := winReadings{Unknown[int64]("PDH GPU Adapter Memory, Dedicated Usage", no), Unknown[int64]("PDH GPU Adapter Memory, Shared Usage", no), Unknown[float64]("PDH GPU Engine, Utilization Percentage", no), nil}
	procs := map[int]*ProcVRAM{}
	engines := map[string]float64{}
	for _, c := range w.Counters {
		if luid == "" || !strings.Contains(strings.ToLower(c.Path), "luid_"+strings.ToLower(luid)) || c.Value < 0 || c.Value != c.Value {
			continue
		}
		v := clampInt(c.Value)
		switch {
		case strings.Contains(c.Path, "GPU Adapter Memory(") && strings.HasSuffix(c.Path, "Dedicated Usage"):
			r.dedicated = Known(v, "PDH "+c.Path)
		case strings.Contains(c.Path, "GPU Adapter Memory(") && strings.HasSuffix(c.Path, "Shared Usage"):
			r.shared = Known(v, "PDH "+c.Path)
		case strings.Contains(c.Path, "GPU Process Memory("):
			if pid, ok := winPID(c.Path); ok {
				p := procs[pid]
				if p == nil {
					p = &ProcVRAM{PID: pid}
					procs[pid] = p
				}
				if strings.HasSuffix(c.Path, "Dedicated Usage") {
					p.VRAM, p.Claim = v, v
				} else if strings.HasSuffix(c.Path, "Shared Usage") {
					p.GTT = v
				}
			}
		case strings.Contains(c.Path, "GPU Engine("):
			// One counter per process and engine: the engine is what is after phys_.
			if _, e, ok := strings.Cut(c.Path, "_eng_"); ok {
				engines[e] += c.Value
			}
		}
	}
	best := -1.0
	for _, v := range engines {
		best = max(best, v)
	}
	if best >= 0 {
		r.busy = Known(min(best, 100), "PDH GPU Engine, Utilization Percentage")
	}
	for _, p := range procs {
		r.procs = append(r.procs, *p)
	}
	slices.SortFunc(r.procs, byVRAM)
	return r
}

func winPID(path string) (int, bool) {
	_, s, ok := strings.Cut(path, "(pid_")
	if !ok {
		return 0, false
	}
	s, _, _ = strings.Cut(s, "_")
	n, err := strconv.Atoi(s)
	return n, err == nil && n >= 0
}

// winSample reads a card's sensors from the answers.
func winSample(w WindowsAnswers, c Card, h Host, r *CardReadings) {
	luid := ""
	for _, a := range w.Adapters {
		if a.Vendor == c.Vendor && a.Device == c.Device && (PCI(fmt.Sprintf("0000:%02x:%02x.0", a.Bus&0xff, a.Dev&0x1f)) == c.PCI || a.Bus == 0) {
			luid = a.LUID
		}
	}
	no := Unknown[float64]("Windows", "not asked for")
	r.Temp, r.TempVRAM, r.Power, r.PowerMax, r.Fan, r.Clock, r.ClockMem = no, no, no, no, no, no, no
	r.Throttle = Unknown[string]("Windows", "not asked for")
	x := winCounters(w, luid)
	r.Busy = x.busy
	r.GTT = x.shared
	a := VRAMAnswer{Source: x.dedicated.Source, Total: c.Memory.Total.Or(0), Used: x.dedicated.Value, HaveUsed: x.dedicated.Known}
	r.VRAM = FreeVRAM(c, h, []VRAMAnswer{a}, x.procs)
	r.VRAM.Listed = Known(len(x.procs), "PDH GPU Process Memory")
	if luid == "" || !x.dedicated.Known {
		r.VRAM.Listed = Unknown[int]("PDH GPU Process Memory", "no counter for this adapter")
	}
}

// busOf reads the PCI bus of a location text that ends in
// "(bus,device,function)", as the registry has it.
func busOf(loc string) (int, bool) {
	i := strings.LastIndexByte(loc, '(')
	if i < 0 {
		return 0, false
	}
	b, _, ok := strings.Cut(loc[i+1:], ",")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(strings.TrimSpace(b))
	return n, err == nil && n >= 0 && n < 256
}
