package engine

import (
	"errors"
	"slices"

	"outcrop/gpu/compute"
	"outcrop/gpu/compute/ops"
)

// norm adds what a block made, if any, and norms the stream.
func (r *run) norm(q *compute.Queue, s *step, add, post, w *compute.Buffer, to *ops.Acts) error {
	sp := r.c.m.spec
	return r.rows.Norm(q, s.T, ops.Norm{X: r.buf.x, N: sp.dim, Add: add, Post: post, Scale: sp.residScale, W: w, Eps: sp.eps, To: to})
}

// mixer adds the output of layer i-1 and runs the mixer of layer i: its output
// is in y.
func (r *run) mixer(q *compute.Queue, s *step, i int) error {
	b, l := &r.buf, &r.layers[i]
	var add, post *compute.Buffer
	if i > 0 {
		add, post = b.y, r.layers[i-1].postFFN
	}
	to := formFor(b.xb, &l.q, &l.k, &l.v)
	if l.mixer == deltaNet {
		to = formFor(b.xb, &l.qkv, &l.z, &l.ba)
	}
	if err := r.norm(q, s, add, post, l.attnNorm, to); err != nil {
		return err
	}
	if err := r.showActs(q, s, "norm", to, s.T); err != nil {
		return err
	}
	if l.mixer == deltaNet {
		return r.deltaNet(q, s, i)
	}
	return r.attend(q, s, i)
}

func (r *run) attend(q *compute.Queue, s *step, i int) error {
	b, l, dim := &r.buf, &r.layers[i], r.c.m.spec.dim
	a := &l.layer.attn
	kw, vw := a.kvHeads*a.keyDim, a.kvHeads*a.valDim
	hold := 0 // products of the same activations need not wait for each other
	if !l.v.none() {
		hold = ops.Hold
	}
	if err := l.q.run(q, b.xb, s.T, b.q, l.q.rows, hold); err != nil {
		return err
	}
	kb, ldk, err := r.projected(q, s, &l.k, b.k, kw, l, l.kAt)
	if err != nil {
		return err
	}
	vb, ldv, err := r.projected(q, s, &l.v, b.v, vw, l, l.vAt)
	if err != nil {
		return err
	}
	if s.seen != nil {
		if err := errors.Join(r.show(q, s, "query", b.q, s.T*l.q.rows), r.show(q, s, "key", b.k, s.T*kw), r.show(q, s, "value", b.v, s.T*vw)); err != nil {
			return err
		}
	}
	qn, kn := l.qNorm, l.kNorm
	if a.qkNorm == qkFull {
		if err := errors.Join(r.normHeads(q, s, b.q, qn, l.q.rows), r.normHeads(q, s, b.k, kn, kw)); err != nil {
			return err
		}
		qn, kn = nil, nil
	}
	to := formFor(b.acts[a.heads*a.valDim], &l.o)
	st := &ops.Step{
		Tokens: s.T, Q: b.q, LdQ: l.q.rows, K: kb, LdK: ldk, V: vb, LdV: ldv,
		QNorm: qn, KNorm: kn, State: b.state, Cache: &s.s.layers[i].cache,
		Splits: l.attn.Splits(s.context, s.T), Parts: b.parts, Sinks: l.sinks, To: to,
	}
	if l.rope != nil {
		st.CS = b.cs[l.ropeAt]
	}
	if err := l.attn.Run(q, r.rows, st); err != nil {
		return err
	}
	if err := r.showActs(q, s, "scores and values", to, s.T); err != nil {
		return err
	}
	if err := l.o.run(q, to, s.T, b.y, dim, 0); err != nil {
		return err
	}
	return r.show(q, s, "output", b.y, s.T*dim)
}

// projected makes keys or values, or finds them behind the queries.
func (r *run) projected(q *compute.Queue, s *step, w *cardMatrix, to *compute.Buffer, n int, l *cardLayer, at int) (*compute.Buffer, int, error) {
	if !w.none() {
		return to, n, w.run(q, r.buf.xb, s.T, to, n, ops.Settled)
	}
	b, err := q.Slice(r.buf.q, 4*int64(at), r.buf.q.Len()-4*int64(at))
	return b, l.q.rows, err
}

// normHeads norms rows of n values in place, all heads together.
func (r *run) normHeads(q *compute.Queue, s *step, x, w *compute.Buffer, n int) error {
	return r.rows.Norm(q, s.T, ops.Norm{X: x, N: n, W: w, Eps: r.c.m.spec.eps, To: &ops.Acts{Cols: n, Rows: s.T, X: x}})
}

