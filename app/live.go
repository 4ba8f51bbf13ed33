package app

import (
	"outcrop/app/gateway"
	"outcrop/app/store"
	"outcrop/engine/catalog"
)

// LiveOptions are what the program's start knows.
type LiveOptions struct {
	Data    string // folder of the data; "" is the user's
	Root    string // machine to look at; "" is this one
	Version string
}

// Live ties the window to the real engine, packs, cards and store.
func Live(o LiveOptions) Deps {
	if o.Data == "" {
		o.Data = catalog.DataDir()
	}
	engine := NewLiveEngine()
	return Deps{
		Engine:    engine,
		Packs:     &LivePacks{Catalog: catalog.Open(), Root: o.Root},
		Cards:     &LiveCards{Root: o.Root, Version: o.Version},
		Gateway:   &gateway.Gateway{Target: engine.Target},
		OpenStore: func() (*store.Store, error) { return store.Open(HistoryPath(o.Data)) },
		Version:   o.Version,
		DataDir:   o.Data,
	}
}
