package engine

import (
	"encoding/binary"
	"math"
	"slices"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// Check mode by operation. Both sides run a block from the same input and show
// the result of each operation by its name; what the device showed is compared
// with what the CPU shows under the same name. Operations that a device joins
// in one kernel (gate, up and activation; all experts) have one name.

// shown is the result of one operation on a device.
type shown struct {
	op      string
	v       []float32
	rounded bool // came from an 8-bit copy: rounding shows
}

// roundedLimit is the error of a comparison of floats with their 8-bit copy: a
// unit of 32 normal values is rounded to 127 steps of about 2.5 times its RMS,
// which gives 6e-3.
const roundedLimit = 2e-2

// opLimit is the error that the result of one operation may have. It is larger
// than a block's, whose result is seen beside the residual stream.
const opLimit = 5e-3

// coarseLimit is that of attention over keys and values in 8 bits: the two sides
// share a scale among 64 and among 32 values.
const coarseLimit = 3e-2

// show hands an intermediate result of the CPU to check mode.
func (p *pass) show(op string, v []float32) {
	if p.probe != nil {
		p.probe(op, v)
	}
}

// show reads n floats of an operation's result in check mode.
func (r *run) show(q *compute.Queue, s *step, op string, b *compute.Buffer, n int) error {
	if s.seen == nil || n == 0 {
		return nil
	}
	v := make([]float32, n)
	if err := q.Read(rawFloats(v), b, 0); err != nil {
		return err
	}
	*s.seen = append(*s.seen, shown{op: op, v: v})
	return nil
}

// showActs reads rows of activations in the forms that were written.
func (r *run) showActs(q *compute.Queue, s *step, op string, a *ops.Acts, rows int) error {
	if s.seen == nil {
		return nil
	}
	n := rows * a.Cols
	if a.X != nil {
		if err := r.show(q, s, op, a.X, n); err != nil {
			return err
		}
	}
	if a.Q == nil {
		return nil
	}
	raw, meta := make([]byte, n), make([]byte, n/4)
	if err := q.Read(raw, a.Q, 0); err != nil {
		return err
	}
	if err := q.Read(meta, a.M, 0); err != nil {
		return err
	}
	*s.seen = append(*s.seen, shown{op: op, v: unrounded(raw, meta, rows, a.Cols), rounded: true})
	return nil
}

// unrounded gives the values of an 8-bit copy as quantize.cl lays it out: in a
// row the first halves of all units of 32, 16 bytes each, then the second ones;
// for each unit 8 bytes, of which the first 4 are the scale.
func unrounded(raw, meta []byte, rows, cols int) []float32 {
	units := cols / 32
	out := make([]float32, rows*cols)
	for row := range rows {
		for u := range units {
			scale := math.Float32frombits(binary.LittleEndian.Uint32(meta[(row*units+u)*8:]))
			for i := range 32 {
				at := row*cols + i/16*16*units + u*16 + i%16
				out[row*cols+u*32+i] = scale * float32(int8(raw[at]))
			}
		}
	}
	return out
}

// comparison is a block that both sides compute: what the CPU shows is compared
// with what the device showed, in the order of the device.
type comparison struct {
	c     *checker
	d     Deviation
	block string
	seen  []shown
	cpu   map[string][]float32
}

func (c *checker) against(d Deviation, block string, seen []shown) *comparison {
	return &comparison{c: c, d: d, block: block, seen: seen, cpu: map[string][]float32{}}
}

// probe takes what the CPU shows.
func (x *comparison) probe(op string, v []float32) { x.cpu[op] = append([]float32(nil), v...) }

// excuse takes the device's word for the experts of a token: those were chosen
// otherwise than on the CPU. That is a fault only where the router's logits
// differ, and those are compared.
func (x *comparison) excuse(token, dim int) {
	for _, s := range x.seen {
		if v := x.cpu["experts"]; s.op == "experts" && len(v) == len(s.v) {
			copy(v[token*dim:(token+1)*dim], s.v[token*dim:])
		}
	}
}

// end compares.
func (x *comparison) end() {
	for _, s := range x.seen {
		want, ok := x.cpu[s.op]
		if !ok || len(want) != len(s.v) {
			continue // a block that the CPU computes in another way
		}
		x.d.Op, x.d.Limit = x.block+": "+s.op, x.c.limit(opLimit)
		switch {
		case s.rounded:
			x.d.Limit = roundedLimit
		case x.c.coarse && (s.op == "scores and values" || s.op == "output"):
			x.d.Limit = coarseLimit
		}
		x.c.compare(x.d, s.v, want)
	}
}

// others lists the tokens of a step whose experts the device chose otherwise
// than the CPU, where two are nearly alike.
func (s *step) others(p *pass, l *layer) (list []int) {
	k := l.expert.used
	if l.expert.count == 0 || len(s.ids) != s.T*k || len(p.mix.ids) < s.T*k {
		return nil
	}
	for t := range s.T {
		a, b := slices.Clone(s.ids[t*k:(t+1)*k]), slices.Clone(p.mix.ids[t*k:(t+1)*k])
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			list = append(list, t)
		}
	}
	return list
}
