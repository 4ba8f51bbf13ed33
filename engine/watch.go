package engine

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"outcrop/engine/guard"
	"outcrop/gpu"
	"outcrop/gpu/compute"
)

// WatchOptions say how a model is watched. Only Root is needed.
type WatchOptions struct {
	Root   fs.FS         // the machine's files, os.DirFS("/") outside of tests
	Every  time.Duration // between two looks; 0: a second
	Config guard.Config
	// Cards reads the cards' sensors; nil: no cards.
	Cards func(now time.Time) []gpu.CardReadings
	// Displays are the addresses of cards that drive a screen, in small letters.
	Displays map[string]bool
	// OnChange is told of decisions that change something, from the watching
	// goroutine. At guard.Unload the owner should close the model.
	OnChange func(guard.Decision)
	// OnReading is told of every look (for charts and tests); may be nil.
	OnReading func(guard.Reading, guard.Decision)
	// Profile is where the learnt expert use is kept: read at the start, saved
	// every 10 minutes and at the end. Empty: nowhere.
	Profile string
}

// Said is one action of the guard in words.
type Said struct {
	Time time.Time
	Text string
}

// watched is what the guard has decided last.
type watched struct {
	level guard.Level
	step  guard.Step
	words []Said
}

const (
	// keptWords bounds what is remembered of the guard's actions.
	keptWords = 20
	// profileEvery is how often the expert use is saved.
	profileEvery = 10 * time.Minute
)

// Watch looks at memory once a second and has the model give up what the guard
// asks for, until ctx ends. It runs in a goroutine of its own and must have
// ended before the model is closed. The error is that of the profile at the
// end; one that is missing at the start is none, a damaged one is begun anew.
//
// A look reads five small files and takes well under a millisecond.
func Watch(ctx context.Context, m *Model, o WatchOptions) error {
	if o.Every <= 0 {
		o.Every = time.Second
	}
	if o.Profile != "" {
		if err := m.LoadProfile(o.Profile); err != nil && !errors.Is(err, fs.ErrNotExist) {
			m.say(time.Now(), err.Error())
		}
	}
	w := watcher{m: m, o: o, reader: guard.NewReader(o.Root, 0, os.Getpagesize())}
	saved := time.Now()
	tick := time.NewTicker(o.Every)
	defer tick.Stop()
	for {
		now := time.Now()
		w.look(now)
		if o.Profile != "" && now.Sub(saved) >= profileEvery {
			saved = now
			if err := m.SaveProfile(o.Profile); err != nil {
				m.say(now, err.Error())
			}
		}
		select {
		case <-ctx.Done():
			if o.Profile == "" {
				return nil
			}
			return m.SaveProfile(o.Profile)
		case <-tick.C:
		}
	}
}

// watcher is the state of Watch.
type watcher struct {
	m      *Model
	o      WatchOptions
	reader *guard.Reader
	state  guard.State
	last   guard.Decision
}

// look takes one reading and acts on it.
func (w *watcher) look(now time.Time) {
	var cards []gpu.CardReadings
	if w.o.Cards != nil {
		cards = w.o.Cards(now)
	}
	r := w.reader.Read(now, cards, w.m.heldSlots())
	r.VRAM = w.m.ownVRAM(r.VRAM)
	for i := range r.VRAM {
		r.VRAM[i].Display = w.o.Displays[strings.ToLower(r.VRAM[i].PCI)]
	}
	r.Held, r.Wanted = w.m.heldCopies()
	var d guard.Decision
	w.state, d = guard.Decide(w.state, r, now, w.o.Config)
	w.m.Relieve(d)
	for _, text := range d.Words {
		w.m.say(now, text)
	}
	w.m.decided(d)
	if w.o.OnReading != nil {
		w.o.OnReading(r, d)
	}
	changed := d.Step != w.last.Step || d.Level != w.last.Level || d.RAM != 0 || len(d.Slots) > 0
	if changed && w.o.OnChange != nil {
		w.o.OnChange(d)
	}
	w.last = d
}

// heldCopies is how many bytes of RAM copies of experts take, and how many
// they would take if they could.
func (m *Model) heldCopies() (held, wanted int64) {
	if s, ok := m.experts.(*shelves); ok {
		return m.tiers.held.Load(), s.most
	}
	return 0, 0
}

// heldSlots is how many bytes of slots the model holds, by card.
func (m *Model) heldSlots() map[string]int64 {
	if s, ok := m.experts.(*shelves); ok {
		return s.slots.held()
	}
	return nil
}

// ownVRAM completes the readings of cards that hold slots: where no sensor says
// what is free, the driver is asked.
func (m *Model) ownVRAM(list []guard.VRAM) []guard.VRAM {
	held := m.heldSlots()
	for i := range list {
		if _, ok := held[list[i].PCI]; ok && list[i].Free.Known {
			delete(held, list[i].PCI)
		}
	}
	for name, n := range held {
		var d *compute.Device
		for _, r := range m.cards.runs {
			if deviceName(r.dev.Info()) == name {
				d = r.dev
			}
		}
		if d == nil {
			continue
		}
		free, total, known := d.Memory()
		if !known {
			continue
		}
		v := guard.VRAM{PCI: name, Total: guard.Of(total), Free: guard.Of(free), Slots: n}
		if i := slices.IndexFunc(list, func(v guard.VRAM) bool { return v.PCI == name }); i >= 0 {
			list[i] = v
		} else {
			list = append(list, v)
		}
	}
	return list
}

// say remembers an action in words.
func (m *Model) say(now time.Time, text string) {
	m.relief.mu.Lock()
	defer m.relief.mu.Unlock()
	w := append(m.relief.said.words, Said{now, text})
	m.relief.said.words = w[max(0, len(w)-keptWords):]
}

func (m *Model) decided(d guard.Decision) {
	m.relief.mu.Lock()
	defer m.relief.mu.Unlock()
	m.relief.said.level, m.relief.said.step = d.Level, d.Step
}

// told copies what the guard has decided and said.
func (m *Model) told() watched {
	m.relief.mu.Lock()
	defer m.relief.mu.Unlock()
	w := m.relief.said
	w.words = append([]Said(nil), w.words...)
	return w
}
