package ops

import (
	"fmt"

	"outcrop/gpu/compute"
	"outcrop/gpu/kernels"
)

// Cache holds the keys and values of one layer for Context positions.
type Cache struct {
	Heads, Key, Value, Context int
	Q8                         bool
	K, V                       *compute.Buffer
}

// CacheBytes gives the sizes of the two buffers of a cache.
func CacheBytes(heads, key, value, context int, q8 bool) (k, v int64) {
	rows := int64(heads) * int64(context)
	if q8 {
		return rows * int64(key+key/16), rows * int64(value+value/16)
	}
	return rows * int64(key) * 2, rows * int64(value) * 2
}

// Attention is softmax attention with grouped heads for one kind of layer.
type Attention struct {
	set      *Set
	shape    Heads
	rows     int // query rows of a work-group
	turn     *compute.Kernel
	attend   *compute.Kernel
	flash    *compute.Kernel // nil: not for this card or shape
	units    *compute.Kernel // attend on matrix units; nil: the same
	unitRows int             // query rows of a work-group of it
	many     *compute.Kernel // units with manyRows, for several tokens; nil: the same
	rowsOf   *compute.Kernel // join for many tokens; nil: there is no compiler
}

// Heads are the sizes and switches of an attention layer.
type Heads struct {
	Query, KV  int // heads
	Key, Value int // sizes of a head
	Q8         bool
	Rot        int     // values of a head that rotate
	Neox       bool    // pairs (i, i+Rot/2), else (2i, 2i+1)
	Gated      bool    // each query head is followed by a gate of its size
	Window     int     // keys seen, counting the query's own; 0: all
	Scale      float32 // of the scores
	Cap        float32 // of the scores; 0: none
	Eps        float32 // of the head norms
	NormV      bool    // values are normed without weights
}

// Attention loads the kernels for a kind of layer.
func (s *Set) Attention(h Heads) (*Attention, error) {
	if h.KV < 1 || h.Query%h.KV != 0 || h.Key%8 != 0 || h.Key > 576 || h.Value > 576 || h.Rot > h.Key || h.Rot%2 != 0 {
		return nil, fmt.Errorf("attention with %d heads of %d and %d values over %d, %d rotated: no kernel has this shape", h.Query, h.Key, h.Value, h.KV, h.Rot)
	}
	if h.Value < 8 || h.Value%8 != 0 {
		return nil, fmt.Errorf("attention with values of %d: not a multiple of 8", h.Value)
	}
	if h.Q8 && (h.Key%32 != 0 || h.Value%32 != 0) {
		return nil, fmt.Errorf("attention with heads of %d and %d values: an 8-bit cache wants multiples of 32", h.Key, h.Value)
	}
	rows := 1
	for most := kernels.AttendRows(h.Value, s.lanes); rows < h.Query/h.KV && rows < most; {
		rows *= 2
	}
	o := &Attention{set: s, shape: h, rows: rows}
	m := kernels.Attend(kernels.Attention{Key: h.Key, Value: h.Value, Rows: rows, Q8: h.Q8})
	var err error
	if o.turn, err = s.load(m, "turn"); err != nil {
		return nil, err
	}
	if o.attend, err = s.load(m, "attend"); err != nil {
		return nil, err
	}
	if s.flashUnits && !h.Q8 && h.Key <= 256 && h.Value <= 256 && h.Key%16 == 0 && h.Value%16 == 0 {
		m := kernels.Flash(h.Key, h.Value, h.Cap != 0)
		if h.Scale*h.Scale*float32(h.Key) > 4 { // scores are usually divided by the root of Key
			m = kernels.FineFlash(h.Key, h.Value, h.Cap != 0)
		}
		s.try(m, "flash", &o.flash, true)
	}
	if s.flashUnits && kernels.UnitsFit(h.Key, h.Value) {
		for o.unitRows = 1; o.unitRows < h.Query/h.KV && o.unitRows < manyRows; {
			o.unitRows *= 2
		}
		m := kernels.Attention{Key: h.Key, Value: h.Value, Rows: o.unitRows, Q8: h.Q8}
		s.try(kernels.AttendUnits(m), "attend_units", &o.units, false)
		if m.Rows < manyRows {
			m.Rows = manyRows
			s.try(kernels.AttendUnits(m), "attend_units", &o.many, false)
		}
	}
	s.try(kernels.Many(), "join_rows", &o.rowsOf, false)
	return o, nil
}

