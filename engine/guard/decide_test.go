package guard

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

const gib = int64(1) << 30

var daily = Config{RAMFloor: 4 * gib, VRAMFloor: 700 << 20, Enabled: true}

// ram makes a reading of a 32 GiB machine.
func ram(availGiB float64, some, full float64) Reading {
	return Reading{RAMTotal: Of(32 * gib), RAMAvailable: Of(int64(availGiB * float64(gib))), PSISome: RateOf(some), PSIFull: RateOf(full)}
}

func TestLevelOf(t *testing.T) {
	swap := ram(10, 0, 0)
	swap.SwapIn = RateOf(30 << 20)
	gtt := ram(20, 0, 0)
	gtt.GTTGrowth = RateOf(100 << 20)
	faults := ram(20, 0, 0)
	faults.MajorFaults = RateOf(5000)
	for _, c := range []struct {
		name string
		r    Reading
		want Level
	}{
		{"nothing known", Reading{}, Unknown},
		{"total but no available", Reading{RAMTotal: Of(gib)}, Unknown},
		{"plenty", ram(20, 0, 0), Good},
		{"mapped model faulting pages in with room to spare", faults, Good},
		{"below 15 %", ram(4.5, 0, 0), Watch},
		{"below the floor", ram(3.9, 0, 0), Watch},
		{"some tasks wait", ram(20, 12, 0), Watch},
		{"VRAM spills into RAM", gtt, Watch},
		{"below 7 %", ram(2.1, 0, 0), Act},
		{"all tasks wait", ram(8, 40, 25), Act},
		{"all tasks wait, but RAM is free: a disk, not memory", ram(20, 60, 50), Watch},
		{"reading back from swap", swap, Act},
		{"below 4 %", ram(1.2, 0, 0), Critical},
		{"stalled", ram(3, 80, 45), Critical},
	} {
		if got := LevelOf(c.r, daily); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestFloorScalesDown(t *testing.T) {
	if got := (Config{RAMFloor: 8 * gib}).For(8 * gib).RAMFloor; got != 2*gib {
		t.Errorf("8 GiB floor on 8 GiB: %d", got)
	}
	if got := (Config{RAMFloor: 4 * gib}).For(64 * gib).RAMFloor; got != 4*gib {
		t.Errorf("4 GiB floor on 64 GiB: %d", got)
	}
}

// run feeds one reading a second and returns the step after each.
func run(t *testing.T, c Config, rs []Reading) (steps []Step, ds []Decision) {
	t.Helper()
	var s State
	now := time.Unix(1000, 0)
	for _, r := range rs {
		now = now.Add(time.Second)
		r.At = now
		var d Decision
		s, d = Decide(s, r, now, c)
		steps = append(steps, d.Step)
		ds = append(ds, d)
	}
	return steps, ds
}

func repeat(n int, r Reading) []Reading {
	rs := make([]Reading, n)
	for i := range rs {
		rs[i] = r
	}
	return rs
}

func TestTightStopsAtGiveBack(t *testing.T) {
	steps, ds := run(t, daily, repeat(60, ram(4.2, 5, 0)))
	if got := steps[len(steps)-1]; got != GiveBack {
		t.Errorf("after a minute of a merely tight machine: %v, want %v", got, GiveBack)
	}
	if !strings.Contains(ds[0].Words[0], "4.2 GiB of 32.0 GiB") {
		t.Errorf("the words carry no numbers: %q", ds[0].Words)
	}
}

func TestShortPausesAndResumes(t *testing.T) {
	steps, _ := run(t, daily, append(repeat(15, ram(2, 30, 25)), repeat(30, ram(4.3, 2, 0))...))
	if steps[14] != Pause {
		t.Fatalf("after 15 s of a short machine: %v, want %v", steps[14], Pause)
	}
	if got := steps[len(steps)-1]; got != ShrinkRAM {
		t.Errorf("once merely tight: %v, want the answer to go on at %v", got, ShrinkRAM)
	}
}

func TestCriticalIsFast(t *testing.T) {
	steps, _ := run(t, daily, repeat(6, ram(0.8, 90, 60)))
	if steps[5] != Unload {
		t.Errorf("six seconds of critical: %v, want %v", steps[5], Unload)
	}
	for i := 1; i < len(steps); i++ {
		if steps[i] > steps[i-1]+1 {
			t.Errorf("skipped a step: %v to %v", steps[i-1], steps[i])
		}
	}
}

func TestRecoveryIsSlow(t *testing.T) {
	steps, ds := run(t, daily, append(repeat(10, ram(2, 30, 25)), repeat(120, ram(20, 0, 0))...))
	for i := 11; i < len(steps); i++ {
		if steps[i] < steps[i-1]-1 {
			t.Errorf("second %d: fell from %v to %v at once", i, steps[i-1], steps[i])
		}
	}
	if steps[10+18] != steps[9] {
		t.Errorf("gave a step back after 18 s, want 20 s of calm")
	}
	last := ds[len(ds)-1]
	if last.Step != Normal || !last.MayGrow {
		t.Errorf("two good minutes later: %v, may grow %v", last.Step, last.MayGrow)
	}
}

// A level that flips every second must not make the engine flip with it.
func TestNoFlapping(t *testing.T) {
	var rs []Reading
	for range 60 {
		rs = append(rs, ram(4.5, 0, 0), ram(6, 0, 0))
	}
	steps, _ := run(t, daily, rs)
	changes := 0
	for i := 1; i < len(steps); i++ {
		if steps[i] != steps[i-1] {
			changes++
		}
	}
	if changes > 2 {
		t.Errorf("%d changes in two minutes of noise, want at most 2", changes)
	}
}

func TestMissingAndStaleHold(t *testing.T) {
	var s State
	now := time.Unix(1000, 0)
	bad := ram(2, 30, 25)
	bad.At = now
	s, _ = Decide(s, bad, now, daily)
	if s.Step != StopPrefetch {
		t.Fatalf("step %v", s.Step)
	}
	// The same reading, eleven seconds old, says nothing any more.
	s, d := Decide(s, bad, now.Add(11*time.Second), daily)
	if d.Step != StopPrefetch || d.MayGrow || d.Level != Unknown {
		t.Errorf("stale: step %v, may grow %v, level %v", d.Step, d.MayGrow, d.Level)
	}
	for i := range 100 {
		now = now.Add(time.Second)
		s, d = Decide(s, Reading{At: now}, now, daily)
		if d.Step != StopPrefetch || d.MayGrow {
			t.Fatalf("missing reading %d: step %v, may grow %v", i, d.Step, d.MayGrow)
		}
	}
}

func TestOffNeverActs(t *testing.T) {
	c := daily
	c.Enabled = false
	_, ds := run(t, c, repeat(20, ram(0.5, 99, 99)))
	for _, d := range ds {
		if d.Step != Normal || len(d.Words) > 0 || len(d.Slots) > 0 {
			t.Fatalf("guard is off and asked for %+v", d)
		}
		if d.Level != Critical {
			t.Errorf("off does not mean blind: level %v", d.Level)
		}
	}
}

func card(free, slots int64) Reading {
	r := ram(20, 0, 0)
	r.VRAM = []VRAM{{PCI: "0000:03:00.0", Total: Of(16 * gib), Free: Of(free), Slots: slots}}
	return r
}

func TestVRAMShrinksAtOnceGrowsSlowly(t *testing.T) {
	_, ds := run(t, daily, append([]Reading{card(200<<20, 4*gib)}, repeat(40, card(3*gib, 3*gib))...))
	if n := ds[0].Slots["0000:03:00.0"]; n != -(500<<20 + 175<<20) {
		t.Errorf("gave back %d MiB, want 675 MiB", -n>>20)
	}
	var grown []int
	for i, d := range ds {
		if d.Slots["0000:03:00.0"] > 0 {
			grown = append(grown, i)
			if d.Slots["0000:03:00.0"] > vramGrow {
				t.Errorf("grew by %d at once", d.Slots["0000:03:00.0"])
			}
		}
	}
	if len(grown) != 1 || grown[0] < 30 {
		t.Errorf("grew at seconds %v, want once after 30 s of calm", grown)
	}
}

// A card that drives a screen keeps more free: what its programs want next.
func TestVRAMOfAScreen(t *testing.T) {
	r := card(1<<30, 4*gib)
	if _, ds := run(t, daily, []Reading{r}); len(ds[0].Slots) != 0 {
		t.Errorf("1 GiB free beside a floor of 700 MiB: %v", ds[0].Slots)
	}
	r.VRAM[0].Display = true
	if _, ds := run(t, daily, []Reading{r}); ds[0].Slots["0000:03:00.0"] >= 0 {
		t.Errorf("1 GiB free on the card of a screen: %v", ds[0].Slots)
	}
}

func TestVRAMGivesNoMoreThanItHas(t *testing.T) {
	_, ds := run(t, daily, []Reading{card(0, 100<<20)})
	if n := ds[0].Slots["0000:03:00.0"]; n != -100<<20 {
		t.Errorf("gave back %d of 100 MiB", -n>>20)
	}
}

func TestVRAMUnknownFreezes(t *testing.T) {
	r := card(0, gib)
	r.VRAM[0].Free = Value{}
	_, ds := run(t, daily, repeat(60, r))
	for _, d := range ds {
		if len(d.Slots) > 0 {
			t.Fatalf("unknown free VRAM led to %v", d.Slots)
		}
	}
}

// Tight RAM must stop slots from growing: what is promoted later is evicted
// into RAM again.
func TestTightRAMStopsSlotGrowth(t *testing.T) {
	r := card(8*gib, gib)
	r.RAMAvailable = Of(4 * gib)
	_, ds := run(t, daily, repeat(90, r))
	for _, d := range ds {
		if d.Slots["0000:03:00.0"] > 0 {
			t.Fatal("grew slots while RAM was tight")
		}
	}
}

// Whatever the readings, the rules hold: one step up at a time, words with
// every change, no growth unless good.
func TestInvariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var s State
		now := time.Unix(1000, 0)
		for range 300 {
			now = now.Add(time.Duration(rng.IntN(3000)) * time.Millisecond)
			r := ram(rng.Float64()*16, rng.Float64()*50, rng.Float64()*60)
			r.At = now.Add(-time.Duration(rng.IntN(15)) * time.Second)
			if rng.IntN(8) == 0 {
				r = Reading{At: now}
			}
			r.VRAM = []VRAM{{PCI: "a", Total: Of(8 * gib), Free: Value{rng.Int64N(8 * gib), rng.IntN(5) > 0}, Slots: rng.Int64N(4 * gib)}}
			before := s
			var d Decision
			s, d = Decide(s, r, now, daily)
			if d.Step > before.Step+1 {
				t.Fatalf("from %v to %v at once", before.Step, d.Step)
			}
			if (d.Step != before.Step) && len(d.Words) == 0 {
				t.Fatal("a step changed without a word")
			}
			if d.MayGrow && (d.Level != Good || d.Step != Normal) {
				t.Fatalf("may grow at level %v, step %v", d.Level, d.Step)
			}
			if n := d.Slots["a"]; n < 0 && -n > r.VRAM[0].Slots {
				t.Fatalf("gave back %d of %d", -n, r.VRAM[0].Slots)
			}
		}
	}
}

