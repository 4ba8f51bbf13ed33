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
