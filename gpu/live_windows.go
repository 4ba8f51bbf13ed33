package gpu

import (
	"io/fs"
	"sync"
)

// live holds the counters' query; the rest of Windows' answers does not change
// while a program runs.
type live struct {
	mu    sync.Mutex
	fixed WindowsAnswers
	query *pdhQuery
	nvml  *nvml
}

func newLive(m Machine) *live {
	l := &live{fixed: probeWindows()}
	l.query, _ = openPDH()
	for _, c := range m.Cards {
		if c.Vendor == NVIDIA && l.nvml == nil {
			l.nvml, _ = openNVML()
		}
	}
	return l
}

func (l *live) close() {
	if l.query != nil {
		l.query.close()
	}
	if l.nvml != nil {
		l.nvml.close()
	}
}

// windows gives the answers of this moment.
func (l *live) windows() *WindowsAnswers {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.fixed
	w.System = winSystem()
	if l.query != nil {
		w.Counters = l.query.read()
	}
	return &w
}

func (l *live) sensors(c Card, r *CardReadings) {
	if c.Vendor == NVIDIA && l.nvml != nil {
		l.nvml.fill(c.PCI, r)
	}
}

func (l *live) procs(Card) ([]ProcVRAM, Reading[int], bool) { return nil, Reading[int]{}, false }
func (l *live) vram(Card) []VRAMAnswer                      { return nil }

func liveAnswers(fs.FS, Machine) Answers { return Answers{} }

// helperRead asks Sysman, which tells true numbers on Windows.
func helperRead() func() HelperAnswer {
	z, err := openSysman()
	return func() HelperAnswer {
		if z == nil {
			return HelperAnswer{Cards: []HelperCard{}, Err: err.Error()}
		}
		return HelperAnswer{Cards: z.cards(), Perfmon: true}
	}
}
