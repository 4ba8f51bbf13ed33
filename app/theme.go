package app

import (
	"image/color"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/container"
	"fyne.io/fyne/v2/theme"
	fynewidget "fyne.io/fyne/v2/widget"

	"outcrop/app/widget"
)

// Look is how the window is coloured.
type Look string

// The looks a person can choose.
const (
	LookSystem Look = "system"
	LookDark   Look = "dark"
	LookLight  Look = "light"
)

// Theme is the window's one theme: the tokens of the design in dark and
// light. Scale multiplies text and spacing; it is how "text size" works, so
// that a wrong guess of the display's density can be put right at once.
type Theme struct {
	Look  Look
	Scale float32 // 0 means 1
}

// palette is the colours of one variant.
type palette struct {
	background, surface, raised, line color.NRGBA
	text, dim, disabled               color.NRGBA
	accent, onAccent                  color.NRGBA
	vram, ram, file                   color.NRGBA
	good, watch, act, onAct           color.NRGBA
}

var dark = palette{
	background: rgb(0x15171A), surface: rgb(0x1D2024), raised: rgb(0x24282D), line: rgb(0x2C3036),
	text: rgb(0xE8E6E1), dim: rgb(0x9A9DA3), disabled: rgb(0x62666C),
	accent: rgb(0xE0A458), onAccent: rgb(0x15171A),
	vram: rgb(0x5B8DEF), ram: rgb(0x63B08A), file: rgb(0xB08968),
	good: rgb(0x63B08A), watch: rgb(0xE0A458), act: rgb(0xE5675B), onAct: rgb(0x15171A),
}

// The light accent and RAM green are a shade darker than first drawn, so that
// they reach 4.5:1 as text on every ground.
var light = palette{
	background: rgb(0xF7F7F5), surface: rgb(0xFFFFFF), raised: rgb(0xF1F1EE), line: rgb(0xE3E3DF),
	text: rgb(0x1B1D20), dim: rgb(0x6A6D72), disabled: rgb(0xA9ABAE),
	accent: rgb(0x9C5C19), onAccent: rgb(0xFFFFFF),
	vram: rgb(0x2F63C9), ram: rgb(0x2C7A55), file: rgb(0x8A6242),
	good: rgb(0x2C7A55), watch: rgb(0x9C5C19), act: rgb(0xB93A2F), onAct: rgb(0xFFFFFF),
}

func rgb(v uint32) color.NRGBA {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 0xFF}
}

func (t *Theme) palette(v fyne.ThemeVariant) *palette {
	switch t.Look {
	case LookDark:
		return &dark
	case LookLight:
		return &light
	}
	if v == theme.VariantLight {
		return &light
	}
	return &dark
}

// Color gives the colour of a name; the look wins over the system's variant.
func (t *Theme) Color(n fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	k := t.palette(v)
	switch n {
	case theme.ColorNameBackground, theme.ColorNameScrollBarBackground:
		if n == theme.ColorNameScrollBarBackground {
			return color.Transparent
		}
		return k.background
	case widget.ColorSurface, theme.ColorNameMenuBackground, theme.ColorNameOverlayBackground,
		theme.ColorNameHeaderBackground, theme.ColorNameInputBackground:
		return k.surface
	case widget.ColorRaised, theme.ColorNameButton:
		return k.raised
	case widget.ColorLine, theme.ColorNameInputBorder, theme.ColorNameSeparator:
		return k.line
	case theme.ColorNameForeground:
		return k.text
	case widget.ColorDim, theme.ColorNamePlaceHolder:
		return k.dim
	case theme.ColorNameDisabled:
		return k.disabled
	case theme.ColorNameDisabledButton:
		return k.surface
	case theme.ColorNamePrimary, theme.ColorNameHyperlink:
		return k.accent
	case theme.ColorNameForegroundOnPrimary, theme.ColorNameForegroundOnWarning:
		return k.onAccent
	case theme.ColorNameForegroundOnError, theme.ColorNameForegroundOnSuccess:
		return k.onAct
	case theme.ColorNameFocus:
		return widget.Fade(k.accent, 0.55)
	case theme.ColorNameSelection:
		return widget.Fade(k.accent, 0.30)
	case theme.ColorNameHover:
		return widget.Fade(k.text, 0.06)
	case theme.ColorNamePressed:
		return widget.Fade(k.text, 0.12)
	case theme.ColorNameScrollBar:
		return widget.Fade(k.dim, 0.55)
	case theme.ColorNameShadow:
		return color.NRGBA{A: 0x18}
	case theme.ColorNameSuccess, widget.ColorGood:
		return k.good
	case theme.ColorNameWarning, widget.ColorWatch:
		return k.watch
	case theme.ColorNameError, widget.ColorAct:
		return k.act
	case widget.ColorVRAM:
		return k.vram
	case widget.ColorRAM:
		return k.ram
	case widget.ColorFile:
		return k.file
	}
	return theme.DefaultTheme().Color(n, v)
}

