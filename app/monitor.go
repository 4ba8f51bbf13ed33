package app

import (
	"fmt"
	"image/png"
	"math"
	"os"
	"strings"
	"time"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"outcrop/app/widget"
	"outcrop/engine/wire"
)

// monitorPage shows the last hour: three charts on one time axis with one
// crosshair, where the experts live, and the sensors.
type monitorPage struct {
	a      *App
	span   time.Duration
	paused time.Time // the end of the axis while paused; zero: it runs
	inView bool

	ram, rate *widget.Chart
	cards     []*cardChart // one a card
	spans     []*widget.Chip
	pause     *widget.IconButton
	why       *fyne.Container
	guard     *fyne.Container
	noCard    *fyne.Container
	// why there is no chart of VRAM
	noCardWords *widget.Text
	heat        *widget.Heat
	tiers       *fyne.Container
	tiersBox    *fyne.Container
	sensors     *fyne.Container
	sensorRows  map[string]*sensorRow
	charts      *fyne.Container
	scroll      *widget.PageScroll
	root        *fyne.Container
}

// spans are the windows of time a person can choose.
var monitorSpans = []struct {
	words string
	d     time.Duration
}{{"1 min", time.Minute}, {"5 min", 5 * time.Minute}, {"60 min", time.Hour}}

func newMonitor(a *App) page {
	p := &monitorPage{a: a, span: time.Minute, sensorRows: map[string]*sensorRow{}, why: widget.V(4), guard: widget.V(4), sensors: widget.Flow(10), tiers: widget.Flow(14)}
	p.ram = widget.NewChart("RAM", false)
	p.rate = widget.NewChart(tr("Decode rate, tok/s"), true)
	for _, c := range []*widget.Chart{p.ram, p.rate} {
		c.OnCross = p.cross
	}
	p.heat = widget.NewHeat()
	p.heat.Describe = describeExpert
	p.noCardWords = widget.NewCaption("")
	p.noCard = widget.H(10, widget.NewText("VRAM").Bold(), widget.Flex(p.noCardWords))
	p.noCard.Hide()
	p.charts = widget.V(14)
	p.layCharts()
	p.tiersBox = widget.V(8, widget.NewHeading(tr("Where the experts live")),
		widget.NewNote(tr("A row a layer, a column an expert. Colour is the layer of memory; brighter is used more.")), p.heat, p.tiers)
	p.tiersBox.Hide()
	pad := theme.Size(widget.SizePage)
	ground := widget.Over(widget.NewGround("background", "", 0), p.charts)
	p.scroll = widget.NewPageScroll(widget.Inset(4, pad, 28, pad, widget.V(20, ground, p.why, p.guard, p.tiersBox,
		widget.V(8, widget.NewHeading(tr("Readings")), p.sensors))))
	p.root = widget.Over(p.scroll)
	for _, s := range monitorSpans {
		chip := widget.NewChip("", s.words, false, nil)
		chip.OnTapped = func() { p.span = s.d; p.marks(); p.draw() }
		p.spans = append(p.spans, chip)
	}
	p.pause = widget.NewIconButton("pause", tr("Pause"), p.togglePause)
	p.marks()
	p.draw()
	return p
}

func (p *monitorPage) object() fyne.CanvasObject { return p.root }

func (p *monitorPage) actions() []fyne.CanvasObject {
	var out []fyne.CanvasObject
	for _, c := range p.spans {
		out = append(out, c)
	}
	return append(out, p.pause,
		widget.NewIconButton("table", tr("Save as CSV"), p.saveCSV),
		widget.NewIconButton("image", tr("Save the charts as a picture"), p.savePicture),
		widget.NewIconButton("copy", tr("Copy the readings as text"), func() {
			p.a.fyne.Clipboard().SetContent(p.summary())
			p.a.say("Copied the readings.")
		}))
}

func (p *monitorPage) marks() {
	for i, s := range monitorSpans {
		c := widget.ColorDim
		if s.d == p.span {
			c = widget.ColorAccent
		}
		p.spans[i].SetColor(c)
	}
}

func (p *monitorPage) shown(on bool) {
	p.inView = on
	if on {
		p.draw()
	}
}

func (p *monitorPage) key(k fyne.KeyName) bool {
	if k == fyne.KeySpace {
		p.togglePause()
		return true
	}
	return false
}

func (p *monitorPage) togglePause() {
	if p.paused.IsZero() {
		p.paused = p.a.deps.Now()
		p.pause.SetIcon("play", tr("Go on"))
	} else {
		p.paused = time.Time{}
		p.pause.SetIcon("pause", tr("Pause"))
	}
	p.draw()
}

func (p *monitorPage) cross(at float64, on bool) {
	for _, c := range p.cards {
		c.chart.SetCross(at, on)
	}
	for _, c := range []*widget.Chart{p.ram, p.rate} {
		c.SetCross(at, on)
	}
}

// sampled draws the newest reading, unless nobody looks.
func (p *monitorPage) sampled(*point) {
	if p.inView && p.paused.IsZero() && !p.a.hidden {
		p.draw()
	}
}

