package vitals

import (
	"os"
	"runtime"

	"github.com/shirou/gopsutil/v3/cpu"
	"github.com/shirou/gopsutil/v3/mem"
	"github.com/shirou/gopsutil/v3/process"

	"outcrop/engine/wire"
)

// Systems without /proc are asked through gopsutil. What they do not have, such
// as memory pressure, stays unknown.

// noProc says that this system has no /proc; a recorded machine has one.
const noProc = runtime.GOOS != "linux" && runtime.GOOS != "android"

const asked = "operating system"

func foreignMemory(m *wire.Memory) {
	if v, err := mem.VirtualMemory(); err != nil {
		m.Total = wire.Unknown("bytes", asked, err.Error())
		m.Available = m.Total
	} else {
		m.Total = wire.Known(float64(v.Total), "bytes", asked)
		m.Available = wire.Known(float64(v.Available), "bytes", asked)
	}
	if s, err := mem.SwapMemory(); err != nil {
		m.SwapUsed = wire.Unknown("bytes", asked, err.Error())
	} else {
		m.SwapUsed = wire.Known(float64(s.Used), "bytes", asked)
	}
}

func foreignProcess(p *wire.Process) {
	q, err := process.NewProcess(int32(p.PID))
	if err != nil {
		p.RSS = wire.Unknown("bytes", asked, err.Error())
		return
	}
	if i, err := q.MemoryInfo(); err != nil {
		p.RSS = wire.Unknown("bytes", asked, err.Error())
	} else {
		p.RSS = wire.Known(float64(i.RSS), "bytes", asked)
	}
}

// foreignTimes are the busy and all seconds of the machine, and the seconds of
// one process.
func foreignTimes(pid int) (busy, all, own float64, err error) {
	ts, err := cpu.Times(false)
	if err != nil || len(ts) == 0 {
		return 0, 0, 0, err
	}
	t := ts[0]
	busy = t.User + t.System + t.Nice + t.Irq + t.Softirq + t.Steal
	all = busy + t.Idle + t.Iowait
	if pid == 0 {
		pid = os.Getpid()
	}
	p, err := process.NewProcess(int32(pid))
	if err != nil {
		return busy, all, 0, err
	}
	o, err := p.Times()
	if err != nil {
		return busy, all, 0, err
	}
	return busy, all, o.User + o.System, nil
}
