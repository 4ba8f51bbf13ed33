package plan

import (
	"fmt"
	"math"
)

// memory is the card's total and what may be counted on as free. When nobody
// says what is free, five sixths of the total are assumed and said so: a bare
// zero here once left a 16 GB card with no expert slots at all (issue #1545).
func (c Card) memory() (total, free int64, note string) {
	if !c.Total.Known {
		return 0, 0, ""
	}
	total, free = c.Total.N, c.Free.N
	if !c.Free.Known {
		free = total - total/6
		note = fmt.Sprintf("free VRAM of %s is unknown (asked %s: %s); planning with five sixths of the total", c.Name, orNobody(c.Free.Source), orNobody(c.Free.Why))
	}
	return total, min(max(free, 0), total), note
}

// capped applies a limit to what a card has free beside its reserve: as on a card
// of that size with nothing else on it. A part stays free, as allocations come
// in pieces.
func (c Card) capped(limit, free, reserve int64) (total, room, keep int64, why string, ok bool) {
	if limit <= 0 || limit >= free-reserve {
		return 0, 0, 0, "", false
	}
	keep = min(max(limit/32, 128<<20), limit/4)
	return limit, limit, keep, fmt.Sprintf("%s of %s may be used, as asked; %s of it stay free, as memory is taken in pieces", size(limit), c.Name, size(keep)), true
}

func orNobody(s string) string {
	if s == "" {
		return "nobody"
	}
	return s
}

// reserves is how much VRAM stays free, by kernel driver and context. Sources:
// strata.md 3.2 (--vram-reserve-mib) and 5.1: on xe an over-committed card does
// not fail but pushes buffers into RAM until the kernel kills.
var reserves = []struct {
	driver  string // "" for any
	small   bool   // cards below 12 GiB
	context int    // at least this much
	mib     int64
	why     string
}{
	{"xe", false, 32769, 2048, "xe moves over-committed VRAM into RAM without an error, and long contexts grow"},
	{"xe", true, 0, 1024, "xe moves over-committed VRAM into RAM without an error"},
	{"xe", false, 0, 1536, "xe moves over-committed VRAM into RAM without an error"},
	{"i915", true, 0, 300, "a small card has no more to give"},
	{"i915", false, 0, 1024, "i915 evicts other programs' memory when the card is full"},
	{"amdgpu", false, 0, 1024, "amdgpu spills into RAM over the link when the card is full"},
	{"", true, 0, 500, "room for the driver and small peaks"},
	{"", false, 0, 700, "room for the driver and small peaks"},
}

// reserve is the VRAM to leave free on a card, and why.
func (c Card) reserve(w Wishes) (int64, string) {
	if w.VRAMReserve > 0 {
		return w.VRAMReserve, fmt.Sprintf("%s of VRAM stay free on %s, as asked", size(w.VRAMReserve), c.Name)
	}
	small := c.Total.Known && c.Total.N < 12<<30
	for _, r := range reserves {
		if (r.driver == "" || r.driver == c.Driver) && (!r.small || small) && w.Context >= r.context {
			n, why := r.mib<<20, r.why
			if c.Display {
				n += 512 << 20
				why += "; it also drives a screen"
			}
			return n, fmt.Sprintf("%s of VRAM stay free on %s: %s", size(n), c.Name, why)
		}
	}
	return 700 << 20, ""
}

// floor is the RAM to leave free.
func floor(m Machine, w Wishes) int64 {
	n := w.RAMFloor
	if n == 0 {
		n = 4 << 30
	}
	if m.RAMTotal.Known && n > m.RAMTotal.N/4 {
		n = m.RAMTotal.N / 4
	}
	return n
}

// heldShare is the most of RAM that copies and pinned memory together with
// everybody else's may take: 23.42 GiB pinned on a 29 GB machine left 3 GB
// that could be reclaimed, and the kernel killed the engine (issue #1545).
const heldShare = 0.75

// pinnedChunk bounds one pinned host allocation: 2 GiB worked and 4 GiB
// returned null on an A770 (issue #1545).
const pinnedChunk = 2 << 30

