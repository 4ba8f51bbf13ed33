package plan

import (
	"strings"
	"testing"
)

// Where only the processor was measured, a disk that no plan needs makes none
// better: the range of the plan from the file was wider for it, and a pack a
// twentieth of the RAM was read from the disk.
func TestUnmeasuredIsNoBetter(t *testing.T) {
	for _, disk := range []Rate{{}, {PerSecond: 2e9, Measured: true}} {
		m := Machine{RAMTotal: Known(64*gib, "test"), RAMAvailable: Known(58*gib, "test"), CPU: Rate{17e9, true}, Threads: 2, DiskRandom: disk}
		pl, err := Make(coder, m, Wishes{})
		if err != nil {
			t.Fatal(err)
		}
		if pl.Placement != AllRAM || !pl.Fits || !pl.Speed.Measured {
			t.Errorf("disk %+v: %s, fits %v, %+v; want RAM by measured rates", disk, pl.Placement, pl.Fits, pl.Speed)
		}
		for _, a := range pl.Alternatives {
			if a.Placement == AllFile && (!strings.HasPrefix(a.Why, "no faster") || a.Speed.Measured != true) {
				t.Errorf("disk %+v: the file is %q, %+v", disk, a.Why, a.Speed)
			}
		}
	}
	// A pack that does need the disk goes by a guess.
	m := Machine{RAMTotal: Known(16*gib, "test"), RAMAvailable: Known(14*gib, "test"), CPU: Rate{17e9, true}, Threads: 2}
	if pl, err := Make(coder, m, Wishes{}); err != nil || !pl.Fits || pl.Placement != AllFile || pl.Speed.Measured {
		t.Errorf("a pack bigger than RAM: %v, %s, fits %v, measured %v", err, pl.Placement, pl.Fits, pl.Speed.Measured)
	}
}

// What the engine refuses to load is no plan.
func TestWhatNoEngineTakes(t *testing.T) {
	m := Machine{RAMTotal: Known(64*gib, "test"), RAMAvailable: Known(58*gib, "test"), Threads: 2}
	if _, err := Make(coder, m, Wishes{Chunk: 65537}); err == nil || !strings.Contains(err.Error(), "a chunk of 65537 asked, 1 to 65536 are possible") {
		t.Errorf("a chunk beyond the engine's: %v", err)
	}
}

// Who asked for the processor is not told that it is quicker.
func TestWhyNoCard(t *testing.T) {
	pl, err := Make(coder, smallCard(), Wishes{Placement: AllRAM})
	if err != nil || !pl.Fits {
		t.Fatal(err, pl.Short)
	}
	if all := strings.Join(pl.Reasons, "; "); !strings.Contains(all, "running on the CPU because that was asked for") || strings.Contains(all, "faster") {
		t.Errorf("got %q", all)
	}
}

// Nothing is short of 0 bytes.
func TestShortWords(t *testing.T) {
	for want, s := range map[string]Short{
		"VRAM: no card is present":           {Where: "VRAM", Why: "no card is present"},
		"RAM is short of 2.00 GiB (weights)": {Where: "RAM", Bytes: 2 * gib, Why: "weights"},
	} {
		if got := s.String(); got != want {
			t.Errorf("%+v: %q, want %q", s, got, want)
		}
	}
}
