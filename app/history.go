package app

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"outcrop/app/widget"
	"outcrop/engine/wire"
)

// point is one second of the machine, as charts and status line want it.
// Unknown is NaN. Bytes are bytes, rates per second.
type point struct {
	sample wire.Sample
	at     time.Time
	engine bool // told by the engine, not by our own look
	values [columnCount]float64
	level  uint8 // of the pressure strip
	marks  []string
}

// column is one series of the history.
type column int

// The columns; their names stand in columnNames, which the CSV uses.
const (
	colWeights column = iota
	colKV
	colScratch
	colVRAMOwn
	colVRAMOthers
	colVRAMTotal
	colRAMOwn
	colRAMCache
	colRAMOthers
	colRAMAvailable
	colRAMTotal
	colDecode
	colPrefill
	colMSPerStep
	colCPU
	colProcess
	colSome
	colFull
	colMajor
	colTemp
	colPower
	colClock
	colBusy
	colCardWeights
	colCardSlots
	colCardKV
	colCardScratch
	columnCount
)

var columnNames = [columnCount]string{
	"weights_bytes", "kv_bytes", "scratch_bytes", "vram_own_bytes", "vram_others_bytes", "vram_total_bytes",
	"ram_engine_bytes", "ram_model_cache_bytes", "ram_others_bytes", "ram_available_bytes", "ram_total_bytes",
	"decode_tok_s", "prefill_tok_s", "ms_per_step", "cpu_percent", "engine_cpu_percent", "psi_some_avg10", "psi_full_avg10",
	"major_faults", "card_celsius", "card_watts", "card_mhz", "card_busy_percent",
	"card_weights_bytes", "card_slots_bytes", "card_kv_bytes", "card_scratch_bytes",
}

// history is the last hour, a point a second.
type history struct {
	points []point // ring
	next   int
	words  []string // of the guard at the last point
}

const historyLength = 3600

func newHistory() *history { return &history{points: make([]point, 0, historyLength)} }

// add files a sample and gives its point.
func (h *history) add(s wire.Sample, engine bool, now time.Time) *point {
	p := point{sample: s, at: now, engine: engine}
	if !s.Time.IsZero() && math.Abs(now.Sub(s.Time).Seconds()) < 5 {
		p.at = s.Time
	}
	p.fill(s, engine)
	if engine {
		p.marks = h.news(s.Guard.Words)
	}
	// The map of the experts is shown as it is now; of a big model it has ten
	// thousand numbers, which an hour of readings must not keep.
	if l := h.last(); l != nil {
		l.sample.Residency = nil
	}
	if len(h.points) < historyLength {
		h.points = append(h.points, p)
		return &h.points[len(h.points)-1]
	}
	h.points[h.next] = p
	at := h.next
	h.next = (h.next + 1) % historyLength
	return &h.points[at]
}

// news gives what the guard said since the last point. The engine sends its
// last few changes each time, the newest last.
func (h *history) news(words []string) []string {
	fresh := words
	for n := min(len(h.words), len(words)); n > 0; n-- {
		if slices.Equal(h.words[len(h.words)-n:], words[:n]) {
			fresh = words[n:]
			break
		}
	}
	h.words = words
	return fresh
}

// last is the newest point, or nil.
func (h *history) last() *point {
	if len(h.points) == 0 {
		return nil
	}
	if len(h.points) < historyLength {
		return &h.points[len(h.points)-1]
	}
	return &h.points[(h.next+historyLength-1)%historyLength]
}

// before is the point before one that is the last, or nil.
func (h *history) before(p *point) *point {
	n := len(h.points)
	if n < 2 || p != h.last() {
		return nil
	}
	return &h.points[(h.next+n-2)%n]
}

// each calls f with the points since t, oldest first.
func (h *history) each(t time.Time, f func(*point)) {
	n := len(h.points)
	for i := range n {
		p := &h.points[(h.next+i)%n]
		if !p.at.Before(t) {
			f(p)
		}
	}
}

func known(r wire.Reading) float64 {
	if !r.Known {
		return math.NaN()
	}
	return r.Value
}

// card is the card that a sample is about: the one in use, else the first.
func card(s *wire.Sample) *wire.Card {
	for i := range s.Cards {
		if s.Cards[i].Used {
			return &s.Cards[i]
		}
	}
	if len(s.Cards) > 0 {
		return &s.Cards[0]
	}
	return nil
}

// room is the RAM that we may have, and what of it is left: the machine's, or
// that of a control group with a smaller limit, whose clean file pages the kernel can drop.
func room(m wire.Memory) (total, available wire.Reading) {
	if !m.Limit.Known || !m.Used.Known || m.Total.Known && m.Limit.Value >= m.Total.Value {
		return m.Total, m.Available
	}
	left := math.Max(0, m.Limit.Value-m.Used.Value)
	if m.Cache.Known {
		left = math.Min(m.Limit.Value, left+m.Cache.Value)
	}
	if m.Available.Known {
		left = math.Min(left, m.Available.Value)
	}
	return m.Limit, wire.Known(left, "bytes", m.Used.Source)
}

