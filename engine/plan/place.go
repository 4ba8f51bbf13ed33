package plan

import (
	"fmt"
	"math"
	"slices"
)

// attempt tries one placement. The result has Fits false and Short filled when
// it does not work; its sizes are still those it would have. Cards that hold all
// layers take longer steps of prompts, where they have room for their working
// memory.
func attempt(p Pack, m Machine, w Wishes, place Placement) Plan {
	if n := w.wideChunk(m); place == AllVRAM && n > w.Chunk {
		wide := w
		wide.Chunk = n
		if pl := try(p, m, wide, place); pl.Fits {
			return pl
		}
	}
	return try(p, m, w, place)
}

// wideChunk is the step of prompts that all cards in use are quickest with, 0
// where one has none or a step was asked for.
func (w Wishes) wideChunk(m Machine) int {
	if !w.chunkOpen {
		return 0
	}
	least := math.MaxInt
	for _, c := range m.Cards {
		if c.Backend != "" && (w.Cards == nil && !c.Integrated || slices.Contains(w.Cards, c.PCI)) {
			least = min(least, c.Chunk)
		}
	}
	if least == math.MaxInt {
		return 0
	}
	return least
}

func try(p Pack, m Machine, w Wishes, place Placement) Plan {
	pl := Plan{Pack: p.Name, Placement: place, Words: place.Words(), Context: w.Context, KV: w.KV, Chunk: w.Chunk, Draft: p.Draft && !w.NoDraft}
	b := &builder{p: p, m: m, w: w, pl: &pl, layers: p.Layers}
	if !pl.Draft {
		b.layers = slices.DeleteFunc(slices.Clone(p.Layers), func(l Layer) bool { return l.Draft })
	}
	pl.Layers = make([]Place, len(b.layers))
	if place == AllRAM || place == AllFile {
		b.onCPU()
	} else {
		b.onCards()
	}
	b.ram()
	pl.Fits = len(pl.Short) == 0
	b.speed()
	return pl
}

// builder carries one attempt.
type builder struct {
	p      Pack
	m      Machine
	w      Wishes
	pl     *Plan
	layers []Layer
	cards  []Card // those in use
	links  []Crossing
	room   []int64 // bytes left on each for weights, after reserve and others
	host   int64   // anonymous and pinned bytes of the engine
	mapped int64   // bytes used through file pages
	copies int64   // expert bytes held as copies in RAM
	hot    int64   // expert bytes of the file held as copies as long as RAM allows
}

func (b *builder) short(where string, n int64, why string) {
	b.pl.Short = append(b.pl.Short, Short{where, n, why})
}

func (b *builder) onCPU() {
	for i, l := range b.layers {
		pl := Place{Card: -1}
		if b.pl.Placement == AllRAM {
			pl.RAM = l.Experts
		} else {
			pl.File = l.Experts
		}
		b.pl.Layers[i] = pl
		b.host += l.kv(b.w.Context, b.w.KV) + l.State
		b.mapped += l.Dense + l.experts()
	}
	b.host += b.p.scratch(b.w.Chunk)
	b.mapped += b.p.Output + b.p.Embed
}

// pick chooses the cards, and how much room each has.
func (b *builder) pick() bool {
	why := "no card is present"
	cards := b.m.Cards
	if b.w.Cards != nil { // in their order, which is that of the layers
		cards = nil
		for _, pci := range b.w.Cards {
			if i := findCard(b.m.Cards, pci); i >= 0 {
				cards = append(cards, b.m.Cards[i])
			}
		}
	}
	for _, c := range cards {
		if c.Backend == "" {
			why = fmt.Sprintf("%s cannot be used: %s", c.Name, c.Unusable)
			continue
		}
		if c.Integrated && b.w.Cards == nil {
			why = fmt.Sprintf("%s shares the RAM it would relieve", c.Name)
			continue
		}
		total, free, note := c.memory()
		if total <= 0 {
			why = fmt.Sprintf("the VRAM of %s is unknown (%s)", c.Name, c.Total.Why)
			continue
		}
		if note != "" {
			b.pl.Reasons = append(b.pl.Reasons, note)
		}
		reserve, reason := c.reserve(b.w)
		source := c.Total.Source
		if t, room, keep, why, ok := c.capped(b.w.cap(len(b.cards)), free, reserve); ok {
			total, free, reserve, reason, source = t, room, keep, why, "the limit that was asked for"
		}
		b.pl.Reasons = append(b.pl.Reasons, reason)
		b.cards = append(b.cards, c)
		b.room = append(b.room, max(0, free-reserve))
		u := CardUse{PCI: c.PCI, Name: c.Name, Reserve: reserve, Free: c.Free}
		u.Use.Total = Known(total, source)
		u.Use.add("others", total-free, "in use by other programs now, or not known to be free")
		u.Use.add("reserve", min(reserve, free), reason)
		b.pl.Cards = append(b.pl.Cards, u)
	}
	switch {
	case b.w.NoCard:
		why = "no card is wanted"
	case !b.p.CanDevice && !b.p.CanExperts:
		why = "this family has no card kernels yet"
	case len(b.cards) > 0:
		return true
	}
	b.pl.Cards = nil
	b.short("VRAM", 0, why)
	return false
}

