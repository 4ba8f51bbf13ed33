package engine

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// cardSlots keeps hot experts in device memory and computes on them while the
// CPU pool does others (slotStore). Results go to the rows of p.mix.out, so
// that a token's experts are joined by the CPU in the order of their rank,
// wherever each was computed.
type cardSlots struct {
	c      *cards
	layers []slotLayer // by layer; those of the CPU are empty
	runs   map[*run]*slotRun
	fill   filler

	p       *pass // of the rows under way
	rows    []int32
	ends    []int // of the batches in rows
	running *slotRun
	done    chan error
}

// slotLayer are the slots of a layer: matrices numbered by slot.
type slotLayer struct {
	r            *run
	most, n      int // slots wanted at load, and there now
	gateUp, down slotBank
}

// slotBank is one matrix of each slot of a layer.
type slotBank struct {
	typ        uint32
	rows, cols int
	size       int64 // of one
	buf        *compute.Buffer
	products   // nil without slots
}

// products multiply with the matrices of a bank: rows one by one, or many.
type products struct {
	mul  *ops.Mul
	many *ops.MatMul // nil where prompts are short
}

func (r *run) products(w *ops.Weight) (p products, err error) {
	if p.mul, err = r.set.Mul(w, 1); err == nil && r.c.m.chunk > ops.MaxColumns {
		p.many, err = r.set.MatMul(w)
	}
	return p, err
}

// slotRun are the buffers of a device.
type slotRun struct {
	r       *run
	arena   *compute.Arena
	up      *ops.Upload
	most    int // rows
	idx     *compute.Buffer
	ids     *compute.Buffer
	ones    *compute.Buffer
	x, y    *compute.Buffer
	two     *compute.Buffer // gate and up of prompts; nil: none are long
	start   *compute.Buffer // rows of a prompt, sorted by matrix
	order   *compute.Buffer
	acts    *ops.Acts
	hid     map[int]*ops.Acts
	in, out *compute.Host
	stage   *linkStage // nil: nothing comes over the link
}

// newCardSlots takes room for so many experts of each layer, at most; with
// link, experts in pinned memory can be computed without a slot.
func (c *cards) newCardSlots(count func(layer int) int, link bool) (*cardSlots, error) {
	s := &cardSlots{c: c, layers: make([]slotLayer, len(c.m.layers)), runs: map[*run]*slotRun{}, done: make(chan error, 1)}
	for _, r := range c.runs {
		sr := &slotRun{r: r, hid: map[int]*ops.Acts{}}
		s.runs[r] = sr
		if err := s.open(sr, count, link); err != nil {
			s.free()
			return nil, fmt.Errorf("expert slots on %s: %w", r.dev.Info(), err)
		}
	}
	return s, nil
}

// slotShapes are the matrices of one expert on a device: gate and up in one,
// and down.
func slotShapes(l *layer) (gateUp, down slotBank, err error) {
	if l.gates.scales != nil || l.gates.biases != nil || l.ups.biases != nil || l.downs.biases != nil {
		return gateUp, down, fmt.Errorf("%w: expert slots with biases or scales", ErrNoKernels)
	}
	gateUp = slotBank{typ: uint32(l.gates.f.Type), rows: l.gates.rows, cols: l.gates.cols}
	if !l.fused {
		if l.gates.f.Type != l.ups.f.Type {
			return gateUp, down, fmt.Errorf("%w: gate and up of the experts have types %s and %s", ErrNoKernels, l.gates.f.Name, l.ups.f.Name)
		}
		gateUp.rows += l.ups.rows
	}
	down = slotBank{typ: uint32(l.downs.f.Type), rows: l.downs.rows, cols: l.downs.cols}
	if gateUp.size, err = ops.WeightSize(gateUp.typ, gateUp.rows, gateUp.cols); err != nil {
		return gateUp, down, err
	}
	down.size, err = ops.WeightSize(down.typ, down.rows, down.cols)
	return gateUp, down, err
}

// slotBytes is the device memory of one expert.
func slotBytes(l *layer) (int64, error) {
	a, b, err := slotShapes(l)
	return a.size + b.size, err
}

// evenSlots gives every layer the same number of slots, as many as bytes hold.
func (c *cards) evenSlots(bytes int64) (n int, err error) {
	var all int64 // one slot in every layer
	for _, r := range c.runs {
		for i := range r.layers {
			if r.layers[i].routedOnHost == nil {
				continue
			}
			one, err := slotBytes(r.layers[i].layer)
			if err != nil {
				return 0, err
			}
			all += one
		}
	}
	if all == 0 || bytes < all {
		return 0, fmt.Errorf("expert slots: %d bytes asked, one expert of every layer takes %d", bytes, all)
	}
	return int(bytes / all), nil
}

