package app

import "fyne.io/fyne/v2"

// page is a page of the window. What else it can do it says by the small
// interfaces below.
type page interface {
	object() fyne.CanvasObject
}

// shower is told when its page comes into view and goes.
type shower interface{ shown(on bool) }

// engineWatcher is told when the engine's state changed.
type engineWatcher interface{ engineChanged(EngineState) }

// sampleWatcher is told each reading, while in view or not.
type sampleWatcher interface{ sampled(at *point) }

// storeWatcher is told when the conversations can be read.
type storeWatcher interface{ storeOpened() }

// keyed handles a key that nobody else wanted.
type keyed interface{ key(fyne.KeyName) bool }

// dropper takes files dropped on the window while its page is in view.
type dropper interface{ dropped(paths []string) bool }

// titled gives the heading of a page when it is not the page's name.
type titled interface{ title() string }

// actor puts controls of its own beside the heading.
type actor interface{ actions() []fyne.CanvasObject }

// entry is a page in the rail.
type entry struct {
	id, icon, name, tip string
	bottom              bool
	build               func(*App) page
}

// pageTable is the one list of pages, in the order of the rail.
func pageTable() []entry {
	return []entry{
		{"chat", "chat", "Chat", "Chat (Ctrl+1)", false, newChat},
		{"packs", "packs", "Packs", "Packs (Ctrl+2)", false, newPacks},
		{"card", "card", "Card", "Card and recipe (Ctrl+3)", false, newCard},
		{"monitor", "monitor", "Monitor", "Monitor (Ctrl+4)", false, newMonitor},
		{"serve", "serve", "Serve", "Serve other programs (Ctrl+5)", false, newServe},
		{"settings", "settings", "Settings", "Settings (Ctrl+6)", true, newSettings},
	}
}
