package widget

import (
	"fyne.io/fyne/v2"
	fynewidget "fyne.io/fyne/v2/widget"
)

// Entry is Fyne's entry that lets an owner see keys and shortcuts first: a
// focused entry otherwise swallows the shortcuts of the window.
type Entry struct {
	fynewidget.Entry
	// OnKey handles a key and says so.
	OnKey func(fyne.KeyName) bool
	// OnShortcut handles a shortcut and says so.
	OnShortcut func(fyne.Shortcut) bool
	// OnFocus is told when the focus comes and goes.
	OnFocus func(bool)
}

// NewEntry makes a single line.
func NewEntry(hint string) *Entry {
	e := &Entry{}
	e.PlaceHolder = hint
	e.ExtendBaseWidget(e)
	return e
}

// TypedKey asks the owner first.
func (e *Entry) TypedKey(k *fyne.KeyEvent) {
	if e.OnKey != nil && e.OnKey(k.Name) {
		return
	}
	e.Entry.TypedKey(k)
}

// TypedShortcut asks the owner first.
func (e *Entry) TypedShortcut(s fyne.Shortcut) {
	if e.OnShortcut != nil && e.OnShortcut(s) {
		return
	}
	e.Entry.TypedShortcut(s)
}

// FocusGained tells the owner.
func (e *Entry) FocusGained() {
	e.Entry.FocusGained()
	if e.OnFocus != nil {
		e.OnFocus(true)
	}
}

// FocusLost tells the owner.
func (e *Entry) FocusLost() {
	e.Entry.FocusLost()
	if e.OnFocus != nil {
		e.OnFocus(false)
	}
}

// Search is a field with a glass at its left and a cross that empties it.
type Search struct {
	Entry
}

// NewSearch makes a field; changed is called with every change.
func NewSearch(hint string, changed func(string)) *Search {
	s := &Search{}
	s.PlaceHolder = hint
	s.Icon = Icon("search")
	clear := NewIconButton("close", T("Clear"), func() { s.SetText("") })
	clear.Hide()
	s.ActionItem = clear
	s.OnChanged = func(text string) {
		if (text == "") == clear.Visible() {
			clear.Hidden = text == ""
			s.Refresh()
		}
		if changed != nil {
			changed(text)
		}
	}
	s.OnKey = func(k fyne.KeyName) bool {
		if k == fyne.KeyEscape && s.Text != "" {
			s.SetText("")
			return true
		}
		return false
	}
	s.ExtendBaseWidget(s)
	return s
}
