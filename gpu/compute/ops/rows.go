package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// Rows has the norms and the small things done to rows of floats.
type Rows struct {
	set                                                           *Set
	norm, scale, add, gather, glu, gate, join, route, sort, slots *compute.Kernel
	best, bestJoin, top, draw                                     *compute.Kernel
	gluMany                                                       *compute.Kernel // nil: there is no compiler
}

// Rows loads the kernels.
func (s *Set) Rows() (*Rows, error) {
	o := &Rows{set: s}
	for name, k := range map[string]**compute.Kernel{
		"norm": &o.norm, "scale_rows": &o.scale, "add_rows": &o.add, "gather_rows": &o.gather, "glu_rows": &o.glu,
		"gate_rows": &o.gate, "join": &o.join, "route": &o.route, "sort_slots": &o.sort, "gather_slots": &o.slots,
		"best_of": &o.best, "best_join": &o.bestJoin, "top_of": &o.top, "draw": &o.draw,
	} {
		var err error
		if *k, err = s.load(kernels.Rows(), name); err != nil {
			return nil, err
		}
	}
	s.try(kernels.Many(), "glu_many", &o.gluMany, false)
	return o, nil
}

// flags of norm.cl
const (
	normAdd    = 1
	normPost   = 2
	normFloats = 4
	normRound  = 8
	normPlain  = 16
)

// Norm is what happens to a row between two products:
// x += Scale*Add (normed with Post first), then To = rms(x) * W.
type Norm struct {
	X     *compute.Buffer // (rows, N), changed when Add is set
	N     int
	Add   *compute.Buffer // (rows, N); nil: nothing
	Post  *compute.Buffer // (N); nil: Add is not normed
	Scale float32         // 0 counts as 1
	W     *compute.Buffer // (N); nil: no weights
	Eps   float32
	To    *Acts // X and Q are both written when both are there; nil: only the addition
}

// normMost is the most values that norm.cl holds in registers.
const normMost = 16384

// Norm runs n for rows rows.
func (o *Rows) Norm(q *compute.Queue, rows int, n Norm) error {
	if n.N%32 != 0 || n.N > normMost {
		return fmt.Errorf("norm of %d values: not a multiple of 32 up to %d", n.N, normMost)
	}
	flags := 0
	if n.Add != nil {
		flags |= normAdd
		if n.Post != nil {
			flags |= normPost
		}
	}
	if n.W == nil {
		flags |= normPlain
	}
	to := n.To
	if to == nil {
		to = &Acts{}
	} else if to.Cols != n.N {
		return fmt.Errorf("norm of %d values to activations of %d", n.N, to.Cols)
	}
	if to.X != nil {
		flags |= normFloats
	}
	if to.Q != nil {
		flags |= normRound
	}
	s, items := o.set, 256
	if s.dev.Info().Features.Nvidia > 0 {
		items = 512
	}
	return q.Launch(o.norm, compute.Dim{X: rows}, compute.Dim{X: items},
		compute.Mem(n.X), compute.Int(n.N), compute.Mem(s.or(n.Add)), compute.Mem(s.or(n.Post)), compute.Mem(s.or(n.W)),
		compute.Float(n.Eps), compute.Float(oneIfZero(n.Scale)), compute.Int(flags),
		compute.Mem(s.or(to.X)), compute.Mem(s.or(to.Q)), compute.Mem(s.or(to.M)))
}

// wide is the launch of a loop over n values with a stride of the grid.
func (o *Rows) wide(n int64) (groups, local compute.Dim) {
	most := int64(max(o.set.dev.Info().Units, 1) * 16)
	return compute.Dim{X: int(min((n+255)/256, most))}, compute.Dim{X: 256}
}

// Scale makes x = cap*tanh(scale*x/cap) of n values; cap 0: no cap.
func (o *Rows) Scale(q *compute.Queue, x *compute.Buffer, n int64, scale, cap float32) error {
	g, l := o.wide(n)
	return q.Launch(o.scale, g, l, compute.Mem(x), compute.Long(n), compute.Float(scale), compute.Float(cap))
}

