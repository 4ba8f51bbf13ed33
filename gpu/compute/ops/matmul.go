package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// MatMul multiplies a matrix with many columns (prefill).
type MatMul struct {
	set   *Set
	w     *Weight
	tab   *compute.Buffer
	k     []*compute.Kernel // one for each of tiles
	tiles []kernels.Tile    // by falling width
}

// plainTile is what matmul.cl makes.
var plainTile = kernels.Tile{Name: "matmul", WM: 4, WN: 8, MT: 1, NT: 1}

// MatMul loads the kernels for a matrix: matrix units where the card has them
// and the weights are quantised.
func (s *Set) MatMul(w *Weight) (*MatMul, error) {
	o := &MatMul{set: s, w: w}
	var err error
	if o.tab, err = s.table(w.layout.Table); err != nil {
		return nil, err
	}
	m := kernels.MatMul(w.layout)
	o.tiles = []kernels.Tile{plainTile}
	if s.matrixUnits && !w.IsFloat() {
		m, o.tiles = kernels.MMA(w.layout), kernels.Tiles
	}
	for _, t := range o.tiles {
		k, err := s.load(m, t.Name)
		if err != nil {
			return nil, err
		}
		o.k = append(o.k, k)
	}
	return o, nil
}

const mmExperts = 8

// tile chooses the widest tile that about `cols` columns fill at least half.
func (o *MatMul) tile(cols int) int {
	i := 0
	for i+1 < len(o.tiles) && 2*cols <= o.tiles[i].Cols() {
		i++
	}
	return i
}

// Slots are the columns of experts: sorted by expert (Rows.Sort), Div slots a
// row of activations.
type Slots struct {
	Experts      int
	Order, Start *compute.Buffer
	Div          int
	Most         int // columns that one expert can have
}

// Run multiplies with columns 0..cols-1, or with the slots of all experts: cols
// then says how many columns there are for Div slots each.
// Flags Bias and Add of Out count; with experts, result rows are slots.
func (o *MatMul) Run(q *compute.Queue, a *Acts, cols int, slots *Slots, out Out) error {
	w, s := o.w, o.set
	if a.Cols != w.Cols {
		return fmt.Errorf("multiply: columns of %d values, the matrix has %d x %d", a.Cols, w.Rows, w.Cols)
	}
	many := cols
	if slots != nil {
		many = max(1, cols*slots.Div/slots.Experts)
	}
	i := o.tile(many)
	t := o.tiles[i]
	groups := compute.Dim{X: up(w.Rows, t.Rows()), Y: up(cols, t.Cols())}
	flags := out.Flags
	order, start, div := s.none, s.none, 1
	if slots != nil {
		groups.Y, groups.Z = up(slots.Most, t.Cols()), slots.Experts
		flags |= mmExperts
		order, start, div = slots.Order, slots.Start, slots.Div
	}
	x, m := a.Q, a.M
	if w.IsFloat() {
		x, m = a.X, s.none
	}
	return q.Launch(o.k[i], groups, compute.Dim{X: 256},
		compute.Mem(w.Buf), compute.Long(w.Stride), compute.Long(w.units()), compute.Int(w.upr()), compute.Int(w.Rows), compute.Mem(o.tab),
		compute.Mem(x), compute.Mem(m), compute.Int(cols), compute.Mem(order), compute.Mem(start), compute.Int(div),
		compute.Mem(out.Y), compute.Int(out.Ld), compute.Mem(s.or(out.Extra)), compute.Int(flags), compute.Float(oneIfZero(out.Scale)))
}
