package engine

import (
	"math"

	"outcrop/engine/quant"
)

// mixture holds the routing of one layer in one pass.
type mixture struct {
	logits []float32 // (T, experts)
	ids    []int32   // (T, used): chosen experts, best first
	w      []float32 // (T, used): their weights
	slot   []int32   // (T, used): row of each choice when sorted by expert
	start  []int32   // (experts+1): first slot of each expert
	token  []int32   // (T*used): token of each slot
	same   []int32   // 0, 1, 2, ...: slots as rows of h
	hb, hu []float32 // (slots, ff) gate and up of routed experts
	out    []float32 // (slots, dim)
	sb, su []float32 // (T, shared)
	so     []float32 // (T, dim)
	h      quant.Acts
	sh     quant.Acts
}

// mixture is the routed feed-forward: y = sum_e w_e expert_e(xb) + shared(xb).
// The choices of all tokens are sorted by expert, so that the weights of an
// expert are read once per pass, whatever the number of tokens.
func (m *Model) mixture(p *pass, l *layer) {
	e, dim, x := &l.expert, m.spec.dim, &p.mix
	T, K := p.t, e.used
	grow(&x.logits, T*e.count)
	growInts(&x.ids, T*K)
	grow(&x.w, T*K)
	p.acts(&p.in, p.xb, T, dim, l.router.f.Float && l.gates.f.Float && (l.fused || l.ups.f.Float) &&
		(e.shared == 0 || l.shGate.f.Float && l.shUp.f.Float))
	if l.both != nil {
		m.routeBeside(p, l)
	} else {
		p.begin()
		p.want(x.logits, e.count, &l.router, &p.in)
		p.run()
	}
	p.tokens(l, choose)
	x.sort(T, e)
	m.readAhead(p, l)
	m.count(p, l)

	// gate and up of every expert that has tokens, and of the shared expert
	slots, ff := T*K, e.ff
	grow(&x.hb, slots*ff)
	grow(&x.hu, slots*ff)
	p.begin()
	for id := range e.count {
		lo, hi := x.start[id], x.start[id+1]
		if lo == hi {
			continue
		}
		up, from := &l.ups, 0
		if l.fused { // gate rows, then up rows, in one tensor
			up, from = &l.gates, ff
		}
		p.expert(&l.gates, id, 0, ff, &p.in, x.token[lo:hi], x.hb[int(lo)*ff:])
		p.expert(up, id, from, ff, &p.in, x.token[lo:hi], x.hu[int(lo)*ff:])
	}
	if e.shared > 0 {
		p.want(grow(&x.sb, T*e.shared), e.shared, &l.shGate, &p.in)
		p.want(grow(&x.su, T*e.shared), e.shared, &l.shUp, &p.in)
	}
	p.run()
	p.slots(slots, l, gateSlot)
	if e.shared > 0 {
		p.tokens(l, gateShared)
	}

	// down
	p.acts(&x.h, x.hb[:slots*ff], slots, ff, l.downs.f.Float)
	grow(&x.out, slots*dim)
	p.begin()
	for id := range e.count {
		lo, hi := x.start[id], x.start[id+1]
		if lo < hi {
			p.expert(&l.downs, id, 0, dim, &x.h, x.same[lo:hi], x.out[int(lo)*dim:])
		}
	}
	if e.shared > 0 {
		p.acts(&x.sh, x.sb, T, e.shared, l.shDown.f.Float)
		p.want(grow(&x.so, T*dim), dim, &l.shDown, &x.sh)
	}
	p.run()
	p.tokens(l, gather)
}

// expert adds the product of n rows of one expert, from row on, with the given
// activation rows.
func (p *pass) expert(b *bank, id, row, n int, a *quant.Acts, idx []int32, dst []float32) {
	p.slice(b, id, row, n, a, idx, dst, n)
}

// slice is expert with ldd values per row of dst.
func (p *pass) slice(b *bank, id, row, n int, a *quant.Acts, idx []int32, dst []float32, ldd int) {
	w := product{
		f: b.f, data: b.of(id)[row*b.rowBytes : (row+n)*b.rowBytes], rows: n, rowBytes: b.rowBytes,
		a: a, idx: idx, n: len(idx), dst: dst, ldd: ldd,
	}
	if b.biases != nil {
		w.bias = b.biases[id*b.rows+row : id*b.rows+row+n]
	}
	if b.scales != nil {
		w.scale = b.scales[id]
	}
	p.mul.list = append(p.mul.list, w)
}

// slots runs f for every slot, on the workers when there are many.
func (p *pass) slots(n int, l *layer, f func(p *pass, l *layer, i int, w *worker)) {
	if p.serial() {
		for i := range n {
			f(p, l, i, p.m.pool.workers[0])
		}
		return
	}
	p.each(n, l, f)
}

