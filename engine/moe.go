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
	chosen bool      // ids and w are there already
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
	got    []expertBytes // (experts) weights of those that can be computed
	rows   []int32       // slots of the experts being computed
}

// take takes n choices over that a device has made: experts, then weights.
func (x *mixture) take(raw []byte, n int) {
	growInts(&x.ids, n)
	grow(&x.w, n)
	copy(x.ids, asInts(raw[:4*n]))
	copy(x.w, asFloats(raw[4*n:8*n]))
	x.chosen = true
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
	switch {
	case x.chosen: // by a device
		x.chosen = false
	case l.both != nil:
		m.routeBeside(p, l)
		p.tokens(l, choose)
	default:
		p.begin()
		p.want(x.logits, e.count, &l.router, &p.in)
		p.run()
		p.show("router", x.logits)
		p.tokens(l, choose)
	}
	if m.route != nil {
		for t := range T {
			m.route(l.index, t, x.ids[t*K:(t+1)*K])
		}
	}
	x.sort(T, e)

	slots, ff := T*K, e.ff
	grow(&x.hb, slots*ff)
	grow(&x.hu, slots*ff)
	grow(&x.out, slots*dim)
	if len(x.got) < e.count {
		x.got = make([]expertBytes, e.count)
	}
	err := m.experts.open(p, l)
	m.count(p, l)
	for first := true; err == nil; first = false {
		var wave []int32
		if wave, err = m.experts.next(p, l); err != nil || len(wave) == 0 && !first {
			break
		}
		m.wave(p, l, wave, first)
	}
	m.experts.close(p, l)
	if err != nil {
		p.err = err
		return
	}
	p.tokens(l, gather)
	p.show("experts", p.y)
}

// wave computes the experts that are at hand, each for the tokens that chose
// it, and with the first wave the shared expert.
func (m *Model) wave(p *pass, l *layer, wave []int32, first bool) {
	e, dim, x, T, ff := &l.expert, m.spec.dim, &p.mix, p.t, l.expert.ff
	shared := first && e.shared > 0
	p.begin()
	for _, id := range wave {
		lo, hi, w := x.start[id], x.start[id+1], &x.got[id]
		up, upData, from := &l.ups, w[1], 0
		if l.fused { // gate rows, then up rows, in one tensor
			up, upData, from = &l.gates, w[0], ff
		}
		p.slice(&l.gates, w[0], int(id), 0, ff, &p.in, x.token[lo:hi], x.hb[int(lo)*ff:], ff)
		p.slice(up, upData, int(id), from, ff, &p.in, x.token[lo:hi], x.hu[int(lo)*ff:], ff)
	}
	if shared {
		p.want(grow(&x.sb, T*e.shared), e.shared, &l.shGate, &p.in)
		p.want(grow(&x.su, T*e.shared), e.shared, &l.shUp, &p.in)
	}
	p.run()

	// down
	if first {
		x.h.Set(x.hb, T*e.used, ff)
	}
	x.rows = x.rows[:0]
	for _, id := range wave {
		for i := x.start[id]; i < x.start[id+1]; i++ {
			x.rows = append(x.rows, i)
		}
	}
	if p.serial() {
		for i := range x.rows {
			gateSlot(p, l, i, p.m.pool.workers[0])
		}
	} else {
		p.each(len(x.rows), l, gateSlot)
	}
	if shared {
		p.tokens(l, gateShared)
		p.show("shared gate and up", x.sb)
	}
	p.begin()
	for _, id := range wave {
		lo, hi := x.start[id], x.start[id+1]
		p.slice(&l.downs, x.got[id][2], int(id), 0, dim, &x.h, x.same[lo:hi], x.out[int(lo)*dim:], dim)
	}
	if shared {
		p.acts(&x.sh, x.sb, T, e.shared, l.shDown.f.Float)
		p.want(grow(&x.so, T*dim), dim, &l.shDown, &x.sh)
	}
	p.run()
}

// slice adds the product of n rows of one matrix of a bank, from row on, with
// the given activation rows; dst has ldd values per row. data is the matrix.
func (p *pass) slice(b *bank, data []byte, id, row, n int, a *quant.Acts, idx []int32, dst []float32, ldd int) {
	w := product{
		f: b.f, data: data[row*b.rowBytes : (row+n)*b.rowBytes], rows: n, rowBytes: b.rowBytes,
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

// gateSlot makes the input of down for the i-th row of a wave.
func gateSlot(p *pass, l *layer, i int, _ *worker) {
	ff, x := l.expert.ff, &p.mix
	r := int(x.rows[i])
	l.act.gateMul(x.hb[r*ff:(r+1)*ff], x.hu[r*ff:(r+1)*ff])
	if !l.downs.f.Float {
		x.h.Quantize(r, r+1)
	}
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
