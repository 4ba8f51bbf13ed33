package vitals

import (
	"runtime"
	"strings"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"outcrop/engine/wire"
)

// Disk measures what the machine reads from its disks: experts that are not in
// RAM show here. Only the live machine can be asked.
type Disk struct {
	read  uint64
	at    time.Time
	seen  bool
	count func() (map[string]disk.IOCountersStat, error) // tests replace it
}

// NewDisk measures the disks of this machine.
func NewDisk() *Disk {
	return &Disk{count: func() (map[string]disk.IOCountersStat, error) { return disk.IOCounters() }}
}

// Read is bytes a second since the last reading; now is its time.
func (d *Disk) Read(now time.Time) wire.Reading {
	source := "/proc/diskstats"
	if runtime.GOOS != "linux" {
		source = "disk counters"
	}
	all, err := d.count()
	if err != nil {
		return wire.Unknown("bytes/s", source, err.Error())
	}
	var sum uint64
	for name, c := range all {
		if !part(name, all) {
			sum += c.ReadBytes
		}
	}
	out := wire.Unknown("bytes/s", source, measuring)
	if s := now.Sub(d.at).Seconds(); d.seen && s > 0 && sum >= d.read {
		out = wire.Known(float64(sum-d.read)/s, "bytes/s", source)
	}
	d.read, d.at, d.seen = sum, now, true
	return out
}

// part reports whether a device is a part of another one in the list, or a
// layer over it, so that its reads are counted already.
func part(name string, all map[string]disk.IOCountersStat) bool {
	for _, p := range []string{"loop", "ram", "dm-", "md", "zram"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	for whole := range all {
		rest, ok := strings.CutPrefix(name, whole)
		if ok && rest != "" && strings.Trim(rest, "p0123456789") == "" {
			return true
		}
	}
	return false
}