// wide tells whether a step has enough rows for the matrix units.
func (o *Attention) wide(tokens int) bool { return o.flash != nil && tokens >= 16 }

// flags of heads.cl
const (
	headQNorm = 1
	headKNorm = 2
	headVNorm = 4
	headNeox  = 8
	headFused = 16
)

// Step is what an attention step works on.
type Step struct {
	Tokens       int
	Q            *compute.Buffer // (tokens, LdQ): query heads, each followed by its gate when Gated
	K, V         *compute.Buffer // (tokens, LdK), (tokens, LdV)
	LdQ, LdK     int
	LdV          int
	QNorm, KNorm *compute.Buffer // (Key); nil: none
	CS           *compute.Buffer // (tokens, Rot): cosines, sines
	State        *compute.Buffer // [0]: position of the first token
	Cache        *Cache
	Splits       int             // parts of the context
	Parts        *compute.Buffer // PartsBytes
	Sinks        *compute.Buffer // (Query); nil: none
	To           *Acts           // rows of Query*Value values; nil: the result stays in parts
}

// PartsBytes is the scratch memory of a step.
func (o *Attention) PartsBytes(tokens, splits int) int64 {
	return int64(splits) * int64(tokens) * int64(o.shape.Query) * int64(o.shape.Value+2) * 4
}

// maxSplits is what join.cl has room for.
const maxSplits = 64

// manyRows is the most query rows that a product takes.
const manyRows = 16

// onUnits gives the kernel on matrix units for a step and its query rows; 0: there is none.
func (o *Attention) onUnits(tokens int) (*compute.Kernel, int) {
	switch {
	case o.many != nil && tokens > 1:
		return o.many, manyRows
	case o.units != nil:
		return o.units, o.unitRows
	}
	return nil, 0
}

// Splits suggests into how many parts a context of n positions is cut for a step
// of tokens tokens, so that the card is filled.
func (o *Attention) Splits(n, tokens int) int {
	h := o.shape
	if o.wide(tokens) {
		return 1
	}
	units := max(o.set.dev.Info().Units, 1)
	if _, rows := o.onUnits(tokens); rows > 0 {
		turn := 64 // keys that a work-group takes at once
		if h.Value > 128 {
			turn = 32
		}
		groups := h.KV * up(tokens*h.Query/h.KV, rows)
		return max(1, min(up(n, turn), up(2*units, groups), maxSplits))
	}
	groups := h.KV * up(tokens*h.Query/h.KV, o.rows)
	most := up(n, 2*o.set.lanes) // no part smaller than two turns of a work-group
	return max(1, min(most, up(4*units, groups), maxSplits))
}

// fused tells whether norms, rotation and keeping happen inside attend.
func (o *Attention) fused(tokens int) bool { return tokens == 1 }

func (o *Attention) flags(s *Step) int {
	flags := 0
	if s.QNorm != nil {
		flags |= headQNorm
	}
	if s.KNorm != nil {
		flags |= headKNorm
	}
	if o.shape.NormV {
		flags |= headVNorm
	}
	if o.shape.Neox {
		flags |= headNeox
	}
	return flags
}

func (o *Attention) step() int {
	if o.shape.Gated {
		return 2 * o.shape.Key
	}
	return o.shape.Key
}

