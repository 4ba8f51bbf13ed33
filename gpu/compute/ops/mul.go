package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// Acts is room for activation rows: floats, and their 8-bit copy (quantize.cl).
// Products with float weights read the floats, all others the copy.
type Acts struct {
	Cols int             // values of a row
	Rows int             // rows that fit
	X    *compute.Buffer // Rows*Cols floats
	Q    *compute.Buffer // Rows*Cols bytes
	M    *compute.Buffer // Rows*Cols/32 times a scale and two sums, 8 bytes
	H    *compute.Buffer // Rows*Cols halves, room of MatMul's; nil: no matrix units over halves
	HS   *compute.Buffer // Rows scales of H
}

// AddHalves takes the room that products on matrix units need.
func (a *Acts) AddHalves(arena *compute.Arena) (err error) {
	if a.H, err = arena.Alloc(2 * int64(a.Rows) * int64(a.Cols)); err != nil {
		return err
	}
	a.HS, err = arena.Alloc(4 * int64(a.Rows))
	return err
}

// NewActs takes room for rows of cols values, a multiple of 32, from an arena.
// floats and rounded say which of the two forms are wanted.
func NewActs(arena *compute.Arena, rows, cols int, floats, rounded bool) (*Acts, error) {
	if cols%32 != 0 {
		return nil, fmt.Errorf("activations of %d values: not a multiple of 32", cols)
	}
	acts := &Acts{Cols: cols, Rows: rows}
	n := int64(rows) * int64(cols)
	var err error
	if floats {
		if acts.X, err = arena.Alloc(4 * n); err != nil {
			return nil, err
		}
	}
	if rounded {
		if acts.Q, err = arena.Alloc(n); err != nil {
			return nil, err
		}
		if acts.M, err = arena.Alloc(n / 4); err != nil {
			return nil, err
		}
	}
	if hasUnits(arena.Device().Info().Features) {
		return acts, acts.AddHalves(arena)
	}
	return acts, nil
}

// Quantize rounds rows of floats to 8 bits.
type Quantize struct{ k *compute.Kernel }

// Quantize loads the kernel.
func (s *Set) Quantize() (*Quantize, error) {
	k, err := s.load(kernels.Quantize(), "quantize")
	return &Quantize{k}, err
}

// Run rounds rows rows of a.Cols floats of x, ldx floats apart, to a.
func (o *Quantize) Run(q *compute.Queue, a *Acts, x *compute.Buffer, rows, ldx int) error {
	upr := a.Cols / 32
	return q.Launch(o.k, compute.Dim{X: up(upr, 32), Y: rows}, compute.Dim{X: 32},
		compute.Mem(x), compute.Int(ldx), compute.Int(upr), compute.Mem(a.Q), compute.Mem(a.M))
}

// What a product does with its result besides writing it (mulvec.cl).
const (
	Bias = 1 // add Extra[r], before the scale
	Add  = 2 // add to what is there
	Gate = 4 // multiply with the sigmoid of Extra[c*ExtraLd]

	// Hold and Settled are for launches that may overlap: of products of the same
	// activations the first holds, and the others, right after it, are settled: they do
	// not wait for each other. A RunDown that follows RunExperts at once, and whose ids
	// and weights are of no launch after that, is settled as well.
	Hold    = 8
	Settled = 16
)

// Out says where a product goes: y[c*Ld+r] = Scale*(w.x + Extra[r]) (+ y).
type Out struct {
	Y       *compute.Buffer
	Ld      int
	Flags   int
	Extra   *compute.Buffer
	ExtraLd int
	Scale   float32 // 0 counts as 1
}

func oneIfZero(v float32) float32 {
	if v == 0 {
		return 1
	}
	return v
}

// downSlots is how many experts a token may have in muldown.
const downSlots = 64

// MaxColumns is the most columns that Mul takes at once.
const MaxColumns = 8

// Mul multiplies a matrix, or those of experts, with one to eight columns.
type Mul struct {
	set *Set
	w   *Weight
	tab *compute.Buffer
	vec []*compute.Kernel // for 1, 2, 4, 8 columns
	glu []*compute.Kernel
	exp *compute.Kernel
	dwn *compute.Kernel

	shapes []kernels.Shape // of vec and glu
}

