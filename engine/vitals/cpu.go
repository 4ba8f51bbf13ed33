package vitals

import (
	"io/fs"
	"strconv"
	"strings"
	"time"

	"outcrop/engine/wire"
)

// CPU measures busy time. A rate needs two readings, so the first one is
// unknown and says that it is being measured.
type CPU struct {
	root          fs.FS
	pid           int
	cores         int
	busy, all     float64
	own           float64
	at            time.Time
	seen, seenOwn bool
}

// NewCPU measures the machine and one process; pid 0 is the one that asks.
func NewCPU(root fs.FS, pid, cores int) *CPU { return &CPU{root: root, pid: pid, cores: cores} }

const measuring = "measuring: a rate needs two readings"

// ticks is how many clock ticks /proc counts a second: USER_HZ, which is 100
// on every architecture this program builds for.
const ticks = 100

// Read takes one reading; now is its time.
func (c *CPU) Read(now time.Time) wire.CPU {
	out := wire.CPU{Cores: c.cores}
	if noProc {
		return c.foreign(now, out)
	}
	out.Busy = wire.Unknown("percent", "/proc/stat", measuring)
	if busy, all, err := machineTime(c.root); err != nil {
		out.Busy.Why = reason(err)
	} else {
		if c.seen && all > c.all {
			out.Busy = wire.Known(100*(busy-c.busy)/(all-c.all), "percent", "/proc/stat")
		}
		c.busy, c.all, c.seen = busy, all, true
	}
	name := "self"
	if c.pid != 0 {
		name = strconv.Itoa(c.pid)
	}
	file := "proc/" + name + "/stat"
	out.Process = wire.Unknown("percent", "/"+file, measuring)
	if f, err := statFields(c.root, file); err != nil {
		out.Process.Why = err.Error()
	} else {
		u, _ := strconv.ParseFloat(f[11], 64)
		s, _ := strconv.ParseFloat(f[12], 64)
		own := (u + s) / ticks
		if d := now.Sub(c.at).Seconds(); c.seenOwn && d > 0 {
			out.Process = wire.Known(100*(own-c.own)/d, "percent", "/"+file)
		}
		c.own, c.seenOwn = own, true
	}
	c.at = now
	return out
}

// foreign reads a system without /proc.
func (c *CPU) foreign(now time.Time, out wire.CPU) wire.CPU {
	out.Busy = wire.Unknown("percent", asked, measuring)
	out.Process = out.Busy
	busy, all, own, err := foreignTimes(c.pid)
	if err != nil {
		out.Busy.Why, out.Process.Why = err.Error(), err.Error()
		return out
	}
	if c.seen && all > c.all {
		out.Busy = wire.Known(100*(busy-c.busy)/(all-c.all), "percent", asked)
	}
	if d := now.Sub(c.at).Seconds(); c.seen && d > 0 {
		out.Process = wire.Known(100*(own-c.own)/d, "percent", asked)
	}
	c.busy, c.all, c.own, c.seen, c.at = busy, all, own, true, now
	return out
}

// machineTime sums the first line of /proc/stat: user, nice, system, idle,
// iowait, irq, softirq, steal.
func machineTime(root fs.FS) (busy, all float64, err error) {
	b, err := fs.ReadFile(root, "proc/stat")
	if err != nil {
		return 0, 0, err
	}
	line, _, _ := strings.Cut(string(b), "\n")
	f := strings.Fields(line)
	for i := 1; i < len(f) && i <= 8; i++ {
		n, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return 0, 0, err
		}
		all += n
		if i != 4 && i != 5 {
			busy += n
		}
	}
	return busy, all, nil
}
