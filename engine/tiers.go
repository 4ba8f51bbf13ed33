package engine

import (
	"sync/atomic"
	"time"
)

// tierCounts are written by the pass and read by any goroutine.
type tierCounts struct {
	reads    [3]atomic.Int64 // by tier: experts that a layer of a pass used from there
	missed   atomic.Int64    // bytes read from the file because a pass wanted them
	waited   atomic.Int64    // nanoseconds a pass waited for reads
	arrived  atomic.Int64    // experts that came to RAM
	promoted atomic.Int64    // experts that came to slots
	evicted  atomic.Int64    // experts that left RAM or a slot for another one
	given    atomic.Int64    // bytes of copies given back because RAM was short
	held     atomic.Int64    // bytes of copies now
	guessed  atomic.Int64    // experts read because the layer before foretold them
	right    atomic.Int64    // of which were used there

	linked    atomic.Int64 // experts that came over the link to be computed
	linkBytes atomic.Int64 // their bytes
	linkTime  atomic.Int64 // nanoseconds in which a card was at them
	cardWait  atomic.Int64 // nanoseconds the CPU had nothing to do but wait for the card's experts
}

// TierSample says from where experts were used since load. Counts are expert
// reads: one for each expert of a layer that a pass used, however many of its
// tokens chose it.
type TierSample struct {
	Slot, RAM, File int64         // reads by tier
	Held            int64         // bytes of copies in RAM now
	Limit           int64         // bytes the copies may take now
	Missed          int64         // bytes read from the file because they were wanted
	Read            int64         // bytes read from the file in all
	ReadTime        time.Duration // time in which the disk was reading
	Waited          time.Duration // time in which passes waited for the file
	Arrived         int64         // experts that came to RAM
	Promoted        int64         // experts that came to slots
	Evicted         int64         // experts that made room for others
	Given           int64         // bytes given back because RAM was short
	Guessed, Right  int64         // experts read before their layer had chosen, and how many it then chose
	Direct          bool          // reads pass the page cache by

	Linked    int64         // of RAM: experts that a card computed, whose weights came over the link
	LinkBytes int64         // their bytes
	LinkTime  time.Duration // time in which a card brought and computed them
	CardWait  time.Duration // time in which passes waited for experts that a card computed
}

func (m *Model) tierSample() TierSample {
	c := &m.tiers
	s := TierSample{
		Slot: c.reads[TierSlot].Load(), RAM: c.reads[TierRAM].Load(), File: c.reads[TierFile].Load(),
		Held: c.held.Load(), Missed: c.missed.Load(), Waited: time.Duration(c.waited.Load()),
		Arrived: c.arrived.Load(), Promoted: c.promoted.Load(), Evicted: c.evicted.Load(), Given: c.given.Load(),
		Guessed: c.guessed.Load(), Right: c.right.Load(),
		Linked: c.linked.Load(), LinkBytes: c.linkBytes.Load(), LinkTime: time.Duration(c.linkTime.Load()), CardWait: time.Duration(c.cardWait.Load()),
	}
	if k, ok := m.experts.(*shelves); ok {
		s.Limit = k.budget.Load()
		s.Read, s.ReadTime, s.Direct = k.reader.bytes.Load(), time.Duration(k.reader.nanos.Load()), k.reader.direct
	}
	return s
}
