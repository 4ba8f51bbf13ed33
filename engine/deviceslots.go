package engine

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// cardSlots keeps hot experts in device memory and computes on them while the
// CPU pool does the others (slotStore). Results go to the rows of p.mix.out, so
// that a token's experts are joined by the CPU in the order of their rank,
// wherever each was computed.
type cardSlots struct {
	c      *cards
	layers []slotLayer // by layer; empty for those without slots
	runs   map[*run]*slotRun

	p       *pass // of the rows under way
	rows    []int32
	running *slotRun
}

// slotLayer are the slots of a layer: matrices numbered by slot.
type slotLayer struct {
	r            *run
	n            int
	gateUp, down *ops.Mul
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
	acts    *ops.Acts
	hid     map[int]*ops.Acts
	in, out *compute.Host
}

// newCardSlots takes room for bytes of experts, the same number in every layer.
func (c *cards) newCardSlots(bytes int64) (*cardSlots, error) {
	m := c.m
	s := &cardSlots{c: c, layers: make([]slotLayer, len(m.layers)), runs: map[*run]*slotRun{}}
	var all int64 // one slot in every layer
	for _, r := range c.runs {
		for i := range r.layers {
			if r.layers[i].routedOnHost == nil {
				continue
			}
			n, err := slotBytes(r.layers[i].layer)
			if err != nil {
				return nil, err
			}
			all += n
		}
	}
	if all == 0 || bytes < all {
		return nil, fmt.Errorf("expert slots: %d bytes asked, one expert of every layer takes %d", bytes, all)
	}
	n := int(bytes / all)
	for _, r := range c.runs {
		sr := &slotRun{r: r, arena: r.dev.Arena(min(256<<20, r.dev.MaxBuffer())), hid: map[int]*ops.Acts{}}
		s.runs[r] = sr
		if err := s.fill(sr, n); err != nil {
			s.free()
			return nil, fmt.Errorf("expert slots on %s: %w", r.dev.Info(), err)
		}
	}
	return s, nil
}

// slotBytes is the device memory of one expert.
func slotBytes(l *layer) (int64, error) {
	if l.gates.scales != nil || l.gates.biases != nil || l.ups.biases != nil || l.downs.biases != nil {
		return 0, fmt.Errorf("%w: expert slots with biases or scales", ErrNoKernels)
	}
	rows := l.gates.rows
	if !l.fused {
		if l.gates.f.Type != l.ups.f.Type {
			return 0, fmt.Errorf("%w: gate and up of the experts have types %s and %s", ErrNoKernels, l.gates.f.Name, l.ups.f.Name)
		}
		rows += l.ups.rows
	}
	a, err := ops.WeightSize(uint32(l.gates.f.Type), rows, l.gates.cols)
	if err != nil {
		return 0, err
	}
	b, err := ops.WeightSize(uint32(l.downs.f.Type), l.downs.rows, l.downs.cols)
	return a + b, err
}

