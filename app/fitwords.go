package app

import (
	"math"
	"strings"

	"fyne.io/fyne/v2"

	"outcrop/app/widget"
	"outcrop/engine/plan"
)

// segmentLook is how a part of a bar is drawn and called.
type segmentLook struct {
	words string
	shade float64
	hatch bool
	color fyne.ThemeColorName // "" for the bar's own layer
	skip  bool
}

var segmentLooks = map[string]segmentLook{
	"weights": {words: "weights", shade: 1},
	"experts": {words: "experts", shade: 0.8},
	"slots":   {words: "experts in slots", shade: 0.8},
	"kv":      {words: "KV cache", shade: 0.6},
	"state":   {words: "recurrent state", shade: 0.5},
	"scratch": {words: "work space", shade: 0.4},
	"cache":   {words: "pages of the file", shade: 0.75, color: widget.ColorFile},
	"others":  {words: "other programs", shade: 0.55, color: widget.ColorDim},
	"reserve": {words: "kept free", hatch: true, shade: 0.9},
	"floor":   {words: "kept free", hatch: true, shade: 0.9},
	"free":    {words: "free", skip: true},
}

// fitRow turns one tier of a plan into a bar.
func fitRow(name string, u plan.Use, layer fyne.ThemeColorName, short int64) widget.FitRow {
	row := widget.FitRow{Name: name, Short: float64(short)}
	used := int64(0)
	for _, s := range u.Segments {
		look, ok := segmentLooks[s.Kind]
		if !ok {
			look = segmentLook{words: s.Kind, shade: 0.7}
		}
		if look.skip {
			continue
		}
		if !look.hatch {
			used += s.Bytes
		}
		color := layer
		if look.color != "" {
			color = look.color
		}
		tip := tr("%s: %s", tr(look.words), bytes64(s.Bytes))
		if s.Why != "" {
			tip += ". " + capital(s.Why)
		}
		row.Parts = append(row.Parts, widget.FitPart{Name: tr(look.words), Value: float64(s.Bytes), Color: color, Shade: look.shade, Hatch: look.hatch, Tip: tip})
	}
	switch {
	case u.Total.Known:
		row.Total = float64(u.Total.N)
		row.Text = of(float64(used), float64(u.Total.N))
	default:
		row.Text = tr("%s of n/a", bytes64(used))
		row.Why = u.Total.Why
	}
	if short > 0 {
		row.Text = tr("%s short", bytes64(short))
	}
	return row
}

// fitRows turns a plan into the fit picture.
func fitRows(p *plan.Plan) []widget.FitRow {
	short := map[string]int64{}
	for _, s := range p.Short {
		short[s.Where] += s.Bytes
	}
	var rows []widget.FitRow
	for _, c := range p.Cards {
		name := "VRAM"
		if len(p.Cards) > 1 {
			name = cardName(p, c)
		}
		rows = append(rows, fitRow(name, c.Use, widget.ColorVRAM, short["VRAM of "+c.PCI]))
	}
	rows = append(rows, fitRow("RAM", p.RAM, widget.ColorRAM, short["RAM"]))
	if len(p.File.Segments) > 0 || p.File.Total.Known {
		rows = append(rows, fitRow(tr("disk"), p.File, widget.ColorFile, short["disk"]))
	}
	return rows
}

// cardName is the name of one of several cards, with its address where another
// one is called the same.
func cardName(p *plan.Plan, c plan.CardUse) string {
	for _, o := range p.Cards {
		if o.PCI != c.PCI && o.Name == c.Name {
			return c.Name + " " + shortPCI(c.PCI)
		}
	}
	return c.Name
}

// fitSentence is the one sentence under the picture.
func fitSentence(p *plan.Plan) string {
	if !p.Fits {
		var parts []string
		for _, s := range p.Short {
			where := s.Where
			for _, c := range p.Cards {
				if where == "VRAM of "+c.PCI {
					where = tr("VRAM of %s", cardName(p, c))
				}
			}
			parts = append(parts, tr("%s is short by %s", where, bytes64(s.Bytes)))
		}
		if len(parts) == 0 {
			return tr("It does not fit.")
		}
		return tr("It does not fit: %s.", strings.Join(parts, ", "))
	}
	return sentence(errorText(p.Words)) + speedSentence(p.Speed)
}

type errorText string

func (e errorText) Error() string { return string(e) }

func speedSentence(s plan.Speed) string {
	if s.DecodeHigh <= 0 {
		return ""
	}
	text := " " + tr("Expect %s tok/s", between(s.DecodeLow, s.DecodeHigh))
	if s.PrefillHigh > 0 {
		text += tr(", prompts at %s", between(s.PrefillLow, s.PrefillHigh))
	}
	if !s.Measured {
		text += tr(" (from typical rates, not measured here yet)")
	}
	return text + "."
}

// between writes a range with as many digits as it deserves.
func between(low, high float64) string {
	f := func(v float64) string {
		switch {
		case v >= 1e6:
			return trim(math.Round(v/1e5)/10) + "M"
		case v >= 1e4:
			return trim(math.Round(v/1e3)) + "K"
		case v >= 20:
			return tr("%.0f", v)
		}
		return trim(float64(int(v*10+0.5)) / 10)
	}
	a, b := f(low), f(high)
	if a == b {
		return a
	}
	return tr("%s to %s", a, b)
}

// fitState grades a plan for its light.
func fitState(p *plan.Plan) (widget.State, string) {
	switch {
	case p == nil:
		return widget.StateUnknown, ""
	case p.Fits:
		return widget.StateGood, tr("fits now")
	}
	for _, r := range p.Remedies {
		if r.Kind == "context" || r.Kind == "kv" || r.Kind == "map" {
			return widget.StateWatch, tr("fits with changes")
		}
	}
	return widget.StateAct, tr("does not fit")
}
