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
	plain []tiled         // by falling width
	tiles []tiled         // the same on matrix units over 8-bit numbers; none: not for this card or format
	half  []tiled         // on matrix units over halves; none: not for this card or format
	few   *compute.Kernel // smaller work-groups for floats; nil: none
	// activations to halves
	halve *compute.Kernel
}

// tiled is a kernel, what a work-group of it makes, and its work-items.
type tiled struct {
	k                 *compute.Kernel
	rows, cols, items int
}

// MatMul loads the kernels for a matrix: for matrix units where the card has
// them and the format is not F32.
func (s *Set) MatMul(w *Weight) (*MatMul, error) {
	o := &MatMul{set: s, w: w}
	var err error
	if o.tab, err = s.table(w.layout.Table); err != nil {
		return nil, err
	}
	entry := func(name string) *compute.Kernel { return s.program(kernels.MatMul(w.layout), compute.Now).Entry(name) }
	if s.proven() && w.layout.Name != "F32" {
		o.units()
		// For activations without room for halves, and when units fail.
		entry = func(name string) *compute.Kernel { return s.spare(kernels.MatMul(w.layout), name) }
	}
	o.plain = []tiled{{entry("matmul"), 64, 64, 256}}
	if w.IsFloat() {
		o.few = entry("matmul_few")
	}
	return o, nil
}

// manyModule is what MatMul needs at once for weights of a format.
func (s *Set) manyModule(l kernels.Layout) kernels.Module {
	switch {
	case !s.proven() || l.Name == "F32":
		return kernels.MatMul(l)
	case s.byteUnits && !l.Float():
		return kernels.MMA(l)
	}
	return kernels.Half(l, kernels.FittingTiles(l, s.halfTiles))
}

// units loads the kernels for matrix units.
func (o *MatMul) units() {
	s, w, m := o.set, o.w, o.set.manyModule(o.w.layout)
	if s.byteUnits && !w.IsFloat() {
		o.tiles = make([]tiled, len(kernels.Tiles))
		for i, t := range kernels.Tiles {
			o.tiles[i] = tiled{rows: t.Rows(), cols: t.Cols(), items: 256}
			s.try(m, t.Name, &o.tiles[i].k, true)
		}
		return
	}
	fit := kernels.FittingTiles(w.layout, s.halfTiles)
	o.half = make([]tiled, len(fit))
	for i, t := range fit {
		o.half[i] = tiled{rows: t.Rows(), cols: t.Cols(), items: t.Items()}
		s.try(m, t.Name, &o.half[i].k, true)
	}
	name := "halve_rounded"
	if w.IsFloat() {
		name = "halve_floats"
	}
	s.try(kernels.Halve(), name, &o.halve, true)
}

const mmExperts = 8

// tile chooses the widest tile that about `cols` columns fill at least half.
func tile(tiles []tiled, cols int) tiled {
	i := 0
	for i+1 < len(tiles) && 2*cols < tiles[i].cols {
		i++
	}
	return tiles[i]
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
	units := s.units()
	halves := units && a.H != nil && len(o.half) > 0
	tiles := o.plain
	switch {
	case halves && cols > a.Rows:
		return fmt.Errorf("multiply: %d columns of activations with room for %d", cols, a.Rows)
	case halves:
		tiles = o.half
	case units && len(o.tiles) > 0:
		tiles = o.tiles
	}
	many := cols
	if slots != nil {
		many = max(1, cols*slots.Div/slots.Experts)
	}
	t := tile(tiles, many)
	if o.few != nil && slots == nil && !halves && up(w.Rows, t.rows)*up(cols, t.cols) < 2*s.dev.Info().Units {
		t = tiled{o.few, 32, 32, 256}
	}
	groups := compute.Dim{X: up(w.Rows, t.rows), Y: up(cols, t.cols)}
	flags, experts := out.Flags, 0
	order, start, div := s.none, s.none, 1
	if slots != nil {
		experts = slots.Experts
		groups.Y, groups.Z = up(slots.Most, t.cols), experts
		if halves { // at most one tile of an expert is not full
			groups.Y, groups.Z = up(cols*slots.Div, t.cols)+min(experts, cols*slots.Div), 1
		}
		flags |= mmExperts
		order, start, div = slots.Order, slots.Start, slots.Div
	}
	x, m := a.Q, a.M
	if w.IsFloat() {
		x, m = a.X, s.none
	}
	if halves {
		if err := o.halved(q, a, cols); err != nil {
			return err
		}
		x, m = a.H, a.HS
	}
	args := []compute.Arg{
		compute.Mem(w.Buf), compute.Long(w.Stride), compute.Long(w.units()), compute.Int(w.upr()), compute.Int(w.Rows), compute.Mem(o.tab),
		compute.Mem(x), compute.Mem(m), compute.Int(cols), compute.Mem(order), compute.Mem(start), compute.Int(div),
		compute.Mem(out.Y), compute.Int(out.Ld), compute.Mem(s.or(out.Extra)), compute.Int(flags), compute.Float(oneIfZero(out.Scale)),
	}
	if halves {
		args = append(args, compute.Int(experts))
	}
	return q.Launch(t.k, groups, compute.Dim{X: t.items}, args...)
}

// halved writes rows 0..rows-1 of a as halves.
func (o *MatMul) halved(q *compute.Queue, a *Acts, rows int) error {
	if o.w.IsFloat() {
		return q.Launch(o.halve, compute.Dim{X: rows}, compute.Dim{X: 256}, compute.Mem(a.X), compute.Int(a.Cols), compute.Mem(a.H), compute.Mem(a.HS))
	}
	return q.Launch(o.halve, compute.Dim{X: rows}, compute.Dim{X: 256}, compute.Mem(a.Q), compute.Mem(a.M), compute.Int(a.Cols/32), compute.Mem(a.H), compute.Mem(a.HS))
}
