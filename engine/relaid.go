package engine

import (
	"context"
	"sync/atomic"

	"outcrop/engine/quant"
)

// relaid keeps copies of weights in memory of our own: in a layout that this
// processor multiplies faster where there is one (quant.Format.Faster: the same
// results to the last bit), else as they are. Large pages are what a plain copy
// gains: a mapped file has small ones, and their look-ups took a sixth of the
// time of a decode step. The process lets go of the file's pages, so that its
// memory does not double; they stay in the system's cache for the next start.
// The guard may have the copies dropped: then the file is used again.
type relaid struct {
	copies []relaidCopy
	mem    []region     // what the copies lie in, one after the other
	bytes  atomic.Int64 // of all copies
	drop   atomic.Bool  // to be dropped before the next pass
}

// relaidCopy is one matrix, or one matrix of all experts of a layer.
type relaidCopy struct {
	w    *matrix
	file matrix // w as it lies in the file
}

// Copies lie one after the other in the order in which a token reads them: what is
// fetched ahead past the end of one matrix is the beginning of the next. relaidRegion
// is what is reserved at a time, since large pieces are rounded to whole large pages.
const (
	relaidRegion = 256 << 20
	relaidAlign  = 64 // a line of the cache
)

// relay makes the copies, as far as all weights together stay within
// Options.Relay bytes: copies, and what is used in the file's pages. Workers
// must be there. Not for experts that come and go, nor for cards, which have
// layouts of their own.
func (m *Model) relay(ctx context.Context) error {
	o := &m.options
	if o.Relay <= 0 || o.FileTier || o.ExpertRAM != 0 || m.cards != nil {
		return nil
	}
	total := m.pack.size
	var ws []*matrix
	var want int64
	var lists [][]*matrix
	for i := range m.layers {
		lists = append(lists, m.layers[i].matrices())
	}
	lists = append(lists, []*matrix{&m.output})
	for _, list := range lists {
		for _, w := range list {
			if w.none() {
				continue
			}
			n := w.copyBytes()
			if total+n-w.bytes() > o.Relay {
				continue
			}
			total += n - w.bytes()
			want += n
			ws = append(ws, w)
		}
	}
	var done int64
	var room []byte // of the last region
	for i, w := range ws {
		if err := ctx.Err(); err != nil {
			m.unrelay()
			return err
		}
		n := int(w.copyBytes())
		if len(room) < n {
			size := 0
			for _, w := range ws[i:] {
				size += (int(w.copyBytes()) + relaidAlign - 1) / relaidAlign * relaidAlign
				if size >= relaidRegion {
					break
				}
			}
			mem, err := newRegion(size)
			if err != nil {
				break // no copy is needed for a right answer
			}
			m.relaid.mem, room = append(m.relaid.mem, mem), mem.mem
		}
		fast := w.best()
		j := newRelayJob(w, fast, room[:n:n])
		m.pool.run(j, j.parts())
		c := relaidCopy{w: w, file: *w}
		w.data, w.f, w.rowBytes = room[:n:n], fast, fast.RowBytes(w.cols)
		room = room[min(len(room), (n+relaidAlign-1)/relaidAlign*relaidAlign):]
		m.relaid.copies = append(m.relaid.copies, c)
		m.relaid.bytes.Add(int64(n))
		letGo(c.file.data)
		if done += int64(n); o.Progress != nil {
			o.Progress("relay", done, want)
		}
	}
	return nil
}

// unrelay goes back to the file. No pass may run.
func (m *Model) unrelay() {
	r := &m.relaid
	for i := range r.copies {
		c := &r.copies[i]
		r.bytes.Add(-c.w.bytes())
		c.w.data, c.w.f, c.w.rowBytes = c.file.data, c.file.f, c.file.rowBytes
	}
	for i := range r.mem {
		r.mem[i].free()
	}
	r.copies, r.mem = nil, nil
	r.drop.Store(false)
}

// dropRelaid has the copies dropped: before the next pass, or at once when
// none runs.
func (m *Model) dropRelaid() {
	if m.relaid.bytes.Load() == 0 {
		return
	}
	m.relaid.drop.Store(true)
	if m.turn.TryLock() {
		m.unrelay()
		m.turn.Unlock()
	}
}

// best is the layout to hold a copy in.
func (w *matrix) best() *quant.Format {
	if f := w.f.Faster(w.cols); f != nil {
		return f
	}
	return w.f
}

// copyBytes is how long a copy is.
func (w *matrix) copyBytes() int64 {
	return w.bytes() / int64(w.rowBytes) * int64(w.best().RowBytes(w.cols))
}

// matrices are those of a layer that products read as they lie in memory.
func (l *layer) matrices() []*matrix {
	return []*matrix{
		&l.q, &l.k, &l.v, &l.o, &l.qkv, &l.z, &l.deltaOut, &l.gate, &l.up, &l.down,
		&l.gates.matrix, &l.ups.matrix, &l.downs.matrix, &l.shGate, &l.shUp, &l.shDown,
	}
}

// relayJob copies weights, or lays them out anew, a piece a part.
type relayJob struct {
	from, to *quant.Format
	src, dst []byte
	in, out  int // bytes of a piece
}

// relayPiece is the values of a piece: whole blocks of all formats.
const relayPiece = 256 << 10

func newRelayJob(w *matrix, to *quant.Format, dst []byte) *relayJob {
	return &relayJob{from: w.f, to: to, src: w.data, dst: dst, in: w.f.RowBytes(relayPiece), out: to.RowBytes(relayPiece)}
}

func (j *relayJob) parts() int { return (len(j.src) + j.in - 1) / j.in }

func (j *relayJob) part(i int, _ *worker) {
	src, dst := j.src[i*j.in:min((i+1)*j.in, len(j.src))], j.dst[i*j.out:min((i+1)*j.out, len(j.dst))]
	if j.from == j.to {
		copy(dst, src)
		return
	}
	quant.Relay(dst, j.to, j.from, src)
}
