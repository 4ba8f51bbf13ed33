package gpu

import (
	"io/fs"
	"strconv"
	"strings"
	"time"
)

// CardReadings are the sensors of one card at one moment.
type CardReadings struct {
	PCI       PCI              `json:"pci"`
	Time      time.Time        `json:"time"`
	VRAM      VRAM             `json:"vram"`
	GTT       Reading[int64]   `json:"gtt"`        // bytes of system memory the driver holds for the card
	GTTGrowth Reading[int64]   `json:"gtt_growth"` // bytes since the first reading: on xe, over-committed VRAM moves to RAM without a word
	Busy      Reading[float64] `json:"busy"`       // percent of the busiest engine
	Temp      Reading[float64] `json:"temp_c"`
	TempVRAM  Reading[float64] `json:"temp_vram_c"`
	Power     Reading[float64] `json:"power_w"`
	PowerMax  Reading[float64] `json:"power_max_w"`
	Fan       Reading[float64] `json:"fan"`      // see FanUnit
	FanUnit   string           `json:"fan_unit"` // rpm, or % where the driver tells only that
	Clock     Reading[float64] `json:"clock_mhz"`
	ClockMem  Reading[float64] `json:"clock_mem_mhz"`
	Throttle  Reading[string]  `json:"throttle"` // what holds the clock down; "" when nothing does
	Link      Link             `json:"link"`
}

// scanEvery is how often all processes are looked through for users of a card;
// in between only the known ones are read again.
const scanEvery = 30 * time.Second

// Sampler reads the sensors of a machine's cards, once a second or so, and
// keeps what differences need. It is for one goroutine.
type Sampler struct {
	root fs.FS
	m    Machine
	a    Answers         // recorded machine: its answers
	live *live           // nil for a recorded machine
	win  *WindowsAnswers // recorded Windows machine

	hw    map[PCI]string // hwmon folder
	watch []string       // processes read at every sample: our engine

	last     time.Time
	scanned  time.Time
	files    []string
	clients  clients
	energy   map[PCI]int64
	gttFirst map[PCI]int64
}

// NewSampler makes a sampler over the files below root. withDrivers adds what
// only running drivers answer (NVML, DRM queries, Sysman) and must be false for
// a recorded machine.
func NewSampler(root fs.FS, m Machine, withDrivers bool) *Sampler {
	s := &Sampler{root: root, m: m, hw: map[PCI]string{}, energy: map[PCI]int64{}, gttFirst: map[PCI]int64{}}
	if withDrivers {
		s.live = newLive(m)
	} else {
		s.a = answersOf(root)
		if w, ok := windowsOf(root); ok {
			s.win = &w
		}
	}
	for _, c := range m.Cards {
		for _, n := range names(root, c.file("hwmon")) {
			if strings.HasPrefix(n, "hwmon") {
				s.hw[c.PCI] = c.file("hwmon/" + n)
			}
		}
	}
	return s
}

// Watch names processes whose use of the cards is read at every sample, such as
// the engine's; all others are looked for now and then.
func (s *Sampler) Watch(pids ...string) {
	s.watch = append(s.watch[:0], pids...)
	s.scanned = time.Time{}
}

// Close gives back what the sampler holds.
func (s *Sampler) Close() error {
	if s.live != nil {
		s.live.close()
	}
	return nil
}

// Sample reads all cards. now is the time of the reading, for differences.
func (s *Sampler) Sample(now time.Time) []CardReadings {
	prev := s.clients
	if s.needClients() {
		if s.scanned.IsZero() || now.Sub(s.scanned) >= scanEvery {
			s.clients = scanClients(s.root)
			s.scanned, s.files = now, s.clients.files
		} else {
			files := s.files
			for _, p := range s.watch {
				files = append(files[:len(files):len(files)], drmFiles(s.root, p)...)
			}
			s.clients = readClients(s.root, dedupe(files))
		}
	}
	wall := int64(0)
	if !s.last.IsZero() {
		wall = now.Sub(s.last).Nanoseconds()
	}
	s.last = now
	h := s.m.Host
	if h.OS == "linux" {
		h.Memory = ReadMeminfo(s.root)
	}
	out := make([]CardReadings, 0, len(s.m.Cards))
	for _, c := range s.m.Cards {
		out = append(out, s.card(c, h, now, wall, prev))
	}
	return out
}