// Run norms and rotates queries and keys, keeps keys and values, attends, and
// joins the parts: one row of Query*Value values a token, with sinks (one score a
// head) and, when Gated, times the sigmoid of the gates that lie behind the
// queries. That is two launches for one token, three for several.
func (o *Attention) Run(q *compute.Queue, r *Rows, s *Step) error {
	h, set := o.shape, o.set
	n := h.Query * h.Value
	if s.To != nil && s.To.Cols != n {
		return fmt.Errorf("join %d heads of %d to activations of %d values", h.Query, h.Value, s.To.Cols)
	}
	flags := o.flags(s)
	c := s.Cache
	if o.fused(s.Tokens) {
		flags |= headFused
	} else {
		err := q.Launch(o.turn, compute.Dim{X: up(h.Query+2*h.KV, 4), Y: s.Tokens}, compute.Dim{X: 4 * set.lanes},
			compute.Mem(s.Q), compute.Int(s.LdQ), compute.Int(o.step()), compute.Mem(s.K), compute.Int(s.LdK), compute.Mem(s.V), compute.Int(s.LdV),
			compute.Mem(set.or(s.QNorm)), compute.Mem(set.or(s.KNorm)), compute.Mem(set.or(s.CS)), compute.Int(h.Rot), compute.Mem(s.State),
			compute.Int(h.Query), compute.Int(h.KV), compute.Int(h.Key), compute.Int(h.Value), compute.Int(c.Context), compute.Float(h.Eps), compute.Int(flags),
			compute.Mem(c.K), compute.Mem(c.V))
		if err != nil {
			return err
		}
	}
	if o.wide(s.Tokens) && s.Splits == 1 {
		const block = 64 // rows of a work-group, flash.cl
		err := q.Launch(o.flash, compute.Dim{X: up(s.Tokens*h.Query/h.KV, block), Y: h.KV}, compute.Dim{X: 128},
			compute.Mem(s.Q), compute.Int(s.LdQ), compute.Int(o.step()), compute.Mem(s.State), compute.Int(s.Tokens), compute.Int(h.Query),
			compute.Int(h.KV), compute.Int(c.Context), compute.Int(h.Window), compute.Float(h.Scale), compute.Float(h.Cap),
			compute.Mem(c.K), compute.Mem(c.V), compute.Mem(s.Parts))
		if err != nil {
			return err
		}
		return o.join(q, r, s)
	}
	k, rows, waves := o.attend, o.rows, 4*set.lanes
	if unit, n := o.onUnits(s.Tokens); n > 0 {
		k, rows = unit, n
	}
	err := q.Launch(k, compute.Dim{X: s.Splits, Y: h.KV, Z: up(s.Tokens*h.Query/h.KV, rows)}, compute.Dim{X: waves},
		compute.Mem(s.Q), compute.Int(s.LdQ), compute.Int(o.step()), compute.Mem(s.K), compute.Mem(s.V),
		compute.Mem(set.or(s.QNorm)), compute.Mem(set.or(s.KNorm)), compute.Mem(set.or(s.CS)), compute.Int(h.Rot), compute.Mem(s.State),
		compute.Int(s.Tokens), compute.Int(h.Query), compute.Int(h.KV), compute.Int(c.Context), compute.Int(h.Window),
		compute.Float(h.Scale), compute.Float(h.Cap), compute.Float(h.Eps), compute.Int(flags), compute.Mem(c.K), compute.Mem(c.V),
		compute.Int(s.Splits), compute.Mem(s.Parts))
	if err != nil {
		return err
	}
	return o.join(q, r, s)
}

// flags of join.cl
const (
	joinSinks  = 1
	joinGate   = 2
	joinFloats = 4
	joinRound  = 8
)

func (o *Attention) joinFlags(s *Step) int {
	flags := 0
	if s.Sinks != nil {
		flags |= joinSinks
	}
	if o.shape.Gated {
		flags |= joinGate
	}
	if s.To.X != nil {
		flags |= joinFloats
	}
	if s.To.Q != nil {
		flags |= joinRound
	}
	return flags
}

// join makes the rows of the parts in a launch of its own.
func (o *Attention) join(q *compute.Queue, r *Rows, s *Step) error {
	h, set, to := o.shape, o.set, s.To
	if to == nil {
		return nil
	}
	n, flags := h.Query*h.Value, o.joinFlags(s)
	gate := set.none
	if h.Gated {
		gate = s.Q
	}
	if s.Splits == 1 && s.Tokens >= 16 && o.rowsOf != nil {
		return q.Launch(o.rowsOf, compute.Dim{X: up(n/4, 256), Y: s.Tokens}, compute.Dim{X: 256},
			compute.Mem(s.Parts), compute.Int(h.Query), compute.Int(h.Value), compute.Mem(set.or(s.Sinks)), compute.Mem(gate), compute.Int(s.LdQ),
			compute.Int(o.step()), compute.Int(h.Key), compute.Int(flags), compute.Mem(set.or(to.X)), compute.Mem(set.or(to.Q)), compute.Mem(set.or(to.M)))
	}
	return q.Launch(r.join, compute.Dim{X: up(n, 32), Y: s.Tokens}, compute.Dim{X: 256},
		compute.Mem(s.Parts), compute.Int(s.Splits), compute.Int(s.Tokens), compute.Int(h.Query), compute.Int(h.Value), compute.Mem(set.or(s.Sinks)),
		compute.Mem(gate), compute.Int(s.LdQ), compute.Int(o.step()), compute.Int(h.Key), compute.Int(flags),
		compute.Mem(set.or(to.X)), compute.Mem(set.or(to.Q)), compute.Mem(set.or(to.M)))
}
