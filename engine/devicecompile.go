package engine

import "outcrop/gpu/compute/ops"

// compile has compilers start with what every layer of the run needs; they work while
// weights are copied.
func (r *run) compile(o *Options) (err error) {
	r.dev.KeepFree(r.toTake(o))
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

// weightBytes are those of the run on the device; experts: with the routed ones.
func (r *run) weightBytes(experts bool) (need int64) {
	m := r.c.m
	for il := r.lo; il < r.hi; il++ {
		n := m.cardNeed(il)
		need += n.weights
		if experts {
			need += n.experts
		}
	}
	if r.last {
		need += m.output.bytes()
	}
	return need
}

// toTake is about what the run and one session will hold of the device.
func (r *run) toTake(o *Options) int64 {
	n := r.weightBytes(!r.c.experts) + o.SlotBytes + r.c.m.scratchNeed(r.c.experts)
	for il := r.lo; il < r.hi; il++ {
		n += r.c.m.cardNeed(il).cache
	}
	return n + n/16
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
