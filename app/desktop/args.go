// Package desktop opens the window. It is the only package that imports
// Fyne's graphics driver, and so the only one that needs cgo; without cgo the
// same door exists and says in words that this build has no window.
package desktop

import "errors"

// Args is what main knows and the window needs. The zero value opens the
// starter pack with the user's own folders.
type Args struct {
	Pack    string // name, file or folder to open first; "" means the last one used, else the starter
	Page    string // id of the page to open first; "" means Chat
	Data    string // folder for conversations and settings; "" means the user's data folder
	Root    string // folder that holds sys, proc and dev of the machine to read; "" means this one
	Version string // shown in Settings and in reports
}

// ErrNoWindow says that no window can be opened here: there is no display, or
// the build has none. The caller goes on in the terminal.
var ErrNoWindow = errors.New("no window here")
