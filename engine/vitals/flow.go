package vitals

import (
	"io/fs"
	"os"
	"strconv"
	"time"

	"outcrop/engine/wire"
)

// Flow measures what moves between memory and disk: bytes a second read back
// from swap by the whole machine, and major page faults a second of one
// process. Like every rate it needs two readings.
type Flow struct {
	root        fs.FS
	pid         int
	swap, major float64
	at          time.Time
}

// NewFlow measures the machine and one process; pid 0 is the one that asks.
func NewFlow(root fs.FS, pid int) *Flow { return &Flow{root: root, pid: pid, swap: -1, major: -1} }

// Read takes one reading; now is its time.
func (f *Flow) Read(now time.Time) (swapIn, majorFaults wire.Reading) {
	swapIn = wire.Unknown("bytes/s", "/proc/vmstat pswpin", measuring)
	majorFaults = wire.Unknown("1/s", "/proc/PID/stat", measuring)
	d := now.Sub(f.at).Seconds()
	f.at = now
	swap, major := -1.0, -1.0
	if m, err := pairs(f.root, "proc/vmstat"); err != nil {
		swapIn.Why = reason(err)
	} else if n, err := strconv.ParseFloat(m["pswpin"], 64); err != nil {
		swapIn.Why = "no such line"
	} else {
		swap = n
		if f.swap >= 0 && d > 0 {
			swapIn = wire.Known((n-f.swap)*float64(os.Getpagesize())/d, "bytes/s", "/proc/vmstat pswpin")
		}
	}
	if p := Process(f.root, f.pid).Major; !p.Known {
		majorFaults.Why = p.Why
	} else {
		major = p.Value
		if f.major >= 0 && d > 0 {
			majorFaults = wire.Known((major-f.major)/d, "1/s", p.Source)
		}
	}
	f.swap, f.major = swap, major
	return swapIn, majorFaults
}
