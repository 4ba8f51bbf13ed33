package engine

import (
	"context"
	"errors"
	"fmt"

	"outcrop/gpu/compute"
)

// place opens the devices that are asked for and puts layers, copies of experts
// and slots where they belong.
func (m *Model) place(ctx context.Context, o *Options) (err error) {
	switch m.missesBy = o.Misses; o.Misses {
	case "":
		m.missesBy = missesAuto
	case missesAuto, missesCPU, missesLink:
	default:
		return fmt.Errorf("misses by %q asked, want %s, %s or %s", o.Misses, missesAuto, missesCPU, missesLink)
	}
	if len(o.Devices) == 0 {
		m.own, err = openDevices(o)
		if err != nil && o.Device == "auto" {
			m.noCard, err = err.Error(), nil
		}
		if err != nil {
			return err
		}
		o.Devices = m.own
	}
	if len(o.Devices) > 0 {
		if err = m.fit(o); err == nil {
			m.cards, err = newCards(m, o)
		}
		if err != nil {
			m.closeDevices()
			if o.Device != "auto" {
				return err
			}
			m.noCard, m.cards = err.Error(), nil // nobody asked for this card: the CPU does
		}
	}
	if err := m.shelve(ctx); err != nil {
		m.unplace()
		return err
	}
	if err := m.openSlots(o); err != nil {
		m.unplace()
		return err
	}
	return nil
}

// unplace gives back what place took, when a load fails.
func (m *Model) unplace() {
	m.endShelves()
	if m.cards != nil {
		m.cards.close()
	}
	m.closeDevices()
}

// openSlots gives cards that leave routed experts to the CPU slots for the hot
// ones, and a way to fetch others.
func (m *Model) openSlots(o *Options) (err error) {
	c := m.cards
	if c == nil || !c.experts {
		return nil
	}
	s, ok := m.experts.(*shelves)
	if !ok {
		if o.SlotBytes > 0 {
			return errors.New("slots for experts go with experts held in RAM; ask for ExpertRAM too")
		}
		return nil
	}
	link := o.Pinned && m.missesBy != missesCPU
	if o.SlotBytes <= 0 && !link {
		return nil
	}
	n := 0
	if o.SlotBytes > 0 {
		if n, err = c.evenSlots(o.SlotBytes); err != nil {
			return err
		}
	}
	if c.slots, err = c.newCardSlots(func(int) int { return n }, link); err == nil {
		err = s.useSlots(c.slots)
	}
	if err != nil {
		s.slots = nil
	}
	return err
}

// pinsTo is the device that fetches copies of a layer's experts by itself, nil
// for none.
func (m *Model) pinsTo(layer int) *compute.Device {
	if m.cards == nil || !m.options.Pinned || !m.cards.experts {
		return nil
	}
	for _, r := range m.cards.runs {
		if layer >= r.lo && layer < r.hi {
			return r.dev
		}
	}
	return nil
}
