// Package widget holds the window's own widgets: transcript, charts, code
// block, fit picture, residency map, rail, status line, toasts. They take
// values and callbacks and know nothing of engines, packs or cards; what they
// show is decided in package app. Everything here runs on Fyne's main thread.
package widget

import (
	"fmt"
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/lang"
	"fyne.io/fyne/v2/theme"

	"outcrop/assets"
)

// Colours of the theme beside Fyne's own names. Layer colours mean the same
// layer wherever they appear.
const (
	ColorSurface fyne.ThemeColorName = "outcropSurface" // cards, bubbles of the user
	ColorRaised  fyne.ThemeColorName = "outcropRaised"  // code blocks, chips
	ColorLine    fyne.ThemeColorName = "outcropLine"    // 1 px borders, chart grids
	ColorDim     fyne.ThemeColorName = "outcropDim"     // secondary text
	ColorVRAM    fyne.ThemeColorName = "outcropVRAM"    // layer 1
	ColorRAM     fyne.ThemeColorName = "outcropRAM"     // layer 2
	ColorFile    fyne.ThemeColorName = "outcropFile"    // layer 3
	ColorGood    fyne.ThemeColorName = "outcropGood"
	ColorWatch   fyne.ThemeColorName = "outcropWatch"
	ColorAct     fyne.ThemeColorName = "outcropAct"
	ColorText                        = theme.ColorNameForeground
	ColorAccent                      = theme.ColorNamePrimary
)

// Sizes of the theme beside Fyne's own names.
const (
	SizePage    fyne.ThemeSizeName = "outcropPage"    // padding of a page
	SizeCard    fyne.ThemeSizeName = "outcropCard"    // padding of a card
	SizeMeasure fyne.ThemeSizeName = "outcropMeasure" // width of the transcript
	SizeRail    fyne.ThemeSizeName = "outcropRail"    // width of the rail with words
	SizeCaption                    = theme.SizeNameCaptionText
	SizeText                       = theme.SizeNameText
	SizeHeading                    = theme.SizeNameSubHeadingText
	SizeTitle                      = theme.SizeNameHeadingText
)

// T is the text of the window's language for an English text; args are filled
// in as by fmt.Sprintf. The English text is the key of the translation tables.
func T(english string, args ...any) string {
	if english == "" {
		return ""
	}
	s := lang.L(english)
	if len(args) == 0 {
		return s
	}
	return fmt.Sprintf(s, args...)
}

// Icon is one of the window's own icons in the text colour.
func Icon(name string) fyne.Resource { return IconIn(name, ColorText) }

// IconIn is an icon in a colour of the theme.
func IconIn(name string, c fyne.ThemeColorName) fyne.Resource {
	key := iconKey{name, c}
	if r, ok := icons[key]; ok {
		return r
	}
	svg := assets.Icon(name)
	if svg == nil {
		svg = assets.Icon("unknown")
	}
	r := theme.NewColoredResource(fyne.NewStaticResource("outcrop-"+name+".svg", svg), c)
	icons[key] = r
	return r
}

type iconKey struct {
	name  string
	color fyne.ThemeColorName
}

// icons keeps what was made: an icon is asked for with every redraw. Main
// thread only.
var icons = map[iconKey]fyne.Resource{}

// Color looks a colour up for a widget, so that theme overrides hold.
func Color(w fyne.Widget, name fyne.ThemeColorName) color.Color {
	if w == nil {
		return theme.Color(name)
	}
	return theme.ColorForWidget(name, w)
}

// Fade gives a colour with its opacity multiplied by a (0..1).
func Fade(c color.Color, a float64) color.NRGBA {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	n.A = uint8(float64(n.A)*a + 0.5)
	return n
}

func themeSize(n fyne.ThemeSizeName) float32 { return theme.Size(n) }
