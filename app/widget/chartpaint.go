package widget

import (
	"image"
	"image/color"
	"image/draw"
	"math"

	"golang.org/x/image/vector"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"
)

// chartPainter draws the plot of a chart into one reused picture.
type chartPainter struct {
	data       ChartData
	top        float64
	hidden     map[string]bool
	stripShare float64 // of the height
	img        *image.RGBA
	vec        vector.Rasterizer
}

// draw is called by the toolkit with the size in real pixels.
func (p *chartPainter) draw(w, h int) image.Image {
	if w < 1 || h < 1 {
		return image.NewRGBA(image.Rect(0, 0, 1, 1))
	}
	if p.img == nil || p.img.Rect.Dx() != w || p.img.Rect.Dy() != h {
		p.img = image.NewRGBA(image.Rect(0, 0, w, h))
	} else {
		clear(p.img.Pix)
	}
	strip := int(math.Round(float64(h) * p.stripShare))
	ph := h - strip
	p.bands(w, ph)
	p.grid(w, ph)
	p.series(w, ph)
	p.limits(w, ph)
	p.marks(w, ph)
	if strip > 0 {
		p.strip(w, ph, strip)
	}
	return p.img
}

func (p *chartPainter) x(t float64, w int) float64 {
	return (t - p.data.Begin) / (p.data.End - p.data.Begin) * float64(w)
}

func (p *chartPainter) bands(w, h int) {
	for _, b := range p.data.Bands {
		x0, x1 := int(p.x(b.From, w)), int(math.Ceil(p.x(b.To, w)))
		r := image.Rect(max(0, x0), 0, min(w, max(x1, x0+1)), h)
		draw.Draw(p.img, r, image.NewUniform(Fade(theme.Color(b.Color), 0.14)), image.Point{}, draw.Over)
	}
}

func (p *chartPainter) grid(w, h int) {
	line := image.NewUniform(theme.Color(ColorLine))
	for _, y := range []int{0, h / 2, h - 1} {
		draw.Draw(p.img, image.Rect(0, y, w, y+1), line, image.Point{}, draw.Over)
	}
}

func (p *chartPainter) series(w, h int) {
	d := p.data
	base := make([]float64, w)
	type curve struct {
		cols  []float64
		color fyne.ThemeColorName
	}
	var lines []curve
	for _, s := range d.Series {
		if p.hidden[s.Name] {
			continue
		}
		n := min(len(d.Times), len(s.Values))
		cols := Columns(d.Times[:n], s.Values[:n], d.Begin, d.End, w, d.Gap, s.Peak)
		col := theme.Color(s.Color)
		if s.Stack {
			for x, v := range cols {
				if math.IsNaN(v) {
					continue
				}
				p.column(x, h, base[x], base[x]+v, Fade(col, s.Fill))
				base[x] += v
			}
			continue
		}
		if s.Fill > 0 {
			for x, v := range cols {
				if !math.IsNaN(v) {
					p.column(x, h, 0, v, Fade(col, s.Fill))
				}
			}
		}
		lines = append(lines, curve{cols, s.Color})
	}
	for _, l := range lines {
		p.curve(l.cols, h, theme.Color(l.color))
	}
}

// column fills from value a up to value b, with soft ends.
func (p *chartPainter) column(x, h int, a, b float64, c color.NRGBA) {
	y0 := float64(h) * (1 - math.Min(b, p.top)/p.top)
	y1 := float64(h) * (1 - math.Min(a, p.top)/p.top)
	for y := int(y0); y < h && float64(y) < y1; y++ {
		cover := math.Min(float64(y+1), y1) - math.Max(float64(y), y0)
		if cover > 0 {
			p.blend(x, y, c, cover)
		}
	}
}

func (p *chartPainter) blend(x, y int, c color.NRGBA, cover float64) {
	i := p.img.PixOffset(x, y)
	pix := p.img.Pix[i : i+4 : i+4]
	a := float64(c.A) / 255 * cover
	keep := 1 - a
	pix[0] = uint8(float64(c.R)*a + float64(pix[0])*keep + 0.5)
	pix[1] = uint8(float64(c.G)*a + float64(pix[1])*keep + 0.5)
	pix[2] = uint8(float64(c.B)*a + float64(pix[2])*keep + 0.5)
	pix[3] = uint8(255*a + float64(pix[3])*keep + 0.5)
}

