package app

import (
	"bytes"
	"encoding/csv"
	"math"
	"strings"
	"testing"
	"time"

	"fyne.io/fyne/v2"

	"outcrop/app/widget"
	"outcrop/engine/wire"
)

func TestHistoryIsARing(t *testing.T) {
	h := newHistory()
	now := time.Unix(1_700_000_000, 0)
	for i := range historyLength + 50 {
		h.add(wire.Sample{Engine: wire.Engine{Phase: "decode", DecodeTokS: float64(i)}}, true, now.Add(time.Duration(i)*time.Second))
	}
	n, prev := 0, time.Time{}
	h.each(time.Time{}, func(p *point) {
		if !p.at.After(prev) {
			t.Fatal("points are not in order")
		}
		prev = p.at
		n++
	})
	if n != historyLength {
		t.Errorf("%d points, want %d", n, historyLength)
	}
	if got := h.last().values[colDecode]; got != historyLength+49 {
		t.Errorf("the last point has %v", got)
	}
	times, v, _ := h.chart(prev.Add(-10*time.Second), colDecode)
	if len(times) != 16 || v[0][15] != historyLength+49 { // 5 s before the axis, so that a line enters it
		t.Errorf("a chart of 10 s has %d points", len(times))
	}
}

func TestUnknownStaysUnknown(t *testing.T) {
	h := newHistory()
	p := h.add(wire.Sample{Cards: []wire.Card{{Name: "x", VRAM: wire.Unknown("bytes", "xe", "silent"), Total: wire.Known(gib, "bytes", "sysfs")}}}, true, time.Now())
	for _, c := range []column{colVRAMOwn, colVRAMOthers, colRAMTotal, colDecode, colTemp} {
		if !math.IsNaN(p.values[c]) {
			t.Errorf("%s is %v, want unknown", columnNames[c], p.values[c])
		}
	}
	if p.level != widget.LevelUnknown {
		t.Errorf("pressure is %v", p.level)
	}
	var b bytes.Buffer
	if err := h.writeCSV(&b, time.Time{}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[0]) != 4+int(columnCount) {
		t.Fatalf("got %d rows, %v", len(rows), err)
	}
	for i, name := range rows[0] {
		if name == "vram_own_bytes" && rows[1][i] != "" {
			t.Errorf("unknown is written as %q", rows[1][i])
		}
		if name == "vram_total_bytes" && rows[1][i] != "1.073741824e+09" {
			t.Errorf("the total is written as %q", rows[1][i])
		}
	}
}

func TestGuardWordsAreToldOnce(t *testing.T) {
	h := newHistory()
	say := func(words ...string) []string {
		return h.add(wire.Sample{Guard: wire.Guard{Words: words}}, true, time.Now()).marks
	}
	for i, c := range []struct{ in, want string }{
		{"a", "a"}, {"a", ""}, {"a,b", "b"}, {"b,c,d", "c,d"}, {"d", ""}, {"x", "x"}, {"", ""}, {"x", "x"},
	} {
		var words []string
		if c.in != "" {
			words = strings.Split(c.in, ",")
		}
		if got := strings.Join(say(words...), ","); got != c.want {
			t.Errorf("step %d, %q: got %q, want %q", i, c.in, got, c.want)
		}
	}
}

