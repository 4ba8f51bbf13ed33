// Package vitals reads how a machine and a process are doing: RAM, memory
// pressure, control-group limits, a process's own memory, CPU time. Everything
// comes from /proc and /sys through an fs.FS, so that a recorded machine reads
// like a live one; what a kernel does not tell stays unknown, with the file
// that was asked. How RAM, pressure and control groups are read is gpu's
// knowledge. It decides nothing: that is engine/guard's work.
package vitals

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"outcrop/engine/wire"
	"outcrop/gpu"
)

// Live is the running machine.
func Live() fs.FS { return os.DirFS("/") }

// Memory reads the machine's RAM, its pressure, and the control group of the
// process that asks. Level is left empty.
func Memory(root fs.FS) wire.Memory {
	m := wire.Memory{}
	info := gpu.ReadMeminfo(root)
	m.Total, m.Available = bytesOf(info.Total), bytesOf(info.Available)
	m.SwapUsed = bytesOf(info.SwapFree)
	if !info.SwapTotal.Known {
		m.SwapUsed = bytesOf(info.SwapTotal)
	} else if info.SwapFree.Known {
		m.SwapUsed.Value = float64(info.SwapTotal.Value - info.SwapFree.Value)
	}
	if !m.Total.Known && noProc {
		foreignMemory(&m)
	}
	p := gpu.ReadPressure(root, "proc/pressure/memory")
	m.SomeAvg10 = wire.Reading{Value: p.Value.SomeAvg10, Unit: "percent", Known: p.Known, Source: p.Source, Why: p.Why}
	m.FullAvg10 = m.SomeAvg10
	m.FullAvg10.Value = p.Value.FullAvg10
	g := gpu.ReadCgroup(root)
	used, cache := g.AtMax(root)
	m.Limit, m.Used, m.Cache = bytesOf(g.Max), bytesOf(used), bytesOf(cache)
	return m
}

// bytesOf is a reading of the card library on the wire.
func bytesOf(r gpu.Reading[int64]) wire.Reading {
	return wire.Reading{Value: float64(r.Value), Unit: "bytes", Known: r.Known, Source: r.Source, Why: r.Why}
}

// Process reads the memory of one process; pid 0 is the one that asks.
func Process(root fs.FS, pid int) wire.Process {
	name := "self"
	if pid != 0 {
		name = strconv.Itoa(pid)
	}
	file := "proc/" + name + "/status"
	st, err := pairs(root, file)
	p := wire.Process{PID: pid}
	if pid == 0 {
		p.PID = os.Getpid()
	}
	p.RSS = fromKiB(st, err, file, "VmRSS")
	if err != nil && noProc {
		foreignProcess(&p)
	}
	p.Anon = fromKiB(st, err, file, "RssAnon")
	p.Mapped = fromKiB(st, err, file, "RssFile")
	p.Peak = fromKiB(st, err, file, "VmHWM")
	p.Swap = fromKiB(st, err, file, "VmSwap")
	stat := "proc/" + name + "/stat"
	if f, err := statFields(root, stat); err != nil {
		p.Major = wire.Unknown("", "/"+stat, err.Error())
	} else if n, err := strconv.ParseFloat(f[9], 64); err != nil {
		p.Major = wire.Unknown("", "/"+stat, err.Error())
	} else {
		p.Major = wire.Known(n, "", "/"+stat)
	}
	return p
}

// OOMKills is the number of processes of this control group that the kernel
// killed for memory so far, and that of the whole machine.
func OOMKills(root fs.FS) (own, machine wire.Reading) {
	own = bytesOf(gpu.ReadCgroup(root).OOMKills)
	own.Unit = ""
	m, err := pairs(root, "proc/vmstat")
	machine = wire.Unknown("", "/proc/vmstat", "no line oom_kill")
	if err != nil {
		machine.Why = reason(err)
	} else if n, err := strconv.ParseFloat(m["oom_kill"], 64); err == nil {
		machine = wire.Known(n, "", "/proc/vmstat")
	}
	return own, machine
}

// pairs reads "key: value" or "key value" lines.
func pairs(root fs.FS, file string) (map[string]string, error) {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, err
	}
	m := map[string]string{}
	sc := bufio.NewScanner(bytes.NewReader(b))
	for sc.Scan() {
		key, val, ok := strings.Cut(sc.Text(), ":")
		if !ok {
			key, val, _ = strings.Cut(sc.Text(), " ")
		}
		m[strings.TrimSpace(key)] = strings.TrimSpace(val)
	}
	return m, sc.Err()
}

// fromKiB makes a reading in bytes of a line in kB (which the kernel means as KiB).
func fromKiB(m map[string]string, err error, file, key string) wire.Reading {
	source := "/" + file + " " + key
	if err != nil {
		return wire.Unknown("bytes", source, reason(err))
	}
	v, ok := m[key]
	if !ok {
		return wire.Unknown("bytes", source, "no such line")
	}
	n, perr := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(v, "kB")), 10, 53)
	if perr != nil {
		return wire.Unknown("bytes", source, fmt.Sprintf("not a number: %q", v))
	}
	return wire.Known(float64(n)*1024, "bytes", source)
}

// statFields are the fields of a stat file after the command's closing
// parenthesis: f[0] is the state (field 3 of proc(5)).
func statFields(root fs.FS, file string) ([]string, error) {
	b, err := fs.ReadFile(root, file)
	if err != nil {
		return nil, fmt.Errorf("%s", reason(err))
	}
	i := bytes.LastIndexByte(b, ')')
	f := strings.Fields(string(b[i+1:]))
	if i < 0 || len(f) < 20 {
		return nil, fmt.Errorf("unexpected form")
	}
	return f, nil
}

// reason drops the path from a file error: the source names it already.
func reason(err error) string {
	if pe, ok := err.(*fs.PathError); ok {
		return pe.Err.Error()
	}
	return err.Error()
}
