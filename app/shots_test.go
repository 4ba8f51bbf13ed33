package app

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/test"
)

// shot writes what a window shows to the folder named by OUTCROP_SHOTS, for a
// person to look at; without it, nothing.
func shot(t *testing.T, w fyne.Window, name string) {
	t.Helper()
	dir := os.Getenv("OUTCROP_SHOTS")
	if dir == "" {
		return
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, name+".png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := png.Encode(f, w.Canvas().Capture()); err != nil {
		t.Fatal(err)
	}
}

// settle lays a window out again: wrapped text tells its height only after
// the first layout, and the test driver has no second frame of its own.
func settle(w fyne.Window) {
	size := w.Canvas().Size()
	for range 2 {
		w.Resize(size.AddWidthHeight(1, 0))
		w.Resize(size)
	}
}

func testWindow(t *testing.T, look Look, o fyne.CanvasObject, width, height float32) fyne.Window {
	t.Helper()
	a := test.NewTempApp(t)
	a.Settings().SetTheme(&Theme{Look: look})
	w := test.NewTempWindow(t, o)
	w.SetPadded(false)
	w.Resize(fyne.NewSize(width, height))
	settle(w)
	return w
}
