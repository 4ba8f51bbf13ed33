package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// Acts is room for rows of activations rounded to 8 bits (quantize.cl).
type Acts struct {
	Cols int             // values of a row, a multiple of 32
	Rows int             // rows that fit
	Q    *compute.Buffer // Rows*Cols bytes
	M    *compute.Buffer // Rows*Cols/32 times a scale and two sums, 8 bytes
}

// NewActs takes room for rows of cols values from an arena.
func NewActs(a *compute.Arena, rows, cols int) (*Acts, error) {
	if cols%32 != 0 {
		return nil, fmt.Errorf("activations of %d values: not a multiple of 32", cols)
	}
	q, err := a.Alloc(int64(rows) * int64(cols))
	if err != nil {
		return nil, err
	}
	m, err := a.Alloc(int64(rows) * int64(cols) / 4)
	return &Acts{Cols: cols, Rows: rows, Q: q, M: m}, err
}

// Quantize rounds rows of floats to 8 bits.
type Quantize struct{ k *compute.Kernel }

// Quantize loads the kernel.
func (s *Set) Quantize() (*Quantize, error) {
	k, err := s.load(kernels.Quantize(), "quantize")
	return &Quantize{k}, err
}

// Run rounds rows rows of a.Cols floats, ldx floats apart, to a.
func (o *Quantize) Run(q *compute.Queue, a *Acts, x *compute.Buffer, rows, ldx int) error {
	upr := a.Cols / 32
	return q.Launch(o.k, compute.Dim{X: up(upr, 32), Y: rows}, compute.Dim{X: 32},
		compute.Mem(x), compute.Int(ldx), compute.Int(upr), compute.Mem(a.Q), compute.Mem(a.M))
}

// What a product does with its result besides writing it.
const (
	Bias = 1 // add one float a row, before the scale
	Add  = 2 // add to what is there
)

// Out says where a product goes: y[c*Ld + r] = Scale*(w.x + Extra[r]) (+ y).
type Out struct {
	Y     *compute.Buffer
	Ld    int
	Flags int
	Extra *compute.Buffer // with Bias
	Scale float32         // 0 counts as 1
}

func (o Out) scale() float32 {
	if o.Scale == 0 {
		return 1
	}
	return o.Scale
}

// waves is the number of waves of a work-group of MulVec.
const waves = 4

// MulVec multiplies a matrix with one to eight columns.
type MulVec struct {
	set *Set
	w   *Weight
	tab *compute.Buffer
	k   map[int]*compute.Kernel
}

// MulVec loads the kernels for a matrix.
func (s *Set) MulVec(w *Weight) (*MulVec, error) {
	o := &MulVec{set: s, w: w, k: map[int]*compute.Kernel{}}
	var err error
	if o.tab, err = s.table(w.layout.Table); err != nil {
		return nil, err
	}
	for _, n := range kernels.Columns {
		if o.k[n], err = s.load(kernels.MulVec(w.layout), fmt.Sprintf("mulvec_%d", n)); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// split chooses how many waves share a row group, so that the card has work for
// all its lanes: many short rows go one wave each, few long ones are shared.
func (s *Set) split(groups, units int) int {
	split := 1
	want := max(s.dev.Info().Units, 1) * 32 // waves in flight
	for split < waves && groups*split < want && units > s.lanes*split {
		split *= 2
	}
	return split
}

// Run multiplies with columns 0..cols-1 of a, at most eight.
func (o *MulVec) Run(q *compute.Queue, a *Acts, cols int, out Out) error {
	w := o.w
	if a.Cols != w.Cols || cols < 1 || cols > 8 {
		return errShape("mulvec", "%d columns of %d values, the matrix has %d x %d", cols, a.Cols, w.Rows, w.Cols)
	}
	nc := 1
	for nc < cols {
		nc *= 2
	}
	upr := w.Cols / 32
	groups := up(w.Rows, w.layout.Rows)
	split := o.set.split(groups, upr)
	return q.Launch(o.k[nc], compute.Dim{X: up(groups, waves/split)}, compute.Dim{X: waves * o.set.lanes},
		compute.Mem(w.Buf), compute.Long(w.units()), compute.Int(upr), compute.Int(w.Rows), compute.Mem(o.tab),
		compute.Mem(a.Q), compute.Mem(a.M), compute.Int(cols), compute.Mem(out.Y), compute.Int(out.Ld),
		compute.Int(split), compute.Mem(o.set.or(out.Extra)), compute.Int(out.Flags), compute.Float(out.scale()))
}
