package engine

import (
	"errors"
	"fmt"

	"outcrop/engine/plan"
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// ErrVRAM is wrapped when layers are asked of a card that has no room for them.
var ErrVRAM = errors.New("not enough memory on the card")

// cardNeed is what layers take on a device, in bytes.
type cardNeed struct {
	weights, experts int64 // routed experts apart
	cache            int64 // caches and states of one session
}

// cardNeed sums what layer il takes.
func (m *Model) cardNeed(il int) (n cardNeed) {
	l := &m.layers[il]
	size := func(w *matrix, count int64) int64 {
		if w.none() {
			return 0
		}
		b, err := ops.WeightSize(uint32(w.f.Type), w.rows, w.cols)
		if err != nil { // has no kernels: loading will say so
			return w.bytes()
		}
		return b * count
	}
	why := m.partsOf(il) // what stays with the CPU takes nothing
	if why.mixer == "" {
		for _, w := range []*matrix{&l.q, &l.k, &l.v, &l.o, &l.qkv, &l.z, &l.alpha, &l.beta, &l.ba, &l.deltaOut} {
			n.weights += size(w, 1)
		}
	}
	if why.ffn == "" {
		for _, w := range []*matrix{&l.gate, &l.up, &l.down, &l.router, &l.shGate, &l.shUp, &l.shDown} {
			n.weights += size(w, 1)
		}
		for _, b := range l.banks() {
			if why.experts == "" {
				n.experts += size(&b.matrix, int64(b.count))
			}
		}
	}
	if why.mixer == "" {
		for _, b := range cardMemoryBytes(m, l.layerSpec) {
			n.cache += (b + cardAlign - 1) / cardAlign * cardAlign
		}
	}
	return n
}

// scratchNeed estimates the working memory of a run: what runBuffers take for
// the widest of its layers.
func (m *Model) scratchNeed(experts bool) int64 {
	var wide int64
	for i := range m.layers {
		l := &m.layers[i]
		var n int64
		switch l.mixer {
		case attention:
			a := &l.attn
			n += int64(l.q.rows + a.kvHeads*(a.keyDim+a.valDim) + 2*a.heads*a.valDim)
		case deltaNet:
			d := &l.delta
			n += int64(2*d.channels() + 4*d.valHeads*d.dim)
		}
		e := &l.expert
		n += int64(5 * max(l.ff, e.shared))
		if e.count > 0 && !experts {
			n += int64(e.count + e.used*(4*e.ff+m.spec.dim))
		}
		wide = max(wide, n)
	}
	rows := int64(m.passRows())
	n := 4*rows*(6*int64(m.spec.dim)+wide) + 4*maxWindow*int64(m.spec.vocab)
	return n + n/8 // what begins at round addresses
}

// fit chooses the placement from free memory, and checks one that was asked
// for: all on the devices where they hold it; else a model with experts keeps
// those with the CPU, and what does not fit of another keeps its first layers
// there.
func (m *Model) fit(o *Options) error {
	if m.chunkAsked {
		return m.fitChunk(o)
	}
	if o.Plan != nil && o.Plan.Chunk == defaultChunk { // it has room for no more
		m.chunk = defaultChunk
		return m.fitChunk(o)
	}
	if wideCards(o.Devices) {
		asked := o.Placement
		m.chunk = cardChunk
		err := m.fitChunk(o)
		on := 0
		for _, k := range o.Placement.Layers {
			on += k
		}
		if err == nil && on == len(m.layers) && !o.Placement.CPUExperts {
			return nil
		}
		m.chunk, o.Placement = defaultChunk, asked
	}
	return m.fitChunk(o)
}

// cardChunk is how many tokens of a prompt are run at once on cards with much
// memory and matrix units: an H200 multiplies 2048 columns at 240 TFLOPS where
// 512 get 150, and the working memory of an 8B model grows by 0.7 GB.
const cardChunk = 2048

// CardChunk is how many tokens of a prompt a card is quickest with at once, when
// it holds all layers; 0: as many as usual.
func CardChunk(i compute.Info) int {
	if i.Features.Nvidia < 80 || i.Memory < 20<<30 {
		return 0
	}
	return cardChunk
}

func wideCards(devs []*compute.Device) bool {
	for _, d := range devs {
		if CardChunk(d.Info()) == 0 {
			return false
		}
	}
	return len(devs) > 0
}

// fitChunk is fit for the chunk that m has.
func (m *Model) fitChunk(o *Options) error {
	limitDevices(o)
	p := &o.Placement
	if deviceRefusal(m.spec) != "" {
		return nil // newCards says why nothing runs on a device
	}
	n := len(m.layers)
	needs, routed := make([]cardNeed, n), false
	for i := range needs {
		needs[i] = m.cardNeed(i)
		routed = routed || needs[i].experts > 0
	}
	if p.Layers == nil {
		r := m.split(o, needs, p.CPUExperts)
		if r.Err != "" {
			return fmt.Errorf("split over %d devices: %s", len(o.Devices), r.Err)
		}
		if !r.Fits() && routed && !p.CPUExperts {
			p.CPUExperts = true
			r = m.split(o, needs, true)
		}
		p.Layers = r.Layers
		if r.CPU == n {
			// Not even one: the last layer says by how much.
			p.Layers[len(p.Layers)-1] = 1
		}
	}
	if len(p.Layers) != len(o.Devices) {
		return nil // cut says so
	}
	at := n
	for _, k := range p.Layers {
		at -= k
	}
	for i, k := range p.Layers {
		if at < 0 || k < 0 || at+k > n {
			return nil // cut says so
		}
		if err := m.holds(o.Devices[i], at, at+k, p.CPUExperts); err != nil {
			return err
		}
		at += k
	}
	return nil
}

// limitDevices caps what may be used of each device.
func limitDevices(o *Options) {
	if len(o.VRAMLimit) == 0 {
		return
	}
	for i, d := range o.Devices {
		d.Limit(o.VRAMLimit[min(i, len(o.VRAMLimit)-1)])
	}
}

// split asks the planner for a cut by free memory and rates.
func (m *Model) split(o *Options, needs []cardNeed, cpuExperts bool) plan.SplitResult {
	layers := make([]plan.SplitLayer, len(needs))
	for i, n := range needs {
		l := &m.layers[i]
		layers[i] = plan.SplitLayer{Bytes: n.weights + n.cache, Read: l.activeBytes() + n.cache/2, Work: l.activeBytes()}
		if !cpuExperts {
			layers[i].Bytes += n.experts
		}
	}
	var all int64
	for _, l := range layers {
		all += l.Bytes
	}
	var list []plan.SplitCard
	for i, d := range o.Devices {
		info := d.Info()
		c := plan.SplitCard{PCI: info.PCI, Name: info.Name, Room: -1, Scratch: max(m.scratchNeed(cpuExperts), uploadBytes) + min(arenaSlack, all/8)}
		if free, _, known := cardRoom(d); known {
			c.Room = free
		}
		if i < len(o.Placement.Rates) {
			c.Decode = o.Placement.Rates[i]
		}
		list = append(list, c)
	}
	return plan.Split(layers, list, plan.SplitAsk{Output: m.output.bytes(), Width: m.spec.dim, Chunk: m.chunk, Parts: o.Placement.Split})
}

// arenaSlack is the most that is left over at the end of arenas.
const arenaSlack = 96 << 20

// uploadBytes is what loading takes beside the weights.
const uploadBytes = 8 << 20

// cardRoom is what may be used of a device: all that is free, but for a part
// that is left to the desktop where no limit was set.
func cardRoom(d *compute.Device) (free, total int64, known bool) {
	free, total, known = d.Memory()
	if !known {
		total = d.Info().Memory
		free, known = total, total > 0
	}
	if d.Limited() == 0 {
		free = max(free-max(total/16, 256<<20), 0)
	}
	return free, total, known
}

// holds refuses layers lo to hi of a device that cannot have room for them.
func (m *Model) holds(d *compute.Device, lo, hi int, cpuExperts bool) error {
	free, _, known := d.Memory()
	if !known || lo == hi {
		return nil // the device will say
	}
	n, scratch := m.needOf(lo, hi, cpuExperts), m.scratchNeed(cpuExperts)
	if n.weights+max(uploadBytes, n.cache+scratch) <= free {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrVRAM, m.needWords(d, lo, hi, cpuExperts))
}

// needOf sums what layers lo to hi take, the output matrix with the last one.
func (m *Model) needOf(lo, hi int, cpuExperts bool) (n cardNeed) {
	for il := lo; il < hi; il++ {
		k := m.cardNeed(il)
		n.weights, n.cache = n.weights+k.weights, n.cache+k.cache
		if !cpuExperts {
			n.weights += k.experts
		}
	}
	if hi == len(m.layers) {
		n.weights += m.output.bytes()
	}
	return n
}

// needWords says what layers lo to hi need of a device and what it has.
func (m *Model) needWords(d *compute.Device, lo, hi int, cpuExperts bool) string {
	n, scratch := m.needOf(lo, hi, cpuExperts), m.scratchNeed(cpuExperts)
	free, total, known := d.Memory()
	has := "free memory is not known"
	switch {
	case d.Limited() > 0:
		has = fmt.Sprintf("%s free of the %s that it may use", inGB(free), inGB(total))
	case known:
		has = fmt.Sprintf("%s free of its %s", inGB(free), inGB(total))
	}
	return fmt.Sprintf("layers %d to %d need %s on %s (weights %s, caches for %d tokens %s, work space about %s); %s; give it fewer layers, add a card, or ask for a smaller context",
		lo, hi-1, inGB(n.weights+n.cache+scratch), d.Info(), inGB(n.weights), m.context, inGB(n.cache), inGB(scratch), has)
}

// loadFailed says of a device that has no memory left what was wanted of it.
func (r *run) loadFailed(err error, cpuExperts bool) error {
	if !errors.Is(err, compute.ErrMemory) {
		return r.wrap(err)
	}
	r.free() // so that what is free is what the layers would have had
	return fmt.Errorf("%w: %s: %w", ErrVRAM, r.c.m.needWords(r.dev, r.lo, r.hi, cpuExperts), r.wrap(err))
}

func inGB(n int64) string {
	if n < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
}
