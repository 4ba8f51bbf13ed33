package gpu

// live holds the doors to running drivers.
type live struct{}

func newLive(m Machine) *live                   { return &live{} }
func (l *live) close()                          {}
func (l *live) sensors(c Card, r *CardReadings) {}
func (l *live) procs(c Card) []ProcVRAM         { return nil }
func (l *live) vram(c Card) []VRAMAnswer        { return nil }

func (l *live) windows() *WindowsAnswers { return nil }
