package app

import (
	"math"
	"time"

	"fyne.io/fyne/v2"

	"outcrop/app/widget"
	"outcrop/engine/wire"
)

// cardChart is the VRAM of one card over time.
type cardChart struct {
	key   string // tells cards apart
	chart *widget.Chart
}

// keyOf tells cards apart: by address, or by name where there is none.
func keyOf(c *wire.Card) string {
	if c.PCI != "" {
		return c.PCI
	}
	return c.Name
}

// layCharts puts the charts below each other: the cards, RAM, the rate.
func (p *monitorPage) layCharts() {
	p.charts.Objects = []fyne.CanvasObject{p.noCard}
	for _, c := range p.cards {
		p.charts.Objects = append(p.charts.Objects, widget.Sized(0, 168, c.chart))
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
				title = tr("VRAM of %s", joinDots(now[i].Name, now[i].PCI))
			}
			c := &cardChart{key: keyOf(&now[i]), chart: widget.NewChart(title, false)}
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
			v[others] = known(x.VRAM)
			if x.VRAM.Known && x.Own.Known {
				v[others] = math.Max(0, x.VRAM.Value-x.Own.Value)
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
	d.Series = append(d.Series, widget.Series{Name: rest, Color: widget.ColorDim, Fill: 0.45, Stack: true, Peak: true, Values: values[others], Why: reason})
	c.chart.Set(d)
}