// Mul loads the kernels for a matrix: for one column, and for as many as most.
func (s *Set) Mul(w *Weight, most int) (*Mul, error) {
	o := &Mul{set: s, w: w}
	var err error
	if o.tab, err = s.table(w.layout.Table); err != nil {
		return nil, err
	}
	for i, n := range kernels.Columns {
		if i > 0 && most <= kernels.Columns[i-1] {
			break
		}
		shape := s.shape(w.layout, n)
		m := kernels.MulShaped(w.layout, n, shape)
		entry := s.later // windows of drafts, and the last tokens of some prompts
		if n == 1 {
			entry = func(m kernels.Module, name string) *compute.Kernel { return s.program(m, compute.Now).Entry(name) }
		}
		vec, glu := entry(m, fmt.Sprintf("mulvec_%d", n)), entry(m, fmt.Sprintf("mulglu_%d", n))
		o.vec, o.glu, o.shapes = append(o.vec, vec), append(o.glu, glu), append(o.shapes, shape)
	}
	one := kernels.MulShaped(w.layout, 1, o.shapes[0])
	if o.exp, err = s.load(one, "mulexperts"); err != nil {
		return nil, err
	}
	o.dwn, err = s.load(one, "muldown")
	return o, err
}

// Weight is the matrix.
func (o *Mul) Weight() *Weight { return o.w }

// tune is what measurements change.
type tune struct {
	waves int                           // waves of mulvec that a compute unit is given at once
	shape func(s *kernels.Shape, n int) // changes the shape of products with n columns
}

func (s *Set) shape(l kernels.Layout, columns int) kernels.Shape {
	shape := kernels.ShapeOf(l, columns, s.lanes)
	if s.tune.shape != nil {
		s.tune.shape(&shape, columns)
	}
	return shape
}

// split chooses how many waves share a row group, so that the card has work for
// all its lanes: many short rows go one wave each, few long ones are shared.
func (s *Set) split(groups, units, waves int) int {
	split := 1
	want := max(s.dev.Info().Units, 1) * s.tune.waves // waves in flight
	for split < waves && groups*split < want && units > s.lanes*split {
		split *= 2
	}
	return split
}

// columns checks the activations and gives the index of the kernels to use.
func (o *Mul) columns(op string, a *Acts, cols int) (int, error) {
	if a.Cols != o.w.Cols || cols < 1 || cols > a.Rows {
		return 0, fmt.Errorf("%s: %d of %d columns of %d values, the matrix has %d x %d", op, cols, a.Rows, a.Cols, o.w.Rows, o.w.Cols)
	}
	for i := range o.vec {
		if cols <= kernels.Columns[i] {
			return i, nil
		}
	}
	return 0, fmt.Errorf("%s: %d columns, loaded for %d", op, cols, kernels.Columns[len(o.vec)-1])
}

// x gives the form of activations that the weights take.
func (o *Mul) x(a *Acts) (values, meta *compute.Buffer) {
	if o.w.IsFloat() {
		return a.X, o.set.none
	}
	return a.Q, a.M
}

// Run multiplies the first matrix with columns 0..cols-1 of a.
func (o *Mul) Run(q *compute.Queue, a *Acts, cols int, out Out) error {
	i, err := o.columns("multiply", a, cols)
	if err != nil {
		return err
	}
	w, upr := o.w, o.w.upr()
	shape := o.shapes[i]
	groups := up(w.Rows, shape.Vec.Rows)
	given := shape.Given
	if given == 0 {
		given = o.set.tune.waves
	}
	split := o.set.split(groups, upr, shape.Waves)
	blocks := up(groups, shape.Waves/split)
	resident := max(o.set.dev.Info().Units, 1) * max(given/shape.Waves, 1) // work-groups that the card holds at once, about
	turns := min(up(blocks, resident), kernels.MaxTurns, w.Rows)
	xq, xm := o.x(a)
	return q.Launch(o.vec[i], compute.Dim{X: up(blocks, turns)}, compute.Dim{X: shape.Waves * o.set.lanes},
		compute.Mem(w.Buf), compute.Long(w.units()), compute.Int(upr), compute.Int(w.Rows), compute.Mem(o.tab),
		compute.Mem(xq), compute.Mem(xm), compute.Int(cols), compute.Mem(out.Y), compute.Int(out.Ld),
		compute.Int(split), compute.Int(turns), compute.Mem(o.set.or(out.Extra)), compute.Int(out.ExtraLd), compute.Int(out.Flags),
		compute.Float(oneIfZero(out.Scale)))
}