// choose picks the experts of a token (models.md 1.4): probabilities from the
// logits, a bias for the choice only, groups, the best k, then weights.
func choose(p *pass, l *layer, t int, w *worker) {
	e, x := &l.expert, &p.mix
	logits := x.logits[t*e.count : (t+1)*e.count]
	w.scores = room(w.scores, 2*e.count)
	probs, score := w.scores[:e.count], w.scores[e.count:]
	copy(probs, logits)
	switch e.gating {
	case softmaxGating:
		quant.Softmax(probs)
	case sigmoidGating:
		for i, v := range probs {
			probs[i] = sigmoid(v)
		}
	case sqrtSoftplus:
		for i, v := range probs {
			probs[i] = float32(math.Sqrt(math.Log1p(math.Exp(float64(v)))))
		}
	}
	copy(score, probs)
	if l.pickBias != nil {
		quant.AddF32(score, l.pickBias)
	}
	if e.groups > 1 {
		dropGroups(score, e.groups, e.groupsUsed)
	}
	ids, weight := x.ids[t*e.used:(t+1)*e.used], x.w[t*e.used:(t+1)*e.used]
	for k := range ids {
		best := -1
		for i, v := range score {
			// A NaN score must not leave a choice empty: the first expert stands in,
			// and the logits show the NaN.
			if v > float32(math.Inf(-1)) && (best < 0 || v > score[best]) {
				best = i
			}
		}
		best = max(best, 0)
		ids[k], weight[k] = int32(best), probs[best]
		score[best] = float32(math.Inf(-1))
	}
	if e.gating == softmaxPicked {
		quant.Softmax(weight)
	}
	if e.norm {
		var sum float32
		for _, v := range weight {
			sum += v
		}
		quant.ScaleF32(weight, 1/max(sum, 0x1p-14))
	}
	if e.scale != 0 {
		quant.ScaleF32(weight, e.scale)
	}
}

// dropGroups keeps the groups with the largest sums of their two best scores
// (DeepSeek-V3) and puts the others out of reach.
func dropGroups(score []float32, groups, keep int) {
	n := len(score) / groups
	none := float32(math.Inf(-1))
	sum := func(g int) float32 {
		a, b := none, none
		for _, v := range score[g*n : (g+1)*n] {
			if v > a {
				a, b = v, a
			} else if v > b {
				b = v
			}
		}
		return a + b
	}
	for range groups - keep {
		worst, least := -1, float32(0)
		for g := range groups {
			if math.IsInf(float64(score[g*n]), -1) {
				continue // out already
			}
			if s := sum(g); worst < 0 || s <= least { // the higher group goes on a tie
				worst, least = g, s
			}
		}
		if worst < 0 {
			return
		}
		for i := worst * n; i < (worst+1)*n; i++ {
			score[i] = none
		}
	}
}

// sort orders the choices of T tokens by expert, tokens in order within one.
func (x *mixture) sort(T int, e *expertSpec) {
	n := T * e.used
	growInts(&x.slot, n)
	growInts(&x.token, n)
	growInts(&x.start, e.count+1)
	for len(x.same) < n {
		x.same = append(x.same, int32(len(x.same)))
	}
	clear(x.start)
	for _, id := range x.ids {
		x.start[id+1]++
	}
	for i := range e.count {
		x.start[i+1] += x.start[i]
	}
	// start[id] moves to the end of its run while it is filled, then back.
	for i, id := range x.ids {
		at := x.start[id]
		x.slot[i], x.token[at] = at, int32(i/e.used)
		x.start[id]++
	}
	copy(x.start[1:], x.start[:e.count])
	x.start[0] = 0
}

func gateSlot(p *pass, l *layer, i int, _ *worker) {
	ff, x := l.expert.ff, &p.mix
	l.act.gateMul(x.hb[i*ff:(i+1)*ff], x.hu[i*ff:(i+1)*ff])
}

func gateShared(p *pass, l *layer, t int, _ *worker) {
	n, x := l.expert.shared, &p.mix
	l.act.gateMul(x.sb[t*n:(t+1)*n], x.su[t*n:(t+1)*n])
}

// gather sums a token's experts in the order of their rank and adds the
// shared one.
func gather(p *pass, l *layer, t int, _ *worker) {
	e, dim, x := &l.expert, p.m.spec.dim, &p.mix
	y := p.y[t*dim : (t+1)*dim]
	clear(y)
	for k := range e.used {
		s := int(x.slot[t*e.used+k])
		quant.AxpyF32(y, x.w[t*e.used+k], x.out[s*dim:(s+1)*dim])
	}
	if e.shared == 0 {
		return
	}
	g := float32(1)
	if l.sharedGate != nil {
		g = sigmoid(quant.DotF32(l.sharedGate, p.xb[t*dim:(t+1)*dim]))
	}
	quant.AxpyF32(y, g, x.so[t*dim:(t+1)*dim])
}

func growInts(buf *[]int32, n int) []int32 {
	if cap(*buf) < n {
		*buf = make([]int32, n)
	}
	*buf = (*buf)[:n]
	return *buf
}
