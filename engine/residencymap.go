package engine

import (
	"math"
	"sync/atomic"
)

// ResidencyMap says where every routed expert is, and how much of its layer's
// choices it got lately; layer by layer, Experts to a layer. Layers without
// experts are left out.
type ResidencyMap struct {
	Layers, Experts int
	Tier            []Tier
	Use             []float64 // share of the layer's choices, 0 to 1
}

// residencyMaps hands maps from the goroutine that moves experts to those that
// ask. A map is made only when somebody wants one.
type residencyMaps struct {
	last   atomic.Pointer[ResidencyMap]
	wanted atomic.Bool
}

// Residency is where the experts are now, or were after the last pass when one
// is running. Nil for a model without experts. Any goroutine may ask.
func (m *Model) Residency() *ResidencyMap {
	if m.turn.TryLock() {
		m.mapResidency()
		m.turn.Unlock()
	} else {
		m.maps.wanted.Store(true)
	}
	return m.maps.last.Load()
}

// mapResidency makes a map. The turn must be held.
func (m *Model) mapResidency() {
	m.maps.wanted.Store(false)
	r := &ResidencyMap{}
	for i := range m.layers {
		if n := m.layers[i].expert.count; n > 0 {
			r.Layers++
			r.Experts = max(r.Experts, n)
		}
	}
	if r.Layers == 0 {
		return
	}
	r.Tier, r.Use = make([]Tier, 0, r.Layers*r.Experts), make([]float64, 0, r.Layers*r.Experts)
	s, _ := m.experts.(*shelves)
	for i := range m.layers {
		l := &m.layers[i]
		if l.expert.count == 0 {
			continue
		}
		var sum float64
		counts := m.heat.layers[l.index]
		for e := range counts {
			sum += float64(math.Float32frombits(counts[e].Load()))
		}
		for e := range r.Experts {
			if e >= l.expert.count { // a layer with fewer experts than others
				r.Tier, r.Use = append(r.Tier, TierFile), append(r.Use, 0)
				continue
			}
			r.Tier = append(r.Tier, m.tierOf(s, l, int32(e)))
			use := 0.0
			if sum > 0 {
				use = float64(math.Float32frombits(counts[e].Load())) / sum
			}
			r.Use = append(r.Use, use)
		}
	}
	m.maps.last.Store(r)
}

// tierOf is where the declared place of an expert is. Without copies of our
// own that is the file's pages: RAM where all of them fit there.
func (m *Model) tierOf(s *shelves, l *layer, e int32) Tier {
	switch {
	case s != nil && s.layers[l.index] != nil:
		return s.layers[l.index].tier(e)
	case m.onCard(l):
		return TierSlot
	case m.options.FileTier:
		return TierFile
	}
	return TierRAM
}

// onCard reports whether a layer's experts all lie on a graphics device.
func (m *Model) onCard(l *layer) bool {
	return m.cards.has(l.index) && !m.cards.experts && m.cards.parts[l.index].experts == "" && m.cards.parts[l.index].ffn == ""
}