func (p *monitorPage) axis() (begin, end time.Time) {
	end = p.paused
	if end.IsZero() {
		end = p.a.deps.Now()
		if last := p.a.history.last(); last != nil && end.Sub(last.at) < 3*time.Second {
			end = last.at
		}
	}
	return end.Add(-p.span), end
}

func (p *monitorPage) draw() {
	h := p.a.history
	begin, end := p.axis()
	base := widget.ChartData{Begin: seconds(begin), End: seconds(end), Format: size, Gap: 3.5}
	p.drawCards(base, begin)
	p.drawRAM(base, begin)
	p.drawRate(base, begin)
	last := h.last()
	if last == nil {
		return
	}
	p.drawWhy(last)
	p.drawGuard(last)
	p.drawTiers(last)
	p.drawSensors(last)
}

func (p *monitorPage) drawRAM(d widget.ChartData, begin time.Time) {
	h, last := p.a.history, p.a.history.last()
	var v [][]float64
	d.Times, v, d.Strip = h.chart(begin, colRAMOwn, colRAMOthers, colRAMCache, colRAMAvailable)
	d.Empty = tr("measuring…")
	reason := ""
	if last != nil {
		total, available := room(last.sample.Memory)
		if total.Known {
			d.Max = total.Value
		}
		if total != last.sample.Memory.Total {
			d.Limits = []widget.Limit{{Value: total.Value, Text: tr("limit of the control group"), Color: widget.ColorDim}}
		}
		reason = why(available)
	}
	d.Marks = h.marksSince(begin)
	d.Series = []widget.Series{
		{Name: tr("engine"), Color: widget.ColorRAM, Fill: 1, Stack: true, Peak: true, Values: v[0], Why: tr("no engine is running")},
		{Name: tr("others"), Color: widget.ColorDim, Fill: 0.5, Stack: true, Peak: true, Values: v[1], Why: reason},
		{Name: tr("pages of the pack"), Color: widget.ColorFile, Fill: 0.8, Stack: true, Peak: true, Values: v[2], Why: tr("no engine is running")},
		{Name: tr("available"), Color: widget.ColorRAM, Fill: 0.16, Stack: true, Peak: true, Values: v[3], Why: reason},
	}
	p.ram.Set(d)
}

func (p *monitorPage) drawRate(d widget.ChartData, begin time.Time) {
	h := p.a.history
	var v [][]float64
	d.Times, v, _ = h.chart(begin, colDecode)
	d.Bands = h.bands(begin)
	d.Format = func(x float64) string { return trim(math.Round(x*10) / 10) }
	d.Empty = tr("nothing has been answered yet")
	d.Marks = h.marksSince(begin)
	any := false
	for _, x := range v[0] {
		any = any || !math.IsNaN(x)
	}
	if !any {
		d.Times = nil
	}
	d.Series = []widget.Series{{Name: tr("answering"), Color: widget.ColorAccent, Fill: 0.16, Values: v[0], Why: tr("nothing is being answered")}}
	if len(d.Bands) > 0 {
		d.Series = append(d.Series, widget.Series{Name: tr("reading prompts"), Color: widget.ColorVRAM, Values: nil, Why: tr("shaded where the engine reads a prompt")})
	}
	p.rate.Set(d)
}

// drawWhy says in sentences what holds the engine back.
func (p *monitorPage) drawWhy(last *point) {
	lines := slowness(last, p.a.history.before(last))
	p.why.Objects = nil
	if len(lines) > 0 {
		p.why.Add(widget.NewHeading(tr("Why this speed")))
	}
	for _, l := range lines {
		p.why.Add(widget.NewParagraph(l))
	}
	p.why.Refresh()
}

// drawGuard says what the memory guard does now and what it did last.
func (p *monitorPage) drawGuard(last *point) {
	g := &last.sample.Guard
	p.guard.Objects = nil
	if last.engine && g.Step != "" {
		state, words := widget.StateGood, tr("Nothing is given up: there is room.")
		if g.Acting {
			state, words = widget.StateWatch, tr("Now: %s.", g.Step)
		}
		p.guard.Add(widget.NewHeading(tr("Memory guard")))
		p.guard.Add(widget.H(8, widget.NewLight(state), widget.Flex(widget.NewText(words).Cutting(120)), widget.NewCaption(tr("leaves free: %s", g.Preset))))
		for i := len(g.Words) - 1; i >= 0; i-- {
			p.guard.Add(widget.NewNote(capital(g.Words[i])))
		}
	}
	p.guard.Refresh()
}

