package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// MatMul multiplies a matrix with many columns (prefill).
type MatMul struct {
	set *Set
	w   *Weight
	tab *compute.Buffer
	k   *compute.Kernel
}

// MatMul loads the kernel for a matrix.
func (s *Set) MatMul(w *Weight) (*MatMul, error) {
	o := &MatMul{set: s, w: w}
	var err error
	if o.tab, err = s.table(w.layout.Table); err != nil {
		return nil, err
	}
	o.k, err = s.load(kernels.MatMul(w.layout), "matmul")
	return o, err
}

const (
	mmExperts = 8
	mmTile    = 64
)

// Slots are the columns of experts: sorted by expert (Rows.Sort), Div slots a
// row of activations.
type Slots struct {
	Experts      int
	Order, Start *compute.Buffer
	Div          int
	Most         int // columns that one expert can have
}

// Run multiplies with columns 0..cols-1, or with the slots of all experts.
// Flags Bias and Add of Out count; with experts, result rows are slots.
func (o *MatMul) Run(q *compute.Queue, a *Acts, cols int, slots *Slots, out Out) error {
	w, s := o.w, o.set
	if a.Cols != w.Cols {
		return fmt.Errorf("multiply: columns of %d values, the matrix has %d x %d", a.Cols, w.Rows, w.Cols)
	}
	groups := compute.Dim{X: up(w.Rows, mmTile), Y: up(cols, mmTile)}
	flags := out.Flags
	order, start, div := s.none, s.none, 1
	if slots != nil {
		groups.Y, groups.Z = up(slots.Most, mmTile), slots.Experts
		flags |= mmExperts
		order, start, div = slots.Order, slots.Start, slots.Div
	}
	x, m := a.Q, a.M
	if w.IsFloat() {
		x, m = a.X, s.none
	}
	return q.Launch(o.k, groups, compute.Dim{X: 256},
		compute.Mem(w.Buf), compute.Long(w.Stride), compute.Long(w.units()), compute.Int(w.upr()), compute.Int(w.Rows), compute.Mem(o.tab),
		compute.Mem(x), compute.Mem(m), compute.Int(cols), compute.Mem(order), compute.Mem(start), compute.Int(div),
		compute.Mem(out.Y), compute.Int(out.Ld), compute.Mem(s.or(out.Extra)), compute.Int(flags), compute.Float(oneIfZero(out.Scale)))
}