func (u *Use) add(kind string, n int64, why string) {
	if n > 0 {
		u.Segments = append(u.Segments, Segment{kind, n, why})
	}
}

// onCards fills the cards in the order that works: dense weights, state, KV,
// working memory; what is left becomes expert slots (strata.md 5.1).
func (b *builder) onCards() {
	if !b.pick() {
		b.onCPU() // sizes for the picture
		return
	}
	all := b.pl.Placement == AllVRAM
	scratch := b.cardScratch(all)
	for i := range b.cards {
		if b.room[i] < scratch {
			b.short("VRAM of "+b.cards[i].PCI, scratch-b.room[i], "working memory for a chunk of the prompt")
		}
		b.room[i] -= scratch
		b.pl.Cards[i].Use.add("scratch", scratch, fmt.Sprintf("working memory for %d prompt tokens at a time", b.w.Chunk))
	}
	owner, missing := b.split(all)
	partial := missing > 0 && !all && b.dense()
	if missing > 0 && !partial {
		b.short("VRAM", missing, b.needWords(all))
	}
	b.fill(owner, all, partial)
	if len(b.cards) > 1 {
		b.crossing()
	}
	b.host += scratch/2 + 64<<20 // staging and the CPU's own buffers
	b.mapped += b.p.Embed
}

// cardScratch is the working memory on a card.
func (b *builder) cardScratch(all bool) int64 {
	f, rows := b.p.Card, int64(max(min(b.w.Chunk, b.w.Context), 8))
	switch {
	case f.Row == 0:
		return b.p.scratch(b.w.Chunk)
	case all || b.dense():
		return f.Fixed + rows*f.Row
	case b.pl.Placement == VRAMPinned:
		return f.Fixed + f.FixedLink + rows*(f.RowElsewhere+f.RowSlots)
	case b.w.Slots < 0:
		return f.Fixed + rows*f.RowElsewhere
	}
	return f.Fixed + rows*(f.RowElsewhere+f.RowSlots)
}

// split gives each layer to a card, in order (Split). Layers that fit nowhere
// are the first ones and get -1; missing is how many bytes they need.
func (b *builder) split(all bool) (owner []int, missing int64) {
	var layers []SplitLayer
	owner = make([]int, len(b.layers))
	for i, l := range b.layers {
		if owner[i] = -1; b.elsewhere(l) {
			continue
		}
		x := SplitLayer{Bytes: l.cardDense() + l.cardState() + l.cardKV(b.w.Context, b.w.KV)}
		x.Work = l.Dense
		if all {
			x.Bytes += int64(l.Experts) * l.cardExpert()
			x.Work += int64(l.Used) * l.Expert
		}
		x.Read = x.Work + l.kv(b.w.Context, b.w.KV)/2
		layers = append(layers, x)
	}
	var cards []SplitCard
	for i, c := range b.cards {
		cards = append(cards, SplitCard{PCI: c.PCI, Name: c.Name, Room: max(b.room[i], 0), Decode: c.Device.PerSecond, Prefill: c.Prefill.PerSecond, HandOff: c.HandOff, Link: c.HostToDevice.PerSecond})
	}
	ask := SplitAsk{Output: b.p.Output, Width: b.p.Width, Chunk: b.w.Chunk, Parts: b.w.Split}
	r := Split(layers, cards, ask)
	if r.Err != "" {
		b.short("VRAM", 0, "a split that cannot be: "+r.Err)
		ask.Parts = nil
		r = Split(layers, cards, ask)
	}
	if b.w.Split == nil && len(cards) > 1 && !all && !b.dense() && r.CPU == 0 {
		// Slots serve the layers of their own card: by room, every layer gets as many.
		for _, n := range b.room {
			ask.Parts = append(ask.Parts, float64(max(n, 0)))
		}
		if even := Split(layers, cards, ask); even.Fits() {
			r = even
		}
	}
	for _, l := range layers[:r.CPU] {
		missing += l.Bytes
	}
	if r.CPU == len(layers) { // not even the last one
		missing += b.p.Output
	}
	b.links = r.Crossing
	at := r.CPU
	for c, n := range r.Layers {
		for range n {
			owner[at] = c
			at++
		}
	}
	return owner, missing
}

// elsewhere tells whether a layer is the CPU's whatever room there is.
func (b *builder) elsewhere(l Layer) bool { return l.Draft && b.p.Card.DraftElsewhere }

