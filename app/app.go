package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"fyne.io/fyne/v2"

	"outcrop/app/store"
	"outcrop/app/widget"
	"outcrop/engine/catalog"
	"outcrop/engine/wire"
)

// App is the window and what its pages share. Everything in it belongs to the
// main thread; what comes from elsewhere comes through ui.
type App struct {
	deps  Deps
	fyne  fyne.App
	win   fyne.Window
	theme *Theme

	store    *store.Store // nil until it is open
	passing  string       // folder of a store that is thrown away at the end; "" for a real one
	settings Settings
	engine   EngineState
	history  *history
	sampled  time.Time // of the last telemetry reading

	frame   *frame
	built   map[string]page
	current string
	hidden  bool // the window is in the tray

	packs   *packList
	machine machineState
	settled bool   // the settings were read
	begun   bool   // the engine was started with the window, or need not be
	look    func() // stops our own look at the machine; nil while an engine tells
	stops   []func()
	closed  bool
	ended   chan struct{} // closed when Close is through
	once    sync.Once
}

// Keys of the toolkit's preferences: what the first frame needs before the
// store is open.
const (
	prefWidth  = "width"
	prefHeight = "height"
	prefLook   = "look"
	prefScale  = "scale"
	prefPage   = "page"
)

// The size that pages are made for, and the window's first size.
const (
	leastWidth, leastHeight = 900, 600
	firstWidth, firstHeight = 1180, 760
)

// New builds the window of the program and shows nothing yet. The toolkit's
// application is handed in, so that tests can build everything without a
// display.
func New(f fyne.App, d Deps) *App {
	a := &App{deps: d, fyne: f, built: map[string]page{}, history: newHistory(), ended: make(chan struct{})}
	if a.deps.UI == nil {
		a.deps.UI = fyne.Do
	}
	if a.deps.Now == nil {
		a.deps.Now = time.Now
	}
	if a.deps.Slow == nil {
		a.deps.Slow = a.deps.Work
	}
	if a.deps.Work == nil {
		a.deps.Work, a.deps.Slow = worker(), worker()
	}
	if a.deps.Every == nil {
		a.deps.Every = every
	}
	p := f.Preferences()
	a.settings.Look = Look(p.StringWithFallback(prefLook, string(LookSystem)))
	a.settings.Scale = float32(p.FloatWithFallback(prefScale, 1))
	a.theme = &Theme{Look: a.settings.Look, Scale: a.settings.Scale}
	f.Settings().SetTheme(a.theme)

	a.packs = newPackList(a)
	a.win = f.NewWindow("Outcrop")
	a.win.SetPadded(false)
	a.frame = newFrame(a)
	a.win.SetContent(a.frame.root)
	a.frame.attach()
	a.shortcuts()
	w, h := p.FloatWithFallback(prefWidth, firstWidth), p.FloatWithFallback(prefHeight, firstHeight)
	a.win.Resize(a.frame.root.MinSize().Max(fyne.NewSize(float32(w), float32(h)))) // small again where it was made small
	a.win.SetOnDropped(func(_ fyne.Position, uris []fyne.URI) {
		var paths []string
		for _, u := range uris {
			if u.Scheme() == "file" {
				paths = append(paths, u.Path())
			}
		}
		a.dropped(paths)
	})
	a.win.SetCloseIntercept(a.closing)
	a.visit(p.StringWithFallback(prefPage, pageTable()[0].id))
	return a
}

// worker runs functions one after the other on a goroutine of its own.
func worker() func(func()) {
	work := make(chan func(), 1024)
	go func() {
		for f := range work {
			f()
		}
	}()
	return func(f func()) { work <- f }
}

// every calls f on its own goroutine at intervals.
func every(d time.Duration, f func()) (stop func()) {
	t := time.NewTicker(d)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-t.C:
				f()
			case <-done:
				return
			}
		}
	}()
	var once sync.Once
	return func() { once.Do(func() { t.Stop(); close(done) }) }
}

