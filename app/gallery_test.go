package app

import (
	"math"
	"strings"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"

	"outcrop/app/widget"
	"outcrop/assets"
)

const sampleAnswer = "Here is a **short plan** with `inline code`, a [link](https://example.org/a) and *stress*.\n\n" +
	"## What to do\n\n1. Read the file, and say which part of it is the slow one before anything else is changed in it.\n2. Change it:\n   - small steps\n   - tests first\n3. Look again\n\n" +
	"- [x] done\n- [ ] **open**\n\n> Memory is the reason, more often than not.\n\n" +
	"```go\n// Sum adds numbers.\nfunc Sum(v []float64) float64 {\n\tt := 0.0\n\tfor _, x := range v {\n\t\tt += x // one by one\n\t}\n\tfmt.Println(\"sum\", t, 42)\n\treturn t\n}\n```\n\n" +
	"| tier | bytes | what it holds, in words that are long enough to wrap |\n|---|--:|---|\n| VRAM | 9.1 GiB | dense part, KV and the experts in use most |\n| RAM | 14 GiB | experts |\n\n---\n\nUse `vector<int>` or <details>, and that is it."

func prose(md string) fyne.CanvasObject {
	box := widget.V(12)
	for _, b := range widget.Split(md) {
		if b.Code {
			box.Add(widget.NewCode(b.Lang, b.Text))
		} else {
			box.Add(widget.NewProse(b.Text))
		}
	}
	return box
}

func TestGallery(t *testing.T) {
	for _, look := range []Look{LookDark, LookLight} {
		a := test.NewTempApp(t)
		a.Settings().SetTheme(&Theme{Look: look})
		w := testWindow(t, look, widget.Pad(16, prose(sampleAnswer)), 752, 900)
		shot(t, w, "markdown-"+string(look))

		icons := widget.Flow(10)
		for _, n := range assets.IconNames() {
			icons.Add(widget.V(2, widget.NewIconButton(n, n, func() {}).In(widget.ColorText), widget.NewCaption(n)))
		}
		w = testWindow(t, look, widget.Pad(16, icons), 800, 420)
		shot(t, w, "icons-"+string(look))

		chart := widget.NewChart("Decode rate", true)
		var times, rate, pre []float64
		var strip []uint8
		for i := range 60 {
			times = append(times, float64(i))
			v := 30 + 10*math.Sin(float64(i)/6)
			if i > 20 && i < 26 {
				v = math.NaN()
			}
			rate = append(rate, v)
			pre = append(pre, 3)
			strip = append(strip, uint8(1+i/20))
		}
		chart.Set(widget.ChartData{Begin: 0, End: 60, Times: times, Strip: strip,
			Series: []widget.Series{{Name: "decode", Color: widget.ColorAccent, Fill: 0.18, Values: rate},
				{Name: "weights", Color: widget.ColorVRAM, Fill: 0.8, Stack: true, Values: pre}},
			Bands:  []widget.Band{{From: 20, To: 26, Color: widget.ColorVRAM}},
			Marks:  []widget.Mark{{At: 40, Text: "gave back mapped pages"}},
			Limits: []widget.Limit{{Value: 42, Text: "total", Color: widget.ColorDim, Dashed: true}}})
		chart.SetCross(10, true)
		fit := widget.NewFit(false)
		fit.Set([]widget.FitRow{
			{Name: "VRAM", Total: 16, Text: "9.1 of 15.9 GiB", Parts: []widget.FitPart{{Name: "weights", Value: 3, Color: widget.ColorVRAM}, {Name: "experts", Value: 5, Color: widget.ColorVRAM, Shade: 0.7}, {Name: "kv", Value: 1.1, Color: widget.ColorVRAM, Shade: 0.45}, {Name: "reserve", Value: 2, Color: widget.ColorVRAM, Hatch: true}}},
			{Name: "RAM", Total: 32, Text: "14 of 29 GiB", Parts: []widget.FitPart{{Name: "experts", Value: 14, Color: widget.ColorRAM}, {Name: "others", Value: 6, Color: widget.ColorDim, Shade: 0.6}, {Name: "floor", Value: 4, Color: widget.ColorRAM, Hatch: true}}, Short: 4},
			{Name: "disk", Text: "n/a", Why: "no file yet"}})
		heat := widget.NewHeat()
		hd := widget.HeatData{Layers: 8, Experts: 16}
		for i := range 128 {
			hd.Tier = append(hd.Tier, uint8(1+(i%16)/6))
			hd.Use = append(hd.Use, float64((i*7)%32)/16/16)
		}
		heat.Set(hd)
		status := widget.NewStatus()
		status.Set([]widget.StatusPart{{ID: "chat", Text: "SmolLM2 135M on Arc A770", State: widget.StateGood, Color: widget.ColorText}, {ID: "m", Text: "38.2 tok/s", Mono: true}, {ID: "r", Text: "RAM ok"}})
		ring := widget.NewRing(nil)
		ring.Set(0.36, "1.8K of 64K")
		toasts := widget.NewToasts()
		toasts.Undo("Conversation deleted: Foxes and their friends", func() {}, nil)
		page := widget.V(16, widget.NewTitle("Gallery"), widget.Sized(0, 190, chart), widget.Box(fit), heat,
			widget.H(8, ring, widget.NewChip("packs", "Outcrop starter", true, func() {}), widget.NewLink("Get a bigger pack", func() {}), widget.NewLight(widget.StateWatch)), status)
		w = testWindow(t, look, widget.Over(widget.Pad(16, page), toasts), 900, 720)
		toasts.Undo("Conversation deleted: Foxes and their friends", func() {}, nil)
		settle(w)
		shot(t, w, "gallery-"+string(look))
	}
}

func TestTranscriptIsWindowed(t *testing.T) {
	tr := widget.NewTranscript()
	w := testWindow(t, LookDark, tr, 900, 600)
	var items []widget.Item
	for i := range 500 {
		key := "p" + string(rune('a'+i%26)) + strings.Repeat("x", i%7) + string(rune('0'+i%10)) + strings.Repeat("y", i/10)
		text := strings.Repeat("Some words that fill a line and then wrap. ", 1+i%9)
		items = append(items, widget.Item{Key: key, Gap: 12, Guess: 60, Build: func() fyne.CanvasObject { return widget.NewProse(text) }})
	}
	tr.SetItems(items)
	if !tr.AtBottom() {
		t.Error("a new transcript does not show its end")
	}
	if n := tr.Live(); n == 0 || n > 80 {
		t.Errorf("%d of 500 items are live", n)
	}
	if tr.Object(items[499].Key) == nil {
		t.Error("the last item is not live at the bottom")
	}
	tr.ScrollTo(items[0].Key)
	if tr.Object(items[0].Key) == nil || tr.Object(items[499].Key) != nil {
		t.Error("scrolling to the top did not move the window of live items")
	}
	if tr.AtBottom() {
		t.Error("the top counts as the bottom")
	}
	// Text that grows below must not move what is read.
	before := tr.Object(items[1].Key).Position()
	items = append(items, widget.Item{Key: "new", Guess: 40, Build: func() fyne.CanvasObject { return widget.NewProse("new") }})
	tr.SetItems(items)
	if got := tr.Object(items[1].Key).Position(); got != before {
		t.Errorf("reading was moved from %v to %v", before, got)
	}
	tr.ScrollToBottom()
	if !tr.AtBottom() || tr.Object("new") == nil {
		t.Error("the bottom was not reached")
	}
	settle(w)
	if !tr.AtBottom() {
		t.Error("a new layout left the bottom")
	}
}
