// Package app is the window: its pages, its theme and its words.
//
// It owns what a person sees and does, and refuses to decide anything about
// models or cards: it asks through the small interfaces of deps.go, which the
// adapters (live_*.go) answer with the engine, the catalog, the cards and the
// store, and tests answer with fakes. The path of one answer: the composer
// hands a text to Chat.send, which stores the turn and starts a stream; the
// stream's goroutine appends to a buffer; one ticker moves the buffer into the
// transcript by a single fyne.Do about every 60 ms; the end of the stream
// stores the answer with its figures.
package app
