package gpu

import (
	"io/fs"
	"time"
)

// CardReadings are the sensors of one card at one moment.
type CardReadings struct {
	PCI      PCI              `json:"pci"`
	Time     time.Time        `json:"time"`
	VRAM     VRAM             `json:"vram"`
	GTT      Reading[int64]   `json:"gtt"`  // system memory the driver holds for the card; growth on xe is VRAM spilled to RAM
	Busy     Reading[float64] `json:"busy"` // percent
	Temp     Reading[float64] `json:"temp_c"`
	TempVRAM Reading[float64] `json:"temp_vram_c"`
	Power    Reading[float64] `json:"power_w"`
	PowerMax Reading[float64] `json:"power_max_w"`
	Fan      Reading[float64] `json:"fan_rpm"`
	Clock    Reading[float64] `json:"clock_mhz"`
	ClockMem Reading[float64] `json:"clock_mem_mhz"`
	Throttle Reading[string]  `json:"throttle"`
	Link     Link             `json:"link"`
}

// VRAM is the answer to every question about free card memory.
type VRAM struct {
	Total Reading[int64] `json:"total"`
	Used  Reading[int64] `json:"used"`
	Free  Reading[int64] `json:"free"`
	Plan  Reading[int64] `json:"plan"` // bytes a plan may count on: free when known, else a conservative share of the total
	Procs []ProcVRAM     `json:"procs,omitempty"`
}

// ProcVRAM is one process's share as the kernel tells it.
type ProcVRAM struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	VRAM  int64  `json:"vram"`  // bytes in VRAM now
	Claim int64  `json:"claim"` // bytes of every buffer it may use
	GTT   int64  `json:"gtt"`
}

// Sampler reads the sensors of a machine's cards, once a second or so. It
// keeps what differences need (energy counters, engine cycles).
type Sampler struct {
	root fs.FS
	m    Machine
}

// NewSampler makes a sampler over the files below root. live adds what only a
// running driver answers (NVML, DRM queries, Sysman) and must be false for a
// recorded machine.
func NewSampler(root fs.FS, m Machine, live bool) *Sampler { return &Sampler{root: root, m: m} }

// Sample reads all cards. now is the time of the reading, for differences.
func (s *Sampler) Sample(now time.Time) []CardReadings { return nil }

// Close gives back what the sampler holds.
func (s *Sampler) Close() error { return nil }