func (s *cardSlots) fill(sr *slotRun, n int) error {
	r, m := sr.r, s.c.m
	dim, used := m.spec.dim, 0
	var types []uint32
	matrix := func(b *bank, rows, count int) (*ops.Mul, error) {
		size, err := ops.WeightSize(uint32(b.f.Type), rows, b.cols)
		if err != nil {
			return nil, err
		}
		buf, err := sr.arena.Alloc(size * int64(count))
		if err != nil {
			return nil, err
		}
		w, err := ops.NewWeight(uint32(b.f.Type), rows, b.cols, count, buf)
		if err != nil {
			return nil, err
		}
		types = append(types, uint32(b.f.Type))
		return r.set.Mul(w, 1)
	}
	ffs := map[int]bool{}
	for i := range r.layers {
		l := r.layers[i].layer
		if r.layers[i].routedOnHost == nil {
			continue
		}
		k := min(n, l.expert.count)
		up, err := matrix(&l.gates, 2*l.expert.ff, k)
		if err != nil {
			return err
		}
		down, err := matrix(&l.downs, l.downs.rows, k)
		if err != nil {
			return err
		}
		s.layers[l.index] = slotLayer{r: r, n: k, gateUp: up, down: down}
		used = max(used, l.expert.used)
		ffs[l.expert.ff] = true
	}
	var err error
	if sr.up, err = r.set.NewUpload(types...); err != nil {
		return err
	}
	sr.most = m.passRows() * max(used, 1)
	for _, x := range []struct {
		b *(*compute.Buffer)
		n int
	}{{&sr.idx, sr.most}, {&sr.ids, sr.most}, {&sr.ones, sr.most}, {&sr.x, sr.most * dim}, {&sr.y, sr.most * dim}} {
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
	return s.layers[layer].n
}

// put writes an expert into its slot. It returns when the copy is complete.
func (s *cardSlots) put(layer, slot int, w expertBytes) error {
	k := &s.layers[layer]
	sr := s.runs[k.r]
	return k.r.dev.Do(func(q *compute.Queue) error {
		if err := sr.up.Run(q, k.gateUp.Weight(), slot, 0, w[0]); err != nil {
			return err
		}
		if w[1] != nil {
			if err := sr.up.Run(q, k.gateUp.Weight(), slot, k.gateUp.Weight().Rows/2, w[1]); err != nil {
				return err
			}
		}
		return sr.up.Run(q, k.down.Weight(), slot, 0, w[2])
	})
}

// settle has nothing to wait for: put does.
func (s *cardSlots) settle() error { return nil }

// start has the device compute the rows of the given experts and read them back.
func (s *cardSlots) start(p *pass, l *layer, expert, slot []int32) error {
	k, x, dim := &s.layers[l.index], &p.mix, s.c.m.spec.dim
	sr := s.runs[k.r]
	raw := sr.in.Bytes()
	idx, ids := asInts(raw[:4*sr.most]), asInts(raw[4*sr.most:])
	s.rows = s.rows[:0]
	for i, e := range expert {
		for row := x.start[e]; row < x.start[e+1]; row++ {
			n := len(s.rows)
			idx[n], ids[n] = x.token[row], slot[i]
			s.rows = append(s.rows, row)
		}
	}
	n := len(s.rows)
	if n > sr.most {
		return fmt.Errorf("%d rows of experts in slots, there is room for %d", n, sr.most)
	}
	s.p, s.running = p, sr
	hid := sr.hid[l.expert.ff]
	to := form(hid, k.down.Weight().IsFloat(), !k.down.Weight().IsFloat())
	quantised := !k.gateUp.Weight().IsFloat()
	return k.r.dev.Do(func(q *compute.Queue) error {
		defer q.Leave()
		if err := q.WriteHost(sr.idx, 0, sr.in, 0, 4*int64(n)); err != nil {
			return err
		}
		if err := q.WriteHost(sr.ids, 0, sr.in, 4*int64(sr.most), 4*int64(n)); err != nil {
			return err
		}
		if err := k.r.rows.Gather(q, sr.x, k.r.buf.xb.X, sr.idx, n, dim); err != nil {
			return err
		}
		if quantised {
			if err := k.r.quant.Run(q, sr.acts, sr.x, n, dim); err != nil {
				return err
			}
		}
		if err := k.gateUp.RunExperts(q, sr.acts, n, 1, sr.ids, ops.GLU{Act: int(l.act), To: to}); err != nil {
			return err
		}
		if err := k.down.RunDown(q, to, n, 1, sr.ids, sr.ones, ops.Out{Y: sr.y, Ld: dim}); err != nil {
			return err
		}
		return q.ReadHost(sr.out, 0, sr.y, 0, 4*int64(n*dim))
	})
}

// wait returns when the rows are in p.mix.out.
func (s *cardSlots) wait() error {
	sr, dim := s.running, s.c.m.spec.dim
	if sr == nil {
		return nil
	}
	s.running = nil
	if err := sr.r.dev.Do(func(*compute.Queue) error { return nil }); err != nil {
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
	for _, sr := range s.runs {
		if sr.up != nil {
			sr.up.Free()
		}
		for _, h := range []*compute.Host{sr.in, sr.out} {
			if h != nil {
				h.Free()
			}
		}
		sr.arena.Free()
	}
}