// ram does the host side: what is held, what is only mapped, and whether the
// machine stays usable.
func (b *builder) ram() {
	m, pl := b.m, b.pl
	fl := floor(m, b.w)
	held := b.host + b.copies
	pl.RAM.Total = m.RAMTotal
	pl.File.add("experts", b.fileExperts(), "experts that are read from the file when a token needs them")
	pl.File.Total = Amount{Why: "the file's own size"}
	if !m.RAMTotal.Known || !m.RAMAvailable.Known {
		pl.Reasons = append(pl.Reasons, "RAM is unknown: nothing is copied, weights are used through the file's pages")
		if b.copies > 0 || pl.Placement == AllRAM {
			b.short("RAM", 0, "the amount of RAM is unknown")
		}
		return
	}
	others := max(0, m.RAMTotal.N-m.RAMAvailable.N)
	usable := m.RAMAvailable.N - fl
	if b.copies > 0 {
		usable = min(usable, int64(heldShare*float64(m.RAMTotal.N))-others)
	}
	if held > usable {
		b.short("RAM", held-usable, fmt.Sprintf("%s held in RAM, with %s in use by others and %s to stay free", size(held), size(others), size(fl)))
	}
	if pl.Placement == AllRAM && held+b.mapped > m.RAMAvailable.N-fl && held <= usable {
		b.short("RAM", held+b.mapped-(m.RAMAvailable.N-fl), fmt.Sprintf("%s of weights and %s of working memory, with %s to stay free", size(b.mapped), size(held), size(fl)))
	}
	pl.RAM.add("others", others, "other programs")
	if b.copies > 0 {
		pl.RAM.add("experts", b.copies, "all experts, so that one that leaves VRAM is usable at once")
	}
	var kv, state int64
	for i, l := range b.layers {
		if pl.Layers[i].Card < 0 {
			kv += l.kv(b.w.Context, b.w.KV)
			state += l.State
		}
	}
	pl.RAM.add("kv", kv, fmt.Sprintf("%s cache for %d tokens", b.w.KV, b.w.Context))
	pl.RAM.add("state", state, "recurrent state")
	pl.RAM.add("scratch", b.host-kv-state, "working memory")
	b.hot = b.hotCopies(fl)
	pl.ExpertRAM = b.copies + b.hot
	held += b.hot
	pl.RAM.add("experts", b.hot, "copies of the experts used most, given back when RAM is short")
	cache := min(b.mapped-b.hot, max(0, m.RAMAvailable.N-held-fl))
	pl.RAM.add("cache", cache, "the model's pages that fit beside everything else; the kernel takes them back when needed")
	pl.RAM.add("floor", min(fl, max(0, m.RAMAvailable.N-held)), "stays free for the desktop")
	pl.RAM.add("free", max(0, m.RAMAvailable.N-held-cache-fl), "left over")
	if pl.Placement == VRAMPinned {
		b.chunks()
	}
}

// hotCopies is how many bytes of experts of the file are worth holding as
// copies: what stays free beside the weights that every token needs, and beside
// buffers for two layers of misses. In a model of twice its memory copies and
// direct reads decoded eight times as fast as page faults and three times as
// fast as read-ahead (engine/BENCH.md). The guard gives them back at once, so
// heldShare does not bind them.
func (b *builder) hotCopies(floor int64) int64 {
	if b.pl.Placement != AllFile && b.pl.Placement != VRAMFile {
		return 0
	}
	var largest, used int64
	for _, l := range b.layers {
		largest, used = max(largest, l.Expert), max(used, int64(l.Used))
	}
	experts := b.fileExperts()
	room := b.m.RAMAvailable.N - floor - b.host - (b.mapped - experts) - 2*used*largest
	return max(0, min(room, experts))
}

// chunks cuts the pinned copies into allocations that every driver grants.
func (b *builder) chunks() {
	limit := int64(pinnedChunk)
	for _, c := range b.cards {
		if c.MaxPinned > 0 {
			limit = min(limit, c.MaxPinned)
		}
	}
	for n := b.copies; n > 0; n -= limit {
		b.pl.PinnedChunks = append(b.pl.PinnedChunks, min(n, limit))
	}
}

func (b *builder) fileExperts() (n int64) {
	for i, l := range b.layers {
		n += int64(b.pl.Layers[i].File) * l.Expert
	}
	return n
}

// missing is the share of the bytes wanted of experts in the file, and of
// weights that every token needs, that must come from the disk. exp bends the
// share of hits (see skew).
func (b *builder) missing(exp float64) (experts, dense float64) {
	if b.hot > 0 { // then there is room for the other weights
		if share, known := b.hotShare(); known {
			return 1 - share, 0
		}
		return 1 - math.Pow(float64(b.hot)/float64(b.fileExperts()), exp), 0
	}
	m := 1 - math.Pow(b.cached(), exp)
	return m, m
}

// hotShare is the share of expert reads from the file that find a copy, when
// profiles of all layers say who is used how often. Slots of a card hold the
// hottest, copies the next.
func (b *builder) hotShare() (share float64, known bool) {
	part := float64(b.hot) / float64(b.fileExperts())
	var hit, all float64
	for i, l := range b.layers {
		pl := b.pl.Layers[i]
		if pl.File == 0 {
			continue
		}
		if len(l.HotShare) < l.Experts {
			return 0, false
		}
		n := int(part * float64(pl.File))
		for e, v := range l.HotShare[pl.Slots:] {
			all += v
			if e < n {
				hit += v
			}
		}
	}
	if all == 0 {
		return 1, true
	}
	return hit / all, true
}

// cached is the share of the mapped bytes that RAM can hold.
func (b *builder) cached() float64 {
	if b.mapped == 0 {
		return 1
	}
	if !b.m.RAMAvailable.Known {
		return 0
	}
	room := b.m.RAMAvailable.N - b.host - b.copies - floor(b.m, b.w)
	return min(1, max(0, float64(room)/float64(b.mapped)))
}

func size(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}