// Window is the main window.
func (a *App) Window() fyne.Window { return a.win }

// Begin starts what fills the window: the store, the list of packs, the
// machine, the engine's watch. It is called once the first frame is up.
func (a *App) Begin() {
	a.openStore()
	a.packs.reload(nil)
	a.detect()
	if a.deps.Engine != nil {
		a.stops = append(a.stops,
			a.deps.Engine.Watch(func(s EngineState) { a.ui(func() { a.engineChanged(s) }) }),
			a.deps.Engine.Samples(func(s wire.Sample) { a.ui(func() { a.take(s, true) }) }))
		a.engineChanged(a.deps.Engine.State())
	}
	a.stops = append(a.stops, a.deps.Every(time.Second, func() { a.ui(a.tick) }))
}

// ui runs f on the main thread.
func (a *App) ui(f func()) { a.deps.UI(f) }

// background runs f away from the main thread and then done on it.
func (a *App) background(f func() error, done func(error)) {
	a.deps.Work(func() {
		err := f()
		if done != nil {
			a.ui(func() {
				if !a.closed {
					done(err)
				}
			})
		}
	})
}

// slowly is background for what may take a second each.
func (a *App) slowly(f func() error, done func(error)) {
	a.deps.Slow(func() {
		err := f()
		a.ui(func() {
			if !a.closed {
				done(err)
			}
		})
	})
}

// long runs f on a goroutine of its own: for work that may take minutes and
// must not hold up the short work.
func (a *App) long(f func()) { go f() }

func (a *App) openStore() {
	if a.deps.OpenStore == nil {
		return
	}
	var s *store.Store
	a.background(func() (err error) {
		s, err = a.deps.OpenStore()
		return err
	}, func(err error) {
		if err != nil {
			a.storeFailed(err)
			return
		}
		a.store = s
		a.loadSettings()
	})
}

// storeFailed says why there is no history, and offers what helps.
func (a *App) storeFailed(err error) {
	t := widget.Toast{State: widget.StateAct, Text: sentence(err), For: time.Minute}
	if errors.Is(err, store.ErrDamaged) {
		t.Text = tr("The conversations cannot be read: the file is damaged.")
		t.Button = tr("Set it aside and begin anew")
		t.Do = func() {
			a.background(func() error {
				_, err := store.SetAside(a.historyPath())
				return err
			}, func(err error) {
				if err != nil {
					a.fail(err)
					return
				}
				if a.store != nil {
					a.store.Close()
					a.store = nil
				}
				a.openStore()
			})
		}
	}
	a.frame.toasts.Push(t)
	// A person can still chat: this session's conversations go to a file that
	// is thrown away.
	var s *store.Store
	a.background(func() error {
		dir, err := os.MkdirTemp("", "outcrop-session-")
		if err == nil {
			s, err = store.Open(HistoryPath(dir))
		}
		return err
	}, func(err error) {
		if err != nil {
			a.fail(err)
			return
		}
		a.store, a.passing = s, filepath.Dir(s.Path())
		a.frame.toasts.Push(widget.Toast{State: widget.StateWatch, Text: tr("Chats of this session will not be kept."), For: time.Minute})
		a.loadSettings()
	})
}

func (a *App) loadSettings() {
	var s Settings
	var found bool
	a.background(func() (err error) {
		found, err = a.store.Setting(settingsKey, &s)
		if err == nil {
			_, err = a.store.Purge(a.deps.Now().Add(-24 * time.Hour))
		}
		return err
	}, func(err error) {
		if err != nil {
			a.fail(err)
		}
		if found {
			look, scale := a.settings.Look, a.settings.Scale
			a.settings = s
			a.settings.Look, a.settings.Scale = look, scale
		}
		a.settled = true
		a.packs.allAgain() // plans that were begun knew nothing of the settings
		a.inForce()
		for _, p := range a.built {
			if w, ok := p.(storeWatcher); ok {
				w.storeOpened()
			}
		}
		a.maybeStart()
		a.tray()
		if a.settings.Serve && a.deps.Gateway != nil && a.deps.Gateway.Addr() == "" {
			a.page("serve").(*servePage).open()
		}
	})
}

