package engine

import "outcrop/gpu/compute/ops"

// compile has compilers start with what every layer of the run needs; they work while
// weights are copied.
func (r *run) compile(o *Options) (err error) {
	if r.set, err = ops.New(r.dev); err != nil {
		return err
	}
	for il := r.lo; il < r.hi; il++ { // what takes longest first
		if l := &r.c.m.layers[il]; l.mixer == attention && r.c.parts[il].mixer == "" {
			if _, err := r.set.Attention(r.heads(l)); err != nil {
				return err
			}
		}
	}
	many := r.c.m.chunk > ops.MaxColumns
	r.set.Ahead(many, r.types()...)
	if r.c.experts && o.SlotBytes > 0 {
		for il := r.lo; il < r.hi; il++ {
			for _, b := range r.c.m.layers[il].banks() {
				if !b.none() {
					r.set.Ahead(many, uint32(b.f.Type))
				}
			}
		}
	}
	if r.rows, err = r.set.Rows(); err != nil {
		return err
	}
	r.quant, err = r.set.Quantize()
	return err
}

// weightBytes are those of the run on the device.
func (r *run) weightBytes() (need int64) {
	m := r.c.m
	for il := r.lo; il < r.hi; il++ {
		n := m.cardNeed(il)
		need += n.weights + n.experts
	}
	if r.last {
		need += m.output.bytes()
	}
	return need
}

// heads is the shape of a layer's attention.
func (r *run) heads(l *layer) ops.Heads {
	a, m := &l.attn, r.c.m
	h := ops.Heads{
		Query: a.heads, KV: a.kvHeads, Key: a.keyDim, Value: a.valDim, Q8: m.kv == kvQ8,
		Gated: a.outGate, Window: a.window, Scale: a.scale, Cap: a.softcap, Eps: m.spec.eps, NormV: a.vNorm,
	}
	if l.rope != nil {
		h.Rot, h.Neox = l.rope.spec.dims, l.rope.spec.kind == ropeNeox
	}
	return h
}
