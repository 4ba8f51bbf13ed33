package engine

import (
	"math"
	"os"

	"outcrop/engine/gguf"
	"outcrop/gpu/compute"
)

// shelf holds the copies of one layer's experts and knows where its experts
// are in the file.
type shelf struct {
	residency
	l     *layer
	parts [3]shelfPart
	size  int     // bytes of a place
	mem   region  // room for every place; pages come with the first write
	card  *pinned // instead of mem: memory that a card fetches from
	even  []int   // by expert: rank in an even spread
	// reading is by place the read that writes there. Such a place cannot be
	// used for anything else, even when it was given up meanwhile.
	reading []*fetch
	pin     []uint8 // by place: a card copies from it
	busy    []bool  // by expert: chosen by the open pass and not computed yet
}

// shelfPart is one matrix of each expert of a layer, in the file and in a
// place. Places keep the offset within a disk block, so that direct reads can
// go there.
type shelfPart struct {
	shard  int
	off    int64 // of expert 0 in the shard
	size   int64 // bytes of one expert; 0: no such matrix
	at     int   // where the part begins in a place
	length int   // room for it
}

func blockDown(n int64) int64 { return n &^ (diskBlock - 1) }
func blockUp(n int64) int64   { return blockDown(n + diskBlock - 1) }

func newShelf(f *gguf.File, l *layer) *shelf {
	s := &shelf{l: l, even: make([]int, l.expert.count), busy: make([]bool, l.expert.count)}
	for i, b := range l.banks() {
		if b.none() {
			continue
		}
		t := f.Tensor(b.name)
		p := &s.parts[i]
		p.shard, p.off, p.size = t.Shard, t.Offset, int64(b.rows)*int64(b.rowBytes)
		p.at, p.length = s.size, int(blockUp(p.size))+diskBlock
		s.size += p.length
	}
	page := os.Getpagesize() // places are given back one by one
	s.size = (s.size + page - 1) / page * page
	for i, e := 0, 0; i < len(s.even); i, e = i+1, (e+spread(len(s.even)))%len(s.even) {
		s.even[e] = i
	}
	return s
}

// places makes room for n copies at most, in memory that dev fetches from if
// there is one.
func (s *shelf) places(n int, dev *compute.Device) (err error) {
	s.copies = newSeats(s.l.expert.count, n)
	s.reading, s.pin = make([]*fetch, n), make([]uint8, n)
	if dev != nil && n > 0 {
		s.card = newPinned(dev, n, s.size)
		return s.card.there(0)
	}
	s.mem, err = newRegion(n * s.size)
	return err
}

func (s *shelf) place(i int) []byte {
	if s.card != nil {
		return s.card.place(i)
	}
	return s.mem.mem[i*s.size : (i+1)*s.size : (i+1)*s.size]
}

// release gives the memory of places lo to hi-1, which are empty, back.
func (s *shelf) release(lo, hi int) {
	if s.card != nil {
		s.card.release(lo, hi)
		return
	}
	s.mem.release(lo*s.size, hi*s.size)
}

// start is where part i of an expert begins in a place.
func (s *shelf) start(i int, e int32) int {
	p := &s.parts[i]
	off := p.off + int64(e)*p.size
	return p.at + int(off-blockDown(off))
}

// at gives the weights of an expert in a buffer that its parts were read to.
func (s *shelf) at(buf []byte, e int32) (b expertBytes) {
	for i := range s.parts {
		if n := int(s.parts[i].size); n > 0 {
			lo := s.start(i, e)
			b[i] = buf[lo : lo+n : lo+n]
		}
	}
	return b
}

// weights are those of expert e, whose copy is in a place.
func (s *shelf) weights(place int, e int32) weightsAt {
	w := weightsAt{expertBytes: s.at(s.place(place), e)}
	if s.card != nil {
		var from int64
		w.pin.host, from = s.card.at(place)
		for i := range s.parts {
			if s.parts[i].size > 0 {
				w.pin.off[i] = from + int64(s.start(i, e))
			}
		}
	}
	return w
}

// wants appends the reads that bring an expert into a buffer.
func (s *shelf) wants(dst []part, f *fetch, buf []byte, direct bool) []part {
	b := s.at(buf, f.expert)
	for i := range s.parts {
		p := &s.parts[i]
		if p.size == 0 {
			continue
		}
		off := p.off + int64(f.expert)*p.size
		r := part{f: f, shard: p.shard, off: off, dst: b[i], need: int(p.size)}
		if direct {
			r.off = blockDown(off)
			r.need += int(off - r.off)
			r.dst = buf[p.at : p.at+int(blockUp(int64(r.need)))]
		}
		dst = append(dst, r)
	}
	return dst
}

// count is how often an expert was used lately.
func (s *shelf) count(h *heat, e int32) float32 {
	return math.Float32frombits(h.layers[s.l.index][e].Load())
}

// vacant finds a place for one more copy, or nobody.
func (s *shelf) vacant() int {
	if s.copies.room() <= 0 {
		return int(nobody)
	}
	for i := range s.copies.who {
		if s.empty(i) && (s.card == nil || s.card.there(i) == nil) {
			return i
		}
	}
	return int(nobody)
}

// compact brings the copies into the first n places and gives the memory
// behind them back. Scattered holes would free less than they are: a large
// page goes only when all experts in it do.
func (s *shelf) compact(n int) {
	to := 0
	for from := len(s.copies.who) - 1; from >= n; from-- {
		if s.copies.who[from] == nobody || s.pin[from] > 0 {
			continue
		}
		for to < n && !s.empty(to) {
			to++
		}
		if to >= n {
			break
		}
		copy(s.place(to), s.place(from))
		s.copies.shift(from, to)
	}
	for lo := 0; lo < len(s.copies.who); lo++ {
		hi := lo
		for hi < len(s.copies.who) && s.empty(hi) {
			hi++
		}
		if hi > lo {
			s.release(lo, hi)
			lo = hi
		}
	}
}

// empty reports whether nothing is in a place and nothing is written to it.
func (s *shelf) empty(i int) bool {
	return s.copies.who[i] == nobody && s.copies.coming[i] == nobody && s.reading[i] == nil
}

// coldest finds the copy that is needed least: not by the open pass, and used
// least lately; of equals the one whose use is longest ago.
func (s *shelf) coldest(h *heat) int {
	at, least, last := int(nobody), float32(0), uint32(0)
	for i, e := range s.copies.who {
		if e == nobody || s.busy[e] || s.pin[i] > 0 {
			continue
		}
		c, t := s.count(h, e), h.last[s.l.index][e]
		if at < 0 || c < least || c == least && t < last {
			at, least, last = i, c, t
		}
	}
	return at
}

// hottest finds the expert most worth a copy that has none and is not on its
// way, or nobody.
func (s *shelf) hottest(h *heat) int32 {
	best, most := nobody, float32(0)
	for e := range int32(len(s.even)) {
		if s.tier(e) != TierFile || s.copies.pending(e) {
			continue
		}
		if c := s.count(h, e); best == nobody || c > most || c == most && s.even[e] < s.even[best] {
			best, most = e, c
		}
	}
	return best
}