// The functions of a feed-forward's gate.
const (
	SiLU    = 0
	GELU    = 1 // tanh approximation
	Clamped = 2 // gpt-oss
)

// flags of mulglu.cl
const (
	gluBias    = 1
	gluExperts = 2
	gluFloats  = 4
	gluRound   = 8
)

// GLU is the first half of a feed-forward. The matrix holds the rows of the
// gate, then as many of the up matrix.
type GLU struct {
	Act  int
	Bias *compute.Buffer // gate rows, up rows, of each expert; nil: none
	To   *Acts           // X and Q are both written when both are there
}

func (o *Mul) gluLaunch(q *compute.Queue, k *compute.Kernel, items int, a *Acts, cols, slots int, ids *compute.Buffer, used, flags int, g GLU) error {
	w := o.w
	if g.Bias != nil {
		flags |= gluBias
	}
	if g.To.X != nil {
		flags |= gluFloats
	}
	if g.To.Q != nil {
		flags |= gluRound
	}
	xq, xm := o.x(a)
	s := o.set
	rows := w.Rows / 2
	if g.To.Cols != rows {
		return fmt.Errorf("gate: %d rows to activations of %d values", rows, g.To.Cols)
	}
	return q.Launch(k, compute.Dim{X: up(rows, 32), Y: slots}, compute.Dim{X: items},
		compute.Mem(w.Buf), compute.Long(w.Stride), compute.Long(w.units()), compute.Int(w.upr()), compute.Int(rows),
		compute.Mem(o.tab), compute.Mem(xq), compute.Mem(xm), compute.Int(cols),
		compute.Mem(s.or(ids)), compute.Int(used), compute.Mem(s.or(g.Bias)), compute.Int(g.Act), compute.Int(flags),
		compute.Mem(s.or(g.To.X)), compute.Mem(s.or(g.To.Q)), compute.Mem(s.or(g.To.M)))
}

// RunGLU makes act(gate x) * (up x) for columns 0..cols-1.
func (o *Mul) RunGLU(q *compute.Queue, a *Acts, cols int, g GLU) error {
	i, err := o.columns("gate", a, cols)
	if err != nil {
		return err
	}
	return o.gluLaunch(q, o.glu[i], o.shapes[i].GLUItems, a, cols, 1, nil, 1, 0, g)
}

// RunExperts makes act(gate x) * (up x) for tokens 0..tokens-1 and the used
// experts of each, whose numbers are in ids (tokens, used): row t*used+j of the
// result.
func (o *Mul) RunExperts(q *compute.Queue, a *Acts, tokens, used int, ids *compute.Buffer, g GLU) error {
	if a.Cols != o.w.Cols || tokens > a.Rows || tokens*used > g.To.Rows {
		return fmt.Errorf("experts: %d tokens of %d values with %d experts each, the matrix has %d x %d", tokens, a.Cols, used, o.w.Rows, o.w.Cols)
	}
	return o.gluLaunch(q, o.exp, o.shapes[0].GLUItems, a, 1, tokens*used, ids, used, gluExperts, g)
}

// RunDown makes y[t] (+)= Scale * sum_j weight[t,j] * (w_e x[t*used+j] + bias_e).
// Out.Extra with Bias holds Rows floats for every expert.
func (o *Mul) RunDown(q *compute.Queue, a *Acts, tokens, used int, ids, weight *compute.Buffer, out Out) error {
	w, s := o.w, o.set
	if a.Cols != w.Cols || tokens*used > a.Rows || used > downSlots {
		return fmt.Errorf("experts: %d rows of %d values, the matrix has %d x %d", tokens*used, a.Cols, w.Rows, w.Cols)
	}
	xq, xm := o.x(a)
	shape := o.shapes[0]
	return q.Launch(o.dwn, compute.Dim{X: up(w.Rows, shape.Down.Rows), Y: tokens}, compute.Dim{X: shape.DownWaves * s.lanes},
		compute.Mem(w.Buf), compute.Long(w.Stride), compute.Long(w.units()), compute.Int(w.upr()), compute.Int(w.Rows), compute.Mem(o.tab),
		compute.Mem(xq), compute.Mem(xm), compute.Mem(ids), compute.Mem(weight), compute.Int(used),
		compute.Mem(s.or(out.Extra)), compute.Int(out.Flags), compute.Float(oneIfZero(out.Scale)), compute.Mem(out.Y), compute.Int(out.Ld))
}