// needClients says whether any card's use is told through fdinfo.
func (s *Sampler) needClients() bool {
	for _, c := range s.m.Cards {
		switch c.Driver {
		case "i915", "xe", "amdgpu", "nouveau":
			return true
		}
	}
	return false
}

func dedupe(files []string) []string {
	seen := map[string]bool{}
	out := files[:0:0]
	for _, f := range files {
		if !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	return out
}

// card reads one card.
func (s *Sampler) card(c Card, h Host, now time.Time, wall int64, prev clients) CardReadings {
	r := CardReadings{PCI: c.PCI, Time: now, FanUnit: "rpm", Link: c.Link}
	if text(s.root, c.file("power/runtime_status")) == "suspended" {
		return asleep(r, c, h)
	}
	if w := s.windows(); w != nil {
		winSample(*w, c, h, &r)
		if s.live != nil {
			s.live.sensors(c, &r)
		}
		r.GTTGrowth = s.growth(c, r.GTT)
		return r
	}
	r.sysfs(s, c, wall)
	procs, listed := s.listed(c)
	answers := s.answers(c)
	if s.live != nil {
		s.live.sensors(c, &r)
	} else {
		s.recorded(c, &r)
	}
	r.VRAM = FreeVRAM(c, h, answers, procs)
	r.VRAM.Listed = listed
	if !r.GTT.Known {
		r.GTT = s.gtt(c)
	}
	r.GTTGrowth = s.growth(c, r.GTT)
	if !r.Busy.Known && (c.Driver == "xe" || c.Driver == "i915") {
		if b, ok := busy(prev.byPCI[c.PCI], s.clients.byPCI[c.PCI], wall); ok {
			r.Busy = Known(b, "fdinfo of the processes we can see")
		} else {
			r.Busy = Unknown[float64]("fdinfo", "no process we can see used the card twice in a row; the whole card's load needs CAP_PERFMON")
		}
	}
	return r
}

// listed gives the processes that use a card, with who told of them.
func (s *Sampler) listed(c Card) ([]ProcVRAM, Reading[int]) {
	if s.live != nil {
		if p, r, ok := s.live.procs(c); ok {
			return s.named(p, r)
		}
	}
	switch c.Driver {
	case "i915", "xe", "amdgpu", "nouveau":
		p := s.clients.of(c.PCI)
		return p, Known(len(p), "fdinfo of the processes we can see")
	case "nvidia":
		return nil, Unknown[int]("NVML", "a recorded machine's processes are not recorded")
	}
	return nil, Unknown[int]("no source", noSensor(c))
}

// hostPIDs is the first namespace of process ids, whose number is fixed in the
// kernel (PROC_PID_INIT_INO).
const hostPIDs = "pid:[4026531836]"

// named adds the names of processes to what NVIDIA's driver told. It counts
// processes as the host does; in a container those numbers are others' or
// nobody's, so nothing may be concluded from them.
func (s *Sampler) named(procs []ProcVRAM, r Reading[int]) ([]ProcVRAM, Reading[int]) {
	if ns, err := fs.ReadLink(s.root, "proc/self/ns/pid"); err == nil && ns != hostPIDs && r.Known {
		return procs, Unknown[int](r.Source, "in a container the driver names processes by the host's numbers")
	}
	for i := range procs {
		pid := strconv.Itoa(procs[i].PID)
		procs[i].Name, procs[i].Parent = text(s.root, "proc/"+pid+"/comm"), parentOf(s.root, pid)
	}
	return procs, r
}

// growth compares with the first reading.
func (s *Sampler) growth(c Card, gtt Reading[int64]) Reading[int64] {
	if !gtt.Known {
		return Unknown[int64](gtt.Source, gtt.Why)
	}
	if _, ok := s.gttFirst[c.PCI]; !ok {
		s.gttFirst[c.PCI] = gtt.Value
	}
	return Known(gtt.Value-s.gttFirst[c.PCI], gtt.Source)
}

// windows gives the Windows answers of this moment, or nil on other systems.
func (s *Sampler) windows() *WindowsAnswers {
	if s.live != nil {
		return s.live.windows()
	}
	return s.win
}

// asleep leaves a suspended card asleep: reading its sensors would wake it, and
// a laptop's second card costs watts.
func asleep(r CardReadings, c Card, h Host) CardReadings {
	const why = "the card is asleep, and asking would wake it"
	src := "/" + c.file("power/runtime_status")
	u := Unknown[float64](src, why)
	r.Busy, r.Temp, r.TempVRAM, r.Power, r.PowerMax, r.Fan, r.Clock, r.ClockMem = u, u, u, u, u, u, u, u
	r.Throttle = Unknown[string](src, why)
	r.GTT, r.GTTGrowth = Unknown[int64](src, why), Unknown[int64](src, why)
	r.VRAM = FreeVRAM(c, h, []VRAMAnswer{{Source: src + " (" + why + ")"}}, nil)
	r.VRAM.Listed = Unknown[int](src, why)
	return r
}

// answers collects what every source says about the card's memory, most
// trusted first.
func (s *Sampler) answers(c Card) []VRAMAnswer {
	if s.live != nil {
		if a := s.live.vram(c); len(a) > 0 {
			return append(a, s.sysfsVRAM(c)...)
		}
		return s.sysfsVRAM(c)
	}
	return append(s.recordedVRAM(c), s.sysfsVRAM(c)...)
}

// sysfsVRAM is amdgpu's plain files.
func (s *Sampler) sysfsVRAM(c Card) []VRAMAnswer {
	if c.Driver != "amdgpu" {
		return nil
	}
	t, u := number(s.root, c.file("mem_info_vram_total")), number(s.root, c.file("mem_info_vram_used"))
	return []VRAMAnswer{{Source: u.Source, Total: t.Value, Used: u.Value, HaveUsed: u.Known}}
}

// recordedVRAM is what a driver call answered when the machine was recorded.
func (s *Sampler) recordedVRAM(c Card) []VRAMAnswer {
	t, u, f := s.a.int("vram.total "+string(c.PCI), ""), s.a.int("vram.used "+string(c.PCI), ""), s.a.int("vram.free "+string(c.PCI), "")
	if !t.Known && !u.Known && !f.Known {
		return nil
	}
	a := VRAMAnswer{Source: First(u, f, t).Source, Total: t.Value, Used: u.Value, HaveUsed: u.Known, Blind: c.Vendor == Intel}
	if !u.Known && f.Known && t.Known {
		a.Used, a.HaveUsed = t.Value-f.Value, true
	}
	return []VRAMAnswer{a}
}

// recorded fills sensors from a recorded machine's answers.
func (s *Sampler) recorded(c Card, r *CardReadings) {
	set := func(dst *Reading[float64], key string) {
		if v := s.a.int(key+" "+string(c.PCI), ""); v.Known {
			*dst = Known(float64(v.Value), v.Source)
		}
	}
	set(&r.Temp, "temp")
	set(&r.Power, "power")
	set(&r.PowerMax, "power.max")
	set(&r.Clock, "clock")
	set(&r.ClockMem, "clock.mem")
	set(&r.Busy, "busy")
	if v := s.a.int("fan "+string(c.PCI), ""); v.Known {
		r.Fan = Known(float64(v.Value), v.Source)
	}
}

// gtt sums the system memory held for the clients we can see.
func (s *Sampler) gtt(c Card) Reading[int64] {
	if r := number(s.root, c.file("mem_info_gtt_used")); r.Known {
		return r
	}
	cl := s.clients.byPCI[c.PCI]
	if len(cl) == 0 {
		return Unknown[int64]("fdinfo", "no process we can see uses the card")
	}
	var sum int64
	for _, x := range cl {
		sum += x.gtt()
	}
	return Known(sum, "fdinfo of the processes we can see")
}

// timeZero is the moment of a single reading, where differences do not matter.
var timeZero = time.Unix(0, 0)
