//go:build cgo

package desktop

import "fyne.io/fyne/v2"

// still is the toolkit's application without animations. The toolkit redraws
// the whole window for every step of one, and the fading text cursor alone
// took 10 to 12 % of a core in software GL while nothing else happened; with
// a steady cursor it is about 1 %.
type still struct{ fyne.App }

// Settings are the application's, but for animations.
func (s still) Settings() fyne.Settings { return stillSettings{s.App.Settings()} }

type stillSettings struct{ fyne.Settings }

// ShowAnimations is false.
func (stillSettings) ShowAnimations() bool { return false }