func (p *point) fill(s wire.Sample, engine bool) {
	v := &p.values
	for i := range v {
		v[i] = math.NaN()
	}
	m := s.Memory
	m.Total, m.Available = room(m)
	v[colRAMTotal], v[colRAMAvailable] = known(m.Total), known(m.Available)
	v[colSome], v[colFull] = known(m.SomeAvg10), known(m.FullAvg10)
	v[colCPU] = known(s.CPU.Busy)
	own, mapped := 0.0, 0.0
	if engine {
		e := s.Engine
		v[colWeights], v[colKV], v[colScratch] = float64(e.Use.Weights), float64(e.Use.KV), float64(e.Use.Scratch+e.Use.Relaid)
		v[colProcess] = known(s.CPU.Process)
		v[colMajor] = known(s.Process.Major)
		v[colRAMOwn], v[colRAMCache] = known(s.Process.Anon), known(s.Process.Mapped)
		// A card's driver maps more than a small pack is.
		if w := float64(e.Use.Weights); w > 0 && s.Process.Mapped.Value > w {
			s.Process.Mapped.Value, v[colRAMCache] = w, w
		}
		switch e.Phase {
		case "decode":
			v[colDecode], v[colMSPerStep] = e.DecodeTokS, e.MSPerStep
		case "prefill":
			v[colPrefill] = e.PrefillTokS
		}
		if s.Process.Anon.Known {
			own = s.Process.Anon.Value
		}
		if s.Process.Mapped.Known {
			mapped = s.Process.Mapped.Value
		}
	}
	if m.Total.Known && m.Available.Known {
		// Pages of the mapped model are cache: the kernel counts them as
		// available, so they are no part of what others use.
		v[colRAMOthers] = math.Max(0, m.Total.Value-m.Available.Value-own)
		v[colRAMAvailable] = math.Max(0, m.Available.Value-mapped)
	}
	switch m.Level {
	case "ok", "good":
		p.level = widget.LevelOK
	case "watch":
		p.level = widget.LevelWatch
	case "act", "critical":
		p.level = widget.LevelAct
	}
	if c := card(&s); c != nil {
		v[colVRAMTotal], v[colVRAMOwn] = known(c.Total), known(c.Own)
		v[colTemp], v[colPower], v[colClock], v[colBusy] = known(c.Temp), known(c.Power), known(c.Clock), known(c.Busy)
		if u := c.Use; u != nil {
			v[colCardWeights], v[colCardSlots], v[colCardKV], v[colCardScratch] = float64(u.Weights), float64(u.Slots), float64(u.KV), float64(u.Scratch)
		}
		if c.VRAM.Known {
			v[colVRAMOthers] = othersHold(c)
		}
	}
}

// chart takes columns since a time out of the history.
func (h *history) chart(begin time.Time, cols ...column) (times []float64, values [][]float64, strip []uint8) {
	values = make([][]float64, len(cols))
	h.each(begin.Add(-5*time.Second), func(p *point) {
		times = append(times, seconds(p.at))
		strip = append(strip, p.level)
		for i, c := range cols {
			values[i] = append(values[i], p.values[c])
		}
	})
	return times, values, strip
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// bands finds the stretches in which the engine read a prompt.
func (h *history) bands(begin time.Time) []widget.Band {
	var out []widget.Band
	h.each(begin, func(p *point) {
		if p.sample.Engine.Phase != "prefill" || !p.engine {
			return
		}
		t := seconds(p.at)
		if n := len(out); n > 0 && t-out[n-1].To < 2.5 {
			out[n-1].To = t
			return
		}
		out = append(out, widget.Band{From: t - 1, To: t, Color: widget.ColorVRAM})
	})
	return out
}

func (h *history) marksSince(begin time.Time) []widget.Mark {
	var out []widget.Mark
	h.each(begin, func(p *point) {
		for _, m := range p.marks {
			out = append(out, widget.Mark{At: seconds(p.at), Text: m})
		}
	})
	return out
}

// writeCSV writes the points since a time; unknown is an empty field.
func (h *history) writeCSV(w io.Writer, begin time.Time) error {
	c := csv.NewWriter(w)
	head := []string{"time", "phase", "level", "marks"}
	c.Write(append(head, columnNames[:]...))
	h.each(begin, func(p *point) {
		row := []string{p.at.UTC().Format(time.RFC3339Nano), p.sample.Engine.Phase, p.sample.Memory.Level, fmt.Sprint(len(p.marks))}
		if len(p.marks) > 0 {
			row[3] = p.marks[0]
		} else {
			row[3] = ""
		}
		for _, v := range p.values {
			if math.IsNaN(v) {
				row = append(row, "")
			} else {
				row = append(row, fmt.Sprintf("%g", v))
			}
		}
		c.Write(row)
	})
	c.Flush()
	return c.Error()
}