func (r *run) deltaNet(q *compute.Queue, s *step, i int) error {
	b, l, m := &r.buf, &r.layers[i], r.c.m
	d := &l.layer.delta
	ch, inner := d.channels(), d.valHeads*d.dim
	if err := l.qkv.run(q, b.xb, s.T, b.u, ch, ops.Hold); err != nil {
		return err
	}
	if err := l.z.run(q, b.xb, s.T, b.z, inner, ops.Settled); err != nil {
		return err
	}
	if err := l.ba.run(q, b.xb, s.T, b.raw, 2*d.valHeads, ops.Settled); err != nil {
		return err
	}
	if s.seen != nil {
		err := errors.Join(r.show(q, s, "query, key and value", b.u, s.T*ch), r.show(q, s, "gate", b.z, s.T*inner),
			r.show(q, s, "decay and beta", b.raw, s.T*2*d.valHeads))
		if err != nil {
			return err
		}
	}
	mem := &s.s.layers[i]
	to := formFor(b.acts[inner], &l.out)
	err := l.delta.Run(q, &ops.DeltaStep{
		Tokens: s.T, U: b.u, LdU: ch, Raw: b.raw, LdRaw: 2 * d.valHeads, Z: b.z, LdZ: inner,
		Taps: l.taps, A: l.decay, DT: l.dt, Norm: l.deltaNorm, NormEps: m.spec.eps,
		State: mem.delta, Old: mem.log[s.book], Log: mem.log[s.book^1], Keep: s.keep, Pos: b.state,
		Conv: b.conv, Attn: b.attn, Scratch: b.scan, To: to,
	})
	if err != nil {
		return err
	}
	if err := r.showActs(q, s, "recurrence", to, s.T); err != nil {
		return err
	}
	if err := l.out.run(q, to, s.T, b.y, m.spec.dim, 0); err != nil {
		return err
	}
	return r.show(q, s, "output", b.y, s.T*m.spec.dim)
}

// enterFFN adds the mixer's output and norms the stream for the feed-forward.
func (r *run) enterFFN(q *compute.Queue, s *step, i int) error {
	b, l := &r.buf, &r.layers[i]
	to := formFor(b.xb, &l.gateUp, &l.gate, &l.up, &l.router, &l.expGateUp, &l.shGateUp, &l.sharedGate)
	if l.routedOnHost != nil {
		to.X = b.xb.X
	}
	if err := r.norm(q, s, b.y, l.postAttn, l.ffnNorm, to); err != nil {
		return err
	}
	return r.showActs(q, s, "norm", to, s.T)
}

// ffn adds the mixer's output and runs the feed-forward of layer i: its output
// is in y.
func (r *run) ffn(q *compute.Queue, s *step, i int) error {
	if err := r.enterFFN(q, s, i); err != nil {
		return err
	}
	return r.ffnEntered(q, s, i)
}

func (r *run) ffnEntered(q *compute.Queue, s *step, i int) error {
	l := &r.layers[i]
	if l.ff > 0 {
		return r.dense(q, s, l, &l.gateUp, &l.gate, &l.up, &l.down, l.wide.ff, 0)
	}
	if err := r.routed(q, s, l); err != nil {
		return err
	}
	if err := r.sharedExpert(q, s, l, true); err != nil {
		return err
	}
	return r.show(q, s, "experts", r.buf.y, s.T*r.c.m.spec.dim)
}

// dense makes y = down(act(gate xb) * up xb).
func (r *run) dense(q *compute.Queue, s *step, l *cardLayer, both, gate, up, down *cardMatrix, ff, flags int) error {
	b := &r.buf
	to := formFor(b.acts[ff], down)
	if err := r.halves(q, s, l, both, gate, up, ff, to); err != nil {
		return err
	}
	if err := r.showActs(q, s, "gate and up", to, s.T); err != nil {
		return err
	}
	if err := down.run(q, to, s.T, b.y, r.c.m.spec.dim, flags); err != nil {
		return err
	}
	return r.show(q, s, "down", b.y, s.T*r.c.m.spec.dim)
}

// halves makes the input of down.
func (r *run) halves(q *compute.Queue, s *step, l *cardLayer, both, gate, up *cardMatrix, ff int, to *ops.Acts) error {
	b, act := &r.buf, int(l.act)
	if !both.none() && s.T <= ops.MaxColumns {
		return both.mul.RunGLU(q, b.xb, s.T, ops.GLU{Act: act, Bias: both.bias, To: to})
	}
	ld := 2 * ff
	g := b.two
	var u *compute.Buffer
	var err error
	if !both.none() {
		if err = both.run(q, b.xb, s.T, b.two, ld, 0); err != nil {
			return err
		}
		if u, err = q.Slice(b.two, 4*int64(ff), b.two.Len()-4*int64(ff)); err != nil {
			return err
		}
	} else {
		ld = ff
		u = b.up
		if err = gate.run(q, b.xb, s.T, g, ff, 0); err != nil {
			return err
		}
		if err = up.run(q, b.xb, s.T, u, ff, 0); err != nil {
			return err
		}
	}
	return r.rows.GLU(q, to, s.T, g, ld, u, ld, act)
}