func TestMonitorDraws(t *testing.T) {
	r := newRig(t, LookDark)
	r.a.visit("monitor")
	p := r.a.page("monitor").(*monitorPage)
	r.feed(90)
	d := p.rate.Data()
	if len(d.Bands) == 0 || len(d.Marks) != 1 || !strings.Contains(d.Marks[0].Text, "Gave back") {
		t.Errorf("%d shaded stretches, marks %+v", len(d.Bands), d.Marks)
	}
	if d.Begin >= d.End || math.Abs(d.End-d.Begin-60) > 0.01 {
		t.Errorf("the axis has %v s", d.End-d.Begin)
	}
	if v := p.cards[0].chart.Data(); v.Max != 15.1*gib || len(v.Series) != 7 {
		t.Errorf("VRAM has top %v and %d series", v.Max, len(v.Series))
	}
	if p.heat.Data().Layers != 24 || p.tiersBox.Hidden {
		t.Error("the residency map is not shown")
	}
	// Unknown power is a dash that says why.
	row := p.sensorRows["power"]
	if row.value.Text() != "—" || !strings.Contains(row.tip.Tip(), "no such file") {
		t.Errorf("power shows %q, tip %q", row.value.Text(), row.tip.Tip())
	}
	if s := p.summary(); !strings.Contains(s, "decode_tok_s") || strings.Contains(s, "NaN") {
		t.Errorf("summary: %s", s)
	}
	// Pause freezes the axis while readings go on.
	p.key(fyne.KeySpace)
	end := p.rate.Data().End
	r.feed(5)
	if p.rate.Data().End != end {
		t.Error("a paused chart moves")
	}
	p.key(fyne.KeySpace)
	r.feed(1)
	if p.rate.Data().End <= end {
		t.Error("a chart that goes on does not move")
	}
	p.cross(p.rate.Data().Begin+30, true)
	p.cross(0, false)
	settle(r.a.win)
	if img := r.a.picture(p.charts); img.Bounds().Dx() < 300 || img.Bounds().Dy() < 300 {
		t.Errorf("the picture is %v", img.Bounds())
	}
	// Nothing is drawn while another page is in view.
	r.a.visit("chat")
	end = p.rate.Data().End
	r.feed(3)
	if p.rate.Data().End != end {
		t.Error("a page out of view draws")
	}
}

func TestMonitorWithoutCard(t *testing.T) {
	r := newRig(t, LookDark)
	r.a.visit("monitor")
	r.engine.tell(wire.Sample{Time: r.now, Memory: wire.Memory{Total: wire.Known(8*gib, "bytes", "x"), Available: wire.Known(4*gib, "bytes", "x")}})
	r.pump()
	p := r.a.page("monitor").(*monitorPage)
	if p.noCard.Hidden || len(p.cards) != 0 || len(p.charts.Objects) != 3 {
		t.Error("a machine without a card still has an empty VRAM chart")
	}
}

func TestOwnLookWhileNoEngineTells(t *testing.T) {
	r := newRig(t, LookDark)
	r.tick()
	if r.a.look == nil || r.a.history.last() == nil || r.a.history.last().engine {
		t.Fatal("nobody looks at the machine while the engine is silent")
	}
	r.feed(1)
	r.tick()
	if r.a.look != nil {
		t.Error("we still look although the engine tells")
	}
	r.a.hidden = true
	r.now = r.now.Add(time.Minute)
	r.tick()
	if r.a.look != nil {
		t.Error("we look although nobody can see it")
	}
}

func TestSlownessInWords(t *testing.T) {
	h := newHistory()
	s := wire.Sample{Engine: wire.Engine{Phase: "decode", MSPerStep: 95, Use: wire.Use{Weights: 1}, Drafted: 50, Accepted: 40},
		Memory: wire.Memory{FullAvg10: wire.Known(12, "percent", "")}, Tiers: &wire.Tiers{VRAM: 60, RAM: 30, File: 10, WaitMS: 40}}
	got := strings.Join(slowness(h.add(s, true, time.Now()), nil), "\n")
	for _, want := range []string{"waited for memory 12 %", "60 % were in VRAM, 30 % in RAM and 10 % in the file", "waits 40.0 ms", "80 % of the drafted"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not said:\n%s", want, got)
		}
	}
	if slowness(nil, nil) != nil || slowness(h.add(s, false, time.Now()), nil) != nil {
		t.Error("something is said without an engine")
	}
}

// The guard's step and its last actions stand on the page in words.
func TestGuardInWords(t *testing.T) {
	r := newRig(t, LookDark)
	r.a.visit("monitor")
	p := r.a.page("monitor").(*monitorPage)
	tell := func(g wire.Guard) string {
		r.engine.tell(wire.Sample{Time: r.now, Guard: g})
		r.pump()
		return texts(p.guard)
	}
	if got := tell(wire.Guard{Preset: "daily", Step: "normal", Words: []string{}}); got != "Memory guard\nNothing is given up: there is room.\nleaves free: daily\n" {
		t.Errorf("at rest: %q", got)
	}
	got := tell(wire.Guard{Preset: "busy", Step: "RAM tier shrunk", Acting: true, Words: []string{"gave back 1.2 GiB", "shrank the RAM tier"}})
	if got != "Memory guard\nNow: RAM tier shrunk.\nleaves free: busy\nShrank the RAM tier.\nGave back 1.2 GiB.\n" {
		t.Errorf("acting: %q", got)
	}
	if !strings.Contains(p.summary(), "Guard: shrank the RAM tier") {
		t.Error("the copied readings do not say what the guard did")
	}
}

