//go:build cgo

package desktop

import (
	fyneapp "fyne.io/fyne/v2/app"
	"fyne.io/fyne/v2/widget"
)

// Run opens the window and returns when it is closed.
func Run(a Args) error {
	f := fyneapp.NewWithID("io.outcrop.Outcrop")
	w := f.NewWindow("Outcrop")
	w.SetContent(widget.NewLabel("Outcrop"))
	w.ShowAndRun()
	return nil
}
