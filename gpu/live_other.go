//go:build !linux && !windows

package gpu

import "io/fs"

// live has no doors on this system.
type live struct{}

func newLive(Machine) *live                               { return &live{} }
func (*live) close()                                      {}
func (*live) windows() *WindowsAnswers                    { return nil }
func (*live) sensors(Card, *CardReadings)                 {}
func (*live) procs(Card) ([]ProcVRAM, Reading[int], bool) { return nil, Reading[int]{}, false }
func (*live) vram(Card) []VRAMAnswer                      { return nil }
func liveAnswers(fs.FS, Machine) Answers                  { return Answers{} }
func helperRead() func() HelperAnswer {
	return func() HelperAnswer { return HelperAnswer{Err: "no sensors on this system"} }
}