func (s *cardSlots) open(sr *slotRun, count func(layer int) int, link bool) error {
	r, m := sr.r, s.c.m
	dim, used := m.spec.dim, 0
	var types []uint32
	ffs := map[int]bool{}
	for i := range r.layers {
		l := r.layers[i].layer
		if r.layers[i].routedOnHost == nil {
			continue
		}
		k := slotLayer{r: r}
		var err error
		if k.gateUp, k.down, err = slotShapes(l); err != nil {
			return err
		}
		k.most = min(count(l.index), l.expert.count, int(r.dev.MaxBuffer()/max(k.gateUp.size, k.down.size)))
		s.layers[l.index] = k
		types = append(types, k.gateUp.typ, k.down.typ)
		used = max(used, l.expert.used)
		ffs[l.expert.ff] = true
	}
	var err error
	if sr.up, err = r.set.NewUpload(types...); err != nil {
		return err
	}
	sr.most = m.passRows() * max(used, 1)
	need, wide, slots := int64(sr.most)*int64(16+8*dim+dim*5/4), 0, 0
	for ff := range ffs {
		need += int64(sr.most) * int64(ff*21/4)
		if m.chunk > ops.MaxColumns && r.sliced(ff) {
			wide = max(wide, 2*ff)
		}
	}
	for i := range r.layers {
		slots = max(slots, s.layers[r.layers[i].index].most)
	}
	need += 4 * int64(sr.most*wide)
	sr.arena = r.dev.Arena(min(max(need/4, 1<<20), 32<<20, r.dev.MaxBuffer()))
	for _, x := range []struct {
		b *(*compute.Buffer)
		n int
	}{{&sr.idx, sr.most}, {&sr.ids, sr.most}, {&sr.ones, sr.most}, {&sr.x, sr.most * dim}, {&sr.y, sr.most * dim},
		{&sr.two, sr.most * wide}, {&sr.order, sr.most}, {&sr.start, max(slots, stagePlaces) + 1}} {
		if x.n == 0 {
			continue
		}
		if *x.b, err = sr.arena.Alloc(4 * int64(x.n)); err != nil {
			return err
		}
	}
	if sr.acts, err = ops.NewActs(sr.arena, sr.most, dim, false, true); err != nil {
		return err
	}
	sr.acts.X = sr.x
	for ff := range ffs {
		if sr.hid[ff], err = ops.NewActs(sr.arena, sr.most, ff, true, true); err != nil {
			return err
		}
	}
	if sr.in, err = r.dev.Host(8 * int64(sr.most)); err != nil {
		return err
	}
	if sr.out, err = r.dev.Host(4 * int64(sr.most*dim)); err != nil {
		return err
	}
	if link {
		if err := sr.openStage(s); err != nil {
			return err
		}
	}
	ones := make([]float32, sr.most)
	for i := range ones {
		ones[i] = 1
	}
	return r.dev.Do(func(q *compute.Queue) error { return q.Write(sr.ones, 0, rawFloats(ones)) })
}

func (s *cardSlots) slots(layer int) int {
	if layer >= len(s.layers) {
		return 0
	}
	return s.layers[layer].most
}

func (s *cardSlots) card(layer int) string {
	if layer >= len(s.layers) || s.layers[layer].r == nil {
		return ""
	}
	return deviceName(s.layers[layer].r.dev.Info())
}

// deviceName is a device's PCI address, or what Options.Device calls it.
func deviceName(i compute.Info) string {
	if i.PCI != "" {
		return i.PCI
	}
	return fmt.Sprintf("%s:%d", i.Driver, i.Index)
}

func (s *cardSlots) bytes(layer int) int64 {
	return s.layers[layer].gateUp.size + s.layers[layer].down.size
}

// resize gives a layer memory for n slots. While it moves, both the old and the
// new memory are held; where that is too much, the slots wait in host memory.
func (s *cardSlots) resize(layer, n int) error {
	k := &s.layers[layer]
	if n == k.n {
		return nil
	}
	keep := min(n, k.n)
	was := [2]slotBank{k.gateUp, k.down}
	for i, b := range []*slotBank{&k.gateUp, &k.down} {
		if err := b.resize(k.r, n, keep); err != nil {
			if i == 1 { // both or none
				k.gateUp.buf.Free()
			}
			k.gateUp, k.down = was[0], was[1]
			if n > k.n {
				return err
			}
			return s.squeeze(k, n)
		}
	}
	was[0].buf.Free()
	was[1].buf.Free()
	k.n = n
	return nil
}