// change edits the settings and keeps them.
func (a *App) change(edit func(*Settings)) {
	edit(&a.settings)
	p := a.fyne.Preferences()
	p.SetString(prefLook, string(a.settings.Look))
	p.SetFloat(prefScale, float64(a.settings.Scale))
	p.SetString(PreferredLanguage, a.settings.Language)
	a.inForce()
	if a.store == nil {
		return
	}
	s := a.settings
	a.background(func() error { return a.store.SetSetting(settingsKey, s) }, a.failIf)
}

// restyle puts a changed look or text size into force. Sizes are taken when
// pages are built, so these are built anew.
func (a *App) restyle() {
	scaled := a.theme.Scale != a.settings.Scale
	a.theme = &Theme{Look: a.settings.Look, Scale: a.settings.Scale}
	a.fyne.Settings().SetTheme(a.theme)
	if !scaled {
		return
	}
	open := int64(0)
	if c, ok := a.built["chat"].(*chatPage); ok {
		c.leave()
		open = c.conv.ID
	}
	a.built = map[string]page{}
	a.frame.detach()
	a.frame = newFrame(a)
	a.win.SetContent(a.frame.root)
	a.frame.attach()
	current := a.current
	a.current = ""
	a.visit(current)
	if open != 0 {
		a.chat().open(open, 0)
	}
	a.refreshStatus()
}

// Visit shows a page by its id.
func (a *App) Visit(id string) { a.visit(id) }

// OpenPack makes a pack the one in use and starts it: a name of the list, or
// a file or folder, which is put on the list.
func (a *App) OpenPack(arg string) {
	a.packs.reload(func() {
		if e, ok := a.packs.named(arg); ok {
			a.start(e)
			return
		}
		var added []catalog.Entry
		a.background(func() (err error) {
			added, err = a.deps.Packs.Add(arg)
			return err
		}, func(err error) {
			if err != nil {
				a.fail(err)
				return
			}
			a.packs.reload(nil)
			if len(added) > 0 {
				a.start(added[0])
			}
		})
	})
}

// inForce hands settings on to those who work by them.
func (a *App) inForce() {
	if p, ok := a.deps.Packs.(placer); ok {
		p.SetPlaces(a.settings.Folder, a.settings.Site)
	}
}

// visit shows a page.
func (a *App) visit(id string) {
	i := slices.IndexFunc(pageTable(), func(e entry) bool { return e.id == id })
	if i < 0 {
		i, id = 0, pageTable()[0].id
	}
	if id == a.current {
		return
	}
	if p, ok := a.built[a.current].(shower); ok {
		p.shown(false)
	}
	p := a.page(id)
	a.current = id
	a.frame.show(pageTable()[i], p)
	if s, ok := p.(shower); ok {
		s.shown(true)
	}
	a.fyne.Preferences().SetString(prefPage, id)
}

// page gives a page, built when it is first asked for.
func (a *App) page(id string) page {
	if p := a.built[id]; p != nil {
		return p
	}
	for _, e := range pageTable() {
		if e.id == id {
			p := e.build(a)
			a.built[id] = p
			if w, ok := p.(storeWatcher); ok && a.store != nil {
				w.storeOpened()
			}
			if w, ok := p.(engineWatcher); ok {
				w.engineChanged(a.engine)
			}
			return p
		}
	}
	panic("BUG: page " + id + " is not in the list")
}

// chat gives the chat page.
func (a *App) chat() *chatPage { return a.page("chat").(*chatPage) }

// fail shows an error as a toast; errors that belong to a place are shown
// there instead.
func (a *App) fail(err error) {
	a.frame.toasts.Push(widget.Toast{State: widget.StateAct, Text: plainly(err), For: 15 * time.Second})
}