// Add makes x += scale*y of n values.
func (o *Rows) Add(q *compute.Queue, x, y *compute.Buffer, n int64, scale float32) error {
	g, l := o.wide(n)
	return q.Launch(o.add, g, l, compute.Mem(x), compute.Mem(y), compute.Long(n), compute.Float(scale))
}

// Gather copies rows idx[0..rows-1] of x, n floats each, to y.
func (o *Rows) Gather(q *compute.Queue, y, x, idx *compute.Buffer, rows, n int) error {
	return q.Launch(o.gather, compute.Dim{X: up(n, 256), Y: rows}, compute.Dim{X: 256}, compute.Mem(x), compute.Mem(idx), compute.Int(n), compute.Mem(y))
}

// GLU makes to = act(gate) * up for rows of to.Cols values, ldg and ldu floats
// apart, up beginning at its buffer.
func (o *Rows) GLU(q *compute.Queue, to *Acts, rows int, gate *compute.Buffer, ldg int, up_ *compute.Buffer, ldu, act int) error {
	flags := 0
	if to.X != nil {
		flags |= gluFloats
	}
	if to.Q != nil {
		flags |= gluRound
	}
	s, k, groups, items := o.set, o.glu, up(to.Cols/32, 32), 32
	if o.gluMany != nil && rows >= 16 && ldg%4 == 0 && ldu%4 == 0 {
		k, groups, items = o.gluMany, up(to.Cols/4, 256), 256
	}
	return q.Launch(k, compute.Dim{X: groups, Y: rows}, compute.Dim{X: items},
		compute.Mem(gate), compute.Int(ldg), compute.Mem(up_), compute.Int(ldu), compute.Int(to.Cols), compute.Int(act), compute.Int(flags),
		compute.Mem(s.or(to.X)), compute.Mem(s.or(to.Q)), compute.Mem(s.or(to.M)))
}

// Gate makes y *= sigmoid(gate) for rows of n values in heads of hd; the gate of
// head h of a row begins at h*step.
func (o *Rows) Gate(q *compute.Queue, y *compute.Buffer, rows, n, hd int, gate *compute.Buffer, ldg, step int) error {
	return q.Launch(o.gate, compute.Dim{X: up(n, 128), Y: rows}, compute.Dim{X: 128},
		compute.Mem(y), compute.Int(n), compute.Int(hd), compute.Mem(gate), compute.Int(ldg), compute.Int(step))
}

// The ways from router logits to weights (models.md 1.4).
const (
	Softmax       = 1
	Sigmoid       = 2
	SoftmaxPicked = 3
	SqrtSoftplus  = 4
)

// Route says how experts are chosen.
type Route struct {
	Experts, Used int
	Kind          int
	Bias          *compute.Buffer // for the choice only; nil: none
	Groups, Kept  int             // Groups 0 or 1: none
	Norm          bool
	Scale         float32 // 0 counts as 1
}

// Route chooses for tokens tokens, whose logits are ld apart.
func (o *Rows) Route(q *compute.Queue, logits *compute.Buffer, ld, tokens int, r Route, ids, weight *compute.Buffer) error {
	if r.Experts > 1024 || r.Used > r.Experts || r.Used > 64 || r.Groups > 64 {
		return fmt.Errorf("route: %d of %d experts in %d groups: more than the kernel holds", r.Used, r.Experts, r.Groups)
	}
	flags := 0
	if r.Bias != nil {
		flags |= 1
	}
	if r.Norm {
		flags |= 2
	}
	return q.Launch(o.route, compute.Dim{X: tokens}, compute.Dim{X: o.set.lanes},
		compute.Mem(logits), compute.Int(ld), compute.Int(r.Experts), compute.Int(r.Used), compute.Int(r.Kind), compute.Mem(o.set.or(r.Bias)),
		compute.Int(r.Groups), compute.Int(r.Kept), compute.Float(oneIfZero(r.Scale)), compute.Int(flags), compute.Mem(ids), compute.Mem(weight))
}

