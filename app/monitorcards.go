package app

import (
	"math"
	"strings"
	"time"

	"fyne.io/fyne/v2"

	"outcrop/app/widget"
	"outcrop/engine/wire"
)

// cardChart is the VRAM of one card over time.
type cardChart struct {
	key   string // tells cards apart
	chart *widget.Chart
	note  *widget.Text // who else holds its memory
	box   *fyne.Container
}

// keyOf tells cards apart: by address, or by name where there is none.
func keyOf(c *wire.Card) string {
	if c.PCI != "" {
		return c.PCI
	}
	return c.Name
}

// shortPCI leaves out of an address what is the same for nearly every card.
func shortPCI(p string) string {
	return strings.TrimSuffix(strings.TrimPrefix(p, "0000:"), ".0")
}

// cardLabel is the name of one of several cards, with its address where another
// one is called the same.
func cardLabel(cards []wire.Card, i int) string {
	for j := range cards {
		if j != i && cards[j].Name == cards[i].Name && cards[i].PCI != "" {
			return cards[i].Name + " " + shortPCI(cards[i].PCI)
		}
	}
	return cards[i].Name
}

// layCharts puts the charts below each other: the cards, RAM, the rate.
func (p *monitorPage) layCharts() {
	p.charts.Objects = []fyne.CanvasObject{p.noCard}
	for _, c := range p.cards {
		p.charts.Objects = append(p.charts.Objects, c.box)
	}
	p.charts.Objects = append(p.charts.Objects, widget.Sized(0, 190, p.ram), widget.Sized(0, 190, p.rate))
	p.charts.Refresh()
}

// drawCards draws the memory of every card by use.
func (p *monitorPage) drawCards(d widget.ChartData, begin time.Time) {
	last := p.a.history.last()
	if last == nil {
		return
	}
	now := last.sample.Cards
	words := tr("No graphics card: everything is in RAM.")
	if len(p.a.machine.machine.Cards) > 0 {
		words = tr("No readings of the card yet.")
	}
	p.noCardWords.Set(words)
	same := len(now) == len(p.cards)
	for i := range now {
		same = same && p.cards[i].key == keyOf(&now[i])
	}
	if none := len(now) == 0; !same || p.noCard.Visible() != none {
		p.noCard.Hidden = !none
		p.cards = nil
		for i := range now {
			title := tr("VRAM")
			if len(now) > 1 {
				title = tr("VRAM of %s", cardLabel(now, i))
			}
			c := &cardChart{key: keyOf(&now[i]), chart: widget.NewChart(title, false), note: widget.NewCaption("").Cutting(120)}
			c.box = widget.V(2, widget.Sized(0, 168, c.chart), c.note)
			c.chart.OnCross = p.cross
			p.cards = append(p.cards, c)
		}
		p.layCharts()
		p.scroll.Refresh()
	}
	for i, c := range p.cards {
		c.draw(p.a.history, d, begin, &now[i])
	}
}

// draw shows what lies in a card's memory: the engine's by use where it tells,
// and what others hold.
func (c *cardChart) draw(h *history, d widget.ChartData, begin time.Time, now *wire.Card) {
	const (
		weights = iota
		slots
		kv
		scratch
		own
		others
		free
		count
	)
	values := make([][]float64, count)
	byUse, moving, beyond := false, false, false
	h.each(begin.Add(-5*time.Second), func(pt *point) {
		v := [count]float64{}
		for i := range v {
			v[i] = math.NaN()
		}
		for i := range pt.sample.Cards {
			x := &pt.sample.Cards[i]
			if keyOf(x) != c.key {
				continue
			}
			v[own] = known(x.Own)
			if x.VRAM.Known {
				v[others] = othersHold(x)
				if x.Total.Known {
					v[free] = math.Max(0, x.Total.Value-x.VRAM.Value)
				}
			}
			if u := x.Use; u != nil {
				byUse, moving = true, moving || u.Slots > 0
				v[weights], v[slots], v[kv], v[scratch] = float64(u.Weights), float64(u.Slots), float64(u.KV), float64(u.Scratch)
				// What the driver counts for this process beyond the engine's own count
				// is its kernels, queues and page tables.
				v[own] = math.Max(0, v[own]-v[weights]-v[slots]-v[kv]-v[scratch])
				beyond = beyond || v[own] > 0
			}
		}
		d.Times = append(d.Times, seconds(pt.at))
		for i := range v {
			values[i] = append(values[i], v[i])
		}
	})
	d.Empty = tr("measuring…")
	reason := why(now.VRAM)
	if now.Total.Known {
		d.Max = now.Total.Value
		d.Limits = []widget.Limit{{Value: now.Total.Value, Text: now.Name, Color: widget.ColorDim}}
	}
	layer := func(name string, fill float64, i int) widget.Series {
		return widget.Series{Name: name, Color: widget.ColorVRAM, Fill: fill, Stack: true, Peak: true, Values: values[i], Why: tr("the engine does not use this card")}
	}
	if byUse {
		d.Series = append(d.Series, layer(tr("weights"), 1, weights))
		if moving {
			d.Series = append(d.Series, layer(tr("experts in use most"), 0.8, slots))
		}
		d.Series = append(d.Series, layer(tr("KV cache"), 0.6, kv), layer(tr("work space"), 0.4, scratch))
		if beyond {
			d.Series = append(d.Series, layer(tr("driver"), 0.22, own))
		}
	} else {
		d.Series = append(d.Series, layer(tr("this engine"), 0.85, own))
	}
	rest := tr("others")
	if byUse && !beyond {
		rest += ", " + tr("driver") // what our own driver holds is not told apart
	}
	who := holdersWords(now)
	d.Series = append(d.Series, widget.Series{Name: rest, Color: widget.ColorDim, Fill: 0.45, Stack: true, Peak: true, Values: values[others], Why: reason, Tip: who},
		widget.Series{Name: tr("free"), Color: widget.ColorVRAM, Fill: 0.1, Stack: true, Values: values[free], Why: reason})
	c.chart.Set(d)
	c.note.Set(who)
	if c.note.Hidden != (who == "") {
		c.note.Hidden = who == ""
		c.box.Refresh()
	}
}

// othersHold is what of a card's memory in use is not the engine's.
func othersHold(c *wire.Card) float64 {
	own := 0.0
	if c.Own.Known {
		own = c.Own.Value
	}
	if u := c.Use; u != nil {
		own = math.Max(own, float64(u.Weights+u.Slots+u.KV+u.Scratch))
	}
	return math.Max(0, c.VRAM.Value-own)
}

// holdersWords names the programs that hold a card's memory beside the engine,
// or says why they are not told where something of them is held.
func holdersWords(c *wire.Card) string {
	var parts []string
	for _, h := range c.Others {
		name := h.Name
		if name == "" {
			name = tr("process %d", h.PID)
		}
		parts = append(parts, name+" "+reading(h.VRAM))
	}
	switch {
	case len(parts) > 0:
		return tr("Others: %s", strings.Join(parts, ", "))
	case c.OthersWhy != "" && c.VRAM.Known && othersHold(c) > 0:
		return tr("Who the others are is not told: %s", c.OthersWhy)
	case c.OthersWhy == "" && c.VRAM.Source == "NVML" && c.VRAM.Known && othersHold(c) > 0:
		// NVML lists the programs of all users, so what is left is nobody's.
		return tr("No other program uses this card: the rest is kept by its driver.")
	}
	return ""
}
