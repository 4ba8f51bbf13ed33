package app

import (
	"testing"

	"fyne.io/fyne/v2"
)

// The toolkit's choosers break when they are resized before they are shown.
func TestChoosersOpen(t *testing.T) {
	r := newRig(t, LookDark)
	top := func() fyne.CanvasObject { return r.a.win.Canvas().Overlays().Top() }
	for name, open := range map[string]func(){
		"file":   func() { r.a.openFile([]string{".gguf"}, func(string) {}) },
		"folder": func() { r.a.chooseFolder(func(string) {}) },
		"save":   func() { r.a.chooseSave("x.csv", func(string) {}) },
		"Ctrl+O": func() { r.press(fyne.KeyO, ctrl) },
	} {
		open()
		if top() == nil {
			t.Errorf("%s: no chooser is open", name)
			continue
		}
		shot(t, r.a.win, "chooser-"+name)
		r.a.win.Canvas().Overlays().Remove(top())
	}
}