// curve draws a line through the known columns.
func (p *chartPainter) curve(cols []float64, h int, c color.Color) {
	p.vec.Reset(len(cols), h)
	p.vec.DrawOp = draw.Over
	const half = 0.9
	y := func(v float64) float64 {
		return math.Max(half, math.Min(float64(h)-half, float64(h)*(1-math.Min(v, p.top)/p.top)))
	}
	any := false
	for x := range cols {
		if math.IsNaN(cols[x]) {
			continue
		}
		x0, y0 := float64(x)+0.5, y(cols[x])
		x1, y1 := x0+0.01, y0
		if x+1 < len(cols) && !math.IsNaN(cols[x+1]) {
			x1, y1 = x0+1, y(cols[x+1])
		} else if x > 0 && !math.IsNaN(cols[x-1]) {
			continue // the end of a stretch is already drawn
		} else {
			x0, x1 = x0-1, x0+1 // a single sample is a dot
		}
		dx, dy := x1-x0, y1-y0
		l := math.Hypot(dx, dy)
		nx, ny := -dy/l*half, dx/l*half
		ex, ey := dx/l*0.3, dy/l*0.3 // overlap hides joints
		p.vec.MoveTo(float32(x0-ex+nx), float32(y0-ey+ny))
		p.vec.LineTo(float32(x1+ex+nx), float32(y1+ey+ny))
		p.vec.LineTo(float32(x1+ex-nx), float32(y1+ey-ny))
		p.vec.LineTo(float32(x0-ex-nx), float32(y0-ey-ny))
		p.vec.ClosePath()
		any = true
	}
	if any {
		p.vec.Draw(p.img, image.Rect(0, 0, len(cols), h), image.NewUniform(c), image.Point{})
	}
}

func (p *chartPainter) limits(w, h int) {
	for _, l := range p.data.Limits {
		if l.Value <= 0 || l.Value > p.top*1.001 {
			continue
		}
		y := min(h-1, int(float64(h)*(1-l.Value/p.top)))
		c := image.NewUniform(theme.Color(l.Color))
		if !l.Dashed {
			draw.Draw(p.img, image.Rect(0, y, w, y+1), c, image.Point{}, draw.Over)
			continue
		}
		for x := 0; x < w; x += 8 {
			draw.Draw(p.img, image.Rect(x, y, min(x+4, w), y+1), c, image.Point{}, draw.Over)
		}
	}
}

// marks draws a dashed line and a flag at each.
func (p *chartPainter) marks(w, h int) {
	c := image.NewUniform(theme.Color(ColorWatch))
	for _, m := range p.data.Marks {
		if m.At < p.data.Begin || m.At > p.data.End {
			continue
		}
		x := min(w-1, int(p.x(m.At, w)))
		for y := 0; y < h; y += 6 {
			draw.Draw(p.img, image.Rect(x, y, x+1, min(y+3, h)), c, image.Point{}, draw.Over)
		}
		for i := range 5 { // a small triangle, point down
			draw.Draw(p.img, image.Rect(x-4+i, i, x+5-i, i+1), c, image.Point{}, draw.Over)
		}
	}
}

// strip draws the pressure level of each moment: low, half or full height in
// the level's colour, nothing where it is unknown.
func (p *chartPainter) strip(w, y0, h int) {
	d := p.data
	n := min(len(d.Times), len(d.Strip))
	levels := make([]float64, n)
	for i := range levels {
		levels[i] = math.NaN()
		if d.Strip[i] != LevelUnknown {
			levels[i] = float64(d.Strip[i])
		}
	}
	cols := Columns(d.Times[:n], levels, d.Begin, d.End, w, d.Gap, true)
	for x, v := range cols {
		if math.IsNaN(v) {
			continue
		}
		name, part := ColorGood, 0.25
		switch {
		case v > 2.5:
			name, part = ColorAct, 1
		case v > 1.5:
			name, part = ColorWatch, 0.6
		}
		high := max(2, int(float64(h-4)*part))
		r := image.Rect(x, y0+h-high, x+1, y0+h)
		draw.Draw(p.img, r, image.NewUniform(theme.Color(name)), image.Point{}, draw.Over)
	}
}
