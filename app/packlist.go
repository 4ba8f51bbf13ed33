package app

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"outcrop/app/widget"
	"outcrop/engine/catalog"
	"outcrop/engine/guard"
	"outcrop/engine/plan"
)

// packList is the packs that the window knows, with what was read of them.
type packList struct {
	a       *App
	entries []catalog.Entry
	err     error
	loaded  bool
	details map[string]*packDetail // by path
}

// packDetail is what was read of one pack.
type packDetail struct {
	info    *PackInfo
	infoErr error
	plan    *plan.Plan
	planErr error
	health  catalog.Health
	asked   bool
	asks    int // readings begun; the last one counts
}

// packWatcher is told when the list or a detail changed.
type packWatcher interface{ packsChanged() }

func newPackList(a *App) *packList { return &packList{a: a, details: map[string]*packDetail{}} }

func (l *packList) changed() {
	for _, p := range l.a.built {
		if w, ok := p.(packWatcher); ok {
			w.packsChanged()
		}
	}
	l.a.refreshStatus()
}

// reload reads the list anew and calls then, which may be nil.
func (l *packList) reload(then func()) {
	if l.a.deps.Packs == nil {
		return
	}
	var list []catalog.Entry
	l.a.background(func() (err error) {
		list, err = l.a.deps.Packs.List()
		return err
	}, func(err error) {
		l.entries, l.err, l.loaded = list, err, true
		l.changed()
		l.a.maybeStart()
		if then != nil {
			then()
		}
	})
}

// current is the pack a chat would use: the last one used, else the starter,
// else the first.
func (l *packList) current() (catalog.Entry, bool) {
	if e, ok := l.named(l.a.settings.Pack); ok {
		return e, true
	}
	for _, e := range l.entries {
		if e.Demo {
			return e, true
		}
	}
	if len(l.entries) > 0 {
		return l.entries[0], true
	}
	return catalog.Entry{}, false
}

func (l *packList) named(name string) (catalog.Entry, bool) {
	i := slices.IndexFunc(l.entries, func(e catalog.Entry) bool { return strings.EqualFold(e.Name, name) })
	if i < 0 {
		return catalog.Entry{}, false
	}
	return l.entries[i], true
}

// detail gives what is known of a pack and has the rest read, once.
func (l *packList) detail(e catalog.Entry) *packDetail {
	d := l.details[e.Path]
	if d == nil {
		d = &packDetail{}
		l.details[e.Path] = d
	}
	if !d.asked && l.a.deps.Packs != nil {
		d.asked = true
		l.read(e, d)
	}
	return d
}

// allAgain makes the plans of all packs anew that are shown.
func (l *packList) allAgain() {
	for _, e := range l.entries {
		if d := l.details[e.Path]; d != nil && d.asked {
			l.again(e)
		}
	}
}

// again reads a pack's plan anew, for other settings or another machine.
func (l *packList) again(e catalog.Entry) {
	d := l.detail(e)
	l.read(e, d)
}

func (l *packList) read(e catalog.Entry, d *packDetail) {
	var h catalog.Health
	var info PackInfo
	var p plan.Plan
	var infoErr, planErr error
	wishes := l.a.wishes(e)
	d.asks++
	ask := d.asks
	l.a.slowly(func() error {
		h = l.a.deps.Packs.Health(e)
		if h.Status == catalog.Gone {
			return nil
		}
		if info, infoErr = l.a.deps.Packs.Inspect(context.Background(), e); infoErr != nil {
			return nil
		}
		p, planErr = l.a.deps.Packs.Plan(context.Background(), e, wishes)
		return nil
	}, func(error) {
		if ask != d.asks {
			return // asked again since, with other settings
		}
		d.health, d.infoErr, d.planErr = h, infoErr, planErr
		if infoErr == nil && h.Status != catalog.Gone {
			d.info = &info
		}
		switch {
		case planErr != nil:
			d.plan = nil // the one before was for other settings
		case p.Words != "":
			d.plan = &p
		}
		l.changed()
	})
}

// wishes are the settings that change the plan of a pack.
func (a *App) wishes(e catalog.Entry) plan.Wishes {
	w := plan.Wishes{Context: a.settings.Context, KV: a.settings.KV, Placement: plan.Placement(a.settings.Placements[e.Name]),
		Experts: plan.Experts(a.settings.Experts), Slots: int64(a.settings.Slots) << 30, RAMCap: int64(a.settings.RAMLimit) << 30}
	d, limits := a.vramLimits(a.device(e.Name))
	for _, n := range limits {
		w.VRAMCaps = append(w.VRAMCaps, int64(n)<<30)
	}
	switch d {
	case "", "auto":
	case "cpu":
		w.NoCard = a.choiceOf(e.Name) == deviceCPU // else there is none, which the plan says
	default:
		w.Cards = []string{d}
	}
	for _, p := range guard.Presets {
		if p.Name == a.settings.Guard {
			w.RAMFloor, w.VRAMReserve = p.RAMFloor, p.VRAMFloor
		}
	}
	return w
}

// add puts files and folders on the list.
func (l *packList) add(paths []string) {
	if l.a.deps.Packs == nil {
		return
	}
	var added []catalog.Entry
	var errs []error
	l.a.background(func() error {
		for _, p := range paths {
			list, err := l.a.deps.Packs.Add(p)
			if err != nil {
				errs = append(errs, err)
			}
			added = append(added, list...)
		}
		return nil
	}, func(error) {
		if err := errors.Join(errs...); err != nil {
			l.a.fail(err)
		}
		if len(added) > 0 {
			name := added[0].Name
			text := tr("Added %s. It is used where it lies.", name)
			if len(added) > 1 {
				text = tr("Added %d packs. They are used where they lie.", len(added))
			}
			l.a.frame.toasts.Push(widget.Toast{State: widget.StateGood, Text: text, Button: tr("Show"), Do: func() {
				l.a.visit("packs")
				l.a.page("packs").(*packsPage).open(name)
			}})
		} else if len(errs) == 0 {
			l.a.frame.toasts.Push(widget.Toast{State: widget.StateWatch, Text: tr("No pack was found at %s.", filepath.Base(paths[0]))})
		}
		l.reload(nil)
	})
}

// remove takes a pack off the list, with ten seconds to think again.
func (l *packList) remove(e catalog.Entry) {
	var undo func() error
	l.a.background(func() (err error) {
		undo, err = l.a.deps.Packs.Remove(e.Name)
		return err
	}, func(err error) {
		if err != nil {
			l.a.fail(err)
			return
		}
		l.reload(nil)
		l.a.frame.toasts.Undo(tr("%s is off the list. Its files were left alone.", e.Name), func() {
			l.a.background(undo, func(err error) {
				l.a.failIf(err)
				l.reload(nil)
			})
		}, nil)
	})
}