func (a *App) failIf(err error) {
	if err != nil {
		a.fail(err)
	}
}

// say shows a line of news.
func (a *App) say(text string, args ...any) {
	a.frame.toasts.Push(widget.Toast{State: widget.StateGood, Text: tr(text, args...)})
}

// notify tells the desktop, when the window cannot be seen and the person did
// not ask for quiet.
func (a *App) notify(title, text string) {
	if a.hidden && !a.settings.Quiet {
		a.fyne.SendNotification(fyne.NewNotification(title, text))
	}
}

func (a *App) dropped(paths []string) {
	if len(paths) == 0 {
		return
	}
	if d, ok := a.built[a.current].(dropper); ok && d.dropped(paths) {
		return
	}
	a.packs.add(paths)
}

func (a *App) engineChanged(s EngineState) {
	was := a.engine
	a.engine = s
	a.frame.engine(s)
	for _, p := range a.built {
		if w, ok := p.(engineWatcher); ok {
			w.engineChanged(s)
		}
	}
	if s.Phase == EngineReady && was.Phase != EngineReady && was.Phase != EngineOff {
		a.notify(tr("%s is ready", s.Pack), tr("It can answer now."))
	}
	if s.Phase == EngineEnded && was.Phase != EngineEnded {
		a.notify(tr("The engine ended"), s.Text)
	}
	a.refreshStatus()
	a.tray()
}

// tick runs every second.
func (a *App) tick() {
	if a.closed {
		return
	}
	// While no engine tells how the machine is, we look ourselves; not while
	// nobody can see it.
	silent := a.deps.Now().Sub(a.sampled) > 2500*time.Millisecond
	switch {
	case a.look == nil && silent && !a.hidden && a.deps.Cards != nil:
		a.look = a.deps.Cards.Readings(func(s wire.Sample) {
			a.ui(func() {
				if a.look != nil {
					a.take(s, false)
				}
			})
		})
	case a.look != nil && (!silent || a.hidden):
		a.look()
		a.look = nil
	}
}

// take files a reading and shows it.
func (a *App) take(s wire.Sample, engine bool) {
	if a.closed {
		return
	}
	if engine {
		a.sampled = a.deps.Now()
	}
	pt := a.history.add(s, engine, a.deps.Now())
	for _, p := range a.built {
		if w, ok := p.(sampleWatcher); ok {
			w.sampled(pt)
		}
	}
	a.refreshStatus()
}

// closing hides the window into the tray or ends the program.
func (a *App) closing() {
	a.rememberSize()
	if a.settings.Tray && a.hasTray() {
		a.hidden = true
		a.win.Hide()
		return
	}
	a.Close()
	a.win.Close()
}

func (a *App) rememberSize() {
	s := a.win.Canvas().Size()
	if s.Width >= 200 && s.Height >= 200 {
		a.fyne.Preferences().SetFloat(prefWidth, float64(s.Width))
		a.fyne.Preferences().SetFloat(prefHeight, float64(s.Height))
	}
}

// show brings the window back from the tray.
func (a *App) show() {
	a.hidden = false
	a.win.Show()
	a.win.RequestFocus()
}

// sentence turns an error into one that a person reads: a capital and a full
// stop.
func sentence(err error) string {
	s := err.Error()
	if s == "" {
		return tr("Something went wrong and does not say what.")
	}
	r := []rune(s)
	r[0] = upper(r[0])
	s = string(r)
	if last := s[len(s)-1]; last != '.' && last != '?' && last != '!' {
		s += "."
	}
	return s
}

func upper(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r - 'a' + 'A'
	}
	return r
}

func (a *App) historyPath() string { return HistoryPath(a.deps.DataDir) }

// HistoryPath is the file of the conversations in a data folder.
func HistoryPath(dir string) string { return fmt.Sprintf("%s/history.db", dir) }