// dense reports whether there are no experts to keep apart, so that a card may
// take some layers and the CPU the rest.
func (b *builder) dense() bool {
	for _, l := range b.layers {
		if l.Experts > 0 {
			return false
		}
	}
	return true
}

func (b *builder) needWords(all bool) string {
	if all {
		return "all weights, KV and state"
	}
	return "dense weights, KV and state, which the card needs for every token"
}

// fill writes the bars and, with what is left on each card, the slots.
func (b *builder) fill(owner []int, all, partial bool) {
	weights, state, kv := make([]int64, len(b.cards)), make([]int64, len(b.cards)), make([]int64, len(b.cards))
	var here = make([][]int, len(b.cards))
	for i, l := range b.layers {
		c := owner[i]
		if c < 0 && (partial || b.elsewhere(l)) {
			b.pl.Layers[i] = Place{Card: -1}
			b.host += l.kv(b.w.Context, b.w.KV) + l.State
			b.mapped += l.Dense
			b.outside(i, all)
			continue
		}
		c = max(c, 0) // does not fit: shown on the first card, with the carets
		weights[c] += l.cardDense()
		state[c] += l.cardState()
		kv[c] += l.cardKV(b.w.Context, b.w.KV)
		b.pl.Layers[i] = Place{Card: c}
		if l.Experts > 0 {
			here[c] = append(here[c], i)
		}
	}
	// The output matrix lives with the last layer.
	last := -1
	for i, l := range b.layers {
		if !b.elsewhere(l) {
			last = owner[i]
		}
	}
	if last >= 0 || !partial {
		weights[max(last, 0)] += b.p.Output
	} else {
		b.mapped += b.p.Output
	}
	for c := range b.cards {
		u := &b.pl.Cards[c]
		if !slices.ContainsFunc(b.pl.Layers, func(p Place) bool { return p.Card == c }) {
			b.idle(c)
		}
		u.Use.add("weights", weights[c], "weights that every token needs")
		u.Use.add("state", state[c], "recurrent state")
		u.Use.add("kv", kv[c], fmt.Sprintf("%s cache for %d tokens", b.w.KV, b.w.Context))
		left := b.room[c] - weights[c] - state[c] - kv[c]
		if left < 0 && !partial && len(b.pl.Short) == 0 {
			b.short("VRAM of "+u.PCI, -left, b.needWords(all))
		}
		slots := b.slots(here[c], max(left, 0), all)
		u.Slots = slots.n
		u.Use.add("slots", slots.bytes, fmt.Sprintf("%d experts", slots.n))
		u.Use.add("free", max(left-slots.bytes, 0), "left over")
	}
}

// idle takes back the working memory of a card that got no layer.
func (b *builder) idle(c int) {
	u := &b.pl.Cards[c].Use
	u.Segments = slices.DeleteFunc(u.Segments, func(s Segment) bool {
		if s.Kind == "scratch" {
			b.room[c] += s.Bytes
		}
		return s.Kind == "scratch"
	})
}

type slotCount struct {
	n     int
	bytes int64
}

// slots shares room among the layers of one card, evenly, and gives the rest
// of each layer's experts their place outside.
func (b *builder) slots(layers []int, room int64, all bool) (out slotCount) {
	for _, i := range layers {
		if l := b.layers[i]; all {
			b.pl.Layers[i].Slots = l.Experts
			out.n += l.Experts
			out.bytes += int64(l.Experts) * l.cardExpert()
		}
	}
	switch {
	case b.w.Slots < 0:
		room = 0
	case b.w.Slots > 0:
		room = min(room, b.w.Slots)
	}
	for !all {
		grew := false
		for _, i := range layers {
			l := b.layers[i]
			// Draft blocks first would starve the trunk: all layers get
			// the same number, one at a time.
			if b.pl.Layers[i].Slots < l.Experts && !l.OnCard.NoSlots && out.bytes+l.cardExpert() <= room {
				b.pl.Layers[i].Slots++
				out.n++
				out.bytes += l.cardExpert()
				grew = true
			}
		}
		if !grew {
			break
		}
	}
	for _, i := range layers {
		b.outside(i, all)
	}
	return out
}

// outside gives the experts of a layer that have no slot their place.
func (b *builder) outside(i int, all bool) {
	l, pl := b.layers[i], &b.pl.Layers[i]
	rest := l.Experts - pl.Slots
	switch b.pl.Placement {
	case VRAMPinned, VRAMRAM:
		// RAM backs every expert, those in slots too: one that leaves
		// VRAM is then usable at once, with nothing to copy back.
		pl.RAM = rest
		if rest > 0 {
			b.copies += l.experts()
		}
	default:
		pl.File = rest
		b.mapped += int64(rest) * l.Expert
	}
}

// crossing names the activations that go from card to card.
func (b *builder) crossing() {
	b.pl.Links = b.links
	for _, x := range b.links {
		b.pl.Crossing = append(b.pl.Crossing, x.String())
	}
}
