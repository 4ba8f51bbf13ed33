package vitals

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/shirou/gopsutil/v3/disk"

	"outcrop/engine/wire"
)

func TestDiskCountsWholeDisksOnce(t *testing.T) {
	stats := map[string]disk.IOCountersStat{
		"nvme0n1": {ReadBytes: 1000}, "nvme0n1p1": {ReadBytes: 400}, "nvme0n1p2": {ReadBytes: 600},
		"sda": {ReadBytes: 50}, "sda1": {ReadBytes: 50}, "dm-0": {ReadBytes: 600}, "loop3": {ReadBytes: 9}, "zram0": {ReadBytes: 7},
	}
	d := &Disk{count: func() (map[string]disk.IOCountersStat, error) { return stats, nil }}
	now := time.Unix(100, 0)
	if r := d.Read(now); r.Known || r.Why != measuring {
		t.Errorf("one reading gives a rate: %+v", r)
	}
	stats["nvme0n1"] = disk.IOCountersStat{ReadBytes: 5000}
	stats["sda"] = disk.IOCountersStat{ReadBytes: 1050}
	if r := d.Read(now.Add(2 * time.Second)); r.Value != 2500 {
		t.Errorf("%+v, want 2500 bytes/s", r)
	}
	stats["nvme0n1"] = disk.IOCountersStat{} // a disk went away
	if r := d.Read(now.Add(3 * time.Second)); r.Known {
		t.Errorf("a counter that fell gives %+v", r)
	}
	d.count = func() (map[string]disk.IOCountersStat, error) { return nil, errors.New("denied") }
	if r := d.Read(now.Add(4 * time.Second)); r.Known || r.Why != "denied" {
		t.Errorf("%+v", r)
	}
}

// What systems without /proc are asked works here too, and agrees with /proc.
func TestPortableReadings(t *testing.T) {
	var m wire.Memory
	foreignMemory(&m)
	if !m.Total.Known || !m.Available.Known || m.Available.Value > m.Total.Value || m.Total.Value < 1<<28 {
		t.Errorf("memory %+v of %+v", m.Available, m.Total)
	}
	p := wire.Process{PID: os.Getpid()}
	foreignProcess(&p)
	if !p.RSS.Known || p.RSS.Value < 1<<20 {
		t.Errorf("this process takes %+v", p.RSS)
	}
	busy, all, own, err := foreignTimes(0)
	if err != nil || busy <= 0 || all < busy || own < 0 {
		t.Errorf("times %v of %v, own %v, %v", busy, all, own, err)
	}
}
