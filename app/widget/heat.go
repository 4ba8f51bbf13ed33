package widget

import (
	"image"
	"math"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/canvas"
	"fyne.io/fyne/v2/driver/desktop"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Tiers of the residency map.
const (
	TierNone uint8 = iota
	TierVRAM
	TierRAM
	TierFile
)

// HeatData is where each expert of each layer lives and how much it is used.
type HeatData struct {
	Layers, Experts int
	Tier            []uint8   // layer by layer
	Use             []float64 // share of its layer's choices, 0..1; nil when not known
}

// Heat is the residency map: a row a layer, a column an expert, the layer's
// colour by tier, brighter by use.
type Heat struct {
	fynewidget.BaseWidget
	// Describe gives the words for one expert.
	Describe func(layer, expert int, tier uint8, use float64) string
	data     HeatData
	raster   *canvas.Raster
}

// NewHeat makes an empty map.
func NewHeat() *Heat {
	h := &Heat{}
	h.raster = canvas.NewRaster(h.draw)
	h.raster.ScaleMode = canvas.ImageScalePixels
	h.ExtendBaseWidget(h)
	return h
}

// Set shows new data.
func (h *Heat) Set(d HeatData) {
	h.data = d
	h.Refresh()
}

// Data is what the map shows.
func (h *Heat) Data() HeatData { return h.data }

// CreateRenderer shows the picture.
func (h *Heat) CreateRenderer() fyne.WidgetRenderer { return fynewidget.NewSimpleRenderer(h.raster) }

// MinSize gives few layers rows that are easy to hit, and many as much room as
// one looks at without scrolling.
func (h *Heat) MinSize() fyne.Size {
	h.ExtendBaseWidget(h)
	n := max(1, h.data.Layers)
	row := min(13, max(4, 200/n))
	return fyne.NewSize(200, float32(min(260, max(24, n*row))))
}

// Refresh draws anew.
func (h *Heat) Refresh() {
	h.raster.Refresh()
	h.BaseWidget.Refresh()
}

func (h *Heat) draw(w, ht int) image.Image {
	img := image.NewRGBA(image.Rect(0, 0, w, ht))
	d := h.data
	if d.Layers == 0 || d.Experts == 0 {
		return img
	}
	base := theme.Color(ColorRaised)
	names := [4]fyne.ThemeColorName{TierNone: ColorLine, TierVRAM: ColorVRAM, TierRAM: ColorRAM, TierFile: ColorFile}
	even := 1 / float64(d.Experts)
	gapX, gapY := 0, 0
	if w/d.Experts >= 5 {
		gapX = 1
	}
	if ht/d.Layers >= 4 {
		gapY = 1
	}
	for l := range d.Layers {
		y0, y1 := l*ht/d.Layers, (l+1)*ht/d.Layers-gapY
		for e := range d.Experts {
			i := l*d.Experts + e
			if i >= len(d.Tier) {
				continue
			}
			bright := 0.55
			if d.Use != nil && i < len(d.Use) && !math.IsNaN(d.Use[i]) {
				// Even use is a little under the middle; four times even is full.
				bright = 0.18 + 0.82*math.Min(1, math.Sqrt(d.Use[i]/even)/2)
			}
			c := mix(base, theme.Color(names[d.Tier[i]&3]), bright)
			r, g, b, _ := c.RGBA()
			x0, x1 := e*w/d.Experts, (e+1)*w/d.Experts-gapX
			for y := y0; y < max(y1, y0+1) && y < ht; y++ {
				for x := x0; x < max(x1, x0+1) && x < w; x++ {
					p := img.PixOffset(x, y)
					img.Pix[p], img.Pix[p+1], img.Pix[p+2], img.Pix[p+3] = uint8(r>>8), uint8(g>>8), uint8(b>>8), 0xFF
				}
			}
		}
	}
	return img
}

// At gives the expert under a place of the map.
func (h *Heat) At(p fyne.Position) (layer, expert int, ok bool) {
	s, d := h.Size(), h.data
	if d.Layers == 0 || d.Experts == 0 || s.Width <= 0 || s.Height <= 0 || p.X < 0 || p.Y < 0 || p.X >= s.Width || p.Y >= s.Height {
		return 0, 0, false
	}
	return int(p.Y / s.Height * float32(d.Layers)), int(p.X / s.Width * float32(d.Experts)), true
}

// MouseIn names the expert under the pointer.
func (h *Heat) MouseIn(e *desktop.MouseEvent) { h.MouseMoved(e) }

// MouseMoved follows it.
func (h *Heat) MouseMoved(e *desktop.MouseEvent) {
	l, x, ok := h.At(e.Position)
	i := l*h.data.Experts + x
	if !ok || h.Describe == nil || i >= len(h.data.Tier) {
		HideTip(h)
		return
	}
	use := math.NaN()
	if i < len(h.data.Use) {
		use = h.data.Use[i]
	}
	ShowTipAt(h, h.Describe(l, x, h.data.Tier[i], use), e.Position)
}

// MouseOut ends it.
func (h *Heat) MouseOut() { HideTip(h) }
