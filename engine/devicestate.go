package engine

import (
	"fmt"
	"unsafe"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// cardState is what the runs of a model keep of one timeline.
type cardState struct {
	c     *cards
	runs  []runState
	bytes int64
	lost  error // a copy of recurrent state failed; the next pass reports it
}

// runState is the part of one device.
type runState struct {
	arena  *compute.Arena
	layers []cardMemory
	seqs   map[seqKey]*compute.Sequence
	made   int // the generation of buffers that seqs are for
}

// cardMemory is what a layer keeps on its device.
type cardMemory struct {
	cache ops.Cache
	delta ops.DeltaState
	log   [2]ops.DeltaLog
}

// seqKey tells recorded steps apart. All else that changes lies in buffers.
type seqKey struct {
	turn                     int // of the layer before it, where the host has the experts; 0: the whole pass
	tokens, outputs, context int
	tentative, ready         bool
	book                     int
	pick                     bool
	choice                   ops.Choice
}

// newState takes the memory of a timeline on all devices.
func (c *cards) newState() (*cardState, error) {
	st := &cardState{c: c, runs: make([]runState, len(c.runs))}
	for i, r := range c.runs {
		if err := st.runs[i].take(r); err != nil {
			st.bytes = 0 // not counted yet
			st.free()
			return nil, fmt.Errorf("caches of layers %d to %d on %s: %w", r.lo, r.hi-1, r.dev.Info(), err)
		}
		st.bytes += st.runs[i].arena.Size()
	}
	c.kv.Add(st.bytes)
	for i, r := range c.runs {
		r.kv.Add(st.runs[i].arena.Size())
	}
	if err := st.push(nil); err != nil {
		st.free()
		return nil, err
	}
	return st, nil
}

const cardAlign = 512

func (s *runState) take(r *run) error {
	m := r.c.m
	var total int64
	var list []int64
	for i := range r.layers {
		if r.layers[i].why.mixer != "" {
			continue
		}
		for _, n := range cardMemoryBytes(m, r.layers[i].layerSpec) {
			n = (n + cardAlign - 1) / cardAlign * cardAlign
			list = append(list, n)
			total += n
		}
	}
	const most = 256 << 20
	s.arena = r.dev.Arena(min(max(total, cardAlign), most, r.dev.MaxBuffer()))
	s.seqs = map[seqKey]*compute.Sequence{}
	at := 0
	var err error
	next := func() *compute.Buffer {
		var b *compute.Buffer
		if err == nil {
			b, err = s.arena.Alloc(list[at])
		}
		at++
		return b
	}
	for i := range r.layers {
		var mem cardMemory
		l := r.layers[i].layerSpec
		switch {
		case r.layers[i].why.mixer != "":
		case l.mixer == attention:
			a := &l.attn
			mem.cache = ops.Cache{Heads: a.kvHeads, Key: a.keyDim, Value: a.valDim, Context: cardContext(m), Q8: m.kv == kvQ8, K: next(), V: next()}
		case l.mixer == deltaNet:
			mem.delta = ops.DeltaState{S: next(), Hist: next()}
			for j := range mem.log {
				mem.log[j] = ops.DeltaLog{U: next(), K: next(), D: next(), G: next()}
			}
		}
		s.layers = append(s.layers, mem)
	}
	return err
}

// cardContext is the positions of a cache: whole tiles of the kernels.
func cardContext(m *Model) int { return (m.context + 63) / 64 * 64 }

// cardMemoryBytes lists the buffers of a layer's memory.
func cardMemoryBytes(m *Model, l *layerSpec) []int64 {
	if l.mixer == attention {
		k, v := ops.CacheBytes(l.attn.kvHeads, l.attn.keyDim, l.attn.valDim, cardContext(m), m.kv == kvQ8)
		return []int64{k, v}
	}
	d := &l.delta
	n, ch := int64(d.dim), int64(d.channels())
	out := []int64{4 * int64(d.valHeads) * n * n, 4 * int64(max(1, d.taps-1)) * ch}
	for range 2 {
		out = append(out, 4*maxWindow*ch, 4*maxWindow*int64(d.keyHeads)*n, 4*maxWindow*int64(d.valHeads)*n, 4*maxWindow*int64(d.valHeads))
	}
	return out
}

// push copies recurrent state from st to the devices; nil clears it.
func (s *cardState) push(st *state) error { return s.move(st, true) }

// pull copies recurrent state from the devices to st, for snapshots.
func (s *cardState) pull(st *state) error { return s.move(st, false) }

func (s *cardState) move(st *state, to bool) error {
	for i, r := range s.c.runs {
		err := r.dev.Do(func(q *compute.Queue) error {
			for j := range s.runs[i].layers {
				mem := &s.runs[i].layers[j]
				if mem.delta.S == nil {
					continue
				}
				for k, b := range []*compute.Buffer{mem.delta.S, mem.delta.Hist} {
					var err error
					switch {
					case st == nil:
						err = q.Fill(b, 0, b.Len(), 0)
					case to:
						err = q.Write(b, 0, rawFloats(st.layers[r.lo+j].kept(k)))
					default:
						err = q.Read(rawFloats(st.layers[r.lo+j].kept(k)), b, 0)
					}
					if err != nil {
						return err
					}
				}
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("recurrent state: %w", r.wrap(err))
		}
	}
	return nil
}

// kept are the recurrent state (0) and the convolution's history (1).
func (mem *memory) kept(k int) []float32 {
	if k == 0 {
		return mem.s
	}
	return mem.hist
}

// free gives the memory back.
func (s *cardState) free() {
	if s == nil {
		return
	}
	counted := s.bytes > 0
	s.c.kv.Add(-s.bytes)
	s.bytes = 0
	for i := range s.runs {
		if counted {
			s.c.runs[i].kv.Add(-s.runs[i].arena.Size())
		}
		s.runs[i].forget()
		if s.runs[i].arena != nil {
			s.runs[i].arena.Free()
		}
	}
}

// forget drops recorded steps: buffers that they use have moved.
func (s *runState) forget() {
	for k, q := range s.seqs {
		q.Free()
		delete(s.seqs, k)
	}
}

// rawFloats is the memory of v. Devices and hosts are little-endian, as the
// weights in the file are.
func rawFloats(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), 4*len(v))
}

// asFloats is raw memory as floats.
func asFloats(b []byte) []float32 {
	if len(b) < 4 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4)
}

func asInts(b []byte) []int32 { return unsafe.Slice((*int32)(unsafe.Pointer(&b[0])), len(b)/4) }