// Every card has its chart, by use where the engine tells it.
func TestEveryCardHasItsChart(t *testing.T) {
	r := newRig(t, LookDark)
	r.a.visit("monitor")
	p := r.a.page("monitor").(*monitorPage)
	b := func(v float64) wire.Reading { return wire.Known(v*gib, "bytes", "x") }
	tell := func(cards ...wire.Card) {
		r.engine.tell(wire.Sample{Time: r.now, Engine: wire.Engine{Phase: "decode", DecodeTokS: 30}, Cards: cards})
		r.pump()
		r.now = r.now.Add(time.Second)
	}
	one := wire.Card{PCI: "0000:03:00.0", Name: "Arc A770", Used: true, Total: b(15), VRAM: b(12), Own: b(11), Use: &wire.CardUse{Layers: 20, Weights: 4 * gib, KV: gib, Slots: 5 * gib, Scratch: gib / 2},
		Others: []wire.Holder{{PID: 9, Name: "browser", VRAM: b(0.75)}, {PID: 77, VRAM: wire.Unknown("bytes", "NVML", "not told")}}}
	two := wire.Card{PCI: "0000:07:00.0", Name: "Arc A770", Total: b(15), VRAM: b(1), Own: wire.Unknown("bytes", "", "not used"), WhyIdle: "nobody asked", OthersWhy: "NVML: no permission"}
	for range 70 {
		tell(one, two)
	}
	if len(p.cards) != 2 {
		t.Fatalf("%d charts", len(p.cards))
	}
	sum := func(c *cardChart) (names string, last float64) {
		for _, s := range c.chart.Data().Series {
			names += s.Name + ";"
			if v := s.Values[len(s.Values)-1]; !math.IsNaN(v) {
				last += v
			}
		}
		return names, last / gib
	}
	if names, all := sum(p.cards[0]); names != "weights;experts in use most;KV cache;work space;driver;others;free;" || all != 15 {
		t.Errorf("the card in use: %s %v GiB", names, all)
	}
	if names, all := sum(p.cards[1]); names != "this engine;others;free;" || all != 15 {
		t.Errorf("the idle card: %s %v GiB", names, all)
	}
	idle := wire.Card{Total: b(140), VRAM: wire.Known(0.6*gib, "bytes", "NVML")}
	if got := holdersWords(&idle); got != "No other program uses this card: the rest is kept by its driver." {
		t.Errorf("a card that nobody uses: %q", got)
	}
	last := func(c *cardChart, name string) float64 {
		for _, s := range c.chart.Data().Series {
			if s.Name == name {
				return s.Values[len(s.Values)-1] / gib
			}
		}
		return math.NaN()
	}
	if o, f := last(p.cards[0], "others"), last(p.cards[0], "free"); o != 1 || f != 3 {
		t.Errorf("others hold %v, free are %v GiB", o, f)
	}
	if got := p.cards[0].note.Text(); got != "Others: browser 768 MiB, process 77 —" {
		t.Errorf("who the others are: %q", got)
	}
	if got := p.cards[1].note.Text(); got != "Who the others are is not told: NVML: no permission" {
		t.Errorf("why they are not told: %q", got)
	}
	for name, want := range map[string]string{"Arc A770 03:00 VRAM in use": "12.0 GiB", "Arc A770 07:00 VRAM in use": "1.0 GiB"} {
		if row := p.sensorRows[name]; row == nil || row.value.Text() != want {
			t.Errorf("the reading %q is %+v, want %s", name, row, want)
		}
	}
	settle(r.a.win)
	shot(t, r.a.win, "monitor-two-cards")
	if got := texts(p.why); !strings.Contains(got, "Arc A770 07:00 is not used: nobody asked.") {
		t.Errorf("why: %s", got)
	}
	// Both in use: the status line adds them up.
	two.Used, two.VRAM = true, b(3)
	tell(one, two)
	if got := vramPart(&r.a.history.last().sample); got == nil || got.Text != "VRAM 15.0/30.0" {
		t.Errorf("status: %+v", got)
	}
	tell(one)
	if len(p.cards) != 1 {
		t.Error("a card that went away keeps its chart")
	}
}

