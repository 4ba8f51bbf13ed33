package engine

import (
	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// runBuffers are the activations of a run, for up to rows tokens.
type runBuffers struct {
	rows  int
	state *compute.Buffer // position; kept tokens of the last window
	idx   *compute.Buffer // rows whose logits are wanted
	cs    []*compute.Buffer
	x, y  *compute.Buffer // (rows, dim)
	host  *compute.Buffer // (rows, dim): what the CPU computed
	xb    *ops.Acts
	hid   *compute.Buffer // (rows, dim) after the final norm

	q, k, v *compute.Buffer
	acts    map[int]*ops.Acts // by columns: results of mixers, inputs of down
	two     *compute.Buffer   // (rows, 2*ff) gate and up of prompts
	up      *compute.Buffer   // (rows, ff) up, where it is a matrix of its own

	u, z, raw, conv, attn *compute.Buffer
	scan                  *compute.Buffer // of delta nets over many tokens

	route, ids, weight, start, order, slots, gate *compute.Buffer

	// grown at need
	parts, logits *compute.Buffer
	out           *compute.Host // logits of recorded steps
	made          int           // counts growth

	in    *compute.Host // what a pass writes: state, idx, rotations, x
	inCS  []int64
	inX   int64
	xHost *compute.Host // (rows, dim) between devices and CPU

	chosen *compute.Host // (rows, used) experts and their weights, where the CPU computes them

	in2, xHost2 *compute.Host // of the next piece of a prompt in the pipeline; xHost2 is nil until there was one
}

// passRows is the most tokens of a pass.
func (m *Model) passRows() int { return max(min(m.chunk, m.context), maxWindow) }

// room takes the buffers.
func (r *run) room() error {
	m, b := r.c.m, &r.buf
	T, dim := m.passRows(), m.spec.dim
	b.rows = T
	r.work = r.dev.Arena(min(32<<20, max(m.scratchNeed(r.c.experts), 256<<10), r.dev.MaxBuffer()))
	var err error
	floats := func(n int) *compute.Buffer {
		if err != nil || n == 0 {
			return nil
		}
		var x *compute.Buffer
		x, err = r.work.Alloc(4 * int64(n))
		return x
	}
	cols := map[int]int{} // rows of activations by columns
	var q, k, v, two, up, u, z, raw, attn, scan, routes, used, slots, experts int
	for i := range r.layers {
		l := &r.layers[i]
		switch {
		case l.why.mixer != "":
		case l.mixer == attention:
			a := &l.layer.attn
			q, k, v = max(q, l.q.rows), max(k, a.kvHeads*a.keyDim), max(v, a.kvHeads*a.valDim)
			cols[a.heads*a.valDim] = max(cols[a.heads*a.valDim], T)
		case l.mixer == deltaNet:
			d := &l.layer.delta
			inner := d.valHeads * d.dim
			u, z, raw, attn = max(u, d.channels()), max(z, inner), max(raw, 2*d.valHeads), max(attn, inner)
			scan = max(scan, int(l.delta.ScratchBytes(T)/4))
			cols[inner] = max(cols[inner], T)
		}
		if l.why.ffn != "" {
			continue
		}
		e, ff := &l.wide.expert, l.wide.ff
		two = max(two, T*2*ff, T*2*e.shared)
		if !l.gate.none() {
			up = max(up, T*ff, T*e.shared)
		}
		for _, n := range []int{ff, e.shared} {
			if n > 0 {
				cols[n] = max(cols[n], T)
			}
		}
		if !l.router.none() {
			routes, used = max(routes, e.count), max(used, e.used)
		}
		if e.count > 0 && l.routedOnHost == nil {
			routes, used, experts = max(routes, e.count), max(used, e.used), max(experts, e.count)
			two, slots = max(two, T*e.used*2*e.ff), max(slots, T*e.used*dim)
			cols[e.ff] = max(cols[e.ff], T*e.used)
		}
	}
	b.state, b.idx = floats(2), floats(T)
	for _, x := range m.ropes {
		b.cs = append(b.cs, floats(T*x.spec.dims))
	}
	b.x, b.y, b.host, b.hid = floats(T*dim), floats(T*dim), floats(T*dim), floats(T*dim)
	b.q, b.k, b.v, b.two = floats(T*q), floats(T*k), floats(T*v), floats(two)
	b.up = floats(up)
	b.u, b.z, b.raw, b.conv, b.attn = floats(T*u), floats(T*z), floats(T*raw), floats(T*u), floats(T*attn)
	b.scan = floats(scan)
	b.route, b.ids, b.weight = floats(T*routes), floats(T*used), floats(T*used)
	b.start, b.order, b.slots, b.gate = floats(experts+1), floats(T*used), floats(slots), floats(T)
	if err != nil {
		return err
	}
	if b.xb, err = ops.NewActs(r.work, T, dim, true, true); err != nil {
		return err
	}
	b.acts = map[int]*ops.Acts{}
	for n, rows := range cols {
		if b.acts[n], err = ops.NewActs(r.work, rows, n, true, true); err != nil {
			return err
		}
	}
	at := int64(256 + 4*T)
	for _, x := range m.ropes {
		b.inCS = append(b.inCS, at)
		at += 4 * int64(T*x.spec.dims)
	}
	b.inX = at
	flows := r.c.flows()
	if !flows || r == r.c.runs[0] {
		at += 4 * int64(T*dim) // else x comes by a hop
	}
	if b.in, err = r.dev.Host(at); err != nil {
		return err
	}
	if r.c.piped() {
		if b.in2, err = r.dev.Host(at); err != nil {
			return err
		}
	}
	if !flows || r.last { // else x goes by a hop
		if b.xHost, err = r.dev.Host(4 * int64(T*dim)); err != nil {
			return err
		}
	}
	if r.split && used > 0 {
		if b.chosen, err = r.dev.Host(8 * int64(T*used)); err != nil {
			return err
		}
	}
	return r.pickRoom()
}

// need grows what depends on the pass: parts of attention and logits.
func (r *run) need(parts, logits int64, recorded bool) error {
	b := &r.buf
	defer func() {
		n := r.work.Size()
		for _, x := range []*compute.Buffer{b.parts, b.logits} {
			if x != nil {
				n += x.Len()
			}
		}
		r.scratch.Store(n)
	}()
	grow := func(x **compute.Buffer, n int64) error {
		if n == 0 || *x != nil && (*x).Len() >= n {
			return nil
		}
		if *x != nil {
			(*x).Free()
			*x = nil
		}
		b.made++
		var err error
		*x, err = r.dev.Alloc(n)
		return err
	}
	if err := grow(&b.parts, parts); err != nil {
		return err
	}
	if err := grow(&b.logits, logits); err != nil {
		return err
	}
	if recorded && logits > 0 && (b.out == nil || int64(len(b.out.Bytes())) < logits) {
		if b.out != nil {
			b.out.Free()
		}
		b.made++
		var err error
		b.out, err = r.dev.Host(logits)
		return err
	}
	return nil
}

func (b *runBuffers) free() {
	for _, x := range []*compute.Buffer{b.parts, b.logits} {
		if x != nil {
			x.Free()
		}
	}
	for _, h := range []*compute.Host{b.in, b.out, b.xHost, b.in2, b.xHost2, b.chosen} {
		if h != nil {
			h.Free()
		}
	}
	*b = runBuffers{}
}

// form gives activations in the forms that their users take.
func form(a *ops.Acts, floats, rounded bool) *ops.Acts {
	out := *a
	if !floats {
		out.X = nil
	}
	if !rounded {
		out.Q, out.M = nil, nil
	}
	return &out
}

// formFor gives the forms that the matrices take.
func formFor(a *ops.Acts, list ...*cardMatrix) *ops.Acts {
	floats, rounded := false, false
	for _, w := range list {
		if w.none() {
			continue
		}
		floats, rounded = floats || w.float(), rounded || !w.float()
	}
	return form(a, floats, rounded)
}