// resize makes memory for n matrices and copies the first keep of b to it. The
// old memory stays with the caller.
func (b *slotBank) resize(r *run, n, keep int) error {
	old := b.buf
	b.buf, b.products = nil, products{}
	if n == 0 {
		return nil
	}
	buf, err := r.dev.Alloc(b.size * int64(n))
	if err != nil {
		return err
	}
	w, err := ops.NewWeight(b.typ, b.rows, b.cols, n, buf)
	if err == nil && keep > 0 {
		err = r.dev.Do(func(q *compute.Queue) error { return q.Copy(buf, 0, old, 0, b.size*int64(keep)) })
	}
	if err == nil {
		b.products, err = r.products(w)
	}
	if err != nil {
		buf.Free()
		return err
	}
	b.buf = buf
	return nil
}

// squeeze makes a layer smaller where there is no room for two copies of its
// slots.
func (s *cardSlots) squeeze(k *slotLayer, n int) error {
	for _, b := range []*slotBank{&k.gateUp, &k.down} {
		held := make([]byte, b.size*int64(n))
		if err := k.r.dev.Do(func(q *compute.Queue) error { return q.Read(held, b.buf, 0) }); err != nil {
			return err
		}
		b.buf.Free()
		if err := b.resize(k.r, n, 0); err != nil {
			return err
		}
		if err := k.r.dev.Do(func(q *compute.Queue) error { return q.Write(b.buf, 0, held) }); err != nil {
			return err
		}
	}
	k.n = n
	return nil
}

// move copies a slot.
func (s *cardSlots) move(layer, from, to int) error {
	k := &s.layers[layer]
	return k.r.dev.Do(func(q *compute.Queue) error {
		for _, b := range []*slotBank{&k.gateUp, &k.down} {
			if err := q.Copy(b.buf, int64(to)*b.size, b.buf, int64(from)*b.size, b.size); err != nil {
				return err
			}
		}
		return nil
	})
}

// put begins to write an expert into its slot.
func (s *cardSlots) put(layer, slot int, w weightsAt) error {
	k := &s.layers[layer]
	if slot >= k.n {
		return fmt.Errorf("slot %d of layer %d, there are %d", slot, layer, k.n)
	}
	sr := s.runs[k.r]
	s.fill.add(func() error {
		return k.r.dev.Do(func(q *compute.Queue) error {
			q.Leave()
			if w.pin.host != nil && sr.stage != nil {
				return sr.fetch(q, w, k.gateUp.mul.Weight(), k.down.mul.Weight(), slot)
			}
			return sr.write(q, w, k, slot)
		})
	})
	return nil
}

// write copies an expert from ordinary memory, which is free again on return.
func (sr *slotRun) write(q *compute.Queue, w weightsAt, k *slotLayer, slot int) error {
	gateUp := k.gateUp.mul.Weight()
	if err := sr.up.Run(q, gateUp, slot, 0, w.expertBytes[0]); err != nil {
		return err
	}
	if w.expertBytes[1] != nil {
		if err := sr.up.Run(q, gateUp, slot, gateUp.Rows/2, w.expertBytes[1]); err != nil {
			return err
		}
	}
	return sr.up.Run(q, k.down.mul.Weight(), slot, 0, w.expertBytes[2])
}

// settle returns when what was put is in place.
func (s *cardSlots) settle() error {
	err := s.fill.wait()
	for r := range s.runs {
		if derr := r.dev.Do(func(*compute.Queue) error { return nil }); err == nil {
			err = derr
		}
	}
	return err
}

// start has the device compute the rows of the given experts and read them
// back. It returns at once: the calls to the driver are made beside the CPU's
// work.
func (s *cardSlots) start(p *pass, l *layer, expert, slot []int32, over []linked) error {
	k, x := &s.layers[l.index], &p.mix
	sr := s.runs[k.r]
	n := 0
	for _, e := range expert {
		n += int(x.start[e+1] - x.start[e])
	}
	for _, w := range over {
		n += int(x.start[w.expert+1] - x.start[w.expert])
	}
	if n > sr.most {
		return fmt.Errorf("%d rows of experts in slots, there is room for %d", n, sr.most)
	}
	raw := sr.in.Bytes()
	idx, ids := asInts(raw[:4*sr.most]), asInts(raw[4*sr.most:])
	s.rows, s.ends = s.rows[:0], s.ends[:0]
	add := func(e, id int32) {
		for row := x.start[e]; row < x.start[e+1]; row++ {
			n := len(s.rows)
			idx[n], ids[n] = x.token[row], id
			s.rows = append(s.rows, row)
		}
	}
	for i, e := range expert {
		add(e, slot[i])
	}
	s.ends = append(s.ends, len(s.rows))
	for i, w := range over {
		add(w.expert, int32(i%sr.stage.places))
		if i%sr.stage.places == sr.stage.places-1 || i == len(over)-1 {
			s.ends = append(s.ends, len(s.rows))
		}
	}
	s.p, s.running = p, sr
	go func() {
		s.done <- k.r.dev.Do(func(q *compute.Queue) error { // ends with the work
			if n := s.ends[0]; n > 0 {
				if err := sr.batch(q, p, l, k.gateUp.products, k.down.products, 0, n); err != nil {
					return err
				}
			}
			if len(over) == 0 {
				return nil
			}
			return s.bring(q, p, sr, l, over)
		})
	}()
	return nil
}

