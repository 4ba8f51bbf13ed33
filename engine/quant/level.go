package quant

import "fmt"

// Level is a set of kernels that this processor can run.
type Level int

// Generic is the plain Go loops, which every processor has.
const Generic Level = 0

// String is the name that telemetry and the bench show.
func (l Level) String() string { return "generic" }

// Levels lists what this processor can run, slowest first.
func Levels() []Level { return []Level{Generic} }

// Active is the level in use.
func Active() Level { return Generic }

// Use switches the level, for tests and comparisons. undo switches back.
func Use(l Level) (undo func(), err error) {
	if l != Generic {
		return nil, fmt.Errorf("use kernel level %d: this processor has %v", int(l), Levels())
	}
	return func() {}, nil
}
