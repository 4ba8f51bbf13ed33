package plan

import "testing"

// With a profile the planner knows which experts the copies in RAM are.
func TestHotCopiesFollowProfile(t *testing.T) {
	pack := Pack{Name: "p", Width: 1024, Hidden: 1024, Vocab: 1000}
	for range 4 {
		l := Layer{Dense: 10 << 20, Experts: 64, Used: 4, Expert: 64 << 20, KV: 256}
		for e := range l.Experts {
			l.HotShare = append(l.HotShare, 0.8/16)
			if e >= 16 {
				l.HotShare[e] = 0.2 / 48
			}
		}
		pack.Layers = append(pack.Layers, l)
	}
	m := Machine{RAMTotal: Known(12<<30, "test"), RAMAvailable: Known(9<<30, "test"), Threads: 4, CPU: Rate{20e9, true}, DiskRandom: Rate{1e9, true}, DiskStream: Rate{1e9, true}}
	with, err := Make(pack, m, Wishes{Placement: AllFile})
	if err != nil {
		t.Fatal(err)
	}
	for i := range pack.Layers {
		pack.Layers[i].HotShare = nil
	}
	even, _ := Make(pack, m, Wishes{Placement: AllFile})
	if with.ExpertRAM <= 4<<30 || with.ExpertRAM != even.ExpertRAM || with.ExpertRAM > 6<<30 {
		t.Errorf("copies of %s, %s", size(with.ExpertRAM), size(even.ExpertRAM))
	}
	// A third of the experts fits: 16 hot ones and 5 others of 64.
	if w, e := with.Speed.DecodeLow, even.Speed.DecodeLow; w < 2.5*e {
		t.Errorf("%v tok/s with a profile, %v without", w, e)
	}
	if !with.Speed.Measured {
		t.Error("all rates were measured")
	}
}
