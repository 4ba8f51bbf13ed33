package app

import (
	"strconv"

	"fyne.io/fyne/v2"
	"fyne.io/fyne/v2/driver/desktop"

	"outcrop/app/widget"
)

// shortcut is one key combination of the window.
type shortcut struct {
	key   fyne.KeyName
	mod   fyne.KeyModifier
	keys  string // as shown
	words string
	do    func(*App)
}

const ctrl = fyne.KeyModifierShortcutDefault

// shortcutTable is every key combination, in the order of the F1 page. Keys
// without a modifier are handled by what has the focus and stand here to be
// read.
func shortcutTable() []shortcut {
	var list []shortcut
	for i, p := range pageTable() {
		list = append(list, shortcut{fyne.KeyName(strconv.Itoa(i + 1)), ctrl, "Ctrl+" + strconv.Itoa(i+1), p.name, func(a *App) { a.visit(p.id) }})
	}
	return append(list,
		shortcut{fyne.KeyN, ctrl, "Ctrl+N", "New chat", func(a *App) { a.visit("chat"); a.chat().newConversation() }},
		shortcut{fyne.KeyK, ctrl, "Ctrl+K", "Search everything", (*App).search},
		shortcut{fyne.KeyComma, ctrl, "Ctrl+,", "Settings", func(a *App) { a.visit("settings") }},
		shortcut{fyne.KeyR, ctrl, "Ctrl+R", "Answer again", func(a *App) { a.visit("chat"); a.chat().regenerateLast() }},
		shortcut{fyne.KeyC, ctrl | fyne.KeyModifierShift, "Ctrl+Shift+C", "Copy the last answer", func(a *App) { a.chat().copyLast() }},
		shortcut{fyne.KeyD, ctrl, "Ctrl+D", "Sampling and system prompt", func(a *App) { a.visit("chat"); a.chat().toggleDrawer() }},
		shortcut{fyne.KeyB, ctrl, "Ctrl+B", "Show or hide the conversations", func(a *App) { a.visit("chat"); a.chat().toggleList() }},
		shortcut{fyne.KeyO, ctrl, "Ctrl+O", "Add a pack", func(a *App) { a.visit("packs"); a.chooseFile() }},
		shortcut{fyne.KeyZ, ctrl | fyne.KeyModifierShift, "Ctrl+Shift+Z", "Undo the last removal", func(a *App) { a.frame.toasts.Press() }},
		shortcut{fyne.KeyQ, ctrl, "Ctrl+Q", "Quit", func(a *App) { a.quit() }},
		shortcut{fyne.KeyF1, 0, "F1", "This list", (*App).help},
		shortcut{"", 0, "Enter", "Send", nil},
		shortcut{"", 0, "Shift+Enter", "New line", nil},
		shortcut{"", 0, "Esc", "Stop the answer, or close what is open", nil},
		shortcut{"", 0, "Up", "In an empty field: edit the last turn", nil},
		shortcut{"", 0, "PageUp, PageDown, Home, End", "Move in the transcript", nil},
		shortcut{"", 0, "Tab", "Next control", nil},
	)
}

// shortcuts ties the table to the window.
func (a *App) shortcuts() {
	c := a.win.Canvas()
	for _, s := range shortcutTable() {
		if s.do != nil && s.mod != 0 {
			c.AddShortcut(&desktop.CustomShortcut{KeyName: s.key, Modifier: s.mod}, func(fyne.Shortcut) { s.do(a) })
		}
	}
	c.SetOnTypedKey(func(e *fyne.KeyEvent) { a.key(e.Name) })
}

// typed handles a shortcut that a focused field was given, and says whether
// it is one of the window's.
func (a *App) typed(s fyne.Shortcut) bool {
	c, ok := s.(*desktop.CustomShortcut)
	if !ok {
		return false
	}
	for _, t := range shortcutTable() {
		if t.do != nil && t.key == c.KeyName && t.mod == c.Modifier {
			t.do(a)
			return true
		}
	}
	return false
}

// key handles a key that no focused control wanted, and says whether it did.
func (a *App) key(k fyne.KeyName) bool {
	if k == fyne.KeyF1 {
		a.help()
		return true
	}
	if a.frame.closeOverlay(k) {
		return true
	}
	if p, ok := a.built[a.current].(keyed); ok {
		return p.key(k)
	}
	return false
}

// field makes an entry that lets the window's shortcuts through.
func (a *App) field(hint string) *widget.Entry {
	e := widget.NewEntry(hint)
	a.adopt(e)
	return e
}

// adopt lets the window's shortcuts through an entry.
func (a *App) adopt(e *widget.Entry) {
	e.OnShortcut = a.typed
	own := e.OnKey
	e.OnKey = func(k fyne.KeyName) bool {
		if own != nil && own(k) {
			return true
		}
		if k == fyne.KeyF1 {
			a.help()
			return true
		}
		if k == fyne.KeyEscape {
			return a.key(k)
		}
		return false
	}
}

// modifiers are the modifier keys held now, where the driver tells.
func modifiers() fyne.KeyModifier {
	if d, ok := fyne.CurrentApp().Driver().(desktop.Driver); ok {
		return d.CurrentKeyModifiers()
	}
	return 0
}