// drawTiers shows where the experts live, where the engine tells it.
func (p *monitorPage) drawTiers(last *point) {
	r := last.sample.Residency
	p.tiersBox.Hidden = r == nil || r.Layers == 0 || r.Experts == 0
	if p.tiersBox.Hidden {
		return
	}
	p.heat.Set(widget.HeatData{Layers: r.Layers, Experts: r.Experts, Tier: r.Tier, Use: r.Use})
	p.tiers.Objects = nil
	if t := last.sample.Tiers; t != nil {
		all := max(1, t.VRAM+t.RAM+t.File)
		for _, x := range []struct {
			name  string
			n     int64
			color fyne.ThemeColorName
		}{{tr("from VRAM"), t.VRAM, widget.ColorVRAM}, {tr("from RAM"), t.RAM, widget.ColorRAM}, {tr("from the file"), t.File, widget.ColorFile}} {
			p.tiers.Add(widget.H(6, widget.Sized(10, 10, widget.NewGround(x.color, "", 2)), widget.NewCaption(x.name), widget.NewCaption(fmt.Sprintf("%.1f %%", pct(x.n, all))).Mono().In(widget.ColorText)))
		}
	}
	p.tiers.Refresh()
}

// describeExpert is the tip of the residency map.
func describeExpert(layer, expert int, tier uint8, use float64) string {
	where := map[uint8]string{widget.TierVRAM: tr("in VRAM"), widget.TierRAM: tr("in RAM"), widget.TierFile: tr("in the file"), widget.TierNone: tr("nowhere")}[tier]
	text := tr("Layer %d, expert %d: %s", layer, expert, where)
	if !math.IsNaN(use) {
		text += tr(", %.1f %% of the layer's choices", use*100)
	}
	return text
}

// sensorRow is one reading with its name; a dash explains itself.
type sensorRow struct {
	value *widget.Text
	tip   *widget.Hover
	box   fyne.CanvasObject
}

func (p *monitorPage) drawSensors(last *point) {
	s := &last.sample
	type item struct {
		name string
		r    wire.Reading
	}
	var list []item
	list = append(list, item{tr("CPU busy"), s.CPU.Busy}, item{tr("memory pressure, some"), s.Memory.SomeAvg10}, item{tr("memory pressure, all"), s.Memory.FullAvg10}, item{tr("swap in use"), s.Memory.SwapUsed})
	if last.engine {
		list = append(list, item{tr("engine CPU"), s.CPU.Process}, item{tr("engine memory"), s.Process.Anon}, item{tr("mapped pages"), s.Process.Mapped}, item{tr("page faults"), s.Process.Major}, item{tr("disk reads"), s.Disk})
	}
	for i := range s.Cards {
		c := &s.Cards[i]
		n := ""
		if len(s.Cards) > 1 {
			n = cardLabel(s.Cards, i) + " "
		}
		list = append(list, item{n + tr("VRAM in use"), c.VRAM}, item{n + tr("card busy"), c.Busy}, item{n + tr("temperature"), c.Temp}, item{n + tr("power"), c.Power}, item{n + tr("clock"), c.Clock})
	}
	changed := false
	for _, it := range list {
		row := p.sensorRows[it.name]
		if row == nil {
			row = newSensorRow(it.name)
			p.sensorRows[it.name] = row
			p.sensors.Objects = append(p.sensors.Objects, row.box)
			changed = true
		}
		row.value.Set(reading(it.r))
		row.tip.SetTip(joinDots(it.name, why(it.r)))
	}
	if changed {
		p.sensors.Refresh()
	}
}

func newSensorRow(name string) *sensorRow {
	r := &sensorRow{value: widget.NewNumber("")}
	r.tip = widget.NewTipped(widget.Over(widget.NewGround(widget.ColorSurface, widget.ColorLine, 6),
		widget.Inset(8, 10, 8, 10, widget.V(2, widget.NewCaption(name).Cutting(60), r.value))), "")
	r.box = widget.Wide(theme.TextSize()*11.5, r.tip)
	return r
}

// summary is the page in words.
func (p *monitorPage) summary() string {
	last := p.a.history.last()
	if last == nil {
		return tr("Nothing has been measured yet.")
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", last.at.Format("2006-01-02 15:04:05"))
	words, _, _ := engineWords(p.a.engine)
	fmt.Fprintf(&b, "%s\n", words)
	for i, n := range columnNames {
		if v := last.values[i]; !math.IsNaN(v) {
			fmt.Fprintf(&b, "%s: %s\n", n, trim(v))
		}
	}
	for _, l := range slowness(last, p.a.history.before(last)) {
		fmt.Fprintln(&b, l)
	}
	for _, w := range last.sample.Guard.Words {
		fmt.Fprintln(&b, tr("Guard: %s", w))
	}
	return b.String()
}

func (p *monitorPage) saveCSV() {
	begin, _ := p.axis()
	p.a.saveFile("outcrop-monitor.csv", func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		err = p.a.history.writeCSV(f, begin)
		if e := f.Close(); err == nil {
			err = e
		}
		return err
	})
}

// savePicture writes the charts as they are seen.
func (p *monitorPage) savePicture() {
	p.scroll.ScrollToTop()
	img := p.a.picture(p.charts)
	p.a.saveFile("outcrop-monitor.png", func(path string) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		err = png.Encode(f, img)
		if e := f.Close(); err == nil {
			err = e
		}
		return err
	})
}
