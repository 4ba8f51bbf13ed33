//go:build cgo

package desktop

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"fyne.io/fyne/v2"
	fyneapp "fyne.io/fyne/v2/app"

	"outcrop/app"
	"outcrop/assets"
)

// Run opens the window and returns when it is closed. Where there is no
// display it returns ErrNoWindow at once.
func Run(a Args) error {
	if err := display(); err != nil {
		return err
	}
	// XWayland draws fractional scales wrongly less often than the toolkit's
	// own Wayland mode does (fyne-io/fyne#6447); a person can choose otherwise.
	if os.Getenv("FYNE_PLATFORM") == "" && os.Getenv("DISPLAY") != "" {
		os.Setenv("FYNE_PLATFORM", "x11")
	}
	// In a home that nobody has used the toolkit makes its folder in the cache, but
	// not the cache, and complains.
	if d, err := os.UserCacheDir(); err == nil {
		os.MkdirAll(d, 0o700)
	}
	f := fyneapp.NewWithID("io.outcrop.Outcrop")
	fyne.SetCurrentApp(still{f})
	f.SetIcon(fyne.NewStaticResource("outcrop.png", assets.IconPNG))
	if err := app.LoadLanguage(f.Preferences().String(app.PreferredLanguage)); err != nil {
		fyne.LogError("texts stay English", err)
	}
	w := app.New(f, app.Live(app.LiveOptions{Data: a.Data, Root: a.Root, Version: a.Version}))
	if a.Page != "" {
		w.Visit(a.Page)
	}
	f.Lifecycle().SetOnStarted(func() {
		w.Begin()
		if a.Pack != "" {
			w.OpenPack(a.Pack)
		}
	})
	// An end from outside (logout, Ctrl-C in the terminal) closes in good
	// order: the engine is stopped, drafts are saved.
	end := make(chan os.Signal, 1)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	over := make(chan struct{})
	go func() {
		<-end
		fyne.Do(func() { w.Close(); f.Quit() })
		lastly(over, endTime, w.Close, os.Exit)
	}()
	go func() {
		<-w.Ended()
		lastly(over, endTime, func() {}, os.Exit)
	}()
	w.Window().Show()
	f.Run()
	w.Close()
	close(over)
	return nil
}

// display says whether there is one that answers. The toolkit would end the
// program where there is none.
func display() error {
	if runtime.GOOS != "linux" && runtime.GOOS != "freebsd" {
		return nil
	}
	if wl := os.Getenv("WAYLAND_DISPLAY"); wl != "" {
		path := wl
		if !filepath.IsAbs(path) {
			path = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), path)
		}
		if answers("unix", path) == nil {
			return nil
		}
	}
	name := os.Getenv("DISPLAY")
	if name == "" {
		return fmt.Errorf("%w: neither DISPLAY nor WAYLAND_DISPLAY is set", ErrNoWindow)
	}
	host, num, ok := strings.Cut(name, ":")
	if !ok {
		return fmt.Errorf("%w: DISPLAY is %q, want HOST:NUMBER", ErrNoWindow, name)
	}
	num, _, _ = strings.Cut(num, ".")
	var errs []error
	if host == "" || host == "unix" {
		path := "/tmp/.X11-unix/X" + num
		for _, p := range []string{path, "@" + path} {
			err := answers("unix", p)
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		}
	} else {
		n := 0
		fmt.Sscan(num, &n)
		err := answers("tcp", net.JoinHostPort(host, fmt.Sprint(6000+n)))
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return fmt.Errorf("%w: display %s does not answer: %w", ErrNoWindow, name, errors.Join(errs...))
}

func answers(network, addr string) error {
	c, err := net.DialTimeout(network, addr, 3*time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}
