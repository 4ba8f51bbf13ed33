//go:build linux || windows

package gpu

import (
	"fmt"
	"slices"
	"unsafe"
)

// nvmlLists are the calls that list a card's processes: programs that compute,
// and programs that draw; a program may be in both. The calls of version 2 and 3 fill
// {pid, bytes, GPU instance, compute instance}, the first version {pid, bytes} (NVIDIA's
// nvml.h). Drivers 535.43 to 535.86 write a fifth field through the third version
// without a new name (XuehaiPan/nvitop#79, NVIDIA/go-nvml#75), so the length of an
// entry is taken from what was written and from nothing else.
type nvmlLists struct {
	compute, graphics func(dev uintptr, n *uint32, p unsafe.Pointer) int32
}

// nvmlListNames gives the names of a list's calls, the newest first.
func nvmlListNames(kind string) []string {
	base := "nvmlDeviceGet" + kind + "RunningProcesses"
	return []string{base + "_v3", base + "_v2", base}
}

const (
	nvmlEntryMost = 4                  // 8-byte words of the longest entry known
	nvmlUnwritten = 0x5bd1e995a5c3963c // no field has this value
)

// processes lists the programs on a card, or says why they are not told. A pid is the
// host's, in a container too (NVIDIA/nvidia-docker#1483): see [hostPIDs].
func (n *nvml) processes(p PCI) ([]ProcVRAM, Reading[int]) {
	unknown := func(why string) ([]ProcVRAM, Reading[int]) { return nil, Unknown[int](nvmlSource, why) }
	d, err := n.device(p)
	if err != nil {
		return unknown(err.Error())
	}
	if n.lists.compute == nil {
		return unknown("processes: this driver has no such call")
	}
	out, why := nvmlList(n.lists.compute, d)
	if why != "" {
		return unknown("processes: " + why)
	}
	if n.lists.graphics != nil {
		// Cards without a display answer "not supported"; what computes is told all the same.
		drawing, _ := nvmlList(n.lists.graphics, d)
		for _, q := range drawing {
			i := slices.IndexFunc(out, func(o ProcVRAM) bool { return o.PID == q.PID })
			switch {
			case i < 0:
				out = append(out, q)
			case out[i].Unknown != "" || q.Unknown == "" && q.VRAM > out[i].VRAM:
				out[i] = q
			}
		}
	}
	if m := n.memory(p); m.Total > 0 {
		for i := range out {
			if out[i].VRAM > m.Total {
				out[i] = ProcVRAM{PID: out[i].PID, Unknown: "the driver's number is above what the card has"}
			}
		}
	}
	slices.SortFunc(out, byVRAM)
	return out, Known(len(out), nvmlSource)
}

// nvmlList calls one list.
func nvmlList(call func(uintptr, *uint32, unsafe.Pointer) int32, d uintptr) ([]ProcVRAM, string) {
	for room := uint32(64); room <= 4096; room *= 4 {
		buf := make([]uint64, room*nvmlEntryMost)
		for i := range buf {
			buf[i] = nvmlUnwritten
		}
		c := room
		switch rc := call(d, &c, unsafe.Pointer(&buf[0])); {
		case rc == 7: // more processes than room
			continue
		case rc != 0:
			return nil, nvmlError(rc)
		case c > room:
			return nil, fmt.Sprintf("the driver names %d processes where there was room for %d", c, room)
		}
		return nvmlEntries(buf, int(c))
	}
	return nil, "more than 4096 processes"
}

// nvmlEntries reads c entries out of what a call has written into words that were
// all nvmlUnwritten.
func nvmlEntries(buf []uint64, c int) ([]ProcVRAM, string) {
	if c == 0 {
		return nil, ""
	}
	written := len(buf)
	for written > 0 && buf[written-1] == nvmlUnwritten {
		written--
	}
	words := written / c
	if written%c != 0 || words < 2 || words > nvmlEntryMost {
		return nil, fmt.Sprintf("%d bytes for %d entries is a layout that is not known here; another driver version may help", written*8, c)
	}
	out := make([]ProcVRAM, 0, c)
	for i := range c {
		// The pid is the lower half of the first word; the upper is padding.
		v := ProcVRAM{PID: int(uint32(buf[i*words]))}
		switch used := buf[i*words+1]; {
		case used == ^uint64(0): // NVML_VALUE_NOT_AVAILABLE, as always under Windows' display driver model
			v.Unknown = "the driver does not tell how much"
		case used >= 1<<60:
			v.Unknown = "out of range"
		default:
			v.VRAM, v.Claim = int64(used), int64(used)
		}
		out = append(out, v)
	}
	return out, ""
}
