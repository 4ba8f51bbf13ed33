package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// Sample draws tokens from rows of logits by engine/sampler.go's rules.
type Sample struct {
	rows                                      *Rows
	adjust, weigh, collect, drawBest, drawAll *compute.Kernel
}

// Sample loads the kernels.
func (s *Set) Sample(r *Rows) (*Sample, error) {
	o := &Sample{rows: r}
	for name, k := range map[string]**compute.Kernel{
		"adjust": &o.adjust, "weigh": &o.weigh, "collect": &o.collect, "draw_best": &o.drawBest, "draw_all": &o.drawAll,
	} {
		var err error
		if *k, err = s.load(kernels.Sample(), name); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// Choice says how to draw. Top-p and min-p look at the distribution before the
// temperature.
type Choice struct {
	Temperature float32 // above 0
	TopK        int     // 0: all
	TopP        float32 // 0 or >= 1: all
	MinP        float32 // 0: all
}

// Penalties change logits before a choice.
type Penalties struct {
	IDs, Count *compute.Buffer // tokens, each once; how often among the recent ones
	Bias       *compute.Buffer // added first
	N          int
	Repeat     float32
	Presence   float32
	Frequency  float32
}

// Adjust changes a row of n logits.
func (o *Sample) Adjust(q *compute.Queue, x *compute.Buffer, n int, p Penalties) error {
	return q.Launch(o.adjust, compute.Dim{X: up(p.N, 32)}, compute.Dim{X: 32}, compute.Mem(x), compute.Int(n), compute.Mem(p.IDs), compute.Mem(p.Bias),
		compute.Mem(p.Count), compute.Int(p.N), compute.Float(p.Repeat), compute.Float(p.Presence), compute.Float(p.Frequency))
}

// Sizes of sample.cl.
const (
	sampleMost = 1024
	sampleBins = 256
)

// SampleRoom is the scratch memory of Draw.
type SampleRoom struct {
	tmpVal, tmpIdx, best, place, counts, mass, val, idx, found *compute.Buffer
	rows, n                                                    int
}

// NewSampleRoom takes room for rows of n logits.
func NewSampleRoom(arena *compute.Arena, rows, n int) (*SampleRoom, error) {
	r := &SampleRoom{rows: rows, n: n}
	for _, b := range []struct {
		at **compute.Buffer
		n  int64
	}{
		{&r.tmpVal, BestScratch(rows, n)}, {&r.tmpIdx, BestScratch(rows, n)}, {&r.best, 4 * int64(rows)}, {&r.place, 4 * int64(rows)},
		{&r.counts, 4 * int64(rows) * sampleBins}, {&r.found, 4 * int64(rows)}, {&r.mass, 2 * BestScratch(rows, n)}, {&r.val, 4 * int64(rows) * sampleMost}, {&r.idx, 4 * int64(rows) * sampleMost},
	} {
		var err error
		if *b.at, err = arena.Alloc(b.n); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Draw picks a token of each row of n logits by the random number of that row in
// u. out has for each row the token and its log probability before all filters;
// -1 when the row holds a NaN or an infinity or when the filters keep more than
// the device looks at: then the host has to draw.
func (o *Sample) Draw(q *compute.Queue, x *compute.Buffer, rows, n int, c Choice, u *compute.Buffer, room *SampleRoom, out *compute.Buffer) error {
	if rows > room.rows || n > room.n {
		return fmt.Errorf("draw from %d rows of %d logits: room is for %d of %d", rows, n, room.rows, room.n)
	}
	if !(c.Temperature > 0) {
		return fmt.Errorf("draw at temperature %g: the best one needs no drawing", c.Temperature)
	}
	if err := o.rows.Best(q, x, rows, n, room.tmpVal, room.tmpIdx, room.best, room.place); err != nil {
		return err
	}
	pieces, inv := up(n, bestPiece), 1/c.Temperature
	if err := q.Fill(room.counts, 0, room.counts.Len(), 0); err != nil {
		return err
	}
	err := q.Launch(o.weigh, compute.Dim{X: pieces, Y: rows}, compute.Dim{X: 256},
		compute.Mem(x), compute.Int(n), compute.Int(bestPiece), compute.Mem(room.best), compute.Float(inv), compute.Mem(room.counts), compute.Mem(room.mass))
	if err != nil {
		return err
	}
	if (c.TopK <= 0 || c.TopK >= n) && (c.TopP <= 0 || c.TopP >= 1) && c.MinP <= 0 {
		return q.Launch(o.drawAll, compute.Dim{X: rows}, compute.Dim{X: 256}, compute.Mem(x), compute.Int(n), compute.Int(bestPiece), compute.Int(pieces),
			compute.Mem(room.best), compute.Mem(room.place), compute.Mem(room.mass), compute.Float(inv), compute.Mem(u), compute.Mem(out))
	}
	if err := q.Fill(room.found, 0, room.found.Len(), 0); err != nil {
		return err
	}
	err = q.Launch(o.collect, compute.Dim{X: pieces, Y: rows}, compute.Dim{X: 256},
		compute.Mem(x), compute.Int(n), compute.Int(bestPiece), compute.Mem(room.best), compute.Mem(room.counts), compute.Mem(room.val), compute.Mem(room.idx), compute.Mem(room.found))
	if err != nil {
		return err
	}
	return q.Launch(o.drawBest, compute.Dim{X: rows}, compute.Dim{X: 256},
		compute.Mem(room.best), compute.Mem(room.place), compute.Int(n), compute.Int(pieces), compute.Mem(room.mass), compute.Mem(room.counts),
		compute.Mem(room.val), compute.Mem(room.idx), compute.Mem(room.found), compute.Int(c.TopK), compute.Float(c.TopP), compute.Float(c.MinP), compute.Float(inv),
		compute.Mem(u), compute.Mem(out))
}