// Sort sorts slots by expert: start has experts+1 numbers, order slots.
func (o *Rows) Sort(q *compute.Queue, ids *compute.Buffer, slots, experts int, start, order *compute.Buffer) error {
	return q.Launch(o.sort, compute.Dim{X: 1}, compute.Dim{X: 256},
		compute.Mem(ids), compute.Int(slots), compute.Int(experts), compute.Mem(start), compute.Mem(order))
}

// Slots makes y[t] (+)= scale * sum_j weight[t,j] * s[t*used+j], rows of n.
func (o *Rows) Slots(q *compute.Queue, y, s, weight *compute.Buffer, tokens, used, n int, scale float32, add bool) error {
	a := 0
	if add {
		a = 1
	}
	return q.Launch(o.slots, compute.Dim{X: up(n, 128), Y: tokens}, compute.Dim{X: 128},
		compute.Mem(s), compute.Mem(weight), compute.Int(used), compute.Int(n), compute.Float(oneIfZero(scale)), compute.Int(a), compute.Mem(y))
}

// bestPiece is how many values one work-group of Best looks at.
const bestPiece = 4096

// Best finds the largest of n values in each of rows rows: its value and its
// place, -1 when the row holds a NaN or an infinity. tmp needs BestScratch bytes.
func (o *Rows) Best(q *compute.Queue, x *compute.Buffer, rows, n int, tmpVal, tmpIdx, val, idx *compute.Buffer) error {
	pieces := up(n, bestPiece)
	err := q.Launch(o.best, compute.Dim{X: pieces, Y: rows}, compute.Dim{X: 256},
		compute.Mem(x), compute.Int(n), compute.Int(bestPiece), compute.Mem(tmpVal), compute.Mem(tmpIdx))
	if err != nil {
		return err
	}
	return q.Launch(o.bestJoin, compute.Dim{X: up(rows, 32)}, compute.Dim{X: 32},
		compute.Mem(tmpVal), compute.Mem(tmpIdx), compute.Int(pieces), compute.Int(rows), compute.Mem(val), compute.Mem(idx))
}

// BestScratch is the bytes that each of the two scratch buffers of Best needs.
func BestScratch(rows, n int) int64 { return int64(rows*up(n, bestPiece)) * 4 }

// topSort is how many pairs a work-group of Top sorts.
const topSort = 1024

// TopScratch is the bytes of each of the four scratch buffers of Top.
func TopScratch(n, k int) int64 { return int64(up(n, topSort)*k) * 4 }

// MaxTop is the most candidates of Top.
const MaxTop = 128

// Top finds the k largest of n values, best first, equal ones in order of their
// place. The result lies in the returned pair of scratch buffers.
func (o *Rows) Top(q *compute.Queue, x *compute.Buffer, n, k int, scratch [4]*compute.Buffer) (val, idx *compute.Buffer, err error) {
	if k > MaxTop || k < 1 {
		return nil, nil, fmt.Errorf("top %d of %d values: at most %d", k, n, MaxTop)
	}
	from, place := x, o.set.none
	to := [2]*compute.Buffer{scratch[0], scratch[1]}
	first := 1
	for turn := 0; ; turn++ {
		groups := up(n, topSort)
		err := q.Launch(o.top, compute.Dim{X: groups}, compute.Dim{X: 256},
			compute.Mem(from), compute.Mem(place), compute.Int(first), compute.Int(n), compute.Int(k), compute.Mem(to[0]), compute.Mem(to[1]))
		if err != nil || groups == 1 {
			return to[0], to[1], err
		}
		from, place, first, n = to[0], to[1], 0, groups*k
		to = [2]*compute.Buffer{scratch[2-turn%2*2], scratch[3-turn%2*2]}
	}
}

// Draw picks one of k sorted candidates with temperature, top-p and min-p by a
// number of 0 <= u < 1.
func (o *Rows) Draw(q *compute.Queue, val, idx *compute.Buffer, k int, temperature, topP, minP, u float32, out *compute.Buffer) error {
	return q.Launch(o.draw, compute.Dim{X: 1}, compute.Dim{X: 1},
		compute.Mem(val), compute.Mem(idx), compute.Int(k), compute.Float(temperature), compute.Float(topP), compute.Float(minP), compute.Float(u), compute.Mem(out))
}
