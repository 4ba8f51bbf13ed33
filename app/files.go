package app

import (
	"image"
	"image/draw"
	"os"
	"path/filepath"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/dialog"
	"fyne.io/fyne/v2/storage"
)

// The file choosers are the only dialogs of the window.

// openFile asks for a file of one of some endings.
func (a *App) openFile(endings []string, f func(path string)) {
	d := dialog.NewFileOpen(func(r fyne.URIReadCloser, err error) {
		if err != nil {
			a.fail(err)
			return
		}
		if r == nil {
			return
		}
		path := r.URI().Path()
		r.Close()
		a.remember(path)
		f(path)
	}, a.win)
	if len(endings) > 0 {
		d.SetFilter(storage.NewExtensionFileFilter(endings))
	}
	if u := a.lastFolder(); u != nil {
		d.SetLocation(u)
	}
	d.Show()
	a.sized(d)
}

// chooseFolder asks for a folder.
func (a *App) chooseFolder(f func(path string)) {
	d := dialog.NewFolderOpen(func(u fyne.ListableURI, err error) {
		if err != nil {
			a.fail(err)
			return
		}
		if u != nil {
			a.remember(u.Path() + "/x")
			f(u.Path())
		}
	}, a.win)
	if u := a.lastFolder(); u != nil {
		d.SetLocation(u)
	}
	d.Show()
	a.sized(d)
}

// chooseSave asks where to write a file.
func (a *App) chooseSave(name string, f func(path string)) {
	d := dialog.NewFileSave(func(w fyne.URIWriteCloser, err error) {
		if err != nil {
			a.fail(err)
			return
		}
		if w == nil {
			return
		}
		path := w.URI().Path()
		w.Close()
		a.remember(path)
		f(path)
	}, a.win)
	d.SetFileName(name)
	if u := a.lastFolder(); u != nil {
		d.SetLocation(u)
	}
	d.Show()
	a.sized(d)
}

// sized makes a chooser big enough to choose in; the toolkit breaks when it is
// called before Show.
func (a *App) sized(d interface{ Resize(fyne.Size) }) {
	s := a.win.Canvas().Size()
	d.Resize(fyne.NewSize(min(s.Width-60, 900), min(s.Height-60, 640)))
}

const prefFolder = "folder"

func (a *App) remember(path string) {
	a.fyne.Preferences().SetString(prefFolder, filepath.Dir(path))
}

func (a *App) lastFolder() fyne.ListableURI {
	dir := a.fyne.Preferences().String(prefFolder)
	if dir == "" {
		dir, _ = os.UserHomeDir()
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil
	}
	u, err := storage.ListerForURI(storage.NewFileURI(dir))
	if err != nil {
		return nil
	}
	return u
}

// picture cuts an object out of what the window shows.
func (a *App) picture(o fyne.CanvasObject) image.Image {
	c := a.win.Canvas()
	img := c.Capture()
	p, s := a.fyne.Driver().AbsolutePositionForObject(o), o.Size()
	x0, y0 := c.PixelCoordinateForPosition(p)
	x1, y1 := c.PixelCoordinateForPosition(p.Add(s))
	r := image.Rect(x0, y0, x1, y1).Intersect(img.Bounds())
	out := image.NewRGBA(image.Rect(0, 0, r.Dx(), r.Dy()))
	draw.Draw(out, out.Bounds(), img, r.Min, draw.Src)
	return out
}