// Size gives a size by name, scaled.
func (t *Theme) Size(n fyne.ThemeSizeName) float32 {
	s := t.Scale
	if s == 0 {
		s = 1
	}
	switch n {
	case theme.SizeNameCaptionText:
		return 12 * s
	case theme.SizeNameText:
		return 14 * s
	case theme.SizeNameSubHeadingText:
		return 16 * s
	case theme.SizeNameHeadingText:
		return 22 * s
	case theme.SizeNamePadding:
		return 4 * s
	case theme.SizeNameInnerPadding:
		return 8 * s
	case theme.SizeNameLineSpacing:
		return 4 * s
	case theme.SizeNameInlineIcon:
		return 18 * s
	case theme.SizeNameInputRadius, theme.SizeNameButtonRadius, theme.SizeNameSelectionRadius:
		return 6
	case theme.SizeNameCardRadius, theme.SizeNameDialogRadius, theme.SizeNamePopupRadius, theme.SizeNameMenuRadius:
		return 8
	case theme.SizeNameScrollBar:
		return 10
	case theme.SizeNameScrollBarSmall:
		return 4
	case theme.SizeNameScrollBarRadius:
		return 4
	case theme.SizeNameInputBorder, theme.SizeNameSeparatorThickness:
		return 1
	case widget.SizePage:
		return 16 * s
	case widget.SizeCard:
		return 12 * s
	case widget.SizeMeasure:
		return 720 * s
	case widget.SizeRail:
		return 84 * s
	}
	return theme.DefaultTheme().Size(n)
}

// Font is Fyne's own.
func (t *Theme) Font(s fyne.TextStyle) fyne.Resource { return theme.DefaultTheme().Font(s) }

// Icon is Fyne's own but where we draw ours.
func (t *Theme) Icon(n fyne.ThemeIconName) fyne.Resource {
	switch n {
	case theme.IconNameSearch:
		return widget.Icon("search")
	case theme.IconNameArrowDropDown:
		return widget.Icon("down")
	case theme.IconNameArrowDropUp:
		return widget.Icon("up")
	case theme.IconNameCancel:
		return widget.Icon("close")
	}
	return theme.DefaultTheme().Icon(n)
}

// bare is the theme of a field that stands on a ground of its own: without
// border and fill.
type bare struct{ fyne.Theme }

// Color leaves the fill away.
func (b bare) Color(n fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	if n == theme.ColorNameInputBackground {
		return color.Transparent
	}
	return b.Theme.Color(n, v)
}

// Size leaves the border away.
func (b bare) Size(n fyne.ThemeSizeName) float32 {
	if n == theme.SizeNameInputBorder {
		return 0
	}
	return b.Theme.Size(n)
}

// boxed is the theme of a check box: its border is all there is of it while it is
// off, so it has the contrast of text and not of a hairline.
type boxed struct{ fyne.Theme }

// Color draws the border.
func (b boxed) Color(n fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	if n == theme.ColorNameInputBorder {
		n = widget.ColorDim
	}
	return b.Theme.Color(n, v)
}

// filled is the theme of a list to choose from, which is filled with the colour of
// the focus and not ringed with it: its words must stay legible.
type filled struct{ fyne.Theme }

// Color softens the focus.
func (f filled) Color(n fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	if n == theme.ColorNameFocus {
		return widget.Fade(f.Theme.Color(theme.ColorNamePrimary, v), 0.35)
	}
	return f.Theme.Color(n, v)
}

// railed is the theme of a slider: its rail stands out from a card.
type railed struct{ fyne.Theme }

// Color draws the rail.
func (r railed) Color(n fyne.ThemeColorName, v fyne.ThemeVariant) color.Color {
	if n == theme.ColorNameInputBackground {
		return widget.Fade(r.Theme.Color(widget.ColorDim, v), 0.5)
	}
	return r.Theme.Color(n, v)
}

// check is a check box that can be seen while it is off.
func (a *App) check(on bool, changed func(bool)) fyne.CanvasObject {
	c := fynewidget.NewCheck("", nil)
	c.SetChecked(on)
	c.OnChanged = changed
	return container.NewThemeOverride(c, boxed{a.theme})
}
