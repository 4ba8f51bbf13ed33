package engine

import (
	"sync"
	"time"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// Experts that come over the link to be computed once: their blocks are copied
// from pinned memory as they lie there, repacked into a few places on the
// device, and computed as those in slots are. Everything is enqueued at once
// and runs in order, so a place is never written while it is read, and nothing
// stays on the device afterwards.

// stageBytes and stagePlaces bound the places.
const (
	stageBytes  = 64 << 20
	stagePlaces = 64
)

// linkStage are the places of a device.
type linkStage struct {
	places       int
	raw          *compute.Buffer // an expert as in the file: gate, up, down
	part         int64           // bytes between them
	gateUp, down *compute.Buffer
	muls         map[stageShape]products
}

type stageShape struct {
	typ        uint32
	rows, cols int
	down       bool
}

// openStage takes the places that the layers of a run need.
func (sr *slotRun) openStage(s *cardSlots) error {
	st := &linkStage{muls: map[stageShape]products{}}
	var gateUp, down, used int64
	for i := range sr.r.layers {
		if sr.r.layers[i].routedOnHost == nil {
			continue
		}
		l := sr.r.layers[i].layer
		k := &s.layers[l.index]
		gateUp, down, used = max(gateUp, k.gateUp.size), max(down, k.down.size), max(used, int64(l.expert.used))
		for _, b := range l.banks() {
			if !b.none() {
				st.part = max(st.part, int64(b.rows)*int64(b.rowBytes))
			}
		}
	}
	if used == 0 {
		return nil
	}
	st.part = (st.part + 511) / 512 * 512
	st.places = int(min(max(stageBytes/(gateUp+down), min(used, 4)), stagePlaces))
	var err error
	for _, x := range []struct {
		b *(*compute.Buffer)
		n int64
	}{{&st.raw, 3 * st.part}, {&st.gateUp, gateUp * int64(st.places)}, {&st.down, down * int64(st.places)}} {
		if *x.b, err = sr.arena.Alloc(x.n); err != nil {
			return err
		}
	}
	for i := range sr.r.layers {
		if sr.r.layers[i].routedOnHost == nil {
			continue
		}
		k := &s.layers[sr.r.layers[i].layer.index]
		for _, x := range []struct {
			b   *slotBank
			buf *compute.Buffer
		}{{&k.gateUp, st.gateUp}, {&k.down, st.down}} {
			key := stageShape{x.b.typ, x.b.rows, x.b.cols, x.buf == st.down}
			if st.muls[key].mul != nil {
				continue
			}
			w, err := ops.NewWeight(x.b.typ, x.b.rows, x.b.cols, st.places, x.buf)
			if err != nil {
				return err
			}
			if st.muls[key], err = sr.r.products(w); err != nil {
				return err
			}
		}
	}
	sr.stage = st
	return nil
}

// of gives the places as matrices of a layer.
func (st *linkStage) of(k *slotLayer) (gateUp, down products) {
	return st.muls[stageShape{k.gateUp.typ, k.gateUp.rows, k.gateUp.cols, false}], st.muls[stageShape{k.down.typ, k.down.rows, k.down.cols, true}]
}

// bring copies and computes experts, as many at a time as there are places.
func (s *cardSlots) bring(q *compute.Queue, p *pass, sr *slotRun, l *layer, over []linked) error {
	gateUp, down := sr.stage.of(&s.layers[l.index])
	for b := 1; len(over) > 0; b++ {
		n := min(len(over), sr.stage.places)
		for i, w := range over[:n] {
			if err := sr.fetch(q, w.weightsAt, gateUp.mul.Weight(), down.mul.Weight(), i); err != nil {
				return err
			}
		}
		if err := sr.batch(q, p, l, gateUp, down, s.ends[b-1], s.ends[b]); err != nil {
			return err
		}
		over = over[n:]
	}
	return nil
}

// fetch copies an expert from pinned memory and repacks it as matrix number at
// of two.
func (sr *slotRun) fetch(q *compute.Queue, w weightsAt, gateUp, down *ops.Weight, at int) error {
	st := sr.stage
	for i, b := range w.expertBytes {
		if b == nil {
			continue
		}
		if err := q.WriteHost(st.raw, int64(i)*st.part, w.pin.host, w.pin.off[i], int64(len(b))); err != nil {
			return err
		}
	}
	for i, b := range w.expertBytes {
		to, row := gateUp, 0
		switch {
		case b == nil:
			continue
		case i == 1:
			row = gateUp.Rows / 2
		case i == 2:
			to = down
		}
		if err := sr.up.Repack(q, to, at, row, st.raw, int64(i)*st.part, int64(len(b))); err != nil {
			return err
		}
	}
	q.Fence()
	return nil
}

// linkRate measures what the link of a device gives, in bytes a second.
func linkRate(dev *compute.Device, h *compute.Host, to *compute.Buffer) (best float64, err error) {
	n := min(int64(len(h.Bytes())), to.Len())
	for range 4 {
		begin := time.Now()
		err := dev.Do(func(q *compute.Queue) error {
			for range 4 {
				if err := q.WriteHost(to, 0, h, 0, n); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return 0, err
		}
		best = max(best, 4*float64(n)/time.Since(begin).Seconds())
	}
	return best, nil
}

// filler runs functions one after the other on a goroutine of its own.
type filler struct {
	mu    sync.Mutex
	list  []func() error
	busy  bool
	err   error
	ended sync.WaitGroup
}

func (f *filler) add(fn func() error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, fn)
	f.ended.Add(1)
	if !f.busy {
		f.busy = true
		go f.run()
	}
}

func (f *filler) run() {
	for {
		f.mu.Lock()
		if len(f.list) == 0 {
			f.busy = false
			f.mu.Unlock()
			return
		}
		fn, skip := f.list[0], f.err != nil
		f.list = f.list[1:]
		f.mu.Unlock()
		if !skip {
			if err := fn(); err != nil {
				f.mu.Lock()
				f.err = err
				f.mu.Unlock()
			}
		}
		f.ended.Done()
	}
}

// wait returns when everything has run, with the first error since the last
// call.
func (f *filler) wait() error {
	f.ended.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.err
	f.err = nil
	return err
}