// choose makes ids and weight, the experts of each token.
func (r *run) choose(q *compute.Queue, s *step, l *cardLayer) error {
	b, e, T := &r.buf, &l.expert, s.T
	if err := l.router.run(q, b.xb, T, b.route, e.count, 0); err != nil {
		return err
	}
	if err := r.show(q, s, "router", b.route, T*e.count); err != nil {
		return err
	}
	err := r.rows.Route(q, b.route, e.count, T, ops.Route{
		Experts: e.count, Used: e.used, Kind: int(e.gating), Bias: l.pick,
		Groups: e.groups, Kept: e.groupsUsed, Norm: e.norm, Scale: e.scale,
	}, b.ids, b.weight)
	if err != nil || s.seen == nil {
		return err
	}
	raw := make([]byte, 4*T*e.used)
	if err := q.Read(raw, b.ids, 0); err != nil {
		return err
	}
	s.ids = slices.Clone(asInts(raw))
	return nil
}

// routed makes y = sum of the chosen experts.
func (r *run) routed(q *compute.Queue, s *step, l *cardLayer) error {
	b, e, dim, T := &r.buf, &l.wide.expert, r.c.m.spec.dim, s.T
	if err := r.choose(q, s, l); err != nil {
		return err
	}
	to := formFor(b.acts[e.ff], &l.expDown)
	if T <= ops.MaxColumns || !r.sliced(e.ff) || l.expUpBias != nil || l.expDownBias != nil {
		if err := l.expGateUp.mul.RunExperts(q, b.xb, T, e.used, b.ids, ops.GLU{Act: int(l.act), Bias: l.expUpBias, To: to}); err != nil {
			return err
		}
		out := ops.Out{Y: b.y, Ld: dim, Flags: ops.Settled}
		if l.expDownBias != nil {
			out.Flags, out.Extra = out.Flags|ops.Bias, l.expDownBias
		}
		return l.expDown.mul.RunDown(q, to, T, e.used, b.ids, b.weight, out)
	}
	slots := T * e.used
	if err := r.rows.Sort(q, b.ids, slots, e.count, b.start, b.order); err != nil {
		return err
	}
	sl := ops.Slots{Experts: e.count, Order: b.order, Start: b.start, Div: e.used, Most: T}
	if err := l.expGateUp.many.Run(q, b.xb, T, &sl, ops.Out{Y: b.two, Ld: 2 * e.ff}); err != nil {
		return err
	}
	up, err := q.Slice(b.two, 4*int64(e.ff), b.two.Len()-4*int64(e.ff))
	if err != nil {
		return err
	}
	if err := r.rows.GLU(q, to, slots, b.two, 2*e.ff, up, 2*e.ff, int(l.act)); err != nil {
		return err
	}
	sl.Div = 1
	if err := l.expDown.many.Run(q, to, slots, &sl, ops.Out{Y: b.slots, Ld: dim}); err != nil {
		return err
	}
	return r.rows.Slots(q, b.y, b.slots, b.weight, T, e.used, dim, 1, false)
}

// sharedExpert adds the shared expert to y, or makes it y.
func (r *run) sharedExpert(q *compute.Queue, s *step, l *cardLayer, add bool) error {
	e, b, dim, T := &l.wide.expert, &r.buf, r.c.m.spec.dim, s.T
	if e.shared == 0 {
		return nil
	}
	to := formFor(b.acts[e.shared], &l.shDown)
	if err := r.halves(q, s, l, &l.shGateUp, &l.gate, &l.up, e.shared, to); err != nil {
		return err
	}
	if err := r.showActs(q, s, "shared gate and up", to, T); err != nil {
		return err
	}
	if l.sharedGate.none() {
		flags := 0
		if add {
			flags = ops.Add
		}
		return l.shDown.run(q, to, T, b.y, dim, flags)
	}
	if err := l.sharedGate.run(q, b.xb, T, b.gate, 1, 0); err != nil {
		return err
	}
	if T <= ops.MaxColumns {
		out := ops.Out{Y: b.y, Ld: dim, Flags: ops.Gate, Extra: b.gate, ExtraLd: 1, Scale: l.shDown.scale}
		if add {
			out.Flags |= ops.Add
		}
		return l.shDown.mul.Run(q, to, T, out)
	}
	y := b.hid // free until the end of the pass
	if !add {
		y = b.y
	}
	if err := l.shDown.run(q, to, T, y, dim, 0); err != nil {
		return err
	}
	if err := r.rows.Gate(q, y, T, dim, 1, b.gate, 1, 0); err != nil || !add {
		return err
	}
	return r.rows.Add(q, b.y, y, int64(T*dim), 1)
}
