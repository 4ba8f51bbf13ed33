package serve

import (
	"strings"
	"testing"

	"outcrop/gpu"
)

// TestHolders: what a card's driver tells of processes is the engine's own share
// and the names of others; where it tells nothing, the reason goes on.
func TestHolders(t *testing.T) {
	v := gpu.VRAM{Listed: gpu.Known(4, "NVML"), Procs: []gpu.ProcVRAM{{PID: 10, Name: "outcrop", VRAM: 900}, {PID: 11, Name: "browser", VRAM: 300}, {PID: 12, Name: "idle"}, {PID: 13, Name: "game", Unknown: "not told"}}}
	own := ownVRAM(v, 10)
	if !own.Known || own.Value != 900 || own.Source != "NVML" {
		t.Errorf("own %+v", own)
	}
	// A copy of the engine that makes kernels is the engine's.
	helped := v
	helped.Procs = append([]gpu.ProcVRAM{{PID: 14, Parent: 10, Name: "outcrop", VRAM: 500}}, v.Procs...)
	if r := ownVRAM(helped, 10); r.Value != 1400 {
		t.Errorf("with a helper of the engine's: %+v", r)
	}
	if got, _ := holders(helped, 10); len(got) != 2 || got[0].Name != "browser" {
		t.Errorf("a helper of the engine's is another program: %+v", got)
	}
	if got, _ := holders(helped, 0); len(got) != 4 {
		t.Errorf("without an engine all are others: %+v", got)
	}
	if r := ownVRAM(v, 13); r.Known || r.Why != "not told" {
		t.Errorf("a share that is not told: %+v", r)
	}
	if r := ownVRAM(v, 0); r.Known || r.Why != "no engine runs" {
		t.Errorf("without an engine: %+v", r)
	}
	got, why := holders(v, 10)
	if len(got) != 2 || why != "" || got[0].Name != "browser" || got[0].VRAM.Value != 300 || got[1].PID != 13 || got[1].VRAM.Known {
		t.Errorf("%+v %q", got, why)
	}
	v = gpu.VRAM{Listed: gpu.Unknown[int]("NVML", "no permission")}
	if got, why := holders(v, 10); got != nil || !strings.Contains(why, "no permission") {
		t.Errorf("%+v %q", got, why)
	}
}