// Of an hour of readings only the last keeps the map of the experts.
func TestHistoryKeepsOneMap(t *testing.T) {
	h := newHistory()
	now := time.Now()
	for i := range historyLength + 10 {
		h.add(wire.Sample{Residency: &wire.Residency{Layers: 1, Experts: 1}}, true, now.Add(time.Duration(i)*time.Second))
	}
	n := 0
	h.each(time.Time{}, func(p *point) {
		if p.sample.Residency != nil {
			n++
		}
	})
	if n != 1 || h.last().sample.Residency == nil {
		t.Errorf("%d maps are kept", n)
	}
}

func TestSlownessOfCardsAndDisk(t *testing.T) {
	h := newHistory()
	now := time.Now()
	faults := func(n float64) wire.Process {
		return wire.Process{PID: 7, Major: wire.Known(n, "", "")}
	}
	s := wire.Sample{Process: faults(1000), Engine: wire.Engine{Phase: "decode", MSPerStep: 50, ReadBS: 19.2e9, BytesPerToken: 960 * mib, Threads: 2, Device: "H200", Queue: 2,
		LayerTimes: &wire.Layers{Count: 48, CardMS: 0.2, CPUMS: 0.5, WaitMS: 0.1}},
		CPU:   wire.CPU{Busy: wire.Known(90, "percent", ""), Process: wire.Known(100, "percent", ""), Cores: 2},
		Tiers: &wire.Tiers{RAM: 1, File: 1, FileMS: 12.5, WaitMS: 13, DiskBS: 1.5e9, Linked: 5, LinkBS: 20e9, Guessed: 10, Right: 7, Given: gib}}
	h.add(s, true, now)
	s.Process = faults(1400)
	p := h.add(s, true, now.Add(2*time.Second))
	got := strings.Join(slowness(p, h.before(p)), "\n")
	for _, want := range []string{"waited for the disk 200 times in the last second", "A step takes 50.0 ms on H200 with 2 threads and reads 960 MiB of weights, 19.2 GB/s.",
		"0.20 ms on the card and 0.50 ms on the CPU", "more experts in VRAM would help", "waits 12.5 ms for experts from the file, which the disk gives at 1.5 GB/s",
		"over the link at 20.0 GB/s", "70 % of the experts that were read ahead", "1.0 GiB of experts were given back", "Other programs keep 40 % of the CPU busy", "2 more requests"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not said:\n%s", want, got)
		}
	}
}

// In a control group with a limit, that is the RAM there is.
func TestRoomOfAControlGroup(t *testing.T) {
	b := func(v float64) wire.Reading { return wire.Known(v*gib, "bytes", "x") }
	m := wire.Memory{Total: b(24), Available: b(20)}
	if total, left := room(m); total != m.Total || left != m.Available {
		t.Errorf("without a group: %v, %v", total, left)
	}
	m.Limit, m.Used, m.Cache = b(2), b(1.5), b(0.25)
	if total, left := room(m); total.Value != 2*gib || left.Value != 0.75*gib {
		t.Errorf("in a group: %v, %v", total.Value/gib, left.Value/gib)
	}
	p := newHistory().add(wire.Sample{Memory: m, Process: wire.Process{Anon: b(0.5), Mapped: b(0.125)}}, true, time.Now())
	if v := p.values; v[colRAMTotal] != 2*gib || v[colRAMOthers] != 0.75*gib || v[colRAMAvailable] != 0.625*gib {
		t.Errorf("the chart shows total %v, others %v, available %v", v[colRAMTotal]/gib, v[colRAMOthers]/gib, v[colRAMAvailable]/gib)
	}
	m.Limit = b(64)
	if total, _ := room(m); total != m.Total {
		t.Errorf("a limit above the machine's RAM: %v", total)
	}
}
