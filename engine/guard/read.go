package guard

import (
	"io/fs"
	"strconv"
	"time"

	"outcrop/gpu"
)

// Reader makes Readings from the files of a machine. It keeps the counters of
// the last look, so that rates are differences over the time between two. It
// is for one goroutine.
type Reader struct {
	root fs.FS
	pid  string
	page int64

	at         time.Time
	swapIn     int64
	faults     int64
	haveSwap   bool
	haveFaults bool
	gtt        map[string]int64
}

// NewReader reads below root ("/" outside tests). pid is the engine's process,
// 0 for this one. page is the size of a memory page in bytes.
func NewReader(root fs.FS, pid, page int) *Reader {
	r := &Reader{root: root, pid: "self", page: int64(page), gtt: map[string]int64{}}
	if pid > 0 {
		r.pid = strconv.Itoa(pid)
	}
	return r
}

// Read takes one look. cards are the sensors of the cards at the same time, as
// gpu.Sampler gives them; slots is how many bytes of expert slots the engine
// holds on each. Both may be empty.
func (r *Reader) Read(now time.Time, cards []gpu.CardReadings, slots map[string]int64) Reading {
	h := gpu.Host{Memory: gpu.ReadMeminfo(r.root), Cgroup: gpu.ReadCgroup(r.root)}
	out := Reading{At: now, RAMTotal: value(h.RAM()), RAMAvailable: value(h.Available())}
	if p := r.pressure(h); p.Known {
		out.PSISome, out.PSIFull = RateOf(p.Value.SomeAvg10), RateOf(p.Value.FullAvg10)
	}
	seconds := now.Sub(r.at).Seconds()
	fresh := !r.at.IsZero() && seconds > 0.05
	if v := gpu.ReadVMStat(r.root); v.Known {
		if fresh && r.haveSwap && v.Value.SwapIn >= r.swapIn {
			out.SwapIn = RateOf(float64((v.Value.SwapIn-r.swapIn)*r.page) / seconds)
		}
		r.swapIn, r.haveSwap = v.Value.SwapIn, true
	}
	if f := gpu.ReadMajorFaults(r.root, r.pid); f.Known {
		if fresh && r.haveFaults && f.Value >= r.faults {
			out.MajorFaults = RateOf(float64(f.Value-r.faults) / seconds)
		}
		r.faults, r.haveFaults = f.Value, true
	}
	for _, c := range cards {
		id := string(c.PCI)
		out.VRAM = append(out.VRAM, VRAM{PCI: id, Total: value(c.VRAM.Total), Free: value(c.VRAM.Free), Slots: slots[id]})
		if !c.GTT.Known {
			continue
		}
		if last, seen := r.gtt[id]; seen && fresh && c.GTT.Value > last {
			out.GTTGrowth = RateOf(max(out.GTTGrowth.N, float64(c.GTT.Value-last)/seconds))
		}
		r.gtt[id] = c.GTT.Value
	}
	r.at = now
	return out
}

// pressure is that of the engine's own group where a limit makes it the
// tighter place, else the machine's.
func (r *Reader) pressure(h gpu.Host) gpu.Reading[gpu.Pressure] {
	if c := h.Cgroup; c.Max.Known && c.Path != "" && c.Path != "/" {
		// A machine with both versions has the second one below unified.
		for _, base := range []string{"sys/fs/cgroup", "sys/fs/cgroup/unified"} {
			if p := gpu.ReadPressure(r.root, base+c.Path+"/memory.pressure"); p.Known {
				return p
			}
		}
	}
	return gpu.ReadPressure(r.root, "proc/pressure/memory")
}

func value(r gpu.Reading[int64]) Value { return Value{r.Value, r.Known} }