func holding(availGiB float64, held, wanted int64) Reading {
	r := ram(availGiB, 0, 0)
	r.Held, r.Wanted = held, wanted
	return r
}

// Copies go when the floor is not free, as many as it takes, and come back in
// pieces once all is well.
func TestCopiesShrinkAndGrow(t *testing.T) {
	held := 10 * gib
	rs := repeat(10, holding(3.5, held, held)) // floor 4: tight, not short
	_, ds := run(t, daily, rs)
	var given int64
	for i, d := range ds {
		if d.RAM < 0 && d.Step != ShrinkRAM {
			t.Errorf("second %d: copies went at step %v", i, d.Step)
		}
		if given == 0 {
			given = -d.RAM
		}
	}
	if given != 3*gib/2 {
		t.Errorf("gave back %d MiB first, want 1536: up to the floor and a quarter more", given>>20)
	}
	// Where RAM is short they go at once, whatever the step.
	for _, left := range []float64{1, 2} {
		if _, ds := run(t, daily, []Reading{holding(left, held, held)}); ds[0].RAM != -int64((5-left)*float64(gib)) || ds[0].Step != StopPrefetch {
			t.Errorf("%v GiB left: gave back %d MiB at step %v", left, -ds[0].RAM>>20, ds[0].Step)
		}
	}
	if steps, _ := run(t, daily, repeat(60, holding(3.5, 0, held))); steps[59] != GiveBack {
		t.Errorf("with no copies left a tight machine is at %v, want %v", steps[59], GiveBack)
	}
	// Growth: nothing for a while, then pieces of a GiB (of 32) ten seconds apart.
	_, ds = run(t, daily, repeat(40, holding(20, gib, 5*gib)))
	var at []int
	for i, d := range ds {
		if d.RAM < 0 || d.RAM > gib {
			t.Errorf("second %d: %d", i, d.RAM)
		}
		if d.RAM > 0 {
			at = append(at, i)
		}
	}
	if len(at) != 3 || at[0] < 10 {
		t.Errorf("grew at seconds %v", at)
	}
	_, ds = run(t, daily, repeat(40, holding(5.5, gib, 5*gib)))
	for i, d := range ds {
		if d.RAM > 0 {
			t.Fatalf("second %d: grew by %d with 1.5 GiB above the floor", i, d.RAM)
		}
	}
	off := daily
	off.Enabled = false
	_, ds = run(t, off, append(repeat(20, holding(0.5, held, held)), repeat(40, holding(20, gib, held))...))
	for _, d := range ds {
		if d.RAM != 0 {
			t.Fatalf("the guard is off and asked for %d", d.RAM)
		}
	}
}

// A closed loop: what is given back is free at the next reading, and what
// grows is used. It must come to rest above the floor, and not swing.
func TestCopiesComeToRest(t *testing.T) {
	var s State
	now := time.Unix(1000, 0)
	held, wanted := 12*gib, 12*gib
	others := int64(0)
	changes := 0
	for i := range 600 {
		if i == 30 {
			others = 8 * gib // a program takes memory, and keeps it
		}
		now = now.Add(time.Second)
		r := ram(float64(16*gib-others-held)/float64(gib)+0, 0, 0)
		r.At, r.Held, r.Wanted = now, held, wanted
		var d Decision
		s, d = Decide(s, r, now, daily)
		if held += d.RAM; held > wanted {
			held = wanted
		}
		if i > 200 && d.RAM != 0 {
			changes++
		}
	}
	if free := 16*gib - others - held; free < 4*gib || held < gib {
		t.Errorf("%.1f GiB free, %.1f held in the end", float64(free)/float64(gib), float64(held)/float64(gib))
	}
	if changes > 2 {
		t.Errorf("%d changes after 200 s", changes)
	}
}
