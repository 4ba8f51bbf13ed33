package app

import (
	"image/color"
	"math"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/theme"

	"outcrop/app/widget"
)

// luminance and contrast follow WCAG 2.1, 1.4.3.
func luminance(c color.Color) float64 {
	n := color.NRGBAModel.Convert(c).(color.NRGBA)
	lin := func(v uint8) float64 {
		f := float64(v) / 255
		if f <= 0.04045 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(n.R) + 0.7152*lin(n.G) + 0.0722*lin(n.B)
}

func contrast(a, b color.Color) float64 {
	la, lb := luminance(a), luminance(b)
	if la < lb {
		la, lb = lb, la
	}
	return (la + 0.05) / (lb + 0.05)
}

func TestTextContrast(t *testing.T) {
	texts := []fyne.ThemeColorName{
		theme.ColorNameForeground, widget.ColorDim, theme.ColorNamePlaceHolder, theme.ColorNamePrimary,
		widget.ColorGood, widget.ColorWatch, widget.ColorAct, widget.ColorRAM, widget.ColorVRAM, widget.ColorFile,
		theme.ColorNameHyperlink, theme.ColorNameError, theme.ColorNameWarning, theme.ColorNameSuccess,
	}
	grounds := []fyne.ThemeColorName{theme.ColorNameBackground, widget.ColorSurface, widget.ColorRaised}
	for _, look := range []Look{LookDark, LookLight} {
		th := &Theme{Look: look}
		for _, g := range grounds {
			for _, x := range texts {
				if r := contrast(th.Color(x, 0), th.Color(g, 0)); r < 4.5 {
					t.Errorf("%s: %s on %s has contrast %.2f, want at least 4.5", look, x, g, r)
				}
			}
		}
		focus, ground := filled{th}.Color(theme.ColorNameFocus, 0).(color.NRGBA), th.Color(widget.ColorSurface, 0).(color.NRGBA)
		mix := func(a, b uint8) uint8 {
			return uint8((float64(a)*float64(focus.A) + float64(b)*(255-float64(focus.A))) / 255)
		}
		under := color.NRGBA{R: mix(focus.R, ground.R), G: mix(focus.G, ground.G), B: mix(focus.B, ground.B), A: 255}
		if r := contrast(th.Color(theme.ColorNameForeground, 0), under); r < 4.5 {
			t.Errorf("%s: words of a list that has the focus have contrast %.2f, want at least 4.5", look, r)
		}
		for _, g := range grounds {
			if r := contrast(boxed{th}.Color(theme.ColorNameInputBorder, 0), th.Color(g, 0)); r < 3 {
				t.Errorf("%s: a check box that is off has contrast %.2f on %s, want at least 3 (WCAG 2.1, 1.4.11)", look, r, g)
			}
		}
		for _, p := range [][2]fyne.ThemeColorName{
			{theme.ColorNameForegroundOnPrimary, theme.ColorNamePrimary},
			{theme.ColorNameForegroundOnError, theme.ColorNameError},
			{theme.ColorNameForegroundOnWarning, theme.ColorNameWarning},
			{theme.ColorNameForegroundOnSuccess, theme.ColorNameSuccess},
		} {
			if r := contrast(th.Color(p[0], 0), th.Color(p[1], 0)); r < 4.5 {
				t.Errorf("%s: %s on %s has contrast %.2f, want at least 4.5", look, p[0], p[1], r)
			}
		}
	}
}

func TestLayersDiffer(t *testing.T) {
	for _, look := range []Look{LookDark, LookLight} {
		th := &Theme{Look: look}
		seen := map[color.Color]fyne.ThemeColorName{}
		for _, n := range []fyne.ThemeColorName{widget.ColorVRAM, widget.ColorRAM, widget.ColorFile} {
			c := th.Color(n, 0)
			if o, ok := seen[c]; ok {
				t.Errorf("%s: %s and %s have one colour", look, n, o)
			}
			seen[c] = n
			if r := contrast(c, th.Color(theme.ColorNameBackground, 0)); r < 3 {
				t.Errorf("%s: layer %s has contrast %.2f with the background, want at least 3", look, n, r)
			}
		}
	}
}

func TestScaleMultipliesText(t *testing.T) {
	one, two := &Theme{}, &Theme{Scale: 2}
	for _, n := range []fyne.ThemeSizeName{theme.SizeNameText, theme.SizeNameCaptionText, widget.SizePage, widget.SizeMeasure} {
		if got, want := two.Size(n), 2*one.Size(n); got != want {
			t.Errorf("%s: got %v, want %v", n, got, want)
		}
	}
}