// batch computes rows lo to hi-1 with the experts of two matrices.
func (sr *slotRun) batch(q *compute.Queue, p *pass, l *layer, gateUp, down products, lo, hi int) error {
	r, n, dim, ff := sr.r, hi-lo, sr.r.c.m.spec.dim, l.expert.ff
	hid := sr.hid[ff]
	to := form(hid, down.mul.Weight().IsFloat(), !down.mul.Weight().IsFloat())
	if err := q.WriteHost(sr.idx, 0, sr.in, 4*int64(lo), 4*int64(n)); err != nil {
		return err
	}
	if err := q.WriteHost(sr.ids, 0, sr.in, 4*int64(sr.most+lo), 4*int64(n)); err != nil {
		return err
	}
	if err := r.rows.Gather(q, sr.x, r.buf.xb.X, sr.idx, n, dim); err != nil {
		return err
	}
	if !gateUp.mul.Weight().IsFloat() {
		if err := r.quant.Run(q, sr.acts, sr.x, n, dim); err != nil {
			return err
		}
	}
	if p.t > ops.MaxColumns && gateUp.many != nil && sr.two != nil && r.sliced(ff) {
		return sr.tiles(q, p, l, gateUp, down, to, lo, n)
	}
	if err := gateUp.mul.RunExperts(q, sr.acts, n, 1, sr.ids, ops.GLU{Act: int(l.act), To: to}); err != nil {
		return err
	}
	if err := down.mul.RunDown(q, to, n, 1, sr.ids, sr.ones, ops.Out{Y: sr.y, Ld: dim}); err != nil {
		return err
	}
	return q.ReadHost(sr.out, 4*int64(lo*dim), sr.y, 0, 4*int64(n*dim))
}

// tiles is the rest of batch for a prompt: the rows of an expert share its
// weights.
func (sr *slotRun) tiles(q *compute.Queue, p *pass, l *layer, gateUp, down products, to *ops.Acts, lo, n int) error {
	r, dim, ff := sr.r, sr.r.c.m.spec.dim, l.expert.ff
	count := gateUp.mul.Weight().Count
	if err := r.rows.Sort(q, sr.ids, n, count, sr.start, sr.order); err != nil {
		return err
	}
	sl := ops.Slots{Experts: count, Order: sr.order, Start: sr.start, Div: 1, Most: p.t}
	if err := gateUp.many.Run(q, sr.acts, n, &sl, ops.Out{Y: sr.two, Ld: 2 * ff}); err != nil {
		return err
	}
	up, err := q.Slice(sr.two, 4*int64(ff), sr.two.Len()-4*int64(ff))
	if err != nil {
		return err
	}
	if err := r.rows.GLU(q, to, n, sr.two, 2*ff, up, 2*ff, int(l.act)); err != nil {
		return err
	}
	if err := down.many.Run(q, to, n, &sl, ops.Out{Y: sr.y, Ld: dim}); err != nil {
		return err
	}
	return q.ReadHost(sr.out, 4*int64(lo*dim), sr.y, 0, 4*int64(n*dim))
}

// wait returns when the rows are in p.mix.out.
func (s *cardSlots) wait() error {
	sr, dim := s.running, s.c.m.spec.dim
	if sr == nil {
		return nil
	}
	s.running = nil
	if err := <-s.done; err != nil {
		return err
	}
	y := asFloats(sr.out.Bytes())
	for i, row := range s.rows {
		copy(s.p.mix.out[int(row)*dim:(int(row)+1)*dim], y[i*dim:(i+1)*dim])
	}
	return nil
}

func (s *cardSlots) free() {
	if s == nil {
		return
	}
	s.fill.wait()
	for i := range s.layers {
		s.layers[i].gateUp.buf.Free()
		s.layers[i].down.buf.Free()
	}
	for _, sr := range s.runs {
		if sr.up != nil {
			sr.up.Free()
		}
		for _, h := range []*compute.Host{sr.in, sr.out} {
			h.Free()
		}
		if sr.arena != nil {
			sr.arena.Free()
		}
	}
}
