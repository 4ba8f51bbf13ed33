package widget

import (
	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"
)

// State is how something is, with a colour, a shape and a word for it.
type State uint8

// The states, from not known to bad.
const (
	StateUnknown State = iota
	StateGood
	StateWatch
	StateAct
	StateInfo
	StateBusy
)

// Color is the colour of a state.
func (s State) Color() fyne.ThemeColorName {
	switch s {
	case StateGood:
		return ColorGood
	case StateWatch:
		return ColorWatch
	case StateAct:
		return ColorAct
	case StateBusy:
		return ColorAccent
	}
	return ColorDim
}

// Icon is the shape of a state: never colour alone.
func (s State) Icon() string {
	switch s {
	case StateGood:
		return "ok"
	case StateWatch:
		return "warning"
	case StateAct:
		return "error"
	case StateInfo:
		return "info"
	case StateBusy:
		return "clock"
	}
	return "unknown"
}

// Light is the mark of a state.
type Light struct {
	fynewidget.BaseWidget
	state State
	icon  *fynewidget.Icon
}

// NewLight makes a mark.
func NewLight(s State) *Light {
	l := &Light{state: s, icon: fynewidget.NewIcon(IconIn(s.Icon(), s.Color()))}
	l.ExtendBaseWidget(l)
	return l
}

// Set changes the state.
func (l *Light) Set(s State) {
	if s != l.state {
		l.state = s
		setIcon(l.icon, IconIn(s.Icon(), s.Color()))
	}
}

// State is what the light shows.
func (l *Light) State() State { return l.state }

// CreateRenderer shows the icon at text height.
func (l *Light) CreateRenderer() fyne.WidgetRenderer {
	l.ExtendBaseWidget(l)
	n := themeSize(SizeText) + 3
	return fynewidget.NewSimpleRenderer(Sized(n, n, l.icon))
}
